"""Values of a column at which its effect is shown, and how common they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import DateColumn
from polytrain.columns.cells import Cells
from polytrain.explain.sites import ColumnMeasure
from polytrain.explain.view import ModelView
from polytrain.maps import CategoryMap, FeatureMap
from polytrain.maps.tabulated import TabulatedMap

__all__ = ["ColumnAxis", "column_axis", "encode_dates", "number_grid", "value_text"]

# Name of the levels that the model does not tell apart.
_OTHER_LEVELS = "other levels"


@dataclass(frozen=True)
class ColumnAxis:
    """Values of a column.

    ``grid`` (Q,) holds numbers, names of levels or dates, ``features`` the numbers (Q,) of each feature of the column,
    and ``parts`` (Q,) the share of the rows nearest to each value. ``missing_part`` is the share of missing values, or
    None where the column has none.
    """

    kind: str
    grid: NDArray
    features: list[NDArray]
    parts: NDArray
    missing_part: float | None


def value_text(value: Any, digits: int = 4) -> str:
    """A number with a few digits, or the name of a level or date."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def column_axis(view: ModelView, measure: ColumnMeasure, column: int, size: int) -> ColumnAxis:
    """Values of a column: all levels of a category, and at most ``size`` numbers or dates from end to end."""
    feature, kind, levels = view.groups[column][0], view.column(column), view.levels(column)
    feature_map = view.maps[feature]
    if isinstance(feature_map, CategoryMap):
        features = [feature_map.points]
    elif levels is not None:
        features = [np.arange(len(levels), dtype=float)]
    else:
        features = [number_grid(measure, feature, size)]
    grid, name = features[0], "number"
    if isinstance(kind, DateColumn):
        unit, per_day = ("m", 1440.0) if "hour" in kind.parts else ("D", 1.0)
        grid = np.unique(np.rint(grid * per_day)).astype(np.int64).astype(f"datetime64[{unit}]")
        features, name = encode_dates(kind, grid), "date"
    values, weights = _distribution(measure, feature, features[0])
    present = ~np.isnan(values)
    missing = float(weights[~present].sum())
    missing_part = missing if missing > 0 or feature_map.has_missing else None
    values, weights = values[present], weights[present]
    if levels is not None or isinstance(feature_map, CategoryMap):
        return ColumnAxis("category", *_level_parts(feature_map, levels, features[0], values, weights), missing_part)
    nearest = np.searchsorted(features[0][:-1] / 2 + features[0][1:] / 2, values)
    return ColumnAxis(name, grid, features, np.bincount(nearest, weights, minlength=len(grid)), missing_part)


def encode_dates(column: DateColumn, dates: NDArray) -> list[NDArray]:
    """Numbers (Q,) of each feature of a column of dates."""
    return column.encode(Cells.of_array(column.name, dates))


def number_grid(measure: ColumnMeasure, feature: int, size: int) -> NDArray:
    """At most ``size`` values of a feature from end to end; all of them where there are few."""
    feature_map = measure.maps[feature]
    if isinstance(feature_map, TabulatedMap) and len(feature_map.points) <= size:
        return feature_map.points.copy()
    grid = feature_map.grid(size)
    if grid is None and measure.rows is not None:  # without rows, a map without a range has no measure either
        grid = np.linspace(measure.rows[:, feature].min(), measure.rows[:, feature].max(), size)
    return np.zeros(1) if grid is None else grid


def _distribution(measure: ColumnMeasure, feature: int, grid: NDArray) -> tuple[NDArray, NDArray]:
    """Values of a feature, NaN where one is missing, and their weights; the grid evenly if only a range is known."""
    feature_map = measure.maps[feature]
    if measure.rows is not None:
        return measure.rows[:, feature], measure.features[feature][1]
    if isinstance(feature_map, TabulatedMap):
        missing = feature_map.missing_weight
        return np.append(feature_map.points, np.nan), np.append((1.0 - missing) * feature_map.weights, missing)
    return grid, np.full(len(grid), 1.0 / len(grid))


def _level_parts(
    feature_map: FeatureMap, levels: tuple[str, ...] | None, codes: NDArray, values: NDArray, weights: NDArray
) -> tuple[NDArray, list[NDArray], NDArray]:
    """Names of the levels, their codes, and the share of the rows in each."""
    names = [_level_name(code, levels) for code in codes.tolist()]
    is_map = isinstance(feature_map, CategoryMap)
    places = feature_map.place(values) if is_map else np.where(values < 0, len(codes), values)
    parts = np.bincount(places.astype(np.intp), weights, minlength=len(codes) + 1)
    if parts[-1] > 0:
        names.append(_OTHER_LEVELS)
        codes = np.append(codes, codes.max() + 1.0 if levels is None else -1.0)
    return np.array(names, dtype=object), [codes], parts[: len(codes)]


def _level_name(code: float, levels: tuple[str, ...] | None) -> str:
    if levels is None:
        return f"{code:g}"
    return levels[int(code)] if 0 <= code < len(levels) else _OTHER_LEVELS
