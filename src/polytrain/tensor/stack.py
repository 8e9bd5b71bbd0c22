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

#: Values (N,) of one feature -> values (n, N) of its functions.
Functions = Callable[[Array], Array]
#: A dtype -> the functions of one feature at its knots, (knots + 1, n), or None if it has no knots.
Knots = Callable[[np.dtype[Any]], Array | None]

# Rows per block: few enough for its arrays to stay in cache. Compiled kernels sort them by knots, so that a block must
# have many more rows than there are knots.
_PLAIN_ROWS, _COMPILED_ROWS = 1000, 4000
# Scores of all trains on one block.
_BLOCK_SCORES = 1 << 24
# Bytes of all tables at knots, so that a small model stays small.
_TABLE_BYTES = 64 << 20


class TrainStack:
    """Trains of equal dimensions, whose ranks may differ, evaluated together.

    The first of the ``functions`` of each feature is 1. With ``knots``, feature values are positions among the knots.
    """

    def __init__(
        self, trains: Sequence[Sequence[Array]], functions: Sequence[Functions], knots: Sequence[Knots] = ()
    ) -> None:
        self._trains, self._functions, self._knots = trains, functions, knots
        self._prepared: dict[tuple[np.dtype[Any], bool], Callable[[Array], Array]] = {}

    def block_rows(self) -> int:
        """Rows that are evaluated at once; rounding depends only on the boundaries of blocks."""
        return max(1, min(_COMPILED_ROWS if native.is_here() else _PLAIN_ROWS, _BLOCK_SCORES // len(self._trains)))

    def evaluate(
        self,
        X: Array,
        to_columns: Callable[[Array], Array] = np.transpose,
        n_threads: int = 1,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """Evaluate all trains on rows X (N, d), block after block, in ``dtype`` or that of X -> (n_trains, N).

        ``to_columns`` turns a block of rows into columns (d, rows).
        """
        dtype = X.dtype if dtype is None else np.dtype(dtype)
        key, size = (dtype, native.is_here()), self.block_rows()
        if key not in self._prepared:
            self._prepared[key] = self._compiled(dtype) if native.is_here() else self._plain(dtype)
        scores, result = self._prepared[key], np.empty((len(self._trains), len(X)), dtype=dtype)

        def evaluate_block(start: int) -> None:
            rows = slice(start, start + size)
            result[:, rows] = scores(np.ascontiguousarray(to_columns(X[rows]), dtype=dtype))

        starts = range(0, len(X), size)
        if n_threads == 1 or len(starts) < 2:
            for start in starts:
                evaluate_block(start)
        else:
            with ThreadPoolExecutor(min(n_threads, len(starts))) as pool:
                list(pool.map(evaluate_block, starts))  # the list raises errors of threads here
        return result

    def _compiled(self, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
        """By compiled kernels. Columns with knots are not expanded into functions as long as their tables are small."""
        none = [None] * len(self._functions)
        tables = [table(dtype) for table in self._knots] or none
        n_numbers = sum(
            len(table) * train[k].shape[0] * native.local_width(train[k].shape[2], dtype)
            for train in self._trains
            for k, table in enumerate(tables)
            if table is not None
        )
        if n_numbers * dtype.itemsize > _TABLE_BYTES:
            tables = none
        trains = native.Trains([[core.transpose(1, 0, 2) for core in train] for train in self._trains], tables, dtype)

        def scores(columns: Array) -> Array:
            sites = zip(self._functions, tables, columns, strict=True)
            return trains.evaluate(
                [function(column) if table is None else column[None] for function, table, column in sites]
            )

        return scores

    def _plain(self, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
        """By NumPy, one train after another."""
        # Every core as a matrix (right rank, basis * left rank): it multiplies a Khatri-Rao product.
        trains = [
            [core.transpose(2, 1, 0).reshape(core.shape[2], -1).astype(dtype) for core in train]
            for train in self._trains
        ]

        def scores(columns: Array) -> Array:
            values = [function(column) for function, column in zip(self._functions, columns, strict=True)]
            out = np.empty((len(trains), columns.shape[1]), dtype=dtype)
            for train, own in zip(trains, out, strict=True):
                left = np.ones_like(columns[:1])
                for matrix, of_column in zip(train, values, strict=True):
                    left = matrix @ khatri_rao(left, of_column)
                own[:] = left[0]
            return out

        return scores
