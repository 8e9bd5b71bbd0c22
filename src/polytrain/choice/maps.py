"""Choose the maps of the columns, and alpha, by leaving rows out of the kernel problem.

With a train's ranks unlimited, the error on rows that were left out has a closed form (see `polytrain.learning.dual`).
So every kind of map, bandwidth and alpha can be tried on some hundreds of rows in seconds, without any folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from polytrain.choice.evidence import Evidence, strongest
from polytrain.choice.map_maker import MapMaker
from polytrain.learning.dual import leave_one_out
from polytrain.maps import MapList

__all__ = [
    "ALPHAS",
    "KINDS",
    "LARGEST_BANDWIDTH",
    "LEAST_BANDWIDTH",
    "ChoiceRows",
    "MapTrial",
    "additive_kernel",
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
_BANDWIDTHS = (0.5, 1.0, 2.0)
#: No bandwidth beyond these is tried.
LEAST_BANDWIDTH, LARGEST_BANDWIDTH = 1 / 32, 32.0
# Numbers in the kernels of columns that are multiplied together.
_KERNEL_NUMBERS = 1 << 18


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
        What is given is kept; "auto" tries some and goes on in the direction in which the error falls until it rises.
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
    return Parallel(n_jobs=min(n_threads, len(kinds)), require="sharedmem")(
        delayed(_walk)(maker, kind, bandwidth, alphas, rows) for kind in kinds
    )


def try_maps(
    maker: MapMaker,
    pairs: Sequence[tuple[str | None, float | None]],
    alphas: Sequence[float],
    rows: ChoiceRows,
    n_threads: int = 1,
) -> list[MapTrial]:
    """Try pairs of a kind and a bandwidth."""
    families = {kind: _Family(maker, kind, rows.X) for kind in dict(pairs)}
    return Parallel(n_jobs=min(n_threads, len(pairs)), require="sharedmem")(
        delayed(_try)(families[kind], kind, bandwidth, alphas, rows) for kind, bandwidth in pairs
    )


def function_values(maps: MapList, X: NDArray) -> list[NDArray]:
    """Functions of every column on rows, (n, N) each."""
    return [feature_map.values(column) for feature_map, column in zip(maps, maps.place(X), strict=True)]


def additive_kernel(values: Sequence[NDArray]) -> NDArray:
    """Kernel of the linear model in all functions of the maps: without interactions."""
    stacked = np.concatenate([functions[1:] for functions in values])
    return 1.0 + stacked.T @ stacked


class _Family:
    """Kernels of one kind of functions on some rows, for any bandwidth.

    The functions are evaluated once. Columns with equally many of them are multiplied together.
    """

    def __init__(self, maker: MapMaker, kind: str | None, X: NDArray) -> None:
        self._maker, self._kind, self._n_rows = maker, kind, len(X)
        maps = maker.plain(kind)
        values = [functions[1:] for functions in function_values(maps, X)]
        groups: dict[int, list[int]] = {}
        for k, functions in enumerate(values):
            groups.setdefault(len(functions), []).append(k)
        some = max(1, _KERNEL_NUMBERS // (self._n_rows * self._n_rows))
        chunks = [columns[i : i + some] for columns in groups.values() for i in range(0, len(columns), some)]
        self._stacks = [(columns, np.stack([values[k] for k in columns])) for columns in chunks]

    def kernel(self, bandwidth: float | None) -> NDArray:
        """Products of all columns' kernels, (M, M)."""
        factors = self._maker.factors(self._kind, bandwidth)
        kernel = np.ones((self._n_rows,) * 2)
        for columns, values in self._stacks:
            scaled = values * np.stack([factors[k][1:] for k in columns])[:, :, None]
            inner = np.matmul(scaled.transpose(0, 2, 1), scaled)
            inner += 1.0
            kernel *= inner[0] if len(inner) == 1 else np.multiply.reduce(inner, axis=0)
        return kernel


def _walk(maker: MapMaker, kind: str | None, given: Any, alphas: Sequence[float], rows: ChoiceRows) -> list[MapTrial]:
    family = _Family(maker, kind, rows.X)
    if given != "auto":
        return [_try(family, kind, given, alphas, rows)]
    found = {bandwidth: _try(family, kind, bandwidth, alphas, rows) for bandwidth in _BANDWIDTHS}
    while True:
        order = sorted(found)
        best = strongest([found[bandwidth].error for bandwidth in order])
        if best == 0 and order[0] > LEAST_BANDWIDTH:
            following = order[0] / 2
        elif best == len(order) - 1 and order[-1] < LARGEST_BANDWIDTH:
            following = order[-1] * 2
        else:
            return [found[bandwidth] for bandwidth in order]
        found[following] = _try(family, kind, following, alphas, rows)


def _try(
    family: _Family, kind: str | None, bandwidth: float | None, alphas: Sequence[float], rows: ChoiceRows
) -> MapTrial:
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = family.kernel(bandwidth)
    return judge_kernel(kind, bandwidth, kernel, alphas, rows)


def judge_kernel(
    kind: str | None, bandwidth: float | None, kernel: NDArray, alphas: Sequence[float], rows: ChoiceRows
) -> MapTrial:
    """Find the best alpha for a kernel."""
    if not np.isfinite(kernel).all():  # nothing can be learned from it
        nothing = Evidence(np.full(len(rows.X), _HOPELESS), rows.weights)
        return MapTrial(kind, bandwidth, alphas[0], nothing, rows.targets)
    residuals = list(leave_one_out(kernel, rows.targets, rows.weights, alphas))
    found = [Evidence(np.square(left).sum(axis=1), rows.weights) for left in residuals]
    best = strongest([evidence.error for evidence in found])
    return MapTrial(kind, bandwidth, alphas[best], found[best], residuals[best])


def not_clearly_worse(trials: Sequence[MapTrial], standard_errors: float) -> list[MapTrial]:
    """Trials on the same rows whose error is larger than the least by no more than so many standard errors of that."""
    least = min(trials, key=lambda trial: trial.error)
    gaps = [(trial, *trial.evidence.worse_than(least.evidence)) for trial in trials]
    return [trial for trial, mean, error in gaps if mean <= standard_errors * error]


def best_of(walks: Sequence[Sequence[MapTrial]]) -> list[MapTrial]:
    """The best trial of every kind."""
    return [walk[strongest([trial.error for trial in walk])] for walk in walks]
