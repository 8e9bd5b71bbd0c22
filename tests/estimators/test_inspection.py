"""scikit-learn's inspection of fitted models, beside what polytrain says itself."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.inspection import DecisionBoundaryDisplay, PartialDependenceDisplay, permutation_importance
from sklearn.inspection import partial_dependence as scikit_partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from default_models import default_case, frame_target, make_frame
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.explain import partial_dependence

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")

CATEGORIES = ["colour", "town", "day"]


@pytest.fixture(scope="module")
def table():
    """A frame with categories, text and dates, without gaps: scikit-learn cannot order them beside text."""
    frame = make_frame().dropna().reset_index(drop=True)
    frame["noise"] = np.random.default_rng(0).normal(size=len(frame))
    return frame, frame_target(frame)


@pytest.fixture(scope="module")
def model(table):
    return TensorTrainRegressor(clip=False, random_state=0).fit(*table)


@pytest.mark.parametrize("name", ["two-classes", "three-classes", "gaps", "frame", "frame-regressor"])
def test_permutation_importance(name):
    model, rows, _ = default_case(name)
    y = model.predict(rows)
    found = permutation_importance(model, rows, y, n_repeats=2, random_state=0)
    assert found.importances.shape == (rows.shape[1], 2)
    assert found.importances_mean.max() > 0.1


def test_permuted_noise_matters_least(table, model):
    frame, y = table
    found = permutation_importance(model, frame, y, n_repeats=3, random_state=0)
    means = dict(zip(frame, found.importances_mean, strict=True))
    assert max(means, key=means.get) == "size"
    assert means["noise"] < 0.1 * means["size"]


@pytest.mark.parametrize("column", ["size", "colour", "town", "noise"])
def test_partial_dependence_of_frames_is_our_own(table, model, column):
    frame, _ = table
    kinds = {"categorical_features": CATEGORIES, "method": "brute"}
    found = scikit_partial_dependence(model, frame, [column], grid_resolution=6, **kinds)
    (grid,) = found["grid_values"]
    own = partial_dependence(model, column, frame, grid=grid)
    np.testing.assert_allclose(found["average"], own.values, rtol=1e-8, atol=1e-9)


def test_partial_dependence_of_two_columns_and_of_pipelines(table, model):
    frame, y = table
    found = scikit_partial_dependence(model, frame, ["size", "noise"], grid_resolution=5, method="brute")
    own = partial_dependence(model, ["size", "noise"], frame, grid=found["grid_values"])
    np.testing.assert_allclose(found["average"], own.values, rtol=1e-8, atol=1e-9)
    pipeline = make_pipeline(FunctionTransformer(), TensorTrainRegressor(clip=False, random_state=0)).fit(frame, y)
    same = scikit_partial_dependence(pipeline, frame, ["size", "noise"], grid_resolution=5, method="brute")
    np.testing.assert_array_equal(same["average"], found["average"])


def test_partial_dependence_of_classes():
    model, rows, _ = default_case("three-classes")
    found = scikit_partial_dependence(model, rows, [0], grid_resolution=7, response_method="predict_proba")
    assert found["average"].shape == (3, 7)
    np.testing.assert_allclose(found["average"].sum(axis=0), 1.0)


def test_scikit_learns_partial_dependence_display(table, model):
    frame, _ = table
    pairs = ["size", "colour", "town", ("size", "noise"), ("colour", "town")]
    options = {"categorical_features": CATEGORIES, "grid_resolution": 5, "kind": "average"}
    display = PartialDependenceDisplay.from_estimator(model, frame, pairs, ax=Figure().subplots(), **options)
    assert len(display.axes_.ravel()) >= len(pairs)
    curve = display.pd_results[0]
    np.testing.assert_allclose(display.lines_.ravel()[0].get_ydata(), curve["average"][0])


@pytest.mark.parametrize("response", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("as_frame", [False, True])
def test_decision_boundaries(response, as_frame):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    X = pd.DataFrame(X, columns=["a", "b"]) if as_frame else X
    first, second = np.asarray(X).T
    options = {"response_method": response, "grid_resolution": 12}
    for y in (np.where(first > second, "yes", "no"), (first > 0).astype(int) + (second > 0.3)):
        model = TensorTrainClassifier(random_state=0).fit(X, y)
        display = DecisionBoundaryDisplay.from_estimator(model, X, ax=Figure().subplots(), **options)
        assert display.response.shape[:2] == (12, 12)
        rows = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
        rows = pd.DataFrame(rows, columns=["a", "b"]) if as_frame else rows
        answer = getattr(model, response)(rows)
        if response == "predict":
            answer = np.searchsorted(model.classes_, answer)
        elif response == "predict_proba" and len(model.classes_) == 2:
            answer = answer[:, 1]
        np.testing.assert_allclose(display.response.reshape(answer.shape), answer)


def test_boundaries_of_numbers():
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = TensorTrainRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1])
    display = DecisionBoundaryDisplay.from_estimator(model, X, grid_resolution=9, ax=Figure().subplots())
    rows = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_allclose(display.response.ravel(), model.predict(rows))
