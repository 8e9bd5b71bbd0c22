"""The rows of a block against one core: scores, sums over rows, the next environment, and second moments.

There are three ways to compute this. The plain one forms the *spread*, the near environment times all function
values, and leaves the products to BLAS. Compiled kernels do it strip by strip without storing a spread. And where
functions are straight lines between knots, a row needs only two knots: the core is contracted with the functions at
every knot first, which leaves one matrix per knot.

Conventions
-----------
Rows are the LAST axis, so every elementwise product runs over contiguous memory: ``left`` is (a, N), ``values``
(i, N), ``right`` (b, N), a core (a, i, b). ``values[0]`` is always the constant 1 and is never multiplied with. The
near environment is the one that the next move extends: the left one on the way to the right. The row vector of the
paper, c[(a, i, b)] = left[a] values[i] right[b], is never formed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from polytrain import native
from polytrain.arrays import Array
from polytrain.learning.kronecker import KroneckerHessian
from polytrain.maps import FeatureMap
from polytrain.tensor.thin_products import khatri_rao, multiply_rows, sum_over_rows

#: Name and shape -> memory with arbitrary values.
Take = Callable[[str, tuple[int, ...]], Array]

# Cost of sorting rows by their knots, in multiplications per row.
_SORTING_WORK = {"f": 140, "d": 60}


# --- scores and sums over rows ----------------------------------------------------------------------------------------


class SpreadRows:
    """The rows of a block by NumPy, which does what `native.DenseRows` does.

    The spread is formed once, of environments (a, N) and (b, N) and function values (n, N); ``take`` gives memory.
    """

    def __init__(self, near: Array, values: Array, far: Array, take: Take) -> None:
        self._far, self._take = far, take
        self._spread = khatri_rao(near, values, take("spread", (len(values) * len(near), near.shape[1])))

    def move(self, core: Array, out: Array) -> Array:
        """See `native.DenseRows.move`."""
        matrix = core.reshape(-1, core.shape[2]).T.astype(self._spread.dtype, order="C", copy=False)
        return multiply_rows(matrix, self._spread, out)

    def product(self, core: Array | None, factors: Array | None, sums: bool) -> tuple[Array | None, Array | None]:
        """See `native.DenseRows.product`."""
        scores, images, weights = None, self._take("images", self._far.shape), factors
        if core is not None:
            self.move(core, images)
            images *= self._far
            scores = np.add.reduce(images, axis=0)
            weights = scores if factors is None else scores * factors
        if not sums or weights is None:
            return scores, None
        return scores, sum_over_rows(self._spread, np.multiply(self._far, weights, out=images))


class Contraction:
    """One core with ``n`` functions against the rows of a block, valid until their memory is taken again."""

    def __init__(self, rows: native.DenseRows | native.LocalRows | SpreadRows, n: int, to_right: bool) -> None:
        self._rows: Any = rows
        self._n, self._to_right = n, to_right

    def images(self, core: Array, out: Array) -> Array:
        """Near environment contracted with a core, (far rank of the core, N), written to ``out``."""
        self._rows.move(self._transposed(core), out)
        return out

    def scores(self, core: Array) -> Array:
        """Scores of a core, (N,)."""
        scores: Array = self._rows.product(self._transposed(core), None, False)[0]
        return scores

    def sums(self, factors: Array) -> Array:
        """C' factors, shaped like the core, float64."""
        return self._folded(self._rows.product(None, factors, True)[1])

    def product(self, step: Array, curvature: Array) -> tuple[Array, Array]:
        """Scores of a step, and C' (curvature * scores), shaped like the core, float64."""
        scores, sums = self._rows.product(self._transposed(step), curvature, True)
        return scores, self._folded(sums)

    def descend(
        self, preconditioner: KroneckerHessian, gradient: Array, curvature: Array, *limits: float
    ) -> tuple[Array, Array] | None:
        """Solution of a Newton system, and its scores, float64; None if products must be taken one by one.

        ``limits`` are those of `native.conjugate_gradients`.
        """
        if isinstance(self._rows, SpreadRows):
            return None
        left, middle, right = preconditioner.eigenvectors
        vectors = (middle, left, right) if self._to_right else (middle, right, left)
        spectrum, slope = self._transposed(preconditioner.eigenvalues), self._transposed(gradient)
        step, scores = native.conjugate_gradients(self._rows, slope, curvature, vectors, spectrum, *limits)
        return self._folded(step), scores

    def _transposed(self, core: Array) -> Array:
        """A core as (functions, near rank, far rank)."""
        return core.transpose(1, 0, 2) if self._to_right else core.transpose(1, 2, 0)

    def _folded(self, matrix: Array) -> Array:
        """A matrix (functions * near rank, far rank) as a core."""
        parts = matrix.reshape(self._n, -1, matrix.shape[1])
        return parts.transpose(1, 0, 2) if self._to_right else parts.transpose(2, 0, 1)


def make_contraction(
    feature_map: FeatureMap, x: Array, near: Array, far: Array, to_right: bool, take: Take
) -> Contraction:
    """Choose the way that costs least.

    ``x`` are the coordinates of the column, (N,). The result is valid until "values" or "spread" is taken again.
    """
    knots = feature_map.knots(x.dtype) if native.is_here() else None
    if knots is not None and _prefers_local(knots, len(near), len(far), len(x)):
        return Contraction(native.LocalRows(np.ascontiguousarray(x), near, far, knots), feature_map.n, to_right)
    values = feature_map.values(x, take("values", (feature_map.n, len(x))))
    rows = native.DenseRows(near, values, far) if native.is_here() else SpreadRows(near, values, far, take)
    return Contraction(rows, feature_map.n, to_right)


def _prefers_local(knots: Array, n_near: int, n_far: int, n_rows: int) -> bool:
    """Compare the work of one product: through two knots for every row, or through all functions.

    The two differ only by rounding, so the number of rows may count.
    """
    n_knots, n = knots.shape
    dense = n * n_near * n_far * n_rows
    width = native.local_width(n_far, knots.dtype)
    local = (2 * n_near * width + _SORTING_WORK[knots.dtype.char]) * n_rows + 2 * n_knots * n * n_near * width
    return bool(local < dense)


# --- second moments ---------------------------------------------------------------------------------------------------


def second_moment(side: Array, factors: Array, take: Take) -> Array:
    """Sum over rows of factors times the outer product of an environment with itself, float64.

    Shapes: side (a, N), factors (N,) -> (a, a).
    """
    if native.is_here():  # with the constant alone, the spread is the environment itself
        return native.DenseRows(side, side[:1], side).product(None, factors, True)[1]  # type: ignore[return-value]
    return sum_over_rows(np.multiply(side, factors, out=take("images", side.shape)), side)


def moment_between_knots(x: Array, knots: Array, factors: Array) -> Array:
    """Sum over rows of factors times the outer product of all function values, through the knots of every row.

    A row between knots k and k + 1 adds to the entries of these two only, whatever the number of functions.

    Shapes: x (N,), knots (K, n), factors (N,) -> (n, n), float64.
    """
    size, before = len(knots), x.astype(np.intp)
    part = x - before
    here, there = factors * (1 - part), factors * part
    own, both, next_own = (
        np.bincount(before, weights, size) for weights in (here * (1 - part), here * part, there * part)
    )
    own[1:] += next_own[:-1]
    lines = knots.astype(np.float64)
    between = lines[:-1].T @ (both[:-1, None] * lines[1:])
    return lines.T @ (own[:, None] * lines) + between + between.T


# --- the Gram matrix from few sums ------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def pair_index(size: int) -> Array:
    """Return a symmetric (size, size) table: the index of the pair (a, a') in 00, 01, ..., 11, 12, ..."""
    table = np.zeros((size, size), dtype=np.intp)
    upper = np.triu_indices(size)
    table[upper] = np.arange(len(upper[0]))
    table = np.maximum(table, table.T)
    table.setflags(write=False)
    return table


def moments(left: Array, products: Array, right: Array, weights: Array) -> Array:
    """Sum over rows of weight * (pairs of left) x (functions of the product rule) x (pairs of right).

    These few sums hold the whole of C.T diag(weights) C: pairs are symmetric, and a product of two functions of a map
    is a combination of the m functions of its product rule (2n - 1 for polynomials). One GEMM per block of rows.

    Shapes: left (a, N), products (m, N) with products[0] = 1, right (b, N), weights (N,) -> (m, a(a+1)/2, b(b+1)/2).
    """
    if len(left) > len(right):  # the functions go to the side with fewer pairs
        return moments(right, products, left, weights).transpose(0, 2, 1)
    pairs = _pairs(left)
    sums: Array = khatri_rao(pairs, products) @ (_pairs(right) * weights).T
    return sums.reshape(len(products), len(pairs), -1)


def _pairs(rows: Array) -> Array:
    """Products rows[a] * rows[a'] for a <= a', in the order of ``pair_index``."""
    return np.concatenate([row * rows[a:] for a, row in enumerate(rows)])


def gram_from_moments(sums: Array, shape: tuple[int, int, int], table: Array) -> Array:
    """Scatter the moments into C.T diag(weights) C, with the table of a product rule.

    Shapes: sums (m, a(a+1)/2, b(b+1)/2), shape = (a, n, b), table (n, n, m) -> (a n b, a n b).
    """
    a, n, b = shape
    products = np.tensordot(table, sums, axes=(2, 0))  # (n, n, left pairs, right pairs)
    pairs = products[:, :, pair_index(a)[:, :, None, None], pair_index(b)[None, None]]  # (n, n, a, a, b, b)
    return pairs.transpose(2, 0, 4, 3, 1, 5).reshape(a * n * b, a * n * b)
