"""Rows whose columns are placed by their maps, ready to learn from: in one array, or where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from polytrain.learning.engines import Engine, LocalEngine
from polytrain.learning.engines.tasks import Runner, TaskEngine
from polytrain.learning.helpers import are_ready, may_borrow_helpers, spread
from polytrain.learning.losses import get_loss
from polytrain.learning.trainer import TrainJob, TrainPlan, TrainResult, learn_on, learn_train, shared_linear_gram
from polytrain.maps import MapList
from polytrain.rows.joint import learn_jointly
from polytrain.rows.targets import PlacedBlock, Target

__all__ = ["Budget", "PlacedArray", "PlacedPartitions", "PlacedRows", "Report"]

# Operations that take as long as one update of a small core, and those of a train that no process is started for.
_UPDATE_WORK, _SMALL_WORK = 2e6, 1e9
# Operations of all trains that are not worth a message to a process that waits.
_TINY_WORK = 1e9
# Bytes of a row besides its columns and environments: some eight numbers in float64.
_ROW_BYTES = 64

#: Told the index of a train, the record of one of its sweeps and its cores; True ends the sweeps of that train.
Report = Callable[[int, dict, Sequence[NDArray]], Any]


class PlacedRows(ABC):
    """Rows whose columns are placed, ready to learn from."""

    _maps: MapList

    def learn(
        self,
        plan: TrainPlan,
        targets: Sequence[Target],
        jobs: Sequence[TrainJob],
        n_jobs: int | None,
        report: Report,
        validation: PlacedRows | None = None,
    ) -> Iterator[TrainResult]:
        """Learn one train per target, in order; validation rows may say when to stop."""
        if not plan.joint or len(targets) == 1:
            yield from self._learn_each(plan, targets, jobs, n_jobs, report, validation)
            return

        def learn_each(plan: TrainPlan, targets: Any, jobs: Any, report: Any) -> Iterator[TrainResult]:
            return self._learn_each(plan, targets, jobs, n_jobs, report, validation)

        yield from learn_jointly(learn_each, self._maps, plan, targets, jobs, report)

    @abstractmethod
    def _learn_each(
        self,
        plan: TrainPlan,
        targets: Sequence[Target],
        jobs: Sequence[TrainJob],
        n_jobs: int | None,
        report: Report,
        validation: PlacedRows | None,
    ) -> Iterator[TrainResult]:
        """Learn trains that ignore each other."""

    @abstractmethod
    def block(self) -> PlacedBlock:
        """Bring all rows here."""

    @abstractmethod
    def engine(self, plan: TrainPlan, target: Target) -> Engine:
        """Return an engine on the problem of one train."""

    @abstractmethod
    def seen_by(self, maps: MapList) -> PlacedRows:
        """Return the same rows for trains on other maps; targets have to give the columns that these maps are for."""

    @abstractmethod
    def in_one_place(self, plan: TrainPlan) -> PlacedBlock | None:
        """All rows, if they are in the memory of this process when trains of this plan are learned."""


def _wants_gram(plan: TrainPlan, targets: Sequence[Target], jobs: Sequence[TrainJob]) -> bool:
    """Whether several linear starts share their Gram matrix: it is then computed once."""
    linear = plan.init == "linear" and get_loss(plan.loss).quadratic and any(job.start is None for job in jobs)
    return linear and len(targets) > 1 and all(target.keeps_all for target in targets)


def _learn(
    plan: TrainPlan,
    maps: MapList,
    block: PlacedBlock,
    validation: PlacedBlock | None,
    linear_gram: NDArray | None,
    target: Target,
    job: TrainJob,
    n_processes: int = 1,
    report: Callable[[dict, Sequence[NDArray]], Any] | None = None,
) -> TrainResult:
    rows = target.problem(block).normalised()
    watched = None if validation is None else target.problem(validation).normalised()
    return learn_train(
        plan, maps, rows, job, report=report, n_processes=n_processes, linear_gram=linear_gram, validation=watched
    )


class PlacedArray(PlacedRows):
    """All rows in one array of this process."""

    def __init__(self, maps: MapList, block: PlacedBlock) -> None:
        self._maps, self._block = maps, block

    def _learn_each(
        self,
        plan: TrainPlan,
        targets: Sequence[Target],
        jobs: Sequence[TrainJob],
        n_jobs: int | None,
        report: Report,
        validation: PlacedRows | None,
    ) -> Iterator[TrainResult]:
        """Spread the trains, or the rows of one train, over processes."""
        n_processes = effective_n_jobs(n_jobs)
        gram = self._gram(plan, targets[0]) if _wants_gram(plan, targets, jobs) else None
        # With many more cores than trains, the rows of each train are shared by all of them in turn.
        n_sharing = n_processes if n_processes >= 2 * len(jobs) and may_borrow_helpers() else 1
        watched = None if validation is None else validation.block()
        shared, calls = (plan, self._maps, self._block, watched, gram), list(zip(targets, jobs, strict=True))
        if n_sharing > 1 or not self._has_helpers(plan, min(n_processes, len(jobs)), len(jobs)):
            for index, call in enumerate(calls):
                yield _learn(*shared, *call, n_sharing, partial(report, index))
            return
        for index, result in enumerate(spread(_learn, shared, calls, n_jobs)):
            for record in result.history:
                report(index, record, result.cores)
            yield result

    def seen_by(self, maps: MapList) -> PlacedArray:
        """Share the arrays."""
        return PlacedArray(maps, self._block)

    def in_one_place(self, plan: TrainPlan) -> PlacedBlock | None:
        """They always are."""
        return self._block

    def block(self) -> PlacedBlock:
        """They are here."""
        return self._block

    def engine(self, plan: TrainPlan, target: Target) -> Engine:
        """An engine in this process."""
        return LocalEngine(target.problem(self._block).normalised(), get_loss(plan.loss), self._maps)

    def _has_helpers(self, plan: TrainPlan, n_processes: int, n_trains: int) -> bool:
        """Whether to spread the trains: over processes that must be started only if that takes less time than one."""
        if n_processes == 1:
            return False
        updates = len(plan.dims) * plan.max_sweeps
        work = updates * (_UPDATE_WORK + len(self._block.y) * plan.n_unknowns * max(plan.ranks))
        return work >= _SMALL_WORK or (work * n_trains >= _TINY_WORK and are_ready(n_processes))

    def _gram(self, plan: TrainPlan, target: Target) -> NDArray:
        with self.engine(plan, target) as engine:
            return shared_linear_gram(engine, self._maps)


class Budget(NamedTuple):
    """How much memory rows may take in this process, and how many rows of which numbers there are at most."""

    max_bytes: int
    n_rows: int
    itemsize: int

    def n_processes(self, plan: TrainPlan) -> int:
        """How many processes can learn a train each; 0 if the rows are better left where they are."""
        # The placed columns are there twice while they are joined. A process has the environments, a quarter of them
        # more while they are replaced, and targets, weights, scores, slopes and curvatures.
        rows = self.n_rows * (2 * len(plan.dims) * self.itemsize + _ROW_BYTES)
        environments = self.n_rows * (5 * sum(plan.ranks) * self.itemsize // 4 + _ROW_BYTES)
        return max(0, (self.max_bytes - rows) // max(1, environments))


class PlacedPartitions(PlacedRows):
    """Rows where they are, or brought here if that fits a budget."""

    def __init__(self, runner: Runner, maps: MapList, partitions: list[Any], budget: Budget) -> None:
        self._runner, self._maps, self._partitions, self._budget = runner, maps, partitions, budget

    @cached_property
    def _here(self) -> PlacedArray:
        """All rows in one array."""
        return PlacedArray(self._maps, self.block())

    def block(self) -> PlacedBlock:
        """Bring all partitions here."""
        columns, *others = zip(*self._runner.collect(self._partitions), strict=True)
        joined = np.concatenate(columns, axis=1), *(np.concatenate(arrays) for arrays in others)
        return PlacedBlock(*joined)

    def seen_by(self, maps: MapList) -> PlacedRows:
        """Share the partitions, and the array of all rows if there is one."""
        other = copy(self)
        other._maps = maps
        if "_here" in self.__dict__:
            other.__dict__["_here"] = self._here.seen_by(maps)
        return other

    def in_one_place(self, plan: TrainPlan) -> PlacedBlock | None:
        """They are if they fit in memory."""
        return self._here.block() if self._budget.n_processes(plan) else None

    def _learn_each(
        self,
        plan: TrainPlan,
        targets: Sequence[Target],
        jobs: Sequence[TrainJob],
        n_jobs: int | None,
        report: Report,
        validation: PlacedRows | None,
    ) -> Iterator[TrainResult]:
        """Learn from one array where that fits in memory; else one train after the other, spread over all workers."""
        n_processes = self._budget.n_processes(plan)
        if n_processes:
            n_jobs = n_jobs if n_processes >= effective_n_jobs(n_jobs) else n_processes
            yield from self._here._learn_each(plan, targets, jobs, n_jobs, report, validation)
            return
        gram = None
        if _wants_gram(plan, targets, jobs):
            gram = shared_linear_gram(self.engine(plan, targets[0]), self._maps)
        for index, (target, job) in enumerate(zip(targets, jobs, strict=True)):
            engine = self.engine(plan, target)
            watched = None if validation is None else validation.engine(plan, target)
            yield learn_on(
                engine, plan, self._maps, job, report=partial(report, index), linear_gram=gram, validation=watched
            )

    def engine(self, plan: TrainPlan, target: Target) -> Engine:
        """An engine that asks the partitions."""
        problem = self._runner.map(target.problem, self._partitions)
        return TaskEngine(self._runner, problem, get_loss(plan.loss), self._maps)
