"""Functions of a column in a table over knots, with straight lines in between: they suit the column's own values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from polytrain import native
from polytrain.arrays import FloatArray
from polytrain.maps.feature_map import ColumnSummary, MapSettings
from polytrain.maps.karhunen_loeve import damped_legendre, eigenfunctions, gauss_kernel, spline_kernel
from polytrain.maps.tabulated import TabulatedMap, row_parts
from polytrain.writing import CWriter, GraphWriter

__all__ = ["TableMap"]

_KERNELS = {"spline": spline_kernel, "gauss": gauss_kernel}
_MOST_KNOTS = 128
_HUGE, _TINY = 1e307, 1e-305
# Polynomials of high degree must not become larger than those of low degree.
_MOST_DAMPING = 1.0
# Numbers interpolated at once: few enough for what is added to stay in cache, and in memory that is at hand.
_BLOCK_NUMBERS = 1 << 16
# Smallest number of rows for which compiled kernels, which sort them by knots, are faster.
_MANY_ROWS = 256


@dataclass(frozen=True, eq=False, repr=False)
class TableMap(TabulatedMap):
    """Functions that suit the values of a column, by linear interpolation; constant beyond the range.

    The names say which functions, and on which scale. "spline" functions may bend sharply, "gauss" functions are very
    smooth: both are the eigenfunctions of a kernel. "smooth" functions are Legendre polynomials up to degree 8, the
    i-th times the i-th power of the size of the prior, which counts as 1 at most. Functions see a value by its place in
    the range, by its rank among the rows ("-rank"), so that outliers and skew do not matter, or by its place among the
    different values ("-distinct"). Where values are missing they are 0, and a further function tells missing values
    from others.

    Parameters
    ----------
    points, weights, table, missing, missing_weight, basis
        The knots, the part of the rows at each, and the functions there; see `TabulatedMap`.

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
    bases: ClassVar[tuple[str, ...]] = (
        *("spline", "spline-rank", "spline-distinct", "gauss", "gauss-rank", "smooth", "smooth-rank"),
    )
    least_step: ClassVar[float] = _TINY / 2

    @classmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        """Place knots on the column's values and find the functions there."""
        family, _, scale = settings.basis.partition("-")
        column = column.with_value()
        if scale not in column.knots:  # families with the same scale share them
            column.knots[scale] = _place_knots(column, scale)
        knots, weights, part = column.knots[scale]
        u = _positions(knots, weights, scale)
        if family == "smooth":
            functions = damped_legendre(u, weights, min(settings.size, _MOST_DAMPING))
        else:
            functions = settings.size * eigenfunctions(_KERNELS[family](u), weights)
        missing = np.zeros(len(functions))
        if part:
            # It has mean 0 over all rows, and is small where few values are missing: nothing divides by its variance.
            told = functions.any(axis=1)  # a single value has no other function
            functions = np.vstack([functions[told], np.full(len(knots), -part * settings.size)])
            missing = np.append(missing[told], (1.0 - part) * settings.size)
        table = np.vstack([np.ones(len(knots)), functions])
        return cls(knots, weights, table, np.append(1.0, missing), part, settings.basis)

    def growth(self, before: MapSettings, after: MapSettings) -> FloatArray:
        """Polynomials are damped by powers of the size; the function that tells missing values is not."""
        factors = super().growth(before, after)
        if self.basis.startswith("smooth"):
            n_powers = self.n - 1 - self.has_missing
            damping = min(after.size, _MOST_DAMPING) / min(before.size, _MOST_DAMPING)
            factors[1 : 1 + n_powers] = damping ** np.arange(1, 1 + n_powers)
        return factors

    def place(self, column: FloatArray) -> FloatArray:
        """Position among the knots: 2.5 is half-way between the third and the fourth. NaN is beyond the last one."""
        knots, values = self.points, column
        if max(-knots[0], knots[-1]) > _HUGE:  # distances between knots might overflow
            knots, values = knots / 4, column.astype(np.float64) / 4
        return self._place_missing(column, np.interp(values, knots, np.arange(len(knots))))

    def values(self, x: FloatArray, out: FloatArray | None = None) -> FloatArray:
        if native.is_here() and len(x) >= _MANY_ROWS:
            out = np.empty((self.n, len(x)), dtype=x.dtype) if out is None else out
            return native.interpolate(np.ascontiguousarray(x), self._padded[x.dtype.char], out)
        lines = self._knots[x.dtype.char].T
        before = x.astype(np.intp)
        part = x - before.astype(x.dtype)
        out = np.empty((self.n, len(x)), dtype=x.dtype) if out is None else out
        some = max(1, _BLOCK_NUMBERS // max(len(x), 1))
        for i in range(0, self.n, some):
            here = np.take(lines[i : i + some], before, axis=1, out=out[i : i + some], mode="clip")
            step = np.take(lines[i : i + some], before + 1, axis=1, mode="clip")
            step -= here
            here += step * part
        return out

    @cached_property
    def _padded(self) -> dict[str, FloatArray]:
        """The knots as compiled kernels interpolate them."""
        unit = np.eye(self.n)[:, None]
        return {char: native.knot_tables(knots, unit) for char, knots in self._knots.items()}

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
        missing = graph.add("IsNaN", columns)
        values = []
        for i in range(1, max(m.n for m in maps)):
            rows = [m.table[i] if i < m.n else np.zeros(len(m.points)) for m in maps]
            table = graph.constant(np.stack([np.pad(row, (0, n_knots - len(row)), mode="edge") for row in rows]))
            left, right = (graph.add("GatherElements", table, index, axis=1) for index in (before, after))
            value = graph.add("Add", left, graph.add("Mul", part, graph.add("Sub", right, left)))
            instead = graph.constant(np.array([[m.missing[i] if i < m.n else 0.0] for m in maps]))
            values.append(graph.add("Where", missing, instead, value))
        return values

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        first = np.cumsum([0, *(len(m.points) for m in maps)])
        tables = [np.vstack([m.table.T, m.missing]).ravel() for m in maps]
        begin = np.cumsum([0, *map(len, tables)])[:-1]
        return f"""/* Columns in tables over knots: where their knots and their functions [knot][function] begin.
   After those of the knots come the functions of a missing value. */
{writer.integers("table_first", first)}
{writer.integers("table_begin", begin)}
{writer.integers("table_dims", [m.n for m in maps])}
{writer.table("table_knots", np.concatenate([m.points for m in maps]))}
{writer.table("table_functions", np.concatenate(tables))}

static void table_values(REAL value, int k, REAL *phi)
{{
    const REAL *knots = table_knots + table_first[k];
    const REAL *here = table_functions + table_begin[k];
    const int n = table_dims[k];
    int low = 0, high = table_first[k + 1] - table_first[k] - 1;
    REAL part = 0;
    if (value != value) {{
        for (int i = 0; i < n; i++) phi[i] = here[(high + 1) * n + i];
        return;
    }}
    if (value < knots[0]) value = knots[0];
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


def _place_knots(column: ColumnSummary, scale: str) -> tuple[FloatArray, FloatArray, float]:
    """Knots among the values of a column, the part of the rows that each stands for, and that of missing values.

    They lie at equal steps of what the kernel sees: of the rows, or of the different values. Along the range, half of
    them lie at equal steps of the range and half at equal steps of the rows. Rows between two knots count for both of
    them, according to the distance.
    """
    # Values that are closer than this would make slopes that are not finite: they are one. Halves cannot overflow.
    first = np.flatnonzero(np.diff(column.values / 2, prepend=-np.inf) > _TINY / 2)
    values, (weights, part) = column.values[first], row_parts(np.add.reduceat(column.weights, first), column.missing)
    if len(values) <= _MOST_KNOTS:
        return values.copy(), weights, part
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
    after = places - before
    sides = (before, 1.0 - after), (before + 1, after)
    shares = [np.bincount(knot, weights * share, minlength=len(knots)) for knot, share in sides]
    return knots, np.sum(shares, axis=0, dtype=np.float64), part


def _positions(knots: FloatArray, weights: FloatArray, scale: str) -> FloatArray:
    """Where the kernel sees the knots, in [0, 1]."""
    if len(knots) == 1:
        return np.full(1, 0.5)
    if scale == "rank":
        return np.cumsum(weights) - weights / 2
    if scale == "distinct":
        return np.linspace(0.0, 1.0, len(knots))
    low, high = float(knots[0]) / 2, float(knots[-1]) / 2  # halves: the range itself may exceed the largest float
    return (knots / 2 - low) / (high - low)
