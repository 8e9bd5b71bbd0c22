"""Class weights, and the calibration of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.checks import check_weight_range
from polytrain.choice import calibrate, class_factors
from polytrain.decisions import Softmax
from polytrain.estimators._parameters import check_between
from polytrain.estimators._streaming import Stream
from polytrain.learning.targets import Target
from polytrain.models import FittedModel
from polytrain.texts import short_list

# Rows of a stream that say how far scores lie apart.
_ENOUGH_SCORES = 200


def recalibrated(model: FittedModel, stream: Stream, targets: Sequence[Target]) -> FittedModel:
    """Calibrate a model with the rows that a stream remembers.

    The trains have learned from the rows of the memory, so that their scores there lie too far apart: the sizes come
    from rows that were scored before they were learned from, once there are enough. Where scores lie is another matter:
    the shifts suit the present scores and the labels of all rows of the memory, also where blocks had one class each.
    """
    sizes, is_joint = model.size, isinstance(model.decision, Softmax)
    if _n_rows(stream.scored) >= _ENOUGH_SCORES:
        sizes, _ = calibrate(stream.scores, stream.scored, _n_rows(stream.scored), targets, is_joint)
    labels = stream.labels * stream.weights[:, None]
    size, shift = calibrate(model.values(stream.X).T, labels, _n_rows(labels), targets, is_joint, sizes)
    return replace(model, size=size, shift=shift)


def expected_labels(model: FittedModel, X: NDArray, targets: Sequence[Target]) -> NDArray:
    """Return the probabilities (N, m) of the labels of every row under the model, without the class weights."""
    chances = model.probabilities(X)
    parts = chances / class_factors(targets, chances.shape[1])
    return parts / parts.sum(axis=1, keepdims=True)


def _n_rows(labels: NDArray) -> float:
    """Return the weight of rows, at least their number: the unit of small weights is often arbitrary."""
    return max(float(labels.sum()), float(len(labels)))


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
