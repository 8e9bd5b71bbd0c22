"""Fit the uncertainty of a regressor to rows that it has not learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polytrain.estimators._left_out import LeftOutRows, Moments
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.uncertainty import LeftOutErrors, TrainUncertainty, Uncertainty, fit_noise


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
    model: FittedModel, alpha: float, moments: Moments, seen: LeftOutRows | None, n_distinct: int, before: Any
) -> FittedModel:
    """Return the model with its uncertainty, from rows that it has not learned from, and moments of all that it has.

    A warm start goes on from the model ``before``, whose errors it keeps where there are no such rows.
    """
    trains = []
    if seen is None:
        factors = (model.size / before.size).tolist()  # targets may be divided by other numbers than before
        for own, measured, factor in zip(before.uncertainty.trains, moments, factors, strict=True):
            errors = replace(own.left_out, errors=own.left_out.errors / factor)
            trains.append(TrainUncertainty(tuple(measured), alpha, own.reach, own.noise / factor**2, errors))
        return replace(model, uncertainty=Uncertainty(tuple(trains), guaranteed=False))
    # Overflow makes the uncertainty infinite, which is right.
    with np.errstate(over="ignore", invalid="ignore"):
        errors, heights = (seen.y - model.shift) / model.size - seen.values, seen.leverages
        if not len(seen.weights) or not (np.isfinite(errors).all() and np.isfinite(heights).all()):
            return model
        for measured, own_errors, own_heights in zip(moments, errors.T, heights.T, strict=True):
            factor = 2.0 / n_distinct
            noise, stretch = fit_noise(own_errors, factor * own_heights, seen.weights)
            reach = stretch * factor
            scaled = LeftOutErrors.of(own_errors / np.sqrt(1.0 + reach * own_heights), seen.weights)
            trains.append(TrainUncertainty(tuple(measured), alpha, reach, noise, scaled))
    return replace(model, uncertainty=Uncertainty(tuple(trains), guaranteed=seen.is_apart))
