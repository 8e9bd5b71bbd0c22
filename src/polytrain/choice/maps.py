"""Choose the maps of the columns, and alpha, by leaving rows out of the kernel problem.

With a train's ranks unlimited, the error on rows that were left out has a closed form (see `polytrain.learning.dual`).
So every kind of map, bandwidth and alpha can be tried on some hundreds of rows in seconds, without any folds.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from polytrain.choice.alphas import find_alpha
from polytrain.choice.evidence import Evidence, strongest
from polytrain.choice.map_maker import MapMaker
from polytrain.learning.dual import upper_kernel
from polytrain.learning.parts import parts_upper_kernel
from polytrain.maps import MapList

__all__ = [
    "ALPHAS",
    "KINDS",
    "LARGEST_BANDWIDTH",
    "LEAST_BANDWIDTH",
    "ChoiceRows",
    "MapTrial",
    "additive_kernel",
    "alpha_for",
    "best_of",
    "compare_maps",
    "function_values",
    "judge_kernel",
    "not_clearly_worse",
    "try_maps",
]

#: Kinds of functions that are tried, the simplest ones first.
KINDS = ("smooth", "gauss", "spline", "smooth-rank", "gauss-rank", "spline-rank", "spline-distinct")
#: Regularisations that are tried, the strongest one first.
ALPHAS = tuple(float(f"{10.0 ** (half / 2):.2g}") for half in range(4, -21, -1))
# Squared error of maps whose kernel is not finite.
_HOPELESS = 1e100
# The search for the bandwidth begins here.
_BANDWIDTHS = (0.5, 1.0)
#: No bandwidth beyond these is tried.
LEAST_BANDWIDTH, LARGEST_BANDWIDTH = 1 / 32, 32.0
# The best alpha grows with about this power of the bandwidth: it is tenfold for twice the bandwidth.
_ALPHA_POWER = math.log2(10.0)


class ChoiceRows(NamedTuple):
    """Different rows with their mean targets.

    Attributes
    ----------
    X : ndarray of shape (M, d)
    targets : ndarray of shape (M, q)
    weights : ndarray of shape (M,)
        They sum to 1.
    """

    X: NDArray
    targets: NDArray
    weights: NDArray

    def first(self, count: int) -> ChoiceRows:
        """Return no more than so many of the rows."""
        weights = self.weights[:count]
        return ChoiceRows(self.X[:count], self.targets[:count], weights / weights.sum())


class MapTrial(NamedTuple):
    """What leaving rows out says about some maps, with the best alpha for them.

    Attributes
    ----------
    kind : str or None
        Kind of functions of the columns that leave it open.
    bandwidth : float or None
    alpha : float
        For the rows on which it was tried.
    evidence : Evidence
    residuals : ndarray of shape (M, q)
        Targets minus scores that were learned from all other rows.
    """

    kind: str | None
    bandwidth: float | None
    alpha: float
    evidence: Evidence
    residuals: NDArray

    @property
    def error(self) -> float:
        """Mean squared error."""
        return self.evidence.error


def compare_maps(
    maker: MapMaker,
    kinds: Sequence[str | None],
    bandwidth: float | str | None,
    alphas: Sequence[float],
    rows: ChoiceRows,
    n_threads: int = 1,
) -> list[list[MapTrial]]:
    """Try kinds of functions, each with several bandwidths and all alphas.

    Parameters
    ----------
    maker : MapMaker
    kinds : sequence of str or None
        Kinds to try.
    bandwidth : float, "auto" or None
        What is given is kept; "auto" tries two and goes on in the direction in which the error falls until it rises.
    alphas : sequence of float
        Regularisations to try, the strongest first.
    rows : ChoiceRows
    n_threads : int, default=1
        It has no influence on the result.

    Returns
    -------
    list of lists of MapTrial
        For every kind, the bandwidths that were tried, the smallest first.
    """
    room = _Room(len(rows.X))
    return Parallel(n_jobs=min(n_threads, len(kinds)), require="sharedmem")(
        delayed(_walk)(maker, kind, bandwidth, alphas, rows, room) for kind in kinds
    )


def try_maps(
    maker: MapMaker,
    tries: Sequence[tuple[str | None, float | None, float]],
    alphas: Sequence[float],
    rows: ChoiceRows,
    n_threads: int = 1,
    rival: float | None = None,
) -> list[MapTrial]:
    """Try kinds, each with a bandwidth and the alpha from which the best one is expected not to be far.

    If the error of a rival is given, those that cannot come near it are left as soon as that shows.
    """
    room = _Room(len(rows.X))
    families = {kind: _Family(maker, kind, rows.X) for kind, *_ in tries}
    return Parallel(n_jobs=min(n_threads, len(tries)), require="sharedmem")(
        delayed(_try)(families[kind], kind, bandwidth, alphas, rows, room, near, rival)
        for kind, bandwidth, near in tries
    )


def function_values(maps: MapList, X: NDArray) -> list[NDArray]:
    """Functions of every column on rows, (n, N) each."""
    return [feature_map.values(column) for feature_map, column in zip(maps, maps.place(X), strict=True)]


def additive_kernel(values: Sequence[NDArray]) -> NDArray:
    """Kernel of the linear model in all functions of the maps: without interactions."""
    stacked = np.concatenate([functions[1:] for functions in values])
    return 1.0 + stacked.T @ stacked


class _Room(threading.local):
    """Two matrices for every thread: memory that is new to a process takes longer than what is computed in it."""

    def __init__(self, n_rows: int) -> None:
        self.kernel, self.work = np.zeros((2, n_rows, n_rows))


class _Family:
    """Kernels of one kind of functions on some rows, for any bandwidth: the functions are evaluated once."""

    def __init__(self, maker: MapMaker, kind: str | None, X: NDArray) -> None:
        self._maker, self._kind = maker, kind
        self._values = function_values(maker.plain(kind), X)

    def kernel(self, bandwidth: float | None, out: NDArray) -> NDArray:
        """Products of all columns' kernels, (M, M), on and above the diagonal; or the sum of those of all parts."""
        factors = self._maker.factors(self._kind, bandwidth)
        grown = [grow[:, None] * values for grow, values in zip(factors, self._values, strict=True)]
        parts = self._maker.parts
        return upper_kernel(grown, out) if parts is None else parts_upper_kernel(grown, parts, out)


def _walk(
    maker: MapMaker, kind: str | None, given: Any, alphas: Sequence[float], rows: ChoiceRows, room: _Room
) -> list[MapTrial]:
    family = _Family(maker, kind, rows.X)
    if given != "auto":
        return [_try(family, kind, given, alphas, rows, room)]
    found: dict[float, MapTrial] = {}
    following: float | None = _BANDWIDTHS[0]
    while following is not None:
        rival = min((trial.error for trial in found.values()), default=None)
        near = _expected_alpha(found, following)
        found[following] = _try(family, kind, following, alphas, rows, room, near, rival)
        following = _next_bandwidth(found)
    return [found[bandwidth] for bandwidth in sorted(found)]


def _next_bandwidth(found: dict[float, MapTrial]) -> float | None:
    """The bandwidth to try after these; None where the best one lies between two others."""
    for bandwidth in _BANDWIDTHS:
        if bandwidth not in found:
            return bandwidth
    order = sorted(found)
    best = strongest([found[bandwidth].error for bandwidth in order])
    if best == 0 and order[0] > LEAST_BANDWIDTH:
        return order[0] / 2
    if best == len(order) - 1 and order[-1] < LARGEST_BANDWIDTH:
        return order[-1] * 2
    return None


def _expected_alpha(found: dict[float, MapTrial], bandwidth: float) -> float | None:
    """Where the best alpha of a bandwidth should be, as far as those of its neighbours tell."""
    nearest = sorted(found, key=lambda other: abs(math.log(other / bandwidth)))[:2]
    if not nearest:
        return None
    trial = found[nearest[0]]
    if len(nearest) == 1:
        return alpha_for(trial, bandwidth)
    other = found[nearest[1]]
    if not (trial.alpha > 0 and other.alpha > 0):  # given, and so the only one
        return None
    power = math.log(trial.alpha / other.alpha) / math.log(nearest[0] / nearest[1])
    return alpha_for(trial, bandwidth, min(max(power, 0.0), 2.0 * _ALPHA_POWER))


def alpha_for(trial: MapTrial, bandwidth: float, power: float = _ALPHA_POWER) -> float:
    """Where the best alpha of a bandwidth near that of a trial should be."""
    return trial.alpha * (bandwidth / trial.bandwidth) ** power if trial.bandwidth else trial.alpha


def _try(
    family: _Family,
    kind: str | None,
    bandwidth: float | None,
    alphas: Sequence[float],
    rows: ChoiceRows,
    room: _Room,
    near: float | None = None,
    rival: float | None = None,
) -> MapTrial:
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = family.kernel(bandwidth, room.kernel)
    return judge_kernel(kind, bandwidth, kernel, alphas, rows, near, rival, room.work)


def judge_kernel(
    kind: str | None,
    bandwidth: float | None,
    kernel: NDArray,
    alphas: Sequence[float],
    rows: ChoiceRows,
    near: float | None = None,
    rival: float | None = None,
    work: NDArray | None = None,
) -> MapTrial:
    """Find the best alpha for a kernel, see `polytrain.choice.alphas.find_alpha`."""
    # No entry is larger than the largest on the diagonal.
    if not np.isfinite(np.diagonal(kernel)).all():  # nothing can be learned from it
        nothing = Evidence(np.full(len(rows.X), _HOPELESS), rows.weights)
        return MapTrial(kind, bandwidth, alphas[0], nothing, rows.targets)
    return MapTrial(kind, bandwidth, *find_alpha(kernel, rows.targets, rows.weights, alphas, near, rival, work))


def not_clearly_worse(trials: Sequence[MapTrial], standard_errors: float) -> list[MapTrial]:
    """Trials on the same rows whose error is larger than the least by no more than so many standard errors of that."""
    least = min(trials, key=lambda trial: trial.error)
    gaps = [(trial, *trial.evidence.worse_than(least.evidence)) for trial in trials]
    return [trial for trial, mean, error in gaps if mean <= standard_errors * error]


def best_of(walks: Sequence[Sequence[MapTrial]]) -> list[MapTrial]:
    """The best trial of every kind."""
    return [walk[strongest([trial.error for trial in walk])] for walk in walks]
