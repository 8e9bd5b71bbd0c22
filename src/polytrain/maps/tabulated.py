"""What maps have in common whose functions are a table over points of the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polytrain.maps.feature_map import FeatureMap

__all__ = ["TabulatedMap", "pack_tables", "unpack_tables"]

# Points of one column; more would only serve to make a small file large.
_MOST_POINTS = 1 << 16


@dataclass(frozen=True, eq=False)
class TabulatedMap(FeatureMap):
    """Functions at some points, fitted to the values of a column.

    Parameters
    ----------
    points : ndarray of shape (K,)
        Values of the column, in order.
    weights : ndarray of shape (K,)
        Part of the rows at each of them.
    table : ndarray of shape (n, K)
        Functions at the points, the first of them 1, the others of mean 0 and with the size of their prior.
    """

    needs_values: ClassVar[bool] = True

    points: NDArray
    weights: NDArray
    table: NDArray

    def __post_init__(self) -> None:
        for array in (self.points, self.weights, self.table):
            array.setflags(write=False)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of functions, the constant included."""
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.points.tobytes(), self.table.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # not what is computed from them

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()  # pickles forget that arrays are read-only

    @property
    def prior(self) -> NDArray:
        """Standard deviation of each function over the rows; 1 for the constant."""
        return np.sqrt(np.concatenate([[1.0], np.square(self.table[1:]) @ self.weights]))

    @property
    def range(self) -> tuple[float, float]:
        """First and last point."""
        return float(self.points[0]), float(self.points[-1])

    def measure(self) -> tuple[NDArray, NDArray]:
        """The distribution of the column in the training rows, at the points."""
        return np.arange(len(self.points), dtype=np.float64), self.weights


def pack_tables(maps: Sequence[TabulatedMap]) -> dict[str, NDArray]:
    """Put points, weights and tables of all columns one after another."""
    return {
        "size": np.array([m.table.shape for m in maps], dtype=np.int64),
        "points": np.concatenate([m.points for m in maps]),
        "weights": np.concatenate([m.weights for m in maps]),
        "table": np.concatenate([m.table.ravel() for m in maps]),
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
