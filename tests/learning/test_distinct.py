"""Numbers of different rows, and samples of them."""

import numpy as np
import pytest

from polytrain.learning.distinct import DistinctRows, row_keys, row_positions
from polytrain.learning.problem import ProblemRows


def test_samples_are_nested_near_their_size_and_differ_between_seeds():
    columns = np.random.default_rng(0).uniform(-1, 1, (5, 40_000))
    positions = row_positions(row_keys(columns), seed=1)
    assert ((positions >= 0) & (positions < 1)).all()
    for part in (0.125, 0.5):
        assert np.mean(positions < part) == pytest.approx(part, abs=0.01)
    other = row_positions(row_keys(columns), seed=2)
    assert np.mean((positions < 0.5) & (other < 0.5)) == pytest.approx(0.25, abs=0.01)


def test_choice_depends_on_what_a_row_holds_and_not_on_its_place():
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1, 1, (4, 500))
    order = rng.permutation(500)
    positions = row_positions(row_keys(columns), 3)
    np.testing.assert_array_equal(row_positions(row_keys(columns[:, order]), 3), positions[order])
    repeated = np.repeat(columns, 2, axis=1)
    np.testing.assert_array_equal(row_positions(row_keys(repeated), 3), np.repeat(positions, 2))
    target = rng.choice([-1.0, 1.0], 1000)
    whole = DistinctRows.of(row_keys(repeated), target)
    first, second = (
        DistinctRows.of(row_keys(repeated[:, rows]), target[rows]) for rows in (slice(300), slice(300, 1000))
    )
    assert whole.n_rows == 500
    assert first.join(second).n_rows == 500
    assert first.join(second).chances(0.1) == whole.chances(0.1)


def test_many_different_rows_are_as_good_as_infinitely_many():
    first, second = (DistinctRows.of(np.arange(n, n + 100_000.0), np.ones(100_000)) for n in (0, 50_000))
    assert first.n_rows == 100_000
    assert first.join(second).n_rows > 10**9


def test_a_rare_label_keeps_enough_rows_and_sums_stay_unbiased():
    rng = np.random.default_rng(0)
    target = np.where(np.arange(50_000) < 2000, 1.0, -1.0)
    rows = ProblemRows.make(rng.standard_normal((1, 50_000)), target, np.ones(50_000))
    assert rows.distinct().chances(0.125) == (0.125, 1024 / 2000)
    chosen = rows.sample(0.125, 0, rows.distinct())
    assert 50_000 * chosen.weights[chosen.target > 0].sum() == pytest.approx(2000, rel=0.1)
    assert 50_000 * chosen.weights[chosen.target < 0].sum() == pytest.approx(48_000, rel=0.1)
    assert DistinctRows.of(rows.keys, rng.standard_normal(50_000)).chances(0.125) == (0.125, 0.125)
