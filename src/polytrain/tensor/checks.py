"""Shared checks of arguments; each message names the argument, its value and the remedy."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from polytrain.arrays import Array


def check_positive_integer(value: object, name: str) -> int:
    """Return ``value`` as a Python integer if it is one and at least 1."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return number


def check_dims(dims: Sequence[int]) -> tuple[int, ...]:
    """Return ``dims`` as a tuple of Python integers, so that their products cannot overflow."""
    checked = tuple(check_positive_integer(n, f"dims[{k}]") for k, n in enumerate(dims))
    if not checked:
        raise ValueError("dims must name at least one dimension, got none.")
    return checked


def check_size(dims: Sequence[int], max_size: int) -> None:
    """Refuse to form a dense tensor of more than ``max_size`` entries."""
    if math.prod(dims) > max_size:
        raise ValueError(
            f"the dense tensor has {math.prod(dims):.3g} entries, more than max_size={max_size}. Keep working with "
            "the train or the terms, or raise max_size."
        )


def check_tensor(tensor: ArrayLike) -> Array:
    """Return a dense tensor with at least one entry, all finite: float32 if it is, float64 otherwise."""
    array = np.asarray(tensor)
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"tensor must have at least one dimension and no empty one, got shape {array.shape}.")
    array = check_real(array, "tensor")
    check_finite(array, "tensor")
    return array


def check_finite(array: Array, name: str) -> None:
    """Raise if the array holds NaN or infinity."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity; all entries must be finite.")


def check_real(array: Array, name: str) -> Array:
    """Return an array of real numbers as float32 if it is, as float64 otherwise."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def check_truncation(tol: float, max_rank: int | None) -> None:
    """Raise unless ``tol`` is finite and not negative, and ``max_rank`` a positive integer or None."""
    if not 0 <= tol < math.inf:
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}.")
    if max_rank is not None:
        check_positive_integer(max_rank, "max_rank")
