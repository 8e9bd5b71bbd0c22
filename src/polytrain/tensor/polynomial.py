"""Polynomials in several variables as lists of terms."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from polytrain.arrays import Array
from polytrain.basis import Basis, get_basis
from polytrain.tensor.checks import check_finite, check_real, check_size, check_tensor, check_truncation
from polytrain.tensor.terms import (
    collect_terms,
    cores_from_terms,
    default_names,
    evaluate_terms,
    format_terms,
    parse_terms,
    terms_from_cores,
)
from polytrain.tensor.train import TensorTrain

# Terms in the repr of a polynomial.
_MOST_SHOWN = 8


class Polynomial:
    """A polynomial as terms: exponents and a coefficient each.

    Terms are kept and printed by total degree, lowest first; among equal degrees, those with the larger exponent of
    the first variable come first, then of the second, and so on.

    Parameters
    ----------
    terms : mapping of tuple of d int to float
        Exponents of the variables -> coefficient.
    n_variables : int, optional
        Number of variables ``d``. Needed only if there is no term and no ``degrees`` to count them by.
    degrees : sequence of d int, optional
        Highest exponent allowed for each variable (the pure-power degrees), which sets the dimensions of the tensor
        of coefficients. By default those that occur.

    Examples
    --------
    >>> from polytrain.tensor import Polynomial
    >>> polynomial = Polynomial({(1, 0, 0): 4, (3, 0, 0): 1, (1, 1, 1): -2, (0, 1, 2): -7})
    >>> print(polynomial)
    4*x1 + x1^3 - 2*x1*x2*x3 - 7*x2*x3^2
    >>> polynomial.degrees
    (3, 1, 2)
    >>> polynomial([1.0, 1.0, 1.0])
    -4.0
    >>> polynomial.to_train()
    TensorTrain(dims=(4, 2, 3), ranks=(1, 3, 3, 1), n_parameters=39)
    """

    # Lets `numpy_scalar * polynomial` reach __rmul__, instead of NumPy taking the polynomial for a scalar object.
    __array_ufunc__ = None

    def __init__(
        self,
        terms: Mapping[tuple[int, ...], float],
        n_variables: int | None = None,
        degrees: Sequence[int] | None = None,
    ) -> None:
        if n_variables is None:
            n_variables = len(degrees) if degrees is not None else len(next(iter(terms), ()))
        if n_variables < 1:
            raise ValueError("the number of variables is unknown or zero; give n_variables or degrees.")
        exponents = _check_exponents(terms, n_variables)
        coefficients = np.array(list(terms.values()), dtype=np.float64)
        for key, coefficient in zip(terms, coefficients, strict=True):
            if not np.isfinite(coefficient):
                raise ValueError(f"the coefficient of {key} must be finite, got {coefficient}.")
        self._degrees = _check_degrees(degrees, exponents)
        self._exponents, self._coefficients = collect_terms(exponents, coefficients)

    @classmethod
    def _from_arrays(cls, exponents: Array, coefficients: Array, degrees: Iterable[int]) -> Polynomial:
        """Build from unchecked arrays (T, d) and (T,) of terms in any order, which may occur several times."""
        new = cls.__new__(cls)
        new._degrees = tuple(degrees)
        new._exponents, new._coefficients = collect_terms(exponents, coefficients)
        return new

    @classmethod
    def from_dense(cls, tensor: ArrayLike) -> Polynomial:
        """Read the polynomial whose coefficients are the entries of a tensor.

        Entry ``(i_1, ..., i_d)``, counted from 0, is the coefficient of ``x1^i_1 * ... * xd^i_d``.

        Examples
        --------
        >>> print(Polynomial.from_dense([[1, -1, 9], [3, 7, 0], [-1, 0, 0]]))
        1 + 3*x1 - x2 - x1^2 + 7*x1*x2 + 9*x2^2
        """
        array = check_tensor(tensor)
        index = np.nonzero(array)
        return cls._from_arrays(np.column_stack(index), array[index].astype(np.float64), (n - 1 for n in array.shape))

    @classmethod
    def from_train(
        cls, train: TensorTrain, tol: float = 0.0, max_size: int = 10**6, basis: str | Basis = "power"
    ) -> Polynomial:
        """Read the terms of a train, without forming the dense tensor.

        Parameters
        ----------
        train : TensorTrain
            The coefficients.
        tol : float, default=0.0
            Leave out coefficients of at most this magnitude. The larger it is, the fewer branches are searched: a few
            large terms are found in trains whose dense tensor could never be formed.
        max_size : int, default=10**6
            Refuse to follow more terms than this at once.
        basis : str or Basis, default="power"
            Functions of each variable that the entries of the train belong to; they are rewritten in powers.

        Examples
        --------
        >>> train = TensorTrain.rank_one([[1, 1], [1, 0, 2]])
        >>> print(Polynomial.from_train(train))
        1 + x1 + 2*x2^2 + 2*x1*x2^2
        >>> print(Polynomial.from_train(train, tol=1.5))
        2*x2^2 + 2*x1*x2^2
        >>> print(Polynomial.from_train(train, basis="chebyshev"))
        -1 - x1 + 4*x2^2 + 4*x1*x2^2
        """
        check_truncation(tol, None)
        family = get_basis(basis)
        cores = []
        for k, core in enumerate(train.cores):
            check_finite(core, f"core {k}")
            to_power = family.to_power_matrix(core.shape[1])
            cores.append(np.einsum("aib,ij->ajb", core.astype(np.float64, copy=False), to_power))
        exponents, coefficients = terms_from_cores(cores, tol, max_size)
        return cls._from_arrays(exponents, coefficients, (n - 1 for n in train.dims))

    @classmethod
    def parse(cls, text: str, names: Sequence[str] | None = None) -> Polynomial:
        """Read a sum of terms such as ``2*x1^3*x2``.

        Parameters
        ----------
        text : str
            The polynomial, written out: no parentheses. ``**`` also works for ``^``.
        names : sequence of str, optional
            Names of the variables. By default they are x1, x2, ..., up to the largest index in the text.

        Examples
        --------
        >>> Polynomial.parse("1 - 2*x2 + x1*x2").to_dense()
        array([[ 1., -2.],
               [ 0.,  1.]])
        >>> Polynomial.parse("width^2*height", names=["width", "height"]).terms
        {(2, 1): 1.0}
        """
        terms, n_variables = parse_terms(text, None if names is None else _check_names(names, len(names)))
        return cls(terms, n_variables=n_variables)

    @property
    def terms(self) -> dict[tuple[int, ...], float]:
        """Exponents -> coefficient, without zero coefficients, in the order of printing."""
        return dict(zip(map(tuple, self._exponents.tolist()), self._coefficients.tolist(), strict=True))

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self._degrees)

    @property
    def degrees(self) -> tuple[int, ...]:
        """Highest exponent of each variable."""
        return self._degrees

    @property
    def n_terms(self) -> int:
        """Number of terms, none of which is zero."""
        return len(self._coefficients)

    def to_dense(self, max_size: int = 10**7) -> Array:
        """Form the tensor of coefficients, of shape ``degrees + 1``, unless it has more than ``max_size`` entries.

        Examples
        --------
        >>> Polynomial({(0, 1): 2.0}, degrees=(1, 2)).to_dense()
        array([[0., 2., 0.],
               [0., 0., 0.]])
        """
        dims = tuple(degree + 1 for degree in self._degrees)
        check_size(dims, max_size)
        dense = np.zeros(dims)
        dense[tuple(self._exponents.T)] = self._coefficients
        return dense

    def to_train(self, tol: float | None = 0.0, max_rank: int | None = None, max_size: int = 10**8) -> TensorTrain:
        """Write the coefficients as a train, without forming the dense tensor.

        Parameters
        ----------
        tol : float or None, default=0.0
            Allowed norm of the error, relative to the norm of the coefficients; 0 drops only what is at the level of
            rounding. With None the train is not rounded, and every coefficient stays exactly as it is; its ranks are
            then the smallest that would do for any values of these coefficients.
        max_rank : int, optional
            Largest rank. It takes precedence over ``tol``.
        max_size : int, default=10**8
            Refuse to build a train of more numbers than this, before rounding.

        Examples
        --------
        >>> linear = Polynomial.parse("1 + x1 + x2 + x3 + x4")
        >>> linear.to_train().ranks
        (1, 2, 2, 2, 1)
        >>> product = Polynomial.parse("1 + x1 + x2 + x1*x2")
        >>> product.to_train(tol=None).ranks, product.to_train().ranks
        ((1, 2, 1), (1, 1, 1))
        """
        check_truncation(tol or 0.0, max_rank)
        dims = [degree + 1 for degree in self._degrees]
        if not self.n_terms:
            return TensorTrain.zeros(dims)
        train = TensorTrain(cores_from_terms(self._exponents, self._coefficients, dims, max_size))
        return train if tol is None and max_rank is None else train.round(tol or 0.0, max_rank)

    def __call__(self, X: ArrayLike) -> float | Array:
        """Evaluate at one point (d,) -> float, or at the rows of X (N, d) -> (N,)."""
        points, d = np.asarray(X), self.n_variables
        if points.ndim not in (1, 2) or points.shape[-1] != d:
            raise ValueError(f"X must have shape (N, {d}) or ({d},), got {points.shape}.")
        rows = np.atleast_2d(check_real(points, "X")).astype(np.float64, copy=False)
        values = evaluate_terms(self._exponents, self._coefficients, rows)
        return float(values[0]) if points.ndim == 1 else values

    def __add__(self, other: object) -> Polynomial:
        if isinstance(other, Real):
            other = Polynomial({(0,) * self.n_variables: float(other)})
        if not isinstance(other, Polynomial):
            return NotImplemented
        self._check_same_variables(other)
        return Polynomial._from_arrays(
            np.concatenate((self._exponents, other._exponents)),
            np.concatenate((self._coefficients, other._coefficients)),
            map(max, self._degrees, other._degrees),
        )

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return Polynomial._from_arrays(self._exponents, -self._coefficients, self._degrees)

    def __sub__(self, other: object) -> Polynomial:
        if not isinstance(other, Polynomial | Real):
            return NotImplemented
        return self + (-other)

    def __rsub__(self, other: object) -> Polynomial:
        return -self + other

    def __mul__(self, other: object) -> Polynomial:
        if isinstance(other, Real):
            return Polynomial._from_arrays(self._exponents, self._coefficients * float(other), self._degrees)
        if not isinstance(other, Polynomial):
            return NotImplemented
        self._check_same_variables(other)
        exponents = self._exponents[:, None, :] + other._exponents
        return Polynomial._from_arrays(
            exponents.reshape(-1, self.n_variables),
            np.outer(self._coefficients, other._coefficients).ravel(),
            map(operator.add, self._degrees, other._degrees),
        )

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Polynomial):
            return NotImplemented
        return self.n_variables == other.n_variables and self.terms == other.terms

    def __hash__(self) -> int:
        return hash((self.n_variables, *self.terms.items()))

    def allclose(self, other: Polynomial, rtol: float = 1e-8, atol: float = 0.0) -> bool:
        """Return whether two polynomials have nearly the same coefficients; ``==`` compares them exactly.

        The norm of the difference of the coefficients may be ``atol`` plus ``rtol`` times the larger of the two norms.
        The declared ``degrees`` do not matter.

        Examples
        --------
        >>> third = Polynomial({(1,): 1 / 3})
        >>> third.allclose(Polynomial({(1,): 0.3333333333}), rtol=1e-6)
        True
        """
        norms = [np.linalg.norm(polynomial._coefficients) for polynomial in (self - other, self, other)]
        return bool(norms[0] <= atol + rtol * max(norms[1:]))

    def to_string(self, names: Sequence[str] | None = None, precision: int | None = 6) -> str:
        """Print the polynomial.

        Parameters
        ----------
        names : sequence of d str, optional
            Names of the variables; x1, x2, ... by default.
        precision : int or None, default=6
            Significant digits of the coefficients. With None, as many as are needed to read the same number back.

        Examples
        --------
        >>> Polynomial({(1, 2): -1.0, (1, 0): 2 / 3}).to_string(names=["width", "height"], precision=3)
        '0.667*width - width*height^2'
        """
        names = default_names(self.n_variables) if names is None else _check_names(names, self.n_variables)
        return format_terms(self.terms.items(), names, precision)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        text = format_terms(islice(self.terms.items(), _MOST_SHOWN), default_names(self.n_variables), precision=6)
        text += " + ..." if self.n_terms > _MOST_SHOWN else ""
        return f"Polynomial({text!r}, n_variables={self.n_variables})"

    def _check_same_variables(self, other: Polynomial) -> None:
        if self.n_variables != other.n_variables:
            both = f"{self.n_variables} and {other.n_variables}"
            raise ValueError(f"the polynomials must have the same number of variables, got {both}.")


def _check_exponents(terms: Iterable[tuple[int, ...]], n_variables: int) -> Array:
    """Return the exponents of the terms as an array (T, d)."""
    rows = []
    for exponents in terms:
        try:
            row = [operator.index(exponent) for exponent in exponents]
        except TypeError:
            row = [-1]
        if len(row) != n_variables or min(row) < 0:
            raise ValueError(
                f"every term must have {n_variables} exponents, integers of at least 0, got {exponents!r}."
            )
        rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(len(rows), n_variables)


def _check_degrees(degrees: Sequence[int] | None, exponents: Array) -> tuple[int, ...]:
    """Return the highest allowed exponents: those that occur by default, and never less than those."""
    occurring = exponents.max(axis=0, initial=0).tolist()
    if degrees is None:
        return tuple(occurring)
    if len(degrees) != len(occurring):
        raise ValueError(f"degrees must have {len(occurring)} numbers, one per variable, got {len(degrees)}.")
    for k, (degree, least) in enumerate(zip(degrees, occurring, strict=True)):
        if operator.index(degree) < least:
            raise ValueError(f"degrees[{k}] must be at least {least}, which a term has, got {degree}.")
    return tuple(map(operator.index, degrees))


def _check_names(names: Sequence[str], n_variables: int) -> tuple[str, ...]:
    """Return the names of the variables as a tuple."""
    if len(names) != n_variables:
        raise ValueError(f"names must have {n_variables} strings, one per variable, got {len(names)}.")
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"names must be different and not empty, got {list(names)}.")
    return tuple(names)
