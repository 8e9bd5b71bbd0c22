"""The uncertainty of predictions of numbers: standard deviations and intervals.

Leverages (a Laplace approximation) are large far from the training rows, a scale follows the size of left-out errors
from row to row, the noise is their variance, and conformal intervals hold a given share of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from polytrain.learning.kronecker import damped_spectrum
from polytrain.learning.moments import CoreMoments
from polytrain.maps import MapList

__all__ = [
    "ErrorScale",
    "LeftOutErrors",
    "TrainUncertainty",
    "Uncertainty",
    "blocks_of_functions",
    "fit_scale",
    "fit_stretch",
    "leverages",
]

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


def fit_stretch(errors: NDArray, leverages: NDArray, weights: NDArray) -> float:
    """Return a factor of the leverages under which left-out errors are most likely.

    An error is taken to be normal with a variance that is proportional to ``1 + stretch * leverage``. Errors, leverages
    and weights (N,) are those of different rows that were not learned from.
    """
    weights = weights / weights.sum()
    size = float(np.abs(errors).max(initial=0.0))
    if not size > 0.0:
        return 1.0
    squares, factors = np.square(errors / size), 1.0 + np.multiply.outer(_STRETCHES, leverages)
    noises = np.maximum((squares / factors) @ weights, _TINY)
    costs = np.log(noises[:, None] * factors) + squares / (noises[:, None] * factors)
    best = int(np.argmin(costs @ weights))
    return _STRETCHES[best if _exceeds(_CLEARLY, costs[0] - costs[best], weights) else 0]


def _exceeds(n_errors: float, gains: NDArray, weights: NDArray) -> bool:
    """Whether the mean of the gains (N,) is more than this many standard errors; weights (N,) sum to 1."""
    mean = float(weights @ gains)
    return mean > n_errors * float(np.linalg.norm(weights * (gains - mean)))


# Errors have the same scale everywhere with fewer rows, or if another one is not better by this many standard errors.
_LEAST_SCALED, _BETTER = 200, 1.0
# Numbers that a scale is fitted to at once, and rows that are used however many functions there are.
_MOST_NUMBERS, _LEAST_ROWS = 1 << 21, 1024
# Parts of the rows between which the scale may bend with the score, and steps of Fisher's method.
_LEVELS, _N_STEPS = np.linspace(0.02, 0.98, 13), 10
# Directions with less than this part of the largest square are rounding noise, and so is what a leverage lacks to 1.
_NOISE, _MOST_OWN = 1e-12, 1.0 - 1e-6
# Errors are clipped at this multiple of their scale, because of outliers; and logarithms of scales at this size.
_LARGEST_ERROR, _LARGEST_LOGARITHM = 4.0, 10.0
# Ridges of the scale: the variance of the logarithm of an error, divided by that of the logarithm of the scale.
_RIDGES = 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03


@dataclass(frozen=True, eq=False)
class ErrorScale:
    """The size of errors as a function of the row, up to a factor: its logarithm is a sum of functions.

    ``curve`` (2, k) has scores, ascending, and the values of a function that is linear between them. ``effects``
    (n_k - 1,) are factors of the functions of every column but the constant. Logarithms are clipped at ``limit``.
    """

    curve: NDArray
    effects: tuple[NDArray, ...]
    limit: float

    def logarithms(self, scores: NDArray, values: Sequence[NDArray]) -> NDArray:
        """Logarithms of the scale, (N,), of rows with these scores (N,) and functions (n_k, N) of every column."""
        total = np.interp(scores, *self.curve)
        for effect, functions in zip(self.effects, values, strict=True):
            total += effect @ functions[1:]
        return np.clip(total, -self.limit, self.limit)


def fit_scale(
    errors: NDArray, weights: NDArray, scores: NDArray, functions: NDArray, dims: Sequence[int]
) -> tuple[ErrorScale | None, NDArray]:
    """Return the scale of left-out errors, None for a constant one, and its logarithms without each row's own part.

    Sizes of errors are taken to be gamma-distributed around their scale, whose logarithm is a ridge regression on the
    score and on the functions of the columns. Every step of Fisher's method is a problem of least squares, so that each
    row is left out by its leverage. The scale is constant unless another one makes left-out errors more likely.

    Shapes: errors, weights and scores (N,), of different rows in random order; functions (N, sum of dims - d).
    """
    constant, n = (None, np.zeros(len(errors))), max(_LEAST_ROWS, _MOST_NUMBERS // (functions.shape[1] + len(_LEVELS)))
    sizes, weights, mean = np.abs(errors), weights / weights.sum(), 0.0
    knots = np.unique(np.quantile(scores[:n], _LEVELS))
    is_small = len(sizes) < _LEAST_SCALED or not (mean := float(weights @ sizes)) > 0.0
    if is_small or functions.shape[1] + len(knots) == 1:
        return constant
    sizes, own = sizes / mean, weights[:n] / weights[:n].sum()
    ramps = [np.interp(scores[:n], knots[k : k + 2], (0.0, 1.0)) for k in range(len(knots) - 1)]
    parts = [np.stack(ramps, axis=1) if ramps else np.zeros((len(own), 0)), functions[:n]]
    centres = [own @ part for part in parts]
    parts = [part - centre for part, centre in zip(parts, centres, strict=True)]
    units = [1.0 / np.sqrt(max(float(own @ np.square(part).sum(axis=1)), _TINY)) for part in parts]
    design = np.sqrt(own)[:, None] * np.hstack([unit * part for unit, part in zip(units, parts, strict=True)])
    is_tall = design.shape[0] > design.shape[1]
    squares, vectors = eigh(design.T @ design if is_tall else design @ design.T)
    used = squares > _NOISE * squares[-1]
    squares, vectors = squares[used], vectors[:, used]
    basis = vectors / np.sqrt(squares) if is_tall else design.T @ (vectors / squares)
    left = design @ basis
    trials = [_fit_logarithms(sizes[:n], own, left, squares, ridge / len(own)) for ridge in _RIDGES]
    costs = [_scale_costs(sizes[:n], logarithms, own) for logarithms, _ in trials]
    best = int(np.argmin([own @ cost for cost in costs]))
    if not _exceeds(_BETTER, _scale_costs(sizes[:n], np.zeros(len(own)), own) - costs[best], own):
        return constant
    left_out, turned = trials[best]
    bends, effects = np.split(basis @ turned, [len(ramps)])
    bends, effects = units[0] * bends, units[1] * effects
    heights = np.concatenate([[0.0], np.cumsum(bends)]) - centres[0] @ bends - centres[1] @ effects
    limit = float(np.abs(left_out).max())
    columns = tuple(np.split(effects, np.cumsum(np.subtract(dims, 1))[:-1]))
    scale = ErrorScale(np.stack([knots, heights]), columns, limit)
    others = np.clip(np.interp(scores[n:], *scale.curve) + functions[n:] @ effects, -limit, limit)
    return scale, np.concatenate([left_out, others])


def _fit_logarithms(
    sizes: NDArray, weights: NDArray, left: NDArray, squares: NDArray, ridge: float
) -> tuple[NDArray, NDArray]:
    """Return logarithms of the scale, without each row's own part (N,), and factors of the columns of ``left``.

    Columns of ``left`` (N, r) are orthonormal, and functions times the roots of the weights, which sum to 1.
    """
    kept, root = squares / (squares + ridge), np.sqrt(weights)
    own = np.minimum(np.square(left) @ kept + weights, _MOST_OWN)
    logarithms = np.zeros(len(sizes))
    for _ in range(_N_STEPS):
        wanted = logarithms + np.minimum(sizes * np.exp(-logarithms), _LARGEST_ERROR) - 1.0
        wanted -= weights @ wanted  # the factor of all scales is arbitrary
        turned = kept * (left.T @ (root * wanted))
        logarithms = left @ turned / root
    left_out = wanted - (wanted - logarithms) / (1.0 - own)
    return np.clip(left_out, -_LARGEST_LOGARITHM, _LARGEST_LOGARITHM), turned


def _scale_costs(sizes: NDArray, logarithms: NDArray, weights: NDArray) -> NDArray:
    """Costs of errors of these sizes (N,) with this scale, times the factor that costs least."""
    ratios = sizes * np.exp(-logarithms)
    mean = max(float(weights @ ratios), _TINY)
    return logarithms + np.log(mean) + ratios / mean


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
                f"{self.n_rows}: an interval would be infinite. Use coverage <= {largest:.4g}, or "
                "more rows or a larger calibration_fraction."
            )
        level = coverage * (self.n_rows + 1) / self.n_rows
        place = int(np.searchsorted(self.heights, level * (1.0 - _ROUNDING)))
        return float(self.errors[min(place, len(self.errors) - 1)])


_NO_ERRORS = LeftOutErrors(np.zeros(0), np.zeros(0), 0)
# Rows at once: environments at all cores are in memory.
_BLOCK_ROWS = 512


@dataclass(frozen=True, eq=False)
class TrainUncertainty:
    """The uncertainty of one train, in units of the targets that it has learned.

    ``moments`` are those of the rows that were learned from, and ``reach`` is the factor from `leverages` to variances
    in units of the ``noise``. ``scale`` is None if errors are of the same size everywhere, and ``left_out`` holds
    left-out errors divided by the scale and by the root of 1 + leverage.
    """

    moments: tuple[CoreMoments, ...]
    alpha: float
    reach: float
    scale: ErrorScale | None = None
    noise: float = 0.0
    left_out: LeftOutErrors = _NO_ERRORS

    def with_errors(self, errors: NDArray, widths: NDArray, weights: NDArray) -> TrainUncertainty:
        """Return the same with left-out errors (N,), given their expected sizes, widths (N,)."""
        scaled = errors / widths
        noise = float(np.average(np.square(scaled), weights=weights))
        return replace(self, noise=noise, left_out=LeftOutErrors.of(scaled, weights))


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The uncertainty of all trains of a model; ``guaranteed`` if the left-out rows were not used in the fit at all."""

    trains: tuple[TrainUncertainty, ...]
    guaranteed: bool

    def widths(self, scores: NDArray, cores: Sequence[Sequence[NDArray]], maps: MapList, X: NDArray) -> NDArray:
        """Return deviations of rows X (N, d), with these values of the trains, (n_trains, N), divided by the noise's.

        They are the root of 1 + leverage, times the scale.
        """
        found = np.empty(scores.shape)
        with np.errstate(over="ignore", invalid="ignore"):  # far from all training rows it may be infinite
            for rows, values in blocks_of_functions(maps, X):
                for own, train, out, score in zip(self.trains, cores, found, scores, strict=True):
                    out[rows] = np.sqrt(1.0 + own.reach * leverages(train, own.moments, own.alpha, values))
                    if own.scale is not None:
                        out[rows] *= np.exp(own.scale.logarithms(score[rows], values))
        return found

    def widened(self, maps: MapList) -> Uncertainty:
        """Return the same for trains of all columns, of which ``maps`` leave some out: these change nothing."""
        trains = []
        for own in self.trains:
            moments = tuple(maps.widened(own.moments, _no_moments)) if own.moments else ()
            scale = own.scale
            if scale is not None:
                scale = replace(scale, effects=tuple(maps.widened(scale.effects, lambda _: np.zeros(0))))
            trains.append(replace(own, moments=moments, scale=scale))
        return replace(self, trains=tuple(trains))


def blocks_of_functions(maps: MapList, X: NDArray) -> Iterator[tuple[slice, list[NDArray]]]:
    """Yield some raw rows of X (N, d) after others, with the functions of every column, (n_k, rows)."""
    for start in range(0, len(X), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        columns = maps.place(X[rows].astype(np.float64, copy=False))
        yield rows, [feature_map.values(column) for feature_map, column in zip(maps, columns, strict=True)]
