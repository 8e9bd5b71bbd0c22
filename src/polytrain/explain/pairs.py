"""The pairs of columns that interact most, among all of them, without forming all.

The method
----------
In orthonormal functions, the variance of the pair (i, j) is ``|A_i T_(i+1) ... T_(j-1) B_j|^2``: A has a row and B a
column for every function but the constant, T is the constant's matrix of a column in between. Summed over all j, this
is ``tr(A_i S_i A_i')``, where the matrices S follow from each other from right to left:
``S_(k-1) = T_k S_k T_k' + B_k B_k'``. So the sum over all pairs of a column is known before any of them, and bounds
each; along the way from i to the right, what is left of the sum bounds all pairs that are still to come. Columns, and
ways, whose bound is below the k-th largest pair found so far are left: the result is exact.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.explain.sites import suffix_products

__all__ = ["PairSearch", "search_pairs"]

# Bounds are sums of squares, and as good as their rounding.
_SLACK = 1 + 1e-9


class PairSearch(NamedTuple):
    """Pairs (K, 2) of columns, first before second, and their variances (K,), largest first.

    ``whole`` is the variance of all pairs together, and ``n_formed`` how many of them were looked at.
    """

    pairs: list[tuple[int, int]]
    variances: NDArray
    whole: float
    n_formed: int


def search_pairs(cores: Sequence[NDArray], k: int) -> PairSearch:
    """Find the k pairs of largest variance of a train in orthonormal functions, the constant first in every core."""
    constants = [core[:, 0, :] for core in cores]
    suffix = suffix_products(constants)
    ends = [core[:, 1:, :] @ after for core, after in zip(cores, suffix[1:], strict=True)]  # (left rank, functions)
    sums = _right_sums(constants, ends)
    starts, before = [], np.ones(1)
    for core in cores:
        starts.append(_reduced(np.tensordot(before, core[:, 1:, :], axes=1)))
        before = before @ core[:, 0, :]
    bounds = np.array([_square(start, after) for start, after in zip(starts, sums[1:], strict=True)])
    # Worst first in the heap. Of equal pairs the earlier one is the better one.
    best: list[tuple[float, int, int]] = []
    n_formed = 0
    for i in np.argsort(-bounds, kind="stable").tolist() if k else []:
        rows, bound = starts[i], float(bounds[i])
        for j in range(i + 1, len(cores)):
            if bound <= 0 or (len(best) == k and bound * _SLACK < best[0][0]):
                break
            entry = (float(np.sum((rows @ ends[j]) ** 2)), -i, -j)
            n_formed += 1
            if len(best) < k:
                heapq.heappush(best, entry)
            else:
                heapq.heappushpop(best, entry)
            rows = rows @ constants[j]
            bound = _square(rows, sums[j + 1])
    best.sort(reverse=True)
    pairs = [(-i, -j) for _, i, j in best]
    return PairSearch(pairs, np.array([value for value, _, _ in best]), float(bounds.sum()), n_formed)


def _right_sums(constants: Sequence[NDArray], ends: Sequence[NDArray]) -> list[NDArray]:
    """Matrices whose form in the rows before column k is the variance of all pairs with column k or later."""
    sums = [np.zeros((1, 1))]
    for constant, end in zip(reversed(constants), reversed(ends), strict=True):
        sums.append(constant @ sums[-1] @ constant.T + end @ end.T)
    return sums[::-1]


def _reduced(rows: NDArray) -> NDArray:
    """As few rows with the same squares of all products."""
    return rows if len(rows) <= rows.shape[1] else np.asarray(np.linalg.qr(rows, mode="r"))


def _square(rows: NDArray, matrix: NDArray) -> float:
    return float(np.sum((rows @ matrix) * rows).clip(min=0.0))
