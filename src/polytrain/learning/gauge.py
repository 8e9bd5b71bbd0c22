"""Orthogonal gauges: the part of sweeping that touches cores only, never rows.

Cores are float64 here whatever the compute dtype is. A train whose cores right of k are right-orthogonal and left of k
left-orthogonal has <A, A> = |G_k|^2, so Tikhonov regularisation is a plain ridge on the core that is being solved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dgeqrf, dorgqr

from polytrain.arrays import Array

# Directions this much weaker than the strongest carry rounding noise rather than information.
_NOISE = 1e-14


def orthonormal_factor(matrix: Array, n_columns: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Factor ``matrix = Q @ R`` with exactly ``n_columns`` orthonormal columns in Q.

    Columns that the matrix does not determine (it is rank deficient, or has fewer columns than asked for) are filled
    with random orthonormal directions that R multiplies by zero. A plain QR would fill them with normalised rounding
    noise, and results would then depend on the order of the rows.

    Shapes: matrix (m, c) with m >= n_columns >= c -> Q (m, n_columns), R (n_columns, c).
    """
    basis, factor = _positive_qr(matrix)
    sizes = np.diagonal(factor)
    if len(sizes) < matrix.shape[1] or not (sizes > _NOISE * np.linalg.norm(matrix)).all():
        basis = _gram_schmidt(matrix)
        factor = basis.T @ matrix
    rank = basis.shape[1]
    if rank < n_columns:
        factor = np.vstack([factor, np.zeros((n_columns - rank, matrix.shape[1]))])
        fill = rng.standard_normal((len(matrix), n_columns - rank))
        for _ in range(2):  # twice is enough for orthogonality to rounding
            fill -= basis @ (basis.T @ fill)
            fill = _positive_qr(fill)[0]
        basis = np.hstack([basis, fill])
    return basis, factor


def _positive_qr(matrix: Array) -> tuple[Array, Array]:
    """QR factorisation with a positive diagonal in R.

    It is unique, hence continuous in the matrix. Signs, or the order of pivots, could flip on rounding; and random
    directions are drawn in the coordinates that Q defines.
    """
    n_columns = min(matrix.shape)
    # LAPACK without the wrapper: for such small matrices that halves the time.
    reflectors, scales, _, _ = dgeqrf(matrix)
    basis, _, _ = dorgqr(reflectors[:, :n_columns], scales)
    basis *= np.where(np.diagonal(reflectors) < 0, -1.0, 1.0)
    return basis, basis.T @ matrix


def _gram_schmidt(matrix: Array) -> Array:
    """Orthonormal basis of the columns in their order, leaving out those that bring nothing but rounding noise."""
    floor = _NOISE * np.linalg.norm(matrix)
    basis = np.zeros((len(matrix), 0))
    for column in matrix.T:
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        size = np.linalg.norm(rest)
        if size > floor:
            basis = np.hstack([basis, rest[:, None] / size])
    return basis


def shift_right(core: Array, following: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Make ``core`` left-orthogonal and move its remainder into the following core."""
    a, n, b = core.shape
    basis, factor = orthonormal_factor(core.reshape(a * n, b), b, rng)
    absorbed = factor @ following.reshape(b, -1)
    return basis.reshape(a, n, b), absorbed.reshape(following.shape)


def shift_left(core: Array, preceding: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Make ``core`` right-orthogonal and move its remainder into the preceding core."""
    a, n, b = core.shape
    basis, factor = orthonormal_factor(core.reshape(a, n * b).T, a, rng)
    return np.ascontiguousarray(basis.T).reshape(a, n, b), preceding @ factor.T


def left_orthogonal(cores: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Make all cores but the last left-orthogonal; return them, and matrices from the old right bonds to the new.

    The left environment of the old cores at bond k is the transpose of matrix k times that of the new ones.
    """
    cores, factors = list(cores), [np.ones((1, 1))]
    for k in range(len(cores) - 1):
        a, n, b = cores[k].shape
        basis, factor = _positive_qr(cores[k].reshape(a * n, b))
        cores[k] = basis.reshape(a, n, -1)
        cores[k + 1] = np.tensordot(factor, cores[k + 1], axes=1)
        factors.append(factor)
    return cores, factors


def fit_ranks(cores: Sequence[Array], ranks: Sequence[int], rng: np.random.Generator) -> list[Array]:
    """Write a train with the given ranks, right-orthogonal from the second core on.

    Where a bond is wider than asked for it is cut (truncated SVD); where it is narrower it is filled with random
    orthonormal directions that the train does not use yet. Filling changes nothing about the represented tensor, but
    it gives the next core update something to work with: a slot of zeros would stay zero for ever.
    """
    # Left-orthogonal first: then the weights of the channels behind each core are those of the tensor itself, whatever
    # the gauge was, so that the cuts below are optimal and only what carries nothing is taken for noise.
    cores, _ = left_orthogonal([np.array(core, dtype=np.float64) for core in cores])
    for k in range(len(cores) - 1, 0, -1):
        a, n, b = cores[k].shape
        matrix = cores[k].reshape(a, n * b)
        if a > ranks[k]:
            directions, weights, rows = np.linalg.svd(matrix, full_matrices=False)
            cores[k - 1] = cores[k - 1] @ directions[:, : ranks[k]]
            matrix = weights[: ranks[k], None] * rows[: ranks[k]]
        basis, factor = orthonormal_factor(matrix.T, ranks[k], rng)
        cores[k] = np.ascontiguousarray(basis.T).reshape(ranks[k], n, b)
        cores[k - 1] = cores[k - 1] @ factor.T
    return cores
