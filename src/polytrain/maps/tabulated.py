"""What maps have in common whose functions are a table over points of the column."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.maps.feature_map import ColumnSummary, FeatureMap, MapSettings

__all__ = ["TabulatedMap", "mean_values", "pack_tables", "row_parts", "unpack_tables", "with_value"]

# Points of one column; more would only serve to make a small file large.
_MOST_POINTS = 1 << 16
# Numbers in tables. Functions have the size of their prior; float32 has room for many times this one.
_LARGEST = 1e30
_N_EXTREMES = 8


@dataclass(frozen=True, eq=False, repr=False)
class TabulatedMap(FeatureMap):
    """Functions at some points, fitted to the values of a column.

    Parameters
    ----------
    points : ndarray of shape (K,)
        Values of the column, in order.
    weights : ndarray of shape (K,)
        Part of the rows at each of them.
    table : ndarray of shape (n, K)
        Functions at the points, the first of them 1, the others of mean 0 over all rows and with the size of their
        prior.
    missing : ndarray of shape (n,)
        Functions where the value is missing (NaN): those of the mean, (1, 0, ..., 0), if none was in training.
    missing_weight : float
        Part of the rows whose value is missing; ``weights`` are parts of the others.
    """

    needs_values: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True

    points: NDArray
    weights: NDArray
    table: NDArray
    missing: NDArray
    missing_weight: float

    def __post_init__(self) -> None:
        for array in (self.points, self.weights, self.table, self.missing):
            array.setflags(write=False)

    @property
    @abstractmethod
    def missing_place(self) -> int:
        """Coordinate of missing values, beyond those of all others."""

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of functions, the constant included."""
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    def __repr__(self) -> str:
        low, high = self.range
        gaps = f", missing={self.missing_weight:.3g}" if self.has_missing else ""
        points = f"points={len(self.points)} in [{low:g}, {high:g}]"
        return f"{type(self).__name__}(basis={self.basis!r}, n={self.n}, {points}{gaps})"

    def __hash__(self) -> int:
        return hash((self.points.tobytes(), self.table.tobytes(), self.missing.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # not what is computed from them

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()  # pickles forget that arrays are read-only

    @property
    def has_missing(self) -> bool:
        """Whether values were missing in training."""
        return self.missing_weight > 0

    def growth(self, before: MapSettings, after: MapSettings) -> NDArray:
        """All functions have the size of the prior, unless a kind says otherwise."""
        return np.append(1.0, np.full(self.n - 1, after.size / before.size))

    def grown(self, factors: NDArray) -> Self:
        """Return the map whose functions are multiplied by these numbers, the first of them 1."""
        return replace(self, table=factors[:, None] * self.table, missing=factors * self.missing)

    @property
    def prior(self) -> NDArray:
        """Standard deviation of each function over the rows; 1 for the constant."""
        squares = (1.0 - self.missing_weight) * (np.square(self.table[1:]) @ self.weights)
        return np.sqrt(np.concatenate([[1.0], squares + self.missing_weight * np.square(self.missing[1:])]))

    @property
    def range(self) -> tuple[float, float]:
        """First and last point."""
        return float(self.points[0]), float(self.points[-1])

    def measure(self) -> tuple[NDArray, NDArray]:
        """The distribution of the column in the training rows, at the points and where the value is missing."""
        places = np.arange(len(self.points), dtype=np.float64)
        if not self.missing_weight:
            return places, self.weights
        weights = np.append((1.0 - self.missing_weight) * self.weights, self.missing_weight)
        return np.append(places, self.missing_place), weights

    @property
    def bound(self) -> float:
        """The largest number of the tables."""
        return max(float(np.abs(self.table).max()), float(np.abs(self.missing).max()))

    def extremes(self) -> NDArray:
        """Points where some function is large, and the missing value."""
        largest = np.abs(self.table).max(axis=0)
        return np.column_stack([self.table[:, np.argsort(-largest)[:_N_EXTREMES]], self.missing])

    def _place_missing(self, column: NDArray, places: NDArray) -> NDArray:
        """Mark in coordinates of a column where it is missing; they get the dtype of the column."""
        places = places.astype(column.dtype, copy=False)
        missing = np.isnan(column)
        if missing.any():
            places[missing] = self.missing_place
        return places


def mean_values(n: int) -> NDArray:
    """Functions where nothing is known: all but the constant have their mean, 0."""
    return np.eye(1, n)[0]


def with_value(column: ColumnSummary) -> ColumnSummary:
    """Give a column that has no value at all one, of no weight: maps need a point."""
    if len(column.values):
        return column
    value = column.low if np.isfinite(column.low) else 0.0
    return replace(column, values=np.array([value]), weights=np.zeros(1))


def row_parts(weights: NDArray, missing: float) -> tuple[NDArray, float]:
    """Weights as parts of the rows that are not missing, and the part of all rows that is."""
    total = float(weights.sum())
    if total > 0:
        return weights / total, float(missing / (total + missing))
    return np.full(len(weights), 1.0 / len(weights)), float(missing > 0)


def pack_tables(maps: Sequence[TabulatedMap]) -> dict[str, NDArray]:
    """Put points, weights and tables of all columns one after another, and missing values if some column has any."""
    arrays = {
        "size": np.array([m.table.shape for m in maps], dtype=np.int64),
        "points": np.concatenate([m.points for m in maps]),
        "weights": np.concatenate([m.weights for m in maps]),
        "table": np.concatenate([m.table.ravel() for m in maps]),
    }
    if any(m.missing_weight > 0 or m.missing[1:].any() for m in maps):
        arrays["missing"] = np.concatenate([m.missing for m in maps])
        arrays["missing_weight"] = np.array([m.missing_weight for m in maps])
    return arrays


def unpack_tables(arrays: dict[str, NDArray], count: int) -> list[tuple[NDArray, NDArray, NDArray, NDArray, float]]:
    """Check and undo `pack_tables`: the fields of every column's `TabulatedMap`."""
    kinds: dict[str, Any] = {"size": np.int64, "points": np.float64, "weights": np.float64, "table": np.float64}
    if "missing" in arrays:
        kinds |= {"missing": np.float64, "missing_weight": np.float64}
    if arrays.keys() != kinds.keys() or any(arrays[name].dtype != kind for name, kind in kinds.items()):
        raise ValueError("the arrays of the maps are not as they should be.")
    size = arrays["size"]
    if size.shape != (count, 2) or (size < [[2, 1]]).any() or (size > _MOST_POINTS).any():
        raise ValueError("the sizes of the maps are not plausible.")
    n_functions, n_points = size.T
    if (n_functions > n_points + 2).any():  # one for each point, the constant, and one for missing values
        raise ValueError("the maps have more functions than points could tell apart.")
    parts = {"points": n_points, "weights": n_points, "table": n_functions * n_points, "missing": n_functions}
    given = {name: lengths for name, lengths in parts.items() if name in arrays}
    if any(arrays[name].shape != (int(lengths.sum()),) for name, lengths in given.items()):
        raise ValueError("the maps have more or fewer numbers than their sizes say.")
    if not all(np.isfinite(arrays[name]).all() for name in given):
        raise ValueError("the maps contain NaN or infinity.")
    if any(np.abs(arrays[name]).max() > _LARGEST for name in ("table", "missing") if name in arrays):
        raise ValueError(f"the functions of the maps should not exceed {_LARGEST:g}.")
    cut = {name: np.split(arrays[name], np.cumsum(lengths)[:-1]) for name, lengths in given.items()}
    gaps = cut.get("missing", [mean_values(n) for n in n_functions.tolist()])
    gap_weights = arrays.get("missing_weight", np.zeros(count))
    if gap_weights.shape != (count,) or not ((gap_weights >= 0) & (gap_weights <= 1)).all():
        raise ValueError("the weights of missing values in the maps are not plausible.")
    found = []
    for points, weights, flat, shape, gap, gap_weight in zip(
        cut["points"], cut["weights"], cut["table"], size.tolist(), gaps, gap_weights.tolist(), strict=True
    ):
        table = flat.reshape(shape)
        if not ((points[1:] > points[:-1]).all() and (weights >= 0).all() and (table[0] == 1).all() and gap[0] == 1):
            raise ValueError("the points, weights or functions of the maps are not plausible.")
        if abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError("the weights of the maps do not sum to 1.")
        found.append((points.copy(), weights.copy(), table.copy(), gap.copy(), gap_weight))
    return found
