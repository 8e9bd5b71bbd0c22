"""What the rows know about every core of a learned train: second moments, from one pass along it.

At a core, with the train in orthogonal gauge around it, the objective is quadratic, and its Hessian is nearly the
Kronecker product of three second moments plus alpha: those of left environment, functions and right environment. Its
inverse says how far the core may move without a notable rise, and so how uncertain a prediction is.

Conventions
-----------
Environments of a train come in the coordinates of its own cores, whatever their gauge: ``left`` and ``right`` turn
them. Directions of a bond that the train does not use are left out: where they point is arbitrary.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.engines.engine import Engine
from polytrain.learning.problem import FACTORS

__all__ = ["CoreMoments", "measure_moments"]

# Directions of a bond that carry no more than this part of the strongest are not used.
_UNUSED = 1e-6
# Moments of this many different rows are exact enough; with very many rows, this part of them is used.
_ENOUGH_ROWS, _LEAST_SHARE = 1 << 15, 0.25


class CoreMoments(NamedTuple):
    """Second moments at one core, diagonalised: all that is needed of its Hessian.

    Attributes
    ----------
    left, middle, right : ndarray of shape (a', a), (n, n) and (b', b)
        What turns environments and functions to coordinates in which their second moments are diagonal.
    left_sizes, middle_sizes, right_sizes : ndarray of shape (a',), (n,) and (b',)
        Those diagonals. Their products, plus alpha, are nearly the eigenvalues of the Hessian.
    """

    left: NDArray
    middle: NDArray
    right: NDArray
    left_sizes: NDArray
    middle_sizes: NDArray
    right_sizes: NDArray


class _Gauges(NamedTuple):
    """A train without unused directions, in all of its orthogonal gauges.

    Attributes
    ----------
    centres, lefts, rights : lists of ndarray
        Every core as it is when it is the one that is not orthogonal, left-orthogonal and right-orthogonal.
    left_turns, right_turns : lists of ndarray
        For every bond, the turn of the train's own left, and right, environment to the orthogonal one.
    """

    centres: list[NDArray]
    lefts: list[NDArray]
    rights: list[NDArray]
    left_turns: list[NDArray]
    right_turns: list[NDArray]


def measure_moments(engine: Engine, cores: Sequence[NDArray], seed: int) -> tuple[CoreMoments, ...]:
    """Second moments at every core of a train; none of a train that is 0 everywhere, or not finite."""
    gauges = _find_gauges(cores)
    if gauges is None:
        return ()
    share = 1.0
    if engine.n_distinct > _ENOUGH_ROWS:
        share = max(_ENOUGH_ROWS / engine.n_distinct, _LEAST_SHARE)
    found = []
    with nullcontext(engine) if share == 1.0 else engine.sample(share, seed) as rows:
        rows.place([gauges.centres[0], *gauges.rights[1:]])
        for k in range(len(cores)):
            facts: Any = rows.facts(FACTORS)
            (left_sizes, left), (sizes, middle), (right_sizes, right) = (
                np.linalg.eigh(moment) for moment in (facts.left, facts.middle, facts.right)
            )
            turns = left.T @ gauges.left_turns[k], middle.T, right.T @ gauges.right_turns[k + 1]
            diagonals = (np.maximum(values, 0.0) for values in (left_sizes, sizes, right_sizes))
            found.append(CoreMoments(*(np.ascontiguousarray(array) for array in (*turns, *diagonals))))
            if k < len(cores) - 1:
                rows.move_right(gauges.lefts[k])
    return tuple(found) if all(np.isfinite(array).all() for core in found for array in core) else ()


def _find_gauges(cores: Sequence[NDArray]) -> _Gauges | None:
    """Orthogonalise from both sides; the singular values between both say which directions are used."""
    n_cores = len(cores)
    # With l and r a train's own environments and p and q the orthogonal ones, l = before' p and r = behind q.
    before, lefts = [np.ones((1, 1))], []
    for core in cores:
        a, n, b = core.shape
        spread = np.tensordot(before[-1], core, axes=1)
        basis, factor = np.linalg.qr(spread.reshape(len(before[-1]) * n, b))
        lefts.append(basis.reshape(len(before[-1]), n, -1))
        before.append(factor)
    behind, rights = [np.ones((1, 1))], []
    for core in reversed(cores):
        a, n, b = core.shape
        spread = np.tensordot(core, behind[-1], axes=1)
        basis, factor = np.linalg.qr(spread.reshape(a, -1).T)
        rights.append(np.ascontiguousarray(basis.T).reshape(-1, n, behind[-1].shape[1]))
        behind.append(np.ascontiguousarray(factor.T))
    behind.reverse()
    rights.reverse()
    one = np.ones((1, 1))
    froms, tos, left_turns, right_turns = [one], [one], [one], [one]
    for k in range(1, n_cores):
        between = before[k] @ behind[k]
        if not np.isfinite(between).all():
            return None
        inner, sizes, outer = np.linalg.svd(between)
        used = int(np.sum(sizes > _UNUSED * sizes[0]))
        if not used:
            return None
        inner, sizes, outer = inner[:, :used], sizes[:used], outer[:used]
        froms.append(inner)
        tos.append(outer.T)
        left_turns.append((behind[k] @ outer.T / sizes).T)
        right_turns.append(inner.T @ before[k] / sizes[:, None])
    froms, tos = [*froms, one], [*tos, one]
    found = _Gauges([], [], [], [*left_turns, one], [*right_turns, one])
    for k, core in enumerate(cores):
        centre = np.tensordot(np.tensordot(before[k], core, axes=1), behind[k + 1], axes=1)
        found.centres.append(_turned(centre, froms[k], tos[k + 1]))
        found.lefts.append(_turned(lefts[k], froms[k], froms[k + 1]) if k < n_cores - 1 else lefts[k])
        found.rights.append(_turned(rights[k], tos[k], tos[k + 1]) if k else rights[k])
    return found


def _turned(core: NDArray, left: NDArray, right: NDArray) -> NDArray:
    """A core in other coordinates on both sides."""
    return np.ascontiguousarray(np.tensordot(np.tensordot(left.T, core, axes=1), right, axes=1))
