"""Errors of the kernel problem on rows that it has not learned from, without learning it again.

With H the inverse of the kernel plus ridge / w_j on its diagonal, the leave-one-out residual of row j is
(H t)_j / H_jj. Written with leverages, small residuals would be differences of large numbers.

Conventions
-----------
Those of `polytrain.learning.dual`: the ridge is alpha / 2. Of a kernel, only what is on and above the diagonal is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dtrtri

__all__ = ["LeftOut", "leave_one_out"]

_EPS = float(np.finfo(np.float64).eps)
# A ridge of this many roundings of every row and column stands out from them.
_CLEAR = 16.0
# Triangles of at most this many rows are left to LAPACK.
_SMALL = 64


def leave_one_out(kernel: NDArray, targets: NDArray, weights: NDArray, alphas: Sequence[float]) -> Iterator[NDArray]:
    """Yield the leave-one-out residuals of the kernel problem, (N, q), for every alpha.

    Shapes: kernel (N, N), targets (N, q). One eigendecomposition serves all alphas, and ridges of any size. It is that
    of B, the kernel between rows that are multiplied by the roots of their weights: H is ridge / (B + ridge), up to
    factors of rows and columns that cancel.
    """
    root = np.sqrt(weights)
    scaled = root[:, None] * kernel * root
    # SciPy 1.13 makes too little room for evd of one row.
    sizes, vectors = eigh(scaled.T, driver="evd" if len(scaled) > 1 else "ev", overwrite_a=True, check_finite=False)
    sizes = np.maximum(sizes, 0.0)
    inner, squares = vectors.T @ (root[:, None] * targets), np.square(vectors)
    least = _EPS * float(sizes.sum())
    for alpha in alphas:
        ridge = max(alpha / 2.0, least)
        kept = ridge / (sizes + ridge)
        yield (vectors @ (kept[:, None] * inner)) / ((squares @ kept) * root)[:, None]


class LeftOut:
    """The same for one alpha after the other, each from a Cholesky factor: a tenth of an eigendecomposition.

    Parameters
    ----------
    kernel : ndarray of shape (N, N)
    targets : ndarray of shape (N, q)
    weights : ndarray of shape (N,)
    work : ndarray of shape (N, N), optional
        Room to work in.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.learning.leave_one_out import LeftOut
    >>> left_out = LeftOut(np.ones((3, 3)), np.array([[1.0], [2.0], [6.0]]), np.full(3, 1 / 3))
    >>> left_out(1e-6).round(3).ravel().tolist()  # the mean of the two others is predicted
    [-3.0, -1.5, 4.5]
    """

    def __init__(self, kernel: NDArray, targets: NDArray, weights: NDArray, work: NDArray | None = None) -> None:
        self._kernel, self._targets, self._weights = kernel, targets, weights
        self._work = np.empty_like(kernel, order="C") if work is None else work
        self._least = _CLEAR * len(kernel) * _EPS * float(weights @ np.diagonal(kernel))

    def __call__(self, alpha: float) -> NDArray:
        """Residuals, (N, q). Where rounding might spoil them it raises an error: `leave_one_out` knows better."""
        ridge = alpha / 2.0
        if not ridge >= self._least:
            raise np.linalg.LinAlgError(f"alpha={alpha} is too small for a kernel of this size")
        np.copyto(self._work, self._kernel)
        self._work.flat[:: len(self._work) + 1] += ridge / self._weights
        factor, failed = dpotrf(self._work.T, lower=True, overwrite_a=True)
        if failed:
            raise np.linalg.LinAlgError("the kernel is not positive definite")
        _invert(factor)
        # H is the product of the inverse's transpose with the inverse.
        diagonal = np.einsum("ij,ij->i", factor.T, factor.T)
        return (factor.T @ (factor @ self._targets)) / diagonal[:, None]


def _invert(lower: NDArray) -> NDArray:
    """Invert a lower triangle in its place.

    By halves, since most of it then are products of large matrices: twice as fast as LAPACK's own.
    """
    n_rows = len(lower)
    if n_rows <= _SMALL:
        lower[:] = dtrtri(lower, lower=True)[0]
        return lower
    half = n_rows // 2
    first, last = (_invert(part.copy(order="F")) for part in (lower[:half, :half], lower[half:, half:]))
    between = dtrmm(-1.0, first, lower[half:, :half], side=1, lower=True)
    lower[half:, :half] = dtrmm(1.0, last, between, lower=True, overwrite_b=True)
    lower[:half, :half], lower[half:, half:] = first, last
    return lower
