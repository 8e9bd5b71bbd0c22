"""Probabilities of the classes of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import NDArray

from polytrain.choice import calibrate, class_factors
from polytrain.decisions import Softmax
from polytrain.estimators._streaming import Stream
from polytrain.learning.targets import Target
from polytrain.models import FittedModel

# Rows of a stream that determine the spread of the scores.
_ENOUGH_SCORES = 200


def recalibrated(model: FittedModel, stream: Stream, targets: Sequence[Target]) -> FittedModel:
    """Calibrate a model with the rows that a stream remembers.

    The trains have learned from the rows of the memory, so that their scores there are too far apart: the factors come
    from rows that were scored before they were learned from, once there are enough. The shifts are fitted to the
    present scores and the labels of all rows of the memory, which also works where each block had a single class.
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
