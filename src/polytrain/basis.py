"""One feature -> a small vector of polynomial values, and the rule for products of two of them.

Conventions
-----------
A basis of size ``n`` spans the polynomials of degree below ``n``. Rows are the last axis: ``values`` turns ``(N,)``
into ``(n, N)``. Every basis starts with the constant 1 and then x itself, so that a linear model reads the same in all
of them. The product of two basis functions is a combination of the first ``2n - 1`` functions of the same family;
``product_table`` holds the coefficients, which is what lets a core problem be assembled from few moments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev, legendre, polynomial

from polytrain.arrays import Array

__all__ = ["BASES", "Basis", "ChebyshevBasis", "LegendreBasis", "PowerBasis", "get_basis"]


class Basis(ABC):
    """A family of polynomials, one of each degree, given by its three-term recurrence.

    A new family states ``name``, ``recurrence``, its product and its conversion to powers; everything else follows.
    """

    name: str

    @abstractmethod
    def recurrence(self, degree: int) -> tuple[float, float]:
        """Return ``(a, b)`` with ``phi[degree](x) = a * x * phi[degree - 1](x) - b * phi[degree - 2](x)``."""

    @abstractmethod
    def _to_power(self, coefficients: Array) -> Array:
        """Coefficients of one polynomial in this family -> its coefficients of powers."""

    @abstractmethod
    def _multiply(self, one: Array, other: Array) -> Array:
        """Product of two polynomials given by their coefficients in this family."""

    def values(self, x: Array, n: int, out: Array | None = None) -> Array:
        """Evaluate the first ``n`` functions.

        Parameters
        ----------
        x : ndarray of shape (N,)
            One feature.
        n : int
            Number of basis functions, degree + 1.
        out : ndarray of shape (n, N), optional
            Where to write the values.

        Returns
        -------
        ndarray of shape (n, N)
            Row ``i`` holds function ``i`` at every ``x``.

        Examples
        --------
        >>> from polytrain.basis import get_basis
        >>> get_basis("power").values([2.0, 3.0], 3)
        array([[1., 1.],
               [2., 3.],
               [4., 9.]])
        """
        x = np.asarray(x)
        if out is None:
            out = np.empty((n, *x.shape), dtype=np.result_type(x.dtype, np.float32))
        out[0] = 1
        if n > 1:
            out[1] = x
        for degree in range(2, n):
            a, b = self.recurrence(degree)
            np.multiply(out[degree - 1], x, out=out[degree])
            if a != 1:
                out[degree] *= a
            if b != 0:
                out[degree] -= b * out[degree - 2]
        return out

    @lru_cache(maxsize=64)  # noqa: B019  the instances are module constants
    def product_table(self, n: int) -> Array:
        """Return ``T`` of shape (n, n, 2n - 1) with ``phi_i phi_j = sum over e of T[i, j, e] phi_e``."""
        table = np.zeros((n, n, 2 * n - 1))
        units = np.eye(n)
        for i in range(n):
            for j in range(n):
                coefficients = self._multiply(units[i, : i + 1], units[j, : j + 1])
                table[i, j, : len(coefficients)] = coefficients
        table.setflags(write=False)
        return table

    @lru_cache(maxsize=64)  # noqa: B019
    def to_power_matrix(self, n: int) -> Array:
        """Return ``M`` of shape (n, n): row ``i`` holds function ``i`` as coefficients of 1, x, x^2, ..."""
        matrix = np.zeros((n, n))
        for i, unit in enumerate(np.eye(n)):
            coefficients = self._to_power(unit)
            matrix[i, : len(coefficients)] = coefficients
        matrix.setflags(write=False)
        return matrix

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PowerBasis(Basis):
    """1, x, x^2, ...: the Vandermonde vectors of the paper."""

    name = "power"

    def recurrence(self, degree: int) -> tuple[float, float]:
        """Each power is x times the one before."""
        return 1.0, 0.0

    def _to_power(self, coefficients: Array) -> Array:
        return coefficients

    def _multiply(self, one: Array, other: Array) -> Array:
        return polynomial.polymul(one, other)


class ChebyshevBasis(Basis):
    """Chebyshev polynomials of the first kind: bounded by 1 on [-1, 1]."""

    name = "chebyshev"

    def recurrence(self, degree: int) -> tuple[float, float]:
        """T_k = 2 x T_{k-1} - T_{k-2}."""
        return 2.0, 1.0

    def _to_power(self, coefficients: Array) -> Array:
        return chebyshev.cheb2poly(coefficients)

    def _multiply(self, one: Array, other: Array) -> Array:
        return chebyshev.chebmul(one, other)


class LegendreBasis(Basis):
    """Legendre polynomials: orthogonal for uniform x on [-1, 1], bounded by 1 there."""

    name = "legendre"

    def recurrence(self, degree: int) -> tuple[float, float]:
        """Bonnet's rule: k P_k = (2k - 1) x P_{k-1} - (k - 1) P_{k-2}."""
        return (2 * degree - 1) / degree, (degree - 1) / degree

    def _to_power(self, coefficients: Array) -> Array:
        return legendre.leg2poly(coefficients)

    def _multiply(self, one: Array, other: Array) -> Array:
        return legendre.legmul(one, other)


_BASES: dict[str, Basis] = {basis.name: basis for basis in (PowerBasis(), ChebyshevBasis(), LegendreBasis())}


BASES = tuple(_BASES)


def get_basis(name: str | Basis) -> Basis:
    """Return the basis of that name; a ``Basis`` is passed through.

    Examples
    --------
    >>> get_basis("legendre")
    LegendreBasis()
    """
    if isinstance(name, str) and name in _BASES:
        return _BASES[name]
    if isinstance(name, Basis):
        return name
    raise ValueError(f"basis must be one of {sorted(_BASES)}, got {name!r}.")
