"""Rows in partitions that live elsewhere: on the workers of a cluster, or on disk.

Every question is a set of pure tasks, one per partition, run by a ``Runner``: what a task needs of a partition's rows
(features, environments, loss) is named by handles and never comes here; what it answers is small and added up in the
order of the partitions, so nothing depends on timing. An environment is a task of a partition, the neighbouring
environment and a core: the tasks that are kept alive never reach back further than one pass along the train, and a lost
partition can be computed again.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter
from typing import Any

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.blocks import LinearBlock, LossAt, RowBlock, Scratch, TrainBlock
from polytrain.learning.distinct import DistinctRows
from polytrain.learning.engines.engine import CoreRows, Engine, LinearRows, Position
from polytrain.learning.engines.local import hash_rows, row_ranges
from polytrain.learning.engines.runners import ClusterRunner, SpillRunner
from polytrain.learning.losses import Loss
from polytrain.learning.problem import LocalFactors, ProblemRows, add_up
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import MapList

#: Where tasks run; both have the same ``map`` and ``collect``.
Runner = ClusterRunner | SpillRunner
#: Names a task's result, wherever it is.
Handle = Any

# Memory of the tasks of each thread, enough for one block of rows; it is kept from one task to the next.
_memory = threading.local()


@dataclass(frozen=True)
class _Where:
    """What a task must know to stand at one core, with the map of its column; or at the linear model, with all maps."""

    loss: Loss
    maps: MapList
    at: Position | None

    def blocks(
        self, rows: ProblemRows, left: Array | None, right: Array | None, here: LossAt | None = None
    ) -> Iterator[tuple[slice, RowBlock]]:
        """Blocks that stay in cache, each standing at the core, as if that were the only one."""
        if self.at is None:
            whole = LinearBlock(rows, self.loss, self.maps)
            if here is not None:
                whole.here = here
            yield slice(None), whole
            return
        own = rows._replace(columns=rows.columns[self.at.site : self.at.site + 1])
        scratch: Scratch = _memory.__dict__.setdefault("scratch", Scratch())
        for some in row_ranges(rows.n_rows):
            block = TrainBlock(own.block(some), self.loss, self.maps, scratch)
            block.stand(0, self.at.to_right)
            block.surround(*(None if side is None else side[:, some] for side in (left, right)))
            if here is not None:
                block.here = here.of(some)
            yield some, block


# --- tasks ------------------------------------------------------------------------------------------------------------


class _Task:
    """A picklable task: a function with the last arguments, which all partitions share."""

    def __init__(self, function: Callable[..., Any], *shared: Any) -> None:
        self._function, self._shared = function, shared

    def __call__(self, *own: Any) -> Any:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            return self._function(*own, *self._shared)


def _extend(rows: ProblemRows, left: Any, right: Any, where: Any, core: Array) -> Array:
    out = np.empty((core.shape[2] if where.at.to_right else core.shape[0], rows.n_rows), dtype=rows.columns.dtype)
    for some, block in where.blocks(rows, left, right):
        block.extended(core, out[:, some])
    return out


def _score(rows: ProblemRows, left: Any, right: Any, where: _Where, core: Array) -> LossAt:
    scored = []
    for _, block in where.blocks(rows, left, right):
        block.score(core)
        scored.append(block.here)
    scores, slope, curvature = (
        np.concatenate([getattr(here, name) for here in scored]) for name in ("scores", "slope", "curvature")
    )
    return LossAt(scores, sum(here.value for here in scored), slope, curvature)


def _answer(rows: ProblemRows, left: Any, right: Any, here: LossAt, where: Any, question: str, *arguments: Any) -> Any:
    answers = (getattr(block, question)(*arguments) for _, block in where.blocks(rows, left, right, here))
    return LocalFactors.join(answers) if question == "local_factors" else add_up(answers)


def _mass(rows: ProblemRows) -> tuple[int, float]:
    return rows.n_rows, float(rows.weights.sum())


# --- engines ----------------------------------------------------------------------------------------------------------


class _TaskRows(CoreRows):
    """Asks partitions by tasks, which get the rows, both environments, and where they stand.

    There is no ray: tries score their cores from scratch. Scores made of earlier scores would make tasks depend on all
    tasks before them.
    """

    _runner: Runner
    _partitions: list[Handle]
    # Scores of every partition: the present ones, and those that were tried last.
    _here: list[Handle]
    _trial: list[Handle]

    @abstractmethod
    def _where(self) -> _Where:
        """Return what a task must know about where the rows stand."""

    def _sides(self) -> tuple[Sequence[Handle], Sequence[Handle]]:
        """Left and right environment of every partition; by default, those at the ends of a train."""
        return self._nothing(), self._nothing()

    def _nothing(self) -> list[None]:
        """Stand for the environments at an end of the train."""
        return [None] * len(self._partitions)

    def _run(
        self, function: Callable[..., Any], *columns: Sequence[Handle], shared: Sequence[Any] = ()
    ) -> Iterable[Any]:
        return self._runner.collect(self._runner.map(_Task(function, *shared), *columns))

    def _scored(self, core: Array) -> list[Handle]:
        return self._runner.map(_Task(_score, self._where(), core), self._partitions, *self._sides())

    def _ask(self, question: str, *arguments: Any) -> Iterable[Any]:
        shared = self._where(), question, *arguments
        return self._run(_answer, self._partitions, *self._sides(), self._here, shared=shared)

    def _tell(self, question: str, *arguments: Any) -> None:
        if question == "score":
            self._here = self._scored(*arguments)
        elif question == "accept":
            self._here = self._trial

    def _probe(self, length: float, core: Array) -> float:
        self._trial = self._scored(core)
        return float(add_up(self._run(attrgetter("value"), self._trial)))


class _TaskLinearRows(_TaskRows, LinearRows):
    def __init__(self, engine: TaskEngine, gram: Array | None, where: _Where) -> None:
        super().__init__(engine, gram)
        self._runner, self._partitions, self._linear = engine._runner, engine._partitions, where

    def _where(self) -> _Where:
        return self._linear


class TaskEngine(_TaskRows, Engine):
    """A train on rows in partitions: handles of ``ProblemRows``, whose weights are divided by their sum here."""

    def __init__(self, runner: Runner, partitions: Sequence[Handle], loss: Loss, maps: MapList) -> None:
        super().__init__(loss, maps)
        self._runner = runner
        masses = list(self._run(_mass, partitions))
        self.n_rows = sum(count for count, _ in masses)
        filled = [partition for partition, (count, _) in zip(partitions, masses, strict=True) if count]
        self._partitions = runner.map(_Task(ProblemRows.normalised, sum(mass for _, mass in masses)), filled)
        self._distinct = reduce(DistinctRows.join, self._run(ProblemRows.distinct, self._partitions))
        self.n_distinct = self._distinct.n_rows
        self._bonds: list[Sequence[Handle]] = [self._nothing()] * (len(maps) + 1)

    def _where(self) -> _Where:
        return _Where(self._loss, MapList([self._maps[self._at.site]]), self._at)

    def _sides(self) -> tuple[Sequence[Handle], Sequence[Handle]]:
        return self._bonds[self._at.site], self._bonds[self._at.site + 1]

    def _tell(self, question: str, *arguments: Any) -> None:
        if question != "move":
            super()._tell(question, *arguments)
            return
        core, (site, to_right) = arguments[0], self._at
        # Only the near environment is named: with the far one, which this replaces, tasks would depend on all before.
        sides = (self._bonds[site], self._nothing()) if to_right else (self._nothing(), self._bonds[site + 1])
        extended = self._runner.map(_Task(_extend, self._where(), core), self._partitions, *sides)
        self._bonds[site + 1 if to_right else site] = extended

    def gather(self, fraction: float, seed: int) -> ProblemRows:
        chosen = self._partitions
        if fraction < 1.0:
            chosen = self._runner.map(_Task(ProblemRows.sample, fraction, seed, self._distinct), chosen)
        return ProblemRows.join(rows for rows in self._runner.collect(chosen) if rows.n_rows).normalised()

    def fingerprint(self) -> str:
        return " ".join(self._run(hash_rows, self._partitions))

    def linear(self, gram: Array | None = None) -> LinearRows:
        return _TaskLinearRows(self, gram, _Where(self._loss, self._maps, None))
