"""A ladder: trains of growing rank on given maps, learned from some rows and evaluated on others."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import Evidence
from polytrain.choice.few_rows import LINEAR
from polytrain.choice.likelihood import likelihood
from polytrain.choice.map_search import MapTrial, function_values
from polytrain.choice.relevance import train_effects
from polytrain.choice.task import HeldOut, Task
from polytrain.learning.core_solvers import update_work
from polytrain.learning.dual import product_kernel, round_for_sweeps, solve_dual
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import Part, additive_part, join_parts, joined_ranks, share_additive, with_rank
from polytrain.learning.placed import PlacedRows
from polytrain.learning.schedule import train
from polytrain.learning.settings import Settings, Start
from polytrain.learning.start import random_start
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.rows.rows import Scored
from polytrain.tensor import clip_ranks

__all__ = ["Ladder", "Rung"]

_RANKS, _GROUP_RANKS = (2, 4, 8, 16, 24), (2, 4, 8)
# Kinds of maps are compared at this rank, or at the second one where a rung takes long.
_FIRST_RANK, _FIRST_SLOW_RANK = 4, 8
# Parts of the rows that are learned from.
_MOST_PARTS = 4
# Floating point operations that a rung of this rank may take where there are many cores; else it learns from fewer
# parts of the rows, one at least.
_WORK_RANK, _MOST_WORK = 16, 1e11
# Operations that the last sweeps over all rows may take: half a minute or so on two cores.
_LAST_WORK = 1.5e12
# Rows of the exact solution with which sweeps may start; operations for rounding it, and numbers that it keeps.
_LEAST_EXACT_ROWS, _MOST_EXACT_ROWS, _ROUNDING_WORK, _ROUNDING_NUMBERS = 500, 2500, 1e11, 2e7
# Newton steps of an update where the loss is not quadratic.
_NEWTON_STEPS = 8
# Updates of cores of a rung with which alpha is still sought.
_MOST_WALKED = 1000
# Loss of a row whose score is not finite; and residuals that count as outliers for robust losses, for
# targets that are divided by their spread.
_HOPELESS, _LARGEST_RESIDUAL = 1e100, 10.0


class Rung(NamedTuple):
    """Trains of one rank and alpha, and their errors on held-out rows.

    Attributes
    ----------
    rank : int
        1 for the linear model.
    alpha : float
        For all rows.
    evidence : Evidence
    held_out : Scored
    trains : list of lists of cores, one per train, for every fold
        Where a train is a sum over groups of columns, the cores of all its parts.
    """

    rank: int
    alpha: float
    evidence: Evidence
    held_out: Scored
    trains: list[list[Sequence[NDArray]]]


class _Fold(NamedTuple):
    """Rows to learn from, rows to evaluate on, and whether there is anything to learn from, for every train."""

    learned: PlacedRows
    held_out: Rows
    has_rows: Sequence[bool]


class Ladder:
    """Trains of growing rank on the maps of one trial, learned from some rows and evaluated on the others."""

    def __init__(self, task: Task, trial: MapTrial) -> None:
        settings = task.settings
        self._task, self.trial, self._targets, self._parts = task, trial, task.targets, task.parts
        self.maps = task.maker(trial.kind, trial.bandwidth, trial.sizes)
        # The alpha of a trial is for the squared loss, on the rows of the sample.
        self.alpha = trial.alpha * len(trial.residuals) / task.n_rows
        if settings.alpha == "auto":
            noise = trial.squared_error / float(np.mean(task.sizes)) ** 2
            self.alpha *= get_loss(settings.loss).alpha_share(noise, task.guides[0].steepness)
        self.is_slow, self._n_sweeps, self._n_folds = task.is_slow(len(self.maps)), task.n_rung_sweeps, task.n_folds
        self._plan = settings.settled(self.maps.dims, alpha=self.alpha, init="linear", max_sweeps=self._n_sweeps)
        is_scaled = task.guides is task.targets or not task.rows.classify
        self._sizes = task.sizes if is_scaled else np.ones(len(task.targets))
        self._widths = [m.n if m.knots(np.dtype(np.float64)) is None else 2 for m in self.maps]
        self._n_parts = task.n_parts(self.is_slow)
        # With very many rows, only some folds are learned from; else all that are not held out.
        self._n_learned = min(self._n_parts - 1, _MOST_PARTS)
        if self.is_slow and self._parts is None and self._n_folds == 1:
            shape, part = clip_ranks(self.maps.dims, min(_WORK_RANK, self.ranks()[-1])), task.n_rows / self._n_parts
            while self._n_learned > 1 and self._work(shape, part * self._n_learned) > _MOST_WORK:
                self._n_learned -= 1
        self._share = self._n_learned / self._n_parts
        self._n_rows = round(task.n_rows * self._share)
        self.rungs: list[Rung] = []

    @cached_property
    def folds(self) -> list[_Fold]:
        """Rows to learn from and rows to hold out; they are placed when they are first needed."""
        rows, n_parts = self._task.rows, self._n_parts
        if self._n_learned < n_parts - 1:
            return [self._fold(rows.part(1, 1 + self._n_learned, n_parts), rows.part(0, 1, n_parts))]
        return [
            self._fold(rows.part(k, k + 1, n_parts, inside=False), rows.part(k, k + 1, n_parts))
            for k in range(self._n_folds)
        ]

    def _fold(self, learned: Rows, held_out: Rows) -> _Fold:
        has_rows = [True] * len(self._targets)
        # Some parts of few rows are empty, and two rare classes may both be in the part that is held out.
        if self._n_folds > 1 or not all(target.keeps_all for target in self._targets):
            present = learned.present_labels()
            has_rows = [bool(target.wanted(present)[1].any()) for target in self._targets]
        return _Fold(learned.place(self.maps), held_out, has_rows)

    @property
    def loss(self) -> dict[str, Any]:
        """The settings about the loss of the trains."""
        return {"loss": self._plan.loss, "joint": self._plan.joint}

    def with_loss(self, loss: str, joint: bool) -> Ladder:
        """Return a ladder for another loss on the same rows and maps."""
        ladder = copy(self)
        ladder._plan = replace(self._plan, loss=loss, joint=joint and len(self._targets) > 1)
        return ladder

    def resized(self, rung: Rung, changes: tuple[Any, ...]) -> tuple[Ladder, Rung]:
        """Return a ladder with other sizes of the columns, and a rung with the same scores in its functions."""
        kind, bandwidth, alpha, sizes = changes
        trial = self.trial._replace(kind=kind, bandwidth=bandwidth, alpha=alpha, sizes=sizes)
        ladder, before, after = Ladder(self._task, trial), *map(self._factors, (self.trial, trial))
        trains: list[list[Sequence[NDArray]]] = [
            [_rescaled(own, before, after) for own in fold] for fold in rung.trains
        ]
        return ladder, rung._replace(alpha=rung.alpha * alpha / self.trial.alpha, trains=trains)

    def _factors(self, trial: MapTrial) -> list[NDArray]:
        """Factors of the functions of the columns that are needed."""
        every = self._task.maker.factors(trial.kind, trial.bandwidth, trial.sizes)
        return [factors for factors in every if factors[1:].any()]

    def effects(self, rung: Rung) -> NDArray:
        """Mean squares of the effects of every column on held-out rows, (d,); 0 for those that are left out."""
        (fold,), (trains,) = self.folds, rung.trains
        rows = fold.held_out.scored(partial(_effects, self.maps, trains))
        order = np.argsort(rows.hashes, kind="stable")  # sums do not depend on the order of the rows
        squares = rows.weights[order] @ rows.scores[order] / rows.weights.sum()
        return np.array(self.maps.widened(squares.tolist(), lambda before: 0.0))

    def is_quick(self, rank: Any) -> bool:
        """Whether a rung of this rank takes some seconds at most."""
        return self._work(clip_ranks(self.maps.dims, max(2, int(np.max(rank)))), self._n_rows) <= _MOST_WORK

    @property
    def may_walk(self) -> bool:
        """Whether alpha is open, and may be searched for with trains."""
        return self._task.settings.alpha == "auto" and self._task.n_updates(len(self.maps)) <= _MOST_WALKED

    def ranks(self) -> list[int]:
        """Ranks worth trying: those above what the columns allow change nothing, and the highest take long."""
        dims, parts = self.maps.dims, self._parts
        if parts is not None:
            ranks = list(_GROUP_RANKS[: 2 if self.is_slow else 3])
            shapes: list[Any] = [with_rank(parts, dims, rank) for rank in ranks]
        else:
            ranks = [rank for rank in _RANKS if rank >= (_FIRST_SLOW_RANK if self.is_slow else 0)]
            shapes = [clip_ranks(dims, rank) for rank in ranks]
            n_rows = float(self._task.n_rows)
            ranks = [rank for rank, shape in zip(ranks, shapes, strict=True) if self._work(shape, n_rows) <= _LAST_WORK]
        different = [rank for k, rank in enumerate(ranks) if shapes[k] not in shapes[:k]]
        return different or [_FIRST_RANK]

    def first_rank(self) -> int:
        """The rank at which finalists are compared."""
        ranks = self.ranks()
        return max(rank for rank in ranks if rank <= max(_FIRST_RANK, ranks[0]))

    def _work(self, ranks: Sequence[int], n_rows: float) -> float:
        """Floating point operations of a rung from this many rows, roughly."""
        shapes = zip(ranks, self.maps.dims, ranks[1:], strict=False)
        exact = self._plan.solver == "exact"
        work = sum(update_work(shape, n_rows, exact, width) for shape, width in zip(shapes, self._widths, strict=True))
        steps = 1 if get_loss(self._plan.loss).quadratic else _NEWTON_STEPS
        return work * steps * self._n_sweeps * len(self._targets) * self._n_folds

    def learn(self, rank: int, alpha: float, below: Rung | None = None, step: str = "rank") -> Rung:
        """Learn trains of this rank from those of another rung, or from the linear model, and evaluate them."""
        dims, parts = self.maps.dims, self._parts
        starts: Sequence[Any] = [None] * len(self.folds) if below is None else below.trains
        if below is None:
            plan = replace(self._plan, rank=clip_ranks(dims, 2), max_sweeps=0)
            parts = None if parts is None else (additive_part(range(len(dims))),)
        elif parts is None:
            plan = replace(self._plan, rank=clip_ranks(dims, rank), init="given")
        elif all(part.additive for part in parts):  # it has no rank
            rung = below if below.alpha == alpha else self.learn(LINEAR, alpha, step="")
            return self._noted(step, rung._replace(rank=rank))
        else:
            parts = with_rank(parts, dims, rank)
            plan = replace(self._plan, rank=joined_ranks(parts, dims))
            if below.rank == LINEAR:
                starts = [[share_additive(cores[0], parts) for cores in fold] for fold in starts]
        # Noise does not shrink with fewer rows, so alpha is larger.
        plan = replace(plan, alpha=alpha / self._share)
        trains, scored, seeds = [], [], self._task.seeds
        for fold, start in zip(self.folds, starts, strict=True):
            learned: list[Any] = [_zero(dims, plan, seed, parts) for seed in seeds]  # of trains without rows
            chosen = np.flatnonzero(fold.has_rows).tolist()
            if chosen:
                begins = [Start(seeds[k], None if start is None else start[k]) for k in chosen]
                targets = [self._targets[k] for k in chosen]
                results = train(fold.learned, self.maps, plan, targets, begins, n_jobs=self._task.n_jobs, parts=parts)
                for k, result in zip(chosen, results, strict=True):
                    learned[k] = result.following
            trains.append(learned)
            joined = learned if parts is None else [join_parts(parts, dims, cores) for cores in learned]
            scored.append(fold.held_out.scored(partial(_scores, FittedModel(plan.loss, self.maps, joined))))
        held_out = Scored.merge(scored)
        return self._noted(step, Rung(rank, alpha, self._evidence(held_out), held_out, trains))

    def exact_trains(self, rank: int) -> list[Any] | None:
        """Cores of the rounded exact solution for some of the rows; None where rounding would take long."""
        rows = self._task.learned_rows(self._exact_rows(rank))
        n_rows = len(rows.X)
        # Where sweeps take long, a solution for a small part of the rows is no better start than the ladder's.
        if n_rows < _LEAST_EXACT_ROWS or (self.is_slow and 2 * n_rows < self._n_rows):
            return None
        values = function_values(self.maps, rows.X)
        kernel = product_kernel(values)
        if not np.isfinite(kernel).all():
            return None
        coefficients = solve_dual(kernel, rows.targets, rows.weights, self.alpha * self._task.n_rows / n_rows)
        return round_for_sweeps(values, (coefficients / self._task.sizes).T, rank)

    def _exact_rows(self, rank: int) -> int:
        """Number of rows for which the exact solution is rounded fast and in little memory."""
        work = 16.0 * rank * rank * sum(self.maps.dims) * len(self._targets)
        numbers = 2.0 * rank * len(self.maps)
        return int(min(_MOST_EXACT_ROWS, _ROUNDING_WORK / work, _ROUNDING_NUMBERS / numbers))

    def _noted(self, step: str, rung: Rung) -> Rung:
        if step:
            rank = int(np.max(rung.rank))
            self._task.note(step, self.trial, rung.alpha, rank, self._n_rows, rung.evidence.error)
        return rung

    def left_out(self, rows: Scored) -> HeldOut:
        """Scores of held-out rows, with their labels if there are classes."""
        classes = self._task.rows.summary.labels if self._task.rows.classify else ()
        labels = np.zeros((len(rows.y), len(classes)))
        if rows.y.ndim == 2 and self._task.rows.classify:
            labels = self._task.label_weights(rows.weights, rows.y * rows.weights[:, None])
        elif self._task.rows.classify:
            labels[np.arange(len(rows.y)), rows.y] = rows.weights
        return HeldOut(rows.hashes, rows.scores, labels, tuple(fold.held_out for fold in self.folds))

    def _evidence(self, rows: Scored) -> Evidence:
        if self._task.judges_probabilities:
            return likelihood(self._task, self.left_out(rows), self._plan.loss)[0]
        loss, losses, largest = get_loss(self._plan.loss), np.zeros(len(rows.weights)), np.zeros(len(rows.weights))
        for target, size, scores in zip(self._targets, self._sizes, rows.scores.T, strict=True):
            wanted, factors = target.wanted(rows.y)
            largest = np.maximum(largest, factors)
            scores = scores + target.offset
            if loss.needs_values:  # outliers must not decide
                wanted = np.clip(wanted, scores - _LARGEST_RESIDUAL, scores + _LARGEST_RESIDUAL)
            costs = np.minimum(loss.evaluate(wanted, scores)[0], _HOPELESS)
            losses += rows.weights * factors * size * size * costs
        # Equal rows are one row with all of their weight: repetition adds no evidence.
        _, place = np.unique(rows.hashes, return_inverse=True)
        weights = np.bincount(place, rows.weights * largest)
        return Evidence(np.bincount(place, losses) / weights, weights / weights.sum())


def _zero(dims: Sequence[int], plan: Settings, seed: int, parts: Sequence[Part] | None) -> Any:
    """A train that is 0 everywhere, from which sweeps can go on, or such trains for all parts."""
    if parts is not None:
        return [
            [np.zeros((a, dims[k], b)) for k, a, b in zip(part.columns, part.ranks, part.ranks[1:], strict=False)]
            for part in parts
        ]
    first, *others = random_start(dims, plan.ranks, np.random.default_rng(seed))
    return [np.zeros_like(first), *others]


def _scores(model: FittedModel, X: NDArray) -> NDArray:
    """Scores of all trains, (n_trains, N): a function that can be pickled."""
    return model.scores(X)


def _effects(maps: MapList, trains: Sequence[Sequence[NDArray]], X: NDArray) -> NDArray:
    """Squared effects of every column, (d, N): a function that can be pickled."""
    return train_effects(function_values(maps, X.astype(np.float64, copy=False)), trains)


def _rescaled(train: Sequence[NDArray], before: Sequence[NDArray], after: Sequence[NDArray]) -> list[NDArray]:
    """Return cores with the same scores after the functions were rescaled; functions may be added or dropped."""
    cores = []
    for core, old, new in zip(train, before, after, strict=True):
        every = np.zeros((len(core), len(old), core.shape[2]))
        every[:, old != 0] = core * old[old != 0, None]
        cores.append(every[:, new != 0] / new[new != 0, None])
    return cores
