"""From rows that were not learned from to the uncertainty of a fitted regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Choice, HeldOut
from polytrain.learning.moments import CoreMoments
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.rows.rows import Scored
from polytrain.rows.summary import target_hashes
from polytrain.uncertainty import TrainUncertainty, Uncertainty, blocks_of_values, leverages

__all__ = ["fit_uncertainty"]

#: Moments of every core, for every train.
Moments = Sequence[Sequence[CoreMoments]]


class _Seen(NamedTuple):
    """Different rows that were not learned from: errors and leverages (N, n_trains) of all trains, and weights (N,)."""

    errors: NDArray
    leverages: NDArray
    weights: NDArray


def fit_uncertainty(
    model: FittedModel,
    choice: Choice,
    moments: Moments,
    rows: Rows,
    apart: Rows | None,
    before: FittedModel | None,
) -> FittedModel:
    """Return the model with what is known about its uncertainty, from rows ``apart`` or those that the choice left out.

    A warm start goes on from the model ``before``, whose errors it keeps where there are none.
    """
    alpha = choice.plan.alpha
    if apart is None and choice.held_out is None:
        if before is None or before.uncertainty is None:
            return model
        factors = (model.size / before.size).tolist()
        return replace(model, uncertainty=before.uncertainty.with_moments(moments, alpha, factors))
    # Numbers that overflow make an infinite uncertainty, and that is right.
    with np.errstate(over="ignore", invalid="ignore"):
        if apart is not None:
            seen = _see(model, moments, alpha, [apart], None)
        elif choice.held_out is not None:
            seen = _see(model, moments, alpha, choice.held_out.rows, choice.held_out)
        if not len(seen.weights) or not (np.isfinite(seen.errors).all() and np.isfinite(seen.leverages).all()):
            return model
        n_learned = rows.sketch.n_distinct
        trains = tuple(
            TrainUncertainty.fit(measured, alpha, n_learned, errors, left_out_leverages, seen.weights)
            for measured, errors, left_out_leverages in zip(moments, seen.errors.T, seen.leverages.T, strict=True)
        )
    return replace(model, uncertainty=Uncertainty(trains, guaranteed=apart is not None))


def _see(model: FittedModel, moments: Moments, alpha: float, places: Sequence[Rows], left_out: HeldOut | None) -> _Seen:
    """Look at rows that were not learned from; their scores are those of the model, or what was said without them."""
    question = partial(_scores_and_doubts, model, moments, alpha)
    seen = Scored.merge(place.scored(question) for place in places)
    scores, left_out_leverages = np.split(seen.scores, 2, axis=1)
    kept = np.ones(len(scores), dtype=bool)
    if left_out is not None:
        order = np.argsort(left_out.hashes, kind="stable")
        known = left_out.hashes[order]
        place = np.minimum(np.searchsorted(known, seen.hashes), len(known) - 1)
        kept = known[place] == seen.hashes
        scores = left_out.scores[order[place]]
    y = seen.y if seen.y.ndim == 2 else seen.y[:, None]
    errors = (y - model.shift) / model.size - scores
    # Rows that are alike are one row with all of their weight: repetition makes nobody surer.
    _, first, place = np.unique(target_hashes(seen.hashes, seen.y)[kept], return_index=True, return_inverse=True)
    weights = np.bincount(place, seen.weights[kept], minlength=len(first))
    return _Seen(errors[kept][first], left_out_leverages[kept][first], weights)


def _scores_and_doubts(model: FittedModel, moments: Moments, alpha: float, X: NDArray) -> NDArray:
    """Scores of every train for rows X (N, d), without shift and size, and then their leverages, (2 trains, N)."""
    n_trains = model.n_trains
    found = np.empty((2 * n_trains, len(X)))
    if len(X):
        found[:n_trains] = (model.scores(X) - model.shift[:, None]) / model.size[:, None]
    for rows, values in blocks_of_values(model.maps, X):
        for index, (cores, measured) in enumerate(zip(model.cores, moments, strict=True)):
            found[n_trains + index, rows] = leverages(cores, measured, alpha, values)
    return found
