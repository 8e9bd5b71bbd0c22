"""Functions of a column that suit its own distribution: the leading eigenfunctions of a kernel.

A kernel on the column's values defines which functions are likely: those with a large variance. Centred and weighed
by how often each value occurs, its eigenfunctions are uncorrelated over the rows, and their eigenvalues are the
variances. So main effects, interactions and Sobol indices are sums of squares of the cores, up to these sizes.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from polytrain.arrays import FloatArray

__all__ = ["damped_legendre", "eigenfunctions", "gauss_kernel", "spline_kernel"]

#: Functions are kept until they have the part VARIANCE of the variance, but at most MOST_FUNCTIONS.
VARIANCE, MOST_FUNCTIONS = 0.995, 64
# Length scale of the Gaussian kernel on [0, 1].
_GAUSS_WIDTH = 0.25
_ROUNDING = 1e-12
# Largest degree of damped polynomials.
_MOST_DEGREE = 8


def spline_kernel(u: FloatArray) -> FloatArray:
    """First-order Sobolev kernel on [0, 1]: functions with a square integrable slope, which may bend sharply."""
    distance = np.abs(u[:, None] - u)
    return np.outer(u - 0.5, u - 0.5) + (distance * (distance - 1.0) + 1.0 / 6.0) / 2.0


def gauss_kernel(u: FloatArray) -> FloatArray:
    """Gaussian kernel on [0, 1]: very smooth functions."""
    return np.exp(-0.5 * np.square((u[:, None] - u) / _GAUSS_WIDTH))


def eigenfunctions(
    kernel: FloatArray, weights: FloatArray, variance_kept: float = VARIANCE, most: int = MOST_FUNCTIONS
) -> FloatArray:
    """Leading eigenfunctions of a centred kernel, of mean 0 and with their variance, which sums to nearly 1.

    Shapes: kernel (K, K), weights (K,) that sum to 1 -> (n, K) with n >= 1; one function that is 0 everywhere, if the
    kernel knows no other.
    """
    means = kernel @ weights
    centred = kernel - means[:, None] - means + weights @ means
    variance = float(weights @ np.diagonal(centred))
    if not variance > _ROUNDING * float(np.abs(kernel).max(initial=0.0)):
        return np.zeros((1, len(weights)))
    centred /= variance
    root = np.sqrt(weights)
    count = min(most, len(weights))
    sizes, vectors = eigh(root[:, None] * centred * root, subset_by_index=(len(weights) - count, len(weights) - 1))
    sizes, vectors = sizes[::-1], vectors[:, ::-1]
    kept = 1 + int(np.searchsorted(np.cumsum(sizes), variance_kept))
    kept = min(kept, max(1, int(np.sum(sizes > _ROUNDING))))
    # Through the kernel, so that values without weight have functions too.
    functions = (centred @ (root[:, None] * vectors[:, :kept])).T / np.sqrt(sizes[:kept, None])
    # Eigenvectors are known up to their sign: let all be positive at the largest value.
    return functions * np.where(functions[:, -1:] < 0, -1.0, 1.0)


def damped_legendre(u: FloatArray, weights: FloatArray, damping: float) -> FloatArray:
    """Legendre polynomials of 2 u - 1 of size 1 on [0, 1], the i-th times ``damping ** i``, centred by the weights.

    Shapes: u and weights (K,) -> (n, K) with n between 1 and 8, and less than K if that allows it.
    """
    degrees = np.arange(1, 1 + max(1, min(_MOST_DEGREE, len(u) - 1)))
    functions = np.polynomial.legendre.legvander(2.0 * u - 1.0, degrees[-1]).T[1:]
    functions *= (damping**degrees * np.sqrt(2.0 * degrees + 1.0))[:, None]
    return functions - (functions @ weights)[:, None]
