"""Residuals of left-out rows by one Cholesky factor per alpha, against the eigendecomposition and against refits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain.learning.dual import (
    LeftOut,
    leave_one_out,
    product_kernel,
    round_rank_ones,
    round_together,
    upper_kernel,
)
from polytrain.tensor import clip_ranks


def some_values(rng, n_columns, n_rows):
    return [np.vstack([np.ones(n_rows), rng.normal(size=(rng.integers(1, 4), n_rows))]) for _ in range(n_columns)]


def some_problem(seed, n_rows, n_columns, n_targets, weighted):
    rng = np.random.default_rng(seed)
    kernel = product_kernel(some_values(rng, n_columns, n_rows))
    weights = rng.uniform(0.01, 3, n_rows) if weighted else np.ones(n_rows)
    return kernel, rng.normal(size=(n_rows, n_targets)), weights / weights.sum()


def refitted(kernel, targets, weights, alpha, row):
    """Residual of one row by a kernel problem without it."""
    others = np.arange(len(targets)) != row
    matrix = kernel[np.ix_(others, others)] + np.diag(0.5 * alpha / weights[others])
    return targets[row] - kernel[row, others] @ np.linalg.solve(matrix, targets[others])


@settings(max_examples=60, deadline=None)
@given(
    n_rows=st.one_of(st.integers(1, 80), st.integers(120, 270)),  # triangles are halved from 65 rows on
    n_columns=st.integers(1, 5),
    n_targets=st.integers(1, 3),
    alpha=st.sampled_from([1e-4, 1e-2, 1.0, 30.0]),
    weighted=st.booleans(),
    seed=st.integers(0, 9999),
)
def test_it_is_what_refits_and_the_eigendecomposition_give(n_rows, n_columns, n_targets, alpha, weighted, seed):
    kernel, targets, weights = some_problem(seed, n_rows, n_columns, n_targets, weighted)
    # What is below the diagonal is not read.
    upper = np.where(np.arange(n_rows)[:, None] <= np.arange(n_rows), kernel, np.nan)
    found = LeftOut(upper, targets, weights)(alpha)
    (expected,) = leave_one_out(kernel, targets, weights, [alpha])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    for row in {0, n_rows // 2, n_rows - 1}:
        np.testing.assert_allclose(
            found[row],
            refitted(kernel, targets, weights, alpha, row),
            rtol=1e-5,
            atol=1e-6 * np.abs(expected).max(),
        )


def test_one_room_serves_all_alphas():
    kernel, targets, weights = some_problem(0, 150, 3, 2, True)
    before, work = kernel.copy(), np.full((150, 150), np.nan)
    left_out = LeftOut(kernel, targets, weights, work)
    for alpha in (1.0, 1e-3, 1.0):
        (expected,) = leave_one_out(kernel, targets, weights, [alpha])
        np.testing.assert_allclose(left_out(alpha), expected, atol=1e-9)
    np.testing.assert_array_equal(kernel, before)


def test_a_ridge_that_drowns_in_rounding_is_refused():
    values = np.random.default_rng(0).normal(size=(3, 40))
    kernel, weights = values.T @ values, np.full(40, 1 / 40)
    with pytest.raises(np.linalg.LinAlgError, match="alpha=1e-16 is too small"):
        LeftOut(kernel, np.ones((40, 1)), weights)(1e-16)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        LeftOut(kernel - 10 * np.eye(40), np.ones((40, 1)), weights)(1e-2)


@pytest.mark.parametrize("n_rows", [1, 2, 31, 200, 700])  # blocks have 46 of 700 rows
def test_kernels_by_blocks(n_rows):
    values = some_values(np.random.default_rng(n_rows), 4, n_rows)
    expected = np.ones((n_rows, n_rows))
    for functions in values:
        expected *= functions.T @ functions
    np.testing.assert_allclose(product_kernel(values), expected, rtol=1e-12, atol=1e-12)
    room = np.zeros((n_rows, n_rows))
    assert upper_kernel(values, room) is room
    np.testing.assert_allclose(np.triu(room), np.triu(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_sums_are_rounded_together_as_they_are_alone(tolerance):
    rng = np.random.default_rng(1)
    values = some_values(rng, 5, 40)
    coefficients = rng.normal(size=(3, 40))
    ranks = clip_ranks(tuple(map(len, values)), 6)
    for cores, own in zip(round_together(values, coefficients, ranks, tolerance), coefficients, strict=True):
        for core, expected in zip(cores, round_rank_ones(values, own, ranks, tolerance), strict=True):
            np.testing.assert_array_equal(core, expected)
