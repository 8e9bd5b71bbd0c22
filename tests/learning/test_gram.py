"""Gram matrices from moments, against explicit C matrices."""

import numpy as np
import pytest
from reference import c_matrix, left_vector, make_problem, right_vector

from polytrain.basis import get_basis
from polytrain.learning import contractions

SHAPES = [
    # dims, rank, site, rows
    ((3,), 1, 0, 7),
    ((2, 2), 1, 1, 1),
    ((2, 4, 3), (2, 3), 1, 25),
    ((3, 3, 3), 4, 0, 25),
    ((3, 3, 3), 4, 2, 25),
    ((4, 2, 5, 3), (1, 3, 2), 2, 30),
    ((2, 3, 2, 3, 2), 8, 2, 30),
]
BASES = ["power", "chebyshev", "legendre"]


def _block(dims, rank, site, n_rows, basis, dtype=np.float64):
    problem = make_problem(seed=len(dims) + n_rows, dims=dims, rank=rank, n_rows=n_rows, basis=basis)
    left = np.array([left_vector(problem.cores, site, row, basis) for row in problem.columns.T]).T
    right = np.array([right_vector(problem.cores, site, row, basis) for row in problem.columns.T]).T
    values = get_basis(basis).values(problem.columns[site], dims[site])
    return problem, tuple(np.ascontiguousarray(part, dtype=dtype) for part in (left, values, right))


def _close(actual, desired, dtype):
    tol = 1e-11 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(actual, desired, rtol=tol, atol=tol * max(1.0, np.abs(desired).max()))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(("dims", "rank", "site", "n_rows"), SHAPES)
def test_gram_matrices_match_the_reference(dims, rank, site, n_rows, basis, dtype):
    problem, (left, values, right) = _block(dims, rank, site, n_rows, basis, dtype)
    core = problem.cores[site]
    explicit = c_matrix(problem.cores, site, problem.columns, basis)
    before = left.copy(), values.copy(), right.copy()

    weights = np.random.default_rng(1).uniform(0, 1, n_rows).astype(dtype)
    powers = get_basis(basis).values(problem.columns[site].astype(dtype), 2 * dims[site] - 1)
    sums = contractions.moments(left, powers, right, weights)
    a, n, b = core.shape
    assert sums.shape == (2 * n - 1, a * (a + 1) // 2, b * (b + 1) // 2)
    gram = contractions.gram_from_moments(sums, core.shape, get_basis(basis).product_table(dims[site]))
    _close(gram, explicit.T @ (weights.astype(np.float64)[:, None] * explicit), dtype)

    for kept, part in zip(before, (left, values, right), strict=True):
        np.testing.assert_array_equal(part, kept)  # environments are used again: no kernel may write into them


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_keep_the_compute_dtype(dtype):
    problem, (left, _, right) = _block((2, 3, 2), 2, 1, 10, "power", dtype)
    powers = get_basis("power").values(problem.columns[1].astype(dtype), 5)
    assert contractions.moments(left, powers, right, np.ones(10, dtype=dtype)).dtype == dtype


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pair_index_numbers_each_pair_once(size):
    table = contractions.pair_index(size)
    np.testing.assert_array_equal(table, table.T)
    assert sorted(table[np.triu_indices(size)]) == list(range(size * (size + 1) // 2))
