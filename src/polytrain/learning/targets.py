"""From labels and targets to the problem of one train, block by block, wherever the block is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from polytrain.learning.parts import Part, part_scores
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList
from polytrain.tensor.stack import TrainStack

__all__ = [
    "ClassTarget",
    "GivenProblem",
    "JointTarget",
    "KnownScores",
    "NumberTarget",
    "OtherParts",
    "PartTarget",
    "PlacedBlock",
    "Target",
]


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

    @property
    def offset(self) -> float:
        """Where scores begin."""

    @property
    def steepness(self) -> float:
        """Size of what is wanted in units of its mean before it was centred; 1 for classes."""

    def wanted(self, y: NDArray) -> tuple[NDArray, NDArray]:
        """Return what the score of every row should be, and what its weight is multiplied by, (N,) each."""

    def sketched(self, sums: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
        """Return the mean of what is wanted, and the weights, of the rows of a sketch, (k,) each."""

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

    offset = 0.0
    steepness = 1.0

    @property
    def keeps_all(self) -> bool:
        """Whether no class is left out."""
        return bool(self.code.all())

    def wanted(self, y: NDArray) -> tuple[NDArray, NDArray]:
        """The codes of the labels; classes that are left out weigh nothing."""
        return self.code[y], (self.factors * (self.code != 0))[y]

    def sketched(self, sums: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
        """Rows that are alike may have different labels; what has no code weighs nothing."""
        counted = sums * (self.factors * (self.code != 0))
        totals = counted.sum(axis=1)
        return counted @ self.code / np.where(totals > 0, totals, 1.0), totals

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """Leave out what has no code."""
        target, factors = self.wanted(rows.y)
        weights = rows.weights * factors
        problem = ProblemRows(rows.columns, target, weights, rows.keys)
        if self.keeps_all:
            return problem
        kept = np.flatnonzero(target)
        return problem.take(kept, weights[kept])


@dataclass(frozen=True)
class NumberTarget:
    """Predict ``(y / largest - mean) / spread`` of one output by a score that begins at ``offset``.

    What a sketch wants is no larger than ``limit``.
    """

    output: int
    largest: float = 1.0
    mean: float = 0.0
    spread: float = 1.0
    offset: float = 0.0
    limit: float = np.inf

    @property
    def steepness(self) -> float:
        """Spread in units of the mean."""
        return self.spread / self.mean if self.mean else 1.0

    @property
    def keeps_all(self) -> bool:
        """Every row has every output."""
        return True

    def wanted(self, y: NDArray) -> tuple[NDArray, NDArray]:
        """Centre and divide the targets."""
        y = y if y.ndim == 1 else y[:, self.output]
        return (y / self.largest - self.mean) / self.spread, np.ones(len(y))

    def sketched(self, sums: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
        """Rows that are alike have a mean target. The sums are of targets that are divided by ``largest`` already."""
        wanted = (sums[:, self.output] / weights - self.mean) / self.spread
        return np.clip(wanted, -self.limit, self.limit), weights

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """All rows, with the offset."""
        target, _ = self.wanted(rows.y)
        offset = np.full(len(target), self.offset) if self.offset else None
        return ProblemRows(rows.columns, target, rows.weights, rows.keys, offset)


@dataclass(frozen=True, eq=False)
class JointTarget:
    """Tell one class from all others, given the scores of the other classes.

    With these fixed, minus the logarithm of the probability of the right class is, to a constant, a logistic loss of
    the own score, less the logarithm of the sum of the exponentials of the others.

    Attributes
    ----------
    own : ClassTarget
        The class.
    index : int
        Which of the trains is its own.
    maps : MapList
    trains : sequence of sequences of cores
        The trains of all classes.
    shift : ndarray of shape (m,)
        What is added to the value of every train.
    """

    own: ClassTarget
    index: int
    maps: MapList
    trains: Sequence[Sequence[NDArray]]
    shift: NDArray

    @property
    def keeps_all(self) -> bool:
        """Every row has a class."""
        return self.own.keeps_all

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """All rows, with an offset that the other trains make."""
        others = [k for k in range(len(self.trains)) if k != self.index]
        functions, knots = ([getattr(one, name) for one in self.maps] for name in ("values", "knots"))
        stack = TrainStack([self.trains[k] for k in others], functions, knots)
        scores = stack.evaluate(rows.columns.T, np.transpose).astype(np.float64) + self.shift[others, None]
        return self.own.problem(rows)._replace(offset=float(self.shift[self.index]) - logsumexp(scores, axis=0))


@dataclass(frozen=True, eq=False)
class GivenProblem:
    """A problem that is ready, whatever the rows are."""

    rows: ProblemRows

    keeps_all = True

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """The given rows."""
        return self.rows


@dataclass(frozen=True, eq=False)
class KnownScores:
    """Scores (N,) of the other parts of a sum, where all rows are in one place."""

    scores: NDArray

    def of(self, columns: NDArray, numbers: NDArray) -> NDArray:
        """Scores of the rows with these numbers."""
        return self.scores[numbers]


@dataclass(frozen=True, eq=False)
class OtherParts:
    """The other parts of a sum, evaluated wherever the rows are."""

    parts: Sequence[Part]
    maps: MapList
    trains: Sequence[Sequence[NDArray]]

    def of(self, columns: NDArray, numbers: NDArray) -> NDArray:
        """Scores of rows with these placed columns."""
        total = np.zeros(columns.shape[1])
        for part, cores in zip(self.parts, self.trains, strict=True):
            total += part_scores(part, self.maps, cores, columns)
        return total


@dataclass(frozen=True, eq=False)
class PartTarget:
    """The problem of one part of a sum of trains: some columns, and scores that begin at those of the other parts."""

    target: Target
    columns: tuple[int, ...]
    others: KnownScores | OtherParts

    @property
    def keeps_all(self) -> bool:
        """As the target says."""
        return self.target.keeps_all

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """Rows of the target's problem, which may be fewer: in the place of keys, numbers tell which they are."""
        problem = self.target.problem(rows._replace(keys=np.arange(len(rows.keys))))
        offset = self.others.of(problem.columns, problem.keys)
        if problem.offset is not None:
            offset = offset + problem.offset
        columns = np.ascontiguousarray(problem.columns[list(self.columns)])
        return problem._replace(columns=columns, keys=rows.keys[problem.keys], offset=offset)
