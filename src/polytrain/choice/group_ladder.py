"""The ladder of ranks for sums of trains whose columns act together in groups only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice.ladder import LINEAR, Ladder, Rung, silent, train_values
from polytrain.learning.parts import Part, additive_part, join_parts, joined_ranks, share_additive, with_rank
from polytrain.learning.trainer import TrainPlan
from polytrain.models import FittedModel
from polytrain.rows.backfitting import Backfitting
from polytrain.rows.rows import Scored
from polytrain.tensor import clip_ranks

__all__ = ["GroupLadder"]

_RANKS = (2, 4, 8)
# Updates of cores that a rung may take before ranks are no longer compared.
_MOST_UPDATES = 500


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
        for rank in _RANKS[:2] if self.is_slow else _RANKS:
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
            learned: list[Any] = [_nothing(parts, plan.dims) for _ in self._targets]
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


def _nothing(parts: Sequence[Part], dims: Sequence[int]) -> list[list[NDArray]]:
    """Trains that are 0 everywhere."""
    return [
        [np.zeros((a, dims[k], b)) for k, a, b in zip(part.columns, part.ranks, part.ranks[1:], strict=False)]
        for part in parts
    ]
