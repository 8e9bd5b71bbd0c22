"""Tables of functions over points, many columns in a few arrays: how maps that are tables go into model files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pack_tables", "unpack_tables"]

# Points of one column; more would only serve to make a small file large.
_MOST_POINTS = 1 << 16


def pack_tables(points: Sequence[NDArray], weights: Sequence[NDArray], tables: Sequence[NDArray]) -> dict[str, NDArray]:
    """Put points (K,), weights (K,) and tables (n, K) of all columns one after another."""
    return {
        "size": np.array([table.shape for table in tables], dtype=np.int64),
        "points": np.concatenate(points),
        "weights": np.concatenate(weights),
        "table": np.concatenate([table.ravel() for table in tables]),
    }


def unpack_tables(arrays: dict[str, NDArray], count: int) -> list[tuple[NDArray, NDArray, NDArray]]:
    """Check and undo `pack_tables`: points, weights and table of every column."""
    kinds: dict[str, Any] = {"size": np.int64, "points": np.float64, "weights": np.float64, "table": np.float64}
    if arrays.keys() != kinds.keys() or any(arrays[name].dtype != kind for name, kind in kinds.items()):
        raise ValueError("the arrays of the maps are not as they should be.")
    size = arrays["size"]
    if size.shape != (count, 2) or (size < [[2, 1]]).any() or (size > _MOST_POINTS).any():
        raise ValueError("the sizes of the maps are not plausible.")
    n_points, areas = size[:, 1], size[:, 0] * size[:, 1]
    lengths = {"points": int(n_points.sum()), "weights": int(n_points.sum()), "table": int(areas.sum())}
    if any(arrays[name].shape != (length,) for name, length in lengths.items()):
        raise ValueError("the maps have more or fewer numbers than their sizes say.")
    if not all(np.isfinite(arrays[name]).all() for name in lengths):
        raise ValueError("the maps contain NaN or infinity.")
    cut = [np.split(arrays[name], np.cumsum(n_points)[:-1]) for name in ("points", "weights")]
    tables = np.split(arrays["table"], np.cumsum(areas)[:-1])
    found = []
    for points, weights, flat, shape in zip(*cut, tables, size.tolist(), strict=True):
        table = flat.reshape(shape)
        if not ((np.diff(points) > 0).all() and (weights >= 0).all() and (table[0] == 1).all()):
            raise ValueError("the points, weights or functions of the maps are not plausible.")
        if abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError("the weights of the maps do not sum to 1.")
        found.append((points.copy(), weights.copy(), table.copy()))
    return found
