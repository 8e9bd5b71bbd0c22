"""Errors counted block by block equal those of scikit-learn on all rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.cli import main
from polytrain.evaluation import Answers

X, Y = load_iris(return_X_y=True)


def count(estimator, y):
    parts = [slice(start, start + 37) for start in range(0, len(X), 37)]
    return Answers.join([Answers.of(estimator.model_, X[part], y[part]) for part in parts])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification(n_classes):
    y = Y % n_classes
    estimator = TensorTrainClassifier(rank=2, max_sweeps=1, random_state=0).fit(X, y)
    errors = count(estimator, y)
    figures, guess, sure = errors.summary(), estimator.predict(X), estimator.predict_proba(X)
    assert figures["n"] == 150
    assert figures["error"] == pytest.approx((guess != y).mean())
    assert figures["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, guess))
    areas = roc_auc_score(y, sure[:, 1]) if n_classes == 2 else roc_auc_score(y, sure, multi_class="ovr")
    assert figures["auc"] == pytest.approx(areas, rel=1e-12)
    assert figures["log_loss"] == pytest.approx(log_loss(y, sure))
    assert figures["confusion"] == confusion_matrix(y, guess).tolist()
    n, probability, right = errors.bins.sum(axis=1)
    assert (n, right) == (150, (guess == y).sum())
    assert probability == pytest.approx(sure.max(axis=1).sum())
    place = np.minimum((sure.max(axis=1) * 20).astype(int), 19)
    np.testing.assert_array_equal(errors.bins[0], np.bincount(place, minlength=20))


def test_squared_loss_has_no_log_loss():
    errors = count(TensorTrainClassifier(loss="squared", rank=2, max_sweeps=1).fit(X, Y % 2), Y % 2)
    assert "log_loss" not in errors.summary()
    assert errors.bins[0].sum() == 150
    assert errors.bins[0, :10].sum() == 0  # of two classes, the predicted one has at least a half
    assert not count(TensorTrainClassifier(loss="squared", rank=2, max_sweeps=1).fit(X, Y), Y).bins.any()


def test_regression():
    y = X[:, 0] * X[:, 1] + 1e4
    estimator = TensorTrainRegressor(rank=2, max_sweeps=1, random_state=0).fit(X, y)
    errors = count(estimator, y)
    figures, guess = errors.summary(), estimator.predict(X)
    assert figures["rmse"] == pytest.approx(root_mean_squared_error(y, guess))
    assert figures["mae"] == pytest.approx(mean_absolute_error(y, guess))
    assert figures["r2"] == pytest.approx(r2_score(y, guess))
    assert figures["largest_error"] == pytest.approx(np.abs(y - guess).max())


def test_several_outputs(tmp_path, capsysbinary):
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    model = TensorTrainRegressor(rank=2).fit(X, np.stack([X[:, 0], 2 * X[:, 1]], axis=1))
    model.save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", X)
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "rows.npy")]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert lines[0] == "prediction of output 0,prediction of output 1"
    assert len(lines) == 41
    y = np.stack([X[:, 0], X[:, 1]], axis=1)
    assert Answers.of(model.model_, X, y).summary()["mae"] == pytest.approx(mean_absolute_error(y, model.predict(X)))


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_squares_that_overflow():
    y = X[:, 0]
    estimator = TensorTrainRegressor(basis="power", rank=2, alpha=1e-2, max_sweeps=1, random_state=0).fit(X, y)
    expected, model = count(estimator, y).summary(), estimator.model_
    estimator.model_ = replace(model, size=1e200 * model.size, shift=1e200 * model.shift, limits=None)
    figures = count(estimator, 1e200 * y).summary()
    for name in ("rmse", "mae", "largest_error"):
        assert figures[name] == pytest.approx(1e200 * expected[name], rel=1e-6)
    assert figures["r2"] == pytest.approx(expected["r2"])
