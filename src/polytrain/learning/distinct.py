"""Distinct rows: how many there are, and samples of them.

Rows are chosen by a hash of their values: the choice does not depend on the order of the rows, and equal rows are
chosen together.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from polytrain.arrays import Array

# With this many distinct rows, more rows would not change a decision.
_MANY = 1 << 17
# A sample has about this many distinct rows of each binary label, where there are as many.
_LEAST_OF_LABEL = 1024


def row_keys(columns: Array) -> Array:
    """One number per row of columns (d, N), a random combination of the features: equal rows have equal keys."""
    keys = np.zeros(columns.shape[1])
    for column, factor in zip(columns, np.random.default_rng(0).standard_normal(len(columns)), strict=True):
        # The same operations for every row: equal rows stay equal.
        keys += factor * column.astype(np.float64, copy=False)
    return keys + 0.0  # no minus zero


def row_positions(keys: Array, seed: int) -> Array:
    """Spread the keys evenly over [0, 1): a row belongs to a sample if its position is below the fraction."""
    with np.errstate(over="ignore"):
        mixed = keys.view(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))) / 2.0**64


@dataclass(frozen=True)
class DistinctRows:
    """Distinct keys of rows with a negative target, and of the others, at most ``_MANY`` of each.

    ``binary`` says whether all targets are -1 or 1.
    """

    keys: list[Array]
    binary: bool

    @classmethod
    def of(cls, keys: Array, target: Array) -> DistinctRows:
        """Take the keys and targets of some rows."""
        below = target < 0.0
        return cls([np.unique(keys[rows])[:_MANY] for rows in (below, ~below)], bool((np.abs(target) == 1.0).all()))

    def join(self, other: DistinctRows) -> DistinctRows:
        """Add the rows of another place."""
        keys = [np.union1d(*pair)[:_MANY] for pair in zip(self.keys, other.keys, strict=True)]
        return DistinctRows(keys, self.binary and other.binary)

    @property
    def n_rows(self) -> int:
        """Number of distinct rows, or the largest integer if there are many."""
        return sys.maxsize if max(map(len, self.keys)) >= _MANY else len(np.union1d(*self.keys))

    def chances(self, fraction: float) -> tuple[float, float]:
        """Probability to choose a row with a negative target, and another row.

        It is the fraction, or more for a binary label that would be left with too few rows.
        """
        if not self.binary:
            return fraction, fraction
        below, above = (max(fraction, min(1.0, _LEAST_OF_LABEL / max(1, len(keys)))) for keys in self.keys)
        return below, above
