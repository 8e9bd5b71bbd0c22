"""The picture of misread digits."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline

from polytrain_paper.misread import MisreadDigitsDisplay
from power_models import power_classifier

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(
        PCA(8, random_state=0), power_classifier(rank=2, loss="squared", max_sweeps=1, random_state=0)
    )
    return model.fit(X[:600], y[:600]), X[600:800], y[600:800]


def test_misread_digits(digits):
    model, X, y = digits
    predicted = model.predict(X)
    display = MisreadDigitsDisplay.from_estimator(model, X, y, max_images=5)
    np.testing.assert_array_equal(display.counts, confusion_matrix(y, predicted))
    assert display.n_misread == np.count_nonzero(predicted != y) > 5
    assert display.images.shape == (5, 8, 8)
    wrong = np.flatnonzero(predicted != y)
    shown = {f"{y[row]} read as {predicted[row]}" for row in wrong}
    assert set(display.captions) <= shown
    match = next(row for row in wrong if np.array_equal(X[row].reshape(8, 8), display.images[0]))
    assert display.captions[0] == f"{y[match]} read as {predicted[match]}"
    assert display.ax_.get_title() == f"{len(wrong)} of 200 misread, 5 of them shown"


def test_misread_digits_errors_and_perfect_reading(digits):
    model, X, y = digits
    with pytest.raises(ValueError, match="does not hold square images; pass images"):
        MisreadDigitsDisplay.from_estimator(model, X[:, :60], y)
    with pytest.raises(ValueError, match="y has 3 labels but there are 200 images"):
        MisreadDigitsDisplay.from_estimator(model, X, y[:3])
    right = model.predict(X)
    display = MisreadDigitsDisplay.from_estimator(model, X, right, images=X.reshape(-1, 8, 8))
    assert display.n_misread == 0
    assert display.ax_.get_title() == "0 of 200 misread"
