"""Pipelines are explained through their last step, where the steps before keep columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from default_models import default_case, frame_target, make_frame
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.explain import effects, feature_importances, partial_dependence, sobol_indices
from power_models import power_regressor


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)) * [1, 10, 100], columns=["a", "b", "c"])
    X.loc[::9, "b"] = np.nan
    return X, X["a"] + 0.1 * X["b"].fillna(0) + 0.01 * X["a"] * X["c"]


SETTINGS = {"basis": "spline", "bandwidth": 1.0, "rank": 3, "alpha": 1e-4, "random_state": 0}


def test_scaled_columns_keep_their_names(table):
    X, y = table
    model = make_pipeline(SimpleImputer(), StandardScaler(), TensorTrainRegressor(**SETTINGS)).fit(X, y)
    found = effects(model, X, top_pairs=3)
    assert [effect.name for effect in found.main] == ["a", "b", "c"]
    terms = found.of_rows(X)
    total = terms.mean + terms.main.sum(axis=1) + terms.pairs.sum(axis=1) + terms.rest
    np.testing.assert_allclose(total, model.predict(X))
    last, rows = model[-1], model[:-1].transform(X)
    np.testing.assert_allclose(sobol_indices(model, X).total, sobol_indices(last, rows).total)
    assert sobol_indices(model).feature_names == ("a", "b", "c")
    assert partial_dependence(model, "b", X, grid_size=5).names == ("b",)
    array = make_pipeline(StandardScaler(), TensorTrainRegressor(**SETTINGS)).fit(X.to_numpy(), y)
    assert effects(array).main[1].name == "x2"


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_column_transformers_may_change_the_order(table, output):
    """They put the names of their steps before those of the columns."""
    X, y = table
    parts = [("scaled", StandardScaler(), ["c"]), ("filled", SimpleImputer(), ["b"])]
    steps = ColumnTransformer(parts, remainder="passthrough").set_output(transform=output)
    model = make_pipeline(steps, StandardScaler(), TensorTrainRegressor(**SETTINGS)).fit(X, y)
    found = feature_importances(model, X)
    assert found.feature_names == ("c", "b", "a")
    assert np.argmax(found.importances) == 2
    assert found.to_frame().set_index("column").loc["a", "importance"] == found.importances[2]


def test_categories_behind_a_transformer():
    frame = make_frame()[["size", "colour"]]
    steps = ColumnTransformer([("size", StandardScaler(), ["size"])], remainder="passthrough")
    model = make_pipeline(steps.set_output(transform="pandas"), TensorTrainRegressor(random_state=0))
    model.fit(frame, frame_target(make_frame()))
    found = effects(model, frame)
    assert found["colour"].grid.tolist() == ["blue", "green", "red"]
    codes = make_pipeline(OrdinalEncoder(), TensorTrainRegressor(random_state=0))
    codes.fit(frame[["colour"]], frame_target(make_frame()))
    assert effects(codes).main[0].name == "colour"


def test_steps_that_do_nothing(table):
    X, y = table
    model = make_pipeline("passthrough", TensorTrainRegressor(**SETTINGS)).fit(X, y)
    assert effects(model).main[2].name == "c"


def test_selected_columns(table):
    """Those that are left out have no effect."""
    X, y = table
    steps = ColumnTransformer([("one", StandardScaler(), ["c", "a"])])
    model = make_pipeline(steps, TensorTrainRegressor(**SETTINGS)).fit(X, y)
    found = feature_importances(model, X)
    assert found.feature_names == ("c", "a")
    assert found.importances.argmax() == 1


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PCA(2), r"the step 'pca' \(PCA\) of the pipeline makes new columns, such as 'pca0'"),
        (FunctionTransformer(np.sqrt), "does not name the columns that it makes"),
        (OneHotEncoder(sparse_output=False), "Explain the last step"),
    ],
)
def test_other_steps_are_refused(step, message):
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (30, 3)).astype(float), columns=["a", "b", "c"])
    model = make_pipeline(step, power_regressor(rank=1)).fit(X, X["a"])
    with pytest.raises(ValueError, match=message):
        effects(model)
    feature_importances(model[-1])


def test_importances_select_columns():
    """scikit-learn takes them from the attribute, one per column of the table, whatever became of a date."""
    frame = make_frame()
    y = np.where(frame_target(frame) > 1.5, "yes", "no")
    found = SelectFromModel(TensorTrainClassifier(random_state=0), max_features=2, threshold=-np.inf).fit(frame, y)
    importances = found.estimator_.feature_importances_
    assert importances.shape == (4,)
    assert importances.sum() == pytest.approx(1)
    assert found.get_feature_names_out().tolist() == frame.columns[np.sort(np.argsort(-importances)[:2])].tolist()
    assert found.transform(frame).shape == (len(frame), 2)


def test_importances_of_an_estimator():
    model, _rows, _ = default_case("frame")
    np.testing.assert_array_equal(model.feature_importances_, feature_importances(model).importances)
    assert not hasattr(TensorTrainClassifier(), "feature_importances_")
    unscaled = power_regressor(rank=1, basis="power-unscaled").fit(np.eye(3), np.arange(3.0))
    with pytest.raises(AttributeError, match="does not know the range"):
        _ = unscaled.feature_importances_
