"""Predictions of Dask collections stay lazy: one task per block of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.rows import lazy_blocks

__all__ = ["map_blocks"]


def map_blocks(function: Callable[[Any], NDArray], X: Any, like: NDArray) -> Any:
    """Apply a function with one entry or line per row to all rows; ``like`` has the type and width of its results."""
    import dask.array as da
    from dask import delayed

    blocks = lazy_blocks(X, "X", sizes_needed=False)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    lazy = delayed(partial(_of_block, function, like[:0]), pure=True)
    results = [
        da.from_delayed(lazy(block), shape=(size, *like.shape[1:]), dtype=like.dtype)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(results)


def _of_block(function: Callable[[Any], NDArray], nothing: NDArray, rows: Any) -> NDArray:
    """Results of a block, which may have no rows at all."""
    return function(rows) if len(rows) else nothing
