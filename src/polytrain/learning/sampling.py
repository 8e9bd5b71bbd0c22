"""Random samples of the rows for the first sweeps.

Rows are chosen by a hash of their values: the choice does not depend on the order of the rows, equal rows are chosen
together, and a smaller sample is contained in a larger one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import groupby

import numpy as np

from polytrain.arrays import Array

# Fewer different rows are never sampled. No sweep sees less than a quarter of them where that is less than
# _ENOUGH_ROWS, nor fewer than _ROWS_PER_UNKNOWN times the unknowns of a core, nor fewer rows of a binary label.
_FEW_ROWS, _ENOUGH_ROWS, _ROWS_PER_UNKNOWN, _LEAST_OF_LABEL = 4096, 8192, 8, 1024
# A sample has taught something if its objective grows by no more than this factor on more rows. Measured on digits: up
# to 1.75, 15 of 17 fits ended within 1 % of the objective that they reach without sampling, or below, and two 5 and 7 %
# above it; from 2 on, 12 fits ended 3 % to many times above it.
_MOST_GROWTH = 1.8
# With this many different rows, more of them would not change a decision.
_MANY = 1 << 17


def sweep_samples(n_distinct: int, n_unknowns: int, max_sweeps: int) -> list[tuple[float, int]]:
    """Fractions of the rows with the number of sweeps that see them: an eighth, a quarter, a half, then all.

    ``n_unknowns`` is the size of the largest core. The last sweep always sees all rows.

    >>> sweep_samples(60_000, 128, 6)
    [(0.13653333333333334, 1), (0.25, 1), (0.5, 1), (1.0, 3)]
    >>> sweep_samples(10_000, 128, 6)
    [(0.25, 2), (0.5, 1), (1.0, 3)]
    >>> sweep_samples(10_000, 1000, 6)
    [(0.8, 3), (1.0, 3)]
    >>> sweep_samples(4000, 128, 6)
    [(1.0, 6)]
    """
    if n_distinct < _FEW_ROWS or max_sweeps == 0:
        return [(1.0, max_sweeps)]
    least = max(min(_ENOUGH_ROWS / n_distinct, 0.25), _ROWS_PER_UNKNOWN * n_unknowns / n_distinct)
    halvings = (max(0, min(max_sweeps, 4) - sweep) for sweep in range(1, max_sweeps + 1))
    fractions = [min(1.0, max(least, 0.5**count)) for count in halvings]
    return [(fraction, len(list(sweeps))) for fraction, sweeps in groupby(fractions)]


def still_holds(objective: float, on_more_rows: float) -> bool:
    """Whether a fit of a sample holds for a larger one; later sweeps do not recover from a fit that does not."""
    return on_more_rows <= _MOST_GROWTH * objective


def row_keys(columns: Array) -> Array:
    """One number per row of columns (d, N), a random combination of the features: equal rows have equal keys."""
    keys = np.zeros(columns.shape[1])
    for column, factor in zip(columns, np.random.default_rng(0).standard_normal(len(columns)), strict=True):
        # The same operations for every row: equal rows stay equal.
        keys += factor * column.astype(np.float64, copy=False)
    return keys + 0.0  # no minus zero


@dataclass(frozen=True)
class DistinctRows:
    """Distinct keys of rows with a negative target, and of the others, at most ``_MANY`` of each.

    ``binary`` says whether all targets are -1 or 1.
    """

    negative: Array
    positive: Array
    binary: bool

    @classmethod
    def of(cls, keys: Array, target: Array) -> DistinctRows:
        """Take the keys and targets of some rows."""
        below = target < 0.0
        negative, positive = (np.unique(keys[rows])[:_MANY] for rows in (below, ~below))
        return cls(negative, positive, bool((np.abs(target) == 1.0).all()))

    @classmethod
    def merge(cls, found: Iterable[DistinctRows]) -> DistinctRows:
        """Bring together what was found in several places, one after the other."""
        return reduce(cls._join, found)

    def _join(self, other: DistinctRows) -> DistinctRows:
        negative, positive = (
            mine if len(mine) >= _MANY else np.union1d(mine, theirs)[:_MANY]
            for mine, theirs in ((self.negative, other.negative), (self.positive, other.positive))
        )
        return DistinctRows(negative, positive, self.binary and other.binary)

    @property
    def n_rows(self) -> int:
        """Number of different rows, or the largest integer if there are many."""
        if max(len(self.negative), len(self.positive)) >= _MANY:
            return sys.maxsize
        return len(np.union1d(self.negative, self.positive))


def label_chances(fraction: float, distinct: DistinctRows) -> tuple[float, float]:
    """Probability to choose a row with a negative target, and another row.

    It is the fraction, or more for a binary label that would be left with too few rows. Weights are divided by it, so
    that sums over the chosen rows stay unbiased.
    """
    if not distinct.binary:
        return fraction, fraction
    counts = len(distinct.negative), len(distinct.positive)
    below, above = (max(fraction, min(1.0, _LEAST_OF_LABEL / max(1, count))) for count in counts)
    return below, above


def row_positions(keys: Array, seed: int) -> Array:
    """Spread the keys evenly over [0, 1): a row belongs to a sample if its position is below the fraction."""
    with np.errstate(over="ignore"):
        mixed = keys.view(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))) / 2.0**64


def choose_rows(
    fraction: float, seed: int, distinct: DistinctRows, keys: Array, target: Array, weights: Array
) -> tuple[Array, Array]:
    """Indices of those of some rows that belong to a sample, and their weights, divided by the chance to be chosen."""
    chances = np.where(target < 0.0, *label_chances(fraction, distinct))
    rows = np.flatnonzero(row_positions(keys, seed) < chances)
    return rows, (weights / chances)[rows]
