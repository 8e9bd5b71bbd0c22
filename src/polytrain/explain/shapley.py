"""Shapley values of a train's value: what every player brings, averaged over all coalitions of the others.

A player is a column: one core of the train, or a few that stand side by side. Where it is present, its cores are taken
at the row's value, as a matrix ``P``; where it is absent, at their mean ``A``. A coalition's worth is the product of
these matrices. The Shapley value is the mean of what a player adds, over all sizes of coalitions and all coalitions of
a size. It is also an integral: let every other player be present with probability t, and let t be uniform on [0, 1].
Then all sizes are equally likely, and so are coalitions of one size (Owen's multilinear extension).

Being linear in each player, the mean over coalitions for one t is again a product of matrices, ``A + t (P - A)``. It is
a polynomial in t, whose degree is less than the number of players, so that Gauss-Legendre quadrature with half as many
nodes is exact. All weights are positive and no binomials appear: nothing overflows or cancels, however many players.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["rows_at_once", "shapley_values"]

# Numbers that are held at once: few enough to stay near the processor.
_BLOCK_NUMBERS = 1 << 20


def rows_at_once(shapes: Sequence[tuple[int, int]]) -> int:
    """Rows whose matrices and left parts fit into a block; ``shapes`` are those of all players' matrices."""
    matrices = sum(left * right for left, right in shapes)
    lefts = _n_nodes(len(shapes)) * sum(left for left, _ in shapes)
    return max(1, _BLOCK_NUMBERS // max(matrices, lefts))


def shapley_values(present: Sequence[NDArray], absent: Sequence[NDArray]) -> NDArray:
    """Shapley values (N, d) of all players, which sum to the product of the present matrices minus the absent ones'.

    Shapes: present (N, r_{k-1}, r_k) each, at the rows; absent (r_{k-1}, r_k) each, the mean matrices.

    >>> present, absent = [np.full((1, 1, 1), x) for x in (2.0, 3.0)], [np.ones((1, 1))] * 2
    >>> shapley_values(present, absent)
    array([[2., 3.]])
    """
    differences = [matrices - mean for matrices, mean in zip(present, absent, strict=True)]
    nodes, weights = _quadrature(_n_nodes(len(present)))
    found = np.zeros((len(present[0]), len(present)))
    per_node = sum(matrices.shape[0] * matrices.shape[1] for matrices in differences)
    step = max(1, 2 * _BLOCK_NUMBERS // per_node)
    for start in range(0, len(nodes), step):
        some = slice(start, start + step)
        found += _values_at(differences, absent, nodes[some], weights[some])
    return found


def _values_at(differences: list[NDArray], absent: Sequence[NDArray], nodes: NDArray, weights: NDArray) -> NDArray:
    """Sum over some nodes of weight times what every player adds there, (N, d).

    Left and right parts have shape (N, nodes, rank).
    """
    n_rows, probability = len(differences[0]), nodes[:, None]
    lefts = [np.ones((n_rows, len(nodes), 1))]
    for difference, mean in zip(differences[:-1], absent[:-1], strict=True):
        left = lefts[-1]
        lefts.append(_times(left, mean) + probability * (left @ difference))
    found = np.empty((n_rows, len(differences)))
    right = np.ones((n_rows, len(nodes), 1))
    for k in reversed(range(len(differences))):
        added = right @ differences[k].transpose(0, 2, 1)
        found[:, k] = (lefts[k] * added).sum(axis=2) @ weights
        if k:
            right = _times(right, absent[k].T) + probability * added
    return found


def _times(parts: NDArray, matrix: NDArray) -> NDArray:
    """One product with the same matrix for all rows and nodes, rather than one for each row."""
    n_rows, n_nodes, rank = parts.shape
    return (parts.reshape(n_rows * n_nodes, rank) @ matrix).reshape(n_rows, n_nodes, matrix.shape[1])


def _n_nodes(n_players: int) -> int:
    """Nodes that integrate polynomials of degree n_players - 1 exactly."""
    return (n_players + 1) // 2


@cache
def _quadrature(n_nodes: int) -> tuple[NDArray, NDArray]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (nodes + 1) / 2, weights / 2
