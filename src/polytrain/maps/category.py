"""Categories, given by numbers: levels that have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.maps.feature_map import ColumnSummary, FeatureMap, MapSettings
from polytrain.maps.karhunen_loeve import eigenfunctions, level_kernel
from polytrain.maps.packing import pack_tables, unpack_tables
from polytrain.writing import CWriter, GraphWriter

__all__ = ["CategoryMap"]

# Levels beyond these, the rarest ones, are as good as unknown.
_MOST_LEVELS = 256


@dataclass(frozen=True, eq=False)
class CategoryMap(FeatureMap):
    """One core for a column of categories, which are given by numbers; a level that was never seen is the mean.

    Parameters
    ----------
    levels : ndarray of shape (L,)
        Numbers of the categories, in order.
    weights : ndarray of shape (L,)
        Part of the rows in each.
    table : ndarray of shape (n, L)
        Functions of the levels, the first of them 1, the others of mean 0.

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
    needs_values: ClassVar[bool] = True

    levels: NDArray
    weights: NDArray
    table: NDArray

    def __post_init__(self) -> None:
        for array in (self.levels, self.weights, self.table):
            array.setflags(write=False)

    @classmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        """Take the most frequent levels and find functions that tell them apart."""
        kept = np.sort(np.argsort(-column.weights, kind="stable")[:_MOST_LEVELS])
        levels, weights = column.values[kept], column.weights[kept] / column.weights[kept].sum()
        functions = eigenfunctions(level_kernel(levels), weights)
        return cls(levels, weights, np.vstack([np.ones(len(levels)), settings.size * functions]))

    @property
    def basis(self) -> str:  # type: ignore[override]
        """There is only one."""
        return "category"

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of functions, the constant included."""
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CategoryMap) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("levels", "weights", "table")
        )

    def __hash__(self) -> int:
        return hash((self.levels.tobytes(), self.table.tobytes()))

    @property
    def prior(self) -> NDArray:
        """Standard deviation of each function over the rows; 1 for the constant."""
        return np.sqrt(np.concatenate([[1.0], np.square(self.table[1:]) @ self.weights]))

    def place(self, column: NDArray) -> NDArray:
        """Index of the level, or one more than there are for any other number."""
        index = np.minimum(np.searchsorted(self.levels, column), len(self.levels) - 1)
        known = self.levels[index].astype(column.dtype) == column
        return np.where(known, index, len(self.levels)).astype(column.dtype)

    def values(self, x: NDArray, out: NDArray | None = None) -> NDArray:
        """Look the levels up."""
        return np.take(self._tables[x.dtype.char], x.astype(np.intp), axis=1, out=out, mode="clip")

    @cached_property
    def _tables(self) -> dict[str, NDArray]:
        """The table, with the mean for levels that are not known at its end, in both compute dtypes."""
        table = np.hstack([self.table, np.eye(1, self.n).T])
        return {char: table.astype(char) for char in "df"}

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("levels", "weights", "table")}

    @property
    def range(self) -> tuple[float, float]:
        """Least and largest level."""
        return float(self.levels[0]), float(self.levels[-1])

    def grid(self, size: int) -> NDArray:
        """All levels."""
        return self.levels

    def measure(self) -> tuple[NDArray, NDArray]:
        """The levels as often as in the training rows."""
        return np.arange(len(self.levels), dtype=np.float64), self.weights

    @classmethod
    def pack(cls, maps: Sequence[Self]) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The tables."""
        return {}, pack_tables([m.levels for m in maps], [m.weights for m in maps], [m.table for m in maps])

    @classmethod
    def unpack(cls, entries: dict[str, Any], arrays: dict[str, NDArray], count: int) -> list[Self]:
        """Check and undo `pack`."""
        if entries:
            raise ValueError("the category maps should have no entries.")
        return [cls(*m) for m in unpack_tables(arrays, count)]

    @classmethod
    def add_to_graph(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> list[str]:
        """Compare with all levels, and multiply with the tables."""
        n_levels, n = max(len(m.levels) for m in maps), max(m.n for m in maps)
        levels = np.full((len(maps), 1, n_levels), np.nan)  # nothing equals these
        tables = np.zeros((len(maps), n_levels, n - 1))
        for k, m in enumerate(maps):
            levels[k, 0, : len(m.levels)] = m.levels
            tables[k, : len(m.levels), : m.n - 1] = m.table[1:].T
        lifted = graph.add("Unsqueeze", columns, graph.constant([2], np.int64))  # (d, N, 1)
        equal = graph.cast(graph.add("Equal", lifted, graph.constant(levels)), np.float64)
        values = graph.add("MatMul", equal, graph.constant(tables))  # (d, N, n - 1)
        return [graph.add("Gather", values, graph.constant(i, np.int64), axis=2) for i in range(n - 1)]

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        """Search the levels."""
        first = np.cumsum([0, *(len(m.levels) for m in maps)])
        begin = np.cumsum([0, *(m.table.size for m in maps)])[:-1]
        return f"""/* Columns of categories: where their levels and their functions [level][function] begin. */
{writer.integers("category_first", first)}
{writer.integers("category_begin", begin)}
{writer.integers("category_dims", [m.n for m in maps])}
{writer.table("category_levels", np.concatenate([m.levels for m in maps]))}
{writer.table("category_functions", np.concatenate([m.table.T.ravel() for m in maps]))}

static void category_values(REAL value, int k, REAL *phi)
{{
    const int n = category_dims[k];
    phi[0] = 1;
    for (int i = 1; i < n; i++) phi[i] = 0;
    for (int c = category_first[k]; c < category_first[k + 1]; c++)
        if (value >= category_levels[c] && value <= category_levels[c]) {{
            const REAL *here = category_functions + category_begin[k] + (c - category_first[k]) * n;
            for (int i = 1; i < n; i++) phi[i] = here[i];
        }}
}}
"""
