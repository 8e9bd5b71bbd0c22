"""Turn labels and targets into the problem of one train, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from polytrain.arrays import Array
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList
from polytrain.tensor.stack import TrainStack


class PlacedBlock(NamedTuple):
    """Rows of positive weight, placed by their maps.

    Shapes: coordinates (d, N), indices of labels or targets (N,) or (N, outputs), weights in units of the largest (N,),
    and keys of the rows (N,).
    """

    columns: Array
    y: Array
    weights: Array
    keys: Array


@dataclass(frozen=True)
class ClassTarget:
    """Separate some classes from others: ``code`` (m,) is 1, -1, or 0 for classes that are left out.

    ``factors`` (m,) are the weights of the classes.
    """

    code: Array
    factors: Array

    offset = 0.0
    steepness = 1.0

    @property
    def keeps_all(self) -> bool:
        """Whether no row is left out, nor weighted differently than for the other trains of the fit."""
        return bool(self.code.all())

    def wanted(self, y: Array) -> tuple[Array, Array]:
        """Return the targets of the scores, and factors of the weights, (N,) each: 0 for classes that are left out."""
        return self.code[y], (self.factors * (self.code != 0))[y]

    def sketched(self, sums: Array, weights: Array) -> tuple[Array, Array]:
        """Return the mean targets of the rows of a sketch, which may have several labels, and their weights."""
        counted = sums * (self.factors * (self.code != 0))
        totals = counted.sum(axis=1)
        return counted @ self.code / np.where(totals > 0, totals, 1.0), totals

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """Leave out rows without a code."""
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

    Targets of a sketch are clipped at ``limit``.
    """

    output: int
    largest: float = 1.0
    mean: float = 0.0
    spread: float = 1.0
    offset: float = 0.0
    limit: float = np.inf

    keeps_all = True

    @property
    def steepness(self) -> float:
        """Spread divided by the mean."""
        return self.spread / self.mean if self.mean else 1.0

    def wanted(self, y: Array) -> tuple[Array, Array]:
        """Centre and divide the targets."""
        y = y if y.ndim == 1 else y[:, self.output]
        return (y / self.largest - self.mean) / self.spread, np.ones(len(y))

    def sketched(self, sums: Array, weights: Array) -> tuple[Array, Array]:
        """Mean targets; the sums are of targets that are divided by ``largest`` already."""
        wanted = (sums[:, self.output] / weights - self.mean) / self.spread
        return np.clip(wanted, -self.limit, self.limit), weights

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """All rows, with the offset."""
        target, _ = self.wanted(rows.y)
        offset = np.full(len(target), self.offset) if self.offset else None
        return ProblemRows(rows.columns, target, rows.weights, rows.keys, offset)


#: The target of one train: both kinds have the same methods.
Target = ClassTarget | NumberTarget


@dataclass(frozen=True, eq=False)
class JointTarget:
    """Separate one class from all others, given the trains of all classes; ``index`` is that of its own.

    With the others fixed, minus the log-probability of the right class is, to a constant, a logistic loss of the own
    score minus the logarithm of the sum of the exponentials of the others.
    """

    own: ClassTarget
    index: int
    maps: MapList
    trains: Sequence[Sequence[Array]]

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """All rows, with an offset from the other trains."""
        others = [k for k in range(len(self.trains)) if k != self.index]
        functions, knots = ([getattr(one, name) for one in self.maps] for name in ("values", "knots"))
        stack = TrainStack([self.trains[k] for k in others], functions, knots)
        scores = stack.evaluate(rows.columns.T, np.transpose).astype(np.float64)
        return self.own.problem(rows)._replace(offset=-logsumexp(scores, axis=0))


@dataclass(frozen=True, eq=False)
class PartTarget:
    """The problem of one part of a sum of trains: some columns, and scores that begin at those of the other parts.

    ``others`` are the scores of the other parts (N,) or, if rows are in several places, a function of their columns.
    """

    target: Target
    columns: tuple[int, ...]
    others: Array | Callable[[Array], Array]

    @property
    def keeps_all(self) -> bool:
        """As for the target."""
        return self.target.keeps_all

    def problem(self, rows: PlacedBlock) -> ProblemRows:
        """Rows of the target's problem, which may be fewer: numbers in the place of keys identify them."""
        problem = self.target.problem(rows._replace(keys=np.arange(len(rows.keys))))
        others = self.others
        offset = others(problem.columns) if callable(others) else others[problem.keys]
        if problem.offset is not None:
            offset = offset + problem.offset
        columns = np.ascontiguousarray(problem.columns[list(self.columns)])
        return problem._replace(columns=columns, keys=rows.keys[problem.keys], offset=offset)
