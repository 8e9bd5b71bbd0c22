"""Train the trains of a fit: by themselves, jointly, or as sums over groups of columns. Only `train` schedules them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import logsumexp

from polytrain.arrays import Array
from polytrain.learning.gauge import fit_ranks
from polytrain.learning.helpers import are_ready, may_borrow_helpers, spread
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import Part, additive_part, join_parts, part_scores, share_additive
from polytrain.learning.placed import PlacedRows
from polytrain.learning.targets import (
    ClassTarget,
    JointTarget,
    OtherParts,
    PartTarget,
    PlacedBlock,
    Target,
)
from polytrain.learning.trainer import TrainJob, TrainPlan, TrainResult, learn_train, shared_linear_gram
from polytrain.maps import MapList
from polytrain.tensor import TensorTrain

# Operations of an update of a small core; operations of a train, and of all trains, below which no process is started,
# or even sent a message.
_UPDATE_WORK, _SMALL_WORK, _TINY_WORK = 2e6, 1e9, 1e9
# A visit of a class or a part is a sweep there and back, so that every core is updated; linear models are solved at
# each visit.
_SWEEPS_OF_VISIT, _LINEAR_ROUNDS = 2, 5
# A relative rise of the objective over a round that rounding explains, also in float32.
_ROUNDING = 1e-5

#: Called with the index of a train, the record of one of its sweeps and its cores; True ends the sweeps of that train.
Report = Callable[[int, dict[str, Any], Sequence[Array]], Any]
Trains = list[list[Sequence[Array]]]  # of every target, one per part


def silent(index: int, record: dict[str, Any], cores: Sequence[Array]) -> None:
    """Ignore a sweep."""


def train(
    rows: PlacedRows,
    maps: MapList,
    plan: TrainPlan,
    targets: Sequence[Any],
    jobs: Sequence[TrainJob],
    *,
    n_jobs: int | None = None,
    report: Report = silent,
    validation: PlacedRows | None = None,
    parts: Sequence[Part] | None = None,
) -> list[TrainResult]:
    """Train one tensor train per target, with one map per column and one job per target.

    If the plan is joint, classes are learned in turn, each given the scores of the others. With ``parts``, every train
    is their sum, and a start has a train for every part. The ``validation`` rows decide when to stop. ``n_jobs`` is as
    for joblib; results do not depend on it.
    """
    if parts is not None:
        return _Backfitting(rows, maps, parts, plan, targets, jobs, n_jobs).learn([job.start for job in jobs], report)
    if plan.joint and len(targets) > 1:
        each = partial(train, rows, maps, n_jobs=n_jobs, validation=validation)
        return _train_jointly(each, maps, replace(plan, joint=False), targets, jobs, report)
    n_trains, most, gram = len(jobs), rows.n_processes(plan), None
    if _shares_gram(plan, targets, jobs):
        # Where the rows are learned from: sums over partitions have other last digits than sums over a block.
        source = PlacedRows(rows.block) if most else rows
        with source.engine(plan, maps, targets[0]) as engine:
            gram = shared_linear_gram(engine, maps)
    calls, results = list(zip(targets, jobs, strict=True)), list[TrainResult]()
    n_processes = min(effective_n_jobs(n_jobs), most) if most else 1
    # With many more cores than trains, the rows of each train are shared by all of them in turn.
    n_sharing = n_processes if n_processes >= 2 * n_trains and may_borrow_helpers() else 1
    if most and n_sharing == 1 and _pays(plan, len(rows.block.y), min(n_processes, n_trains), n_trains):
        shared = plan, maps, rows.block, None if validation is None else validation.block, gram
        for index, result in enumerate(spread(_learn_elsewhere, shared, calls, n_processes)):
            for record in result.history:
                report(index, record, result.cores)
            results.append(result)
        return results

    def problem(source: PlacedRows | None, target: Any) -> Any:
        if source is None:
            return None
        return target.problem(source.block).normalised() if most else source.engine(plan, maps, target)

    for index, (target, job) in enumerate(calls):
        options = {"n_processes": n_sharing, "linear_gram": gram, "validation": problem(validation, target)}
        results.append(learn_train(plan, maps, problem(rows, target), job, report=partial(report, index), **options))
    return results


def _learn_elsewhere(
    plan: TrainPlan,
    maps: MapList,
    block: PlacedBlock,
    validation: PlacedBlock | None,
    linear_gram: Array | None,
    target: Target,
    job: TrainJob,
) -> TrainResult:
    """Learn one train in a process of its own."""
    watched = None if validation is None else target.problem(validation).normalised()
    problem = target.problem(block).normalised()
    return learn_train(plan, maps, problem, job, linear_gram=linear_gram, validation=watched)


def _shares_gram(plan: TrainPlan, targets: Sequence[Target], jobs: Sequence[TrainJob]) -> bool:
    """Whether several linear starts share their Gram matrix: it is then computed once."""
    linear = plan.init == "linear" and get_loss(plan.loss).quadratic and any(job.start is None for job in jobs)
    return linear and len(targets) > 1 and all(target.keeps_all for target in targets)


def _pays(plan: TrainPlan, n_rows: int, n_processes: int, n_trains: int) -> bool:
    """Whether to spread trains over processes: starting one takes longer than a small train."""
    if n_processes == 1:
        return False
    work = len(plan.dims) * plan.max_sweeps * (_UPDATE_WORK + n_rows * plan.n_unknowns * max(plan.ranks))
    return work >= _SMALL_WORK or (work * n_trains >= _TINY_WORK and are_ready(n_processes))


# --- classes together -------------------------------------------------------------------------------------------------


def _train_jointly(
    each: Callable[..., list[TrainResult]],
    maps: MapList,
    plan: TrainPlan,
    targets: Sequence[ClassTarget],
    jobs: Sequence[TrainJob],
    report: Report,
) -> list[TrainResult]:
    """Train all classes so that the probabilities of their softmax fit the labels.

    Every visit of a class lowers the objective of the whole, the mean of minus the log-probability of the right class
    plus alpha / 2 times the squared norms of all trains, with the other trains fixed.
    """
    is_linear = plan.max_sweeps == 0 and plan.init == "linear"
    trains: list[Sequence[Array]] = [job.start for job in jobs if job.start is not None]
    histories: list[list[dict[str, Any]]] = [[] for _ in jobs]
    reason = "max_sweeps"
    if len(trains) < len(jobs):
        first, plain = replace(plan, max_sweeps=0, patience=0), [TrainJob(job.seed) for job in jobs]
        if is_linear:  # from nothing, so that no class begins with what is common to all
            trains = [[np.zeros((1, n, 1)) for n in plan.dims]] * len(jobs)
        elif plan.init == "linear":
            trains = [result.cores for result in _train_jointly(each, maps, first, targets, plain, silent)]
        else:
            trains = [result.cores for result in each(first, targets, plain)]
    n_rounds = _LINEAR_ROUNDS if is_linear else -(-plan.max_sweeps // _SWEEPS_OF_VISIT)
    visit = replace(plan, max_sweeps=0 if is_linear else _SWEEPS_OF_VISIT, sampling=None)
    for number in range(n_rounds):
        decreases = []
        for index, (own, job) in enumerate(zip(targets, jobs, strict=True)):
            target = JointTarget(own, index, maps, list(trains), np.zeros(len(jobs)))
            following = TrainJob(job.seed, None if is_linear else trains[index], job.numbered_checkpoint(number))
            before = len(histories[index])
            (result,) = each(visit, [target], [following], report=partial(_renumbered, report, index, before))
            trains[index] = result.cores
            histories[index] += result.later_history(before)
            decreases.append(sum(record["decrease"] for record in result.history))
            objective = result.history[-1]["objective"] if result.history else 0.0
            if result.stop_reason == "stopped":  # the report ends the whole fit
                reason = "stopped"
                break
        if reason != "stopped" and not is_linear and sum(decreases) <= plan.tol * abs(objective):
            reason = "tolerance"
        if reason != "max_sweeps":
            break
    return [TrainResult(tuple(cores), history, reason) for cores, history in zip(trains, histories, strict=True)]


def log_losses(scores: Array, y: Array) -> Array:
    """Minus the log-probability of the right class, (N,), for scores (N, m) and indices of classes (N,)."""
    return logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]


def _renumbered(report: Report, index: int, before: int, _: int, record: dict[str, Any], cores: Any) -> Any:
    return report(index, {**record, "sweep": record["sweep"] + before}, cores)


# --- sums of trains over groups of columns ----------------------------------------------------------------------------


class _Backfitting:
    """Learns the parts of all targets in rounds, each part with the scores of the others as its offset.

    A sweep of the plan is a round over all parts, each swept there and back. No step raises the whole objective.
    """

    def __init__(
        self,
        rows: PlacedRows,
        maps: MapList,
        parts: Sequence[Part],
        plan: TrainPlan,
        targets: Sequence[Target],
        jobs: Sequence[TrainJob],
        n_jobs: int | None,
    ) -> None:
        self._rows, self._maps, self._parts, self._plan = rows, maps, parts, plan
        self._targets, self._n_jobs = targets, n_jobs
        self._seeds = [job.seed for job in jobs]
        self._block = rows.block if rows.n_processes(plan) else None
        self._scores: dict[int, Array] = {}  # of all parts together, by target, where rows are in one place

    def learn(self, starts: Sequence[Sequence[Sequence[Array]] | None], report: Report) -> list[TrainResult]:
        """Learn until the objective hardly changes. A start has a train per part; None is the additive model."""
        plan, trains = self._plan, self._start(starts)
        histories: list[list[dict[str, Any]]] = [[] for _ in trains]
        reasons, objectives = ["max_sweeps"] * len(trains), dict[int, float]()
        # An additive model is solved by the start.
        going = [] if all(part.additive for part in self._parts) else list(range(len(trains)))
        for number in range(1, plan.max_sweeps + 1):
            started, before = time.perf_counter(), {t: list(trains[t]) for t in going}
            last = self._round(trains, going, objectives)
            for t in list(going):
                objective, previous = last[t]["loss"] + self._penalty(trains[t]), objectives[t]
                if objective > previous * (1.0 + _ROUNDING):
                    # Only badly scaled features get here. Keep the better trains and say why it ends.
                    trains[t], objective, reasons[t] = before[t], previous, "rounding"
                elif abs(previous - objective) <= plan.tol * abs(previous):
                    reasons[t] = "tolerance"
                objectives[t] = objective
                seconds = (time.perf_counter() - started) / len(before)
                record = {"sweep": number, "objective": objective, "decrease": previous - objective}
                histories[t].append({**last[t], **record, "ranks": plan.ranks, "seconds": seconds})
                if report(t, histories[t][-1], self._joined(trains[t])) and reasons[t] == "max_sweeps":
                    reasons[t] = "stopped"
                if reasons[t] != "max_sweeps":
                    going.remove(t)
            if not going:
                break
        return [
            TrainResult(self._joined(own), history, reason, parts=own)
            for own, history, reason in zip(trains, histories, reasons, strict=True)
        ]

    def _joined(self, trains: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
        return tuple(map(np.ascontiguousarray, join_parts(self._parts, self._plan.dims, trains)))

    def _round(self, trains: Trains, going: Sequence[int], objectives: dict[int, float]) -> dict[int, dict[str, Any]]:
        """Learn all parts once; return the last record of every target. In the first round, note where it begins."""
        last: dict[int, dict[str, Any]] = {}
        for number in range(len(self._parts)):
            new = [t for t in going if t not in objectives]
            beside = {t: self._penalty([cores for k, cores in enumerate(trains[t]) if k != number]) for t in new}
            for t, result in self._improve(trains, number, going).items():
                if result.history:
                    first, last[t] = result.history[0], result.history[-1]
                    if t in beside:
                        objectives[t] = first["objective"] + first["decrease"] + beside[t]
        return last

    def _start(self, given: Sequence[Sequence[Sequence[Array]] | None]) -> Trains:
        """Trains with the ranks of the parts: given ones, or else the additive model's."""
        missing = [t for t, trains in enumerate(given) if trains is None]
        everything = additive_part(range(len(self._maps)))
        nothing = OtherParts((), self._maps, ())
        additive = dict(zip(missing, self._learn(everything, missing, [nothing] * len(missing)), strict=True))
        starts: Trains = []
        for t, trains in enumerate(given):
            shares = share_additive(additive[t].cores, self._parts) if trains is None else trains
            pairs, rng = zip(self._parts, shares, strict=True), np.random.default_rng(self._seeds[t])
            starts.append([own if part.additive else fit_ranks(own, part.ranks, rng) for part, own in pairs])
        return starts

    def _improve(self, trains: Trains, number: int, targets: Sequence[int]) -> dict[int, TrainResult]:
        """Learn one part of some targets, and replace it in their trains."""
        part = self._parts[number]
        others = [self._others(trains[t], t, number) for t in targets]
        starts = [None if part.additive else trains[t][number] for t in targets]
        learned = dict(zip(targets, self._learn(part, targets, others, starts), strict=True))
        for (t, result), rest in zip(learned.items(), others, strict=True):
            trains[t][number] = result.cores
            if not isinstance(rest, OtherParts) and self._block is not None:
                self._scores[t] = rest + part_scores(part, self._maps, result.cores, self._block.columns)
        return learned

    def _penalty(self, trains: Sequence[Sequence[Array]]) -> float:
        """Half of alpha times the squared norms of parts."""
        return 0.5 * self._plan.alpha * sum(TensorTrain(cores).norm() ** 2 for cores in trains)

    def _others(self, trains: Sequence[Sequence[Array]], target: int, number: int) -> Array | OtherParts:
        rest = [k for k in range(len(self._parts)) if k != number]
        if self._block is None:
            return OtherParts([self._parts[k] for k in rest], self._maps, [trains[k] for k in rest])
        columns = self._block.columns
        if target not in self._scores:
            every = OtherParts(self._parts, self._maps, trains)
            self._scores[target] = every.of(columns)
        own = part_scores(self._parts[number], self._maps, trains[number], columns)
        return self._scores[target] - own

    def _learn(
        self,
        part: Part,
        targets: Sequence[int],
        others: Sequence[Array | OtherParts],
        starts: Sequence[Sequence[Array] | None] | None = None,
    ) -> list[TrainResult]:
        if not targets:
            return []
        maps = MapList(self._maps.members(part.columns), additive=part.additive)
        settings = {"init": "given", "max_sweeps": _SWEEPS_OF_VISIT}
        if part.additive:  # it is solved at once
            settings = {"init": "linear", "max_sweeps": 0}
        plan = replace(self._plan, dims=maps.dims, ranks=part.ranks, tol=0.0, sampling=None, patience=0, **settings)  # type: ignore[arg-type]
        jobs = [TrainJob(self._seeds[t], None if starts is None else starts[i]) for i, t in enumerate(targets)]
        wanted = [PartTarget(self._targets[t], part.columns, rest) for t, rest in zip(targets, others, strict=True)]
        return train(self._rows, maps, plan, wanted, jobs, n_jobs=self._n_jobs)
