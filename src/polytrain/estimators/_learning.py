"""Train all trains of a fit, and again where the loss depends on the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Choice
from polytrain.decisions import Decision
from polytrain.learning.losses import Loss, get_loss
from polytrain.learning.schedule import Report, train
from polytrain.learning.settings import Settings, Start
from polytrain.learning.targets import Target
from polytrain.learning.trainer import TrainResult
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.progress import SweepProgress
from polytrain.rows import Rows

# How often a loss is adapted to the residuals, the sweeps after it, and the factor below which a change is ignored.
_MOST_REFINEMENTS, _REFINING_SWEEPS, _SAME = 4, 2, 1.2


@dataclass(frozen=True)
class Goal:
    """The targets of a fit, one per train, and the guides for the choice of maps, see `polytrain.choice.Task`.

    ``ends`` are fields of `FittedModel` that turn scores into predictions; trains may be learned jointly, and
    ``calibrates`` says whether scores become log-odds after the fit.
    """

    targets: Sequence[Target]
    guides: Sequence[Target]
    ends: dict[str, Any]
    joint: bool = False
    calibrates: bool = False

    @property
    def decision(self) -> Decision | None:
        """The rule that turns scores into classes; None for numbers."""
        return self.ends.get("decision")

    @property
    def sizes(self) -> NDArray:
        """Divisors of the targets of each train."""
        return np.broadcast_to(self.ends.get("size", 1.0), len(self.targets))


def fit_trains(
    estimator: Any,
    rows: Rows,
    validation: Rows | None,
    choice: Choice,
    goal: Goal,
    starts: Sequence[Start],
    watch: Report,
    measure: bool,
) -> tuple[list[TrainResult], Settings]:
    """Train, and again where the loss depends on the residuals; return the results and the last plan."""
    plan, maps, targets = choice.plan, choice.maps, goal.targets
    placed = rows.place(maps)
    watched = None if validation is None else validation.place(maps)
    results: list[TrainResult] = []
    for stage in range(_MOST_REFINEMENTS + 1):
        current, following = plan, starts
        if stage > 0:
            loss = _refined(get_loss(plan.loss), rows, maps, targets, results)
            if loss.spec == plan.loss or any(result.stop_reason == "stopped" for result in results):
                break
            plan = replace(plan, loss=loss.spec)
            current = replace(plan, max_sweeps=min(plan.max_sweeps, _REFINING_SWEEPS))
            is_linear = current.max_sweeps == 0 and current.init == "linear"  # it is solved anew
            pairs = zip(starts, results, strict=True)
            following = [start.following(None if is_linear else result.following, stage) for start, result in pairs]
        with SweepProgress(len(starts), current.max_sweeps, int(estimator.verbose), watch) as progress:
            options: dict[str, Any] = {"n_jobs": estimator.n_jobs, "report": progress.sweep_done, "measure": measure}
            later = train(placed, maps, current, targets, following, **options, validation=watched, parts=choice.parts)
        pasts = [result.history for result in results] if results else [[]] * len(later)
        results = [
            replace(result, history=[*past, *result.later_history(len(past))])
            for past, result in zip(pasts, later, strict=True)
        ]
    return results, plan


def _refined(loss: Loss, rows: Rows, maps: MapList, targets: Sequence[Target], results: Sequence[TrainResult]) -> Loss:
    """Return the loss with a scale that suits the residuals, or the loss itself if the scale hardly changes."""
    if not loss.needs_values:
        return loss
    sketch = rows.sketch
    scores = FittedModel(loss.spec, maps, [result.cores for result in results]).scores(sketch.X)
    losses: list[Any] = [loss]
    for target, score in zip(targets, scores, strict=True):
        wanted, weights = target.sketched(sketch.sums, sketch.weights)
        losses.append(loss.refined(wanted - score, weights))
    before, *scales = (astuple(refined)[-1] for refined in losses)
    after = min(scales)  # the sharpest one for all outputs
    sharpest = losses[1 + scales.index(after)]
    return loss if max(before / after, after / before) < _SAME else sharpest
