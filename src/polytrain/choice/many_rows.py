"""Many rows: leaving rows out of a sample proposes maps, and trains of growing rank on held-out rows decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from polytrain.choice.alphas import Evidence, simplest, strongest
from polytrain.choice.calibration import fit_softmax
from polytrain.choice.few_rows import choose_exactly
from polytrain.choice.ladder import LINEAR, Ladder, Rung
from polytrain.choice.maps import MapTrial
from polytrain.choice.result import Choice, HeldOut
from polytrain.choice.task import Task
from polytrain.learning.parts import additive_part, joined_ranks, with_rank
from polytrain.learning.schedule import log_losses
from polytrain.learning.start import FEW_ROWS
from polytrain.tensor import clip_ranks

__all__ = ["choose_by_climbing"]

# Kinds of maps are compared at this rank.
_FIRST_RANK = 4
_LAST_SWEEPS = 2
# Rounds over groups of columns: each waits for what the others say.
_LAST_ROUNDS = 4
_ALPHA_STEP, _MOST_ALPHA_STEPS = sqrt(10.0), 8
# Fewer held-out rows than these must speak clearly; but nothing is worth an error that grows by more than this factor.
_WEAK_EVIDENCE, _NOT_MUCH = 500, 1.005
# Standard errors by which classes learned by themselves must be better than classes learned together.
_CLEARLY = 2.0
# Smaller alphas drown in rounding.
_LEAST_ALPHA = 1e-12


def choose_by_climbing(task: Task, finalists: Sequence[MapTrial]) -> Choice:
    """Choose on held-out rows among a few maps, the simplest first."""
    settings = task.settings
    ladders = [Ladder(task, trial) for trial in finalists]
    if ladders[0].is_slow:
        ladders = [ladders[simplest([trial.evidence for trial in finalists])]]
    for ladder in ladders:
        linear = ladder.learn(LINEAR, ladder.alpha)
        rank = _first_rank(ladder) if settings.rank == "auto" else settings.rank
        ladder.rungs = [linear, ladder.learn(rank, ladder.alpha, linear)]
    # The finalists stand in the order of their simplicity.
    ladder = ladders[simplest([ladder.rungs[-1].evidence for ladder in ladders])]
    task.say_maps(ladder.trial, ladder.alpha)
    if settings.rank == "auto":
        _climb_on(ladder)
    rungs = ladder.rungs
    # The linear model has a rank and a start of its own: it is out where the user gives others.
    if settings.rank != "auto" or settings.init in ("given", "random"):
        rungs = rungs[1:]
    rung = rungs[strongest([rung.evidence.error for rung in rungs])]
    if settings.alpha == "auto" and not ladder.is_slow:
        rung = _walk_alpha(ladder, rung)
    separate = _separately(task, finalists, rung.evidence) if _may_be_separate(task) else None
    return _conclude(task, ladder, rung) if separate is None else separate


def _may_be_separate(task: Task) -> bool:
    """Whether classes that are to be learned together might be better learned by themselves, and quickly so."""
    settings = task.settings
    is_open = (
        settings.init == settings.alpha == settings.rank == settings.max_sweeps == "auto" and not settings.patience
    )
    return settings.joint and len(task.targets) > 1 and task.n_rows <= FEW_ROWS and is_open


def _separately(task: Task, finalists: Sequence[MapTrial], together: Evidence) -> Choice | None:
    """The exact solution for the squared loss, calibrated, if left-out rows speak clearly for it.

    It has learned from all rows but one, and what it is compared with from four fifths of them.
    """
    settings = replace(task.settings, loss="squared", joint=False)
    own = Task(settings, task.rows, task.targets, task.guides, task.seeds, task.n_jobs, True, task.tried)
    choice = choose_exactly(own, finalists)
    if choice.held_out is None:
        raise AssertionError("a choice that calibrates leaves rows out.")
    scores, labels, n_rows = choice.held_out
    weights = labels * np.max([target.wanted(np.arange(labels.shape[1]))[1] for target in task.targets], axis=0)
    weights /= weights.sum()
    size, shift = fit_softmax(scores, n_rows * weights)
    logs = [log_losses(size * scores + shift, np.full(len(scores), label)) for label in range(labels.shape[1])]
    totals = weights.sum(axis=1)
    # Different rows in the order of their hashes, as on the ladder.
    separate = Evidence(np.sum(weights * np.transpose(logs), axis=1) / totals, totals)
    if simplest([together, separate], _CLEARLY) == 0:
        return None
    why = (
        f"classes learned by themselves, with the squared loss, had a log loss of {separate.error:.4g} on rows left out"
    )
    return replace(choice, reasons=(*choice.reasons, f"{why}, and classes learned together {together.error:.4g}"))


def _first_rank(ladder: Ladder) -> int:
    """The rank at which finalists are compared."""
    ranks = ladder.ranks()
    return max(rank for rank in ranks if rank <= max(_FIRST_RANK, ranks[0]))


def _climb_on(ladder: Ladder) -> None:
    """Try higher ranks as long as the error falls; or lower ones, if the first was no better than the linear model."""
    linear, first = ladder.rungs
    is_worse = first.evidence.error > linear.evidence.error
    if is_worse:
        ladder.rungs.pop()
    for rank in ladder.ranks():
        if (rank < first.rank) if is_worse else (rank > first.rank):
            ladder.rungs.append(ladder.learn(rank, ladder.alpha, ladder.rungs[-1]))
            if ladder.rungs[-1].evidence.error > ladder.rungs[-2].evidence.error:
                break
    if is_worse:  # where the linear model is out, it may be the best, or the only one
        ladder.rungs.append(first)


def _walk_alpha(ladder: Ladder, rung: Rung) -> Rung:
    """Go to larger alphas as long as the error does not grow, or else to smaller ones as long as it falls.

    Few rows say little: with them it must fall clearly.
    """
    clearly = 1.0 if len(rung.evidence.squares) < _WEAK_EVIDENCE else 0.0
    for factor in (_ALPHA_STEP, 1.0 / _ALPHA_STEP):
        start = least = rung
        for _ in range(_MOST_ALPHA_STEPS):
            alpha = rung.alpha * factor
            if alpha < _LEAST_ALPHA:
                break
            following = ladder.learn(rung.rank, alpha, None if rung.rank == LINEAR else rung, "alpha")
            # Always beside the best so far: small losses would add up.
            stronger, weaker = (following, least) if factor > 1 else (least, following)
            if (simplest([stronger.evidence, weaker.evidence], clearly) == 0) != (factor > 1):
                break
            if following.evidence.error > _NOT_MUCH * least.evidence.error:  # unclear as it may be
                break
            rung = following
            least = min(least, rung, key=lambda found: found.evidence.error)
        if rung is not start:
            break
    return rung


def _conclude(task: Task, ladder: Ladder, rung: Rung) -> Choice:
    """Learn from all rows with the settings of a rung, from where it has ended."""
    settings, maps = task.settings, ladder.maps
    held_out = _held_out(task, ladder, rung)
    left_out = ladder.left_out_of(rung) if task.has_noise else None
    how = f"on rows that were held out, error {rung.evidence.error:.4g}"
    if rung.rank == LINEAR:
        why = "without interactions, the linear model in these functions is the model:"
        task.reasons.append(
            f"{why} {how}"
            if task.is_additive
            else f"no rank was better than the linear model {how}, so it is the model"
        )
        alone = None if task.parts is None else (additive_part(range(len(maps))),)
        return task.conclude(
            ladder.trial, maps, settings.linear_plan(maps.dims, rung.alpha), None, held_out, left_out, alone
        )
    task.reasons.append(f"rank {rung.rank} and alpha {rung.alpha:.2g} were the best {how}")
    parts = None if task.parts is None else with_rank(task.parts, maps.dims, rung.rank)
    ranks = clip_ranks(maps.dims, rung.rank) if parts is None else joined_ranks(parts, maps.dims)
    changes: dict[str, Any] = {"ranks": ranks, "alpha": rung.alpha}
    starts = None
    if settings.init == "auto":
        starts, changes["init"] = rung.trains[0], "given"
        if settings.max_sweeps == "auto":
            usual = _LAST_SWEEPS if parts is None else _LAST_ROUNDS
            changes["max_sweeps"] = settings.n_sweeps if settings.patience else usual
    return task.conclude(ladder.trial, maps, settings.plan(maps.dims, **changes), starts, held_out, left_out, parts)


def _held_out(task: Task, ladder: Ladder, rung: Rung) -> HeldOut | None:
    if not task.calibrate:
        return None
    seen = ladder.held_out_of(rung)
    labels = np.zeros((len(seen.y), len(task.rows.summary.labels)))
    labels[np.arange(len(seen.y)), seen.y] = seen.weights
    return HeldOut(seen.scores, labels, len(np.unique(seen.hashes)))
