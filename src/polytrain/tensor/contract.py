"""Sums over the dimensions of trains, on plain sequences of cores.

Rows of data are the last axis, so that every elementwise product runs over contiguous memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import Basis
from polytrain.tensor.decompose import scale_exponent, split_exponent

__all__ = ["add_cores", "contract_cores", "evaluate_cores", "form_tensor", "inner_product"]

# Numbers in the widest intermediate array of one block of rows: 4 MB of float64, which stays in cache.
_BLOCK_SIZE = 2**19


def contract_cores(cores: Sequence[NDArray], values: Iterable[NDArray]) -> NDArray:
    """Contract every dimension with one vector per row.

    Shapes: values (n_k, N) for each core, taken one at a time -> (N,).
    """
    left = np.ones((1, 1), dtype=cores[0].dtype)
    for core, vectors in zip(cores, values, strict=True):
        left = _extend_left(left, vectors, core)
    return left[0]


def _extend_left(left: NDArray, values: NDArray, core: NDArray) -> NDArray:
    """Absorb one dimension into the left environment.

    new[b, j] = sum over a, i of left[a, j] * values[i, j] * core[a, i, b]

    Shapes: left (a, N), values (i, N), core (a, i, b) -> (b, N).
    """
    left_rank, n, right_rank = core.shape
    pairs = (left[:, None, :] * values).reshape(left_rank * n, values.shape[1])
    return core.reshape(left_rank * n, right_rank).T @ pairs


def evaluate_cores(cores: Sequence[NDArray], X: NDArray, basis: Basis) -> NDArray:
    """Evaluate the polynomial with these coefficients, block after block of the rows of X (N, d) -> (N,)."""
    result = np.empty(len(X), dtype=np.result_type(X.dtype, cores[0].dtype))
    width = max(core.shape[0] * core.shape[1] + core.shape[2] for core in cores)
    block = min(max(_BLOCK_SIZE // width, 64), 4096)
    for start in range(0, len(X), block):
        columns = np.ascontiguousarray(X[start : start + block].T)
        values = (basis.values(column, core.shape[1]) for column, core in zip(columns, cores, strict=True))
        result[start : start + block] = contract_cores(cores, values)
    return result


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
