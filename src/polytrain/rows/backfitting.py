"""Learn a sum of trains, each over some of the columns, one after the other in rounds.

While one part is learned, the scores of all others are where its own scores begin. So a part is learned by the sweeps
that learn any train, wherever the rows are, and no step raises the objective of the whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.gauge import fit_ranks
from polytrain.learning.parts import Part, additive_part, join_parts, part_scores, share_additive
from polytrain.learning.trainer import TrainJob, TrainPlan, TrainResult
from polytrain.maps import MapList
from polytrain.maps.all_linear import all_linear
from polytrain.rows.part_target import KnownScores, OtherParts, PartTarget
from polytrain.rows.placed import PlacedRows, Report
from polytrain.rows.targets import Target

__all__ = ["Backfitting", "SumResult"]

# Through the cores of a part and back again.
_SWEEPS = 2
# A relative rise of the objective over a round that rounding explains, also in float32.
_ROUNDING = 1e-5

Trains = list[list[Sequence[NDArray]]]  # of every target, one per part


@dataclass(frozen=True)
class SumResult(TrainResult):
    """A learned sum as one train, with one record per round, and the trains of its parts."""

    trains: Sequence[Sequence[NDArray]] = ()

    @property
    def following(self) -> Sequence[Sequence[NDArray]]:
        """The trains of the parts."""
        return self.trains


class Backfitting:
    """Learns the parts of all targets in rounds.

    Parameters
    ----------
    rows : PlacedRows
    maps : MapList
        Of all columns.
    parts : sequence of Part
        With their ranks.
    plan : TrainPlan
        Its sweeps are rounds over all parts, each of which is swept through there and back.
    targets : sequence of Target
        One per sum of trains.
    seeds : sequence of int
    n_jobs : int or None
    """

    def __init__(
        self,
        rows: PlacedRows,
        maps: MapList,
        parts: Sequence[Part],
        plan: TrainPlan,
        targets: Sequence[Target],
        seeds: Sequence[int],
        n_jobs: int | None,
    ) -> None:
        self._rows, self._maps, self._parts, self._plan = rows, maps, parts, plan
        self._targets, self._seeds, self._n_jobs = targets, seeds, n_jobs
        self._block = rows.in_one_place(plan)
        self._scores: dict[int, NDArray] = {}  # of all parts together, by target, where rows are in one place

    def learn(self, starts: Sequence[Sequence[Sequence[NDArray]] | None], report: Report) -> list[SumResult]:
        """Learn until the objective hardly changes over a round.

        Parameters
        ----------
        starts : sequence
            For every target the trains of all parts, or None to begin at the additive model.
        report : callable
            Told the index of a target, the record of a round and the cores of the sum; True ends the rounds.
        """
        plan, trains = self._plan, self._start(starts)
        histories: list[list[dict]] = [[] for _ in trains]
        reasons, objectives = ["max_sweeps"] * len(trains), dict[int, float]()
        # Nothing but an additive part is solved by the start.
        going = [] if all(part.additive for part in self._parts) else list(range(len(trains)))
        for number in range(1, plan.max_sweeps + 1):
            started, before = time.perf_counter(), {t: list(trains[t]) for t in going}
            last = self._round(trains, going, objectives)
            for t in list(going):
                objective, previous = last[t]["loss"] + self._penalty(trains[t]), objectives[t]
                is_done = abs(previous - objective) <= plan.tol * abs(previous)
                if objective > previous * (1.0 + _ROUNDING):
                    # Only badly scaled features get here. Keep the better trains and say why it ends.
                    trains[t], objective, reasons[t] = before[t], previous, "rounding"
                elif is_done:
                    reasons[t] = "tolerance"
                objectives[t] = objective
                seconds = (time.perf_counter() - started) / len(before)
                record = {"sweep": number, "objective": objective, "decrease": previous - objective}
                histories[t].append({**last[t], **record, "ranks": plan.ranks, "seconds": seconds})
                is_last = report(t, histories[t][-1], self._joined(trains[t]))
                if is_last and reasons[t] == "max_sweeps":
                    reasons[t] = "stopped"
                if reasons[t] != "max_sweeps":
                    going.remove(t)
            if not going:
                break
        found = zip(map(self._joined, trains), histories, reasons, trains, strict=True)
        return [SumResult(cores, history, reason, trains=own) for cores, history, reason, own in found]

    def _joined(self, trains: Sequence[Sequence[NDArray]]) -> tuple[NDArray, ...]:
        return tuple(map(np.ascontiguousarray, join_parts(self._parts, self._plan.dims, trains)))

    def _round(self, trains: Trains, going: Sequence[int], objectives: dict[int, float]) -> dict[int, dict]:
        """Learn all parts once; return the last record of every target. In the first round, note where it begins."""
        last: dict[int, dict] = {}
        for number in range(len(self._parts)):
            new = [t for t in going if t not in objectives]
            beside = {t: self._penalty([cores for k, cores in enumerate(trains[t]) if k != number]) for t in new}
            for t, result in self._improve(trains, number, going).items():
                if result.history:
                    first, last[t] = result.history[0], result.history[-1]
                    if t in beside:
                        objectives[t] = first["objective"] + first["decrease"] + beside[t]
        return last

    def _start(self, given: Sequence[Sequence[Sequence[NDArray]] | None]) -> Trains:
        """Trains with the ranks of the parts: given ones, or else the additive model's."""
        missing = [t for t, trains in enumerate(given) if trains is None]
        everything = additive_part(range(len(self._maps)))
        nothing = OtherParts((), self._maps, ())
        found = dict(zip(missing, self._learn(everything, missing, [nothing] * len(missing)), strict=True))
        starts: Trains = []
        for t, trains in enumerate(given):
            shares = share_additive(found[t].cores, self._parts) if trains is None else trains
            rng = np.random.default_rng(self._seeds[t])
            starts.append(
                [
                    cores if part.additive else fit_ranks(cores, part.ranks, rng)
                    for part, cores in zip(self._parts, shares, strict=True)
                ]
            )
        return starts

    def _improve(self, trains: Trains, number: int, targets: Sequence[int]) -> dict[int, TrainResult]:
        """Learn one part of some targets, and put what came of it into their trains."""
        part = self._parts[number]
        others = [self._others(trains[t], t, number) for t in targets]
        starts = [None if part.additive else trains[t][number] for t in targets]
        learned = dict(zip(targets, self._learn(part, targets, others, starts), strict=True))
        for (t, result), rest in zip(learned.items(), others, strict=True):
            trains[t][number] = result.cores
            if isinstance(rest, KnownScores) and self._block is not None:
                self._scores[t] = rest.scores + part_scores(part, self._maps, result.cores, self._block.columns)
        return learned

    def _penalty(self, trains: Sequence[Sequence[NDArray]]) -> float:
        """Half of alpha times the squared norms of parts."""
        return 0.5 * self._plan.alpha * sum(_squared_norm(cores) for cores in trains)

    def _others(self, trains: Sequence[Sequence[NDArray]], target: int, number: int) -> KnownScores | OtherParts:
        rest = [k for k in range(len(self._parts)) if k != number]
        if self._block is None:
            return OtherParts([self._parts[k] for k in rest], self._maps, [trains[k] for k in rest])
        columns = self._block.columns
        if target not in self._scores:
            every = OtherParts(self._parts, self._maps, trains)
            self._scores[target] = every.of(columns, np.arange(columns.shape[1]))
        own = part_scores(self._parts[number], self._maps, trains[number], columns)
        return KnownScores(self._scores[target] - own)

    def _learn(
        self,
        part: Part,
        targets: Sequence[int],
        others: Sequence[KnownScores | OtherParts],
        starts: Sequence[Sequence[NDArray] | None] | None = None,
    ) -> list[TrainResult]:
        if not targets:
            return []
        maps = MapList(self._maps.members(part.columns))
        settings = {"init": "given", "max_sweeps": _SWEEPS}
        if part.additive:  # it is solved at once
            maps, settings = all_linear(maps), {"init": "linear", "max_sweeps": 0}
        plan = replace(self._plan, dims=maps.dims, ranks=part.ranks, tol=0.0, sampling=None, patience=0, **settings)  # type: ignore[arg-type]
        jobs = [TrainJob(self._seeds[t], None if starts is None else starts[i]) for i, t in enumerate(targets)]
        wanted = [PartTarget(self._targets[t], part.columns, rest) for t, rest in zip(targets, others, strict=True)]
        return list(self._rows.seen_by(maps).learn(plan, wanted, jobs, self._n_jobs, _silent))


def _squared_norm(cores: Sequence[NDArray]) -> float:
    environment = np.ones((1, 1))
    for core in cores:
        half = np.tensordot(environment, core, axes=(0, 0))
        environment = np.tensordot(half, core, axes=((0, 1), (0, 1)))
    return float(environment[0, 0])


def _silent(index: int, record: dict, cores: Any) -> None:
    """Say nothing."""
