"""Trains of equal dimensions, evaluated together on many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from polytrain import native
from polytrain.arrays import Array
from polytrain.tensor.thin_products import piece_rows

__all__ = ["TrainStack"]

#: Values (N,) of one feature -> values (n, N) of its functions.
Functions = Callable[[Array], Array]
#: A dtype -> the functions of one feature at its knots, (knots + 1, n), or None if it has no knots.
Knots = Callable[[np.dtype[Any]], Array | None]

# Rows per block: enough to make the overhead of a call small, few enough for the block's arrays to stay in cache.
_BLOCK_ROWS, _LEAST_BLOCK_ROWS = 1000, 250
# Bytes of the intermediate arrays of one block; more trains than fit are evaluated in groups.
_GROUP_BYTES = 4 << 20
# Scores of all trains on one block.
_BLOCK_SCORES = 1 << 24
# Compiled kernels sort the rows of a block by knots, so a block must have many more rows than there are knots.
_COMPILED_ROWS = 4000
# Bytes of all tables at knots, so that a small model stays small.
_TABLE_BYTES = 64 << 20


def _transpose(rows: Array) -> Array:
    """Rows (N, d) -> contiguous columns (d, N)."""
    return np.ascontiguousarray(rows.T)


class TrainStack:
    """Trains of equal dimensions, whose ranks may differ, laid out so that all of them are evaluated together.

    The first of the ``functions`` of each feature is 1. With ``knots``, feature values are positions among the knots.
    """

    def __init__(
        self,
        trains: Sequence[Sequence[Array]],
        functions: Sequence[Functions],
        knots: Sequence[Knots] | None = None,
    ) -> None:
        self._trains, self._functions, self._knots = trains, functions, knots
        self._evaluators: dict[tuple[np.dtype[Any], bool], _CompiledTrains | _StackedTrains] = {}

    def _evaluator(self, dtype: np.dtype[Any]) -> _CompiledTrains | _StackedTrains:
        key = dtype, native.is_here()
        if key not in self._evaluators:
            kind = _CompiledTrains if native.is_here() else _StackedTrains
            self._evaluators[key] = kind(self._trains, self._functions, self._knots, dtype)
        return self._evaluators[key]

    def block_rows(self, dtype: np.dtype[Any]) -> int:
        """Rows that are evaluated at once; rounding depends on where blocks begin, and on nothing else."""
        return max(1, min(self._evaluator(dtype).block_rows, _BLOCK_SCORES // len(self._trains)))

    def evaluate(
        self,
        X: Array,
        to_columns: Callable[[Array], Array] = _transpose,
        n_threads: int = 1,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """Evaluate all trains on rows X (N, d), block after block, in ``dtype`` or that of X -> (n_trains, N).

        ``to_columns`` turns a block of rows into contiguous columns (d, rows).
        """
        dtype = X.dtype if dtype is None else np.dtype(dtype)
        evaluator, size = self._evaluator(dtype), self.block_rows(dtype)
        result = np.empty((len(self._trains), len(X)), dtype=dtype)

        def evaluate_block(start: int) -> None:
            rows = slice(start, start + size)
            evaluator.evaluate(to_columns(X[rows]).astype(dtype, copy=False), result[:, rows])

        starts = range(0, len(X), size)
        if n_threads == 1 or len(starts) < 2:
            for start in starts:
                evaluate_block(start)
        else:
            with ThreadPoolExecutor(min(n_threads, len(starts))) as pool:
                list(pool.map(evaluate_block, starts))  # the list makes an error in a thread surface here
        return result


class _CompiledTrains:
    """Compiled kernels. Columns with knots are not expanded into functions as long as their tables are small."""

    block_rows = _COMPILED_ROWS

    def __init__(
        self,
        trains: Sequence[Sequence[Array]],
        functions: Sequence[Functions],
        knots: Sequence[Knots] | None,
        dtype: np.dtype[Any],
    ) -> None:
        no_tables = [None] * len(functions)
        tables = no_tables if knots is None else [table(dtype) for table in knots]
        n_numbers = sum(
            len(table) * train[k].shape[0] * native.local_width(train[k].shape[2], dtype)
            for train in trains
            for k, table in enumerate(tables)
            if table is not None
        )
        if n_numbers * dtype.itemsize > _TABLE_BYTES:
            tables = no_tables
        self._functions = [
            function if table is None else None for function, table in zip(functions, tables, strict=True)
        ]
        self._trains = native.Trains([[core.transpose(1, 0, 2) for core in train] for train in trains], tables, dtype)

    def evaluate(self, columns: Array, out: Array) -> None:
        """Write the values of all trains. Shapes: columns (d, rows), out (trains, rows)."""
        out[:] = self._trains.evaluate(
            [
                column[None] if function is None else function(column)
                for function, column in zip(self._functions, columns, strict=True)
            ]
        )


class _StackedTrains:
    """NumPy: core k of all trains is one stack of matrices, with ranks padded by zeros."""

    def __init__(
        self, trains: Sequence[Sequence[Array]], functions: Sequence[Functions], knots: object, dtype: np.dtype[Any]
    ) -> None:
        self._functions, self._dims = functions, [core.shape[1] for core in trains[0]]
        # Core k of every train as a matrix (right rank, basis * left rank): it multiplies a Khatri-Rao product.
        self._matrices = []
        for cores in zip(*trains, strict=True):
            left_rank, right_rank = (max(core.shape[axis] for core in cores) for axis in (0, 2))
            stacked = np.zeros((len(trains), right_rank, cores[0].shape[1], left_rank), dtype=dtype)
            for padded, core in zip(stacked, cores, strict=True):
                padded[: core.shape[2], :, : core.shape[0]] = core.transpose(2, 1, 0)
            self._matrices.append(stacked.reshape(len(trains), right_rank, -1))
        largest = max(matrices[0].size for matrices in self._matrices)
        self.block_rows = min(_BLOCK_ROWS, max(_LEAST_BLOCK_ROWS, piece_rows(largest)))

    def evaluate(self, columns: Array, out: Array) -> None:
        """Write the values of all trains, group after group. Shapes: columns (d, rows), out (trains, rows)."""
        n_products = max(matrices.shape[2] for matrices in self._matrices)
        n_group = min(len(out), max(1, _GROUP_BYTES // max(1, n_products * columns.nbytes // len(columns))))
        # Two Khatri-Rao products, flat: one is read while the other is written.
        buffers = np.empty((2, n_group * n_products * columns.shape[1]), dtype=columns.dtype)
        for start in range(0, len(out), n_group):
            trains = slice(start, start + n_group)
            out[trains] = self._evaluate_group(columns, trains, buffers)

    def _evaluate_group(self, columns: Array, trains: slice, buffers: Array) -> Array:
        """Evaluate some of the trains. Shapes: columns (d, rows) -> (trains, rows)."""
        m, n_rows = len(self._matrices[0][trains]), columns.shape[1]
        spread = buffers[0, : m * self._dims[0] * n_rows].reshape(m, self._dims[0], 1, n_rows)
        spread[:, 0] = 1
        following = (*self._dims[1:], 1)
        for k, (column, stacked, n_next) in enumerate(zip(columns, self._matrices, following, strict=True)):
            values = self._functions[k](column)
            for i in range(1, self._dims[k]):
                np.multiply(spread[:, 0], values[i], out=spread[:, i])
            flat = spread.reshape(m, -1, n_rows)
            matrices = stacked[trains]
            rank = matrices.shape[1]
            # The product is written to where the next Khatri-Rao product begins.
            spread = buffers[(k + 1) % 2, : m * n_next * rank * n_rows].reshape(m, n_next, rank, n_rows)
            np.matmul(matrices, flat, out=spread[:, 0])
        return spread[:, 0, 0]
