"""From labels and targets to the problem of one train, block by block, wherever the block is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.problem import ProblemRows

__all__ = ["ClassTarget", "NumberTarget", "PlacedBlock", "Target"]


class PlacedBlock(NamedTuple):
    """Rows of positive weight, placed by their maps.

    Attributes
    ----------
    columns : ndarray of shape (d, N)
        Coordinates.
    y : ndarray of shape (N,) or (N, outputs)
        Indices of labels, or targets.
    weights, keys : ndarray of shape (N,)
        Weights in units of the largest, and keys of the rows.
    """

    columns: NDArray
    y: NDArray
    weights: NDArray
    keys: NDArray


class Target(Protocol):
    """What one train learns about the rows."""

    @property
    def keeps_all(self) -> bool:
        """Whether no row is left out, nor weighted differently than for the other trains of the fit."""

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """Return the rows of the problem; their weights need not sum to 1."""


@dataclass(frozen=True)
class ClassTarget:
    """Tell some classes from others.

    Attributes
    ----------
    code : ndarray of shape (m,)
        1, -1, or 0 for classes that are left out.
    factors : ndarray of shape (m,)
        Weights of the classes.
    """

    code: NDArray
    factors: NDArray

    @property
    def keeps_all(self) -> bool:
        """Whether no class is left out."""
        return bool(self.code.all())

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """The codes of the labels are the targets."""
        target, weights = self.code[rows.y], rows.weights * self.factors[rows.y]
        problem = ProblemRows(rows.columns, target, weights, rows.keys)
        if self.keeps_all:
            return problem
        kept = np.flatnonzero(target)
        return problem.take(kept, weights[kept])


@dataclass(frozen=True)
class NumberTarget:
    """Predict ``(y / largest - mean) / spread`` of one output by a score that begins at ``offset``."""

    output: int
    largest: float = 1.0
    mean: float = 0.0
    spread: float = 1.0
    offset: float = 0.0

    @property
    def keeps_all(self) -> bool:
        """Every row has every output."""
        return True

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """Centre and divide the targets."""
        y = rows.y if rows.y.ndim == 1 else rows.y[:, self.output]
        target = (y / self.largest - self.mean) / self.spread
        offset = np.full(len(y), self.offset) if self.offset else None
        return ProblemRows(rows.columns, target, rows.weights, rows.keys, offset)
