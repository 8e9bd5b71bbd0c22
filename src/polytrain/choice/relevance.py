"""Learn which columns matter: every column gets a size of its own in the prior.

With equal sizes, a model pays for every irrelevant column. The effect of a column on left-out rows says how much it
matters; with sizes in proportion to the effects, the next model relies on the columns that matter, and its effects are
sharper again. A few rounds, each kept only if left-out rows gain by it, are enough: few rows first, then more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import Evidence, simplest
from polytrain.choice.map_search import TRIED_BASES, ChoiceRows, MapTrial
from polytrain.choice.task import Task
from polytrain.learning.start import FEW_ROWS

__all__ = ["column_sizes", "learn_sizes"]

# Rows of each round. Rounds with many rows are few, since a trial takes time that grows with their cube.
_ROUNDS = (500, 500, 1000, 2000)
# From this many rows on, one exponent is tried. Kernels of rows squared times functions beyond this take seconds.
_MANY_ROWS, _MOST_WORK = 2000, 8e9
# Exponents of the sizes, the more careful one first, and factors of the bandwidth.
_POWERS, _GROWTH = (0.5, 1.0), (1.0, sqrt(2.0), 2.0)
# Sizes in units of their mean: no column is given up for good, and none may outweigh all others.
_SMALLEST, _LARGEST = 0.05, 4.0
# Kinds of functions that go on with the sizes, unless they are worse by this many standard errors.
_FINALISTS, _CLEARLY = 3, 2.0


def column_sizes(squares: NDArray, power: float) -> NDArray:
    """Sizes of all columns in proportion to a power of the root of their mean squared effects.

    Examples
    --------
    >>> column_sizes(np.array([4.0, 4.0, 0.0]), 1.0).tolist()
    [1.5, 1.5, 0.05]
    """
    effects = np.sqrt(squares)
    return np.clip(effects / effects.mean(), _SMALLEST, _LARGEST) ** power


def learn_sizes(task: Task, finalists: list[MapTrial]) -> list[MapTrial]:
    """Return trials with learned sizes of the columns, the simplest first; the finalists if left-out rows gain nothing.

    Where trains will judge by held-out rows, the best of the finalists stays among them; with few rows, half of them
    must have the last word.
    """
    best = trial = min(finalists, key=_error)
    kept: float = _POWERS[0]
    powers: Sequence[float] = _POWERS
    for count in _ROUNDS:
        rows = task.first_rows(min(count, task.n_rows))
        n_rows, n_before = len(rows.X), len(trial.residuals)
        if count >= _MANY_ROWS:
            work = n_rows**2 * sum(task.maker(*trial[:2], trial.sizes).dims)
            if trial.sizes is None or n_rows <= n_before or work > _MOST_WORK:
                break
            powers = (kept,)
        search = task.search(rows)
        if n_rows != n_before:
            (trial,) = search.try_each([(*trial[:2], trial.alpha * n_before / n_rows, trial.sizes)])
        squares = search.effects(trial)
        if not (np.isfinite(squares).all() and squares.any()):
            break
        each: list[MapTrial] = []
        for factor in _GROWTH:  # as columns become small, the bandwidth grows, as long as the error falls
            bandwidth = factor * (trial.bandwidth or 1.0)
            tries = [
                (trial.kind, bandwidth, trial.alpha_for(bandwidth), column_sizes(squares, power).tolist())
                for power in powers
            ]
            sized = search.try_each(tries)
            for tried in sized:
                task.note_trial("relevance", tried)
            before, each = each or sized, [min(pair, key=_error) for pair in zip(each or sized, sized, strict=True)]
            if factor > 1.0 and min(map(_error, each)) == min(map(_error, before)):
                break
        # The more careful exponent wins unless the other is clearly better.
        index = simplest([tried.evidence for tried in each])
        if simplest([trial.evidence, each[index].evidence]) == 1:
            trial, kept = each[index], powers[index]
    # Where trains on held-out rows do not judge, half of the rows must confirm the sizes of the other half.
    must_hold = task.n_rows <= FEW_ROWS or task.is_slow
    if trial.sizes is None or (must_hold and not _holds(task, best, trial, kept)):
        return finalists
    return _compare_kinds(task, best, trial)


def _error(trial: MapTrial) -> float:
    return trial.error


def _holds(task: Task, best: MapTrial, sized: MapTrial, power: float) -> bool:
    """Whether sizes that one half of the rows asks for are clearly better on the other half than equal ones.

    The sizes of all rows have seen the rows that they are judged by; with few rows, that makes a difference.
    """
    rows, squares, weights = task.choice_rows, [], []
    halves = [ChoiceRows(*(array[start::2] for array in rows)) for start in (0, 1)]
    searches = [task.search(half._replace(weights=half.weights / half.weights.sum())) for half in halves]
    equal, unequal = ((trial, 2.0 * trial.alpha * len(trial.residuals) / len(rows.X)) for trial in (best, sized))
    for learned, judged in (searches, searches[::-1]):
        (first,) = learned.try_each([(*best[:2], equal[1], None)])
        effects = learned.effects(first)
        if not (np.isfinite(effects).all() and effects.any()):
            return False
        sizes = column_sizes(effects, power).tolist()
        pair = judged.try_each([(*best[:2], equal[1], None), (*sized[:2], unequal[1], sizes)])
        squares.append([trial.evidence.squares for trial in pair])
        weights.append(pair[0].evidence.weights)
    totals = np.concatenate(weights) / 2.0
    before, after = (Evidence(np.concatenate(each), totals) for each in zip(*squares, strict=True))
    return simplest([before, after]) == 1


def _compare_kinds(task: Task, best: MapTrial, sized: MapTrial) -> list[MapTrial]:
    """Try all kinds of functions with the sizes that were learned."""
    rows, kinds = task.choice_rows, [sized.kind]
    if task.maker.is_free:
        kinds = [kind for kind in TRIED_BASES if kind != "spline-distinct" or task.maker.has_repeats]
    alpha = sized.alpha * len(sized.residuals) / len(rows.X)
    trials = task.search(rows).try_each([(kind, sized.bandwidth, alpha, sized.sizes) for kind in kinds])
    for trial in trials:
        task.note_trial("maps", trial)
    least = sorted(trials, key=_error)[:_FINALISTS]
    gaps = [trial.evidence.worse_than(least[0].evidence) for trial in trials]
    kept = [
        trial
        for trial, (mean, error) in zip(trials, gaps, strict=True)
        if mean <= _CLEARLY * error and any(trial is other for other in least)
    ]
    return kept if task.n_rows <= FEW_ROWS or task.is_slow else [best, *kept]
