"""Second moments of the rows at every core of a learned train, from one pass along it.

With the train in orthogonal gauge around a core, the Hessian of the objective is nearly the Kronecker product of three
second moments plus alpha: those of left environment, functions and right environment. Its inverse says how uncertain
the core, and so a prediction, is. Directions of a bond that the train does not use are left out: they are arbitrary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.engines.engine import Engine
from polytrain.learning.gauge import left_orthogonal
from polytrain.learning.kronecker import eigenbasis
from polytrain.learning.problem import FACTORS

# Directions of a bond whose singular value is at most this fraction of the largest are not used.
_UNUSED = 1e-6


class CoreMoments(NamedTuple):
    """Second moments at one core, diagonalised.

    ``left`` (a', a), ``middle`` (n, n) and ``right`` (b', b) turn environments of the train's own cores, and functions,
    to coordinates in which their second moments are diagonal, with entries ``left_sizes`` (a',), ``middle_sizes`` (n,)
    and ``right_sizes`` (b',). Products of these, plus alpha, are nearly the eigenvalues of the Hessian.
    """

    left: Array
    middle: Array
    right: Array
    left_sizes: Array
    middle_sizes: Array
    right_sizes: Array


def measure_moments(engine: Engine, cores: Sequence[Array]) -> tuple[CoreMoments, ...]:
    """Second moments at every core of a train; none for a train that is 0 everywhere, or not finite."""
    gauges = _find_gauges(cores)
    if gauges is None:
        return ()
    start, lefts, left_transforms, right_transforms = gauges
    moments = []
    engine.place(start)
    for k in range(len(cores)):
        facts: Any = engine.facts(FACTORS)
        sizes, (left, middle, right) = zip(*map(eigenbasis, (facts.left, facts.middle, facts.right)), strict=True)
        vectors = left.T @ left_transforms[k], middle.T, right.T @ right_transforms[k + 1]
        moments.append(CoreMoments(*map(np.ascontiguousarray, (*vectors, *sizes))))
        if k < len(cores) - 1:
            engine.move(lefts[k], to_right=True)
    return tuple(moments) if all(np.isfinite(array).all() for core in moments for array in core) else ()


def _find_gauges(cores: Sequence[Array]) -> tuple[list[Array], ...] | None:
    """Orthogonalise from both sides; the singular values between both say which directions are used.

    Returns the train without unused directions, right-orthogonal from the second core on; its left-orthogonal cores;
    and matrices that bring the train's own left, and right, environment at every bond to the orthogonal one.
    """
    # With l and r a train's own environments and p and q the orthogonal ones, l = before' p and r = behind q.
    lefts, before = left_orthogonal(cores)
    mirrored, factors = left_orthogonal([core.transpose() for core in reversed(cores)])
    one = np.ones((1, 1))
    start = [core.transpose() for core in reversed(mirrored)]
    behind = [one, *(factor.T for factor in reversed(factors))]
    froms, tos, left_transforms, right_transforms = [one], [one], [one], [one]
    for k in range(1, len(cores)):
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
        left_transforms.append((behind[k] @ outer.T / sizes).T)
        right_transforms.append(inner.T @ before[k] / sizes[:, None])
    froms, tos = [*froms, one], [*tos, one]
    start = [_transformed(core, tos[k], tos[k + 1]) for k, core in enumerate(start)]
    lefts = [_transformed(core, froms[k], froms[k + 1]) for k, core in enumerate(lefts[:-1])]
    return start, lefts, [*left_transforms, one], [*right_transforms, one]


def _transformed(core: Array, left: Array, right: Array) -> Array:
    """Return a core in other coordinates on both sides."""
    return np.ascontiguousarray(np.tensordot(np.tensordot(left.T, core, axes=1), right, axes=1))
