"""Bounds of errors on left-out rows, and where they are large."""

from math import ceil

import numpy as np
import pytest

from polytrain.uncertainty import LeftOutErrors, fit_scale


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
    with pytest.raises(ValueError, match=r"and there are 9: an interval would be infinite. Use coverage <= 0.9,"):
        found.bound(0.901)


def test_weights_are_a_part_of_all_rows():
    errors, counts = np.array([3.0, 1.0, 2.0, 4.0]), np.array([2.0, 5.0, 2.0, 1.0])
    found = LeftOutErrors.of(errors, counts)
    np.testing.assert_allclose(found.heights, [0.5, 0.7, 0.9, 1.0])
    assert found.bound(0.4) == 1.0  # 0.4 * 5 / 4 is 0.5
    assert found.bound(0.41) == 2.0
    scaled = LeftOutErrors.of(errors, 1e-3 * counts)
    assert [scaled.bound(level) for level in (0.1, 0.5, 0.7, 0.8)] == [found.bound(v) for v in (0.1, 0.5, 0.7, 0.8)]


def _errors_with_scale(n_rows, n_functions=6):
    """Errors whose scale depends on a score and on the first of some functions."""
    rng = np.random.default_rng(n_rows)
    scores, functions = rng.normal(size=n_rows), rng.normal(size=(n_rows, n_functions))
    logarithms = 0.5 * np.minimum(scores, 0.5) + 0.4 * functions[:, 0]
    return np.exp(logarithms) * rng.normal(size=n_rows), scores, functions, logarithms


@pytest.mark.parametrize("n_rows", [500, 3000])
def test_the_scale_is_found(n_rows):
    errors, scores, functions, truth = _errors_with_scale(n_rows)
    scale, left_out = fit_scale(errors, np.ones(n_rows), scores, functions, (3, 5))
    values = [np.vstack([np.ones(n_rows), part]) for part in np.split(functions.T, [2])]
    found = scale.logarithms(scores, values)
    assert np.corrcoef(found, truth)[0, 1] > 0.93
    assert np.corrcoef(left_out, truth)[0, 1] > 0.9
    assert 0 < np.abs(found - left_out).max() < 0.5
    assert np.abs(found).max() <= scale.limit == np.abs(left_out).max()
    # The unit of errors, and that of weights, change nothing.
    for unit in (1e-100, 1e100):
        np.testing.assert_allclose(
            fit_scale(unit * errors, np.full(n_rows, 3.0), scores, functions, (3, 5))[1], left_out, atol=1e-9
        )


def test_each_row_is_left_out_of_its_scale(monkeypatch):
    """The short cut is near what fits without each row say, for one ridge."""
    monkeypatch.setattr("polytrain.uncertainty._RIDGES", (3.0,))
    errors, scores, functions, _ = _errors_with_scale(300)
    _, left_out = fit_scale(errors, np.ones(300), scores, functions, (7,))
    slow, whole = [], fit_scale(errors, np.ones(300), scores, functions, (7,))[0]
    for row in range(0, 300, 10):
        kept = np.arange(300) != row
        scale, _ = fit_scale(errors[kept], np.ones(299), scores[kept], functions[kept], (7,))
        values = [np.append(1.0, functions[row])[:, None]]
        slow.append(scale.logarithms(scores[[row]], values)[0])
    own = [whole.logarithms(scores[[j]], [np.append(1.0, functions[j])[:, None]])[0] for j in range(0, 300, 10)]
    errors_of_shortcut, influence = np.abs(slow - left_out[::10]), np.abs(np.subtract(slow, own))
    assert errors_of_shortcut.mean() < 0.4 * influence.mean()


@pytest.mark.parametrize("n_functions", [0, 3, 700])
def test_no_scale_without_reason(n_functions):
    rng = np.random.default_rng(0)
    functions, ones = rng.normal(size=(600, n_functions)), np.ones(600)
    scores = np.zeros(600) if n_functions == 0 else rng.normal(size=600)
    for errors in (rng.normal(size=600), np.zeros(600)):
        scale, logarithms = fit_scale(errors, ones, scores, functions, (n_functions + 1,))
        assert scale is None
        assert not logarithms.any()


def test_rows_beyond_those_of_the_fit_have_the_scale_of_new_rows(monkeypatch):
    errors, scores, functions, _ = _errors_with_scale(600)
    monkeypatch.setattr("polytrain.uncertainty._LEAST_ROWS", 400)
    monkeypatch.setattr("polytrain.uncertainty._MOST_NUMBERS", 1)
    scale, logarithms = fit_scale(errors, np.ones(600), scores, functions, (7,))
    values = [np.vstack([np.ones(200), functions[400:].T])]
    np.testing.assert_allclose(logarithms[400:], scale.logarithms(scores[400:], values))
