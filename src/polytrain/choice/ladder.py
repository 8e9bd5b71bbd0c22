"""Choose rank and alpha on rows that are held out, from the linear model upwards.

Every rung starts from the trains of the one below, so that few sweeps are spent at high ranks. Of few rows, every part
is held out in turn; of many, one part is.
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
from polytrain.choice.result import LeftOutScores
from polytrain.learning.core_solvers import update_work
from polytrain.learning.losses import get_loss
from polytrain.learning.parts import Part, additive_part, join_parts, joined_ranks, share_additive, with_rank
from polytrain.learning.start import FEW_ROWS, random_start
from polytrain.learning.trainer import TrainJob, TrainPlan
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.rows.backfitting import Backfitting
from polytrain.rows.joint import log_losses
from polytrain.rows.placed import PlacedRows
from polytrain.rows.rows import Scored
from polytrain.rows.targets import Target
from polytrain.tensor import clip_ranks

__all__ = ["LINEAR", "GroupLadder", "Ladder", "Rung", "silent", "train_values"]

#: The rung of the linear model.
LINEAR = 1
_RANKS = (2, 4, 8, 16)
# Rows are cut into five parts, or into parts of so many rows; no more than so many of these are learned from.
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
    """Trains of growing rank on some rows, seen by the others.

    Parameters
    ----------
    rows : Rows
    n_distinct : int
        How many different rows there are.
    maps : MapList
    plan : TrainPlan
        Its ranks, start and number of sweeps do not matter.
    targets : sequence of Target
    sizes : ndarray of shape (n_trains,)
        What the errors of every train are multiplied by.
    seeds : sequence of int
    n_jobs : int or None
    n_sweeps : int, default=4
        Sweeps of every rung.
    """

    def __init__(
        self,
        rows: Rows,
        n_distinct: int,
        maps: MapList,
        plan: TrainPlan,
        targets: Sequence[Target],
        sizes: NDArray,
        seeds: Sequence[int],
        n_jobs: int | None,
        n_sweeps: int = 4,
    ) -> None:
        self._maps, self._plan, self._targets, self._sizes = maps, plan, targets, sizes
        self._seeds, self._n_jobs, self._n_sweeps = seeds, n_jobs, n_sweeps
        n_parts = max(_N_PARTS, ceil(n_distinct / _PART_ROWS))
        self.n_folds = n_parts if n_distinct <= FEW_ROWS else 1  # with few rows, each fold is held out in turn
        # Of very many rows, some parts are learned from; else all that are not held out.
        n_learned = min(n_parts - 1, _MOST_PARTS)
        self.share = n_learned / n_parts
        self.n_rows = round(n_distinct * self.share)
        self._rows, self._n_parts, self._n_learned = rows, n_parts, n_learned
        self._seen: Scored | None = None

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
            present = np.unique(learned.label_codes())
            has_rows = [bool(target.wanted(present[present >= 0])[1].any()) for target in self._targets]
        return _Fold(learned.place(self._maps), held_out, has_rows)

    @property
    def is_slow(self) -> bool:
        """Whether a rung takes half a second or more, however low it is."""
        return len(self._plan.dims) * len(self._targets) * self._n_sweeps * self.n_folds > _MOST_UPDATES

    def ranks(self) -> list[int]:
        """Ranks that are worth a try: more than the columns allow are the same as fewer, and the highest take long."""
        found: list[int] = []
        for rank in _RANKS:
            ranks = clip_ranks(self._plan.dims, rank)
            most = _MOST_WORK if rank < _RANKS[-1] else _MOST_WORK / 4
            if found and (ranks == clip_ranks(self._plan.dims, found[-1]) or self._work(ranks) > most):
                break
            found.append(rank)
        return found[-1:] if self.is_slow else found

    def _work(self, ranks: Sequence[int]) -> float:
        """Floating point operations of a rung, roughly."""
        n_rows, exact = float(self.n_rows), self._plan.solver == "exact"
        work = sum(
            update_work((a, n, b), n_rows, exact) for a, n, b in zip(ranks, self._plan.dims, ranks[1:], strict=False)
        )
        steps = 1 if get_loss(self._plan.loss).quadratic else _NEWTON_STEPS
        return work * steps * self._n_sweeps * len(self._targets) * self.n_folds

    def linear(self, alpha: float) -> Rung:
        """The regularised linear model in the functions of the maps."""
        plan = replace(self._plan, ranks=clip_ranks(self._plan.dims, 2), init="linear", max_sweeps=0)
        return self._rung(LINEAR, alpha, plan, [None] * len(self._folds))

    def climb(self, below: Rung, rank: int, alpha: float) -> Rung:
        """Sweep at this rank and alpha, from the trains of another rung."""
        ranks = clip_ranks(self._plan.dims, rank)
        plan = replace(self._plan, ranks=ranks, init="given", max_sweeps=self._n_sweeps)
        return self._rung(rank, alpha, plan, below.trains)

    def _rung(self, rank: int, alpha: float, plan: TrainPlan, starts: Sequence[Sequence | None]) -> Rung:
        # Noise does not shrink with fewer rows: alpha is larger as they are fewer.
        plan = replace(plan, alpha=alpha / self.share)
        trains: list[list[Sequence[NDArray]]] = []
        seen = []
        for fold, start in zip(self._folds, starts, strict=True):
            cores = [None] * len(self._targets) if start is None else start
            jobs = [TrainJob(seed, begin) for seed, begin in zip(self._seeds, cores, strict=True)]
            learned = self._learn(fold, plan, jobs)
            trains.append(learned)
            seen.append(fold.held_out.scored(partial(train_values, FittedModel.make(plan.loss, self._maps, learned))))
        held_out = Scored(*(np.concatenate(pieces) for pieces in zip(*seen, strict=True)))
        self._seen = held_out
        return Rung(rank, alpha, self._evidence(held_out), held_out.scores, trains)

    def _learn(self, fold: _Fold, plan: TrainPlan, jobs: Sequence[TrainJob]) -> list[Sequence[NDArray]]:
        """Learn the trains of a fold; those without rows stay at 0."""
        learned: list[Sequence[NDArray]] = [_nothing(plan, job.seed) for job in jobs]
        chosen = np.flatnonzero(fold.has_rows).tolist()
        if chosen:
            targets, used = [self._targets[k] for k in chosen], [jobs[k] for k in chosen]
            for k, result in zip(chosen, fold.learned.learn(plan, targets, used, self._n_jobs, silent), strict=True):
                learned[k] = result.cores
        return learned

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


def _nothing(plan: TrainPlan, seed: int) -> Sequence[NDArray]:
    """A train that is 0 everywhere, from which sweeps can go on."""
    first, *others = random_start(plan.dims, plan.ranks, np.random.default_rng(seed))
    return [np.zeros_like(first), *others]


def train_values(model: FittedModel, X: NDArray) -> NDArray:
    """Values of all trains, (n_trains, N): a function that processes can be given."""
    return model.scores(X)


def silent(index: int, record: dict, cores: Sequence[NDArray]) -> None:
    """Say nothing."""


_GROUP_RANKS = (2, 4, 8)


class GroupLadder(Ladder):
    """Sums of trains of growing rank, learned by backfitting.

    In a rung, ``trains`` holds the trains of all parts of every train.

    Parameters
    ----------
    parts : sequence of Part
    settings
        Those of `Ladder`.
    """

    def __init__(self, parts: Sequence[Part], *settings: Any) -> None:
        super().__init__(*settings)
        self._parts = parts

    @property
    def is_slow(self) -> bool:
        """Whether a rung takes seconds, however low it is."""
        cores = sum(len(part.columns) for part in self._parts if not part.additive)
        return super().is_slow or 2 * cores * len(self._targets) * self._n_sweeps * self.n_folds > _MOST_UPDATES

    def ranks(self) -> list[int]:
        """Ranks that are worth a try: more than the columns of all groups allow are the same as fewer."""
        found: list[tuple[int, tuple[Part, ...]]] = []
        for rank in _GROUP_RANKS[:2] if self.is_slow else _GROUP_RANKS:
            parts = with_rank(self._parts, self._plan.dims, rank)
            if found and parts == found[-1][1]:
                break
            found.append((rank, parts))
        return [rank for rank, _ in (found[-1:] if self.is_slow else found)]

    def linear(self, alpha: float) -> Rung:
        """The additive model in all functions of the maps."""
        dims = self._plan.dims
        plan = replace(self._plan, ranks=clip_ranks(dims, 2), init="linear", max_sweeps=0)
        return self._grouped(LINEAR, alpha, plan, [additive_part(range(len(dims)))], [None] * len(self._folds))

    def climb(self, below: Rung, rank: int, alpha: float) -> Rung:
        """Learn in rounds at this rank and alpha, from the trains of another rung."""
        if all(part.additive for part in self._parts):  # it has no rank
            return (below if below.alpha == alpha else self.linear(alpha))._replace(rank=rank)
        parts = with_rank(self._parts, self._plan.dims, rank)
        plan = replace(self._plan, ranks=joined_ranks(parts, self._plan.dims), max_sweeps=self._n_sweeps)
        starts: list[list[Any]] = list(map(list, below.trains))
        if below.rank == LINEAR:
            starts = [[share_additive(train[0], parts) for train in fold] for fold in starts]
        return self._grouped(rank, alpha, plan, parts, starts)

    def _grouped(self, rank: int, alpha: float, plan: TrainPlan, parts: Sequence[Part], starts: Sequence[Any]) -> Rung:
        # Noise does not shrink with fewer rows: alpha is larger as they are fewer.
        plan = replace(plan, alpha=alpha / self.share)
        trains: list[list[Any]] = []
        seen = []
        for fold, start in zip(self._folds, starts, strict=True):
            learned: list[Any] = [_zero_parts(parts, plan.dims) for _ in self._targets]
            chosen = np.flatnonzero(fold.has_rows).tolist()
            targets, seeds = [self._targets[k] for k in chosen], [self._seeds[k] for k in chosen]
            job = Backfitting(fold.learned, self._maps, parts, plan, targets, seeds, self._n_jobs)
            found = job.learn([None if start is None else start[k] for k in chosen], silent)
            for k, result in zip(chosen, found, strict=True):
                learned[k] = result.trains
            trains.append(learned)
            joined = [join_parts(parts, plan.dims, cores) for cores in learned]
            model = FittedModel.make(plan.loss, self._maps, joined)
            seen.append(fold.held_out.scored(partial(train_values, model)))
        self._seen = held_out = Scored(*(np.concatenate(pieces) for pieces in zip(*seen, strict=True)))
        return Rung(rank, alpha, self._evidence(held_out), held_out.scores, trains)


def _zero_parts(parts: Sequence[Part], dims: Sequence[int]) -> list[list[NDArray]]:
    """Trains that are 0 everywhere."""
    return [
        [np.zeros((a, dims[k], b)) for k, a, b in zip(part.columns, part.ranks, part.ranks[1:], strict=False)]
        for part in parts
    ]
