"""The rows of one problem, and the facts about it at one core.

Conventions
-----------
Weights are divided by their sum once, so every quantity is a weighted mean over rows and nothing needs to know N.
Scores are ``offset + C vec(core)``; gradient, Gram matrix and moments are taken at the present scores. Nothing here
knows about regularisation.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.distinct import DistinctRows, row_keys, row_positions


class ProblemRows(NamedTuple):
    """Rows of one problem.

    ``columns`` (d, N) are coordinates, as the maps have placed them; their dtype is the compute dtype. Targets, weights
    and the offset of the scores, if any, are float64, and so are the ``keys``, equal for equal rows.
    """

    columns: Array
    target: Array
    weights: Array
    keys: Array
    offset: Array | None = None

    @classmethod
    def make(cls, columns: Array, target: Array, weights: Array, offset: Array | None = None) -> Self:
        """Convert targets, weights and offset to float64, compute the keys, and normalise the weights."""
        target, weights = (np.asarray(array, dtype=np.float64) for array in (target, weights))
        offset = None if offset is None else np.asarray(offset, dtype=np.float64)
        return cls(columns, target, weights, row_keys(columns), offset).normalised()

    def normalised(self, mass: float | None = None) -> Self:
        """Return the same rows with weights divided by their sum, or by the sum of those of more rows."""
        return self._replace(weights=self.weights / (self.weights.sum() if mass is None else mass))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.target)

    @classmethod
    def join(cls, pieces: Iterable[ProblemRows]) -> Self:
        """Concatenate rows; either all have an offset, or none has."""
        groups = zip(*pieces, strict=True)
        arrays: list[Any] = [None if group[0] is None else np.concatenate(group, axis=-1) for group in groups]
        return cls(*arrays)

    def distinct(self) -> DistinctRows:
        """Keys of the distinct rows."""
        return DistinctRows.of(self.keys, self.target)

    def sample(self, fraction: float, seed: int, distinct: DistinctRows) -> Self:
        """Copies of the rows that belong to a sample of all rows, whose distinct rows are ``distinct``.

        Weights are divided by the chance to be chosen, so that sums over the chosen rows stay unbiased.
        """
        chances = np.where(self.target < 0.0, *distinct.chances(fraction))
        chosen = np.flatnonzero(row_positions(self.keys, seed) < chances)
        return self.take(chosen, (self.weights / chances)[chosen])

    def merged(self) -> Self:
        """Return equal rows as one row, with their total weight and their mean target minus the offset."""
        target = self.target if self.offset is None else self.target - self.offset
        _, first, place = np.unique(self.keys, return_index=True, return_inverse=True)
        weights = np.bincount(place, self.weights)
        means = np.bincount(place, self.weights * target) / weights
        return type(self)(self.columns[:, first], means, weights, self.keys[first])

    def block(self, rows: slice | Array) -> Self:
        """Some of the rows: views of consecutive ones."""
        arrays: list[Any] = [None if array is None else array[..., rows] for array in self]
        return type(self)(*arrays)

    def take(self, rows: Array, weights: Array) -> Self:
        """Copies of some rows, with other weights."""
        chosen = self.block(rows)
        return chosen._replace(columns=np.ascontiguousarray(chosen.columns), weights=weights)


class Need(NamedTuple):
    """Questions about the present scores; the mean loss is always answered.

    The gradient is C' (weights * slope), shaped like the core, and the Gram matrix, C' diag(weights * curvature) C, the
    exact Hessian of the mean loss. The Kronecker product of the second moments of left environment, function values and
    right environment is nearly the Gram matrix.
    """

    gradient: bool = False
    gram: bool = False
    left: bool = False
    middle: bool = False
    right: bool = False


LOSS = Need()
GRADIENT = Need(gradient=True)
FACTORS = Need(left=True, middle=True, right=True)


class Facts(NamedTuple):
    """Answers to one round of questions; others are None. For single blocks, ``gram`` holds moments."""

    loss: float
    gradient: Any = None
    gram: Any = None
    left: Any = None
    middle: Any = None
    right: Any = None


class LocalFactors(NamedTuple):
    """Everything about the rows at one core, for few rows: the row vectors of C are products of the first three.

    Shapes: left (a, N), values (n, N), right (b, N), and curvature (N,), weights times the curvature of the loss.
    """

    left: Array
    values: Array
    right: Array
    curvature: Array

    @classmethod
    def join(cls, blocks: Iterable[LocalFactors]) -> LocalFactors:
        """Concatenate the rows of several blocks, in float64."""
        return cls(*(np.concatenate(parts, axis=-1).astype(np.float64) for parts in zip(*blocks, strict=True)))


def add_up(answers: Any) -> Any:
    """Sum answers of blocks in their order."""
    return reduce(_plus, answers)


def _plus(total: Any, answer: Any) -> Any:
    if isinstance(total, Facts):
        return Facts(*map(_plus, total, answer))
    return None if total is None else total + answer
