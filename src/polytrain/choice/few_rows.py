"""Few rows: the kernel problem is solved exactly, and its solution is rounded to a train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import find_alpha, simplest, strongest
from polytrain.choice.ladder import LINEAR
from polytrain.choice.maps import MapTrial, additive_kernel, alpha_for, function_values, judge_kernel, try_maps
from polytrain.choice.result import Choice, HeldOut, LeftOutScores
from polytrain.choice.task import Task
from polytrain.learning.dual import product_kernel, round_rank_ones, round_together, solve_dual
from polytrain.learning.parts import Part, joined_ranks, parts_kernel
from polytrain.learning.start import linear_cores
from polytrain.maps import MapList
from polytrain.tensor import clip_ranks

__all__ = ["choose_exactly", "round_groups"]

# Ranks to which the solution may be rounded: the largest that takes no more operations than these.
_RANKS, _MOST_WORK, _TOLERANCE = (32, 24, 16, 8, 4), 2e10, 1e-3
# Sweeps after rounding, if it lost more than this part of the squared coefficients.
_SWEEPS, _LITTLE = 1, 1e-4
# With a smaller alpha, cores are not solved in the space of the few rows, but in that of their thousands of entries.
_LEAST_SWEPT = 1e-9


def choose_exactly(task: Task, finalists: Sequence[MapTrial]) -> Choice:
    """Choose by leaving rows out, given trials of a few maps on all rows, the simplest first."""
    settings, rows = task.settings, task.choice_rows
    trial = _look_closer(task, finalists[simplest([trial.evidence for trial in finalists])])
    maps = task.maker(trial.kind, trial.bandwidth)
    values = function_values(maps, rows.X)
    task.say_maps(trial, trial.alpha)
    additive = additive_kernel(values)
    plain = judge_kernel(trial.kind, trial.bandwidth, additive, task.alphas, rows, rival=trial.error)
    task.note_trial("linear", plain, len(rows.X), LINEAR)
    if settings.rank == "auto" and plain.error <= trial.error:
        task.reasons.append(
            f"the linear model in these functions has no larger error ({plain.error:.4g}) than the exact solution "
            f"with interactions ({trial.error:.4g}), so it is the model"
            if not task.is_additive
            else f"without interactions, the linear model in these functions is the model, error {plain.error:.4g}"
        )
        plan = settings.linear_plan(maps.dims, plain.alpha)
        trains = _linear_trains(task, values, additive, plain.alpha)
        left_out = _left_out_scores(task, plain)
        return task.conclude(trial, maps, plan, trains, _left_out(task, additive, plain), left_out)
    kernel = product_kernel(values) if task.parts is None else parts_kernel(values, task.parts)
    if not np.isfinite(kernel).all():
        raise FloatingPointError("the kernel of all columns is not finite")
    parts, ranks, trains, is_cut = _round(task, maps, values, kernel, trial.alpha)
    sweeps, alpha = settings.max_sweeps, trial.alpha
    if sweeps == "auto":  # what was cut off is partly found back by a sweep
        sweeps = _SWEEPS if is_cut else 0
    if sweeps and settings.alpha == "auto":
        alpha = max(alpha, _LEAST_SWEPT)
    plan = settings.plan(maps.dims, ranks=ranks, alpha=alpha, init="dual", max_sweeps=sweeps)
    task.reasons.append(
        f"the exact solution on all {len(rows.X)} different rows, leave-one-out error {trial.error:.4g}, is "
        f"rounded to ranks up to {max(ranks)}"
    )
    left_out = _left_out_scores(task, trial)
    return task.conclude(trial, maps, plan, trains, _left_out(task, kernel, trial), left_out, parts)


def _look_closer(task: Task, winner: MapTrial) -> MapTrial:
    """Try bandwidths near the best one."""
    if task.bandwidth != "auto" or winner.bandwidth is None:
        return winner
    near = winner.bandwidth / sqrt(2), winner.bandwidth * sqrt(2)
    tries = [(winner.kind, bandwidth, alpha_for(winner, bandwidth)) for bandwidth in near]
    smaller, larger = try_maps(task.maker, tries, task.alphas, task.choice_rows, task.n_threads, winner.error)
    for trial in (smaller, larger):
        task.note_trial("bandwidth", trial, len(task.choice_rows.X))
    closer = [smaller, winner, larger]
    return closer[strongest([trial.error for trial in closer])]


def _round(
    task: Task, maps: MapList, values: Sequence[NDArray], kernel: NDArray, alpha: float
) -> tuple[tuple[Part, ...] | None, tuple[int, ...], Sequence[Sequence], bool]:
    """Round the exact solutions of all trains; return parts, ranks, cores, and whether more than a little was cut."""
    is_open = task.settings.rank == "auto"
    if task.parts is not None:
        most = _rank(task, maps) if is_open else task.settings.rank
        grouped, sums, lost = round_groups(task, values, kernel, alpha, most, _TOLERANCE if is_open else 0.0)
        return grouped, joined_ranks(grouped, maps.dims), sums, lost > _LITTLE
    ranks = clip_ranks(maps.dims, _rank(task, maps) if is_open else task.settings.rank)
    solutions, parts = [], []
    for used, wanted, weights in task.each_target():
        inner = kernel if len(used) == len(kernel) else kernel[np.ix_(used, used)]
        solutions.append(solve_dual(inner, wanted, weights, alpha))
        parts.append((used, float(solutions[-1] @ inner @ solutions[-1])))
    tolerance = _TOLERANCE if is_open else 0.0
    if all(len(used) == len(kernel) for used, _ in parts):
        trains = round_together(values, np.stack(solutions), ranks, tolerance)
    else:
        trains = [
            round_rank_ones([functions[:, used] for functions in values], solution, ranks, tolerance)
            for solution, (used, _) in zip(solutions, parts, strict=True)
        ]
    kept = [float(np.square(train[-1]).sum()) for train in trains]
    is_cut = any(whole - part > _LITTLE * whole for part, (_, whole) in zip(kept, parts, strict=True))
    if is_open:
        found = [[core.shape[2] for core in train[:-1]] for train in trains]
        ranks = clip_ranks(maps.dims, np.max(found, axis=0).tolist() if len(maps) > 1 else 1)
    return None, ranks, trains, is_cut


def _rank(task: Task, maps: MapList) -> int:
    """The largest rank to which rounding does not take long."""
    n_rows, n = float(task.n_rows), np.array(maps.dims)
    for rank in _RANKS:
        work = 2.0 * n_rows * n_rows * rank * n.sum() + 10.0 * np.sum((rank * n) ** 3.0)
        if work * len(task.targets) <= _MOST_WORK:
            return rank
    return _RANKS[-1]


def _linear_trains(task: Task, values: Sequence[NDArray], kernel: NDArray, alpha: float) -> Sequence[Sequence[NDArray]]:
    """The exact linear models of all trains."""
    trains: list[Sequence[NDArray]] = []
    for used, wanted, weights in task.each_target():
        coefficients = solve_dual(kernel[np.ix_(used, used)], wanted, weights, alpha)
        own = [functions[1:, used] @ coefficients for functions in values]
        trains.append(linear_cores(float(coefficients.sum()), own))
    return trains


def _left_out(task: Task, kernel: NDArray, trial: MapTrial) -> HeldOut | None:
    """Scores of every train on rows that were left out of its exact solution."""
    if not task.calibrate:
        return None
    rows, labels = task.choice_rows, task.sample.sums
    if task.guides is task.targets:
        return HeldOut((rows.targets - trial.residuals) / task.sizes, labels, task.n_rows)
    scores = np.zeros((len(kernel), len(task.targets)))
    for index, (used, wanted, weights) in enumerate(task.each_target()):
        left_out = find_alpha(kernel[np.ix_(used, used)], wanted[:, None], weights, [trial.alpha])
        scores[used, index] = wanted - left_out.residuals[:, 0]
    return HeldOut(scores, labels, task.n_rows)


def _left_out_scores(task: Task, trial: MapTrial) -> LeftOutScores | None:
    """What the exact solution says about rows that were left out of it."""
    if not task.has_noise:
        return None
    scores = (task.choice_rows.targets - trial.residuals) / task.sizes
    return LeftOutScores(task.sample.hashes, scores, (task.rows,))


def round_groups(
    task: Task, values: Sequence[NDArray], kernel: NDArray, alpha: float, most: int, tolerance: float
) -> tuple[tuple[Part, ...], list[list[Sequence[NDArray]]], float]:
    """Round the exact solutions of all trains, part by part.

    Parameters
    ----------
    task : Task
    values : sequence of ndarray of shape (n_k, N)
        Functions of every column.
    kernel : ndarray of shape (N, N)
    alpha : float
    most : int
        Largest rank of a part.
    tolerance : float
        Part of the size of a train that may be cut off; 0 keeps as much as the rank allows.

    Returns
    -------
    parts, trains, lost
        Parts with their ranks, trains of all parts for every train, and the largest part of the squared coefficients of
        a train that was cut off.
    """
    parts = task.parts or ()
    trains: list[list[Sequence[NDArray]]] = []
    lost = 0.0
    for used, wanted, weights in task.each_target():
        inner = kernel if len(used) == len(kernel) else kernel[np.ix_(used, used)]
        coefficients = solve_dual(inner, wanted, weights, alpha)
        seen = [functions[:, used] for functions in values]
        rounded = [_round_part(part, seen, coefficients, most, tolerance) for part in parts]
        trains.append([cores for cores, _ in rounded])
        whole = float(coefficients @ inner @ coefficients)
        kept = sum(size for _, size in rounded)
        if whole > 0:
            lost = max(lost, (whole - kept) / whole)
    ranks = [np.max([_ranks(train[p]) for train in trains], axis=0).tolist() for p in range(len(parts))]
    found = [
        part if part.additive else replace(part, ranks=clip_ranks([len(values[k]) for k in part.columns], own[1:-1]))
        for part, own in zip(parts, ranks, strict=True)
    ]
    return tuple(found), trains, lost


def _ranks(cores: Sequence[NDArray]) -> list[int]:
    return [1, *(core.shape[2] for core in cores)]


def _round_part(
    part: Part, values: Sequence[NDArray], coefficients: NDArray, most: int, tolerance: float
) -> tuple[list[NDArray], float]:
    """Cores of a part of the solution, and their squared norm."""
    own = [values[k] for k in part.columns]
    if part.additive:
        bias, effects = float(coefficients.sum()), [functions[1:] @ coefficients for functions in own]
        return linear_cores(bias, effects), bias * bias + sum(float(effect @ effect) for effect in effects)
    if len(own) == 2:  # a matrix
        left, sizes, right = np.linalg.svd((own[0] * coefficients) @ own[1].T, full_matrices=False)
        squares = np.square(sizes)
        left_out = squares.sum() - np.cumsum(squares)
        kept = min(most, len(sizes))
        if tolerance:
            kept = min(kept, 1 + int(np.sum(left_out > tolerance * tolerance * squares.sum())))
        cores = [left[None, :, :kept], (sizes[:kept, None] * right[:kept])[:, :, None]]
        return cores, float(squares[:kept].sum())
    ranks = clip_ranks([len(functions) for functions in own], most)
    cores = round_together(own, coefficients[None, :], ranks, tolerance)[0]
    return cores, float(np.square(cores[-1]).sum())
