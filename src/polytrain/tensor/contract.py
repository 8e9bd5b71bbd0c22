"""Sums over the dimensions of trains, on plain sequences of cores.

Rows of data are the last axis, so that every elementwise product runs over contiguous memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polytrain.tensor.decompose import scale_exponent, split_exponent
from polytrain.tensor.thin_products import piece_rows

__all__ = ["TrainStack", "add_cores", "contract_cores", "form_tensor", "inner_product", "khatri_rao"]

#: Values of one feature -> values of its functions.
Functions = Callable[[NDArray], NDArray]

# Rows per block: enough to make the overhead of a call small, few enough for the block's arrays to stay in cache.
_BLOCK_ROWS, _LEAST_BLOCK_ROWS = 1000, 250


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


def _transpose(rows: NDArray) -> NDArray:
    """Rows (N, d) -> contiguous columns (d, N)."""
    return np.ascontiguousarray(rows.T)


class TrainStack:
    """Trains of equal dimensions, laid out so that all of them are evaluated together.

    Parameters
    ----------
    trains : sequence of sequences of ndarray
        Cores of each train. Ranks may differ; they are padded with zeros.
    functions : sequence of callables
        For each feature, what turns its values (N,) into those of its functions (n, N), the first of which is 1.
    dtype : dtype
        What to compute in.
    """

    def __init__(self, trains: Sequence[Sequence[NDArray]], functions: Sequence[Functions], dtype: DTypeLike) -> None:
        self._functions, self._dtype, self._n_trains = functions, np.dtype(dtype), len(trains)
        self._dims = [core.shape[1] for core in trains[0]]
        # Core k of every train as a matrix (right rank, basis * left rank): it multiplies a Khatri-Rao product.
        self._matrices = []
        for cores in zip(*trains, strict=True):
            left_rank, right_rank = (max(core.shape[axis] for core in cores) for axis in (0, 2))
            stacked = np.zeros((len(trains), right_rank, cores[0].shape[1], left_rank), dtype=self._dtype)
            for padded, core in zip(stacked, cores, strict=True):
                padded[: core.shape[2], :, : core.shape[0]] = core.transpose(2, 1, 0)
            self._matrices.append(stacked.reshape(len(trains), right_rank, -1))

    def astype(self, dtype: DTypeLike) -> TrainStack:
        """Return a stack that computes in another dtype."""
        if np.dtype(dtype) == self._dtype:
            return self
        other = copy(self)
        other._dtype = np.dtype(dtype)
        other._matrices = [matrices.astype(dtype) for matrices in self._matrices]
        return other

    def evaluate(
        self, X: NDArray, to_columns: Callable[[NDArray], NDArray] = _transpose, n_threads: int = 1
    ) -> NDArray:
        """Evaluate all trains on rows X (N, d), block after block -> (n_trains, N).

        ``to_columns`` turns a block of rows into contiguous columns (d, rows).
        """
        result = np.empty((self._n_trains, len(X)), dtype=self._dtype)
        largest = max(matrices[0].size for matrices in self._matrices)
        size = min(_BLOCK_ROWS, max(_LEAST_BLOCK_ROWS, piece_rows(largest)))
        starts = range(0, len(X), size)
        n_threads = max(1, min(n_threads, len(starts)))

        def evaluate_blocks(first: int) -> None:
            spreads = self._make_spreads(min(size, len(X)))
            for start in starts[first::n_threads]:
                rows = slice(start, start + size)
                columns = to_columns(X[rows]).astype(self._dtype, copy=False)
                result[:, rows] = self._evaluate_block(columns, spreads)

        if n_threads == 1:
            evaluate_blocks(0)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(evaluate_blocks, range(n_threads)))  # the list makes an error in a thread surface here
        return result

    def _make_spreads(self, n_rows: int) -> tuple[NDArray, NDArray]:
        """Memory for two spreads, flat: one is read while the other is written."""
        size = self._n_trains * max(matrices.shape[2] for matrices in self._matrices) * n_rows
        return np.empty(size, dtype=self._dtype), np.empty(size, dtype=self._dtype)

    def _evaluate_block(self, columns: NDArray, spreads: tuple[NDArray, NDArray]) -> NDArray:
        """Shapes: columns (d, rows) -> (n_trains, rows)."""
        m, n_rows = self._n_trains, columns.shape[1]
        spread = spreads[0][: m * self._dims[0] * n_rows].reshape(m, self._dims[0], 1, n_rows)
        spread[:, 0] = 1
        following = (*self._dims[1:], 1)
        for k, (column, matrices, n_next) in enumerate(zip(columns, self._matrices, following, strict=True)):
            values = self._functions[k](column)
            for i in range(1, self._dims[k]):
                np.multiply(spread[:, 0], values[i], out=spread[:, i])
            flat = spread.reshape(m, -1, n_rows)
            # The product is written to where the next spread begins.
            rank = matrices.shape[1]
            spread = spreads[(k + 1) % 2][: m * n_next * rank * n_rows].reshape(m, n_next, rank, n_rows)
            np.matmul(matrices, flat, out=spread[:, 0])
        return spread[:, 0, 0]


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
