"""Where a train knows little: the Laplace approximation of its cores.

Near the least objective a core is nearly normally distributed, with the inverse of the Hessian as its covariance. The
functions of a row at a core are v = l (x) phi (x) r, so the variance of its score is v' H^-1 v, in units of the noise
and of the rows. The cores are taken to err independently of each other: their variances are summed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.moments import CoreMoments

__all__ = ["doubts"]

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


def doubts(
    cores: Sequence[NDArray], moments: Sequence[CoreMoments], alpha: float, values: Sequence[NDArray]
) -> NDArray:
    """The sum over all cores of v' H^-1 v for some rows, (N,); times 2 / rows it is a leverage.

    Parameters
    ----------
    cores : sequence of ndarray
        The train.
    moments : sequence of CoreMoments
        Those of its rows. Without any there is no doubt.
    alpha : float
        Regularisation that the train was learned with.
    values : sequence of ndarray of shape (n_k, N)
        Functions of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.learning.moments import CoreMoments
    >>> one = np.ones((1, 1)), np.ones(1)
    >>> moments = [CoreMoments(one[0], np.eye(2), one[0], one[1], np.array([1.0, 0.5]), one[1])]
    >>> doubts([np.zeros((1, 2, 1))], moments, 0.0, [np.array([[1.0, 1.0], [0.0, 3.0]])])
    array([ 1., 19.])
    """
    found = np.zeros(values[0].shape[1])
    if not moments:
        return found
    rights = [np.ones((1, len(found)))]
    for core, functions in zip(reversed(cores[1:]), reversed(values[1:]), strict=True):
        a, n, b = core.shape
        spread = (functions[:, None, :] * rights[-1]).reshape(n * b, -1)
        rights.append(core.reshape(a, n * b) @ spread)
    left = np.ones((1, len(found)))
    for core, at, functions, right in zip(cores, moments, values, reversed(rights), strict=True):
        found += _doubt(at, alpha, left, functions, right)
        a, n, b = core.shape
        left = core.reshape(a * n, b).T @ (left[:, None, :] * functions).reshape(a * n, -1)
    return found


def _doubt(at: CoreMoments, alpha: float, left: NDArray, functions: NDArray, right: NDArray) -> NDArray:
    """The part of one core, (N,)."""
    spectrum = np.multiply.outer(at.left_sizes, np.multiply.outer(at.middle_sizes, at.right_sizes)) + alpha
    # Directions that no row has: keep the inverse bounded where alpha is zero.
    spectrum = np.maximum(spectrum, max(_EPS * float(spectrum.max()), _TINY))
    squares = (np.square(turn @ own) for turn, own in ((at.left, left), (at.middle, functions), (at.right, right)))
    before, middle, behind = squares
    inner = (1.0 / spectrum).reshape(-1, len(behind)) @ behind
    inner = np.einsum("anN,nN->aN", inner.reshape(len(before), len(middle), -1), middle)
    return np.einsum("aN,aN->N", inner, before)
