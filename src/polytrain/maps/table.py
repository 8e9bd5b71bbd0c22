"""Functions of a column in a table over knots, with straight lines in between: they suit the column's own values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.maps.feature_map import ColumnSummary, MapSettings
from polytrain.maps.karhunen_loeve import eigenfunctions, gauss_kernel, spline_kernel
from polytrain.maps.tabulated import TabulatedMap, pack_tables, unpack_tables
from polytrain.writing import CWriter, GraphWriter

__all__ = ["TableMap"]

_KERNELS = {"spline": spline_kernel, "gauss": gauss_kernel}
_MOST_KNOTS = 128
_HUGE, _TINY = 1e307, 1e-305


@dataclass(frozen=True, eq=False)
class TableMap(TabulatedMap):
    """Eigenfunctions of a kernel on the values of a column, by linear interpolation; constant beyond the range.

    The names say kernel and scale. "spline" functions may bend sharply, "gauss" functions are very smooth. The kernel
    sees a value by its place in the range, by its rank among the rows ("-rank"), so that outliers and skew do not
    matter, or by its place among the different values ("-distinct").

    Parameters
    ----------
    points, weights, table
        The knots, the part of the rows at each, and the functions there; see `TabulatedMap`.
    basis : {"spline", "spline-rank", "spline-distinct", "gauss", "gauss-rank"}
        Which functions.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.maps import ColumnSummary, MapSettings, TableMap
    >>> values = np.linspace(0, 10, 11)
    >>> spline = TableMap.fit(MapSettings("spline"), ColumnSummary(0.0, 10.0, values, np.ones(11)))
    >>> spline.n, spline.values(spline.place(np.array([2.5, 99.0]))).shape
    (11, (11, 2))
    """

    kind: ClassVar[str] = "table"
    bases: ClassVar[tuple[str, ...]] = ("spline", "spline-rank", "spline-distinct", "gauss", "gauss-rank")

    basis: str = "spline"

    @classmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        """Place knots on the column's values and find the kernel's functions there."""
        kernel, _, scale = settings.basis.partition("-")
        knots, weights = _knots(column, scale)
        functions = eigenfunctions(_KERNELS[kernel](_positions(knots, weights, scale)), weights)
        return cls(knots, weights, np.vstack([np.ones(len(knots)), settings.size * functions]), settings.basis)

    def place(self, column: NDArray) -> NDArray:
        """Position among the knots: 2.5 is half-way between the third and the fourth."""
        knots = self.points
        if max(-knots[0], knots[-1]) > _HUGE:  # distances between knots might overflow
            column, knots = column.astype(np.float64) / 4, knots / 4
            return np.interp(column, knots, np.arange(len(knots)))
        return np.interp(column, knots, np.arange(len(knots))).astype(column.dtype)

    def values(self, x: NDArray, out: NDArray | None = None) -> NDArray:
        """Interpolate the table."""
        table, steps = self._tables[x.dtype.char]
        before = np.minimum(x.astype(np.intp), max(len(self.points) - 2, 0))
        out = np.take(table, before, axis=1, out=out, mode="clip")
        out += np.take(steps, before, axis=1, mode="clip") * (x - before.astype(x.dtype))
        return out

    @cached_property
    def _tables(self) -> dict[str, tuple[NDArray, NDArray]]:
        """The table, and what is added from knot to knot, in both compute dtypes."""
        steps = np.diff(self.table, axis=1) if len(self.points) > 1 else np.zeros((self.n, 1))
        return {char: (self.table.astype(char), steps.astype(char)) for char in "df"}

    @classmethod
    def pack(cls, maps: Sequence[Self]) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The tables, and which basis each is."""
        arrays = pack_tables(maps)
        bases = sorted({m.basis for m in maps})
        return {"bases": bases}, {"basis": np.array([bases.index(m.basis) for m in maps], dtype=np.int64), **arrays}

    @classmethod
    def unpack(cls, entries: dict[str, Any], arrays: dict[str, NDArray], count: int) -> list[Self]:
        """Check and undo `pack`."""
        named = entries.get("bases")
        if entries.keys() != {"bases"} or not isinstance(named, list) or not all(name in cls.bases for name in named):
            raise ValueError(f"the table maps should name their bases among {list(cls.bases)}.")
        numbers = arrays.pop("basis", np.zeros(0))
        if (
            numbers.dtype != np.int64
            or numbers.shape != (count,)
            or not set(numbers.tolist()) <= set(range(len(named)))
        ):
            raise ValueError("the bases of the table maps are not plausible.")
        return [cls(*m, named[k]) for k, m in zip(numbers.tolist(), unpack_tables(arrays, count), strict=True)]

    @classmethod
    def add_to_graph(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> list[str]:
        """Count the knots below a value, and interpolate there. Tables are padded to the same number of knots."""
        n_knots = max(len(m.points) for m in maps) + 1  # at least one more than needed: there is always a next knot
        last = np.array([[len(m.points) - 1] for m in maps])
        knots = np.stack([np.pad(m.points, (0, n_knots - len(m.points)), mode="edge") for m in maps])
        ends = graph.constant(knots[:, :1]), graph.constant(knots[:, -1:])
        x = graph.add("Min", graph.add("Max", columns, ends[0]), ends[1])
        lifted = graph.add("Unsqueeze", x, graph.constant([2], np.int64))  # (d, N, 1)
        above = graph.add("GreaterOrEqual", lifted, graph.constant(knots[:, None, 1:]))  # (d, N, K - 1)
        counted = graph.add("ReduceSum", graph.cast(above, np.float64), graph.constant([2], np.int64), keepdims=0)
        # Knots that only fill up are as large as the last one, and count where that one does.
        before = graph.cast(graph.add("Min", counted, graph.constant(np.maximum(last - 1, 0), np.float64)), np.int64)
        after = graph.add("Add", before, graph.constant(1, np.int64))
        every = graph.constant(knots)
        low, high = (graph.add("GatherElements", every, index, axis=1) for index in (before, after))
        gap = graph.add("Sub", high, low)
        empty = graph.add("Equal", gap, graph.constant(0.0))  # a column with one value only
        part = graph.add("Div", graph.add("Sub", x, low), graph.add("Where", empty, graph.constant(1.0), gap))
        values = []
        for i in range(1, max(m.n for m in maps)):
            rows = [m.table[i] if i < m.n else np.zeros(len(m.points)) for m in maps]
            table = graph.constant(np.stack([np.pad(row, (0, n_knots - len(row)), mode="edge") for row in rows]))
            left, right = (graph.add("GatherElements", table, index, axis=1) for index in (before, after))
            values.append(graph.add("Add", left, graph.add("Mul", part, graph.add("Sub", right, left))))
        return values

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        """Search the knots by halving, and interpolate."""
        first = np.cumsum([0, *(len(m.points) for m in maps)])
        begin = np.cumsum([0, *(m.table.size for m in maps)])[:-1]
        return f"""/* Columns in tables over knots: where their knots and their functions [knot][function] begin. */
{writer.integers("table_first", first)}
{writer.integers("table_begin", begin)}
{writer.integers("table_dims", [m.n for m in maps])}
{writer.table("table_knots", np.concatenate([m.points for m in maps]))}
{writer.table("table_functions", np.concatenate([m.table.T.ravel() for m in maps]))}

static void table_values(REAL value, int k, REAL *phi)
{{
    const REAL *knots = table_knots + table_first[k];
    const REAL *here = table_functions + table_begin[k];
    const int n = table_dims[k];
    int low = 0, high = table_first[k + 1] - table_first[k] - 1;
    REAL part = 0;
    if (!(value >= knots[0])) value = knots[0];
    if (value > knots[high]) value = knots[high];
    while (high - low > 1) {{
        const int middle = (low + high) / 2;
        if (value >= knots[middle]) low = middle;
        else high = middle;
    }}
    if (knots[high] > knots[low]) part = (value - knots[low]) / (knots[high] - knots[low]);
    for (int i = 0; i < n; i++)
        phi[i] = here[low * n + i] + part * (here[high * n + i] - here[low * n + i]);
}}
"""


def _knots(column: ColumnSummary, scale: str) -> tuple[NDArray, NDArray]:
    """Knots among the values of a column, and the part of the rows that each stands for.

    They lie at equal steps of what the kernel sees: of the rows, or of the different values. Along the range, half of
    them lie at equal steps of the range and half at equal steps of the rows. Rows between two knots count for both of
    them, according to the distance.
    """
    # Values that are closer than this would make slopes that are not finite: they are one.
    first = np.flatnonzero(np.diff(column.values, prepend=-np.inf) > _TINY)
    values, weights = column.values[first], np.add.reduceat(column.weights, first) / column.weights.sum()
    if len(values) <= _MOST_KNOTS:
        return values.copy(), weights
    # The share of the rows below each value, itself half counted.
    below = np.cumsum(weights) - weights / 2
    if scale == "distinct":
        chosen = np.round(np.linspace(0, len(values) - 1, _MOST_KNOTS)).astype(np.intp)
    elif scale == "rank":
        chosen = np.searchsorted(below, np.linspace(0, 1, _MOST_KNOTS)[1:-1])
    else:
        steps = np.linspace(0, 1, _MOST_KNOTS // 2)[1:-1]
        along = np.searchsorted(_positions(values, weights, scale), steps)
        chosen = np.concatenate([along, np.searchsorted(below, steps)])
    chosen = np.unique(np.minimum(np.concatenate([[0], chosen, [len(values) - 1]]), len(values) - 1))
    knots = values[chosen]
    places = np.interp(values, knots, np.arange(len(knots)))
    before = np.minimum(places.astype(np.intp), len(knots) - 2)
    part = places - before
    shared = np.bincount(before, weights * (1.0 - part), minlength=len(knots))
    return knots, shared + np.bincount(before + 1, weights * part, minlength=len(knots))


def _positions(knots: NDArray, weights: NDArray, scale: str) -> NDArray:
    """Where the kernel sees the knots, in [0, 1]."""
    if len(knots) == 1:
        return np.full(1, 0.5)
    if scale == "rank":
        return np.cumsum(weights) - weights / 2
    if scale == "distinct":
        return np.linspace(0.0, 1.0, len(knots))
    low, high = knots[0] / 2, knots[-1] / 2  # halves: the range itself may exceed the largest float
    return (knots / 2 - low) / (high - low)
