"""Predictions of Dask collections, blocks without rows among them. No cluster is needed."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from default_models import NAMES, default_case
from polytrain import TensorTrainRegressor
from power_models import power_classifier, power_regressor

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# Dask's own code on this Python.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::polytrain.DataWarning"
)

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


@pytest.fixture(autouse=True)
def _in_this_thread():
    # Objects stay what they are; Dask would make text of them.
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def _cut(rows, bounds):
    """Rows as Dask collections of the blocks between these bounds; arrays also with blocks of unknown size."""
    pieces = [rows[start:stop] for start, stop in pairwise(bounds)]
    if isinstance(rows, pd.DataFrame):
        yield dd.from_delayed([dask.delayed(type(rows).copy)(piece) for piece in pieces], meta=rows[:0])
        return
    yield da.concatenate([da.from_array(piece, chunks=(max(1, len(piece)), -1)) for piece in pieces])
    unknown = [
        da.from_delayed(dask.delayed(np.copy)(piece), (np.nan, rows.shape[1]), dtype=rows.dtype) for piece in pieces
    ]
    yield da.concatenate(unknown)
    frames = [dask.delayed(pd.DataFrame)(piece) for piece in pieces]
    yield dd.from_delayed(frames, meta=pd.DataFrame(rows[:0]))


def _check(model, rows, tolerance=1e-9):
    rows = rows[:30]
    for method in METHODS:
        if not hasattr(model, method):
            continue
        expected = getattr(model, method)(rows)
        for lazy in _cut(rows, (0, 0, 10, 10, 30, 30)):
            predicted = getattr(model, method)(lazy)
            assert isinstance(predicted, da.Array)
            assert predicted.dtype == expected.dtype
            if expected.dtype.kind == "f":  # sums over other blocks are rounded differently
                np.testing.assert_allclose(predicted.compute(), expected, rtol=tolerance)
            else:
                np.testing.assert_array_equal(predicted.compute(), expected)
        for lazy in _cut(rows, (0, 0, 0)):
            nothing = getattr(model, method)(lazy).compute()
            assert nothing.shape == (0, *expected.shape[1:])
            assert nothing.dtype == expected.dtype


@pytest.mark.parametrize("name", NAMES)
def test_blocks_without_rows_of_default_models(name):
    case = default_case(name)
    _check(case.model, case.rows)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_blocks_without_rows_of_several_outputs_and_all_kinds_of_labels(dtype):
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(dtype)
    tolerance = 1e-9 if dtype == np.float64 else 1e-3
    quick = {"rank": 2, "max_sweeps": 1, "random_state": 0}
    for y in (X[:, 0], X[:, :1], X[:, :2]):
        _check(power_regressor(**quick).fit(X, y), X, tolerance)
    words = np.array(["a", "bcd", "e"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    for labels in (words, words.astype(object), words == "a"):
        for settings in ({"decision": "one-vs-one"}, {"decision": "binary-code"}, {"loss": "squared"}):
            _check(power_classifier(**quick, **settings).fit(X, labels), X, tolerance)


def test_columns_of_objects_need_no_values_that_are_made_up():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "truth": pd.Series([True, False, None] * 20, dtype=object),
            "day": pd.Series([day.date() for day in pd.date_range("2024-01-01", periods=60)], dtype=object),
            "nothing": pd.Series([None] * 60, dtype=object),
            "count": pd.array([1, 2, None] * 20, dtype="Int64"),
        }
    )
    _check(TensorTrainRegressor(random_state=0).fit(frame, frame["size"] + rng.normal(size=60)), frame)


def test_other_columns_are_refused_before_anything_is_computed():
    case = default_case("frame")
    renamed = case.rows.rename(columns={"size": "length"})
    with pytest.raises(ValueError, match="feature names should match"):
        case.model.predict(dd.from_pandas(renamed, npartitions=2))
    numbers = default_case("regressor")
    with pytest.raises(ValueError, match="X has 3 features, but TensorTrainRegressor is expecting 4"):
        numbers.model.predict(da.from_array(numbers.rows[:, :3], chunks=(50, 3)))
