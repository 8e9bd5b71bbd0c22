"""Maps whose functions are a table over points of the column: evaluation, distribution and storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from polytrain.arrays import Array, FloatArray
from polytrain.export_writers import CWriter, GraphWriter
from polytrain.maps.feature_map import Arrays, FeatureMap, MapSettings, take_array

__all__ = ["TabulatedMap", "mean_values", "row_parts"]

# Largest number of points of one column, to limit the size of what a small file expands to.
_MOST_POINTS = 1 << 16
# Largest number in tables. Functions have the size of their prior; float32 has room for many times this one.
_LARGEST = 1e30
_N_EXTREMES = 8
_TINY = 1e-300
# Functions that a file leaves out differ from the recomputed ones by at most this fraction of their size. They have
# at most this many points in all, since a small file could otherwise require much work.
_ROUNDING, _MOST_COMPUTED = 1e-5, 1 << 16


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
    basis : str
        Name of the functions.
    """

    needs_values: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True
    #: Number of coordinates between those of the points and that of missing values: for values that are not known.
    n_unknown: ClassVar[int] = 0
    #: Smallest distance between the halves of two points.
    least_step: ClassVar[float] = 0.0

    points: FloatArray
    weights: FloatArray
    table: FloatArray
    missing: FloatArray
    missing_weight: float
    basis: str

    def __post_init__(self) -> None:
        for array in (self.points, self.weights, self.table, self.missing):
            array.setflags(write=False)

    @property
    def n(self) -> int:  # type: ignore[override]
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

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickles forget that arrays are read-only, and need no cached properties.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def has_missing(self) -> bool:
        return self.missing_weight > 0

    @property
    def missing_place(self) -> int:
        """Coordinate of missing values, beyond those of all others."""
        return len(self.points) + self.n_unknown

    def growth(self, before: MapSettings, after: MapSettings) -> FloatArray:
        return np.append(1.0, np.full(self.n - 1, after.size / before.size))

    def grown(self, factors: FloatArray) -> Self:
        kept = factors != 0
        table, missing = factors[kept, None] * self.table[kept], factors[kept] * self.missing[kept]
        return replace(self, table=table, missing=missing)

    def knots(self, dtype: np.dtype[Any]) -> FloatArray:
        """The table, values that are not known, missing values, and these once more: nothing follows them."""
        return self._knots[dtype.char]

    @cached_property
    def _knots(self) -> dict[str, FloatArray]:
        unknown = [mean_values(self.n)] * self.n_unknown
        lines = np.vstack([self.table.T, *unknown, self.missing, self.missing])
        return {char: lines.astype(char, order="C") for char in "df"}  # one order: rounding depends on it

    @property
    def _compared(self) -> FloatArray:
        """The points that values are compared with."""
        return self.points

    @property
    def range(self) -> tuple[float, float]:
        return float(self.points[0]), float(self.points[-1])

    def measure(self) -> tuple[FloatArray, FloatArray]:
        """The distribution of the column in the training rows, at the points and where the value is missing."""
        places = np.arange(len(self.points), dtype=np.float64)
        if not self.missing_weight:
            return places, self.weights
        weights = np.append((1.0 - self.missing_weight) * self.weights, self.missing_weight)
        return np.append(places, self.missing_place), weights

    def extremes(self) -> FloatArray:
        largest = np.abs(self.table).max(axis=0)
        return np.column_stack([self.table[:, np.argsort(-largest)[:_N_EXTREMES]], self.missing])

    def _place_missing(self, column: FloatArray, places: FloatArray) -> FloatArray:
        """Mark in coordinates of a column where it is missing; they get the dtype of the column."""
        places = places.astype(column.dtype, copy=False)
        missing = np.isnan(column)
        if missing.any():
            places[missing] = self.missing_place
        return places

    @classmethod
    def _add_places(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> str:
        """Write `place` into an ONNX graph, for values that are not missing. Shapes: (len(maps), N) -> the same."""
        raise NotImplementedError

    @classmethod
    def add_to_graph(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> str:
        n_lines, n = max(m.missing_place for m in maps) + 2, max(m.n for m in maps)
        tables = np.zeros((len(maps), n_lines, n - 1))
        for table, m in zip(tables, maps, strict=True):
            table[: m.missing_place + 2, : m.n - 1] = m._knots["d"][:, 1:]
        missing = graph.constant(np.array([[float(m.missing_place)] for m in maps]))
        places = graph.add("Where", graph.add("IsNaN", columns), missing, cls._add_places(maps, graph, columns))
        lifted = graph.add("Unsqueeze", places, graph.constant([2], np.int64))  # (d, N, 1)
        before = graph.cast(lifted, np.int64)
        after = graph.add("Add", before, graph.constant(1, np.int64))
        functions = graph.constant(tables)
        low, high = (
            graph.add("GatherND", functions, index, batch_dims=1) for index in (before, after)
        )  # (d, N, n - 1)
        part = graph.add("Sub", lifted, graph.cast(before, np.float64))
        return graph.add("Add", low, graph.add("Mul", part, graph.add("Sub", high, low)))

    @classmethod
    def _c_lookup(cls, maps: Sequence[Self], writer: CWriter, search: str) -> str:
        """Write tables in C, and the function that reads them.

        ``search`` are statements that set ``at``, the entry to read, and ``part``, how far the value is on the way to
        the next entry.
        """
        points, point_starts = _once([m._compared for m in maps])
        tables, units = zip(*(writer.fixed_point(m._knots["d"][:, 1:]) for m in maps), strict=True)
        numbers, starts = _once(tables)
        code = f"""/* Columns in tables: where their points, their functions [point][function] without the constant,
   and the units of these begin. After the functions of the points come those of a missing value. */
{writer.integers("KIND_n_points", [len(m.points) for m in maps])}
{writer.integers("KIND_first", point_starts)}
{writer.integers("KIND_begin", starts)}
{writer.integers("KIND_unit", np.cumsum([0, *map(len, units)])[:-1])}
{writer.integers("KIND_dims", [m.n for m in maps])}
{writer.table("KIND_points", points)}
{writer.integers("KIND_functions", numbers, "int32_t")}
{writer.units("KIND_units", np.concatenate(units))}

static void KIND_values(REAL value, int k, REAL *phi)
{{
    const REAL *points = KIND_points + KIND_first[k], *unit = KIND_units + KIND_unit[k];
    const int32_t *here = KIND_functions + KIND_begin[k];
    const int n = KIND_dims[k] - 1, last = KIND_n_points[k] - 1;
    int at = last + {1 + cls.n_unknown};
    REAL part = 0;
    if (!(value != value)) {{
{search}
    }}
    here += at * n;
    phi[0] = 1;
    for (int i = 0; i < n; i++)
        phi[i + 1] = unit[i] * ((REAL)here[i] + part * ((REAL)here[n + i] - (REAL)here[i]));
}}
"""
        return code.replace("KIND", cls.kind)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        weights = np.append((1.0 - self.missing_weight) * self.weights, self.missing_weight)
        return rng.choice(np.append(self.points, np.nan), size, p=weights / weights.sum())

    @classmethod
    def _formula(cls, basis: str, points: FloatArray, weights: FloatArray, n: int, *, stable: bool) -> Any:
        """Return n functions after the constant that follow from points and weights, up to factors, (n, K), or None.

        With ``stable``, also None for functions that another machine might find differently.
        """
        return None

    @classmethod
    def _shapes(
        cls, basis: str, points: FloatArray, weights: FloatArray, n: int, has_missing: bool, *, stable: bool = False
    ) -> Any:
        """Return `_formula` with the constant and the function that tells missing values, (n, K), or None."""
        ones = np.ones((1 + (has_missing and n > 1), len(points)))
        functions = cls._formula(basis, points, weights, n - len(ones), stable=stable)
        return None if functions is None else np.vstack([ones[:1], functions, ones[1:]])

    def _factors(self, weights: FloatArray) -> Any:
        """Return the factors (n,) between `_shapes` and the functions, or None where these are others."""
        shapes = self._shapes(self.basis, self.points, weights, self.n, self.has_missing, stable=True)
        if shapes is None:
            return None
        factors = _in_single(np.sum(self.table * shapes, axis=1) / np.maximum(np.square(shapes).sum(axis=1), _TINY))
        off, largest = (np.abs(x).max(axis=1) for x in (factors[:, None] * shapes - self.table, self.table))
        return factors if (off <= _ROUNDING * largest).all() else None

    @classmethod
    def pack(cls, maps: Sequence[Self], exact: bool) -> Arrays:
        """The tables of all columns one after another, or of those that follow from the points their factors."""
        rounded = np.array if exact else _in_single
        weights = [rounded(m.weights) for m in maps]
        tables, computed, n_left = [m.table for m in maps], np.zeros(len(maps), dtype=bool), _MOST_COMPUTED
        for k, m in enumerate(() if exact else maps):
            tried = ((own, m._factors(own)) for own in (weights[k], m.weights) if len(m.points) <= n_left)
            own, factors = next((pair for pair in tried if pair[1] is not None), (weights[k], None))
            if factors is not None:
                weights[k], tables[k], computed[k], n_left = own, factors, True, n_left - len(m.points)
        return {
            "size": np.array([m.table.shape for m in maps], dtype=np.int64),
            "points": np.concatenate([m.points for m in maps]),
            "weights": np.concatenate(weights),
            "table": rounded(np.concatenate([table.ravel() for table in tables])),
            "computed": computed,
            "missing": rounded(np.concatenate([m.missing for m in maps])),
            "missing_weight": np.array([m.missing_weight for m in maps]),
        }

    @classmethod
    def unpack(cls, bases: Sequence[str], arrays: Arrays) -> list[Self]:
        size = take_array(arrays, "size", np.int64, (len(bases), 2))
        computed = take_array(arrays, "computed", np.bool_, (len(bases),))
        n_functions, n_points = size.T
        if (size < 1).any() or (size > _MOST_POINTS).any() or n_points[computed].sum() > _MOST_COMPUTED:
            raise ValueError("the sizes of the maps are not plausible.")
        if (n_functions > n_points + 2).any():  # one for each point, the constant, and one for missing values
            raise ValueError("the maps have more functions than points could tell apart.")
        n_stored = n_functions * np.where(computed, 1, n_points)
        lengths = {"points": n_points, "weights": n_points, "table": n_stored, "missing": n_functions}
        flat = {name: take_array(arrays, name, np.float64, (int(n.sum()),)) for name, n in lengths.items()}
        gap_weights = take_array(arrays, "missing_weight", np.float64, (len(bases),))
        if not all(np.isfinite(array).all() for array in flat.values()):
            raise ValueError("the maps contain NaN or infinity.")
        if not ((gap_weights >= 0) & (gap_weights <= 1)).all():
            raise ValueError("the weights of missing values in the maps are not plausible.")
        cut = [np.split(flat[name], np.cumsum(n)[:-1]) for name, n in lengths.items()]
        columns = zip(*cut, size.tolist(), computed.tolist(), gap_weights.tolist(), bases, strict=True)
        maps = []
        for points, weights, table, gap, shape, is_computed, gap_weight, basis in columns:
            cls._check_points(points, weights)
            if is_computed:
                if (shapes := cls._shapes(basis, points, weights, shape[0], gap_weight > 0)) is None:
                    raise ValueError(f"the functions of the {cls.kind} maps do not follow from their points.")
                with np.errstate(over="ignore", invalid="ignore"):  # too large a function is refused below
                    table = table[:, None] * shapes
            maps.append(cls(points.copy(), weights.copy(), table.reshape(shape).copy(), gap.copy(), gap_weight, basis))
        if not all((np.abs(array) <= _LARGEST).all() for m in maps for array in (m.table, m.missing)):
            raise ValueError(f"the functions of the maps should not exceed {_LARGEST:g}.")
        if any((m.table[0] != 1).any() or m.missing[0] != 1 for m in maps):
            raise ValueError("the functions of the maps are not plausible.")
        return maps

    @classmethod
    def _check_points(cls, points: FloatArray, weights: FloatArray) -> None:
        """Refuse points and weights from a file that are not plausible."""
        if not ((points[1:] > points[:-1]).all() and (weights >= 0).all()):
            raise ValueError("the points or weights of the maps are not plausible.")
        if abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError("the weights of the maps do not sum to 1.")
        if cls.least_step and (np.diff(points / 2) <= cls.least_step).any():  # positions between them overflow
            raise ValueError(f"the points of the {cls.kind} maps are too close to each other.")


def _once(arrays: Sequence[Array]) -> tuple[Array, list[int]]:
    """Return the numbers of arrays one after another, equal arrays once, and where each begins."""
    different = {array.tobytes(): array.ravel() for array in arrays}
    starts = dict(zip(different, np.cumsum([0, *map(len, different.values())]).tolist(), strict=False))
    return np.concatenate(list(different.values())), [starts[array.tobytes()] for array in arrays]


def _in_single(numbers: FloatArray) -> FloatArray:
    """Return numbers rounded to float32."""
    return numbers.astype(np.float32).astype(np.float64)


def mean_values(n: int) -> FloatArray:
    """Functions where nothing is known: all but the constant have their mean, 0."""
    return np.append(1.0, np.zeros(n - 1))


def row_parts(weights: FloatArray, missing: float) -> tuple[FloatArray, float]:
    """Weights as parts of the rows that are not missing, and the part of all rows that is."""
    total = float(weights.sum())
    if total > 0:
        return weights / total, float(missing / (total + missing))
    return np.full(len(weights), 1.0 / len(weights)), float(missing > 0)
