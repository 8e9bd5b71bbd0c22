"""Checks of what users hand in; each message names the thing, its value and the remedy."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise

from numpy.typing import NDArray

__all__ = ["check_cores", "check_dims", "check_positive_integer", "check_real", "check_size", "check_truncation"]


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
