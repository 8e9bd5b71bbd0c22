"""Warm starts: the maps, settings and cores of the last fit."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import NDArray

from polytrain.choice import Choice, Chosen, Settings, Task, choose
from polytrain.models import FittedModel


def last_choice(model: FittedModel, plan: Settings, chosen: Chosen, task: Task, sizes: NDArray) -> Choice:
    """Return the choice of the last fit, with its maps and cores.

    Where scores become log-odds, alpha and scores of left-out rows are from a new choice on these maps that does not
    use the last cores: these may have learned from the same rows.
    """
    change = _change(model, task)
    if change is not None:
        raise ValueError(f"warm_start=True, but {change}, or set warm_start=False.")
    settings, calibrates = task.settings, task.calibrate
    if settings.joint and model.calibrated:  # the last fit chose to start with the squared loss
        settings, calibrates = replace(settings, loss="squared", joint=False), True
    changes = {"alpha": plan.alpha if settings.alpha == "auto" else settings.alpha}
    if settings.rank == "auto":
        last = settings.settled(model.maps.dims, rank=plan.ranks, **changes)
        if plan.init != "linear" or plan.max_sweeps:  # so that the linear model can be chosen again
            settings = replace(settings, rank=list(plan.ranks[1:-1]) or 1)
    else:
        last = settings.settled(model.maps.dims, **changes)
    # The trains of a classifier do not depend on how its scores were calibrated.
    factors = model.size / sizes if model.classes is None else sizes
    starts = [[train[0] * factor, *train[1:]] for train, factor in zip(model.cores, factors.tolist(), strict=True)]
    known = {"starts": starts, **{name: getattr(chosen, name) for name in ("basis", "bandwidth", "relevances")}}
    if not calibrates:
        return Choice(model.maps, last, **known)
    anew = choose(replace(task, settings=replace(settings, max_sweeps="auto", maps=model.maps), calibrate=True))
    now = anew.plan
    return replace(anew, plan=replace(last, alpha=now.alpha, loss=now.loss, joint=now.joint), **known)


def _change(model: FittedModel, task: Task) -> str | None:
    """Describe how rows and parameters need other maps or trains than those of the last fit, with a remedy."""
    settings, n_features, n_trains = task.settings, len(task.settings.bases), len(task.targets)
    if task.rows.columns_of_any_type != model.columns:
        return "the columns of these rows have other types or levels than those of the last fit. Keep them"
    if model.n_features != n_features:
        return f"the last fit has {model.n_features} features and this one {n_features}. Keep them"
    if model.n_trains != n_trains:
        return f"the last fit has {model.n_trains} trains and this one needs {n_trains}. Keep the number of outputs"
    for k, (m, basis, degree) in enumerate(zip(model.maps, settings.bases, settings.degrees, strict=True)):
        if basis not in ("auto", m.basis) or not (m.needs_values or m.n == degree + 1):
            return (
                f"the last fit has {m.n} functions of the basis {m.basis!r} for feature {k}, and this one asks for "
                f"basis={basis!r} and degree={degree}. Keep these parameters"
            )
    return None
