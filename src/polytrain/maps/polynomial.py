"""Polynomials of a column, scaled or as it is: the paper's map."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import BASES, get_basis
from polytrain.maps.feature_map import AffinePowers, ColumnSummary, FeatureMap, MapSettings, ProductRule
from polytrain.writing import CWriter, GraphWriter

__all__ = ["MOST_FUNCTIONS", "PolynomialMap"]

#: Most functions of a map; polynomials of a higher degree could not be told apart in float64.
MOST_FUNCTIONS = 1024


@cache
def _product_rule(basis: str, n: int) -> ProductRule:
    """Products of two functions are polynomials of degree at most 2 (n - 1): 2n - 1 functions of the family."""
    family = get_basis(basis)

    def values(x: NDArray, out: NDArray) -> NDArray:
        return family.values(x, 2 * n - 1, out)

    return ProductRule(family.product_table(n), values)


@dataclass(frozen=True)
class PolynomialMap(FeatureMap):
    """The first n polynomials of a family in one column.

    With a range, values are clipped to it, so that a prediction far from the training data stays finite, and mapped
    onto [-1, 1]; a constant column becomes 0 everywhere. Without, values are taken as they are (the paper's behaviour).

    Parameters
    ----------
    basis : {"power", "chebyshev", "legendre"}
        The family.
    n : int
        Number of functions, degree + 1.
    low, high : float or None
        Range of the column in the training rows.

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
    bases: ClassVar[tuple[str, ...]] = BASES

    basis: str
    n: int
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        # Explanations form tables of n x n numbers, and exports rely on the second function.
        if not 2 <= self.n <= MOST_FUNCTIONS:
            raise ValueError(f"a polynomial map has 2 to {MOST_FUNCTIONS} functions, not {self.n}.")

    @classmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        """Take the range of the column where it is to be scaled."""
        if settings.scale is None:
            return cls(settings.basis, settings.degree + 1)
        return cls(settings.basis, settings.degree + 1, float(column.low), float(column.high))

    @property
    def centre(self) -> float:
        """Middle of the range."""
        # Halves are taken before sums and differences: the range itself may exceed the largest float.
        return 0.0 if self.low is None or self.high is None else self.low / 2 + self.high / 2

    @property
    def factor(self) -> float:
        """What the distance from the centre is multiplied by; 0 for a constant column."""
        if self.low is None or self.high is None:
            return 1.0
        half = self.high / 2 - self.low / 2
        return 1.0 / half if half >= np.finfo(np.float64).tiny else 0.0

    def place(self, column: NDArray) -> NDArray:
        """Clip to the range and map it onto [-1, 1]."""
        return self.place_all([self])(column[:, None])[0]

    @classmethod
    def place_all(cls, maps: Sequence[Self]) -> Callable[[NDArray], NDArray]:
        """Place all columns at once."""
        scaled = [feature_map.low is not None for feature_map in maps]
        if not any(scaled):
            return _transpose
        # A column without range is between infinities, with the centre 0 and the factor 1.
        low = np.array([-math.inf if m.low is None else m.low for m in maps])
        high = np.array([math.inf if m.high is None else m.high for m in maps])
        centre, factor = (np.array([getattr(m, name) for m in maps]) for name in ("centre", "factor"))
        return partial(_scale, low, high, centre, factor)

    def values(self, x: NDArray, out: NDArray | None = None) -> NDArray:
        """Run the family's recurrence."""
        return get_basis(self.basis).values(x, self.n, out)

    @property
    def n_linear(self) -> int:
        """One."""
        return 1

    @property
    def linear(self) -> NDArray:
        """Only the column itself: the second function of every family."""
        return np.eye(self.n)[1:2]

    def linear_values(self, x: NDArray) -> NDArray:
        """Return the coordinates themselves."""
        return x[None]

    @property
    def products(self) -> ProductRule:
        """Combinations of 2n - 1 polynomials of the family."""
        return _product_rule(self.basis, self.n)

    @property
    def range(self) -> tuple[float, float] | None:
        """Range of the training rows, where it was taken."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def measure(self) -> tuple[NDArray, NDArray] | None:
        """Uniform on the range: the points of the Gauss-Legendre rule, which is exact for these polynomials."""
        if self.low is None:
            return None
        if self.factor == 0:
            return np.zeros(1), np.ones(1)
        points, weights = np.polynomial.legendre.leggauss(self.n)
        return points, weights / weights.sum()

    @property
    def powers(self) -> AffinePowers:
        """The family in powers of the scaled column."""
        return AffinePowers(get_basis(self.basis).to_power_matrix(self.n), self.centre, self.factor)

    def extremes(self) -> NDArray:
        """The ends of [-1, 1], where all families are largest, also if the range is not known."""
        return self.values(np.zeros(1) if self.factor == 0 else np.array([-1.0, 1.0]))

    @classmethod
    def pack(cls, maps: Sequence[Self]) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Families by number, sizes, and ranges, which are NaN where there are none."""
        families = sorted({feature_map.basis for feature_map in maps})
        numbers = [families.index(feature_map.basis) for feature_map in maps]
        ranges = [[math.nan if m.low is None else m.low, math.nan if m.high is None else m.high] for m in maps]
        arrays = {
            "family": np.array(numbers, dtype=np.int64),
            "n": np.array([feature_map.n for feature_map in maps], dtype=np.int64),
            "range": np.array(ranges),
        }
        return {"families": families}, arrays

    @classmethod
    def unpack(cls, entries: dict[str, Any], arrays: dict[str, NDArray], count: int) -> list[Self]:
        """Check and undo `pack`."""
        families = entries.get("families")
        if entries.keys() != {"families"} or not isinstance(families, list) or not set(families) <= set(BASES):
            raise ValueError(f"the polynomial maps should name families among {list(BASES)}.")
        shapes = {"family": (np.int64, (count,)), "n": (np.int64, (count,)), "range": (np.float64, (count, 2))}
        if arrays.keys() != shapes.keys() or any(
            arrays[name].dtype != dtype or arrays[name].shape != shape for name, (dtype, shape) in shapes.items()
        ):
            raise ValueError("the arrays of the polynomial maps are not as they should be.")
        family, n, ranges = (arrays[name] for name in ("family", "n", "range"))
        if (family < 0).any() or (family >= len(families)).any():
            raise ValueError("the families of the polynomial maps are not plausible.")
        free = np.isnan(ranges).all(axis=1)
        if not (np.isfinite(ranges[~free]).all() and (ranges[~free, 0] <= ranges[~free, 1]).all()):
            raise ValueError("the ranges of the features are not finite or upside down.")
        return [
            cls(families[f], size) if unbounded else cls(families[f], size, low, high)
            for f, size, (low, high), unbounded in zip(
                family.tolist(), n.tolist(), ranges.tolist(), free.tolist(), strict=True
            )
        ]

    @classmethod
    def add_to_graph(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> list[str]:
        """Clip, shift, scale, and run the recurrences of all columns together."""
        x = _graph_scaled(maps, graph, columns)
        n = max(feature_map.n for feature_map in maps)
        values = [x]
        for degree in range(2, n):
            # Powers that a column does not have are zero: those of an unscaled column could become infinite.
            steps = [get_basis(m.basis).recurrence(degree) if degree < m.n else (0.0, 0.0) for m in maps]
            a, b = (np.array(side)[:, None] for side in zip(*steps, strict=True))
            following = graph.add("Mul", graph.add("Mul", x, values[-1]), graph.constant(a))
            if b.any():
                before = graph.constant(b) if degree == 2 else graph.add("Mul", values[-2], graph.constant(b))
                following = graph.add("Sub", following, before)
            if (a == 0).any() and any(feature_map.low is None for feature_map in maps):
                following = graph.add("Where", graph.constant(a != 0), following, graph.constant(0.0))
            values.append(following)
        return values

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        """Tables of ranges and recurrences, and a loop."""
        families = sorted({feature_map.basis for feature_map in maps})
        n = max(max(feature_map.n for feature_map in maps), 3)
        steps = [[get_basis(family).recurrence(degree) for degree in range(2, n)] for family in families]
        scaled = any(feature_map.low is not None for feature_map in maps)
        several = len(families) > 1
        parts = [
            "/* Functions of each column: phi[i] = step_a[i - 2] * x * phi[i - 1] - step_b[i - 2] * phi[i - 2]. */",
            writer.integers("polynomial_dims", [feature_map.n for feature_map in maps]),
            writer.table("step_a", [[a for a, _ in row] for row in steps]),
            writer.table("step_b", [[b for _, b in row] for row in steps]),
        ]
        if several:
            parts.append(writer.integers("family", [families.index(feature_map.basis) for feature_map in maps]))
        if scaled:
            largest = 3.4e38 if writer.suffix else 1.7e308  # a column without range is as good as unbounded
            named = {
                "low": [-largest if m.low is None else m.low for m in maps],
                "high": [largest if m.high is None else m.high for m in maps],
                "centre": [m.centre for m in maps],
                "factor": [m.factor for m in maps],
            }
            parts += ["/* Ranges of the columns. */", *(writer.table(name, values) for name, values in named.items())]
        offset = f"(i - 2) + {n - 2} * family[k]" if several else "i - 2"
        scaling = """
    if (!(value >= low[k])) value = low[k];
    if (value > high[k]) value = high[k];
    value = (value - centre[k]) * factor[k];"""
        parts.append(f"""
static void polynomial_values(REAL value, int k, REAL *phi)
{{{scaling if scaled else ""}
    phi[0] = 1;
    phi[1] = value;
    for (int i = 2; i < polynomial_dims[k]; i++)
        phi[i] = step_a[{offset}] * value * phi[i - 1] - step_b[{offset}] * phi[i - 2];
}}
""")
        return "\n".join(parts)


def _transpose(X: NDArray) -> NDArray:
    return np.ascontiguousarray(X.T)


def _scale(low: NDArray, high: NDArray, centre: NDArray, factor: NDArray, X: NDArray) -> NDArray:
    """Clip, shift and scale rows (N, d) -> (d, N), in the dtype of the rows."""
    block = np.clip(X, low, high)
    return ((block - centre) * factor).T.astype(X.dtype, order="C")


def _graph_scaled(maps: Sequence[PolynomialMap], graph: GraphWriter, columns: str) -> str:
    """Clip to the fitted ranges and map them onto [-1, 1]. Shapes: (d, N) -> (d, N)."""
    if all(feature_map.low is None for feature_map in maps):
        return columns
    largest = float(np.finfo(np.float64).max)
    low = np.array([-largest if m.low is None else m.low for m in maps])[:, None]
    high = np.array([largest if m.high is None else m.high for m in maps])[:, None]
    centre, factor = (np.array([getattr(m, name) for m in maps])[:, None] for name in ("centre", "factor"))
    clipped = graph.add("Min", graph.add("Max", columns, graph.constant(low)), graph.constant(high))
    return graph.add("Mul", graph.add("Sub", clipped, graph.constant(centre)), graph.constant(factor))
