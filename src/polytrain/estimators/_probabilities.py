"""Class weights, and the calibration of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.checks import check_weight_range
from polytrain.choice import fit_log_odds, fit_softmax
from polytrain.decisions import Softmax
from polytrain.estimators._parameters import check_between
from polytrain.estimators._streaming import Stream
from polytrain.learning.targets import Target
from polytrain.models import FittedModel
from polytrain.texts import short_list

# Rows of a stream that say how far scores lie apart.
_ENOUGH_SCORES = 200


def fit_probabilities(
    scores: NDArray,
    labels: NDArray,
    n_rows: float,
    targets: Sequence[Target],
    decision: Any,
    sizes: NDArray | None = None,
) -> dict[str, Any]:
    """Calibrate scores (N, n_trains) of rows with these weights at their labels (N, m); return fields of `FittedModel`.

    Given sizes (n_trains,) stay; then only the shifts are fitted.
    """
    codes = [target.wanted(np.arange(labels.shape[1]))[0] for target in targets]
    weights = labels * _factors(targets, labels.shape[1])  # those of the fit: a class may lack rows that were held out
    weights *= n_rows / weights.sum()
    if isinstance(decision, Softmax):
        size, shift = fit_softmax(scores, weights, None if sizes is None else float(sizes[0]))
    else:
        found = []
        kept = [None] * len(targets) if sizes is None else sizes.tolist()
        for code, column, factor in zip(codes, scores.T, kept, strict=True):
            sides = [weights[:, code == sign].sum(axis=1) for sign in (1.0, -1.0)]
            used = sides[0] + sides[1] > 0
            found.append(fit_log_odds(column[used], sides[0][used], sides[1][used], factor))
        size, shift = np.array(found).T
    return {"size": size, "shift": shift, "calibrated": True}


def recalibrated(model: FittedModel, stream: Stream, targets: Sequence[Target]) -> FittedModel:
    """Calibrate a model with the rows that a stream remembers.

    The trains have learned from the rows of the memory, so that their scores there lie too far apart: the sizes come
    from rows that were scored before they were learned from, once there are enough. Where scores lie is another matter:
    the shifts suit the present scores and the labels of all rows of the memory, also where blocks had one class each.
    """
    sizes = model.size
    if _n_rows(stream.scored) >= _ENOUGH_SCORES:
        found = fit_probabilities(stream.scores, stream.scored, _n_rows(stream.scored), targets, model.decision)
        sizes = found["size"]
    labels = stream.labels * stream.weights[:, None]
    found = fit_probabilities(model.values(stream.X).T, labels, _n_rows(labels), targets, model.decision, sizes)
    return replace(model, size=found["size"], shift=found["shift"])


def expected_labels(model: FittedModel, X: NDArray, targets: Sequence[Target]) -> NDArray:
    """Return the probabilities (N, m) of the labels of every row under the model, without the class weights."""
    chances = model.probabilities(X)
    parts = chances / _factors(targets, chances.shape[1])
    return parts / parts.sum(axis=1, keepdims=True)


def _n_rows(labels: NDArray) -> float:
    """Return the weight of rows, at least their number: the unit of small weights is often arbitrary."""
    return max(float(labels.sum()), float(len(labels)))


def _factors(targets: Sequence[Target], n_classes: int) -> NDArray:
    """Return the weights of the classes in the fit, (m,)."""
    return np.max([target.wanted(np.arange(n_classes))[1] for target in targets], axis=0)


def class_weights(given: Any, classes: NDArray, totals: NDArray) -> NDArray:
    """Return the weight of every class, (m,), given the total weight of its rows."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return totals.sum() / (len(classes) * totals)
    if not isinstance(given, Mapping):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {given!r:.60}.")
    known = dict.fromkeys(classes.tolist())
    missing = [label for label in given if label not in known]
    if missing:
        raise ValueError(f"class_weight names classes that y lacks: {short_list(missing)}; y has {short_list(known)}.")
    for label, weight in given.items():
        check_between(f"class_weight[{label!r}]", weight, 0.0, np.inf)
    weights = np.array([float(given.get(label, 1.0)) for label in known])
    check_weight_range("class_weight", weights.min(), weights.max())
    return weights / weights.max()  # only ratios matter, and sums of huge weights must not overflow
