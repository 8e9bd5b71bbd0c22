"""How sure predictions of numbers are: standard deviations and intervals.

Leverages say where a train knows little (a Laplace approximation), the noise how large errors on rows that it has not
learned from are, and conformal intervals which of these errors an interval must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.moments import CoreMoments
from polytrain.maps import MapList

__all__ = ["LeftOutErrors", "TrainUncertainty", "Uncertainty", "fit_noise", "leverages"]


_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


def leverages(
    cores: Sequence[NDArray], moments: Sequence[CoreMoments], alpha: float, values: Sequence[NDArray]
) -> NDArray:
    """The sum over all cores of v' H^-1 v for some rows, (N,); times 2 / rows it is a leverage.

    Parameters
    ----------
    cores : sequence of ndarray
        The train.
    moments : sequence of CoreMoments
        Those of its rows. Without any there is no leverage.
    alpha : float
        Regularisation that the train was learned with.
    values : sequence of ndarray of shape (n_k, N)
        Functions of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.learning.moments import CoreMoments
    >>> one = np.ones((1, 1)), np.ones(1)
    >>> moments = [CoreMoments(one[0], np.eye(2), one[0], one[1], np.array([1.0, 0.5]), one[1])]
    >>> leverages([np.zeros((1, 2, 1))], moments, 0.0, [np.array([[1.0, 1.0], [0.0, 3.0]])])
    array([ 1., 19.])
    """
    found = np.zeros(values[0].shape[1])
    if not moments:
        return found
    rights = [np.ones((1, len(found)))]
    for core, functions in zip(reversed(cores[1:]), reversed(values[1:]), strict=True):
        a, n, b = core.shape
        spread = (functions[:, None, :] * rights[-1]).reshape(n * b, -1)
        rights.append(core.reshape(a, n * b) @ spread)
    left = np.ones((1, len(found)))
    for core, at, functions, right in zip(cores, moments, values, reversed(rights), strict=True):
        found += _leverage(at, alpha, left, functions, right)
        a, n, b = core.shape
        left = core.reshape(a * n, b).T @ (left[:, None, :] * functions).reshape(a * n, -1)
    return found


def _leverage(at: CoreMoments, alpha: float, left: NDArray, functions: NDArray, right: NDArray) -> NDArray:
    """The part of one core, (N,)."""
    spectrum = np.multiply.outer(at.left_sizes, np.multiply.outer(at.middle_sizes, at.right_sizes)) + alpha
    # Directions that no row has: keep the inverse bounded where alpha is zero.
    spectrum = np.maximum(spectrum, max(_EPS * float(spectrum.max()), _TINY))
    squares = (np.square(turn @ own) for turn, own in ((at.left, left), (at.middle, functions), (at.right, right)))
    before, middle, behind = squares
    inner = (1.0 / spectrum).reshape(-1, len(behind)) @ behind
    inner = np.einsum("anN,nN->aN", inner.reshape(len(before), len(middle), -1), middle)
    return np.einsum("aN,aN->N", inner, before)


# How much leverages may be stretched: by nothing unless rows that were left out speak clearly for another factor.
_STRETCHES = (1.0, 1 / 16, 1 / 4, 4.0, 16.0, 64.0)
# A gain is clear if it is larger than this many of its standard errors.
_CLEARLY = 2.0


def fit_noise(errors: NDArray, leverages: NDArray, weights: NDArray) -> tuple[float, float]:
    """Find the variance of the noise, and a factor of the leverages, under which left-out errors are likely.

    An error is taken to be normal with the variance ``noise * (1 + stretch * leverage)``.

    Parameters
    ----------
    errors : ndarray of shape (N,)
        Of different rows that the train has not learned from.
    leverages : ndarray of shape (N,)
    weights : ndarray of shape (N,)

    Returns
    -------
    noise, stretch : float

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> leverages = rng.uniform(0, 9, 2000)
    >>> noise, stretch = fit_noise(2 * np.sqrt(1 + leverages) * rng.normal(size=2000), leverages, np.ones(2000))
    >>> round(noise, 1), stretch
    (4.0, 1.0)
    """
    weights = weights / weights.sum()
    size = float(np.abs(errors).max(initial=0.0))
    if not size > 0.0:
        return 0.0, 1.0
    squares = np.square(errors / size)
    found = []
    for stretch in _STRETCHES:
        factors = 1.0 + stretch * leverages
        noise = max(float(weights @ (squares / factors)), float(np.finfo(float).tiny))
        found.append((np.log(noise * factors) + squares / (noise * factors), noise, stretch))
    costs = [float(weights @ cost) for cost, _, _ in found]
    least = int(np.argmin(costs))
    gain = found[0][0] - found[least][0]
    mean = float(weights @ gain)
    chosen = found[least if mean > _CLEARLY * float(np.linalg.norm(weights * (gain - mean))) else 0]
    return chosen[1] * size * size, chosen[2]


# No more errors than these are kept, the larger one of each that fall together: intervals become no narrower.
_MOST_KEPT = 1024
# Sums of weights that should be equal differ by no more than this.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Sizes of errors on rows that were not learned from.

    Attributes
    ----------
    errors : ndarray of shape (k,)
        In ascending order.
    heights : ndarray of shape (k,)
        Which part of the weight has errors that are no larger.
    n_rows : int
        Number of different rows.

    Examples
    --------
    >>> import numpy as np
    >>> found = LeftOutErrors.of(np.arange(1.0, 20.0), np.ones(19))
    >>> found.bound(0.9), found.bound(0.95)
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

    @property
    def largest_coverage(self) -> float:
        """No interval can promise more from so few rows."""
        return self.n_rows / (self.n_rows + 1)

    def bound(self, coverage: float) -> float:
        """The size that the error of a new row does not exceed with this probability.

        It is the smallest error whose height is at least ``coverage * (n + 1) / n``: with equal weights the
        ceil((n + 1) coverage)-th smallest.
        """
        if coverage > self.largest_coverage * (1.0 + _ROUNDING):
            needed = ceil(coverage / (1.0 - coverage) - _ROUNDING)
            raise ValueError(
                f"coverage={coverage} needs at least {needed} different rows that were not learned from, and there are "
                f"{self.n_rows}: an interval would be infinite. Ask for coverage <= {self.largest_coverage:.4g}, or "
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

    Attributes
    ----------
    moments : tuple of CoreMoments
        Of the rows that were learned from.
    alpha : float
        Regularisation.
    reach : float
        What leverages are multiplied by to be variances in units of the noise.
    noise : float
        Variance of the noise.
    left_out : LeftOutErrors
        Errors on rows that were not learned from, divided by the root of 1 + leverage.
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
        left_out_leverages: NDArray,
        weights: NDArray,
    ) -> TrainUncertainty:
        """Find noise and bounds from different rows that were not learned from.

        ``n_learned`` different rows were; ``left_out_leverages`` are those of the others; see `leverages`.
        """
        noise, stretch = fit_noise(errors, 2.0 / n_learned * left_out_leverages, weights)
        reach = 2.0 * stretch / n_learned
        left_out = LeftOutErrors.of(errors / np.sqrt(1.0 + reach * left_out_leverages), weights)
        return cls(tuple(moments), alpha, reach, noise, left_out)

    def widths(self, cores: Sequence[NDArray], values: Sequence[NDArray]) -> NDArray:
        """How much wider than noise the errors of some rows spread, (N,): the root of 1 + leverage."""
        with np.errstate(over="ignore", invalid="ignore"):  # far from everything, there may be no end to it
            return np.sqrt(1.0 + self.reach * leverages(cores, self.moments, self.alpha, values))


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
