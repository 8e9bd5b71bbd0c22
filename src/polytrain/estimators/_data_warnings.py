"""Warnings of a fit: odd columns, merged levels, parameters without effect, a model no better than a guess."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from scipy.special import entr

from polytrain.checks import warn_of_data
from polytrain.choice import HeldOut, Settings
from polytrain.choice.calibration import held_out_losses
from polytrain.decisions import Softmax, TwoClasses
from polytrain.estimators._learning import Goal
from polytrain.estimators._parameters import is_sequence
from polytrain.maps import CategoryMap, InterpolatedMap, MapList, PolynomialMap
from polytrain.maps.category import MOST_LEVELS
from polytrain.rows import Rows
from polytrain.rows.oddities import oddities
from polytrain.texts import listed, shown

__all__ = ["warn_of_guessing", "warn_of_parameters", "warn_of_rows"]

# Rows in memory with at most this many numbers are checked even if the choice has not read them.
_FEW_NUMBERS = 1 << 22
# Fewer left-out rows are inconclusive. With more, the model must gain this much likelihood over a guess.
_LEAST_ROWS, _LEAST_GAIN = 50, 2.0


def warn_of_rows(rows: Rows, maps: MapList) -> None:
    """Warn of odd columns; rows on disk or on a cluster are not read once more for this."""
    summary = rows.summary
    if "sketch" in vars(rows) or (rows.runner is None and summary.n_rows * summary.n_features <= _FEW_NUMBERS):
        for sentence in oddities(rows):
            warn_of_data(sentence)
    full = [k for k, m in enumerate(maps) if isinstance(m, CategoryMap) and len(m.points) == MOST_LEVELS]
    if not full:
        return
    summaries, columns = rows.columns(True), rows.columns_of_any_type
    levels = [None] * len(maps) if columns is None else columns.levels
    for k in full:
        count = max(len(levels[k] or ()), len(summaries[k].values))  # values may be those of a sample
        if count > MOST_LEVELS:
            name = k if rows.feature_names is None else repr(rows.feature_names[k])
            warn_of_data(
                f"column {name} has {count} levels, of which only the {MOST_LEVELS} most frequent are distinguished; "
                "the others count as never seen. Join rare levels, or convert the column if it holds numbers or dates."
            )


def warn_of_parameters(estimator: Any, settings: Settings) -> None:
    """Warn of parameters that were given and have no effect with any of the bases."""
    bases = set(settings.bases)
    if bases <= {"auto", *InterpolatedMap.bases, *CategoryMap.bases}:
        names: tuple[str, ...] = ("degree",)
        remedy = listed(PolynomialMap.bases)
    elif bases <= {*PolynomialMap.bases}:
        names, remedy = ("bandwidth", "relevance"), "auto"
    else:
        return
    for name in names:
        value, usual = getattr(estimator, name), signature(type(estimator)).parameters[name].default
        if is_sequence(value) or (value != usual and not (value is None and usual == "auto")):
            warn_of_data(
                f"{name}={shown(value)} has no effect with basis={shown(estimator.basis)}. Leave {name} out, or pass "
                f"another basis: {remedy}."
            )


def warn_of_guessing(rows: Rows, goal: Goal, held_out: HeldOut | None) -> None:
    """Warn of a model whose predictions of left-out rows are no better than a constant."""
    if held_out is None or held_out.n_distinct < _LEAST_ROWS:
        return
    if goal.decision is not None:
        weights, what = held_out.label_weights, "log loss"
        weights = weights * (held_out.n_distinct / weights.sum())
        if not isinstance(goal.decision, Softmax | TwoClasses):  # several answers about one row
            return
        shares = weights.sum(axis=0) / weights.sum()
        error, guess = held_out_losses(held_out.scores, weights)[0].sum() / weights.sum(), float(entr(shares).sum())
        is_guess = guess > 0.0 and (guess - error) * held_out.n_distinct < _LEAST_GAIN
    else:
        sketch, what = rows.sketch, "mean squared error in units of the variance"
        _, left_out, place = np.intersect1d(held_out.hashes, sketch.hashes, return_indices=True)
        errors = []
        for target, scores in zip(goal.targets, held_out.scores[left_out].T, strict=True):
            wanted, weights = (values[place] for values in target.sketched(sketch.sums, sketch.weights))
            spread = np.average(np.square(wanted - np.average(wanted, weights=weights)), weights=weights)
            errors.append(float(np.average(np.square(wanted - scores), weights=weights) / spread) if spread else 0.0)
        error, guess = min(errors), 1.0
        is_guess = len(place) >= _LEAST_ROWS and error >= guess
    if is_guess:
        warn_of_data(
            f"the model is no better than a guess: on left-out rows its {what} is {error:.4g}, and that of a constant "
            f"prediction {guess:.4g}. Check that targets belong to their rows, and that the columns can "
            "predict them."
        )
