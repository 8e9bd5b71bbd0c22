"""Default models inside scikit-learn's ensembles, on arrays and on frames with categories and gaps."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polytrain import TensorTrainClassifier, TensorTrainRegressor

N_ROWS = 150


@pytest.fixture(scope="module")
def array():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N_ROWS, 3))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.05 * rng.normal(size=N_ROWS)


@pytest.fixture(scope="module")
def full_frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "colour": pd.Categorical(rng.choice(["blue", "green", "red"], N_ROWS)),
            "shape": rng.choice(["ball", "cube"], N_ROWS),
            "size": rng.uniform(-1, 1, N_ROWS),
        }
    )
    effect = X["colour"].astype(object).map({"blue": 0.0, "green": 2.0, "red": -2.0}).to_numpy(dtype=float)
    return X, effect + X["size"].to_numpy() * np.where(X["shape"] == "ball", 1.0, -1.0) + 0.1 * rng.normal(size=N_ROWS)


@pytest.fixture(scope="module")
def frame(full_frame):
    X, y = full_frame
    X = X.copy()
    X.loc[::11, "size"] = np.nan
    return X, y


def as_classes(y):
    return np.where(y > 0.7, "large", np.where(y < -0.7, "small", "medium"))


REGRESSORS = {
    "bagging": BaggingRegressor(TensorTrainRegressor(), random_state=0),
    "voting": VotingRegressor([("train", TensorTrainRegressor()), ("other", TensorTrainRegressor(basis="spline"))]),
    "stacking": StackingRegressor([("train", TensorTrainRegressor(random_state=0))]),
}
CLASSIFIERS = {
    "bagging": BaggingClassifier(TensorTrainClassifier(), random_state=0),
    "voting": VotingClassifier([("train", TensorTrainClassifier())], voting="soft"),
    "stacking": StackingClassifier([("train", TensorTrainClassifier(random_state=0))]),
}


@pytest.mark.parametrize("rows", ["array", "frame"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name, rows, request):
    X, y = request.getfixturevalue(rows)
    model = clone(REGRESSORS[name]).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("rows", ["array", "frame"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, rows, request):
    X, y = request.getfixturevalue(rows)
    labels = as_classes(y)
    model = clone(CLASSIFIERS[name]).fit(X, labels)
    assert model.score(X, labels) > 0.85
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (N_ROWS, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_bagging_of_parts_of_the_columns_of_a_frame(frame):
    X, y = frame
    settings = {"n_estimators": 4, "max_features": 2, "max_samples": 0.5, "random_state": 0}
    model = BaggingRegressor(TensorTrainRegressor(clip=False), **settings).fit(X, y)
    objects = X.to_numpy(dtype=object)
    parts = zip(model.estimators_, model.estimators_features_, strict=True)
    np.testing.assert_allclose(
        model.predict(X), np.mean([one.predict(objects[:, columns]) for one, columns in parts], axis=0)
    )


def test_arrays_of_objects_are_read_as_the_frame_that_they_come_from(frame):
    X, y = frame
    expected = TensorTrainRegressor(random_state=0).fit(X, y).predict(X)
    objects = X.to_numpy(dtype=object)
    np.testing.assert_allclose(TensorTrainRegressor(random_state=0).fit(objects, y).predict(objects), expected)


def test_arrays_of_objects_that_are_numbers_stay_numbers(array):
    X, y = array
    expected = TensorTrainRegressor(random_state=0).fit(X, y)
    for objects in (X.astype(object), X.astype(str).astype(object)):
        model = TensorTrainRegressor(random_state=0).fit(objects, y)
        assert model.model_.columns is None
        np.testing.assert_array_equal(model.predict(objects), expected.predict(X))


@pytest.mark.parametrize("rows", ["array", "full_frame"])  # AdaBoost itself refuses NaN
def test_boosted_regressors(rows, request):
    X, y = request.getfixturevalue(rows)
    assert AdaBoostRegressor(TensorTrainRegressor(), random_state=0).fit(X, y).score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("rows", ["array", "full_frame"])
def test_boosted_classifiers(rows, request):
    X, y = request.getfixturevalue(rows)
    labels = as_classes(y)
    assert AdaBoostClassifier(TensorTrainClassifier(), random_state=0).fit(X, labels).score(X, labels) > 0.85


@pytest.mark.slow
def test_an_ensemble_beside_other_models_is_no_worse_on_other_rows(array):
    X, y = array
    linear = make_pipeline(StandardScaler(), RidgeCV())
    ensemble = StackingRegressor([("train", TensorTrainRegressor(random_state=0)), ("linear", linear)])
    alone, together = (cross_val_score(model, X, y, cv=3).mean() for model in (linear, ensemble))
    assert together > alone + 0.1
