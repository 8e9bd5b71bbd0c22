"""The rows of one problem, and what the rows can tell about it at one core.

Conventions
-----------
Weights are divided by their sum once, so every quantity is a weighted mean over rows and nothing needs to know N.
Scores are ``offset + C vec(core)``; gradient, Gram matrix and moments are taken at the present scores. Regularisation
is not the rows' business.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.sampling import row_keys

__all__ = ["FACTORS", "GRADIENT", "LOSS", "Facts", "LocalFactors", "Need", "ProblemRows", "add_up"]


class ProblemRows(NamedTuple):
    """Rows of one problem.

    Attributes
    ----------
    columns : ndarray of shape (d, N)
        Coordinates of every column, as its map has placed them. Their dtype is the compute dtype.
    target, weights : ndarray of shape (N,), float64
        Targets, and weights.
    keys : ndarray of shape (N,)
        One number per row: equal rows have equal keys, see `polytrain.learning.sampling.row_keys`.
    offset : ndarray of shape (N,), float64, or None
        What is added to every score; None for nothing.
    """

    columns: NDArray
    target: NDArray
    weights: NDArray
    keys: NDArray
    offset: NDArray | None = None

    @classmethod
    def make(cls, columns: NDArray, target: NDArray, weights: NDArray, offset: NDArray | None = None) -> Self:
        """Bring targets, weights and offset to float64, find the keys, and let the weights sum to 1."""
        target, weights = (np.asarray(array, dtype=np.float64) for array in (target, weights))
        offset = None if offset is None else np.asarray(offset, dtype=np.float64)
        return cls(columns, target, weights, row_keys(columns), offset).normalised()

    def normalised(self) -> Self:
        """Return the same rows with weights that sum to 1."""
        return self._replace(weights=self.weights / self.weights.sum())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.target)

    def merged(self) -> Self:
        """Return rows that are alike as one row, with their total weight and their mean target, without the offset."""
        target = self.target if self.offset is None else self.target - self.offset
        _, first, place = np.unique(self.keys, return_index=True, return_inverse=True)
        weights = np.bincount(place, self.weights)
        means = np.bincount(place, self.weights * target) / weights
        return type(self)(self.columns[:, first], means, weights, self.keys[first])

    def block(self, rows: slice) -> Self:
        """Views of some rows that follow each other."""
        offset = None if self.offset is None else self.offset[rows]
        return type(self)(self.columns[:, rows], self.target[rows], self.weights[rows], self.keys[rows], offset)

    def take(self, rows: NDArray, weights: NDArray) -> Self:
        """Copies of some rows, with other weights."""
        offset = None if self.offset is None else self.offset[rows]
        columns = np.ascontiguousarray(self.columns[:, rows])
        return type(self)(columns, self.target[rows], weights, self.keys[rows], offset)


class Need(NamedTuple):
    """What may be asked about the present scores; the mean loss always comes along.

    Attributes
    ----------
    gradient : bool
        C' (weights * slope), shaped like the core.
    gram : bool
        C' diag(weights * curvature) C, the exact Hessian of the mean loss.
    left, middle, right : bool
        Second moments of the left environment, the function values and the right environment: three small matrices
        whose Kronecker product is nearly the Gram matrix.
    """

    gradient: bool = False
    gram: bool = False
    left: bool = False
    middle: bool = False
    right: bool = False


#: Nothing but the loss.
LOSS = Need()
GRADIENT = Need(gradient=True)
FACTORS = Need(left=True, middle=True, right=True)


class Facts(NamedTuple):
    """Answers to one round of questions; what was not asked for is None.

    Of single blocks, ``gram`` holds moments and ``middle`` the second moment together with the total curvature.
    """

    loss: float
    gradient: NDArray | None = None
    gram: Any = None
    left: NDArray | None = None
    middle: Any = None
    right: NDArray | None = None


class LocalFactors(NamedTuple):
    """All that the rows know about one core, for few rows: the row vectors of C are products of the first three.

    Attributes
    ----------
    left, values, right : ndarray of shape (a, N), (n, N) and (b, N)
        Environments and function values.
    curvature : ndarray of shape (N,)
        Weights times the curvature of the loss at the present scores.
    """

    left: NDArray
    values: NDArray
    right: NDArray
    curvature: NDArray

    @classmethod
    def join(cls, found: Iterable[LocalFactors]) -> LocalFactors:
        """Put the rows of several blocks side by side, in float64."""
        return cls(*(np.concatenate(parts, axis=-1).astype(np.float64) for parts in zip(*found, strict=True)))


def add_up(answers: Any) -> Any:
    """Sum answers of blocks in their order; tuples are summed entry by entry."""
    return reduce(_plus, answers)


def _plus(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        sums = [_plus(*pair) for pair in zip(one, other, strict=True)]
        return type(one)(*sums) if hasattr(one, "_fields") else tuple(sums)
    return None if one is None else one + other
