"""A few different rows that stand for all: the same ones wherever the rows are, and however often they are repeated.

Rows are numbered by a hash of what they hold; the sketch has those with the smallest numbers, each once, with the
total weight of all rows like it. Sketches of partitions merge to that of all rows, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.maps import ColumnSummary
from polytrain.rows.summary import RawRows, Summary

__all__ = ["RowSketch", "column_summaries", "row_hashes", "sketch_rows", "target_hashes"]

#: Most rows of a sketch: enough for the quantiles of a column.
SKETCH_ROWS = 4096


@dataclass(frozen=True)
class RowSketch:
    """Different rows in the order of their hashes.

    Attributes
    ----------
    hashes : ndarray of shape (k,), uint64
    X : ndarray of shape (k, d), float64
        NaN where a value is missing.
    weights : ndarray of shape (k,)
        Total weight of all rows like each, in units of the largest weight of a row.
    sums : ndarray of shape (k, q)
        What these rows have as targets: the total weight of every label, or the weighted sum of every output divided
        by its largest magnitude.
    """

    hashes: NDArray
    X: NDArray
    weights: NDArray
    sums: NDArray

    @classmethod
    def merge(cls, found: Sequence[RowSketch]) -> RowSketch:
        """Bring together the sketches of all partitions."""
        names = ("hashes", "X", "weights", "sums")
        return _smallest(*(np.concatenate([getattr(sketch, name) for sketch in found]) for name in names))

    @property
    def n_rows(self) -> int:
        """Number of rows in the sketch."""
        return len(self.hashes)

    @property
    def n_distinct(self) -> int:
        """How many different rows there are: exactly, if the sketch has them all, else by how dense its hashes are."""
        if self.n_rows < SKETCH_ROWS:
            return self.n_rows
        return max(self.n_rows, round((self.n_rows - 1) / (float(self.hashes[-1]) / 2.0**64)))

    def first(self, count: int) -> RowSketch:
        """Return the first ``count`` rows."""
        return RowSketch(self.hashes[:count], self.X[:count], self.weights[:count], self.sums[:count])


def _smallest(hashes: NDArray, X: NDArray, weights: NDArray, sums: NDArray) -> RowSketch:
    different, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    count = len(different)
    kept = slice(SKETCH_ROWS)
    totals = np.bincount(place, weights, minlength=count)[kept]
    chosen = X[first[kept]].astype(np.float64, copy=False)
    # Only the rows that are kept: there may be many labels.
    inside = np.flatnonzero(place < SKETCH_ROWS)
    added = np.zeros((min(count, SKETCH_ROWS), sums.shape[1]))
    np.add.at(added, place[inside], sums[inside])
    return RowSketch(different[kept], chosen, totals, added)


def row_hashes(X: NDArray) -> NDArray:
    """A number of 64 bits per row, (N,): equal rows have equal ones."""
    hashes = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in X.T:
            values = column.astype(np.float64) + 0.0  # no minus zero
            values[np.isnan(values)] = np.nan  # there are many, and they are the same
            hashes = (hashes ^ values.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            hashes ^= hashes >> np.uint64(32)
            hashes *= np.uint64(0xD6E8FEB86659FD93)
            hashes ^= hashes >> np.uint64(29)
    return hashes


def target_hashes(hashes: NDArray, y: NDArray) -> NDArray:
    """From the hashes of rows to those of rows with their targets, numbers (N,) or (N, outputs)."""
    mixed = row_hashes(y[:, None] if y.ndim == 1 else y)
    with np.errstate(over="ignore"):
        mixed = (mixed ^ (hashes >> np.uint64(7))) * np.uint64(0x9E3779B97F4A7C15) + hashes
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(29))


def sketch_rows(rows: RawRows, summary: Summary) -> RowSketch:
    """Sketch one partition of rows with this summary."""
    rows = rows.filled()
    hashes, weights = row_hashes(rows.X), rows.weights / summary.largest_weight
    # Not all rows can be among the smallest: targets are needed of those only that may be.
    if len(hashes) > SKETCH_ROWS:
        different = np.unique(hashes)
        kept = hashes <= different[min(SKETCH_ROWS, len(different)) - 1]
        rows, hashes, weights = RawRows(rows.X[kept], rows.y[kept], rows.weights[kept]), hashes[kept], weights[kept]
    if summary.target is None:
        sums = np.zeros((len(hashes), len(summary.labels)))
        sums[np.arange(len(hashes)), summary.label_index(rows.y)] = weights
    else:
        outputs = rows.y[:, None] if rows.y.ndim == 1 else rows.y
        sums = weights[:, None] * (outputs / summary.target.largest)
    return _smallest(hashes, rows.X, weights, sums)


def column_summaries(summary: Summary, sketch: RowSketch | None) -> list[ColumnSummary]:
    """What the maps may know about every column; without a sketch, the ranges only."""
    ranges = zip(summary.low.tolist(), summary.high.tolist(), strict=True)
    if sketch is None:
        return [ColumnSummary(low, high) for low, high in ranges]
    weights = sketch.weights / sketch.weights.max()
    return [_with_values(low, high, X, weights) for (low, high), X in zip(ranges, sketch.X.T, strict=True)]


def _with_values(low: float, high: float, values: NDArray, weights: NDArray) -> ColumnSummary:
    """The different values of a column with their weights; the range always belongs to them."""
    gone = np.isnan(values)
    missing = float(weights[gone].sum())
    if gone.all():
        ends = [low, high] if low <= high else [0.0]
        return ColumnSummary(ends[0], ends[-1], np.unique(ends), np.ones(len(set(ends))), missing)
    values, weights = np.concatenate([values[~gone], [low, high]]), weights[~gone]
    different, place = np.unique(values, return_inverse=True)
    # The ends count as much as the lightest row where the sketch has missed them, and nothing where it has not.
    totals = np.bincount(place[:-2], weights, minlength=len(different))
    totals[[0, -1]] = np.maximum(totals[[0, -1]], totals[totals > 0].min())
    return ColumnSummary(low, high, different, totals, missing)
