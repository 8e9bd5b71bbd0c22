"""Summaries of rows that merge over partitions: ranges, labels, targets, weights, and a sample of distinct rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.checks import check_weight_range
from polytrain.maps import ColumnSummary
from polytrain.texts import short_list


@dataclass(frozen=True)
class TargetSummary:
    """Ranges and weighted means, (outputs,), of numbers, or of labels 0 and 1; ``one_output`` if y has one dimension.

    Means are those of the targets divided by ``largest``: sums of the targets themselves might overflow.
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

    ``low``, ``high`` and ``has_missing`` (d,) are about the features, with NaN as the range where all values are
    missing; ``labels`` are different and in order, ``label_weights`` their total weights. The ``dtype`` to compute in
    is float32 if all partitions are, and ``weight`` is the total weight in units of ``largest_weight``.
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
            raise ValueError(
                f"y holds the label {y[~known].tolist()[0]!r}, which was missing when the labels were first read: "
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
        labels, index = np.unique(np.concatenate([piece.labels for piece in filled]), return_inverse=True)
        parts = [piece.label_weights * share for piece, share in zip(filled, shares, strict=True)]
        masses = [piece.weight * share for piece, share in zip(filled, shares, strict=True)]
        return cls(
            n_rows=sum(piece.n_rows for piece in filled),
            low=np.fmin.reduce([piece.low for piece in filled]),
            high=np.fmax.reduce([piece.high for piece in filled]),
            has_missing=np.any([piece.has_missing for piece in filled], axis=0),
            dtype=np.result_type(*(piece.dtype for piece in filled)),
            labels=labels,
            label_weights=np.bincount(index, np.concatenate(parts)),
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
    low, high = np.min([target.low for target in targets], axis=0), np.max([target.high for target in targets], axis=0)
    merged = TargetSummary(low, high, low, targets[0].one_output)
    means = [target.mean * (target.largest / merged.largest) for target in targets]
    return replace(merged, mean=np.average(means, axis=0, weights=masses))


def summarise(X: NDArray, y: NDArray, weights: NDArray, classify: bool) -> Summary:
    """Summarise the rows of one partition, all of which have positive weight."""
    largest, least = float(weights.max(initial=0.0)), float(weights.min(initial=np.inf))
    weights = weights / largest
    none: NDArray = np.zeros(0)
    labels, label_weights, target = none, none, None
    if classify and len(y) and y.ndim == 1:
        labels, index = np.unique(y, return_inverse=True)
        label_weights = np.bincount(index, weights)
    elif len(y):
        outputs = _outputs(y)
        target = TargetSummary(outputs.min(axis=0), outputs.max(axis=0), np.zeros(0), y.ndim == 1)
        target = replace(target, mean=np.average(outputs / target.largest, axis=0, weights=weights))
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


def _outputs(y: NDArray) -> NDArray:
    """Return targets as (N, outputs)."""
    return y[:, None] if y.ndim == 1 else y


# --- sketches ---------------------------------------------------------------------------------------------------------

#: Most rows of a sketch: enough for the quantiles of a column.
SKETCH_ROWS = 4096


class RowSketch(NamedTuple):
    """The distinct rows with the smallest hashes: a sample that depends neither on order, place nor repetition of rows.

    ``hashes`` (k,) of 64 bits ascend, ``X`` is (k, d), ``weights`` (k,) are the total weights of all rows equal to
    each, in units of the largest weight of a row, and ``sums`` (k, q) the total weight of every label, or the weighted
    sum of every output divided by its largest magnitude.
    """

    hashes: NDArray
    X: NDArray
    weights: NDArray
    sums: NDArray

    @classmethod
    def merge(cls, sketches: Sequence[RowSketch]) -> RowSketch:
        """Merge the sketches of all partitions exactly to that of all rows."""
        return _smallest(*(np.concatenate(arrays) for arrays in zip(*sketches, strict=True)))

    @property
    def n_rows(self) -> int:
        """Number of rows in the sketch."""
        return len(self.hashes)

    @property
    def n_distinct(self) -> int:
        """Number of distinct rows: exact if the sketch has them all, else estimated from the density of its hashes."""
        if self.n_rows < SKETCH_ROWS:
            return self.n_rows
        return max(self.n_rows, round((self.n_rows - 1) / (float(self.hashes[-1]) / 2.0**64)))

    def take(self, rows: NDArray | slice) -> RowSketch:
        """Return some of the rows."""
        return RowSketch(*(array[rows] for array in self))


def _smallest(hashes: NDArray, X: NDArray, weights: NDArray, sums: NDArray) -> RowSketch:
    hashes, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    kept = slice(SKETCH_ROWS)
    totals = np.bincount(place, weights, minlength=len(hashes))[kept]
    # Only the rows that are kept: there may be many labels.
    inside = np.flatnonzero(place < SKETCH_ROWS)
    total_sums = np.zeros((len(totals), sums.shape[1]))
    np.add.at(total_sums, place[inside], sums[inside])
    return RowSketch(hashes[kept], X[first[kept]].astype(np.float64, copy=False), totals, total_sums)


def row_hashes(X: NDArray) -> NDArray:
    """Return a hash of 64 bits for each row, (N,)."""
    hashes = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in X.T:
            values = column.astype(np.float64) + 0.0  # no minus zero
            values[np.isnan(values)] = np.nan  # all bit patterns of NaN are one value
            hashes = _mixed((hashes ^ values.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15))
    return hashes


def _mixed(hashes: NDArray) -> NDArray:
    """Mix the bits, so that each depends on all others."""
    hashes = (hashes ^ (hashes >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return hashes ^ (hashes >> np.uint64(29))


def target_hashes(hashes: NDArray, y: NDArray) -> NDArray:
    """Return hashes of rows with their targets, numbers (N,) or (N, outputs), given the hashes of the rows, (N,)."""
    with np.errstate(over="ignore"):
        mixed = row_hashes(_outputs(y)) ^ (hashes >> np.uint64(7))
        return _mixed(mixed * np.uint64(0x9E3779B97F4A7C15) + hashes)


def sketch_rows(X: NDArray, y: NDArray, weights: NDArray, summary: Summary) -> RowSketch:
    """Sketch one partition of rows of positive weight."""
    hashes, weights = row_hashes(X), weights / summary.largest_weight
    if len(hashes) > SKETCH_ROWS:  # only rows whose hashes may be among the smallest need targets
        kept = hashes <= np.unique(hashes)[:SKETCH_ROWS][-1]
        X, y, hashes, weights = X[kept], y[kept], hashes[kept], weights[kept]
    if summary.target is None:
        sums = np.zeros((len(hashes), len(summary.labels)))
        sums[np.arange(len(hashes)), summary.label_index(y)] = weights
    else:
        sums = weights[:, None] * (_outputs(y) / summary.target.largest)
    return _smallest(hashes, X, weights, sums)


def column_summaries(summary: Summary, sketch: RowSketch | None, weights: NDArray | None = None) -> list[ColumnSummary]:
    """Return the range of every column, and its values with their weights if there is a sketch."""
    ranges = zip(summary.low.tolist(), summary.high.tolist(), strict=True)
    if sketch is None:
        return [ColumnSummary(low, high) for low, high in ranges]
    weights = sketch.weights if weights is None else weights
    shares = weights / weights.max()
    return [_with_values(low, high, X, shares) for (low, high), X in zip(ranges, sketch.X.T, strict=True)]


def _with_values(low: float, high: float, values: NDArray, weights: NDArray) -> ColumnSummary:
    """Summarise a column by its distinct values, which always include the ends of its range."""
    is_missing = np.isnan(values)
    missing = float(weights[is_missing].sum())
    if is_missing.all():
        ends = np.unique([low, high] if low <= high else [0.0])
        return ColumnSummary(float(ends[0]), float(ends[-1]), ends, np.ones(len(ends)), missing)
    distinct, place = np.unique(np.append(values[~is_missing], [low, high]), return_inverse=True)
    # An end of the range that the sketch lacks gets the weight of the lightest value.
    totals = np.bincount(place[:-2], weights[~is_missing], minlength=len(distinct))
    totals[[0, -1]] = np.maximum(totals[[0, -1]], totals[totals > 0].min())
    return ColumnSummary(low, high, distinct, totals, missing)
