"""Choose rank and alpha on rows that are held out, from the linear model upwards.

Every rung starts from the trains of the one below, so that few sweeps are spent at high ranks. With few rows, each fold
is held out in turn; with many, one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.alphas import Evidence
from polytrain.choice.maps import MapTrial
from polytrain.choice.result import LeftOutScores
from polytrain.choice.task import Task
from polytrain.learning.core_solvers import update_work
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import Part, additive_part, join_parts, joined_ranks, share_additive, with_rank
from polytrain.learning.placed import PlacedRows
from polytrain.learning.schedule import log_losses, train
from polytrain.learning.start import FEW_ROWS, random_start
from polytrain.learning.trainer import TrainJob, TrainPlan
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.rows.rows import Scored
from polytrain.tensor import clip_ranks

__all__ = ["LINEAR", "Ladder", "Rung", "train_values"]

#: The rung of the linear model.
LINEAR = 1
_RANKS, _GROUP_RANKS = (2, 4, 8, 16), (2, 4, 8)
# Sweeps of a rung.
_RUNG_SWEEPS = 2
# Rows are cut into five parts, or into parts of this many rows, of which at most this many are learned from.
_N_PARTS, _PART_ROWS, _MOST_PARTS = 5, 15_000, 4
# Floating point operations that one rung may take: two seconds or so.
_MOST_WORK = 3e11
# Newton steps of an update where the loss is not quadratic.
_NEWTON_STEPS = 8
# Loss of a row whose score is beyond all bounds; and residuals that are outliers to losses that do not mind them, for
# targets that are divided by their spread.
_HOPELESS, _LARGEST_RESIDUAL = 1e100, 10.0
# Updates of cores that take half a second or so, however small they are.
_MOST_UPDATES = 500


class Rung(NamedTuple):
    """What a rank and an alpha came to.

    Attributes
    ----------
    rank : int
        1 for the linear model.
    alpha : float
        For all rows.
    evidence : Evidence
    scores : ndarray of shape (N, n_trains)
        Of the rows that were held out.
    trains : list of lists of cores, one per train, for every fold
        Where a train is a sum over groups of columns, the cores of all its parts.
    """

    rank: int
    alpha: float
    evidence: Evidence
    scores: NDArray
    trains: list[list[Sequence[NDArray]]]


@dataclass(frozen=True)
class _Fold:
    learned: PlacedRows
    held_out: Rows
    has_rows: Sequence[bool]  # whether there is anything to learn from, for every train


class Ladder:
    """Trains of growing rank in the maps of one trial, learned from some rows and judged on the others."""

    def __init__(self, task: Task, trial: MapTrial) -> None:
        settings = task.settings
        self._task, self.trial, self._targets, self._parts = task, trial, task.targets, task.parts
        self.maps = task.maker(trial.kind, trial.bandwidth)
        # The alpha of a trial is for the squared loss, on the rows of the sample.
        self.alpha = trial.alpha * task.share
        if settings.alpha == "auto":
            noise = trial.error / float(np.mean(task.sizes)) ** 2
            self.alpha *= get_loss(settings.loss).alpha_share(noise, task.guides[0].steepness)
        self._n_sweeps = _RUNG_SWEEPS if settings.max_sweeps == "auto" else settings.max_sweeps
        self._plan = settings.plan(self.maps.dims, alpha=self.alpha, init="linear", max_sweeps=self._n_sweeps)
        is_scaled = task.guides is task.targets or not task.rows.classify
        self._sizes = task.sizes if is_scaled else np.ones(len(task.targets))
        n_parts = max(_N_PARTS, ceil(task.n_rows / _PART_ROWS))
        self.n_folds = n_parts if task.n_rows <= FEW_ROWS else 1  # with few rows, each fold is held out in turn
        # Of very many rows, some parts are learned from; else all that are not held out.
        n_learned = min(n_parts - 1, _MOST_PARTS)
        self.share = n_learned / n_parts
        self.n_rows = round(task.n_rows * self.share)
        self._rows, self._n_parts, self._n_learned = task.rows, n_parts, n_learned
        self._seen: Scored | None = None
        self.rungs: list[Rung] = []

    @cached_property
    def _folds(self) -> list[_Fold]:
        """What is learned from and held out; rows are placed once somebody climbs."""
        rows, n_parts = self._rows, self._n_parts
        if self._n_learned < n_parts - 1:
            return [self._fold(rows.part(1, 1 + self._n_learned, n_parts), rows.part(0, 1, n_parts))]
        return [
            self._fold(rows.part(k, k + 1, n_parts, inside=False), rows.part(k, k + 1, n_parts))
            for k in range(self.n_folds)
        ]

    def _fold(self, learned: Rows, held_out: Rows) -> _Fold:
        has_rows = [True] * len(self._targets)
        # Some parts of few rows are empty, and two rare classes may both be in the part that is held out.
        if self.n_folds > 1 or not all(target.keeps_all for target in self._targets):
            present = learned.present_labels()
            has_rows = [bool(target.wanted(present)[1].any()) for target in self._targets]
        return _Fold(learned.place(self.maps), held_out, has_rows)

    @property
    def is_slow(self) -> bool:
        """Whether a rung takes half a second or more, however low it is."""
        grouped = sum(len(part.columns) for part in self._parts or () if not part.additive)
        n_cores = max(len(self.maps), 2 * grouped)
        return n_cores * len(self._targets) * self._n_sweeps * self.n_folds > _MOST_UPDATES

    def _shape(self, rank: int) -> Any:
        """Ranks of all bonds, or of those of all parts."""
        dims = self.maps.dims
        return clip_ranks(dims, rank) if self._parts is None else with_rank(self._parts, dims, rank)

    def ranks(self) -> list[int]:
        """Ranks that are worth a try: more than the columns allow are the same as fewer, and the highest take long."""
        found: list[int] = []
        grouped = _GROUP_RANKS[:2] if self.is_slow else _GROUP_RANKS
        for rank in _RANKS if self._parts is None else grouped:
            most = _MOST_WORK if rank < _RANKS[-1] else _MOST_WORK / 4
            is_long = self._parts is None and self._work(self._shape(rank)) > most
            if found and (is_long or self._shape(rank) == self._shape(found[-1])):
                break
            found.append(rank)
        return found[-1:] if self.is_slow else found

    def _work(self, ranks: Sequence[int]) -> float:
        """Floating point operations of a rung, roughly."""
        n_rows, exact = float(self.n_rows), self._plan.solver == "exact"
        work = sum(
            update_work((a, n, b), n_rows, exact) for a, n, b in zip(ranks, self.maps.dims, ranks[1:], strict=False)
        )
        steps = 1 if get_loss(self._plan.loss).quadratic else _NEWTON_STEPS
        return work * steps * self._n_sweeps * len(self._targets) * self.n_folds

    def learn(self, rank: int, alpha: float, below: Rung | None = None, step: str = "rank") -> Rung:
        """Learn trains of a rank from those of another rung, or the linear model if there is none, and judge them."""
        dims, parts = self.maps.dims, self._parts
        starts: list[Any] = [None] * len(self._folds)
        if below is None:
            plan = replace(self._plan, ranks=clip_ranks(dims, 2), init="linear", max_sweeps=0)
            parts = None if parts is None else (additive_part(range(len(dims))),)
        elif parts is None:
            plan = replace(self._plan, ranks=clip_ranks(dims, rank), init="given", max_sweeps=self._n_sweeps)
            starts = list(below.trains)
        elif all(part.additive for part in parts):  # it has no rank
            rung = below if below.alpha == alpha else self.learn(LINEAR, alpha, step="")
            return self._noted(step, rung._replace(rank=rank))
        else:
            parts = with_rank(parts, dims, rank)
            plan = replace(self._plan, ranks=joined_ranks(parts, dims), max_sweeps=self._n_sweeps)
            starts = list(below.trains)
            if below.rank == LINEAR:
                starts = [[share_additive(cores[0], parts) for cores in fold] for fold in starts]
        # Noise does not shrink with fewer rows: alpha is larger as they are fewer.
        plan = replace(plan, alpha=alpha / self.share)
        trains: list[list[Any]] = []
        seen = []
        for fold, start in zip(self._folds, starts, strict=True):
            learned: list[Any] = [_zero(plan, seed, parts) for seed in self._task.seeds]  # of trains without rows
            chosen = np.flatnonzero(fold.has_rows).tolist()
            if chosen:
                jobs = [TrainJob(self._task.seeds[k], None if start is None else start[k]) for k in chosen]
                targets = [self._targets[k] for k in chosen]
                results = train(fold.learned, self.maps, plan, targets, jobs, n_jobs=self._task.n_jobs, parts=parts)
                for k, result in zip(chosen, results, strict=True):
                    learned[k] = result.following
            trains.append(learned)
            joined = learned if parts is None else [join_parts(parts, dims, cores) for cores in learned]
            seen.append(fold.held_out.scored(partial(train_values, FittedModel(plan.loss, self.maps, joined))))
        self._seen = held_out = Scored.merge(seen)
        return self._noted(step, Rung(rank, alpha, self._evidence(held_out), held_out.scores, trains))

    def _noted(self, step: str, rung: Rung) -> Rung:
        if step:
            line = rung.alpha, int(np.max(rung.rank)), self.n_rows, rung.evidence.error
            self._task.note(step, self.trial.kind, self.trial.bandwidth, *line)
        return rung

    def held_out_of(self, rung: Rung) -> Scored:
        """Scores of a rung beside labels and weights of the rows, which are the same for all rungs."""
        if self._seen is None:
            raise ValueError("there is no rung yet.")
        return self._seen._replace(scores=rung.scores)

    def left_out_of(self, rung: Rung) -> LeftOutScores:
        """What a rung says about rows that were held out, each of them once."""
        hashes, first = np.unique(self.held_out_of(rung).hashes, return_index=True)
        return LeftOutScores(hashes, rung.scores[first], tuple(fold.held_out for fold in self._folds))

    def _evidence(self, rows: Scored) -> Evidence:
        loss, losses, largest = get_loss(self._plan.loss), np.zeros(len(rows.weights)), np.zeros(len(rows.weights))
        is_joint = self._plan.joint and len(self._targets) > 1
        for target, size, scores in zip(self._targets, self._sizes, rows.scores.T, strict=True):
            wanted, factors = target.wanted(rows.y)
            largest = np.maximum(largest, factors)
            if is_joint:
                continue
            scores = scores + target.offset
            if loss.needs_values:  # outliers must not decide
                wanted = np.clip(wanted, scores - _LARGEST_RESIDUAL, scores + _LARGEST_RESIDUAL)
            costs = np.minimum(loss.evaluate(wanted, scores)[0], _HOPELESS)
            losses += rows.weights * factors * size * size * costs
        if is_joint:
            losses = rows.weights * largest * log_losses(rows.scores, rows.y)
        # Rows that are alike are one row with all of their weight: repetition makes nobody surer.
        _, place = np.unique(rows.hashes, return_inverse=True)
        weights = np.bincount(place, rows.weights * largest)
        return Evidence(np.bincount(place, losses) / weights, weights / weights.sum())


def _zero(plan: TrainPlan, seed: int, parts: Sequence[Part] | None) -> Any:
    """A train that is 0 everywhere, from which sweeps can go on, or such trains for all parts."""
    if parts is not None:
        return [
            [np.zeros((a, plan.dims[k], b)) for k, a, b in zip(part.columns, part.ranks, part.ranks[1:], strict=False)]
            for part in parts
        ]
    first, *others = random_start(plan.dims, plan.ranks, np.random.default_rng(seed))
    return [np.zeros_like(first), *others]


def train_values(model: FittedModel, X: NDArray) -> NDArray:
    """Values of all trains, (n_trains, N): a function that processes can be given."""
    return model.scores(X)
