"""Fit the uncertainty of a regressor to rows that it has not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Choice, HeldOut
from polytrain.estimators._left_out import see_left_out
from polytrain.learning.moments import CoreMoments
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.uncertainty import (
    TrainUncertainty,
    Uncertainty,
    blocks_of_functions,
    fit_scale,
    fit_stretch,
    leverages,
)

#: Moments of every core, for every train.
Moments = Sequence[Sequence[CoreMoments]]


def set_apart(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Return rows to learn from, and about this fraction of them for calibration."""
    learned, apart = rows.set_apart(fraction)
    for side, use in ((learned, "to learn from"), (apart, "for calibration")):
        try:
            _ = side.summary
        except ValueError:
            n_rows = rows.summary.n_rows  # opening all of them raises the error about the rows
            raise ValueError(
                f"calibration_fraction={fraction} leaves no row {use}, of {n_rows}. Change it, or use more rows."
            ) from None
    return learned, apart


def fit_uncertainty(
    model: FittedModel, choice: Choice, moments: Moments, rows: Rows, apart: Rows | None, before: Any
) -> FittedModel:
    """Return the model with its uncertainty, from rows that the choice left out and, if given, rows ``apart``.

    Rows left out by the choice show where errors are large; rows ``apart`` only determine the overall size.
    A warm start goes on from the model ``before``, whose errors it keeps where there are none.
    """
    reach = 2.0 / rows.sketch.n_distinct
    trains = [TrainUncertainty(tuple(measured), choice.plan.alpha, reach) for measured in moments]
    # Overflow makes the uncertainty infinite, which is right.
    with np.errstate(over="ignore", invalid="ignore"):
        if choice.held_out is not None:
            trains = _with_scales(model, trains, choice.held_out, rows)
        elif apart is None:
            trains = _of_before(model, trains, before)
        uncertainty = Uncertainty(tuple(trains), guaranteed=apart is not None)
        if apart is not None:
            seen = see_left_out(model, apart, rows, partial(_widths, model, uncertainty))
            pairs = zip(trains, seen.errors(model).T, seen.facts.T, strict=True)
            trains = [own.with_errors(errors, widths, seen.weights) for own, errors, widths in pairs]
    known = all(np.isfinite(own.noise) and own.left_out.n_rows for own in trains)
    return replace(model, uncertainty=Uncertainty(tuple(trains), apart is not None)) if known else model


def _with_scales(
    model: FittedModel, trains: Sequence[TrainUncertainty], held_out: HeldOut, rows: Rows
) -> list[TrainUncertainty]:
    """Estimate from ``held_out``, for every train, where errors are large and how large."""
    seen = see_left_out(model, held_out, rows, partial(_leverages_and_functions, model, trains))
    errors, weights, scores = seen.errors(model), seen.weights, seen.values
    heights, functions = np.split(seen.facts, [len(trains)], axis=1)
    if not len(weights) or not (np.isfinite(errors).all() and np.isfinite(heights).all()):
        return list(trains)
    known = []
    for own, *columns in zip(trains, errors.T, scores.T, heights.T, strict=True):
        own_errors, own_scores, own_heights = columns
        reach = own.reach * fit_stretch(own_errors, own.reach * own_heights, weights)
        widths = np.sqrt(1.0 + reach * own_heights)
        scale, logarithms = fit_scale(own_errors / widths, weights, own_scores, functions, model.maps.dims)
        scaled = replace(own, reach=reach, scale=scale)
        known.append(scaled.with_errors(own_errors, widths * np.exp(logarithms), weights))
    return known


def _of_before(model: FittedModel, trains: Sequence[TrainUncertainty], before: Any) -> list[TrainUncertainty]:
    """Return the uncertainty of the model ``before`` for targets with another shift and scale."""
    known, factors = [], (model.size / before.size).tolist()
    shifts = ((model.shift - before.shift) / before.size).tolist()
    for own, old, factor, shift in zip(trains, before.uncertainty.trains, factors, shifts, strict=True):
        errors, scale = replace(old.left_out, errors=old.left_out.errors / factor), old.scale
        if scale is not None:
            scale = replace(scale, curve=np.stack([(scale.curve[0] - shift) / factor, scale.curve[1]]))
        known.append(replace(own, reach=old.reach, scale=scale, noise=old.noise / factor**2, left_out=errors))
    return known


def _leverages_and_functions(model: FittedModel, trains: Sequence[TrainUncertainty], X: NDArray) -> NDArray:
    """Leverages of every train for rows X (N, d), and all functions but the constants, (q, N)."""
    facts = np.empty((len(trains) + sum(model.maps.dims) - len(model.maps), len(X)))
    for rows, values in blocks_of_functions(model.maps, X):
        for out, own, cores in zip(facts, trains, model.cores, strict=False):
            out[rows] = leverages(cores, own.moments, own.alpha, values)
        facts[len(trains) :, rows] = np.concatenate([functions[1:] for functions in values])
    return facts


def _widths(model: FittedModel, uncertainty: Uncertainty, X: NDArray) -> NDArray:
    """Expected sizes of the errors of every train for rows X (N, d), (n_trains, N)."""
    return uncertainty.widths(model.values(X), model.cores, model.maps, X)
