"""Categories, given by numbers: levels without any order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from polytrain.arrays import FloatArray
from polytrain.export_writers import CWriter, GraphWriter
from polytrain.maps.column_functions import eigenfunctions
from polytrain.maps.feature_map import ColumnSummary, MapSettings
from polytrain.maps.tabulated import TabulatedMap, mean_values, row_parts

__all__ = ["MOST_LEVELS", "CategoryMap"]

#: Levels beyond these, the rarest ones, are treated as unknown. All others are distinguished: equally frequent levels
#: have equal variances, and any choice among their functions would depend on rounding.
MOST_LEVELS = 64
_SEARCH = """        if (category_single[k] && ((float)value < 0 || (float)value > 0)) value = (float)value;
        at = 0;
        while (at <= last && !(value >= points[at] && value <= points[at])) at++;"""


@dataclass(frozen=True, eq=False, repr=False)
class CategoryMap(TabulatedMap):
    """One core for a column of categories, which are given by numbers; a level that was never seen is the mean.

    All levels have the same prior: so have the differences between any two of them, however rare they are. Levels with
    few rows therefore stay close to the mean.

    Parameters
    ----------
    points, weights, table, missing, missing_weight, basis
        The levels, in order, the part of the rows in each, and the functions of the levels; see `TabulatedMap`. A
        missing value is a level like others.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.maps import CategoryMap, ColumnSummary, MapSettings
    >>> column = ColumnSummary(0.0, 7.0, np.array([0.0, 3.0, 7.0]), np.array([5.0, 3.0, 2.0]))
    >>> colours = CategoryMap.fit(MapSettings("category"), column)
    >>> colours.n
    3
    >>> bool((colours.values(colours.place(np.array([4.0])))[1:] == 0).all())
    True
    """

    kind: ClassVar[str] = "category"
    bases: ClassVar[tuple[str, ...]] = ("category",)
    n_unknown: ClassVar[int] = 1

    @classmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        column = column.with_value()
        kept = np.sort(np.argsort(-column.weights, kind="stable")[:MOST_LEVELS])
        levels, (weights, part) = column.values[kept], row_parts(column.weights[kept], column.missing)
        parts = np.concatenate([[part], (1.0 - part) * weights]) if part else weights
        # Levels of equal weight leave the choice among their functions to rounding, which must not depend on the unit
        # of the weights.
        parts = np.round(parts, 12)
        functions = eigenfunctions(np.eye(len(parts)), parts, variance_kept=1.0, most=len(parts))
        table = np.vstack([np.ones(len(parts)), settings.size * _evenness(parts) * functions])
        missing = table[:, 0].copy() if part else mean_values(len(table))
        return cls(levels, weights, table[:, bool(part) :].copy(), missing, part, settings.basis)

    def place(self, column: FloatArray) -> FloatArray:
        """Index of the level; one more than there are for any other number, and two more for NaN."""
        levels, values = self._comparable(self.points), self._comparable(column)
        index = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
        return self._place_missing(column, np.where(levels[index] == values, index, len(levels)))

    @cached_property
    def _single(self) -> bool:
        """Whether levels differ in float32 too: then 0.1 is the same level in float32 and in float64."""
        with np.errstate(over="ignore", under="ignore"):
            single = self.points.astype(np.float32)
        within = np.isfinite(single) & ((single != 0) == (self.points != 0))
        return bool(within.all() and (single[1:] > single[:-1]).all())

    def _comparable(self, values: FloatArray) -> FloatArray:
        values = values.astype(np.float64, copy=False)
        if not self._single:
            return values
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rounded = values.astype(np.float32).astype(np.float64)
        # A tiny number that would be rounded to 0 is not the level 0.
        return np.where(rounded == 0, values, rounded)

    def values(self, x: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return np.take(self._knots[x.dtype.char].T, x.astype(np.intp), axis=1, out=out, mode="clip")

    def grid(self, size: int) -> FloatArray:
        return self.points

    @property
    def _compared(self) -> FloatArray:
        return self._comparable(self.points)

    @classmethod
    def _add_places(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> str:
        """Compare with all levels, and add up what their indices are less than that of other numbers."""
        n_levels = max(len(m.points) for m in maps)
        levels = np.full((len(maps), 1, n_levels), np.nan)  # nothing equals these
        steps = np.zeros((len(maps), n_levels, 1))
        for k, m in enumerate(maps):
            levels[k, 0, : len(m.points)] = m._compared
            steps[k, : len(m.points), 0] = np.arange(-len(m.points), 0)
        rounded = graph.cast(graph.cast(columns, np.float32), np.float64)
        single = graph.constant(np.array([[m._single] for m in maps]))
        rounds = graph.add("And", single, graph.cast(rounded, np.bool_))
        compared = graph.add("Where", rounds, rounded, columns)
        axis = graph.constant([2], np.int64)
        equal = graph.add("Equal", graph.add("Unsqueeze", compared, axis), graph.constant(levels))
        step = graph.add("MatMul", graph.cast(equal, np.float64), graph.constant(steps))
        unknown = graph.constant(np.array([[float(len(m.points))] for m in maps]))
        return graph.add("Add", graph.add("Squeeze", step, axis), unknown)

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        single = writer.integers("category_single", [int(m._single) for m in maps])
        return f"{single}\n{cls._c_lookup(maps, writer, _SEARCH)}"


def _evenness(parts: FloatArray) -> float:
    """Standard deviation of unrelated levels, in units of that of equally frequent ones.

    Eigenfunctions have variance 1 over the rows. Where nearly all rows share one level, this would let the others have
    effects that grow without bound as they get rarer, and leave no shrinking. With this factor, functions are those of
    levels with effects of equal variance, which depends on the number of levels alone.
    """
    return math.sqrt(max(1.0 - float(parts @ parts), 0.0) * len(parts) / max(len(parts) - 1, 1))
