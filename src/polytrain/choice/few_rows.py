"""The choice with few rows: the kernel problem is solved exactly, and its solution is rounded to a train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import find_alpha, simplest, strongest
from polytrain.choice.likelihood import exact_logistic
from polytrain.choice.map_search import MapSearch, MapTrial, function_values
from polytrain.choice.task import Choice, HeldOut, Task
from polytrain.learning.dual import product_kernel, round_for_sweeps, round_rank_ones, round_together, solve_dual
from polytrain.learning.parts import Part, additive_part, joined_ranks, parts_kernel
from polytrain.learning.start import linear_cores
from polytrain.maps import MapList
from polytrain.tensor import clip_ranks

__all__ = ["LINEAR", "additive_kernel", "choose_exactly"]

#: The rank by which the linear model is noted.
LINEAR = 1
# Ranks to which the solution may be rounded: the largest that takes no more operations than these.
_RANKS, _MOST_WORK, _TOLERANCE = (32, 24, 16, 8, 4), 2e10, 1e-3
# If that rank is lower than this one, a faster and slightly less accurate rounding is used.
_QUICK_RANK = 8
# Sweeps after rounding, if it lost more than this fraction of the squared coefficients.
_SWEEPS, _LITTLE = 1, 1e-4
# With a smaller alpha, cores are not solved in the space of the few rows, but in that of their thousands of entries.
_LEAST_SWEPT = 1e-9


def choose_exactly(task: Task, finalists: Sequence[MapTrial]) -> Choice:
    """Choose by leaving rows out, given trials of a few maps on all rows, the simplest first."""
    settings, rows = task.settings, task.choice_rows
    search = task.search(rows)
    trial = _look_closer(task, search, finalists[simplest([trial.evidence for trial in finalists])])
    maps = task.maker(trial.kind, trial.bandwidth, trial.sizes)
    values = function_values(maps, rows.X)
    task.explain_maps(trial, trial.alpha)
    additive = additive_kernel(values)
    linear = search.judge(trial.kind, trial.bandwidth, additive, rival=trial.squared_error)
    task.note_trial("linear", linear, LINEAR)
    if settings.rank == "auto" and linear.error <= trial.error:
        task.reasons.append(
            f"the linear model in these functions is used: its mean loss ({linear.error:.4g}) is no larger than that "
            f"of the exact solution with interactions ({trial.error:.4g})"
            if not task.is_additive
            else f"without interactions, the linear model in these functions is used, mean loss {linear.error:.4g}"
        )
        exact = _solve(task, additive, linear)
        plan = replace(settings.linear(maps.dims, linear.alpha), **exact.changes)
        everything = additive_part(range(len(values)))
        starts = [_round_part(everything, values, solution)[0] for solution in exact.solutions]
        return task.conclude(trial, maps, plan, starts=starts, held_out=exact.held_out)
    kernel = product_kernel(values) if task.parts is None else parts_kernel(values, task.parts)
    if not np.isfinite(kernel).all():
        raise FloatingPointError("the kernel of all columns is not finite")
    exact = _solve(task, kernel, trial)
    parts, ranks, trains, lost = _round(task, maps, values, len(kernel), exact.solutions)
    changes: dict[str, Any] = {"alpha": trial.alpha, "rank": ranks, "init": "dual", **exact.changes}
    if settings.max_sweeps == "auto":  # a sweep recovers a part of what was cut off
        changes["max_sweeps"] = _SWEEPS if lost > _LITTLE else 0
    if settings.alpha == "auto" and changes.get("max_sweeps", settings.max_sweeps):
        changes["alpha"] = max(changes["alpha"], _LEAST_SWEPT)
    plan = settings.settled(maps.dims, **changes)
    task.reasons.append(
        f"the exact solution on all {len(rows.X)} different rows, leave-one-out mean loss {trial.error:.4g}, is "
        f"rounded to ranks up to {max(ranks)}"
    )
    return task.conclude(trial, maps, plan, starts=trains, held_out=exact.held_out, parts=parts)


def additive_kernel(values: Sequence[NDArray]) -> NDArray:
    """Kernel of the linear model in all functions of the maps: without interactions."""
    stacked = np.concatenate([functions[1:] for functions in values])
    return 1.0 + stacked.T @ stacked


def _look_closer(task: Task, search: MapSearch, winner: MapTrial) -> MapTrial:
    """Try bandwidths near the best one."""
    if task.bandwidth != "auto" or winner.bandwidth is None:
        return winner
    near = winner.bandwidth / sqrt(2), winner.bandwidth * sqrt(2)
    tries = [(winner.kind, bandwidth, winner.alpha_for(bandwidth), winner.sizes) for bandwidth in near]
    smaller, larger = search.try_each(tries, winner.squared_error)
    for trial in (smaller, larger):
        task.note_trial("bandwidth", trial)
    closer = [smaller, winner, larger]
    return closer[strongest([trial.error for trial in closer])]


class _Solution(NamedTuple):
    """The exact solution of one train: the rows (M,) that it is about, their coefficients (M,), its squared norm."""

    used: NDArray
    coefficients: NDArray
    size: float

    @classmethod
    def of(cls, kernel: NDArray, used: NDArray, coefficients: NDArray) -> Self:
        """Compute the norm by the kernel of these rows."""
        return cls(used, coefficients, float(coefficients @ kernel @ coefficients))


class _Exact(NamedTuple):
    """The exact solutions of all trains, the settings that they change, and scores of left-out rows on request."""

    solutions: list[_Solution]
    changes: dict[str, Any]
    held_out: HeldOut | None


def _solve(task: Task, kernel: NDArray, trial: MapTrial) -> _Exact:
    """Solve the kernel problems of all trains, with the loss that left-out rows favour."""
    solutions = []
    for used, wanted, weights in task.each_target():
        inner = kernel if len(used) == len(kernel) else kernel[np.ix_(used, used)]
        solutions.append(_Solution.of(inner, used, solve_dual(inner, wanted, weights, trial.alpha)))
    held_out = _held_out(task, kernel, trial)
    if held_out is not None and task.may_finish:
        coefficients = np.stack([own.coefficients for own in solutions], axis=1)
        finished = exact_logistic(task, kernel, trial.alpha, coefficients, held_out)
        if finished is not None:
            alpha, logistic, held_out = finished
            solutions = [
                _Solution.of(kernel, own.used, c) for own, c in zip(solutions, logistic.coefficients.T, strict=True)
            ]
            return _Exact(solutions, {"loss": "logistic", "joint": task.is_joint, "alpha": alpha}, held_out)
    return _Exact(solutions, {}, held_out)


def _round(
    task: Task, maps: MapList, values: Sequence[NDArray], n_rows: int, solutions: Sequence[_Solution]
) -> tuple[tuple[Part, ...] | None, tuple[int, ...], Sequence[Sequence], float]:
    """Round the exact solutions of all trains; return parts with ranks, ranks, cores, and the largest lost fraction."""
    is_open, dims = task.settings.rank == "auto", maps.dims
    most, tolerance = (_largest_rank(task, maps), _TOLERANCE) if is_open else (task.settings.rank, 0.0)
    if task.parts is not None:
        rounded = [
            [_round_part(part, values, solution, most, tolerance) for part in task.parts] for solution in solutions
        ]
        sums = [[cores for cores, _ in train] for train in rounded]
        kept = [sum(size for _, size in train) for train in rounded]
        parts = tuple(
            part if part.additive else replace(part, ranks=_largest_ranks(part_trains, [dims[k] for k in part.columns]))
            for part, part_trains in zip(task.parts, zip(*sums, strict=True), strict=True)
        )
        return parts, joined_ranks(parts, dims), sums, _lost(solutions, kept)
    ranks = clip_ranks(dims, most)
    if all(len(solution.used) == n_rows for solution in solutions):
        together = np.stack([own.coefficients for own in solutions])
        if is_open and most < _QUICK_RANK:  # nearly as good in less time, which is better than a lower rank
            trains = round_for_sweeps(values, together, _QUICK_RANK)
        else:
            trains = round_together(values, together, ranks, tolerance)
    else:
        trains = [
            round_rank_ones([functions[:, own.used] for functions in values], own.coefficients, ranks, tolerance)
            for own in solutions
        ]
    lost = _lost(solutions, [float(np.square(train[-1]).sum()) for train in trains])
    return None, _largest_ranks(trains, dims) if is_open else ranks, trains, lost


def _lost(solutions: Sequence[_Solution], kept: Sequence[float]) -> float:
    """Return the largest fraction of the squared coefficients that rounding cut off from a train."""
    pairs = zip(solutions, kept, strict=True)
    return max((solution.size - size) / solution.size if solution.size > 0 else 0.0 for solution, size in pairs)


def _largest_ranks(trains: Sequence[Sequence[NDArray]], dims: Sequence[int]) -> tuple[int, ...]:
    """Return the largest rank of any of these trains at every bond."""
    ranks = np.max([[core.shape[2] for core in train[:-1]] for train in trains], axis=0).tolist()
    return clip_ranks(dims, ranks if len(dims) > 1 else 1)


def _largest_rank(task: Task, maps: MapList) -> int:
    """Return the largest rank to which rounding is fast."""
    n_rows, n = float(task.n_rows), np.array(maps.dims)
    for rank in _RANKS:
        work = 2.0 * n_rows * n_rows * rank * n.sum() + 10.0 * np.sum((rank * n) ** 3.0)
        if work * len(task.targets) <= _MOST_WORK:
            return rank
    return _RANKS[-1]


def _round_part(
    part: Part, values: Sequence[NDArray], solution: _Solution, most: int = 0, tolerance: float = 0.0
) -> tuple[list[NDArray], float]:
    """Round a part of a solution to ranks of at most ``most``; return its cores, and their squared norm.

    The tolerance is the fraction of the size that may be cut off; 0 keeps as much as the rank allows.
    """
    coefficients = solution.coefficients
    own = [values[k][:, solution.used] for k in part.columns]
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


def _held_out(task: Task, kernel: NDArray, trial: MapTrial) -> HeldOut | None:
    """Return scores of every train on rows that were left out of its exact solution."""
    if not task.needs_held_out:
        return None
    rows = task.choice_rows
    sample = task.sample
    labels = task.label_weights(sample.weights, sample.sums) if task.calibrate else np.zeros((len(rows.X), 0))
    if task.guides is task.targets or not task.calibrate:
        scores = (rows.targets - trial.residuals) / task.sizes
    else:
        # A row that does not belong to a train's problem was never learned from: its score is 0.
        scores = np.zeros((len(rows.X), len(task.targets)))
        for index, (used, wanted, weights) in enumerate(task.each_target()):
            left_out = find_alpha(kernel[np.ix_(used, used)], wanted[:, None], weights, [trial.alpha])
            scores[used, index] = wanted - left_out.residuals[:, 0]
    return HeldOut(task.sample.hashes, scores, labels, (task.rows,))
