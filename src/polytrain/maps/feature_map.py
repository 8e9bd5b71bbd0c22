"""What a feature map is: one column -> the values of a few functions, the first of them constant.

Conventions
-----------
A map works in two steps. ``place`` turns raw values into coordinates, one number per row, once per fit; ``values``
turns coordinates into function values, again and again, so it must be cheap. Rows are the last axis: coordinates are
``(N,)``, values ``(n, N)``, in the dtype of the coordinates. The functions carry their prior: a train's regularisation
weighs all coefficients alike, so a function that is to be used gently is small.

What concerns all columns of a kind at once (placing, storing, exporting) is a class method that gets the list of maps,
so that hundreds of columns cost one call.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.writing import CWriter, GraphWriter

__all__ = ["AffinePowers", "ColumnSummary", "FeatureMap", "MapSettings", "ProductRule"]


@dataclass(frozen=True)
class MapSettings:
    """What an estimator asks of the map of a column.

    Attributes
    ----------
    basis : str
        Which functions; one of `polytrain.maps.basis_names`.
    degree : int
        Largest power, for polynomials; other maps find the number of their functions themselves.
    scale : {"minmax"} or None
        Whether polynomials know the range of the column.
    bandwidth : float or None
        Size of the prior of all columns together; None for 1, and for polynomials as they are.
    n_columns : int
        Number of columns that share it.
    """

    basis: str
    degree: int = 2
    scale: str | None = "minmax"
    bandwidth: float | None = None
    n_columns: int = 1

    @property
    def size(self) -> float:
        """Standard deviation that all functions of the column have together."""
        return (1.0 if self.bandwidth is None else self.bandwidth) / math.sqrt(self.n_columns)


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What a map may know about the values of its column in the training rows.

    Attributes
    ----------
    low, high : float
        Range of the values.
    values, weights : ndarray of shape (K,)
        Different values in order, and the total weight of each; empty where no map of the fit asks for them, or where
        all are missing. Of very many rows, those of a sample. None of them is NaN.
    missing : float
        Total weight of the missing values (NaN), in the unit of ``weights``.
    notes : dict
        What a map has found out about the column, for maps of other kinds; empty at first.
    """

    low: float
    high: float
    values: NDArray = field(default_factory=lambda: np.zeros(0))
    weights: NDArray = field(default_factory=lambda: np.zeros(0))
    missing: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass(frozen=True)
class ProductRule:
    """Products of two functions of a map as combinations of a few functions.

    It is what lets a core problem be assembled from few moments.

    Attributes
    ----------
    table : ndarray of shape (n, n, m)
        ``phi_i phi_j = sum over e of table[i, j, e] psi_e``.
    values : callable
        Coordinates (N,) and an array (m, N) to write to -> the values of all psi; the first is the constant 1.
    size : int
        Number of functions psi.
    """

    table: NDArray
    values: Callable[[NDArray, NDArray], NDArray]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.table.shape[2])


@dataclass(frozen=True)
class AffinePowers:
    """A map whose functions are polynomials of ``x = factor * (raw value - centre)``.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        Row i holds function i as coefficients of 1, x, x^2, ...
    centre, factor : float
        How a raw value becomes x; ``factor`` is 0 where all values become 0.
    """

    matrix: NDArray
    centre: float
    factor: float


@cache
def _pair_table(n: int) -> NDArray:
    """Table of the rule that keeps every product of two functions as it is."""
    table = np.zeros((n, n, n * (n + 1) // 2))
    for e, (i, j) in enumerate(zip(*np.triu_indices(n), strict=True)):
        table[i, j, e] = table[j, i, e] = 1.0
    table.setflags(write=False)
    return table


class FeatureMap(ABC):
    """How one column enters a train. Subclasses are immutable.

    A kind of map states ``kind``, ``bases``, ``n``, how it is fitted, placed, evaluated and stored. The rest has
    defaults: no compact product rule, a prior of 1, a linear model in all functions, no range, no powers, no export.
    """

    #: Name of the kind in model files.
    kind: ClassVar[str]
    #: Names under which estimators ask for it.
    bases: ClassVar[tuple[str, ...]]
    #: Whether fitting it takes the values of the column, and not only their range.
    needs_values: ClassVar[bool] = False
    #: Whether NaN is a value like any other; where it is not, no map may see one.
    takes_missing: ClassVar[bool] = False
    #: Which of them this map is.
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

    def growth(self, before: MapSettings, after: MapSettings) -> NDArray:
        """What every function is multiplied by if the bandwidth changes, (n,)."""
        return np.ones(self.n)

    def grown(self, factors: NDArray) -> Self:
        """Return the map whose functions are multiplied by these numbers, the first of them 1."""
        if (factors == 1.0).all():
            return self
        raise TypeError(f"maps of the kind {self.kind!r} have no bandwidth.")

    # --- evaluation ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def place(self, column: NDArray) -> NDArray:
        """Raw values (N,) -> coordinates (N,) of the same dtype."""

    @abstractmethod
    def values(self, x: NDArray, out: NDArray | None = None) -> NDArray:
        """Coordinates (N,) -> function values (n, N), written to ``out`` if it is given; the first is 1."""

    def knots(self, dtype: np.dtype) -> NDArray | None:
        """Functions that are straight lines between knots, at these: (knots + 1, n), or None for any others.

        Then coordinates count knots, 2.5 is half-way between the third and the fourth, and none lies beyond the last
        entry but one.
        """
        return None

    @classmethod
    def place_all(cls, maps: Sequence[Self]) -> Callable[[NDArray], NDArray]:
        """Return what turns raw rows (N, len(maps)) into coordinates (len(maps), N)."""

        def place(X: NDArray) -> NDArray:
            out = np.empty(X.shape[::-1], dtype=X.dtype)
            for line, feature_map, column in zip(out, maps, X.T, strict=True):
                line[:] = feature_map.place(np.ascontiguousarray(column))
            return out

        return place

    # --- learning -----------------------------------------------------------------------------------------------------

    @property
    def prior(self) -> NDArray:
        """Size of each function, (n,): function i is this number times one of size 1 in the kind's own measure."""
        return np.ones(self.n)

    @property
    def n_linear(self) -> int:
        """Number of functions that a linear model has of this column: by default all but the constant."""
        return self.n - 1

    @property
    def linear(self) -> NDArray:
        """Coefficients (l, n) of the functions that a linear model has of this column: all but the constant."""
        return np.eye(self.n)[1:]

    def linear_values(self, x: NDArray) -> NDArray:
        """Coordinates (N,) -> values (l, N) of the functions that a linear model has of this column."""
        return self.values(x)[1:]

    @property
    def products(self) -> ProductRule:
        """The rule for products of two functions: by default, each product is a function of its own."""
        return ProductRule(_pair_table(self.n), self._pair_values)

    def _pair_values(self, x: NDArray, out: NDArray) -> NDArray:
        values, start = self.values(x), 0
        for i in range(self.n):
            stop = start + self.n - i
            np.multiply(values[i], values[i:], out=out[start:stop])
            start = stop
        return out

    # --- explanations and pictures ------------------------------------------------------------------------------------

    @property
    def range(self) -> tuple[float, float] | None:
        """Least and largest raw value that the map tells from its neighbours; None if it knows of no bounds."""
        return None

    def grid(self, size: int) -> NDArray | None:
        """Raw values at which a curve over this column is worth drawing; None if the range is not known."""
        return None if self.range is None else np.linspace(*self.range, size)

    def measure(self) -> tuple[NDArray, NDArray] | None:
        """Coordinates and weights (sum 1) whose mean stands for the mean over the range; None if that is unknown."""
        return None

    @property
    def powers(self) -> AffinePowers | None:
        """The functions as polynomials; None if they are none."""
        return None

    # --- how large values can become ----------------------------------------------------------------------------------

    @property
    def bound(self) -> float:
        """What no function exceeds at any value within the range: by default 1."""
        return 1.0

    def extremes(self) -> NDArray:
        """Functions (n, P) at a few values where they are large: by default along the range, or around 0."""
        grid = self.grid(9)
        return self.values(self.place(np.linspace(-1.0, 1.0, 9) if grid is None else grid))

    # --- model files and exports --------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def pack(cls, maps: Sequence[Self]) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Return what a model file keeps of these maps: JSON, and arrays."""

    @classmethod
    @abstractmethod
    def unpack(cls, entries: dict[str, Any], arrays: dict[str, NDArray], count: int) -> list[Self]:
        """Make ``count`` maps of what `pack` returned. Trust nothing: a ``ValueError`` says what is wrong."""

    @classmethod
    def add_to_graph(cls, maps: Sequence[Self], graph: GraphWriter, columns: str) -> list[str]:
        """Write the maps into an ONNX graph. Raw columns (len(maps), N) -> functions 1 to n - 1, each (len(maps), N).

        Maps with fewer functions than others may leave anything finite in those that they lack.
        """
        raise TypeError(f"maps of the kind {cls.kind!r} have no ONNX export.")

    @classmethod
    def c_code(cls, maps: Sequence[Self], writer: CWriter) -> str:
        """Write the maps in C: tables, and ``static void KIND_values(REAL value, int k, REAL *phi)``.

        It writes all functions of the k-th of these maps at a raw value to ``phi``; KIND is the name of the kind.
        """
        raise TypeError(f"maps of the kind {cls.kind!r} have no export to C.")
