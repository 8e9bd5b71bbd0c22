"""Rows that a fit has not learned from: what its trains say about them, and how wrong that is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Choice, HeldOut
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
    trains without these rows, and of the learned ones. ``n_rows`` counts equal rows, ``is_apart`` tells of rows that had
    no part in the fit at all, and ``are_all`` of all training rows, each left out in turn.
    """

    y: NDArray
    values: NDArray
    leverages: NDArray
    weights: NDArray
    n_rows: int
    is_apart: bool = False
    are_all: bool = False

    @classmethod
    def of_classes(cls, held_out: HeldOut, rows: Rows) -> LeftOutRows:
        """Take the scores that the choice has kept, whose rows have weights at several labels."""
        place, labels = np.nonzero(held_out.label_weights)
        values, weights = held_out.scores[place], held_out.label_weights[place, labels]
        are_all = _are_all(held_out, rows)
        n_rows = rows.summary.n_rows if are_all else len(held_out.hashes)
        return cls(labels, values, np.zeros_like(values), weights, n_rows, are_all=are_all)

    @classmethod
    def of_numbers(
        cls, left_out: Rows | HeldOut, model: FittedModel, moments: Moments, alpha: float, rows: Rows
    ) -> LeftOutRows:
        """Ask the model about rows that were set apart, or look for the targets of those that the choice left out."""
        question = partial(_values_and_leverages, model, moments, alpha)
        is_held_out = isinstance(left_out, HeldOut)
        seen = Scored.merge(some.scored(question) for some in (left_out.rows if is_held_out else [left_out]))
        values, leverages = np.split(seen.scores, 2, axis=1)
        kept = np.ones(len(values), dtype=bool)
        if is_held_out:
            hashes, index = np.unique(left_out.hashes, return_index=True)
            place = np.minimum(np.searchsorted(hashes, seen.hashes), len(hashes) - 1)
            kept = hashes[place] == seen.hashes
            values = left_out.scores[index[place]]
        y = seen.y if seen.y.ndim == 2 else seen.y[:, None]
        # Repetition adds no certainty.
        _, first, place = np.unique(target_hashes(seen.hashes, seen.y)[kept], return_index=True, return_inverse=True)
        weights = np.bincount(place, seen.weights[kept], minlength=len(first))
        arrays = (array[kept][first] for array in (y, values, leverages))
        are_all = is_held_out and _are_all(left_out, rows)
        return cls(*arrays, weights, int(kept.sum()), is_apart=not is_held_out, are_all=are_all)


def _are_all(held_out: HeldOut, rows: Rows) -> bool:
    return held_out.n_distinct == rows.sketch.n_distinct


def _values_and_leverages(model: FittedModel, moments: Moments, alpha: float, X: NDArray) -> NDArray:
    """Values of every train for rows X (N, d), and then their leverages, (2 trains, N)."""
    parts = [(cores, measured, alpha) for cores, measured in zip(model.cores, moments, strict=True)]
    return np.vstack([model.values(X), leverages_of_rows(parts, model.maps, X)])


def measure_left_out(model: FittedModel, choice: Choice, rows: Rows, seen: LeftOutRows | None) -> LeftOut | None:
    """Measure what the trains say about left-out rows, in the units of the target; None where nothing is known."""
    if seen is None or not len(seen.y):
        return None
    total, how = rows.summary.n_rows, "; they also chose the settings" if choice.tried else ""
    if seen.is_apart:
        where = f"{seen.n_rows:,} rows that were set apart"
    elif seen.are_all:
        where = f"each of the {total:,} rows left out in turn{how}"
    else:
        where = f"{seen.n_rows:,} of {total:,} rows held out{how}"
    y = seen.y[:, 0] if model.classes is None and model.one_output else seen.y
    with np.errstate(over="ignore", invalid="ignore"):  # scores may be beyond all bounds
        answers = Answers.of_scores(model, model.scaled(seen.values.T.copy()), y, seen.weights)
        return LeftOut.of(answers, where)
