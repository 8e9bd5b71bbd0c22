"""From a choice to learned trains: all at once, and again where a loss depends on what is left of the targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.losses import Loss, get_loss
from polytrain.learning.parts import Part
from polytrain.learning.trainer import TrainJob, TrainPlan, TrainResult
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.progress import SweepProgress
from polytrain.rows import Rows
from polytrain.rows.backfitting import Backfitting
from polytrain.rows.placed import PlacedRows
from polytrain.rows.targets import Target

__all__ = ["Goal", "Learning"]

# How often a loss is made to suit the residuals, with so many sweeps, unless it changes by less than this factor.
_MOST_REFINEMENTS, _REFINING_SWEEPS, _SAME = 4, 2, 1.2


@dataclass(frozen=True)
class Goal:
    """What a fit is to learn.

    Attributes
    ----------
    targets : sequence of Target
        One per train.
    guides : sequence of Target
        What maps are chosen by, see `polytrain.choice.choose`.
    ends : dict
        What becomes of the scores: arguments of ``FittedModel.make``.
    """

    targets: Sequence[Target]
    guides: Sequence[Target]
    ends: dict[str, Any] = field(default_factory=dict)

    @property
    def sizes(self) -> NDArray:
        """What the targets of each train were divided by."""
        return np.broadcast_to(self.ends.get("size", 1.0), len(self.targets))


@dataclass
class Learning:
    """Learns the trains of a fit.

    Attributes
    ----------
    rows, validation : Rows
        What is learned from, and what says when to stop, if anything does.
    maps : MapList
    goal : Goal
    n_jobs, verbose
        As for the estimators.
    watch : callable
        Told the index of a train, the record of a sweep and the cores; True ends the sweeps of that train.
    parts : sequence of Part, optional
        What every train is a sum of.
    """

    rows: Rows
    validation: Rows | None
    maps: MapList
    goal: Goal
    n_jobs: int | None
    verbose: int
    watch: Callable[[int, dict, Sequence[NDArray]], Any]
    parts: Sequence[Part] | None = None

    def run(self, plan: TrainPlan, jobs: Sequence[TrainJob]) -> tuple[list[TrainResult], TrainPlan]:
        """Learn all trains; return them with the plan that was carried out last."""
        placed = self.rows.place(self.maps)
        watched = None if self.validation is None else self.validation.place(self.maps)
        results = self._learn(placed, watched, plan, jobs)
        for stage in range(1, _MOST_REFINEMENTS + 1):
            loss = self._refined(get_loss(plan.loss), results)
            if loss.spec == plan.loss or any(result.stop_reason == "stopped" for result in results):
                break
            plan = replace(plan, loss=loss.spec)
            again = replace(plan, max_sweeps=min(plan.max_sweeps, _REFINING_SWEEPS))
            going_on = [_following(job, again, result, stage) for job, result in zip(jobs, results, strict=True)]
            later = self._learn(placed, watched, again, going_on)
            results = [_joined(*pair) for pair in zip(results, later, strict=True)]
        return results, plan

    def _learn(
        self, placed: PlacedRows, watched: PlacedRows | None, plan: TrainPlan, jobs: Sequence[TrainJob]
    ) -> list[TrainResult]:
        results: list[TrainResult] = []
        with SweepProgress(len(jobs), plan.max_sweeps, self.verbose) as progress:

            def report(train: int, record: dict, cores: Sequence[NDArray]) -> Any:
                progress.sweep_done(train, record)
                return self.watch(train, record, cores)

            if self.parts is not None:
                seeds: list[int] = [job.seed for job in jobs]
                starts: list[Any] = [job.start for job in jobs]
                job = Backfitting(placed, self.maps, self.parts, plan, self.goal.targets, seeds, self.n_jobs)
                results.extend(job.learn(starts, report))
                for index in range(len(results)):
                    progress.train_done(index)
                return results
            for result in placed.learn(plan, self.goal.targets, jobs, self.n_jobs, report, watched):
                results.append(result)
                progress.train_done(len(results) - 1)
        return results

    def _refined(self, loss: Loss, results: Sequence[TrainResult]) -> Loss:
        """The loss that suits what the trains leave of the targets, or itself where it is much the same."""
        if not loss.needs_values:
            return loss
        sketch = self.rows.sketch
        scores = FittedModel.make(loss.spec, self.maps, [result.cores for result in results]).scores(sketch.X)
        found = []
        for target, score in zip(self.goal.targets, scores, strict=True):
            wanted, weights = target.sketched(sketch.sums, sketch.weights)
            found.append(loss.refined(wanted - score, weights))
        # The sharpest one for all outputs.
        sharpest = min(found, key=lambda one: astuple(one)[-1])  # type: ignore[call-overload]
        before, after = (astuple(one)[-1] for one in (loss, sharpest))  # type: ignore[call-overload]
        return loss if max(before / after, after / before) < _SAME else sharpest


def _following(job: TrainJob, plan: TrainPlan, result: TrainResult, stage: int) -> TrainJob:
    """Go on from a result; a linear model is solved anew."""
    path = job.checkpoint
    if path is not None:
        path = Path(path).with_suffix(f".{stage}{path.suffix}")
    is_linear = plan.max_sweeps == 0 and plan.init == "linear"
    return TrainJob(job.seed, None if is_linear else result.following, path)


def _joined(first: TrainResult, second: TrainResult) -> TrainResult:
    """The history of both, and the cores of the second."""
    shift = len(first.history)
    later = [{**record, "sweep": record["sweep"] + shift} for record in second.history]
    return replace(second, history=[*first.history, *later])
