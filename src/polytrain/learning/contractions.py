"""The rows of a block against one core: scores, sums over rows, and the next environment.

There are three ways to the same numbers. The plain one forms the *spread*, the near environment times all function
values, and leaves the products to BLAS. Compiled kernels do it strip by strip without storing a spread. And where
functions are straight lines between knots, a row meets two knots, however many functions there are: the core is
contracted with the functions at every knot first, which leaves one matrix per knot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from polytrain import native
from polytrain.learning import kernels
from polytrain.learning.kronecker import Descent
from polytrain.maps import FeatureMap
from polytrain.tensor.contract import khatri_rao
from polytrain.tensor.thin_products import multiply_rows, sum_over_rows

__all__ = [
    "Contraction",
    "DenseContraction",
    "LocalContraction",
    "SpreadContraction",
    "make_contraction",
    "moment_between_knots",
    "second_moment",
]

#: Name and shape -> memory with arbitrary values.
Take = Callable[[str, tuple[int, ...]], NDArray]

# What sorting rows by their knots costs, in multiplications per row (`python -m benchmarks.local_maps`).
_SORTING_WORK = {"f": 140, "d": 60}


class Contraction(ABC):
    """One core against the rows of a block.

    Parameters
    ----------
    near, far : ndarray of shape (near rank, N) and (far rank, N)
        Environments; the near one is the left one on the way to the right.
    n : int
        Number of functions of the column.
    to_right : bool
        Whether the next move goes right.
    """

    _compiled: native.DenseRows | native.LocalRows | None = None  # where there are compiled kernels

    def __init__(self, near: NDArray, far: NDArray, n: int, to_right: bool) -> None:
        self._near, self._far, self._n, self._to_right = near, far, n, to_right

    @abstractmethod
    def images(self, core: NDArray, out: NDArray) -> NDArray:
        """Near environment contracted with a core, (far rank of the core, N), written to ``out``."""

    @abstractmethod
    def scores(self, core: NDArray) -> NDArray:
        """Scores of a core, (N,)."""

    @abstractmethod
    def sums(self, factors: NDArray) -> NDArray:
        """C' factors, shaped like the core, float64."""

    @abstractmethod
    def product(self, step: NDArray, curvature: NDArray) -> tuple[NDArray, NDArray]:
        """Scores of a step, and C' (curvature * scores), shaped like the core, float64."""

    def _turned(self, core: NDArray) -> NDArray:
        """A core as (functions, near rank, far rank)."""
        return core.transpose(1, 0, 2) if self._to_right else core.transpose(1, 2, 0)

    def _fold(self, matrix: NDArray) -> NDArray:
        return kernels.fold(matrix, self._n, self._to_right)

    def descend(self, descent: Descent, curvature: NDArray) -> tuple[NDArray, NDArray] | None:
        """Solution of a Newton system, and its scores, float64; None if products must be taken one by one."""
        if self._compiled is None:
            return None
        left, middle, right = descent.nearly.turns
        turns = (middle, left, right) if self._to_right else (middle, right, left)
        system = native.System(
            turns, self._turned(descent.nearly.spectrum), descent.alpha, descent.tolerance, descent.most
        )
        step, ray = native.conjugate_gradients(self._compiled, system, self._turned(descent.gradient), curvature)
        return self._fold(step), ray


class SpreadContraction(Contraction):
    """By NumPy: the spread is formed once, and serves whatever is asked.

    ``values`` are those of the functions, (n, N); ``take`` gives memory.
    """

    def __init__(self, near: NDArray, far: NDArray, to_right: bool, values: NDArray, take: Take) -> None:
        super().__init__(near, far, len(values), to_right)
        self._take = take
        self._spread = khatri_rao(near, values, take("spread", (len(values) * len(near), near.shape[1])))

    def _unfold(self, core: NDArray) -> NDArray:
        return kernels.unfold(core.astype(self._near.dtype, copy=False), self._to_right)

    def images(self, core: NDArray, out: NDArray) -> NDArray:
        """Unfolded core times spread."""
        return multiply_rows(self._unfold(core), self._spread, out)

    def _scored(self, core: NDArray) -> tuple[NDArray, NDArray]:
        """Scores, and memory of the shape of the far environment."""
        images = self.images(core, self._take("images", self._far.shape))
        images *= self._far
        return np.add.reduce(images, axis=0), images

    def scores(self, core: NDArray) -> NDArray:
        """Images, summed against the far environment."""
        return self._scored(core)[0]

    def sums(self, factors: NDArray) -> NDArray:
        """Spread times the weighted far environment."""
        weighted = np.multiply(self._far, factors, out=self._take("images", self._far.shape))
        return self._fold(sum_over_rows(self._spread, weighted))

    def product(self, step: NDArray, curvature: NDArray) -> tuple[NDArray, NDArray]:
        """One after the other."""
        scores, images = self._scored(step)
        weighted = np.multiply(self._far, scores * curvature, out=images)
        return scores, self._fold(sum_over_rows(self._spread, weighted))


class DenseContraction(Contraction):
    """By compiled kernels, from the values of all functions, (n, N)."""

    def __init__(self, near: NDArray, far: NDArray, to_right: bool, values: NDArray) -> None:
        super().__init__(near, far, len(values), to_right)
        self._compiled = self._rows = native.DenseRows(near, values, far)

    def _matrix(self, core: NDArray) -> NDArray:
        """A core as (n * near rank, far rank), contiguous."""
        return np.ascontiguousarray(self._turned(core), dtype=self._near.dtype)

    def images(self, core: NDArray, out: NDArray) -> NDArray:
        """One pass."""
        return self._rows.move(self._matrix(core), out)

    def scores(self, core: NDArray) -> NDArray:
        """One pass."""
        scores, _ = self._rows.product(self._matrix(core), None, sums=False)
        return scores  # type: ignore[return-value]  # there is a core

    def sums(self, factors: NDArray) -> NDArray:
        """One pass."""
        _, sums = self._rows.product(None, factors, sums=True)
        return self._fold(sums)  # type: ignore[arg-type]  # they are wanted

    def product(self, step: NDArray, curvature: NDArray) -> tuple[NDArray, NDArray]:
        """One pass for both."""
        scores, sums = self._rows.product(self._matrix(step), curvature, sums=True)
        return scores, self._fold(sums)  # type: ignore[return-value,arg-type]


class LocalContraction(Contraction):
    """By compiled kernels, from the functions at the knots.

    ``x`` are positions among the knots, (N,), and ``knots`` the functions there, (knots + 1, n); see
    `FeatureMap.knots`.
    """

    def __init__(self, near: NDArray, far: NDArray, to_right: bool, x: NDArray, knots: NDArray) -> None:
        super().__init__(near, far, knots.shape[1], to_right)
        self._knots = knots
        self._compiled = self._rows = native.LocalRows(np.ascontiguousarray(x), near, far, knots)

    def _tables(self, core: NDArray) -> NDArray:
        """A core contracted with the functions at every knot, (knots + 1, near rank, far rank in whole vectors)."""
        return native.knot_tables(self._knots, self._turned(core))

    def _totals(self) -> NDArray:
        width = native.local_width(len(self._far), self._near.dtype)
        return np.zeros((len(self._knots), len(self._near), width), dtype=self._near.dtype)

    def _gathered(self, totals: NDArray) -> NDArray:
        """Sums for every knot -> sums for every function, shaped like the core."""
        sums = (self._knots.T @ totals.reshape(len(totals), -1)).reshape(self._n, *totals.shape[1:])
        matrix = sums[:, :, : len(self._far)].reshape(-1, len(self._far))
        return self._fold(matrix.astype(np.float64, copy=False))

    def images(self, core: NDArray, out: NDArray) -> NDArray:
        """One pass."""
        return self._rows.move(self._tables(core), out)

    def scores(self, core: NDArray) -> NDArray:
        """One pass."""
        return self._rows.product(self._tables(core), None, None)  # type: ignore[return-value]

    def sums(self, factors: NDArray) -> NDArray:
        """One pass."""
        totals = self._totals()
        self._rows.product(None, factors, totals)
        return self._gathered(totals)

    def product(self, step: NDArray, curvature: NDArray) -> tuple[NDArray, NDArray]:
        """One pass for both."""
        totals = self._totals()
        scores = self._rows.product(self._tables(step), curvature, totals)
        return scores, self._gathered(totals)  # type: ignore[return-value]


def make_contraction(
    feature_map: FeatureMap, x: NDArray, near: NDArray, far: NDArray, to_right: bool, take: Take
) -> Contraction:
    """Choose the way that costs least.

    ``x`` are the coordinates of the column, (N,). What is returned is valid until "values" or "spread" is taken again.
    """
    if native.is_here():
        knots = feature_map.knots(x.dtype)
        if knots is not None and _prefers_local(knots, len(near), len(far), len(x)):
            return LocalContraction(near, far, to_right, x, knots)
    values = feature_map.values(x, take("values", (feature_map.n, len(x))))
    if native.is_here():
        return DenseContraction(near, far, to_right, values)
    return SpreadContraction(near, far, to_right, values, take)


def second_moment(side: NDArray, factors: NDArray, take: Take) -> NDArray:
    """Sum over rows of factors times the outer product of an environment with itself, float64.

    Shapes: side (a, N), factors (N,) -> (a, a).
    """
    if native.is_here():  # with the constant alone, the spread is the environment itself
        return native.DenseRows(side, side[:1], side).product(None, factors, sums=True)[1]  # type: ignore[return-value]
    return sum_over_rows(np.multiply(side, factors, out=take("images", side.shape)), side)


def moment_between_knots(x: NDArray, knots: NDArray, factors: NDArray) -> NDArray:
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


def _prefers_local(knots: NDArray, n_near: int, n_far: int, n_rows: int) -> bool:
    """Compare the work of one product: through two knots for every row, or through all functions.

    Between the two lie only roundings, so the number of rows may count.
    """
    n_knots, n = knots.shape
    dense = n * n_near * n_far * n_rows
    width = native.local_width(n_far, knots.dtype)
    return (2 * n_near * width + _SORTING_WORK[knots.dtype.char]) * n_rows + 2 * n_knots * n * n_near * width < dense
