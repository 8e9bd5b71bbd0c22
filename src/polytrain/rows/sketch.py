"""A few different rows that stand for all: the same ones wherever the rows are, and however often they are repeated.

Rows are numbered by a hash of what they hold; the sketch has those with the smallest numbers, each once, with the
total weight of all rows like it. Sketches of partitions merge to that of all rows, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.rows.summary import RawRows

__all__ = ["RowSketch", "sketch_rows"]

#: Most rows of a sketch: enough for the quantiles of a column.
SKETCH_ROWS = 4096


@dataclass(frozen=True)
class RowSketch:
    """Different rows in the order of their hashes.

    Attributes
    ----------
    hashes : ndarray of shape (k,), uint64
    X : ndarray of shape (k, d), float64
    weights : ndarray of shape (k,)
        Total weight of all rows like each.
    """

    hashes: NDArray
    X: NDArray
    weights: NDArray

    @classmethod
    def merge(cls, found: Sequence[RowSketch]) -> RowSketch:
        """Bring together the sketches of all partitions."""
        hashes, X, weights = (
            np.concatenate([getattr(sketch, name) for sketch in found]) for name in ("hashes", "X", "weights")
        )
        return _smallest(hashes, X, weights)


def _smallest(hashes: NDArray, X: NDArray, weights: NDArray) -> RowSketch:
    different, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    totals = np.bincount(place, weights, minlength=len(different))
    chosen = X[first[:SKETCH_ROWS]].astype(np.float64, copy=False)
    return RowSketch(different[:SKETCH_ROWS], chosen, totals[:SKETCH_ROWS])


def sketch_rows(rows: RawRows, largest_weight: float = 1.0) -> RowSketch:
    """Sketch one partition; weights are in units of the largest one of all rows, so that sums do not overflow."""
    rows = rows.filled()
    hashes = np.zeros(len(rows.X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in rows.X.T:
            bits = (column.astype(np.float64) + 0.0).view(np.uint64)  # no minus zero
            hashes = (hashes ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            hashes ^= hashes >> np.uint64(32)
            hashes *= np.uint64(0xD6E8FEB86659FD93)
            hashes ^= hashes >> np.uint64(29)
    return _smallest(hashes, rows.X, rows.weights / largest_weight)
