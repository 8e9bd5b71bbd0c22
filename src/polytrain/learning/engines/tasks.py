"""Rows in partitions that live elsewhere: on the workers of a cluster, or on disk.

Every question is a set of pure tasks, one per partition, run by a ``Runner``: the inputs of a task from its rows
(features, environments, loss) are named by handles and never come here; its answer is small, and answers are added up
in the order of the partitions, so nothing depends on timing. An environment is a task of a partition, the neighbouring
environment and a core: the tasks that are kept alive never reach back further than one pass along the train, and a lost
partition can be computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import attrgetter
from typing import Any

import joblib
import numpy as np

from polytrain.arrays import Array
from polytrain.learning.blocks import LinearBlock, LossAt, RowBlock, Scratch, TrainBlock
from polytrain.learning.distinct import DistinctRows
from polytrain.learning.engines.engine import Engine, Position
from polytrain.learning.engines.local import row_ranges
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
class _Context:
    """Context of tasks: the loss, and a position with the map of its column, or all maps for the linear model."""

    loss: Loss
    maps: MapList
    at: Position | None

    def blocks(
        self, rows: ProblemRows, left: Array | None, right: Array | None, here: LossAt | None = None
    ) -> Iterator[tuple[slice, RowBlock]]:
        """Blocks that fit in the cache, whose only core is the present one."""
        scratch: Scratch = _memory.__dict__.setdefault("scratch", Scratch())
        for some in row_ranges(rows.n_rows):
            own = rows.block(some)
            block: Any
            if self.at is None:
                block = LinearBlock(own, self.loss, self.maps)
            else:
                own = own._replace(columns=own.columns[self.at.site : self.at.site + 1])
                block = TrainBlock(own, self.loss, self.maps, scratch)
                block.set_position(0, self.at.to_right)
                block.set_environments(*(None if side is None else side[:, some] for side in (left, right)))
            if here is not None:
                block.here = here.of(some)
            yield some, block


# --- tasks ------------------------------------------------------------------------------------------------------------


def _apply(function: Callable[..., Any], shared: Sequence[Any], *own: Any) -> Any:
    """Run a task: a function with the last arguments, which all partitions share."""
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        return function(*own, *shared)


def _extend(rows: ProblemRows, left: Any, right: Any, context: Any, core: Array) -> Array:
    out = np.empty((core.shape[2] if context.at.to_right else core.shape[0], rows.n_rows), dtype=rows.columns.dtype)
    for some, block in context.blocks(rows, left, right):
        block.extended(core, out[:, some])
    return out


def _score(rows: ProblemRows, left: Any, right: Any, context: _Context, core: Array) -> LossAt:
    scored = []
    for _, block in context.blocks(rows, left, right):
        block.score(core)
        scored.append(block.here)
    scores, values, slopes, curvatures = zip(*scored, strict=True)
    return LossAt(np.concatenate(scores), sum(values), np.concatenate(slopes), np.concatenate(curvatures))


def _answer(rows: Any, left: Any, right: Any, here: LossAt, context: _Context, question: str, *arguments: Any) -> Any:
    answers = (getattr(block, question)(*arguments) for _, block in context.blocks(rows, left, right, here))
    return LocalFactors.join(answers) if question == "local_factors" else add_up(answers)


# --- the engine -------------------------------------------------------------------------------------------------------


class TaskEngine(Engine):
    """A train on rows in partitions: handles of ``ProblemRows``, whose weights are divided by their sum here.

    There is no search direction: trial cores are scored from scratch. Scores made of earlier scores would make tasks
    depend on all tasks before them.
    """

    # Scores of every partition: the present ones, and those that were tried last.
    _here: list[Handle]
    _trial: list[Handle]

    def __init__(self, runner: Runner, partitions: Sequence[Handle], loss: Loss, maps: MapList) -> None:
        super().__init__(loss, maps)
        self._runner, self._is_linear = runner, False
        counted = self._start(lambda rows: (rows.n_rows, float(rows.weights.sum())), partitions)
        masses = list(runner.collect(counted))
        self.n_rows = sum(count for count, _ in masses)
        filled = [partition for partition, (count, _) in zip(partitions, masses, strict=True) if count]
        self._partitions = self._start(ProblemRows.normalised, filled, shared=[sum(mass for _, mass in masses)])
        self._nothing = [None] * len(filled)  # stands for the environments at an end of the train
        self._distinct = reduce(DistinctRows.join, runner.collect(self._start(ProblemRows.distinct, self._partitions)))
        self.n_distinct = self._distinct.n_rows
        self._bonds: list[Sequence[Handle]] = [self._nothing] * (len(maps) + 1)

    def _start(
        self, function: Callable[..., Any], *columns: Sequence[Handle], shared: Sequence[Any] = ()
    ) -> list[Handle]:
        """Start a task per partition, which gets the handles of its own and what all share."""
        return self._runner.map(partial(_apply, function, shared), *columns)

    def _start_here(
        self, function: Callable[..., Any], *columns: Sequence[Handle], shared: Sequence[Any] = ()
    ) -> list[Handle]:
        """Start tasks that get their rows, both environments, and the context."""
        sides = self._bonds[self._at.site : self._at.site + 2]
        return self._start(function, self._partitions, *sides, *columns, shared=(self._context(), *shared))

    def _context(self) -> _Context:
        if self._is_linear:
            return _Context(self._loss, self._maps, None)
        return _Context(self._loss, MapList([self._maps[self._at.site]]), self._at)

    def _understood(self, question: str, *arguments: Any) -> tuple[Any, ...]:
        """Note whether a question is about the linear model, and return the question itself."""
        self._is_linear = question == "linear"
        return arguments if self._is_linear else (question, *arguments)

    def _ask(self, *asked: Any) -> Iterable[Any]:
        question, *arguments = self._understood(*asked)
        if question == "try_step":
            self._trial = self._start_here(_score, shared=arguments[1:])
            return self._runner.collect(self._start(attrgetter("value"), self._trial))
        return self._runner.collect(self._start_here(_answer, self._here, shared=(question, *arguments)))

    def _tell(self, *asked: Any) -> None:
        question, *arguments = self._understood(*asked)
        match question:
            case "score":
                self._here = self._start_here(_score, shared=arguments)
            case "accept":
                self._here = self._trial
            case "move":
                core, (site, to_right) = arguments[0], self._at
                # Only the near environment is named: with the far one, which this replaces, tasks would depend on all
                # before.
                sides = (self._bonds[site], self._nothing) if to_right else (self._nothing, self._bonds[site + 1])
                extended = self._start(_extend, self._partitions, *sides, shared=(self._context(), core))
                self._bonds[site + 1 if to_right else site] = extended

    def gather(self, fraction: float, seed: int) -> ProblemRows:
        chosen = self._partitions
        if fraction < 1.0:
            chosen = self._start(ProblemRows.sample, chosen, shared=(fraction, seed, self._distinct))
        return ProblemRows.join(rows for rows in self._runner.collect(chosen) if rows.n_rows).normalised()

    def fingerprint(self) -> str:
        return " ".join(self._runner.collect(self._start(joblib.hash, self._partitions)))
