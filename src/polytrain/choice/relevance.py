"""Learn the relevance of the columns: every column gets its own size in the prior.

With equal sizes, a model pays for every irrelevant column. The effect of a column on left-out rows says how much it
matters; with sizes in proportion to the effects, the next model relies on the columns that matter, and its effects are
sharper again. A few rounds are enough, each kept only if the left-out error falls: first on few rows, then on more.

Sizes are proposed by squared errors, even for classes, as log losses of few rows are too noisy; log losses then decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import Evidence, simplest
from polytrain.choice.map_search import TRIED_BASES, MapSearch, MapTrial
from polytrain.choice.task import Task
from polytrain.learning.start import FEW_ROWS

__all__ = ["GROWTH", "column_sizes", "grown", "learn_sizes", "train_effects"]

# Rows of each round. Rounds with many rows are few, since a trial takes time that grows with their cube.
_ROUNDS = (500, 500)
# Rows on which columns are left out, and how often, as long as the error falls at least by this factor. Kernels of rows
# squared times functions beyond this take seconds.
_PRUNINGS, _WORTH, _MOST_WORK = {1000: 4, 2000: 2}, 0.99, 8e9
# Exponents of the sizes, the more careful one first, and factors of the bandwidth.
_POWERS, GROWTH = (0.5, 1.0), (1.0, sqrt(2.0), 2.0)
# Limits of the sizes, in units of their mean: no column is dropped for good, and none outweighs all others.
_SMALLEST, _LARGEST = 0.05, 4.0
# With more columns than these, some are left out: parts of the sum of all squared effects that these may have.
# Fewer do little harm, and columns of small mean effect may be all that distinguishes a few rows.
_MANY_COLUMNS, _PRUNED = 100, (1e-3, 0.01, 0.03)
# Numbers of columns that are taken back at once.
_TAKEN_BACK = (1, 3, 8)
# Kinds of functions that go on with the sizes, unless they are worse by this many standard errors.
_FINALISTS, _CLEARLY = 3, 2.0


def column_sizes(squares: NDArray, power: float) -> NDArray:
    """Sizes of all columns in proportion to a power of the root of their mean squared effects, in units of their mean.

    Examples
    --------
    >>> column_sizes(np.array([4.0, 4.0, 0.0]), 1.0).tolist()
    [1.0, 1.0, 0.05]
    """
    effects = np.sqrt(squares)
    return np.clip(effects / effects[effects > 0].mean(), _SMALLEST, _LARGEST) ** power


def train_effects(values: Sequence[NDArray], trains: Sequence[Sequence[NDArray]]) -> NDArray:
    """Return the squared effects of every column on rows, (d, N), summed over the trains.

    ``values`` are the functions of every column, (n, N) each. The effect is the part of the score that contains a
    function of the column besides the constant.

    Examples
    --------
    >>> values = [np.array([[1.0, 1.0], [3.0, 0.0]]), np.array([[1.0, 1.0], [2.0, 2.0]])]
    >>> product = [np.array([[[0.0], [1.0]]]), np.array([[[0.0], [1.0]]])]  # of the two columns
    >>> train_effects(values, [product]).tolist()
    [[36.0, 0.0], [36.0, 0.0]]
    """
    effects = np.zeros((len(values), values[0].shape[1]))
    for train in trains:
        right, rights = np.ones((1, effects.shape[1])), []
        for functions, core in zip(values[::-1], train[::-1], strict=True):
            rights.append(right)
            right = np.einsum("ban,bn->an", np.tensordot(core, functions, (1, 0)).transpose(1, 0, 2), right)
        left = np.ones((1, effects.shape[1]))
        for k, (functions, core, right) in enumerate(zip(values, train, reversed(rights), strict=True)):
            own = np.einsum("abn,an->bn", np.tensordot(core[:, 1:], functions[1:], (1, 0)), left)
            effects[k] += np.square(np.einsum("bn,bn->n", own, right))
            left = own + core[:, 0].T @ left
    return effects


def learn_sizes(task: Task, finalists: list[MapTrial]) -> list[MapTrial]:
    """Return trials with learned sizes of the columns, the simplest first, or the finalists if sizes do not help.

    Where trains are compared on held-out rows later, the best finalist stays among the trials; with few rows, half of
    them must confirm the sizes.
    """
    best = trial = min(finalists, key=_error)
    kept: float = _POWERS[0]
    for count in _ROUNDS:
        rows, n_before = task.learned_rows(count).by_squares(), len(trial.residuals)
        search = task.search(rows)
        (trial,) = search.try_each([(*trial[:2], trial.alpha * n_before / len(rows.X), trial.sizes)])
        squares = search.effects(trial)
        if not (np.isfinite(squares).all() and squares.any()):
            break
        # As columns become small, the bandwidth grows, as long as the error falls.
        same, larger = (grown(trial, squares, factor) for factor in GROWTH[:2])
        sized = search.try_each([*same, *larger])
        before, after = sized[: len(_POWERS)], sized[len(_POWERS) :]
        each = [min(pair, key=_error) for pair in zip(before, after, strict=True)]
        if min(map(_error, after)) < min(map(_error, before)):
            largest = search.try_each(grown(trial, squares, GROWTH[2]))
            sized, each = sized + largest, [min(pair, key=_error) for pair in zip(each, largest, strict=True)]
        for tried in sized:
            task.note_trial("relevance", tried)
        # The more careful exponent wins unless the other is clearly better.
        index = simplest([tried.evidence for tried in each])
        if simplest([trial.evidence, each[index].evidence]) == 1:
            trial, kept = each[index], _POWERS[index]
    # Where no trains are compared on held-out rows later, half of the rows must confirm the sizes of the other half.
    must_hold = task.n_rows <= FEW_ROWS or task.is_slow(task.maker.n_columns)
    if trial.sizes is None or (must_hold and not _holds(task, best, trial, kept)):
        return finalists
    return _compare_kinds(task, best, _prune(task, trial))


def _prune(task: Task, trial: MapTrial) -> MapTrial:
    """Leave out columns that do not lower the left-out error, and learn the sizes of the others on more rows."""
    n_before = 0
    for count, n_rounds in _PRUNINGS.items():
        n_functions = sum(task.maker(*trial[:2], trial.sizes).dims)
        rows = task.learned_rows(count).by_squares()
        if len(rows.X) == n_before or len(rows.X) ** 2 * n_functions > _MOST_WORK:
            break
        search, n_before = task.search(rows), len(rows.X)
        (trial,) = search.try_each([(*trial[:2], trial.alpha * len(trial.residuals) / len(rows.X), trial.sizes)])
        for _ in range(n_rounds):
            before, trial = trial, _pruned_once(task, search, trial)
            if trial is before and len(trial.sizes or ()) > _MANY_COLUMNS:  # more rows would take long
                return trial
            if trial.error > _WORTH * before.error:
                break
    return trial


def _pruned_once(task: Task, search: MapSearch, trial: MapTrial) -> MapTrial:
    """Leave out columns with the least effects, take others back, and learn new sizes, if that is better."""
    squares = search.effects(trial)
    if not (np.isfinite(squares).all() and squares.any()):
        return trial
    order = np.argsort(squares, kind="stable")
    shares = np.cumsum(squares[order]) / squares.sum()
    counts = sorted({int(np.searchsorted(shares, share)) for share in _PRUNED} - {int(np.sum(squares == 0.0))})
    if len(squares) <= _MANY_COLUMNS:
        counts = []
    pruned = _best(task, search, trial, [_resized(trial, order[:count], 0.0) for count in counts])
    if 0.0 in (pruned.sizes or ()):
        order = np.argsort(-search.gains(pruned), kind="stable")
        counts = [count for count in _TAKEN_BACK if count <= np.sum(np.array(pruned.sizes) == 0.0)]
        pruned = _best(task, search, pruned, [_resized(pruned, order[:count], 1.0) for count in counts])
        if not squares[np.array(pruned.sizes) > 0].all():
            squares = search.effects(pruned)
    squares = np.where(np.array(pruned.sizes) > 0, squares, 0.0)
    tries = [larger for factor in GROWTH[:2] for larger in grown(pruned, squares, factor)]
    return _best(task, search, pruned, tries, search_alpha=True)


def _resized(trial: MapTrial, columns: NDArray, size: float) -> tuple[Any, ...]:
    """Return a trial with other sizes of some columns."""
    sizes = np.array(trial.sizes)
    sizes[columns] = size
    return (*trial[:2], trial.alpha, sizes.tolist())


def _best(
    task: Task, search: MapSearch, trial: MapTrial, tries: list[tuple[Any, ...]], search_alpha: bool = False
) -> MapTrial:
    """Return the best of some attempts if it is clearly better than the trial, else the trial."""
    others = search.try_each(tries, trial.squared_error, search_alpha)
    for tried in others:
        task.note_trial("relevance" if search_alpha else "columns", tried)
    best = min([trial, *others], key=_error)
    return best if simplest([trial.evidence, best.evidence]) == 1 else trial


def grown(trial: MapTrial, squares: NDArray, factor: float) -> list[tuple[Any, ...]]:
    """Return trials with a larger bandwidth, one for each power of the effects as sizes."""
    bandwidth = factor * (trial.bandwidth or 1.0)
    alpha = trial.alpha_for(bandwidth)
    sizes = [np.where(squares > 0, column_sizes(squares, power), 0.0).tolist() for power in _POWERS]
    return [(trial.kind, bandwidth, alpha, own) for own in sizes]


def _error(trial: MapTrial) -> float:
    return trial.error


def _holds(task: Task, best: MapTrial, sized: MapTrial, power: float) -> bool:
    """Whether sizes learned from one half of the rows are clearly better than equal sizes on the other half.

    Sizes learned from all rows are evaluated on the same rows; with few rows, that makes a difference.
    """
    rows, squares, weights = task.choice_rows, [], []
    searches = [task.search(rows.take(slice(start, None, 2))) for start in (0, 1)]
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
    rows, kinds = task.learned_rows(task.sample.n_rows), [sized.kind]
    if task.maker.is_free:
        kinds = [kind for kind in TRIED_BASES if kind != "spline-distinct" or task.maker.has_repeats]
    alphas = [trial.alpha * len(trial.residuals) / len(rows.X) for trial in (best, sized)]
    tries = [(kind, sized.bandwidth, alphas[1], sized.sizes) for kind in kinds]
    equal, *trials = task.search(rows).try_each([(*best[:2], alphas[0], None), *tries])
    for trial in trials:
        task.note_trial("maps", trial)
    least = sorted(trials, key=_error)[:_FINALISTS]
    gaps = [trial.evidence.worse_than(least[0].evidence) for trial in trials]
    kept = [
        trial
        for trial, (mean, error) in zip(trials, gaps, strict=True)
        if mean <= _CLEARLY * error and any(trial is other for other in least)
    ]
    return kept if task.n_rows <= FEW_ROWS else [equal, *kept]
