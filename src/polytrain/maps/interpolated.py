"""Functions of a column in a table over knots, with straight lines in between: they suit the column's own values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from polytrain import native
from polytrain.arrays import FloatArray
from polytrain.export_writers import CWriter, GraphWriter
from polytrain.maps.column_functions import damped_legendre, eigenfunctions, gauss_kernel, spline_kernel
from polytrain.maps.feature_map import ColumnSummary, MapSettings
from polytrain.maps.tabulated import TabulatedMap, row_parts

__all__ = ["InterpolatedMap"]

_KERNELS = {"spline": spline_kernel, "gauss": gauss_kernel}
_MOST_KNOTS = 128
_HUGE, _TINY = 1e307, 1e-305
# Polynomials of high degree must not become larger than those of low degree.
_MOST_DAMPING = 1.0
# Eigenfunctions are the same on all machines if their variances, and their signs from 0, differ by more than this.
_LEAST_GAP, _LEAST_SIGN = 1e-9, 1e-9
# Smallest number of rows for which compiled kernels, which sort them by knots, are faster.
_MANY_ROWS = 256
_SEARCH = """        int high = last;
        at = 0;
        if (value < points[0]) value = points[0];
        if (value > points[last]) value = points[last];
        while (high - at > 1) {
            const int middle = (at + high) / 2;
            if (value >= points[middle]) at = middle;
            else high = middle;
        }
        if (points[high] > points[at]) part = (value - points[at]) / (points[high] - points[at]);"""


@dataclass(frozen=True, eq=False, repr=False)
class InterpolatedMap(TabulatedMap):
    """Functions that suit the values of a column, by linear interpolation; constant beyond the range.

    The names give the functions and their scale. "spline" functions may bend sharply, "gauss" functions are very
    smooth: both are the eigenfunctions of a kernel. "smooth" functions are Legendre polynomials up to degree 8, the
    i-th times the i-th power of the size of the prior, which counts as 1 at most. Functions use the position of a value
    in the range, its rank among the rows ("-rank"), so that outliers and skew do not matter, or its position among the
    different values ("-distinct"). Where values are missing they are 0, and a further function indicates missing
    values.

    Parameters
    ----------
    points, weights, table, missing, missing_weight, basis
        The knots, the part of the rows at each, and the functions there; see `TabulatedMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.maps import ColumnSummary, MapSettings, InterpolatedMap
    >>> values = np.linspace(0, 10, 11)
    >>> spline = InterpolatedMap.fit(MapSettings("spline"), ColumnSummary(0.0, 10.0, values, np.ones(11)))
    >>> spline.n, spline.values(spline.place(np.array([2.5, 99.0]))).shape
    (11, (11, 2))
    """

    kind: ClassVar[str] = "table"
    bases: ClassVar = ("spline", "spline-rank", "spline-distinct", "gauss", "gauss-rank", "smooth", "smooth-rank")
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

    @classmethod
    def _formula(cls, basis: str, points: FloatArray, weights: FloatArray, n: int, *, stable: bool) -> Any:
        family, _, scale = basis.partition("-")
        if n < 1 or len(points) > _MOST_KNOTS:
            return np.zeros((0, len(points))) if n == 0 else None
        u = _positions(points, weights, scale)
        if family == "smooth":
            functions = damped_legendre(u, weights, 1.0)
        else:
            functions = eigenfunctions(_KERNELS[family](u), weights, variance_kept=1.0, most=n + 1)
            signs = functions @ np.cos(np.square(np.arange(len(u))))  # a direction that no symmetry favours
            functions = np.where(signs[:, None] < 0, -functions, functions)
            # Eigenvectors turn by rounding errors over the distance of their eigenvalues, the next one included.
            gaps, sizes = -np.diff(np.square(functions) @ weights), np.linalg.norm(functions, axis=1)
            if stable and ((gaps < _LEAST_GAP).any() or (np.abs(signs) < _LEAST_SIGN * sizes).any()):
                return None
        return functions[:n] if len(functions) >= n else None

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
        lines, before = self._knots[x.dtype.char].T, x.astype(np.intp)
        here = np.take(lines, before, axis=1, out=out, mode="clip")
        step = np.take(lines, before + 1, axis=1, mode="clip") - here
        here += step * (x - before.astype(x.dtype))
        return here

    @cached_property
    def _padded(self) -> dict[str, FloatArray]:
        """The knots as compiled kernels interpolate them."""
        unit = np.eye(self.n)[:, None]
        return {char: native.knot_tables(knots, unit) for char, knots in self._knots.items()}

    @classmethod
    def _add_places(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> str:
        """Add up the parts of the gaps between knots that lie below a value."""
        knots = [m.points / 2 for m in maps]  # halves: the range itself may exceed the largest float
        # Gaps that only fill up are infinite: no part of them is below a value.
        low, gap = np.zeros((len(maps), 1, max(map(len, knots)))), np.full((len(maps), 1, max(map(len, knots))), np.inf)
        for k, points in enumerate(knots):
            low[k, 0, : len(points) - 1], gap[k, 0, : len(points) - 1] = points[:-1], np.diff(points)
        first, last = (graph.constant([[points[end]] for points in knots]) for end in (0, -1))
        half = graph.add("Min", graph.add("Max", graph.add("Mul", columns, graph.constant(0.5)), first), last)
        lifted = graph.add("Unsqueeze", half, graph.constant([2], np.int64))  # (d, N, 1)
        part = graph.add("Div", graph.add("Sub", lifted, graph.constant(low)), graph.constant(gap))
        part = graph.add("Min", graph.add("Max", part, graph.constant(0.0)), graph.constant(1.0))
        return graph.add("ReduceSum", part, graph.constant([2], np.int64), keepdims=0)

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        return cls._c_lookup(maps, writer, _SEARCH)


def _place_knots(column: ColumnSummary, scale: str) -> tuple[FloatArray, FloatArray, float]:
    """Knots among the values of a column, the part of the rows that each stands for, and that of missing values.

    They lie at equal steps of the kernel's scale: of the rows, or of the different values. Along the range, half of
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
    """Positions of the knots on the kernel's scale, in [0, 1]."""
    if len(knots) == 1:
        return np.full(1, 0.5)
    if scale == "rank":
        return np.cumsum(weights) - weights / 2
    if scale == "distinct":
        return np.linspace(0.0, 1.0, len(knots))
    low, high = float(knots[0]) / 2, float(knots[-1]) / 2  # halves: the range itself may exceed the largest float
    return (knots / 2 - low) / (high - low)
