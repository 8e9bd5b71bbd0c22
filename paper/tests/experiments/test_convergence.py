import numpy as np
import pytest
from numpy.testing import assert_allclose

from polytrain_paper.datasets import load_digits_images
from polytrain_paper.experiments.convergence import objective_per_update
from polytrain_paper.features import make_digit_features
from power_models import power_classifier


@pytest.fixture(scope="module")
def sixes():
    digits = load_digits_images()
    features = make_digit_features("pca", 8, image_shape=digits.image_shape)
    return features.fit_transform(digits.train_images[:400]).astype(np.float64), digits.train_labels[:400] == 6


@pytest.mark.parametrize("init", ["random", "linear"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_update_raises_the_objective_and_sweeps_end_where_the_classifier_ends(sixes, loss, init):
    X, positive = sixes
    shared = {"loss": loss, "degree": 1, "rank": 4, "alpha": 1e-3, "init": init}
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=1)[0]  # as the estimator draws it
    objectives = np.array(objective_per_update(X, positive, **shared, n_sweeps=3, seed=seed))
    assert len(objectives) == 1 + 3 * 7
    assert np.all(np.diff(objectives) <= 1e-12 * objectives[:-1])
    assert objectives[-1] < 0.9 * objectives[0]
    model = power_classifier(**shared, max_sweeps=3, tol=0.0, random_state=0).fit(X, positive)
    assert_allclose(objectives[7::7], [record["objective"] for record in model.history_], rtol=1e-6)
