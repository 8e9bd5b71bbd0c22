"""The uncertainty of predictions of numbers: standard deviations and intervals.

Leverages (a Laplace approximation) are large where the training rows say little, the noise is the variance of errors on
rows that were not learned from, and conformal intervals hold a given share of these errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.kronecker import damped_spectrum
from polytrain.learning.moments import CoreMoments
from polytrain.maps import MapList

__all__ = ["LeftOutErrors", "TrainUncertainty", "Uncertainty", "fit_noise", "leverages", "leverages_of_rows"]

_TINY = float(np.finfo(float).tiny)


def leverages(
    cores: Sequence[NDArray], moments: Sequence[CoreMoments], alpha: float, values: Sequence[NDArray]
) -> NDArray:
    """The sum over all cores of v' H^-1 v for some rows, (N,); times 2 / rows it is a leverage.

    ``moments`` are those of the rows that were learned from with ``alpha``; without any, all leverages are 0.
    ``values`` (n_k, N) are the functions of every column.
    """
    total = np.zeros(values[0].shape[1])
    if not moments:
        return total
    rights = [np.ones((1, len(total)))]
    for core, functions in zip(reversed(cores[1:]), reversed(values[1:]), strict=True):
        rights.append(np.tensordot(core, functions[:, None] * rights[-1], axes=2))
    left = np.ones((1, len(total)))
    for core, at, functions, right in zip(cores, moments, values, reversed(rights), strict=True):
        total += _leverage(at, alpha, left, functions, right)
        left = np.tensordot(core, left[:, None] * functions, axes=((0, 1), (0, 1)))
    return total


def _leverage(at: CoreMoments, alpha: float, left: NDArray, functions: NDArray, right: NDArray) -> NDArray:
    """Return the term of one core, (N,)."""
    spectrum = damped_spectrum(at.left_sizes, at.middle_sizes, at.right_sizes, alpha)
    left, functions, right = np.square(at.left @ left), np.square(at.middle @ functions), np.square(at.right @ right)
    inner = np.einsum("anN,nN->aN", np.tensordot(1.0 / spectrum, right, axes=1), functions)
    return np.einsum("aN,aN->N", inner, left)


def _no_moments(before: CoreMoments | None) -> CoreMoments:
    """Moments of a column that is left out, behind those of another one: no leverage comes from it."""
    rank, one = 1 if before is None else before.right.shape[1], np.zeros(1)
    return CoreMoments(np.zeros((1, rank)), np.eye(1), np.zeros((1, rank)), one, one, one)


# Factors of the leverages. The first is used unless another one is better by this many standard errors.
_STRETCHES, _CLEARLY = (1.0, 1 / 16, 1 / 4, 4.0, 16.0, 64.0), 2.0


def fit_noise(errors: NDArray, leverages: NDArray, weights: NDArray) -> tuple[float, float]:
    """Return the variance of the noise, and a factor of the leverages, under which left-out errors are most likely.

    An error is taken to be normal with the variance ``noise * (1 + stretch * leverage)``. Errors, leverages and weights
    (N,) are those of different rows that were not learned from.
    """
    weights = weights / weights.sum()
    size = float(np.abs(errors).max(initial=0.0))
    if not size > 0.0:
        return 0.0, 1.0
    squares, factors = np.square(errors / size), 1.0 + np.multiply.outer(_STRETCHES, leverages)
    noises = np.maximum((squares / factors) @ weights, _TINY)
    costs = np.log(noises[:, None] * factors) + squares / (noises[:, None] * factors)
    best = int(np.argmin(costs @ weights))
    gain = costs[0] - costs[best]
    mean = float(weights @ gain)
    if mean <= _CLEARLY * float(np.linalg.norm(weights * (gain - mean))):
        best = 0
    return float(noises[best]) * size * size, _STRETCHES[best]


# Number of errors that are kept, the largest of equal shares of the weight: intervals become no narrower.
_MOST_KEPT = 1024
# Sums of weights that should be equal differ by at most this.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Absolute errors on ``n_rows`` different rows that were not learned from.

    ``errors`` (k,) ascend, and ``heights`` (k,) are the shares of the weight with errors up to each of them.

    Examples
    --------
    >>> import numpy as np
    >>> left_out = LeftOutErrors.of(np.arange(1.0, 20.0), np.ones(19))
    >>> left_out.bound(0.9), left_out.bound(0.95)
    (18.0, 19.0)
    """

    errors: NDArray
    heights: NDArray
    n_rows: int

    @classmethod
    def of(cls, errors: NDArray, weights: NDArray) -> LeftOutErrors:
        """Take errors of different rows, of any sign, with their weights."""
        sizes = np.abs(errors)
        order = np.argsort(sizes, kind="stable")
        heights = np.cumsum(weights[order])
        heights = np.minimum(heights / heights[-1], 1.0)
        kept = np.arange(len(order))
        if len(order) > _MOST_KEPT:
            levels = np.arange(1, _MOST_KEPT + 1) / _MOST_KEPT - _ROUNDING
            kept = np.unique(np.minimum(np.searchsorted(heights, levels), len(order) - 1))
        heights[-1] = 1.0
        return cls(sizes[order][kept], heights[kept], len(order))

    def bound(self, coverage: float) -> float:
        """The bound of a new row's error: the smallest error whose height is at least ``coverage * (n + 1) / n``.

        With equal weights this is the ceil((n + 1) coverage)-th smallest.
        """
        largest = self.n_rows / (self.n_rows + 1)
        if coverage > largest * (1.0 + _ROUNDING):
            needed = ceil(coverage / (1.0 - coverage) - _ROUNDING)
            raise ValueError(
                f"coverage={coverage} needs at least {needed} different rows that were not learned from, and there are "
                f"{self.n_rows}: an interval would be infinite. Ask for coverage <= {largest:.4g}, or "
                "fit with more rows or a larger calibration_fraction."
            )
        level = coverage * (self.n_rows + 1) / self.n_rows
        place = int(np.searchsorted(self.heights, level * (1.0 - _ROUNDING)))
        return float(self.errors[min(place, len(self.errors) - 1)])


# Rows at once: environments at all cores are in memory.
_BLOCK_ROWS = 512


@dataclass(frozen=True, eq=False)
class TrainUncertainty:
    """The uncertainty of one train, in units of the targets that it has learned.

    ``moments`` are those of the rows that were learned from, ``reach`` is the factor from `leverages` to variances in
    units of the ``noise``, and ``left_out`` holds left-out errors divided by the root of 1 + leverage.
    """

    moments: tuple[CoreMoments, ...]
    alpha: float
    reach: float
    noise: float
    left_out: LeftOutErrors


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The uncertainty of all trains of a model; ``guaranteed`` if the left-out rows had no part in the fit at all."""

    trains: tuple[TrainUncertainty, ...]
    guaranteed: bool

    def widths(self, cores: Sequence[Sequence[NDArray]], maps: MapList, X: NDArray) -> NDArray:
        """Return the root of 1 + leverage of rows X (N, d), (n_trains, N): deviations in units of that of the noise."""
        parts = [(train, own.moments, own.alpha) for own, train in zip(self.trains, cores, strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):  # far from all training rows it may be infinite
            reaches = np.array([[own.reach] for own in self.trains])
            return np.sqrt(1.0 + reaches * leverages_of_rows(parts, maps, X))

    def widened(self, maps: MapList) -> Uncertainty:
        """Return the same for trains of all columns, of which ``maps`` leave some out: these change nothing."""
        every = [tuple(maps.widened(own.moments, _no_moments)) if own.moments else () for own in self.trains]
        trains = (replace(own, moments=moments) for own, moments in zip(self.trains, every, strict=True))
        return replace(self, trains=tuple(trains))


def leverages_of_rows(parts: Sequence[tuple[Any, Any, float]], maps: MapList, X: NDArray) -> NDArray:
    """Return the leverages of raw rows X (N, d), (n_trains, N), given cores, moments and alpha of every train."""
    found = np.empty((len(parts), len(X)))
    for start in range(0, len(X), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        columns = maps.place(X[rows].astype(np.float64, copy=False))
        values = [feature_map.values(column) for feature_map, column in zip(maps, columns, strict=True)]
        for index, part in enumerate(parts):
            found[index, rows] = leverages(*part, values)
    return found
