"""Fit the uncertainty of a regressor to rows that it has not learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Choice, HeldOut
from polytrain.learning.moments import CoreMoments
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.rows.rows import Scored
from polytrain.rows.summary import target_hashes
from polytrain.uncertainty import LeftOutErrors, TrainUncertainty, Uncertainty, fit_noise, leverages_of_rows

#: Moments of every core, for every train.
Moments = Sequence[Sequence[CoreMoments]]


def set_apart(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Return rows to learn from, and about this fraction of them for calibration."""
    learned, apart = rows.set_apart(fraction)
    for side, use in ((learned, "to learn from"), (apart, "for calibration")):
        try:
            _ = side.summary
        except ValueError:
            n_rows = rows.summary.n_rows  # it raises what is wrong with all of them
            raise ValueError(
                f"calibration_fraction={fraction} leaves no row {use}, of {n_rows}. Change it, or fit with more rows."
            ) from None
    return learned, apart


def fit_uncertainty(
    model: FittedModel, choice: Choice, moments: Moments, rows: Rows, apart: Rows | None, before: Any
) -> FittedModel:
    """Return the model with its uncertainty, from rows ``apart`` or from those that the choice left out.

    A warm start goes on from the model ``before``, whose errors it keeps where there are none.
    """
    alpha, trains = choice.plan.alpha, []
    left_out = choice.held_out if apart is None else apart
    if left_out is None:
        factors = (model.size / before.size).tolist()  # targets may be divided by other numbers than before
        for own, measured, factor in zip(before.uncertainty.trains, moments, factors, strict=True):
            errors = replace(own.left_out, errors=own.left_out.errors / factor)
            trains.append(TrainUncertainty(tuple(measured), alpha, own.reach, own.noise / factor**2, errors))
        return replace(model, uncertainty=Uncertainty(tuple(trains), guaranteed=False))
    # Overflow makes the uncertainty infinite, which is right.
    with np.errstate(over="ignore", invalid="ignore"):
        question = partial(_values_and_leverages, model, moments, alpha)
        errors, heights, weights = _left_out(model, question, left_out)
        if not len(weights) or not (np.isfinite(errors).all() and np.isfinite(heights).all()):
            return model
        for measured, own_errors, own_heights in zip(moments, errors.T, heights.T, strict=True):
            factor = 2.0 / rows.sketch.n_distinct
            noise, stretch = fit_noise(own_errors, factor * own_heights, weights)
            reach = stretch * factor
            scaled = LeftOutErrors.of(own_errors / np.sqrt(1.0 + reach * own_heights), weights)
            trains.append(TrainUncertainty(tuple(measured), alpha, reach, noise, scaled))
    return replace(model, uncertainty=Uncertainty(tuple(trains), guaranteed=apart is not None))


def _left_out(model: FittedModel, question: Callable[[NDArray], NDArray], left_out: Any) -> tuple[NDArray, ...]:
    """Errors and leverages (N, n_trains) of different rows that were not learned from, and their weights (N,).

    ``left_out`` are rows that the model scores, or a `HeldOut`, which has scores of models without these rows.
    """
    is_held_out = isinstance(left_out, HeldOut)
    seen = Scored.merge(rows.scored(question) for rows in (left_out.rows if is_held_out else [left_out]))
    scores, heights = np.split(seen.scores, 2, axis=1)
    kept = np.ones(len(scores), dtype=bool)
    if is_held_out:
        hashes, rows = np.unique(left_out.hashes, return_index=True)
        place = np.minimum(np.searchsorted(hashes, seen.hashes), len(hashes) - 1)
        kept = hashes[place] == seen.hashes
        scores = left_out.scores[rows[place]]
    y = seen.y if seen.y.ndim == 2 else seen.y[:, None]
    errors = (y - model.shift) / model.size - scores
    # Equal rows are one row with all of their weight: repetition adds no certainty.
    _, first, place = np.unique(target_hashes(seen.hashes, seen.y)[kept], return_index=True, return_inverse=True)
    weights = np.bincount(place, seen.weights[kept], minlength=len(first))
    return errors[kept][first], heights[kept][first], weights


def _values_and_leverages(model: FittedModel, moments: Moments, alpha: float, X: NDArray) -> NDArray:
    """Values of every train for rows X (N, d), and then their leverages, (2 trains, N)."""
    parts = [(cores, measured, alpha) for cores, measured in zip(model.cores, moments, strict=True)]
    return np.vstack([model.values(X), leverages_of_rows(parts, model.maps, X)])
