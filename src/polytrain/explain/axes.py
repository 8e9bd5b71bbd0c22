"""Values of a column at which its effect is worth showing, and how common they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import DateColumn
from polytrain.columns.cells import Cells
from polytrain.explain.view import ModelView
from polytrain.maps import CategoryMap, FeatureMap
from polytrain.maps.tabulated import TabulatedMap

__all__ = ["OTHER_LEVELS", "ColumnAxis", "column_axis", "value_text"]

#: What levels are called that the model does not know from each other.
OTHER_LEVELS = "other levels"


@dataclass(frozen=True)
class ColumnAxis:
    """Values of a column.

    ``grid`` (Q,) holds numbers, names of levels or dates, ``features`` the numbers (Q,) that each feature of the column
    has there, and ``parts`` (Q,) the part of the rows at each value, or next to it. ``missing`` are the numbers of a
    missing value, NaN or what stood for it, or None where the column has none.
    """

    kind: str
    grid: NDArray
    features: list[NDArray]
    parts: NDArray
    missing: list[float] | None = None
    missing_part: float = 0.0


def value_text(value: Any, digits: int = 4) -> str:
    """A number with a few digits, or the name of a level or date."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def column_axis(
    view: ModelView, column: int, size: int, rows: NDArray | None = None, weights: NDArray | None = None
) -> ColumnAxis:
    """Values of a column: all levels of a category, and at most ``size`` numbers or dates from end to end.

    ``rows`` (N, d) with weights (N,) that sum to 1 say how common they are; without them, the maps do.
    """
    group, levels = view.groups[column], view.levels(column)
    raw = None if rows is None or weights is None else (rows[:, group.start : group.stop], weights)
    first = view.maps[group[0]]
    if levels is not None or isinstance(first, CategoryMap):
        return _category_axis(first, levels, raw)
    date = view.column(column)
    if isinstance(date, DateColumn):
        return _date_axis(date, first, size, raw)
    grid = _number_grid(first, size, None if raw is None else raw[0][:, 0])
    parts, missing = _masses(grid, first, raw)
    return ColumnAxis("number", grid, [grid], parts, *_gap(first, 1, missing))


def _gap(first: FeatureMap, n_features: int, part: float) -> tuple[list[float] | None, float]:
    """Numbers of a missing value, or None if the column has none, and the share of rows with it."""
    return ([np.nan] * n_features, part) if part > 0 or first.has_missing else (None, 0.0)


def _number_grid(feature_map: FeatureMap, size: int, column: NDArray | None) -> NDArray:
    if isinstance(feature_map, TabulatedMap) and len(feature_map.points) <= size:
        return feature_map.points.copy()  # all that there are
    grid = feature_map.grid(size)
    if grid is not None:
        return grid
    known = np.zeros(1) if column is None else column[~np.isnan(column)]
    return np.linspace(known.min(), known.max(), size)


def _masses(grid: NDArray, feature_map: FeatureMap, raw: tuple[NDArray, NDArray] | None) -> tuple[NDArray, float]:
    """Part of the rows next to every value of a grid, and the part whose value is missing."""
    if raw is not None:
        values, weights = raw[0][:, 0], raw[1]
    elif isinstance(feature_map, TabulatedMap):
        values, weights = feature_map.points, (1.0 - feature_map.missing_weight) * feature_map.weights
        values, weights = np.append(values, np.nan), np.append(weights, feature_map.missing_weight)
    else:  # even
        return np.full(len(grid), 1.0 / len(grid)), 0.0
    gone = np.isnan(values)
    nearest = np.searchsorted(grid[:-1] / 2 + grid[1:] / 2, values[~gone])
    return np.bincount(nearest, weights[~gone], minlength=len(grid)), float(weights[gone].sum())


def _category_axis(
    feature_map: FeatureMap, levels: tuple[str, ...] | None, raw: tuple[NDArray, NDArray] | None
) -> ColumnAxis:
    is_map = isinstance(feature_map, CategoryMap)
    codes = feature_map.points if isinstance(feature_map, CategoryMap) else np.arange(len(levels or ()), dtype=float)
    names = [_level_name(code, levels) for code in codes.tolist()]
    parts: NDArray
    if raw is None and isinstance(feature_map, CategoryMap):
        parts, missing = (1.0 - feature_map.missing_weight) * feature_map.weights, feature_map.missing_weight
    elif raw is None:
        parts, missing = _masses(codes, feature_map, None)
    else:
        values, weights = raw[0][:, 0], raw[1]
        gone = np.isnan(values)
        known = values[~gone]
        places = feature_map.place(known) if is_map else np.where(known < 0, len(codes), known)
        parts = np.bincount(places.astype(np.intp), weights[~gone], minlength=len(codes) + 1)
        missing = float(weights[gone].sum())
        if parts[-1] > 0:
            names.append(OTHER_LEVELS)
            codes = np.append(codes, codes.max() + 1.0 if levels is None else -1.0)
        parts = parts[: len(codes)]
    return ColumnAxis("category", np.array(names, dtype=object), [codes], parts, *_gap(feature_map, 1, missing))


def _level_name(code: float, levels: tuple[str, ...] | None) -> str:
    if levels is None:
        return f"{code:g}"
    return levels[int(code)] if 0 <= code < len(levels) else OTHER_LEVELS


def _date_axis(date: DateColumn, first: FeatureMap, size: int, raw: tuple[NDArray, NDArray] | None) -> ColumnAxis:
    """Dates from end to end, with the parts that belong to each."""
    days = _number_grid(first, size, None if raw is None else raw[0][:, 0])
    unit = ("m", 1440.0) if "hour" in date.parts else ("D", 1.0)
    dates = np.unique(np.rint(days * unit[1])).astype(np.int64).astype(f"datetime64[{unit[0]}]")
    features = date.encode(Cells.of_array(date.name, dates))
    parts, missing = _masses(features[0], first, raw)
    return ColumnAxis("date", dates, features, parts, *_gap(first, len(features), missing))
