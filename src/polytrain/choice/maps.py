"""Choose the maps of the columns, and alpha, by leaving rows out of the kernel problem.

With a train's ranks unlimited, the error on rows that were left out has a closed form (see `polytrain.learning.dual`).
So every kind of map, bandwidth and alpha can be tried on some hundreds of rows in seconds, without any folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from polytrain.choice.evidence import Evidence, simplest, strongest
from polytrain.learning.dual import leave_one_out, product_kernel
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import MapList

__all__ = ["ALPHAS", "KINDS", "Chosen", "ScoredRows", "Tried", "choose_maps"]

#: Kinds of functions that are tried, the simplest ones first.
KINDS = ("smooth", "gauss", "spline", "smooth-rank", "gauss-rank", "spline-rank")
#: Regularisations that are tried, the strongest one first.
ALPHAS = tuple(float(f"{10.0 ** (half / 2):.2g}") for half in range(4, -17, -1))
_BANDWIDTHS = (0.5, 1.0, 2.0)
_LEAST_BANDWIDTH, _LARGEST_BANDWIDTH = 1 / 32, 32.0
# Kinds are compared on so many rows, then the winner is looked at more closely on more of them.
_FEW_ROWS = 500


class ScoredRows(NamedTuple):
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

    def first(self, count: int) -> ScoredRows:
        """Return no more than so many of the rows."""
        weights = self.weights[:count]
        return ScoredRows(self.X[:count], self.targets[:count], weights / weights.sum())


class Tried(NamedTuple):
    """One row of the table of what was tried."""

    step: str
    basis: str
    bandwidth: float | None
    alpha: float
    rank: int | None
    n_rows: int
    error: float


@dataclass(frozen=True)
class Chosen:
    """What leaving rows out has shown.

    Attributes
    ----------
    kind : str or None
        Kind of functions of the columns that were free.
    bandwidth : float or None
    alpha : float
        For the number of rows on which it was chosen.
    maps : MapList
    scores : ndarray of shape (M, q)
        Scores of the kernel problem for every row, learned from all others.
    evidence : Evidence
        Of these.
    """

    kind: str | None
    bandwidth: float | None
    alpha: float
    maps: MapList
    scores: NDArray
    evidence: Evidence
    tried: list[Tried] = field(default_factory=list)


class _Try(NamedTuple):
    kind: str | None
    bandwidth: float | None
    alpha: float
    evidence: Evidence
    residuals: NDArray


def choose_maps(
    make_maps: Callable[[str | None, float | None], MapList],
    kinds: Sequence[str | None],
    bandwidth: float | str | None,
    alphas: Sequence[float],
    rows: ScoredRows,
    n_threads: int = 1,
) -> Chosen:
    """Try kinds of functions, bandwidths and alphas on some rows.

    Parameters
    ----------
    make_maps : callable
        Makes the maps of all columns, given a kind and a bandwidth.
    kinds : sequence of str or None
        Kinds to try, the simplest first.
    bandwidth : float, "auto" or None
        What is given is kept.
    alphas : sequence of float
        Regularisations to try, the strongest first.
    rows : ScoredRows
    n_threads : int, default=1

    Returns
    -------
    Chosen
    """
    first = _BANDWIDTHS if bandwidth == "auto" else (bandwidth,)
    few = rows.first(_FEW_ROWS)
    with one_blas_thread():
        walks = Parallel(n_jobs=min(n_threads, len(kinds)), prefer="threads")(
            delayed(_walk)(make_maps, kind, first, alphas, few) for kind in kinds
        )
        tried = [
            Tried("maps", str(t.kind), t.bandwidth, t.alpha, None, len(few.X), t.evidence.error)
            for walk in walks
            for t in walk
        ]
        best = [min(walk, key=lambda t: t.evidence.error) for walk in walks]
        best = [walk[strongest([t.evidence.error for t in walk])] for walk in walks]
        winner = best[simplest([t.evidence for t in best])]
        nearby: Iterable[Any] = (winner.bandwidth,)
        if bandwidth == "auto":
            nearby = (winner.bandwidth / sqrt(2), winner.bandwidth, winner.bandwidth * sqrt(2))
        closer = Parallel(n_jobs=n_threads, prefer="threads")(
            delayed(_try)(make_maps, winner.kind, c, alphas, rows) for c in nearby
        )
    tried += [
        Tried("bandwidth", str(t.kind), t.bandwidth, t.alpha, None, len(rows.X), t.evidence.error) for t in closer
    ]
    final = closer[strongest([t.evidence.error for t in closer])]
    maps = make_maps(final.kind, final.bandwidth)
    scores = rows.targets - final.residuals
    return Chosen(final.kind, final.bandwidth, final.alpha, maps, scores, final.evidence, tried)


def _walk(
    make_maps: Callable[[str | None, float | None], MapList],
    kind: str | None,
    bandwidths: Sequence[float | None],
    alphas: Sequence[float],
    rows: ScoredRows,
) -> list[_Try]:
    """Try bandwidths, and go on in the direction in which the error falls until it rises; the smallest comes first."""
    found = [_try(make_maps, kind, bandwidth, alphas, rows) for bandwidth in bandwidths]
    if len(bandwidths) == 1:
        return found
    while True:
        best = strongest([t.evidence.error for t in found])
        first, last = found[0].bandwidth, found[-1].bandwidth
        if best == 0 and first > _LEAST_BANDWIDTH:
            found.insert(0, _try(make_maps, kind, first / 2, alphas, rows))
        elif best == len(found) - 1 and last < _LARGEST_BANDWIDTH:
            found.append(_try(make_maps, kind, last * 2, alphas, rows))
        else:
            return found


def _try(
    make_maps: Callable[[str | None, float | None], MapList],
    kind: str | None,
    bandwidth: float | None,
    alphas: Sequence[float],
    rows: ScoredRows,
) -> _Try:
    """Find the best alpha for these maps."""
    maps = make_maps(kind, bandwidth)
    values = [m.values(column) for m, column in zip(maps, maps.place(rows.X), strict=True)]
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = product_kernel(values)
    if not np.isfinite(kernel).all():
        nothing = Evidence(np.full(len(rows.X), np.inf), rows.weights)
        return _Try(kind, bandwidth, alphas[0], nothing, rows.targets)
    residuals = list(leave_one_out(kernel, rows.targets, rows.weights, alphas))
    found = [Evidence(np.square(r).sum(axis=1), rows.weights) for r in residuals]
    best = strongest([evidence.error for evidence in found])
    return _Try(kind, bandwidth, alphas[best], found[best], residuals[best])
