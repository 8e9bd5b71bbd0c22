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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.blocks import LinearBlock, LossAt, Scratch, TrainBlock
from polytrain.learning.engines.engine import CoreRows, Engine, LinearRows, Position
from polytrain.learning.engines.local import hash_rows, row_ranges
from polytrain.learning.losses import Loss
from polytrain.learning.problem import Facts, LocalFactors, Need, ProblemRows, add_up
from polytrain.learning.sampling import DistinctRows, choose_rows
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import FeatureMap, MapList

__all__ = ["Runner", "TaskEngine"]

#: What names a task's result, wherever it is.
Handle = Any


class Runner(Protocol):
    """Where tasks run."""

    def map(self, function: Callable, *columns: Sequence[Any]) -> list[Handle]:
        """Start ``function(*row)`` for every row of these columns; handles among them stand for their results."""

    def collect(self, handles: Sequence[Handle]) -> Iterable[Any]:
        """Return the results, in order."""


_memory = threading.local()


def _scratch() -> Scratch:
    """Memory of this thread's tasks, enough for one block of rows; it is kept from one task to the next."""
    if not hasattr(_memory, "scratch"):
        _memory.scratch = Scratch()
    return _memory.scratch


@dataclass(frozen=True)
class _AtCore:
    """What a task must know to stand at one core."""

    loss: Loss
    feature_map: FeatureMap
    at: Position

    def blocks(
        self, rows: ProblemRows, left: NDArray | None, right: NDArray | None, here: LossAt | None = None
    ) -> Iterator[tuple[slice, TrainBlock]]:
        """Blocks that stay in cache, each standing at the core, as if that were the only one."""
        scratch, maps = _scratch(), MapList([self.feature_map])
        own = rows._replace(columns=rows.columns[self.at.site : self.at.site + 1])
        for some in row_ranges(rows.n_rows):
            block = TrainBlock(own.block(some), self.loss, maps, scratch)
            block.stand(0, self.at.to_right)
            block.surround(*(None if side is None else side[:, some] for side in (left, right)))
            if here is not None:
                block.here = here.of(some)
            yield some, block


@dataclass(frozen=True)
class _AtLinear:
    """What a task must know to work on the linear model."""

    loss: Loss
    maps: MapList

    def blocks(
        self, rows: ProblemRows, left: None = None, right: None = None, here: LossAt | None = None
    ) -> Iterator[tuple[slice, LinearBlock]]:
        block = LinearBlock(rows, self.loss, self.maps)
        if here is not None:
            block.here = here
        yield slice(None), block


# --- tasks: all of them get where they stand, the rows, and both environments -----------------------------------------


class _Task:
    """A picklable task: the function's name with the arguments that all partitions share."""

    def __init__(self, function: Callable, at: Any, *shared: Any) -> None:
        self._function, self._at, self._shared = function, at, shared

    def __call__(self, *own: Any) -> Any:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            return self._function(self._at, *own, *self._shared)


def _extend(at: _AtCore, rows: ProblemRows, left: NDArray | None, right: NDArray | None, core: NDArray) -> NDArray:
    out = np.empty((core.shape[2] if at.at.to_right else core.shape[0], rows.n_rows), dtype=rows.columns.dtype)
    for some, block in at.blocks(rows, left, right):
        block.extended(core, out[:, some])
    return out


def _score(at: Any, rows: ProblemRows, left: Any, right: Any, core: NDArray) -> LossAt:
    found = []
    for _, block in at.blocks(rows, left, right):
        block.score(core)
        found.append(block.here)
    arrays = (np.concatenate([getattr(here, name) for here in found]) for name in ("scores", "slope", "curvature"))
    scores, slope, curvature = arrays
    return LossAt(scores, sum(here.value for here in found), slope, curvature)


def _value(at: None, here: LossAt) -> float:
    return here.value


def _product(at: Any, rows: ProblemRows, left: Any, right: Any, here: LossAt, step: NDArray) -> NDArray:
    return add_up(block.product(step) for _, block in at.blocks(rows, left, right, here))


def _facts(at: Any, rows: ProblemRows, left: Any, right: Any, here: LossAt, need: Need) -> Facts:
    facts = add_up(block.facts(need) for _, block in at.blocks(rows, left, right, here))
    return facts._replace(loss=here.value)


def _surroundings(at: Any, rows: ProblemRows, left: Any, right: Any, here: LossAt) -> LocalFactors:
    return LocalFactors.join(block.local_factors() for _, block in at.blocks(rows, left, right, here))


def _distinct(at: None, rows: ProblemRows) -> DistinctRows:
    return DistinctRows.of(rows.keys, rows.target)


def _choose(at: None, rows: ProblemRows, fraction: float, seed: int, distinct: DistinctRows) -> ProblemRows:
    return rows.take(*choose_rows(fraction, seed, distinct, rows.keys, rows.target, rows.weights))


def _hash(at: None, rows: ProblemRows) -> str:
    return hash_rows(rows)


def _mass(at: None, rows: ProblemRows) -> tuple[int, float]:
    return rows.n_rows, float(rows.weights.sum())


def _divide(at: None, rows: ProblemRows, mass: float) -> ProblemRows:
    return rows._replace(weights=rows.weights / mass)


# --- engines ----------------------------------------------------------------------------------------------------------


class _TaskRows(CoreRows):
    """What the linear model and the train have in common."""

    _runner: Runner
    _partitions: list[Handle]
    # Scores of every partition: the present ones, and those that were probed last.
    _here: list[Handle]
    _trial: list[Handle]

    @abstractmethod
    def _where(self) -> Any:
        """Return what a task must know about where the rows stand."""

    def _sides(self) -> tuple[Sequence[Handle], Sequence[Handle]]:
        """Left and right environment of every partition; by default, those at the ends of a train."""
        return self._nothing(), self._nothing()

    def _nothing(self) -> list[None]:
        """Stand for the environments at an end of the train."""
        return [None] * len(self._partitions)

    def _map(self, function: Callable, *shared: Any, own: Sequence[Sequence[Handle]] = ()) -> list[Handle]:
        return self._runner.map(_Task(function, self._where(), *shared), self._partitions, *self._sides(), *own)

    def _total(self, handles: Sequence[Handle]) -> Any:
        return add_up(self._runner.collect(handles))

    def _score(self, core: NDArray) -> None:
        self._here = self._map(_score, core)

    def _answer(self, need: Need) -> Facts:
        return self._total(self._map(_facts, need, own=[self._here]))

    def _aim(self, step: NDArray) -> None:
        """There is no ray: probes score their cores from scratch, and steps go to one of them.

        Scores made of earlier scores would make tasks hang on all tasks before them.
        """

    def _probe(self, length: float, core: NDArray) -> float:
        self._trial = self._map(_score, core)
        return self._total(self._runner.map(_Task(_value, None), self._trial))

    def _accept(self) -> None:
        self._here = self._trial


class _TaskLinearRows(LinearRows, _TaskRows):
    def __init__(self, engine: TaskEngine, gram: NDArray | None) -> None:
        super().__init__(gram)
        self._runner, self._partitions, self.n_rows = engine._runner, engine._partitions, engine.n_rows
        self._at_linear = _AtLinear(engine._loss, engine._maps)

    def _where(self) -> _AtLinear:
        return self._at_linear


class TaskEngine(_TaskRows, Engine):
    """A train on rows in partitions.

    Parameters
    ----------
    runner : Runner
    partitions : list of handles
        One ``ProblemRows`` each. They need at least one row; the weights are divided by their sum here.
    loss, maps
        As for ``LocalEngine``.
    """

    def __init__(self, runner: Runner, partitions: Sequence[Handle], loss: Loss, maps: MapList) -> None:
        super().__init__(loss, maps)
        self._runner = runner
        masses = list(runner.collect(runner.map(_Task(_mass, None), partitions)))
        self.n_rows = sum(count for count, _ in masses)
        filled = [partition for partition, (count, _) in zip(partitions, masses, strict=True) if count]
        self._partitions = runner.map(_Task(_divide, None, sum(mass for _, mass in masses)), filled)
        self._distinct = DistinctRows.merge(runner.collect(runner.map(_Task(_distinct, None), self._partitions)))
        self.n_distinct = self._distinct.n_rows
        self._bonds: list[Sequence[Handle]] = [self._nothing()] * (len(maps) + 1)

    def _where(self) -> _AtCore:
        return _AtCore(self._loss, self._maps[self._at.site], self._at)

    def _sides(self) -> tuple[Sequence[Handle], Sequence[Handle]]:
        return self._bonds[self._at.site], self._bonds[self._at.site + 1]

    def sample(self, fraction: float, seed: int) -> TaskEngine:
        chosen = self._runner.map(_Task(_choose, None, fraction, seed, self._distinct), self._partitions)
        return TaskEngine(self._runner, chosen, self._loss, self._maps)

    def gather(self, fraction: float, seed: int) -> ProblemRows:
        chosen = self._partitions if fraction >= 1.0 else self.sample(fraction, seed)._partitions
        found = [rows for rows in self._runner.collect(chosen) if rows.n_rows]
        joined: list[Any] = [
            None if entries[0] is None else np.concatenate(entries, axis=-1) for entries in zip(*found, strict=True)
        ]
        return ProblemRows(*joined).normalised()

    def fingerprint(self) -> str:
        return " ".join(self._runner.collect(self._runner.map(_Task(_hash, None), self._partitions)))

    def linear(self, gram: NDArray | None = None) -> LinearRows:
        return _TaskLinearRows(self, gram)

    def _stand(self, at: Position) -> None:
        """Tasks are told where they stand."""

    def _extend(self, core: NDArray, following: Position) -> None:
        site, to_right = self._at
        # Only the near environment is named: with the far one, which this replaces, tasks would hang on all before.
        sides = (self._bonds[site], self._nothing()) if to_right else (self._nothing(), self._bonds[site + 1])
        extended = self._runner.map(_Task(_extend, self._where(), core), self._partitions, *sides)
        self._bonds[site + 1 if to_right else site] = extended

    def local_factors(self) -> LocalFactors:
        return LocalFactors.join(self._runner.collect(self._map(_surroundings, own=[self._here])))

    def product(self, step: NDArray) -> NDArray:
        return self._total(self._map(_product, step, own=[self._here]))

    def _clear_ray(self) -> None:
        """There is no ray."""

    def _walk(self, length: float) -> None:
        """There is no ray."""
