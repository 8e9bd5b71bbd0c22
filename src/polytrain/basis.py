"""Families of polynomials: the values of the first few at one feature, and the rule for products of two of them.

Conventions: rows are the last axis, so ``values`` turns ``(N,)`` into ``(n, N)``. Every family starts with the constant
1 and then x itself, so that a linear model has the same form in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev, legendre, polynomial
from numpy.typing import ArrayLike

from polytrain.arrays import FloatArray

__all__ = ["BASES", "UNSCALED", "Basis", "get_basis"]


@dataclass(frozen=True)
class Basis:
    """A family of polynomials, one of each degree, given by its three-term recurrence.

    Attributes
    ----------
    name : str
        Name of the family.
    recurrence : callable
        Degree -> ``(a, b)`` with ``phi[degree](x) = a * x * phi[degree - 1](x) - b * phi[degree - 2](x)``.
    multiply : callable
        Coefficients of two polynomials in this family -> those of their product.
    to_power : callable
        Coefficients of a polynomial in this family -> its coefficients of 1, x, x^2, ...

    Examples
    --------
    >>> from polytrain.basis import get_basis
    >>> get_basis("power").values([2.0, 3.0], 3)
    array([[1., 1.],
           [2., 3.],
           [4., 9.]])
    """

    name: str
    recurrence: Callable[[int], tuple[float, float]]
    multiply: Callable[[FloatArray, FloatArray], FloatArray]
    to_power: Callable[[FloatArray], FloatArray]

    def values(self, x: ArrayLike, n: int, out: FloatArray | None = None) -> FloatArray:
        """Return the first ``n`` functions, (n, N), at ``x``, (N,); they are written to ``out`` if it is given."""
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

    @cache  # noqa: B019  the instances are module constants
    def product_table(self, n: int) -> FloatArray:
        """Return ``T`` of shape (n, n, 2n - 1) with ``phi_i phi_j = sum over e of T[i, j, e] phi_e``."""
        table = np.zeros((n, n, 2 * n - 1))
        units = np.eye(n)
        for i, j in np.ndindex(n, n):
            coefficients = self.multiply(units[i, : i + 1], units[j, : j + 1])
            table[i, j, : len(coefficients)] = coefficients
        table.setflags(write=False)
        return table

    @cache  # noqa: B019
    def to_power_matrix(self, n: int) -> FloatArray:
        """Return ``M`` of shape (n, n): row ``i`` holds function ``i`` as coefficients of 1, x, x^2, ..."""
        matrix = np.zeros((n, n))
        for i, unit in enumerate(np.eye(n)):
            coefficients = self.to_power(unit)
            matrix[i, : len(coefficients)] = coefficients
        matrix.setflags(write=False)
        return matrix


_FAMILIES = (
    # The Vandermonde vectors of the paper: each power is x times the one before.
    Basis("power", lambda degree: (1.0, 0.0), polynomial.polymul, np.copy),
    # Bounded by 1 on [-1, 1]: T_k = 2 x T_{k-1} - T_{k-2}.
    Basis("chebyshev", lambda degree: (2.0, 1.0), chebyshev.chebmul, chebyshev.cheb2poly),
    # Orthogonal for uniform x on [-1, 1]: P_k = (2 - 1/k) x P_{k-1} - (1 - 1/k) P_{k-2}.
    Basis("legendre", lambda degree: (2 - 1 / degree, 1 - 1 / degree), legendre.legmul, legendre.leg2poly),
)
#: Names of the families.
BASES = tuple(family.name for family in _FAMILIES)
#: Name of powers of features that are not scaled.
UNSCALED = "power-unscaled"
_BASES = {**dict(zip(BASES, _FAMILIES, strict=True)), UNSCALED: _FAMILIES[0]}


def get_basis(name: str | Basis) -> Basis:
    """Return the family of that name; a `Basis` is passed through, and "power-unscaled" is the family "power".

    Examples
    --------
    >>> get_basis("legendre").name
    'legendre'
    """
    if isinstance(name, Basis):
        return name
    if name in _BASES:
        return _BASES[name]
    raise ValueError(f"basis must be one of {sorted(_BASES)}, got {name!r}.")
