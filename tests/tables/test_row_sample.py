"""Even samples of rows that come in blocks."""

import numpy as np
import pytest

from polytrain.tables.row_sample import RowSample


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
@pytest.mark.parametrize("n", [5, 50, 51, 1000, 1003])
def test_row_sample_is_even(block, n):
    sample = RowSample(50)
    rows = np.arange(n)[:, None]
    for start in range(0, n, block):
        sample(rows[start : start + block])
    found = sample.rows[:, 0]
    assert len(found) <= 50
    assert found[0] == 0
    assert len(set(np.diff(found))) <= 1
    assert n - found[-1] <= max(1, np.diff(found).max(initial=1))
