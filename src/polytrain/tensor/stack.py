"""Trains of equal dimensions, evaluated together on many rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polytrain import native
from polytrain.tensor.thin_products import piece_rows

__all__ = ["TrainStack"]

#: Values of one feature -> values of its functions.
Functions = Callable[[NDArray], NDArray]

# Rows per block: enough to make the overhead of a call small, few enough for the block's arrays to stay in cache.
_BLOCK_ROWS, _LEAST_BLOCK_ROWS = 1000, 250
# Bytes of what all trains of a group make of one block: many trains are taken in groups.
_GROUP_BYTES = 4 << 20
# Scores of all trains on one block, which very many trains would make too many.
_BLOCK_SCORES = 1 << 24
# For compiled kernels: rows that are sorted by knots together must be many more than knots; and bytes of all tables at
# the knots, which must not make a small model large.
_COMPILED_ROWS, _TABLE_BYTES = 4000, 64 << 20


def _transpose(rows: NDArray) -> NDArray:
    """Rows (N, d) -> contiguous columns (d, N)."""
    return np.ascontiguousarray(rows.T)


class TrainStack:
    """Trains of equal dimensions, laid out so that all of them are evaluated together.

    Parameters
    ----------
    trains : sequence of sequences of ndarray
        Cores of each train. Ranks may differ.
    functions : sequence of callables
        For each feature, what turns its values (N,) into those of its functions (n, N), the first of which is 1.
    dtype : dtype
        What to compute in.
    knots : sequence of callables, optional
        For each feature, a dtype -> its functions at knots, (knots + 1, n), of which feature values are positions; or
        None for a feature that has no knots.
    """

    def __init__(
        self,
        trains: Sequence[Sequence[NDArray]],
        functions: Sequence[Functions],
        dtype: DTypeLike,
        knots: Sequence[Callable[[np.dtype], NDArray | None]] | None = None,
    ) -> None:
        self._trains, self._functions, self._knots, self._dtype = trains, functions, knots, np.dtype(dtype)

    def astype(self, dtype: DTypeLike) -> TrainStack:
        """Return a stack that computes in another dtype; it is kept."""
        wanted = np.dtype(dtype)
        if wanted == self._dtype:
            return self
        if wanted not in self._others:
            self._others[wanted] = TrainStack(self._trains, self._functions, wanted, self._knots)
        return self._others[wanted]

    @cached_property
    def _others(self) -> dict[np.dtype, TrainStack]:
        return {}

    @cached_property
    def _by_blas(self) -> _Evaluator:
        return _StackedTrains(self._trains, self._functions, self._dtype)

    @cached_property
    def _compiled(self) -> _Evaluator:
        return _CompiledTrains(self._trains, self._functions, self._dtype, self._knots)

    @property
    def _evaluator(self) -> _Evaluator:
        return self._compiled if native.is_here() else self._by_blas

    @property
    def block_rows(self) -> int:
        """Rows that are evaluated at once; rounding depends on where blocks begin, and on nothing else."""
        return max(1, min(self._evaluator.block_rows, _BLOCK_SCORES // len(self._trains)))

    def evaluate(
        self, X: NDArray, to_columns: Callable[[NDArray], NDArray] = _transpose, n_threads: int = 1
    ) -> NDArray:
        """Evaluate all trains on rows X (N, d), block after block -> (n_trains, N).

        ``to_columns`` turns a block of rows into contiguous columns (d, rows).
        """
        evaluator = self._evaluator
        result = np.empty((len(self._trains), len(X)), dtype=self._dtype)
        size = self.block_rows
        starts = range(0, len(X), size)
        n_threads = max(1, min(n_threads, len(starts)))

        def evaluate_blocks(first: int) -> None:
            evaluate = evaluator.open(min(size, len(X)))
            for start in starts[first::n_threads]:
                rows = slice(start, start + size)
                evaluate(to_columns(X[rows]).astype(self._dtype, copy=False), result[:, rows])

        if n_threads == 1:
            evaluate_blocks(0)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(evaluate_blocks, range(n_threads)))  # the list makes an error in a thread surface here
        return result


class _Evaluator(ABC):
    """A way to evaluate trains."""

    #: Most rows at once.
    block_rows: int

    @abstractmethod
    def open(self, n_rows: int) -> Callable[[NDArray, NDArray], None]:
        """Return what evaluates up to so many rows: columns (d, rows), and where to write values (trains, rows)."""


class _CompiledTrains(_Evaluator):
    """By compiled kernels; columns with knots are not expanded into functions, as long as their tables are small."""

    block_rows = _COMPILED_ROWS

    def __init__(
        self,
        trains: Sequence[Sequence[NDArray]],
        functions: Sequence[Functions],
        dtype: np.dtype,
        knots: Sequence[Callable[[np.dtype], NDArray | None]] | None,
    ) -> None:
        tables = [None] * len(functions) if knots is None else [table(dtype) for table in knots]
        numbers = sum(
            len(table) * train[k].shape[0] * native.local_width(train[k].shape[2], dtype)
            for train in trains
            for k, table in enumerate(tables)
            if table is not None
        )
        if numbers * dtype.itemsize > _TABLE_BYTES:
            tables = [None] * len(functions)
        self._functions = [
            function if table is None else None for function, table in zip(functions, tables, strict=True)
        ]
        self._trains = native.Trains([[core.transpose(1, 0, 2) for core in train] for train in trains], tables, dtype)

    def open(self, n_rows: int) -> Callable[[NDArray, NDArray], None]:
        """No memory is needed."""

        def evaluate(columns: NDArray, out: NDArray) -> None:
            seen = [
                column[None] if function is None else function(column)
                for function, column in zip(self._functions, columns, strict=True)
            ]
            out[:] = self._trains.evaluate(seen)

        return evaluate


class _StackedTrains(_Evaluator):
    """By NumPy: core k of all trains is one stack of matrices. Ranks are padded with zeros."""

    def __init__(self, trains: Sequence[Sequence[NDArray]], functions: Sequence[Functions], dtype: np.dtype) -> None:
        self._functions, self._dtype, self._n_trains = functions, dtype, len(trains)
        self._dims = [core.shape[1] for core in trains[0]]
        # Core k of every train as a matrix (right rank, basis * left rank): it multiplies a Khatri-Rao product.
        self._matrices = []
        for cores in zip(*trains, strict=True):
            left_rank, right_rank = (max(core.shape[axis] for core in cores) for axis in (0, 2))
            stacked = np.zeros((len(trains), right_rank, cores[0].shape[1], left_rank), dtype=self._dtype)
            for padded, core in zip(stacked, cores, strict=True):
                padded[: core.shape[2], :, : core.shape[0]] = core.transpose(2, 1, 0)
            self._matrices.append(stacked.reshape(len(trains), right_rank, -1))
        largest = max(matrices[0].size for matrices in self._matrices)
        self.block_rows = min(_BLOCK_ROWS, max(_LEAST_BLOCK_ROWS, piece_rows(largest)))

    def open(self, n_rows: int) -> Callable[[NDArray, NDArray], None]:
        """Take memory for two spreads, flat: one is read while the other is written."""
        row_numbers = max(matrices.shape[2] for matrices in self._matrices)
        n_group = min(self._n_trains, max(1, _GROUP_BYTES // max(1, row_numbers * self._dtype.itemsize * n_rows)))
        size = n_group * row_numbers * n_rows
        spreads = np.empty(size, dtype=self._dtype), np.empty(size, dtype=self._dtype)

        def evaluate(columns: NDArray, out: NDArray) -> None:
            for some in range(0, self._n_trains, n_group):
                trains = slice(some, some + n_group)
                out[trains] = self._evaluate_block(columns, trains, spreads)

        return evaluate

    def _evaluate_block(self, columns: NDArray, trains: slice, spreads: tuple[NDArray, NDArray]) -> NDArray:
        """Evaluate some of the trains. Shapes: columns (d, rows) -> (trains, rows)."""
        m, n_rows = len(self._matrices[0][trains]), columns.shape[1]
        spread = spreads[0][: m * self._dims[0] * n_rows].reshape(m, self._dims[0], 1, n_rows)
        spread[:, 0] = 1
        following = (*self._dims[1:], 1)
        for k, (column, stacked, n_next) in enumerate(zip(columns, self._matrices, following, strict=True)):
            matrices = stacked[trains]
            values = self._functions[k](column)
            for i in range(1, self._dims[k]):
                np.multiply(spread[:, 0], values[i], out=spread[:, i])
            flat = spread.reshape(m, -1, n_rows)
            # The product is written to where the next spread begins.
            rank = matrices.shape[1]
            spread = spreads[(k + 1) % 2][: m * n_next * rank * n_rows].reshape(m, n_next, rank, n_rows)
            np.matmul(matrices, flat, out=spread[:, 0])
        return spread[:, 0, 0]
