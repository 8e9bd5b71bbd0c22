"""Checks of what users hand in; each message names the thing, its value and the remedy."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "check_coefficients",
    "check_cores",
    "check_degrees",
    "check_dims",
    "check_exponents",
    "check_finite",
    "check_index",
    "check_n_variables",
    "check_names",
    "check_points",
    "check_positive_integer",
    "check_real",
    "check_rows",
    "check_size",
    "check_tensor",
    "check_truncation",
    "check_vectors",
]


def check_dims(dims: Sequence[int]) -> tuple[int, ...]:
    """Return ``dims`` as a tuple of Python integers, so that their products cannot overflow."""
    checked = tuple(check_positive_integer(n, f"dims[{k}]") for k, n in enumerate(dims))
    if not checked:
        raise ValueError("dims must name at least one dimension, got none.")
    return checked


def check_positive_integer(value: object, name: str) -> int:
    """Return ``value`` as a Python integer if it is one and at least 1."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return number


def check_size(dims: Sequence[int], max_size: int) -> None:
    """Refuse to form a dense tensor of more than ``max_size`` entries."""
    if math.prod(dims) > max_size:
        raise ValueError(
            f"the dense tensor has {math.prod(dims):.3g} entries, more than max_size={max_size}. Keep working with "
            "the train or the terms, or raise max_size."
        )


def check_cores(arrays: Sequence[NDArray]) -> None:
    """Raise if these are not the cores of a train."""
    if not arrays:
        raise ValueError("cores must hold at least one core, got none.")
    for k, array in enumerate(arrays):
        if array.ndim != 3 or array.size == 0:
            raise ValueError(
                f"core {k} must have shape (left rank, dimension, right rank) with no empty axis, got {array.shape}."
            )
        check_real(array, f"core {k}")
    for k, (one, two) in enumerate(pairwise(arrays)):
        if one.shape[2] != two.shape[0]:
            raise ValueError(
                f"cores {k} and {k + 1} must share a rank, got right rank {one.shape[2]} and left rank {two.shape[0]}."
            )
    first, last = arrays[0].shape[0], arrays[-1].shape[2]
    if first != 1 or last != 1:
        raise ValueError(
            f"the left rank of the first core and the right rank of the last must be 1, got {first} and {last}."
        )


def check_tensor(tensor: ArrayLike) -> NDArray:
    """Return a dense tensor as an array of real numbers with at least one entry."""
    array = np.asarray(tensor)
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"tensor must have at least one dimension and no empty one, got shape {array.shape}.")
    check_real(array, "tensor")
    return array


def check_index(index: Sequence[int], dims: Sequence[int]) -> list[int]:
    """Return the position of an entry as Python integers, those that count from the end left as they are."""
    if len(index) != len(dims):
        raise ValueError(f"index must have {len(dims)} integers, one per dimension, got {len(index)}.")
    checked = []
    for k, (i, n) in enumerate(zip(index, dims, strict=True)):
        try:
            i = operator.index(i)
        except TypeError:
            raise TypeError(f"index {k} must be an integer, got {i!r}; use to_dense() for slices.") from None
        if not -n <= i < n:
            raise IndexError(f"index {k} is {i}, out of range for dimension {n}.")
        checked.append(i)
    return checked


def check_vectors(vectors: Sequence[ArrayLike], dims: Sequence[int]) -> list[NDArray]:
    """Return what every dimension is to be contracted with as arrays, all of shape (n_k,) or all of (n_k, N)."""
    if len(vectors) != len(dims):
        raise ValueError(f"vectors must hold {len(dims)} arrays, one per dimension, got {len(vectors)}.")
    arrays = [np.asarray(vector) for vector in vectors]
    for k, (array, n) in enumerate(zip(arrays, dims, strict=True)):
        expected = (n, *arrays[0].shape[1:])
        if array.ndim not in (1, 2) or array.shape != expected:
            wanted = f"({n},) or ({n}, N)" if k == 0 else f"{expected}, to go with vector 0"
            raise ValueError(f"vector {k} must have shape {wanted}, got {array.shape}.")
    return arrays


def check_rows(X: ArrayLike, n_features: int) -> NDArray:
    """Return rows of features as an array (N, d) of float32 if they are, of float64 otherwise."""
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(
            f"X must have shape (N, {n_features}), one column per feature, got {rows.shape}. A single row is "
            "X.reshape(1, -1)."
        )
    check_real(rows, "X")
    return rows if rows.dtype == np.float32 else rows.astype(np.float64, copy=False)


def check_points(X: ArrayLike, n_variables: int) -> NDArray:
    """Return one point (d,) or rows of them (N, d) as an array of float64."""
    points = np.asarray(X)
    if points.ndim not in (1, 2) or points.shape[-1] != n_variables:
        raise ValueError(f"X must have shape (N, {n_variables}) or ({n_variables},), got {points.shape}.")
    check_real(points, "X")
    return points.astype(np.float64, copy=False)


def check_n_variables(
    n_variables: int | None, terms: Mapping[tuple[int, ...], float], degrees: Sequence[int] | None
) -> int:
    """Return the number of variables, counted by the degrees or else by the first term if it is not given."""
    if n_variables is None:
        n_variables = len(degrees) if degrees is not None else len(next(iter(terms), ()))
    if n_variables < 1:
        raise ValueError("the number of variables is unknown or zero; give n_variables or degrees.")
    if degrees is not None and len(degrees) != n_variables:
        raise ValueError(f"degrees must have {n_variables} numbers, one per variable, got {len(degrees)}.")
    return n_variables


def check_exponents(terms: Iterable[tuple[int, ...]], n_variables: int) -> NDArray:
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


def check_coefficients(terms: Mapping[tuple[int, ...], float]) -> NDArray:
    """Return the coefficients of the terms as an array (T,) of finite float64."""
    coefficients = np.array(list(terms.values()), dtype=np.float64)
    if not np.isfinite(coefficients).all():
        bad = int(np.flatnonzero(~np.isfinite(coefficients))[0])
        raise ValueError(f"the coefficient of {list(terms)[bad]} must be finite, got {coefficients[bad]}.")
    return coefficients


def check_degrees(degrees: Sequence[int] | None, exponents: NDArray) -> tuple[int, ...]:
    """Return the highest exponents allowed: those that occur if none are given, and never less than those."""
    occurring = exponents.max(axis=0, initial=0).tolist()
    if degrees is None:
        return tuple(occurring)
    for k, (degree, least) in enumerate(zip(degrees, occurring, strict=True)):
        if operator.index(degree) < least:
            raise ValueError(f"degrees[{k}] must be at least {least}, which a term has, got {degree}.")
    return tuple(map(operator.index, degrees))


def check_names(names: Sequence[str], n_variables: int) -> tuple[str, ...]:
    """Return the names of the variables as a tuple."""
    if len(names) != n_variables:
        raise ValueError(f"names must have {n_variables} strings, one per variable, got {len(names)}.")
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"names must be different and not empty, got {list(names)}.")
    return tuple(names)


def check_finite(array: NDArray, name: str, consequence: str) -> None:
    """Raise if the array holds NaN or infinity; ``consequence`` ends the sentence."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity{consequence}")


def check_real(array: NDArray, name: str) -> None:
    """Raise if the array does not hold real numbers."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")


def check_truncation(tol: float, max_rank: int | None) -> None:
    """Raise if these cannot rule a truncation."""
    if not 0 <= tol < math.inf:
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}.")
    if max_rank is not None:
        check_positive_integer(max_rank, "max_rank")
