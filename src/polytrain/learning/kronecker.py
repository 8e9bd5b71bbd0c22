"""An approximate Hessian of a core problem: a Kronecker product of three small matrices, which is cheap to invert."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dsyevd

from polytrain.arrays import Array
from polytrain.learning.problem import Facts

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


def eigenbasis(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, at least 0, and eigenvectors of a positive semidefinite matrix."""
    values, vectors, failed = dsyevd(matrix)  # without NumPy's wrapper, which costs as much as the work
    if failed:
        raise LinAlgError("the eigenvalues of a matrix of second moments could not be found")
    return np.maximum(values, 0.0), vectors


def damped_spectrum(left: Array, middle: Array, right: Array, alpha: float) -> Array:
    """Products of three kinds of eigenvalues plus alpha, (a, n, b); all are positive."""
    spectrum = np.multiply.outer(left, np.multiply.outer(middle, right)) + alpha
    # Directions that no row has: keep the inverse bounded where alpha is zero.
    return np.maximum(spectrum, max(_EPS * float(spectrum.max()), _TINY))


class KroneckerHessian:
    """F1 x F2 x F3 + alpha, approximately the Hessian, diagonalised by three small eigendecompositions.

    ``eigenvectors`` holds those of left environment, function values and right environment, as columns, and
    ``eigenvalues`` has the shape of the core.
    """

    def __init__(self, facts: Facts, alpha: float) -> None:
        factors: tuple[Any, ...] = facts.left, facts.middle, facts.right
        self.eigenvectors: tuple[Array, ...]
        (left, middle, right), self.eigenvectors = zip(*map(eigenbasis, factors), strict=True)
        self.eigenvalues = damped_spectrum(left, middle, right, alpha)

    @cached_property
    def _rest(self) -> Array:
        """Eigenvectors of function values and right environment together: two products instead of three."""
        _, middle, right = self.eigenvectors
        size = len(middle) * len(right)
        outer: Array = np.multiply.outer(middle, right)
        return outer.transpose(0, 2, 1, 3).reshape(size, size)

    @cached_property
    def _flat(self) -> Array:
        return self.eigenvalues.reshape(len(self.eigenvalues), -1)

    def _to_eigenbasis(self, core: Array) -> Array:
        return self.eigenvectors[0].T @ core.reshape(self._flat.shape) @ self._rest

    def _from_eigenbasis(self, rotated: Array) -> Array:
        return self.eigenvectors[0] @ rotated @ self._rest.T

    def solve(self, core: Array) -> Array:
        """Apply the inverse."""
        return self._from_eigenbasis(self._to_eigenbasis(core) / self._flat).reshape(core.shape)

    def whiten(self, gradient: Array) -> Array:
        """Apply the transpose of ``color``; the result is a matrix of left rank times the rest."""
        return self._to_eigenbasis(gradient) / np.sqrt(self._flat)

    def color(self, white: Array) -> Array:
        """Coordinates in which the Hessian is nearly the identity, flat -> core, flat."""
        return self._from_eigenbasis(white.reshape(self._flat.shape) / np.sqrt(self._flat)).ravel()
