"""What one pass over rows finds out: ranges, gaps, labels, targets and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.checks import check_weight_range
from polytrain.texts import short_list

__all__ = ["Summary", "TargetSummary", "summarise"]


@dataclass(frozen=True)
class TargetSummary:
    """Ranges and means of the targets of a regression.

    Attributes
    ----------
    low, high : ndarray of shape (outputs,)
    mean : ndarray of shape (outputs,)
        Weighted mean of the targets divided by ``largest``: sums of the targets themselves might overflow.
    one_output : bool
        Whether targets are one number per row rather than a row of them.
    """

    low: NDArray
    high: NDArray
    mean: NDArray
    one_output: bool

    @property
    def largest(self) -> NDArray:
        """Largest magnitude of every output; 1 where all targets are 0."""
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        return np.where(size > 0, size, 1.0)

    @property
    def spread(self) -> NDArray:
        """Largest distance from the mean, in units of ``largest``; 1 where all targets are the same."""
        distance = np.maximum(self.high / self.largest - self.mean, self.mean - self.low / self.largest)
        return np.where(distance > 0, distance, 1.0)


@dataclass(frozen=True)
class Summary:
    """Facts about the rows of positive weight.

    Attributes
    ----------
    n_rows : int
    low, high : ndarray of shape (d,)
        Range of the features; NaN where all values are missing.
    has_missing : ndarray of shape (d,), bool
    dtype : numpy dtype
        Compute dtype: float32 if all partitions are.
    labels, label_weights : ndarray
        Different labels in order and their total weights, for classification.
    target : TargetSummary or None
        For regression.
    weight, largest_weight, least_weight : float
        Total weight in units of the largest weight, that, and the least positive weight.
    """

    n_rows: int
    low: NDArray
    high: NDArray
    has_missing: NDArray
    dtype: np.dtype
    labels: NDArray
    label_weights: NDArray
    target: TargetSummary | None
    weight: float
    largest_weight: float
    least_weight: float

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.low)

    def label_index(self, y: NDArray) -> NDArray:
        """Return the index of every row's label, (N,)."""
        index = np.searchsorted(self.labels, y)
        known = self.labels[np.minimum(index, len(self.labels) - 1)] == y
        if not known.all():
            label = np.asarray(y)[~known][:1].tolist()[0]
            raise ValueError(
                f"y holds the label {label!r}, which was not there when the labels were read first: "
                f"{short_list(self.labels)}. Rows must be the same each time they are read."
            )
        return index

    @classmethod
    def merge(cls, summaries: Sequence[Summary]) -> Summary:
        """Merge the summaries of all partitions."""
        widths = {piece.n_features for piece in summaries}
        if len(widths) > 1:
            raise ValueError(f"blocks of X differ in their number of features: {sorted(widths)}.")
        filled = [piece for piece in summaries if piece.n_rows]
        if not filled:
            raise ValueError("X has no rows of positive weight; at least one row is needed.")
        largest, least = max(piece.largest_weight for piece in filled), min(piece.least_weight for piece in filled)
        check_weight_range("sample_weight", least, largest)
        shares = [piece.largest_weight / largest for piece in filled]
        labels = np.unique(np.concatenate([piece.labels for piece in filled]))
        label_weights = np.zeros(len(labels))
        for piece, share in zip(filled, shares, strict=True):
            label_weights[np.searchsorted(labels, piece.labels)] += piece.label_weights * share
        masses = [piece.weight * share for piece, share in zip(filled, shares, strict=True)]
        return cls(
            n_rows=sum(piece.n_rows for piece in filled),
            low=np.fmin.reduce([piece.low for piece in filled]),
            high=np.fmax.reduce([piece.high for piece in filled]),
            has_missing=np.any([piece.has_missing for piece in filled], axis=0),
            dtype=np.result_type(*(piece.dtype for piece in filled)),
            labels=labels,
            label_weights=label_weights,
            target=_merge_targets([piece.target for piece in filled if piece.target is not None], masses),
            weight=sum(masses),
            largest_weight=largest,
            least_weight=least,
        )


def _merge_targets(targets: Sequence[TargetSummary], masses: Sequence[float]) -> TargetSummary | None:
    if not targets:
        return None
    if len({(len(target.low), target.one_output) for target in targets}) > 1:
        raise ValueError(f"blocks of y differ in their number of outputs: {[len(target.low) for target in targets]}.")
    low, high = np.min([t.low for t in targets], axis=0), np.max([t.high for t in targets], axis=0)
    whole = TargetSummary(low, high, low, targets[0].one_output)
    means = [target.mean * (target.largest / whole.largest) for target in targets]
    return TargetSummary(low, high, np.average(means, axis=0, weights=masses), whole.one_output)


def summarise(X: NDArray, y: NDArray, weights: NDArray, classify: bool) -> Summary:
    """Summarise the rows of one partition, all of which have positive weight."""
    largest, least = float(weights.max(initial=0.0)), float(weights.min(initial=np.inf))
    weights = weights / largest
    labels: NDArray = np.zeros(0)
    label_weights: NDArray = np.zeros(0)
    target = None
    if classify and len(y):
        labels, index = np.unique(y, return_inverse=True)
        label_weights = np.bincount(index, weights)
    elif len(y):
        outputs = y[:, None] if y.ndim == 1 else y
        bounds = TargetSummary(outputs.min(axis=0), outputs.max(axis=0), np.zeros(0), y.ndim == 1)
        mean = np.average(outputs / bounds.largest, axis=0, weights=weights)
        target = TargetSummary(bounds.low, bounds.high, mean, bounds.one_output)
    return Summary(
        n_rows=len(X),
        low=np.fmin.reduce(X, axis=0, initial=np.nan).astype(np.float64),
        high=np.fmax.reduce(X, axis=0, initial=np.nan).astype(np.float64),
        has_missing=np.isnan(X.min(axis=0, initial=np.inf)),
        dtype=X.dtype,
        labels=labels,
        label_weights=label_weights,
        target=target,
        weight=float(weights.sum()),
        largest_weight=largest,
        least_weight=least,
    )
