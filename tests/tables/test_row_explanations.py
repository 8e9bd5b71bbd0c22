"""Rows of tables that come in several blocks."""

import numpy as np
import pytest

from polytrain.evaluation import RowSample
from polytrain.explain import explain_local
from polytrain.tables import TableError, load_table_model
from polytrain.tables.table_file import BLOCK_ROWS
from power_models import power_regressor


@pytest.fixture
def saved(tmp_path):
    """A model, its file, and a table of two blocks."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(BLOCK_ROWS + 50, 3))
    model = power_regressor(rank=2, max_sweeps=1, random_state=0).fit(X[:200], X[:200, 0] * X[:200, 1])
    model.save(tmp_path / "m")
    np.save(tmp_path / "rows.npy", X)
    return model, load_table_model(tmp_path / "m"), tmp_path / "rows.npy", X


@pytest.mark.parametrize("background", ["training", "data"])
def test_rows_of_several_blocks(saved, background):
    model, table_model, path, X = saved
    numbers = [BLOCK_ROWS + 7, 3, BLOCK_ROWS, 3]
    with table_model.open(path) as table:
        found, places = table_model.explain_rows(table, numbers, background=background)
    expected = explain_local(model, X[numbers], X_background=X if background == "data" else None)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.base, expected.base, rtol=0, atol=1e-6)
    assert found.row_names == tuple(numbers)
    assert places == tuple(f"row {number}" for number in numbers)
    assert found.column_names == ("column 0", "column 1", "column 2")


def test_rows_beyond_the_end(saved):
    _, table_model, path, X = saved
    message = f"has rows 0 to {len(X) - 1} and no row 9999"
    with table_model.open(path) as table, pytest.raises(TableError, match=message):
        table_model.explain_rows(table, [1, 9999])


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_ranges_that_are_not_known(saved, tmp_path):
    _, _, path, X = saved
    power_regressor(basis="power-unscaled", rank=2, max_sweeps=1, random_state=0).fit(X[:200], X[:200, 0]).save(
        tmp_path / "raw"
    )
    raw = load_table_model(tmp_path / "raw")
    with raw.open(path) as table, pytest.raises(TableError, match=r"distribution of the columns .*background='data'"):
        raw.explain_rows(table, [5])
    with raw.open(path) as table:
        found, _ = raw.explain_rows(table, [5], background="data")
    np.testing.assert_allclose(found.values.sum(axis=1), found.scores - found.base, atol=1e-10)


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
@pytest.mark.parametrize("n", [5, 50, 51, 1000, 1003])
def test_row_sample_is_even(block, n):
    sample = RowSample(50)
    rows = np.arange(n)[:, None]
    for start in range(0, n, block):
        sample.add(rows[start : start + block])
    found = sample.rows[:, 0]
    assert len(found) <= 50
    assert found[0] == 0
    assert len(set(np.diff(found))) <= 1
    assert n - found[-1] <= max(1, np.diff(found).max(initial=1))
