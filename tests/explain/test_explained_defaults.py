"""Explanations of models that leave all to the choice, with calibrated scores, gaps, categories and dates."""

import numpy as np
import pandas as pd
import pytest

from default_models import NAMES, default_case, make_frame
from polytrain import TensorTrainRegressor
from polytrain.explain import feature_importances, partial_dependence, sobol_indices, to_sympy, top_terms
from power_models import power_regressor


@pytest.mark.parametrize("name", NAMES)
def test_one_row_is_its_own_mean(name):
    """Scores are those of decision_function: log-odds, or the prediction."""
    model, rows, features = default_case(name)
    indices = sobol_indices(model, rows[:1])
    np.testing.assert_allclose(indices.mean, model.model_.scores(features[:1])[:, 0], rtol=1e-9)
    np.testing.assert_allclose(indices.variance, 0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_partial_dependence_equals_brute_force(name):
    model, rows, features = default_case(name)
    for k in range(features.shape[1]):
        found = partial_dependence(model, k, rows, grid_size=4)
        codes = found.grid[0]
        if codes.dtype == object:
            levels = model.model_.columns.levels[k]
            codes = [np.nan if level is None else levels.index(level) for level in codes]
        for code, values in zip(codes, found.values.T, strict=True):
            changed = features.copy()
            changed[:, k] = code
            np.testing.assert_allclose(values, model.model_.scores(changed).mean(axis=1), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_importances_are_those_of_columns(name):
    """A date is one column, whatever its parts are."""
    model, rows, _features = default_case(name)
    names = tuple(rows.columns) if hasattr(rows, "columns") else ("x1", "x2", "x3", "x4")
    for X in (None, rows):
        found = feature_importances(model, X)
        assert found.feature_names == names
        assert found.importances.sum() == pytest.approx(1)
        assert found.to_frame()["column"].tolist() == [name for name, _ in found.ranked()]
        assert "columns taken as independent" in str(found)
    indices = sobol_indices(model, rows)
    assert indices.total.shape == (model.model_.n_trains, len(names))
    assert indices.to_frame().shape == (model.model_.n_trains * len(names), 5)
    assert str(indices).count("columns taken as independent") == model.model_.n_trains


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_levels_are_drawn_as_they_are_named():
    model, rows, _ = default_case("frame-regressor")
    found = partial_dependence(model, ["colour", "day (month)"], rows, grid_size=3)
    assert found.grid[0].tolist() == ["blue", "green", "red", None]  # some are missing
    assert found.values.shape == (1, 4, 3)
    some = partial_dependence(model, "colour", rows, grid=["red", "blue", "pink", None])
    assert some.grid[0].tolist() == ["red", "blue", "pink", None]
    all_levels = partial_dependence(model, "colour", rows).values
    np.testing.assert_allclose(some.values[0, :2], all_levels[0, [2, 0]])
    # A level that was never seen, and no level, are as in predictions.
    for value, level in (("pink", 2), (None, 3)):
        changed = rows.assign(colour=pd.Series([value] * len(rows), dtype=object))
        assert some.values[0, level] == pytest.approx(model.predict(changed).mean())


def test_categories_with_other_functions_than_their_own():
    """Each level once, whatever the grid of the functions is."""
    frame = make_frame(80)
    bases = ["power", "spline", "category", "spline", "spline", "spline"]
    model = TensorTrainRegressor(basis=bases, rank=2, alpha=1e-2, random_state=0).fit(frame, frame["size"])
    found = partial_dependence(model, "colour", grid_size=50)
    assert found.grid[0].tolist() == ["blue", "green", "red", None]


def test_curves_are_frames_and_text():
    model, rows, _ = default_case("frame-regressor")
    found = partial_dependence(model, ["colour", "size"], rows, grid_size=3)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["colour", "size", "prediction"]
    np.testing.assert_array_equal(frame["prediction"], found.values.ravel())
    assert frame["colour"].tolist()[:9:3] == ["blue", "green", "red"]
    assert frame["colour"].isna().sum() == 3
    assert str(found).startswith("mean score over colour and size, 12 values\n  prediction: from ")


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("given", [True, False])
def test_parts_of_a_date_vary_together(given):
    model, rows, _features = default_case("frame-regressor")
    found = partial_dependence(model, "day", rows if given else None, grid_size=7)
    assert found.names == ("day",)
    assert found.grid[0].dtype.kind == "M"
    some = partial_dependence(model, ["day"], rows if given else None, grid=found.grid[0][2:4])
    np.testing.assert_allclose(some.values, found.values[:, 2:4])
    if given:
        for date, value in zip(found.grid[0], found.values[0], strict=True):
            assert model.predict(rows.assign(day=pd.Timestamp(date))).mean() == pytest.approx(value)


def test_rows_are_checked_as_in_predictions():
    model, rows, _ = default_case("frame")
    with pytest.raises(ValueError, match="feature names"):
        sobol_indices(model, rows.rename(columns={"size": "length"}))
    powers = power_regressor(rank=2).fit(np.eye(3), np.arange(3.0))
    with pytest.raises(ValueError, match="NaN"):
        sobol_indices(powers, np.full((1, 3), np.nan))


@pytest.mark.parametrize("explain", [top_terms, to_sympy])
def test_terms_need_powers(explain):
    with pytest.raises(ValueError, match=r"not a polynomial.*fit with basis='power'"):
        explain(default_case("three-classes").model)


def test_a_date_of_one_part_is_a_date():
    """All days are Mondays of one month, so that only the time is left of the parts."""
    days = pd.to_datetime(["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-22"] * 15)
    frame = pd.DataFrame({"day": days, "size": np.arange(60.0) % 7})
    model = TensorTrainRegressor(rank=2, alpha=1e-3, random_state=0).fit(frame, days.day + frame["size"])
    assert sobol_indices(model).feature_names == ("day", "size")
    found = partial_dependence(model, "day", frame, grid=days[:4])
    expected = [model.predict(frame.assign(day=day)).mean() for day in days[:4]]
    np.testing.assert_allclose(found.values[0], expected)
    assert partial_dependence(model, "day", frame).grid[0].dtype.kind == "M"
