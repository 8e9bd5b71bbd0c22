"""Thin products in pieces against plain products, with pieces so small that random shapes meet every case."""

import numpy as np
import pytest

from polytrain.tensor import thin_products
from polytrain.tensor.thin_products import multiply_rows, sum_over_rows


@pytest.fixture(params=[(1, 1), (64, 3), (10**6, 500)], ids=["pieces of one row", "small pieces", "as shipped"])
def pieces(request, monkeypatch):
    work, rows = request.param
    monkeypatch.setattr(thin_products, "_PIECE_WORK", work)
    monkeypatch.setattr(thin_products, "_PIECE_ROWS", rows)


def random_operands(seed, dtype):
    rng = np.random.default_rng(seed)
    a, b, n_rows = rng.integers(1, 9), rng.integers(1, 9), rng.integers(1, 200)
    matrix, rows, other = (rng.standard_normal(shape).astype(dtype) for shape in ((b, a), (a, n_rows), (b, n_rows)))
    return matrix, rows, other


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
class TestPieces:
    def test_multiply_rows(self, seed, dtype):
        matrix, rows, other = random_operands(seed, dtype)
        out = np.full_like(other, np.nan)
        assert multiply_rows(matrix, rows, out) is out
        np.testing.assert_allclose(out, matrix @ rows, rtol=1e-5, atol=1e-5)

    def test_multiply_rows_of_a_slice(self, seed, dtype):
        matrix, rows, other = random_operands(seed, dtype)
        wide, out = np.repeat(rows, 2, axis=1), np.zeros((len(other), 2 * other.shape[1]), dtype)
        n_rows = rows.shape[1]
        multiply_rows(matrix, wide[:, :n_rows], out[:, :n_rows])
        np.testing.assert_allclose(out[:, :n_rows], matrix @ wide[:, :n_rows], rtol=1e-5, atol=1e-5)
        assert not out[:, n_rows:].any()

    def test_sum_over_rows(self, seed, dtype):
        _, rows, other = random_operands(seed, dtype)
        sums = sum_over_rows(rows, other)
        assert sums.dtype == np.float64
        np.testing.assert_allclose(sums, rows.astype(float) @ other.astype(float).T, rtol=1e-4, atol=1e-4)
