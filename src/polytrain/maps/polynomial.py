"""Polynomials of a column, scaled or unscaled: the paper's map."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from polytrain.arrays import FloatArray
from polytrain.basis import BASES, UNSCALED, get_basis
from polytrain.export_writers import CWriter, GraphWriter
from polytrain.maps.feature_map import (
    AffinePowers,
    Arrays,
    ColumnSummary,
    FeatureMap,
    MapSettings,
    ProductRule,
    take_array,
)

__all__ = ["MOST_FUNCTIONS", "PolynomialMap"]

#: Largest number of functions of a map; polynomials of a higher degree could not be told apart in float64.
MOST_FUNCTIONS = 1024


@dataclass(frozen=True)
class PolynomialMap(FeatureMap):
    """The first n polynomials of a family in one column.

    With a range, values are clipped to it, so that a prediction far from the training data stays finite, and mapped
    onto [-1, 1]; a constant column becomes 0 everywhere. Without, values are not scaled.

    Parameters
    ----------
    basis : {"power", "chebyshev", "legendre", "power-unscaled"}
        The family; the last is fitted without a range.
    n : int
        Number of functions, degree + 1.
    low, high : float
        Range of the column in the training rows; infinite for none.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.maps import PolynomialMap
    >>> parabola = PolynomialMap("power", 3, 0.0, 4.0)
    >>> parabola.values(parabola.place(np.array([1.0, 9.0])))
    array([[ 1.  ,  1.  ],
           [-0.5 ,  1.  ],
           [ 0.25,  1.  ]])
    """

    kind: ClassVar[str] = "polynomial"
    bases: ClassVar[tuple[str, ...]] = (*BASES, UNSCALED)

    basis: str
    n: int
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        # Explanations form tables of n x n numbers, and exports rely on the second function.
        if not 2 <= self.n <= MOST_FUNCTIONS:
            raise ValueError(f"a polynomial map has 2 to {MOST_FUNCTIONS} functions, not {self.n}.")

    @classmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        ends = () if settings.basis == UNSCALED else (float(column.low), float(column.high))
        return cls(settings.basis, settings.degree + 1, *ends)

    @property
    def centre(self) -> float:
        """Middle of the range."""
        # Halves are taken before sums and differences: the range itself may exceed the largest float.
        return self.low / 2 + self.high / 2 if math.isfinite(self.low) else 0.0

    @property
    def factor(self) -> float:
        """Factor of the distance from the centre; 0 for a constant column."""
        half = self.high / 2 - self.low / 2
        if math.isinf(half):
            return 1.0
        return 1.0 / half if half >= np.finfo(np.float64).tiny else 0.0

    def place(self, column: FloatArray) -> FloatArray:
        return self.place_all([self])(column[:, None]).ravel()

    @classmethod
    def place_all(cls, maps: Sequence[Self]) -> Callable[[FloatArray], FloatArray]:
        """Clip, shift and scale rows (N, d) -> (d, N), in the dtype of the rows."""
        low, high, centre, factor = _ranges(maps)
        return lambda X: ((np.clip(X, low, high) - centre) * factor).T.astype(X.dtype, order="C")

    def values(self, x: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return get_basis(self.basis).values(x, self.n, out)

    @property
    def n_linear(self) -> int:
        """Only the column itself: the second function of every family."""
        return 1

    @property
    def products(self) -> ProductRule:
        """Products of two functions are polynomials of degree at most 2 (n - 1): 2n - 1 functions of the family."""
        family = get_basis(self.basis)
        size = 2 * self.n - 1
        return ProductRule(size, partial(family.product_table, self.n), lambda x, out: family.values(x, size, out))

    @property
    def range(self) -> tuple[float, float] | None:
        return (self.low, self.high) if math.isfinite(self.low) else None

    def measure(self) -> tuple[FloatArray, FloatArray] | None:
        """Uniform on the range: the points of the Gauss-Legendre rule, which is exact for these polynomials."""
        if self.range is None:
            return None
        if self.factor == 0:
            return np.zeros(1), np.ones(1)
        points, weights = np.polynomial.legendre.leggauss(self.n)
        return points, weights / weights.sum()

    @property
    def powers(self) -> AffinePowers:
        return AffinePowers(get_basis(self.basis).to_power_matrix(self.n), self.centre, self.factor)

    def extremes(self) -> FloatArray:
        """The ends of [-1, 1], where all families are largest, even if the range is not known."""
        return self.values(np.zeros(1) if self.factor == 0 else np.array([-1.0, 1.0]))

    @classmethod
    def pack(cls, maps: Sequence[Self], exact: bool) -> Arrays:
        return {"n": np.array([m.n for m in maps]), "range": np.array([[m.low, m.high] for m in maps])}

    @classmethod
    def unpack(cls, bases: Sequence[str], arrays: Arrays) -> list[Self]:
        n = take_array(arrays, "n", np.int64, (len(bases),))
        ranges = take_array(arrays, "range", np.float64, (len(bases), 2))
        known = np.isfinite(ranges).all(axis=1) | (ranges == [-math.inf, math.inf]).all(axis=1)
        if not (known & (ranges[:, 0] <= ranges[:, 1])).all():
            raise ValueError("the ranges of the features are not finite or upside down.")
        columns = zip(bases, n.tolist(), ranges.tolist(), strict=True)
        return [cls(basis, size, low, high) for basis, size, (low, high) in columns]

    @classmethod
    def add_to_graph(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> str:
        largest = np.finfo(np.float64).max
        bounds = np.clip(_ranges(maps), -largest, largest)[:, :, None]
        low, high, centre, factor = map(graph.constant, bounds)
        clipped = graph.add("Min", graph.add("Max", columns, low), high)
        x = graph.add("Mul", graph.add("Sub", clipped, centre), factor)
        values = [x]
        for degree in range(2, max(feature_map.n for feature_map in maps)):
            # Powers that a column does not have are zero: those of an unscaled column could become infinite.
            steps = [get_basis(m.basis).recurrence(degree) if degree < m.n else (0.0, 0.0) for m in maps]
            a, b = (np.array(side)[:, None] for side in zip(*steps, strict=True))
            following = graph.add("Mul", graph.add("Mul", x, values[-1]), graph.constant(a))
            if b.any():
                before = graph.constant(b) if degree == 2 else graph.add("Mul", values[-2], graph.constant(b))
                following = graph.add("Sub", following, before)
            if (a == 0).any() and not all(feature_map.range for feature_map in maps):
                following = graph.add("Where", graph.constant(a != 0), following, graph.constant(0.0))
            values.append(following)
        return graph.stack(values)

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        families = sorted({m.basis for m in maps})
        n = max(*(m.n for m in maps), 3)
        steps = [[get_basis(family).recurrence(degree) for degree in range(2, n)] for family in families]
        largest = 3.4e38 if writer.suffix else 1.7e308
        bounds = zip(("low", "high", "centre", "factor"), np.clip(_ranges(maps), -largest, largest), strict=True)
        ranges = "\n".join(writer.table(name, values) for name, values in bounds)
        return f"""{writer.integers("polynomial_dims", [m.n for m in maps])}
{writer.integers("polynomial_family", [families.index(m.basis) for m in maps])}
{writer.table("step_a", [[a for a, _ in row] for row in steps])}
{writer.table("step_b", [[b for _, b in row] for row in steps])}
{ranges}

/* phi[i] = a * x * phi[i - 1] - b * phi[i - 2], where x is the value in the range of the column. */
static void polynomial_values(REAL value, int k, REAL *phi)
{{
    const int family = {n - 2} * polynomial_family[k];
    if (!(value >= low[k])) value = low[k];
    if (value > high[k]) value = high[k];
    value = (value - centre[k]) * factor[k];
    phi[0] = 1;
    phi[1] = value;
    for (int i = 0; i < polynomial_dims[k] - 2; i++)
        phi[i + 2] = step_a[family + i] * value * phi[i + 1] - step_b[family + i] * phi[i];
}}
"""


def _ranges(maps: Sequence[PolynomialMap]) -> FloatArray:
    """Return low, high, centre and factor of each map, (4, d)."""
    return np.array([[m.low, m.high, m.centre, m.factor] for m in maps]).T.copy()
