"""Ranks that a train of given dimensions can have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from polytrain.tensor.checks import check_dims, check_positive_integer


def rank_bounds(dims: Sequence[int]) -> tuple[int, ...]:
    """Return the largest rank that each inner bond of a train ever needs.

    Bond ``k`` joins the first ``k`` features with the others, so that its rank is at most the smaller side of that
    unfolding: ``min(n_1 * ... * n_k, n_{k+1} * ... * n_d)``.

    Parameters
    ----------
    dims : sequence of d int
        Number of basis functions of every feature.

    Returns
    -------
    tuple of d - 1 int
        One bound for each inner bond.

    Examples
    --------
    >>> from polytrain.tensor import rank_bounds
    >>> rank_bounds((4, 2, 3))
    (4, 3)
    """
    return clip_ranks(dims, math.prod(check_dims(dims)))[1:-1]


def clip_ranks(dims: Sequence[int], rank: int | Sequence[int]) -> tuple[int, ...]:
    """Clip ranks to those that a train can have.

    A rank above ``rank_bounds``, or above the next rank times the dimension between them, adds nothing to what a train
    can hold: the result has ``r_k <= r_{k-1} n_k`` and ``r_{k-1} <= n_k r_k`` everywhere.

    Parameters
    ----------
    dims : sequence of d int
        Number of basis functions of every feature.
    rank : int or sequence of d - 1 int
        Wanted rank of all inner bonds, or of each of them.

    Returns
    -------
    tuple of d + 1 int
        Ranks with the two boundary ones, which are 1.

    Examples
    --------
    >>> from polytrain.tensor import clip_ranks
    >>> clip_ranks((2, 2, 2, 2, 2), 8)
    (1, 2, 4, 4, 2, 1)
    >>> clip_ranks((4, 2, 3), [1, 3])
    (1, 1, 2, 1)
    """
    dims = check_dims(dims)
    n_bonds = len(dims) - 1
    if np.ndim(rank) == 0:
        wanted = [check_positive_integer(rank, "rank")] * n_bonds
    else:
        wanted = [check_positive_integer(value, f"rank[{k}]") for k, value in enumerate(cast(Sequence[int], rank))]
    if len(wanted) != n_bonds:
        raise ValueError(
            f"rank must be an integer, or {n_bonds} of them for the inner bonds of {len(dims)} features, "
            f"got {len(wanted)}."
        )
    ranks = [1, *wanted, 1]
    for k, n in enumerate(dims):
        ranks[k + 1] = min(ranks[k + 1], ranks[k] * n)
    # One pass back is enough: a rank that is cut here is a multiple of its right neighbour, which it still supports.
    for k in reversed(range(len(dims))):
        ranks[k] = min(ranks[k], dims[k] * ranks[k + 1])
    return tuple(ranks)
