"""What is kept of the uncertainty of a fitted model, and what it says about rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.moments import CoreMoments
from polytrain.maps import MapList
from polytrain.uncertainty.conformal import LeftOutErrors
from polytrain.uncertainty.laplace import doubts
from polytrain.uncertainty.noise import fit_noise

__all__ = ["TrainUncertainty", "Uncertainty"]

# Rows at once: environments at all cores are in memory.
_BLOCK_ROWS = 512


@dataclass(frozen=True, eq=False)
class TrainUncertainty:
    """The uncertainty of one train, in units of the targets that it has learned.

    Attributes
    ----------
    moments : tuple of CoreMoments
        Of the rows that were learned from.
    alpha : float
        Regularisation.
    reach : float
        What doubts are multiplied by to be variances in units of the noise.
    noise : float
        Variance of the noise.
    left_out : LeftOutErrors
        Errors on rows that were not learned from, divided by the root of 1 + doubt.
    """

    moments: tuple[CoreMoments, ...]
    alpha: float
    reach: float
    noise: float
    left_out: LeftOutErrors

    @classmethod
    def fit(
        cls,
        moments: Sequence[CoreMoments],
        alpha: float,
        n_learned: int,
        errors: NDArray,
        doubted: NDArray,
        weights: NDArray,
    ) -> TrainUncertainty:
        """Find noise and bounds from different rows that were not learned from.

        ``n_learned`` different rows were; ``doubted`` are the doubts of the others, as `doubts` gives them.
        """
        noise, stretch = fit_noise(errors, 2.0 / n_learned * doubted, weights)
        reach = 2.0 * stretch / n_learned
        left_out = LeftOutErrors.of(errors / np.sqrt(1.0 + reach * doubted), weights)
        return cls(tuple(moments), alpha, reach, noise, left_out)

    def widths(self, cores: Sequence[NDArray], values: Sequence[NDArray]) -> NDArray:
        """How much wider than noise the errors of some rows spread, (N,): the root of 1 + doubt."""
        with np.errstate(over="ignore", invalid="ignore"):  # far from everything, there may be no end to it
            return np.sqrt(1.0 + self.reach * doubts(cores, self.moments, self.alpha, values))


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The uncertainty of all trains of a model.

    Attributes
    ----------
    trains : tuple of TrainUncertainty
    guaranteed : bool
        Whether the left-out rows had no part in the fit at all, so that intervals have a guarantee.
    """

    trains: tuple[TrainUncertainty, ...]
    guaranteed: bool

    def widths(self, cores: Sequence[Sequence[NDArray]], maps: MapList, X: NDArray) -> NDArray:
        """See `TrainUncertainty.widths`, for rows X (N, d) and all trains, (n_trains, N)."""
        found = np.empty((len(self.trains), len(X)))
        for rows, values in blocks_of_values(maps, X):
            for index, (own, train) in enumerate(zip(self.trains, cores, strict=True)):
                found[index, rows] = own.widths(train, values)
        return found

    def with_moments(
        self, moments: Sequence[Sequence[CoreMoments]], alpha: float, factors: Sequence[float]
    ) -> Uncertainty:
        """The same errors for trains that were learned anew, for targets that were divided by these factors more."""
        trains = []
        for own, measured, factor in zip(self.trains, moments, factors, strict=True):
            left_out = replace(own.left_out, errors=own.left_out.errors / factor)
            noise = own.noise / (factor * factor)
            trains.append(replace(own, moments=tuple(measured), alpha=alpha, noise=noise, left_out=left_out))
        return Uncertainty(tuple(trains), guaranteed=False)


def blocks_of_values(maps: MapList, X: NDArray) -> Iterator[tuple[slice, list[NDArray]]]:
    """The functions of all columns in float64, some rows after others."""
    for start in range(0, len(X), _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, len(X)))
        columns = maps.place(X[rows].astype(np.float64, copy=False))
        yield rows, [one.values(column) for one, column in zip(maps, columns, strict=True)]
