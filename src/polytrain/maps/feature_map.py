"""The interface of feature maps: one column -> the values of a few functions, the first of them constant.

Conventions
-----------
A map works in two steps. ``place`` turns raw values into coordinates, one number per row, once per fit; ``values``
turns coordinates into function values, again and again, so it must be cheap. Rows are the last axis: coordinates are
``(N,)``, values ``(n, N)``, in the dtype of the coordinates. The functions carry their prior: regularisation weighs all
coefficients alike, so a function with a narrow prior has small values.

Class methods that get a list of maps place, store and export all columns of a kind in one call.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np

from polytrain.arrays import Array, FloatArray
from polytrain.export_writers import CWriter, GraphWriter

__all__ = ["AffinePowers", "Arrays", "ColumnSummary", "FeatureMap", "MapSettings", "ProductRule", "take_array"]

#: Arrays of a model file, by name.
Arrays = dict[str, Array]


@dataclass(frozen=True)
class MapSettings:
    """Settings of the map of a column.

    Attributes
    ----------
    basis : str
        The functions; one of `polytrain.maps.basis_names`.
    degree : int
        Largest power, for polynomials; other maps find the number of their functions themselves.
    bandwidth : float or None
        Size of the prior of all columns together; None for 1, and for polynomials as they are.
    n_columns : int
        Number of columns that share it.
    """

    basis: str
    degree: int = 2
    bandwidth: float | None = None
    n_columns: int = 1

    @property
    def size(self) -> float:
        """Standard deviation that all functions of the column have together."""
        return (1.0 if self.bandwidth is None else self.bandwidth) / math.sqrt(self.n_columns)


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Summary of a column's values in the training rows.

    Attributes
    ----------
    low, high : float
        Range of the values.
    values, weights : ndarray of shape (K,)
        Different values in order, and the total weight of each; empty if no map of the fit needs them, or if all are
        missing. With very many rows, those of a sample. None of them is NaN.
    missing : float
        Total weight of the missing values (NaN), in the unit of ``weights``.
    knots : dict
        Knots that table maps have placed on the values, for maps that scale the values equally; empty at first.
    """

    low: float
    high: float
    values: FloatArray = field(default_factory=lambda: np.zeros(0))
    weights: Array = field(default_factory=lambda: np.zeros(0))
    missing: float = 0.0
    knots: dict[str, tuple[FloatArray, FloatArray, float]] = field(default_factory=dict, init=False, repr=False)

    def with_value(self) -> Self:
        """Return a summary with at least one value, because maps need a point; an added one has no weight."""
        if len(self.values):
            return self
        value = self.low if np.isfinite(self.low) else 0.0
        return replace(self, values=np.array([value]), weights=np.zeros(1))


@dataclass(frozen=True)
class ProductRule:
    """Products of two functions of a map as combinations of a few functions, so that few moments give a core problem.

    Attributes
    ----------
    size : int
        Number of functions psi, m.
    table : callable
        Returns the ndarray of shape (n, n, m) with ``phi_i phi_j = sum over e of table[i, j, e] psi_e``.
    values : callable
        Coordinates (N,) and an array (m, N) to write to -> the values of all psi; the first is the constant 1.
    """

    size: int
    table: Callable[[], FloatArray]
    values: Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class AffinePowers:
    """Functions of a map as polynomials of ``x = factor * (raw value - centre)``.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        Row i holds function i as coefficients of 1, x, x^2, ...
    centre, factor : float
        Centre and scale of a raw value; ``factor`` is 0 if all values become 0.
    """

    matrix: FloatArray
    centre: float
    factor: float


@cache
def _pair_table(n: int) -> FloatArray:
    """Table of the rule that keeps every product of two functions as it is."""
    table = np.zeros((n, n, n * (n + 1) // 2))
    first, second = np.triu_indices(n)
    pair = np.arange(len(first))
    table[first, second, pair] = table[second, first, pair] = 1.0
    table.setflags(write=False)
    return table


class FeatureMap(ABC):
    """The functions of one column that a train combines. Subclasses are immutable.

    A kind of map states ``kind``, ``bases``, ``n``, how it is fitted, placed, evaluated and stored. The rest has
    defaults: no compact product rule, a linear model in all functions, no range, no powers, no export.
    """

    #: Name of the kind in model files.
    kind: ClassVar[str]
    #: Names that select it as an estimator's ``basis``.
    bases: ClassVar[tuple[str, ...]]
    #: Whether fitting it takes the values of the column, and not only their range.
    needs_values: ClassVar[bool] = False
    #: Whether it takes NaN as a value; other maps must not see one.
    takes_missing: ClassVar[bool] = False
    #: The one of ``bases`` that this map has.
    basis: str
    #: Number of functions, the constant included.
    n: int

    @classmethod
    @abstractmethod
    def fit(cls, settings: MapSettings, column: ColumnSummary) -> Self:
        """Make the map of a column, see `polytrain.maps.fit_map`."""

    @property
    def has_missing(self) -> bool:
        """Whether values were missing in training."""
        return False

    def growth(self, before: MapSettings, after: MapSettings) -> FloatArray:
        """Return the factor of each function, (n,), if the bandwidth changes."""
        return np.ones(self.n)

    def grown(self, factors: FloatArray) -> Self:
        """Return the map whose functions are multiplied by these factors, the first of them 1; 0 drops a function."""
        if (factors == 1.0).all():
            return self
        raise TypeError(f"maps of the kind {self.kind!r} have no bandwidth.")

    @abstractmethod
    def place(self, column: FloatArray) -> FloatArray:
        """Raw values (N,) -> coordinates (N,) of the same dtype."""

    @classmethod
    def place_all(cls, maps: Sequence[Self]) -> Callable[[FloatArray], FloatArray]:
        """Return the function that turns raw rows (N, len(maps)) into coordinates (len(maps), N)."""

        def place(X: FloatArray) -> FloatArray:
            columns = zip(maps, X.T, strict=True)
            return np.stack([feature_map.place(np.ascontiguousarray(column)) for feature_map, column in columns])

        return place

    @abstractmethod
    def values(self, x: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Coordinates (N,) -> function values (n, N), written to ``out`` if it is given; the first is 1."""

    def knots(self, dtype: np.dtype[Any]) -> FloatArray | None:
        """Return the functions at knots, (knots + 1, n), if they are straight lines in between, else None.

        Then coordinates count knots, 2.5 is half-way between the third and the fourth, and none lies beyond the last
        entry but one.
        """
        return None

    @property
    def n_linear(self) -> int:
        """Number of functions after the constant that a linear model has of this column: by default all."""
        return self.n - 1

    @property
    def products(self) -> ProductRule:
        """The rule for products of two functions: by default, each product is a function of its own."""
        return ProductRule(self.n * (self.n + 1) // 2, partial(_pair_table, self.n), self._pair_values)

    def _pair_values(self, x: FloatArray, out: FloatArray) -> FloatArray:
        values, start = self.values(x), 0
        for i in range(self.n):
            stop = start + self.n - i
            np.multiply(values[i], values[i:], out=out[start:stop])
            start = stop
        return out

    @property
    def range(self) -> tuple[float, float] | None:
        """Smallest and largest raw value, beyond which the map is constant; None if it has no bounds."""
        return None

    def grid(self, size: int) -> FloatArray | None:
        """Raw values at which to draw a curve over this column; None if the range is not known."""
        return None if self.range is None else np.linspace(*self.range, size)

    def measure(self) -> tuple[FloatArray, FloatArray] | None:
        """Coordinates and weights (sum 1) whose mean represents the mean over the range; None if that is unknown."""
        return None

    @property
    def powers(self) -> AffinePowers | None:
        """The functions as polynomials; None if they are not polynomials."""
        return None

    def extremes(self) -> FloatArray:
        """Functions (n, P) at a few values where they are largest: by default along the range, or around 0."""
        grid = self.grid(9)
        return self.values(self.place(np.linspace(-1.0, 1.0, 9) if grid is None else grid))

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return raw values as in the training rows: by default from the `grid`, or around 0."""
        grid = self.grid(size)
        return rng.standard_normal(size) if grid is None else rng.choice(grid, size)

    @classmethod
    @abstractmethod
    def pack(cls, maps: Sequence[Self], exact: bool) -> Arrays:
        """Return the arrays of these maps for a model file, besides their bases.

        Unless it is to be ``exact``, functions may be rounded to float32, or be left out if `unpack` computes them.
        """

    @classmethod
    @abstractmethod
    def unpack(cls, bases: Sequence[str], arrays: Arrays) -> list[Self]:
        """Make maps with these bases, and remove the arrays of `pack` from others.

        Trust nothing but the bases: a ``ValueError`` names any problem.
        """

    @classmethod
    def add_to_graph(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> str:
        """Write the maps into an ONNX graph. Shapes: raw columns (len(maps), N) -> all but the constant (..., n - 1).

        n is the largest of these maps. Those with fewer functions may leave anything finite in those that they lack.
        """
        raise TypeError(f"maps of the kind {cls.kind!r} have no ONNX export.")

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        """Write the maps in C: tables, and ``static void KIND_values(REAL value, int k, REAL *phi)``.

        It writes all functions of the k-th of these maps at a raw value to ``phi``; KIND is the name of the kind.
        """
        raise TypeError(f"maps of the kind {cls.kind!r} have no export to C.")


def take_array(arrays: Arrays, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> Array:
    """Remove an array from those of a file and return it; it must have this type and shape."""
    array = arrays.pop(name, None)
    if array is None or array.dtype != dtype or array.shape != shape:
        raise ValueError(f"the array {name!r} of the maps is missing, or has a wrong type or shape.")
    return array
