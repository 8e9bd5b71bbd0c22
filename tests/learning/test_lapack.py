"""Triangles in place, against NumPy."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from polytrain.learning import lapack


def spd(n_rows, seed=0):
    factor = np.random.default_rng(seed).normal(size=(n_rows, n_rows + 3))
    return np.asfortranarray(factor @ factor.T / n_rows + np.eye(n_rows))


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 200])
def test_triangles_are_those_of_numpy(n_rows):
    matrix = spd(n_rows)
    lower = np.tril(matrix) + np.triu(np.full(matrix.shape, 7.0), 1)  # the other half is not read
    lower = np.asfortranarray(lower)
    assert lapack.cholesky(lower)
    factor = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(np.tril(lower), factor, atol=1e-12)
    lapack.invert_triangle(lower)
    np.testing.assert_allclose(np.tril(lower), np.linalg.inv(factor), atol=1e-12)
    lapack.square_triangle(lower)
    np.testing.assert_allclose(np.tril(lower), np.tril(np.linalg.inv(matrix)), atol=1e-12)
    assert (lower[np.triu_indices(n_rows, 1)] == 7).all()


def test_a_matrix_without_factor_says_so():
    assert not lapack.cholesky(np.asfortranarray([[1.0, 2.0], [2.0, 1.0]]))


def test_threads_do_not_disturb_each_other():
    def inverse(seed):
        lower = spd(150, seed)
        lapack.cholesky(lower)
        lapack.invert_triangle(lower)
        return np.tril(lower)

    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(inverse, range(20)))
    for seed, found in enumerate(together):
        np.testing.assert_array_equal(found, inverse(seed))
