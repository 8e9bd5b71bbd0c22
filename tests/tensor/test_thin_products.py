"""Thin products in pieces against plain products, with pieces so small that random shapes meet every case."""

import numpy as np
import pytest

from polytrain.tensor import thin_products
from polytrain.tensor.thin_products import multiply_rows, sum_over_rows


@pytest.mark.parametrize("pieces", [(1, 1), (64, 3), (10**6, 500)], ids=["one row", "small", "as shipped"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
def test_pieces(monkeypatch, pieces, dtype, seed):
    monkeypatch.setattr(thin_products, "_PIECE_WORK", pieces[0])
    monkeypatch.setattr(thin_products, "_PIECE_ROWS", pieces[1])
    rng = np.random.default_rng(seed)
    a, b, n_rows = rng.integers(1, 9), rng.integers(1, 9), rng.integers(1, 200)
    matrix, wide, other = (rng.standard_normal(shape).astype(dtype) for shape in ((b, a), (a, 2 * n_rows), (b, n_rows)))
    rows, out = wide[:, :n_rows], np.zeros((b, 2 * n_rows), dtype)  # not contiguous
    multiply_rows(matrix, rows, out[:, :n_rows])
    np.testing.assert_allclose(out[:, :n_rows], matrix @ rows, rtol=1e-5, atol=1e-5)
    assert not out[:, n_rows:].any()
    sums = sum_over_rows(rows, other)
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, rows.astype(float) @ other.astype(float).T, rtol=1e-4, atol=1e-4)
