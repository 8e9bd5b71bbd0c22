"""Rows that a fit has not learned from: what its trains say about them, and how wrong that is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Choice
from polytrain.evaluation import Answers, LeftOut
from polytrain.learning.moments import CoreMoments
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.rows.rows import Scored
from polytrain.rows.summary import target_hashes
from polytrain.uncertainty import leverages_of_rows

#: Moments of every core, for every train.
Moments = Sequence[Sequence[CoreMoments]]


class LeftOutRows(NamedTuple):
    """Different rows that were not learned from, with their weights: equal rows are one with all of their weight.

    ``y`` (N, n_trains) are numbers, or (N,) indexes of classes; ``values`` and ``leverages`` (N, n_trains) are those of
    trains without these rows, and of the learned ones. ``n_rows`` counts equal rows.
    """

    y: NDArray
    values: NDArray
    leverages: NDArray
    weights: NDArray
    n_rows: int
    is_apart: bool = False

    def measure(self, model: FittedModel, choice: Choice, rows: Rows) -> LeftOut | None:
        """Measure what the trains say about these rows in the units of the target; None where it is not finite."""
        total, how = rows.summary.n_rows, "; they also chose the settings" if choice.tried else ""
        where = f"{self.n_rows:,} of {total:,} rows held out{how}"
        if self.is_apart:
            where = f"{self.n_rows:,} rows that were set apart"
        elif self.n_rows == total:
            where = f"each of the {total:,} rows left out in turn{how}"
        y = self.y[:, 0] if model.classes is None and model.one_output else self.y
        with np.errstate(over="ignore", invalid="ignore"):  # scores may be beyond all bounds
            answers = Answers.of_scores(model, model.scaled(self.values.T.copy()), y, self.weights)
            return LeftOut.of(answers, where) if answers.n else None


def see_left_out(
    model: FittedModel, choice: Choice, moments: Moments, rows: Rows, apart: Rows | None
) -> LeftOutRows | None:
    """Return rows that were set ``apart``, or those that the choice has left out; None if there are none."""
    held_out = choice.held_out if apart is None else None
    if held_out is None and apart is None:
        return None
    if held_out is not None and model.classes is not None:
        place, labels = np.nonzero(held_out.label_weights)
        values, weights = held_out.scores[place], held_out.label_weights[place, labels]
        are_all = held_out.n_distinct == rows.sketch.n_distinct  # of equal rows, there may be one only
        n_rows = rows.summary.n_rows if are_all else len(held_out.hashes)
        return LeftOutRows(labels, values, np.zeros_like(values), weights, n_rows)
    # The targets of rows that the choice has left out are where all rows are.
    question = partial(_values_and_leverages, model, moments, choice.plan.alpha)
    seen = Scored.merge(some.scored(question) for some in (held_out.rows if held_out else [apart]))  # type: ignore[union-attr]
    values, leverages = np.split(seen.scores, 2, axis=1)
    kept = np.ones(len(values), dtype=bool)
    if held_out is not None:
        hashes, index = np.unique(held_out.hashes, return_index=True)
        place = np.minimum(np.searchsorted(hashes, seen.hashes), len(hashes) - 1)
        kept = hashes[place] == seen.hashes
        values = held_out.scores[index[place]]
    y = seen.y if seen.y.ndim == 2 else seen.y[:, None]
    # Repetition adds no certainty.
    _, first, place = np.unique(target_hashes(seen.hashes, seen.y)[kept], return_index=True, return_inverse=True)
    weights = np.bincount(place, seen.weights[kept], minlength=len(first))
    y, values, leverages = (array[kept][first] for array in (y, values, leverages))
    return LeftOutRows(y, values, leverages, weights, int(kept.sum()), held_out is None)


def _values_and_leverages(model: FittedModel, moments: Moments, alpha: float, X: NDArray) -> NDArray:
    """Values of every train for rows X (N, d), and then their leverages, (2 trains, N)."""
    parts = [(cores, measured, alpha) for cores, measured in zip(model.cores, moments, strict=True)]
    return np.vstack([model.values(X), leverages_of_rows(parts, model.maps, X)])
