"""Train the trains of a fit: by themselves, jointly, or as sums over groups of columns. Only `train` schedules them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from polytrain.arrays import Array
from polytrain.learning.engines import open_engine
from polytrain.learning.gauge import fit_ranks
from polytrain.learning.helpers import are_idle, may_borrow_helpers, spread
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import Part, additive_part, join_parts, share_additive, sum_scores
from polytrain.learning.placed import PlacedRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.sweep import ROUNDING
from polytrain.learning.targets import ClassTarget, JointTarget, PartTarget, Target
from polytrain.learning.trainer import TrainResult, learn_train, shared_linear_gram
from polytrain.maps import MapList
from polytrain.tensor import TensorTrain

# Operations of an update of a small core; operations of all trains below which no process is started, or even sent a
# message.
_UPDATE_WORK, _SMALL_WORK, _TINY_WORK = 2e6, 3e9, 1e9
# A visit of a class or a part is a sweep there and back, so that every core is updated; linear models are solved at
# each visit.
_SWEEPS_OF_VISIT, _LINEAR_ROUNDS = 2, 5

#: Called with the index of a train, the record of one of its sweeps and its cores; True ends the sweeps of that train.
Report = Callable[[int, dict[str, Any], Sequence[Array]], Any]
Trains = list[list[Sequence[Array]]]  # of every target, one per part


def silent(index: int, record: dict[str, Any], cores: Sequence[Array]) -> None:
    """Ignore a sweep."""


def train(
    rows: PlacedRows,
    maps: MapList,
    plan: Settings,
    targets: Sequence[Any],
    starts: Sequence[Start],
    *,
    n_jobs: int | None = None,
    report: Report = silent,
    validation: PlacedRows | None = None,
    parts: Sequence[Part] | None = None,
    measure: bool = False,
) -> list[TrainResult]:
    """Train one tensor train per target, with one map per column and one start per target.

    If the plan is joint, classes are learned in turn, each given the scores of the others. With ``parts``, every train
    is their sum, and a start has a train for every part. The ``validation`` rows decide when to stop. ``measure`` asks
    for second moments at every core, which sums and joint trains do not have. ``n_jobs`` is as for joblib; results do
    not depend on it.
    """
    if parts is not None:
        return _Backfitting(rows, maps, parts, plan, targets, starts, n_jobs).learn(report)
    if plan.joint and len(targets) > 1:
        each = partial(train, rows, maps, n_jobs=n_jobs, validation=validation)
        return _train_jointly(each, maps, replace(plan, joint=False), targets, starts, report)
    n_trains, most, gram = len(starts), rows.n_processes(plan), None
    if most:
        rows, validation = rows.here(), None if validation is None else validation.here()
    if _shares_gram(plan, targets, starts):
        with open_engine(rows.problem(plan, maps, targets[0]), get_loss(plan.loss), maps) as engine:
            gram = shared_linear_gram(engine, maps)
    calls, results = list(zip(targets, starts, strict=True)), list[TrainResult]()
    shared = plan, maps, (rows, validation), {"linear_gram": gram, "measure": measure}
    n_processes = min(effective_n_jobs(n_jobs), most) if most else 1
    # With many more cores than trains, the rows of each train are shared by all of them in turn.
    n_sharing = n_processes if n_processes >= 2 * n_trains and may_borrow_helpers() else 1
    if most and n_sharing == 1 and _pays(plan, maps.dims, len(rows.block.y), min(n_processes, n_trains), n_trains):
        for index, result in enumerate(spread(_learn_one, shared, calls, n_processes)):
            for record in result.history:
                report(index, record, result.cores)
            results.append(result)
        return results
    for index, call in enumerate(calls):
        results.append(_learn_one(*shared, *call, report=partial(report, index), n_processes=n_sharing))
    return results


def _learn_one(
    plan: Settings, maps: MapList, placed: Sequence[Any], options: dict[str, Any], target: Any, start: Start, **own: Any
) -> TrainResult:
    """Learn one train, perhaps in a process of its own; the options are those of `learn_train`."""
    rows, watched = placed
    validation = None if watched is None else watched.problem(plan, maps, target)
    return learn_train(plan, maps, rows.problem(plan, maps, target), start, validation=validation, **options, **own)


def _shares_gram(plan: Settings, targets: Sequence[Target], starts: Sequence[Start]) -> bool:
    """Whether several linear starts share their Gram matrix: it is then computed once."""
    linear = plan.init == "linear" and get_loss(plan.loss).quadratic and any(start.cores is None for start in starts)
    return linear and len(targets) > 1 and all(target.keeps_all for target in targets)


def _pays(plan: Settings, dims: Sequence[int], n_rows: int, n_processes: int, n_trains: int) -> bool:
    """Whether to spread trains over processes: starting one takes longer than a small train."""
    if n_processes == 1:
        return False
    n_unknowns = max(a * n * b for a, n, b in zip(plan.ranks, dims, plan.ranks[1:], strict=False))
    per_train: float = len(dims) * plan.max_sweeps * (_UPDATE_WORK + n_rows * n_unknowns * max(plan.ranks))
    return per_train * n_trains >= (_TINY_WORK if are_idle(n_processes) else _SMALL_WORK)


# --- classes together -------------------------------------------------------------------------------------------------


def _train_jointly(
    each: Callable[..., list[TrainResult]],
    maps: MapList,
    plan: Settings,
    targets: Sequence[ClassTarget],
    starts: Sequence[Start],
    report: Report,
) -> list[TrainResult]:
    """Train all classes so that the probabilities of their softmax fit the labels.

    Every visit of a class lowers the objective of the whole, the mean of minus the log-probability of the right class
    plus alpha / 2 times the squared norms of all trains, with the other trains fixed.
    """
    is_linear = plan.max_sweeps == 0 and plan.init == "linear" and any(start.cores is None for start in starts)
    trains: list[Sequence[Array]] = [start.cores for start in starts if start.cores is not None]
    histories: list[list[dict[str, Any]]] = [[] for _ in starts]
    reason = "max_sweeps"
    if len(trains) < len(starts):
        first, plain = replace(plan, max_sweeps=0, patience=0), [Start(start.seed) for start in starts]
        if is_linear:  # from zero, so that no class starts with what all classes share
            trains = [[np.zeros((1, n, 1)) for n in maps.dims]] * len(starts)
        elif plan.init == "linear":
            trains = [result.cores for result in _train_jointly(each, maps, first, targets, plain, silent)]
        else:
            trains = [result.cores for result in each(first, targets, plain)]
    n_rounds = _LINEAR_ROUNDS if is_linear else -(-plan.max_sweeps // _SWEEPS_OF_VISIT)
    visit = replace(plan, max_sweeps=0 if is_linear else _SWEEPS_OF_VISIT)
    for number in range(n_rounds):
        decreases = []
        for index, (own, start) in enumerate(zip(targets, starts, strict=True)):
            target = JointTarget(own, index, maps, list(trains))
            following = start.following(None if is_linear else trains[index], number)
            history = histories[index]

            def numbered(_: int, record: dict[str, Any], cores: Any, index: int = index, n: int = len(history)) -> Any:
                return report(index, {**record, "sweep": record["sweep"] + n}, cores)

            (result,) = each(visit, [target], [following], report=numbered)
            trains[index] = result.cores
            history += result.later_history(len(history))
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


# --- sums of trains over groups of columns ----------------------------------------------------------------------------


@dataclass
class _Backfitting:
    """Learns the parts of all targets in rounds, each part with the scores of the others as its offset.

    A sweep of the plan is a round over all parts, each swept there and back. No step raises the whole objective.
    """

    _rows: PlacedRows
    _maps: MapList
    _parts: Sequence[Part]
    _plan: Settings
    _targets: Sequence[Target]
    _starts: Sequence[Start]
    _n_jobs: int | None

    def __post_init__(self) -> None:
        self._block = self._rows.block if self._rows.n_processes(self._plan) else None
        self._scores: dict[int, Array] = {}  # of all parts together, by target, where rows are in one place

    def learn(self, report: Report) -> list[TrainResult]:
        """Learn until the objective hardly changes. A start has a train per part; None is the additive model."""
        plan, trains = self._plan, self._first_trains()
        histories: list[list[dict[str, Any]]] = [[] for _ in trains]
        reasons, objectives = ["max_sweeps"] * len(trains), dict[int, float]()
        # An additive model is solved by the start.
        going = [] if all(part.additive for part in self._parts) else list(range(len(trains)))
        for number in range(1, plan.max_sweeps + 1):
            started, before = time.perf_counter(), {t: list(trains[t]) for t in going}
            last = self._round(trains, going, objectives)
            for t in list(going):
                objective, previous = last[t]["loss"] + self._penalty(trains[t]), objectives[t]
                if objective > previous * (1.0 + ROUNDING):
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
        return tuple(map(np.ascontiguousarray, join_parts(self._parts, self._maps.dims, trains)))

    def _round(self, trains: Trains, going: Sequence[int], objectives: dict[int, float]) -> dict[int, dict[str, Any]]:
        """Learn all parts once; return the last record of every target. In the first round, note where it begins."""
        last: dict[int, dict[str, Any]] = {}
        for number, part in enumerate(self._parts):
            others = [self._others(trains[t], t, number) for t in going]
            results = self._learn(part, going, others, [None if part.additive else trains[t][number] for t in going])
            for t, rest, result in zip(going, others, results, strict=True):
                trains[t][number] = result.cores
                if self._block is not None:
                    self._scores[t] = rest + sum_scores([part], self._maps, [result.cores], self._block.columns)
                if result.history:
                    first, last[t] = result.history[0], result.history[-1]
                    if t not in objectives:
                        beside = self._penalty([*trains[t][:number], *trains[t][number + 1 :]])
                        objectives[t] = first["objective"] + first["decrease"] + beside
        return last

    def _first_trains(self) -> Trains:
        """Trains with the ranks of the parts: given ones, or else the additive model's."""
        missing = [t for t, start in enumerate(self._starts) if start.cores is None]
        everything = additive_part(range(len(self._maps)))
        nothing, none = [partial(sum_scores, (), self._maps, ())] * len(missing), [None] * len(missing)
        additive = dict(zip(missing, self._learn(everything, missing, nothing, none), strict=True))
        first: Trains = []
        for t, start in enumerate(self._starts):
            shares = share_additive(additive[t].cores, self._parts) if start.cores is None else start.cores
            pairs, rng = zip(self._parts, shares, strict=True), np.random.default_rng(start.seed)
            first.append([own if part.additive else fit_ranks(own, part.ranks, rng) for part, own in pairs])
        return first

    def _penalty(self, trains: Sequence[Sequence[Array]]) -> float:
        """Half of alpha times the squared norms of parts."""
        return float(0.5 * self._plan.alpha * sum(TensorTrain(cores).norm() ** 2 for cores in trains))

    def _others(self, trains: Sequence[Sequence[Array]], target: int, number: int) -> Any:
        rest = [k for k in range(len(self._parts)) if k != number]
        if self._block is None:
            return partial(sum_scores, [self._parts[k] for k in rest], self._maps, [trains[k] for k in rest])
        columns = self._block.columns
        if target not in self._scores:
            self._scores[target] = sum_scores(self._parts, self._maps, trains, columns)
        return self._scores[target] - sum_scores([self._parts[number]], self._maps, [trains[number]], columns)

    def _learn(
        self, part: Part, targets: Sequence[int], others: Sequence[Any], starts: Sequence[Sequence[Array] | None]
    ) -> list[TrainResult]:
        """Learn one part of some targets."""
        if not targets:
            return []
        maps = MapList(self._maps.members(part.columns), additive=part.additive)
        init, sweeps = ("linear", 0) if part.additive else ("given", _SWEEPS_OF_VISIT)  # the former is solved at once
        plan = replace(self._plan, rank=part.ranks, init=init, max_sweeps=sweeps, tol=0.0, patience=0)
        begins = [Start(self._starts[t].seed, cores) for t, cores in zip(targets, starts, strict=True)]
        wanted = [PartTarget(self._targets[t], part.columns, rest) for t, rest in zip(targets, others, strict=True)]
        return train(self._rows, maps, plan, wanted, begins, n_jobs=self._n_jobs)
