"""Bounds of errors on left-out rows."""

from math import ceil

import numpy as np
import pytest

from polytrain.uncertainty import LeftOutErrors


@pytest.mark.parametrize("n_rows", [1, 9, 10, 99, 1000, 5000])
@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.8, 0.9])
def test_the_bound_is_an_order_statistic(n_rows, coverage):
    errors = np.random.default_rng(n_rows).normal(size=n_rows)
    place = ceil((n_rows + 1) * coverage - 1e-9)
    found = LeftOutErrors.of(errors, np.ones(n_rows))
    if place > n_rows:
        with pytest.raises(ValueError, match=f"needs at least {ceil(coverage / (1 - coverage) - 1e-9)} different rows"):
            found.bound(coverage)
        return
    exact = np.sort(np.abs(errors))[place - 1]
    if n_rows <= 1024:
        assert found.bound(coverage) == exact
    else:  # no narrower, and hardly wider
        assert len(found.errors) <= 1024
        assert exact <= found.bound(coverage) <= np.sort(np.abs(errors))[place - 1 + n_rows // 1000 + 1]


def test_the_largest_coverage_is_just_enough():
    found = LeftOutErrors.of(np.arange(9.0), np.ones(9))
    assert found.bound(0.9) == 8.0
    with pytest.raises(ValueError, match=r"and there are 9: an interval would be infinite. Ask for coverage <= 0.9,"):
        found.bound(0.901)


def test_weights_are_a_part_of_all_rows():
    errors, counts = np.array([3.0, 1.0, 2.0, 4.0]), np.array([2.0, 5.0, 2.0, 1.0])
    found = LeftOutErrors.of(errors, counts)
    np.testing.assert_allclose(found.heights, [0.5, 0.7, 0.9, 1.0])
    assert found.bound(0.4) == 1.0  # 0.4 * 5 / 4 is 0.5
    assert found.bound(0.41) == 2.0
    scaled = LeftOutErrors.of(errors, 1e-3 * counts)
    assert [scaled.bound(level) for level in (0.1, 0.5, 0.7, 0.8)] == [found.bound(v) for v in (0.1, 0.5, 0.7, 0.8)]
