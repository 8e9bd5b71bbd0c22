"""Trains of equal dimensions, evaluated together on many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from polytrain import native
from polytrain.arrays import Array
from polytrain.tensor.thin_products import khatri_rao

__all__ = ["TrainStack"]

#: Values (N,) of one feature -> values (n, N) of its functions.
Functions = Callable[[Array], Array]
#: A dtype -> the functions of one feature at its knots, (knots + 1, n), or None if it has no knots.
Knots = Callable[[np.dtype[Any]], Array | None]

# Scores of all trains on one block.
_BLOCK_SCORES = 1 << 24
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
        self._evaluators: dict[tuple[np.dtype[Any], bool], _CompiledTrains | _PlainTrains] = {}

    def _evaluator(self, dtype: np.dtype[Any]) -> _CompiledTrains | _PlainTrains:
        key = dtype, native.is_here()
        if key not in self._evaluators:
            kind = _CompiledTrains if native.is_here() else _PlainTrains
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

    # Kernels sort the rows of a block by knots, so a block must have many more rows than there are knots.
    block_rows = 4000

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


class _PlainTrains:
    """NumPy, one train after another."""

    # Few enough for the arrays of a block to stay in cache.
    block_rows = 1000

    def __init__(
        self, trains: Sequence[Sequence[Array]], functions: Sequence[Functions], knots: object, dtype: np.dtype[Any]
    ) -> None:
        self._functions = functions
        # Every core as a matrix (right rank, basis * left rank): it multiplies a Khatri-Rao product.
        self._trains = [
            [core.transpose(2, 1, 0).reshape(core.shape[2], -1).astype(dtype) for core in train] for train in trains
        ]

    def evaluate(self, columns: Array, out: Array) -> None:
        """Write the values of all trains. Shapes: columns (d, rows), out (trains, rows)."""
        values = [function(column) for function, column in zip(self._functions, columns, strict=True)]
        for train, scores in zip(self._trains, out, strict=True):
            left = np.ones_like(columns[:1])
            for matrix, of_column in zip(train, values, strict=True):
                left = matrix @ khatri_rao(left, of_column)
            scores[:] = left[0]
