"""A sample of different rows that depends neither on their order or place, nor on how often they are repeated.

A sketch has the rows with the smallest hashes, each once, with the total weight of all rows equal to it. Sketches of
partitions merge exactly to that of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.maps import ColumnSummary
from polytrain.rows.summary import Summary

__all__ = ["RowSketch", "column_summaries", "row_hashes", "sketch_rows", "target_hashes"]

#: Most rows of a sketch: enough for the quantiles of a column.
SKETCH_ROWS = 4096


class RowSketch(NamedTuple):
    """Different rows in the order of their hashes.

    Attributes
    ----------
    hashes : ndarray of shape (k,), uint64
    X : ndarray of shape (k, d), float64
        NaN where a value is missing.
    weights : ndarray of shape (k,)
        Total weight of all rows equal to each, in units of the largest weight of a row.
    sums : ndarray of shape (k, q)
        The total weight of every label, or the weighted sum of every output divided by its largest magnitude.
    """

    hashes: NDArray
    X: NDArray
    weights: NDArray
    sums: NDArray

    @classmethod
    def merge(cls, sketches: Sequence[RowSketch]) -> RowSketch:
        """Merge the sketches of all partitions."""
        return _smallest(*(np.concatenate(arrays) for arrays in zip(*sketches, strict=True)))

    @property
    def n_rows(self) -> int:
        """Number of rows in the sketch."""
        return len(self.hashes)

    @property
    def n_distinct(self) -> int:
        """Number of different rows: exact if the sketch has them all, else estimated by how dense its hashes are."""
        if self.n_rows < SKETCH_ROWS:
            return self.n_rows
        return max(self.n_rows, round((self.n_rows - 1) / (float(self.hashes[-1]) / 2.0**64)))

    def first(self, count: int) -> RowSketch:
        """Return the first ``count`` rows."""
        return RowSketch(*(array[:count] for array in self))


def _smallest(hashes: NDArray, X: NDArray, weights: NDArray, sums: NDArray) -> RowSketch:
    different, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    kept = slice(SKETCH_ROWS)
    totals = np.bincount(place, weights, minlength=len(different))[kept]
    # Only the rows that are kept: there may be many labels.
    inside = np.flatnonzero(place < SKETCH_ROWS)
    added = np.zeros((len(totals), sums.shape[1]))
    np.add.at(added, place[inside], sums[inside])
    return RowSketch(different[kept], X[first[kept]].astype(np.float64, copy=False), totals, added)


def row_hashes(X: NDArray) -> NDArray:
    """Return a hash of 64 bits for each row, (N,)."""
    hashes = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in X.T:
            values = column.astype(np.float64) + 0.0  # no minus zero
            values[np.isnan(values)] = np.nan  # all bit patterns of NaN are one value
            hashes = (hashes ^ values.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            hashes ^= hashes >> np.uint64(32)
            hashes *= np.uint64(0xD6E8FEB86659FD93)
            hashes ^= hashes >> np.uint64(29)
    return hashes


def target_hashes(hashes: NDArray, y: NDArray) -> NDArray:
    """Return hashes of rows with their targets, numbers (N,) or (N, outputs), given the hashes of the rows, (N,)."""
    mixed = row_hashes(y[:, None] if y.ndim == 1 else y)
    with np.errstate(over="ignore"):
        mixed = (mixed ^ (hashes >> np.uint64(7))) * np.uint64(0x9E3779B97F4A7C15) + hashes
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(29))


def sketch_rows(X: NDArray, y: NDArray, weights: NDArray, summary: Summary) -> RowSketch:
    """Sketch one partition of rows of positive weight."""
    hashes, weights = row_hashes(X), weights / summary.largest_weight
    # Only rows that may be among the smallest need their targets.
    if len(hashes) > SKETCH_ROWS:
        different = np.unique(hashes)
        kept = hashes <= different[min(SKETCH_ROWS, len(different)) - 1]
        X, y, hashes, weights = X[kept], y[kept], hashes[kept], weights[kept]
    if summary.target is None:
        sums = np.zeros((len(hashes), len(summary.labels)))
        sums[np.arange(len(hashes)), summary.label_index(y)] = weights
    else:
        sums = weights[:, None] * ((y[:, None] if y.ndim == 1 else y) / summary.target.largest)
    return _smallest(hashes, X, weights, sums)


def column_summaries(summary: Summary, sketch: RowSketch | None) -> list[ColumnSummary]:
    """Return the range of every column, and its values and their weights if there is a sketch."""
    ranges = zip(summary.low.tolist(), summary.high.tolist(), strict=True)
    if sketch is None:
        return [ColumnSummary(low, high) for low, high in ranges]
    weights = sketch.weights / sketch.weights.max()
    return [_with_values(low, high, X, weights) for (low, high), X in zip(ranges, sketch.X.T, strict=True)]


def _with_values(low: float, high: float, values: NDArray, weights: NDArray) -> ColumnSummary:
    """Summarise a column by its different values, which always include the ends of its range."""
    is_missing = np.isnan(values)
    missing = float(weights[is_missing].sum())
    if is_missing.all():
        ends = [low, high] if low <= high else [0.0]
        return ColumnSummary(ends[0], ends[-1], np.unique(ends), np.ones(len(set(ends))), missing)
    values, weights = np.concatenate([values[~is_missing], [low, high]]), weights[~is_missing]
    different, place = np.unique(values, return_inverse=True)
    # An end that the sketch lacks weighs as much as the lightest value.
    totals = np.bincount(place[:-2], weights, minlength=len(different))
    totals[[0, -1]] = np.maximum(totals[[0, -1]], totals[totals > 0].min())
    return ColumnSummary(low, high, different, totals, missing)
