"""Sums over the dimensions of trains, on plain sequences of cores.

Rows of data are the last axis, so that every elementwise product runs over contiguous memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.tensor.decompose import scale_exponent, split_exponent

__all__ = ["add_cores", "contract_cores", "form_tensor", "inner_product", "khatri_rao"]


def khatri_rao(side: NDArray, values: NDArray, out: NDArray | None = None) -> NDArray:
    """Multiply every basis value with every channel of an environment, row by row.

    Shapes: side (a, N), values (i, N) with values[0] = 1 -> (i * a, N), written to ``out`` if it is given.
    """
    n, n_rows = values.shape
    if out is None:
        out = np.empty((n * len(side), n_rows), dtype=side.dtype)
    product = out.reshape(n, len(side), n_rows)
    product[0] = side
    for i in range(1, n):
        np.multiply(side, values[i], out=product[i])
    return out


def contract_cores(cores: Sequence[NDArray], values: Iterable[NDArray]) -> NDArray:
    """Contract every dimension with one vector per row.

    Shapes: values (n_k, N) for each core, taken one at a time -> (N,).
    """
    left = np.ones((1, 1), dtype=cores[0].dtype)
    for core, vectors in zip(cores, values, strict=True):
        left_rank, n, right_rank = core.shape
        pairs = (left[:, None, :] * vectors).reshape(left_rank * n, vectors.shape[1])
        left = core.reshape(left_rank * n, right_rank).T @ pairs
    return left[0]


def form_tensor(cores: Sequence[NDArray]) -> NDArray:
    """Multiply the cores out into the dense tensor."""
    dense = np.ones((1, 1), dtype=cores[0].dtype)
    for core in cores:
        dense = (dense @ core.reshape(core.shape[0], -1)).reshape(-1, core.shape[2])
    return dense.reshape([core.shape[1] for core in cores])


def inner_product(one: Sequence[NDArray], two: Sequence[NDArray]) -> float:
    """Sum the products of the entries of two tensors, in float64 and with the power of two kept apart."""
    environment: NDArray = np.ones((1, 1))
    exponent = 0
    for core, other in zip(one, two, strict=True):
        half = np.tensordot(environment, core, axes=(0, 0))
        environment, step = split_exponent(np.tensordot(half, other, axes=((0, 1), (0, 1))))
        exponent += step
    return float(scale_exponent(environment, exponent)[0, 0])


def add_cores(one: Sequence[NDArray], two: Sequence[NDArray]) -> list[NDArray]:
    """Cores of the sum of two tensors: the cores side by side, so that the ranks add."""
    if len(one) == 1:
        return [one[0] + two[0]]
    first = np.concatenate((one[0], two[0]), axis=2)
    last = np.concatenate((one[-1], two[-1]), axis=0)
    inner = []
    for core, other in zip(one[1:-1], two[1:-1], strict=True):
        left_rank, n, right_rank = core.shape
        both = np.zeros((left_rank + other.shape[0], n, right_rank + other.shape[2]), dtype=first.dtype)
        both[:left_rank, :, :right_rank] = core
        both[left_rank:, :, right_rank:] = other
        inner.append(both)
    return [first, *inner, last]
