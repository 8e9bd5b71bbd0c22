"""Orthogonal cores, TT-SVD and rounding, on plain lists of cores.

Conventions
-----------
Core ``k`` has shape (r_{k-1}, n_k, r_k). One core at a time holds everything that is not orthogonal; it is called the
centre. The centre is kept near 1 and its power of two apart, because the product of the norms of a few hundred cores
can leave the range of a float on the way to a result that does not. Scaling by a power of two is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from polytrain.arrays import Array


def split_exponent(array: Array) -> tuple[Array, int]:
    """Write ``array`` as ``scaled * 2**exponent`` with the largest magnitude of ``scaled`` in [0.5, 1)."""
    largest = np.max(np.abs(array))
    if not 0 < largest < np.inf:
        return array, 0
    exponent = int(np.frexp(largest)[1])
    return np.ldexp(array, -exponent), exponent


def scale_exponent(scaled: Array, exponent: int) -> Array:
    """Undo ``split_exponent``."""
    # The exponent of a long product may not fit the C integer of ldexp; 10**5 is far beyond what any float holds.
    return np.ldexp(scaled, max(-(10**5), min(10**5, exponent)))


def orthogonalize_cores(cores: Sequence[Array], position: int) -> tuple[list[Array], int]:
    """Move everything that is not orthogonal into the core at ``position``.

    Returns the new cores and the power of two that was taken out of the centre. A bond that is wider than the core
    beside it allows becomes narrower.
    """
    half, exponent = _orthogonalize_left(cores, position)
    # Read from its end, a train has its cores transposed.
    mirrored, step = _orthogonalize_left([core.T for core in reversed(half)], len(cores) - 1 - position)
    new = [core.T for core in reversed(mirrored)]
    new[position], last_step = split_exponent(new[position])
    return new, exponent + step + last_step


def _orthogonalize_left(cores: Sequence[Array], n_cores: int) -> tuple[list[Array], int]:
    """Make the first cores left-orthogonal; returns the cores and the power of two that was taken out."""
    new, exponent = list(cores), 0
    for k in range(n_cores):
        orthogonal, rest = np.linalg.qr(new[k].reshape(-1, new[k].shape[2]))
        new[k] = orthogonal.reshape(*new[k].shape[:2], -1)
        rest, step = split_exponent(rest)
        exponent += step
        new[k + 1] = np.tensordot(rest, new[k + 1], axes=1)
    return new, exponent


def _truncated_svd(matrix: Array, threshold: float, max_rank: int | None) -> tuple[Array, Array]:
    """Split ``matrix`` into an orthonormal factor and the rest, with as small a rank as the threshold allows.

    The dropped singular values have a norm of at most ``threshold``, unless ``max_rank`` demands more. Those at the
    level of rounding are always dropped; one is always kept.

    Shapes: matrix (m, n) -> (m, rank), (rank, n).
    """
    try:
        left, singular, right = scipy.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        # The divide-and-conquer driver is several times faster, and on rare matrices does not converge.
        left, singular, right = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
    tails = np.sqrt(np.cumsum(singular[::-1] ** 2))[::-1]
    rounding = 4 * max(matrix.shape) * np.finfo(matrix.dtype).eps * singular[0]
    rank = int(min(np.count_nonzero(tails > threshold), np.count_nonzero(singular > rounding)))
    rank = max(1, rank if max_rank is None else min(rank, max_rank))
    return left[:, :rank], singular[:rank, None] * right[:rank]


def tt_svd(tensor: Array, tol: float, max_rank: int | None) -> list[Array]:
    """Decompose a dense tensor: one truncated SVD for each inner bond, cores left-orthogonal except the last."""
    dims = tensor.shape
    rest, exponent = split_exponent(tensor.reshape(1, -1))
    threshold = _bond_threshold(rest, tol, len(dims))
    cores = []
    for n in dims[:-1]:
        left_rank = len(rest)
        left, rest = _truncated_svd(rest.reshape(left_rank * n, -1), threshold, max_rank)
        cores.append(left.reshape(left_rank, n, -1))
    cores.append(scale_exponent(rest[:, :, None], exponent))
    return cores


def round_cores(cores: Sequence[Array], tol: float, max_rank: int | None) -> list[Array]:
    """Cut the ranks of a train: the errors of TT-SVD without forming the tensor, cores left-orthogonal after it."""
    new, exponent = orthogonalize_cores(cores, 0)
    threshold = _bond_threshold(new[0], tol, len(new))
    for k in range(len(new) - 1):
        left, rest = _truncated_svd(new[k].reshape(-1, new[k].shape[2]), threshold, max_rank)
        new[k] = left.reshape(*new[k].shape[:2], -1)
        new[k + 1] = np.tensordot(rest, new[k + 1], axes=1)
    new[-1] = scale_exponent(new[-1], exponent)
    return new


def _bond_threshold(centre: Array, tol: float, order: int) -> float:
    """Share of one bond in a relative error of ``tol``: the errors of the bonds are orthogonal, so squares add."""
    return tol * float(np.linalg.norm(centre)) / math.sqrt(max(order - 1, 1))
