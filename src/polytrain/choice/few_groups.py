"""The exact solution of few rows, rounded to a sum of trains whose columns act together in groups only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.task import Task
from polytrain.learning.dual import round_together, solve_dual
from polytrain.learning.parts import Part
from polytrain.learning.start import linear_cores
from polytrain.tensor import clip_ranks

__all__ = ["round_groups"]


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
