"""An exact search for the largest entries of a train, without forming its tensor.

A prefix ``(i_1, ..., i_k)`` of an entry has a row vector ``p`` of length r_k, a suffix a column vector ``s``, and the
entry is ``p s``. For every bond we compute a *cover*: a matrix ``M`` such that ``(p s)^2 <= p M p'`` for every suffix.
So ``sqrt(p M p')`` bounds all entries below a prefix, and prefixes whose bound is below the k-th largest entry found so
far are dropped.

Covers come from the right: the last one is 1. If ``M`` covers the suffixes after feature k, then ``G(i) M G(i)'``
covers those that begin with index i at feature k, and any matrix above all of these (in the order of symmetric
matrices) covers all. The sum over i is one; it gives the Frobenius norm and is far too large for a dense tensor. The
matrix of smallest trace above two matrices A and B is ``B + (A - B)_+``, where ``_+`` keeps the positive eigenvalues.
If the cores before the bond are left-orthogonal, the trace is the sum of the squared bounds over all prefixes, so in
that gauge we want the smallest trace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.tensor.decompose import orthogonalize_cores

# Prefixes kept per level in the first walk, whose only task is to find good entries.
_FIRST_WIDTH = 4096

# Added to every cover, relative to its trace: far above the rounding errors of one step.
_COVER_SLACK = 1e-13


def largest_entries(cores: Sequence[NDArray], k: int, max_nodes: int) -> tuple[NDArray, bool]:
    """Find the k entries of largest magnitude.

    At most ``max_nodes`` prefixes are followed at once. Entries at the level of rounding, relative to the norm of the
    tensor, are not listed.

    Shapes: -> index (K, d) with K <= k, largest entry first, and whether these are proven to be the largest.
    """
    gauge, _ = orthogonalize_cores(cores, len(cores) - 1)
    norm = float(np.linalg.norm(gauge[-1]))
    rounding = 4 * len(cores) * float(np.finfo(np.float64).eps) * norm
    index = np.zeros((0, len(cores)), dtype=np.intp)
    if norm == 0:
        return index, True
    covers = suffix_covers(gauge)
    threshold, exact = rounding, False
    for width in (min(max(_FIRST_WIDTH, 4 * k), max_nodes), max_nodes):
        reached, dropped = _walk(gauge, covers, threshold, width, k)
        # A walk that is cut short may miss what the one before it had found.
        index = np.unique(np.concatenate((index, reached)), axis=0)
        values = np.abs(entries_at(gauge, index))
        best = np.argsort(-values, kind="stable")[:k]
        index = index[best]
        least = float(values[best[-1]]) if len(best) == k else rounding
        exact = dropped <= least
        if exact:
            break
        threshold = max(least * (1 - 1e-9), rounding)
    # Sorted by the entries of the cores as they were given, not by those of the gauge, which differ by rounding.
    return index[np.argsort(-np.abs(entries_at(cores, index)), kind="stable")], exact


def suffix_covers(cores: Sequence[NDArray]) -> list[NDArray]:
    """Matrices M_k, k = 0 ... d, with (p s)^2 <= p M_k p' for all suffixes s after feature k.

    Shapes: M_k is (r_k, r_k).
    """
    covers = [np.ones((1, 1))]
    for core in reversed(cores):
        parts = [matrix @ covers[-1] @ matrix.T for matrix in core.transpose(1, 0, 2)]
        cover, *others = sorted(parts, key=np.trace, reverse=True)
        for part in others:
            eigenvalues, vectors = np.linalg.eigh((part - cover + (part - cover).T) / 2)
            cover = cover + (vectors * np.maximum(eigenvalues, 0)) @ vectors.T
        covers.append(cover + _COVER_SLACK * np.trace(cover) * np.eye(len(cover)))
    return covers[::-1]


def _walk(
    cores: Sequence[NDArray], covers: Sequence[NDArray], threshold: float, width: int, k: int
) -> tuple[NDArray, float]:
    """Follow prefixes whose bound is at least ``threshold``, the ``width`` with the largest bounds on every level.

    Returns the index (K, d) of the k largest entries that were reached, and the largest bound among the prefixes that
    were dropped for lack of width: no entry that was missed is larger than that or than ``threshold``.
    """
    vectors = np.ones((1, 1))
    steps: list[tuple[NDArray, NDArray]] = []
    dropped = 0.0
    for core, cover in zip(cores, covers[1:], strict=True):
        children = np.tensordot(vectors, core, axes=1)
        bounds = np.sqrt(np.einsum("pib,pib->pi", children @ cover, children).clip(min=0))
        parent, choice = np.nonzero(bounds >= threshold)
        if len(parent) > width:
            alive = bounds[parent, choice]
            order = np.argpartition(-alive, width)
            dropped = max(dropped, float(alive[order[width]]))
            parent, choice = parent[order[:width]], choice[order[:width]]
        vectors = children[parent, choice]
        steps.append((parent, choice))
    row = np.argsort(-np.abs(vectors[:, 0]), kind="stable")[:k]
    index = np.empty((len(row), len(cores)), dtype=np.intp)
    for position, (parent, choice) in reversed(list(enumerate(steps))):
        index[:, position] = choice[row]
        row = parent[row]
    return index, dropped


def entries_at(cores: Sequence[NDArray], index: NDArray) -> NDArray:
    """Entries of the tensor at the rows of index (K, d) -> (K,)."""
    vectors = np.ones((len(index), 1))
    for core, choice in zip(cores, index.T, strict=True):
        vectors = np.einsum("ka,akb->kb", vectors, core[:, choice])
    return vectors[:, 0]
