"""The arithmetic of one block of rows around one core.

Conventions
-----------
Rows are the LAST axis, so every elementwise product runs over contiguous memory: ``left`` is (a, N), ``values``
(i, N), ``right`` (b, N), a core (a, i, b). ``values[0]`` is always the constant 1 and is never multiplied with.
Environments and values have the compute dtype (float32 or float64); what is summed over rows is returned in that dtype
for one block and accumulated in float64 by the caller.

The row vector c of the paper, c[(a, i, b)] = left[a] values[i] right[b], is never formed: scores are an unfolded core
times a spread, summed against the far environment, and sums over rows are a spread times weighted far environments.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "fold",
    "gram_from_moments",
    "moment_items",
    "moment_product",
    "moments",
    "pair_index",
    "unfold",
]


def unfold(core: NDArray, to_right: bool) -> NDArray:
    """Write a core as the matrix that turns the spread of the near environment into images.

    The near environment is the left one on the way to the right, else the right one. Its spread, ``khatri_rao(near,
    values)``, is (i * near, N).

    Shapes: core (a, i, b) -> (b, i * a) to the right, else (a, i * b).
    """
    a, n, b = core.shape
    return core.transpose(2, 1, 0).reshape(b, n * a) if to_right else core.reshape(a, n * b)


def fold(matrix: NDArray, n: int, to_right: bool) -> NDArray:
    """Turn a matrix (i * near, far) back into the shape of a core: the inverse of the transposed ``unfold``.

    Shapes: matrix (i * a, b) -> (a, i, b) to the right, else (i * b, a) -> (a, i, b).
    """
    parts = matrix.reshape(n, len(matrix) // n, matrix.shape[1])
    return parts.transpose(1, 0, 2) if to_right else parts.transpose(2, 0, 1)


@lru_cache(maxsize=64)
def pair_index(size: int) -> NDArray:
    """Return a symmetric (size, size) table: where the pair (a, a') stands in the list of distinct pairs.

    >>> pair_index(3)
    array([[0, 1, 2],
           [1, 3, 4],
           [2, 4, 5]])
    """
    table = np.zeros((size, size), dtype=np.intp)
    upper = np.triu_indices(size)
    table[upper] = np.arange(len(upper[0]))
    table = np.maximum(table, table.T)
    table.setflags(write=False)
    return table


def _pair_products(one: NDArray, other: NDArray, out: NDArray) -> None:
    """Write one[a] * other[a'] for a <= a' into ``out`` in the order of ``pair_index``."""
    start = 0
    for a in range(len(one)):
        stop = start + len(one) - a
        np.multiply(one[a], other[a:], out=out[start:stop])
        start = stop


def moment_items(a: int, n_products: int, b: int) -> int:
    """Numbers per row that ``moments`` handles for these ranks and this size of the product rule."""
    fewer, more = sorted((a * (a + 1) // 2, b * (b + 1) // 2))
    return n_products * fewer + more


def moments(left: NDArray, products: NDArray, right: NDArray, weights: NDArray, work: NDArray | None = None) -> NDArray:
    """Sum over rows of weight * (pairs of left) x (functions of the product rule) x (pairs of right).

    These few sums hold the whole of C.T diag(weights) C: pairs are symmetric, and a product of two functions of a map
    is a combination of the m functions of its product rule (2n - 1 for polynomials). One GEMM per block of rows.

    Shapes: left (a, N), products (m, N) with products[0] = 1, right (b, N), weights (N,) -> (m, a(a+1)/2, b(b+1)/2).
    ``work`` is a flat array of at least ``moment_items(a, m, b) * N`` numbers; fresh memory for every block would cost
    a third more.
    """
    n_products, n_rows = products.shape
    n_left, n_right = len(left) * (len(left) + 1) // 2, len(right) * (len(right) + 1) // 2
    if n_left > n_right:  # the functions go to the side with fewer pairs
        return moments(right, products, left, weights, work).transpose(0, 2, 1)
    if work is None:
        work = np.empty((n_products * n_left + n_right) * n_rows, dtype=left.dtype)
    cut = n_products * n_left * n_rows
    spread = work[:cut].reshape(n_products, n_left, n_rows)
    weighted = work[cut : cut + n_right * n_rows].reshape(n_right, n_rows)
    _pair_products(left, left, spread[0])
    for e in range(1, n_products):
        np.multiply(spread[0], products[e], out=spread[e])
    _pair_products(right * weights, right, weighted)
    return moment_product(spread.reshape(n_products * n_left, n_rows), weighted).reshape(n_products, n_left, n_right)


def moment_product(spread: NDArray, weighted: NDArray) -> NDArray:
    """Multiply the one matrix with the other, transposed: the product in which the time of ``moments`` goes.

    Which operand comes first is up to the BLAS kernels: in float64 with AVX-512 the narrow one gains a third.
    """
    return (weighted @ spread.T).T if spread.dtype == np.float64 else spread @ weighted.T


def gram_from_moments(sums: NDArray, shape: tuple[int, int, int], table: NDArray) -> NDArray:
    """Scatter the moments into C.T diag(weights) C, with the table of a product rule.

    Shapes: sums (m, a(a+1)/2, b(b+1)/2), shape = (a, n, b), table (n, n, m) -> (a n b, a n b).
    """
    a, n, b = shape
    products = np.tensordot(table, sums, axes=(2, 0))  # (n, n, left pairs, right pairs)
    pairs = products[:, :, pair_index(a)[:, :, None, None], pair_index(b)[None, None]]  # (n, n, a, a, b, b)
    return pairs.transpose(2, 0, 4, 3, 1, 5).reshape(a * n * b, a * n * b)
