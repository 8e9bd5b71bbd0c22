"""The choice with many rows: leave-one-out errors on a sample propose maps, and trains on held-out rows decide.

Every rung starts from the trains of the one below, so that few sweeps are spent at high ranks. With few rows, each fold
is held out in turn; with many, one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import Evidence, simplest, strongest
from polytrain.choice.calibration import calibrate
from polytrain.choice.few_rows import LINEAR, choose_exactly
from polytrain.choice.ladder import Ladder, Rung
from polytrain.choice.likelihood import ALPHA_SHARES, finish_reason, is_better, likelihood
from polytrain.choice.map_search import MapTrial
from polytrain.choice.relevance import GROWTH, grown
from polytrain.choice.task import Choice, HeldOut, Task
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import Part, additive_part, joined_ranks, with_rank
from polytrain.learning.start import FEW_ROWS
from polytrain.tensor import clip_ranks

__all__ = ["choose_by_climbing"]

# Beyond this rank, the next one is tried only if the error has fallen by this fraction.
_HIGH_RANK, _LEAST_GAIN = 16, 0.02
# Sweeps of the last fit, more where the ladder has learned from some of the rows; and its rounds over groups of
# columns: each depends on the others.
_LAST_SWEEPS, _LAST_ROUNDS = (2, 4), 4
# Search for alpha: factor and number of steps; smaller alphas would be lost in rounding errors.
_ALPHA_STEP, _MOST_ALPHA_STEPS, _LEAST_ALPHA = sqrt(10.0), 8, 1e-12
# With fewer held-out rows than these, a difference must be significant; no error may grow by more than this factor.
_WEAK_EVIDENCE, _NOT_MUCH = 500, 1.005
# How often sizes of the columns are learned from trains.
_RESIZINGS = 2
# Standard errors by which classes learned by themselves must be better than classes learned together.
_CLEARLY = 2.0


def choose_by_climbing(task: Task, finalists: Sequence[MapTrial]) -> Choice:
    """Choose on held-out rows among a few maps, the simplest first."""
    settings = task.settings
    ladders = [Ladder(task, trial) for trial in finalists]
    if any(ladder.is_slow for ladder in ladders):
        kinds = [[ladder for ladder in ladders if (ladder.trial.sizes is None) == equal] for equal in (True, False)]
        ladders = [some[simplest([ladder.trial.evidence for ladder in some])] for some in kinds if some]
    for ladder in ladders:
        linear = ladder.learn(LINEAR, ladder.alpha)
        rank = ladder.first_rank() if settings.rank == "auto" else settings.rank
        ladder.rungs = [linear, ladder.learn(rank, ladder.alpha, linear)]
    ladder = ladders[strongest([ladder.rungs[-1].evidence.error for ladder in ladders])]
    if settings.rank == "auto":
        _climb_on(ladder)
    if _may_start_exactly(task, ladder):
        ladder = _start_exactly(task, finalists, ladder)
    ladder = _resize(task, ladder)
    task.explain_maps(ladder.trial, ladder.alpha)
    rungs = ladder.rungs
    # The linear model has a rank and a start of its own: it is out where the user gives others.
    if settings.rank != "auto" or settings.init in ("given", "random"):
        rungs = rungs[1:]
    rung = rungs[strongest([rung.evidence.error for rung in rungs])]
    if ladder.may_walk and not ladder.is_slow:
        rung = _walk_alpha(ladder, rung)
        if settings.rank == "auto":
            rung = _climb_further(ladder, rung)
    ladder, rung = _finished(task, ladder, rung)
    separate = _separately(task, finalists, rung.evidence) if _may_be_separate(task) else None
    return _conclude(task, ladder, rung) if separate is None else separate


def _resize(task: Task, ladder: Ladder) -> Ladder:
    """Learn the sizes of the columns anew from the best trains of the ladder, as long as the held-out error falls."""
    best = ladder, min(ladder.rungs, key=lambda rung: rung.evidence.error)
    is_open = task.learns_sizes and task.settings.alpha == task.settings.rank == "auto"
    is_weak = len(best[1].evidence.squares) < _WEAK_EVIDENCE or best[1].rank == LINEAR or task.n_folds > 1
    if not is_open or is_weak or ladder.is_slow or not ladder.is_quick(best[1].rank):
        return ladder
    for _ in range(_RESIZINGS):
        (resized, rung), squares = best, best[0].effects(best[1])
        if not (np.isfinite(squares).all() and squares.any()):
            break
        tried: list[tuple[Ladder, Rung]] = []
        powers, larger = (grown(resized.trial, squares, factor) for factor in GROWTH[:2])
        while len(tried) <= len(powers):
            better = strongest([after.evidence.error for _, after in tried]) if len(tried) == len(powers) else 0
            above, below = resized.resized(rung, [*powers, larger[better]][len(tried)])
            tried.append((above, above.learn(rung.rank, below.alpha, below, "relevance")))
        best = min([best, *tried], key=lambda pair: pair[1].evidence.error)
        if simplest([rung.evidence, best[1].evidence]) == 0:
            break
    if best[0] is not ladder:
        best[0].rungs = [*ladder.rungs[:1], best[1]]
    return best[0]


def _climb_on(ladder: Ladder) -> None:
    """Try higher ranks as long as the error falls; or lower ones, if the first was no better than the linear model."""
    linear, first = ladder.rungs
    is_worse = first.evidence.error > linear.evidence.error
    if is_worse:
        ladder.rungs.pop()
    for rank in ladder.ranks():
        if (rank < first.rank) if is_worse else (rank > first.rank):
            ladder.rungs.append(ladder.learn(rank, ladder.alpha, ladder.rungs[-1]))
            if rank == _HIGH_RANK and ladder.is_slow and ladder.may_walk:  # farther up, a step takes long
                ladder.rungs[-1] = _walk_alpha(ladder, ladder.rungs[-1])
                ladder.alpha = ladder.rungs[-1].alpha
            last, before = (tried.evidence.error for tried in (ladder.rungs[-1], ladder.rungs[-2]))
            if last > before or (rank >= _HIGH_RANK and last > (1.0 - _LEAST_GAIN) * before):
                break
    if is_worse:  # where the linear model is excluded, this may be the best, or the only one
        ladder.rungs.append(first)


def _may_start_exactly(task: Task, ladder: Ladder) -> bool:
    """Whether sweeps may start from the exact solution for some rows."""
    settings = task.settings
    is_open = settings.init == settings.rank == settings.max_sweeps == "auto" and not settings.patience
    known = task.guides is task.targets and task.parts is None and get_loss(settings.loss).quadratic
    return bool(is_open and known and task.n_rows > FEW_ROWS)


def _start_exactly(task: Task, finalists: Sequence[MapTrial], ladder: Ladder) -> Ladder:
    """Try starts from the exact solution on the maps of the ladder, and on those with the best leave-one-out error.

    With few rows, sweeps from the linear model end in worse minima than from there.
    """
    best = min(finalists, key=lambda trial: trial.error)
    ladders = [ladder] if ladder.trial is best or ladder.is_slow else [ladder, Ladder(task, best)]
    for tried in ladders:
        rank, linear = tried.ranks()[-1], ladder.rungs[0]
        trains = tried.exact_trains(rank)
        if trains is None:
            continue
        rung = tried.learn(rank, tried.alpha, linear._replace(rank=rank, trains=[trains]), "exact")
        if rung.evidence.error < min(other.evidence.error for other in ladder.rungs):
            tried.rungs = [linear, rung]
            ladder = tried
    return ladder


def _walk_alpha(ladder: Ladder, rung: Rung) -> Rung:
    """Go to larger alphas as long as the error does not grow, or else to smaller ones as long as it falls.

    With few rows, it must fall significantly.
    """
    clearly = 1.0 if len(rung.evidence.squares) < _WEAK_EVIDENCE else 0.0
    for factor in (_ALPHA_STEP, 1.0 / _ALPHA_STEP):
        start = least = rung
        for _ in range(_MOST_ALPHA_STEPS):
            alpha = rung.alpha * factor
            if alpha < _LEAST_ALPHA:
                break
            following = ladder.learn(rung.rank, alpha, None if rung.rank == LINEAR else rung, "alpha")
            # Always compared with the best so far: small losses would add up.
            stronger, weaker = (following, least) if factor > 1 else (least, following)
            if (simplest([stronger.evidence, weaker.evidence], clearly) == 0) != (factor > 1):
                break
            if following.evidence.error > _NOT_MUCH * least.evidence.error:  # even if it is not significant
                break
            rung = following
            least = min(least, rung, key=lambda tried: tried.evidence.error)
        if rung is not start:
            break
    return rung


def _finished(task: Task, ladder: Ladder, rung: Rung) -> tuple[Ladder, Rung]:
    """Add sweeps with the logistic loss, if held-out rows favour them."""
    settings, held_out = task.settings, _held_out(task, ladder, rung)
    is_open = settings.init == settings.alpha == settings.max_sweeps == "auto" and not settings.patience
    logistic = ladder.with_loss("logistic", task.is_joint)
    if held_out is None or not (is_open and task.may_finish and task.parts is None and logistic.is_quick(rung.rank)):
        return ladder, rung
    size, _ = calibrate(held_out.scores, held_out.label_weights, held_out.n_distinct, task.targets, task.is_joint)
    trains: list[list[Sequence[NDArray]]] = [
        [[factor * cores[0], *cores[1:]] for factor, cores in zip(size, fold, strict=True)] for fold in rung.trains
    ]
    below = None if rung.rank == LINEAR else rung._replace(trains=trains)
    before = best = likelihood(task, held_out)
    finished = None
    for share in ALPHA_SHARES:
        tried = logistic.learn(rung.rank, share * rung.alpha, below, "logistic")
        after = likelihood(task, held_out._replace(scores=tried.held_out.scores), "logistic")
        if is_better(best, after):
            best, finished = after, tried
    if finished is None:
        return ladder, rung
    task.reasons.append(finish_reason(before, best))
    return logistic, finished


def _climb_further(ladder: Ladder, rung: Rung) -> Rung:
    """Try higher ranks with a stronger alpha than on the way up: they may need it."""
    alpha = ladder.alpha
    while rung.rank != LINEAR and rung.alpha > alpha:
        alpha, reached = rung.alpha, rung
        for rank in [rank for rank in ladder.ranks() if rank > rung.rank]:
            following = ladder.learn(rank, alpha, rung)
            if following.evidence.error >= rung.evidence.error:
                break
            rung = following
        if rung is not reached:
            rung = _walk_alpha(ladder, rung)
    return rung


def _may_be_separate(task: Task) -> bool:
    """Whether classes to be learned jointly might be learned better, and fast, one by one."""
    settings = task.settings
    is_open = settings.init == settings.alpha == settings.rank == settings.max_sweeps == "auto"
    return is_open and not settings.patience and settings.joint and len(task.targets) > 1 and task.n_rows <= FEW_ROWS


def _separately(task: Task, finalists: Sequence[MapTrial], together: Evidence) -> Choice | None:
    """Return the calibrated exact solution if it is significantly better on left-out rows.

    It has learned from all rows but one, and what it is compared with from four fifths of them.
    """
    settings = replace(task.settings, loss="squared", joint=False)
    task = replace(task, settings=settings, calibrate=True, may_finish=True, reasons=[])
    choice = choose_exactly(task, finalists)
    separate, _ = likelihood(task, choice.held_out, choice.plan.loss)  # type: ignore[arg-type]
    if simplest([together, separate], _CLEARLY) == 0:
        return None
    why = f"the exact solution had a log loss of {separate.error:.4g} on left-out rows, and sweeps {together.error:.4g}"
    return replace(choice, reasons=(*choice.reasons, why))


def _conclude(task: Task, ladder: Ladder, rung: Rung) -> Choice:
    """Learn from all rows with the settings of a rung, starting from its trains."""
    settings, maps = task.settings, ladder.maps
    parts: tuple[Part, ...] | None
    held_out = _held_out(task, ladder, rung)
    how = f"on held-out rows, mean loss {rung.evidence.error:.4g}"
    if rung.rank == LINEAR:
        task.reasons.append(
            f"without interactions, the linear model in these functions is used {how}"
            if task.is_additive
            else f"the linear model is used: no rank was better {how}"
        )
        parts = None if task.parts is None else (additive_part(range(len(maps))),)
        plan = replace(settings.linear(maps.dims, rung.alpha), **ladder.loss)
        return task.conclude(ladder.trial, maps, plan, held_out=held_out, parts=parts)
    task.reasons.append(f"rank {rung.rank} and alpha {rung.alpha:.2g} were the best {how}")
    parts = None if task.parts is None else with_rank(task.parts, maps.dims, rung.rank)
    ranks = clip_ranks(maps.dims, rung.rank) if parts is None else joined_ranks(parts, maps.dims)
    changes: dict[str, Any] = {**ladder.loss, "rank": ranks, "alpha": rung.alpha}
    starts = None
    if settings.init == "auto":
        starts, changes["init"] = rung.trains[0], "given"
        if settings.max_sweeps == "auto":
            usual = _LAST_SWEEPS[ladder.is_slow] if parts is None else _LAST_ROUNDS
            changes["max_sweeps"] = settings.n_sweeps if settings.patience else usual
    plan = settings.settled(maps.dims, **changes)
    return task.conclude(ladder.trial, maps, plan, starts=starts, held_out=held_out, parts=parts)


def _held_out(task: Task, ladder: Ladder, rung: Rung) -> HeldOut | None:
    return ladder.left_out(rung.held_out) if task.needs_held_out else None
