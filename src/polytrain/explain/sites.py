"""Distributions of columns, and columns as sites of a train: their means and deviations from them.

A site is a column: one core where the column is one feature, several adjacent ones where it became more, as dates do.
``G(x)`` is the product of its cores at a value x of the column, and the score is the product of these matrices. With
independent columns, only the mean of ``G(x)`` and the covariance of its entries matter. The features of one column
depend on each other: with given rows, their combinations are counted; without rows, they are taken as independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.checks import check_mass, check_weights
from polytrain.columns import DateColumn
from polytrain.columns.cells import Cells
from polytrain.explain.view import ModelView
from polytrain.maps import CategoryMap
from polytrain.maps.tabulated import TabulatedMap
from polytrain.tensor.decompose import orthogonalize_cores, scale_exponent

# Combinations of the features of one column whose matrices are formed at once.
_BLOCK = 2048
# Name of the levels that the model does not distinguish.
_OTHER_LEVELS = "other levels"


@dataclass(frozen=True)
class ColumnMeasure:
    """Distribution of every column: coordinates (Q,) and weights (Q,), which sum to 1, of each of its features.

    ``rows`` (Q, d) holds the given rows as features, and ``n_rows`` their number or weight; both are None if the
    distributions are those of the maps.
    """

    view: ModelView
    features: list[tuple[NDArray, NDArray]]
    rows: NDArray | None = None
    n_rows: float | None = None

    @cached_property
    def means(self) -> list[NDArray]:
        """Mean of every function: one array (n_k,) per feature."""
        return [m.values(x) @ weights for m, (x, weights) in zip(self.view.fitted.maps, self.features, strict=True)]

    @cached_property
    def matrices(self) -> list[NDArray]:
        """Matrices (n_k, n_k) that rewrite a map's functions in functions which are orthonormal under the measure.

        The j-th new function is function j without the part that functions 0 to j - 1 explain; the first is the
        constant 1. In the new coefficients, the variance is the sum of the squares of all but the constant's.
        """
        matrices = []
        for feature_map, (points, weights) in zip(self.view.fitted.maps, self.features, strict=True):
            values = (feature_map.values(points) * np.sqrt(weights)).T
            padding = np.zeros((max(feature_map.n - len(values), 0), feature_map.n))  # R needs n rows
            upper = np.asarray(np.linalg.qr(np.concatenate([values, padding]), mode="r"))
            matrices.append((upper * np.where(np.diagonal(upper) < 0, -1.0, 1.0)[:, None]).T)
        return matrices

    def is_joint(self, column: int) -> bool:
        """Whether a column has several features whose combinations are known."""
        return self.rows is not None and len(self.view.groups[column]) > 1

    def combinations(self, column: int) -> tuple[list[NDArray], NDArray]:
        """Function values (n_k, Q) of each feature at the different values of a column, and their weights (Q,)."""
        group = self.view.groups[column]
        points = np.stack([self.features[k][0] for k in group])
        different, index = np.unique(points, axis=1, return_inverse=True)
        weights = np.bincount(index.ravel(), self.features[group[0]][1], minlength=different.shape[1])
        return [self.view.fitted.maps[k].values(x) for k, x in zip(group, different, strict=True)], weights

    def site_blocks(self, column: int, cores: Sequence[NDArray]) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield weights (Q,) and matrices (Q, left rank, right rank) of the combinations of a column."""
        functions, weights = self.combinations(column)
        for start in range(0, len(weights), _BLOCK):
            block = slice(start, start + _BLOCK)
            yield weights[block], site_matrices(cores, [values[:, block] for values in functions])

    def site_mean(self, column: int, cores: Sequence[NDArray]) -> NDArray:
        """Mean of the matrix of a column, given the cores of its features."""
        if self.is_joint(column):
            blocks = self.site_blocks(column, cores)
            return np.sum([np.tensordot(weights, matrices, axes=1) for weights, matrices in blocks], axis=0)
        return site_matrices(cores, [self.means[k][:, None] for k in self.view.groups[column]])[0]


def make_measure(view: ModelView, X: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ColumnMeasure:
    """Distribution of every column: that in the rows of X, or that in its map."""
    if X is not None:
        rows = view.rows(X)
        weights = check_weights(sample_weight, len(rows))
        features = [(points, weights / weights.sum()) for points in view.fitted.maps.place(rows)]
        return ColumnMeasure(view, features, rows, check_mass(sample_weight, len(rows)))
    if sample_weight is not None:
        raise ValueError("sample_weight belongs to the rows of X; pass X as well, or leave sample_weight out.")
    features = []
    for name, feature_map in zip(view.feature_names, view.fitted.maps, strict=True):
        measure = feature_map.measure()
        if measure is None:
            raise ValueError(
                f"the model does not know the range of its feature {name!r} (as with basis='power-unscaled'); pass X, "
                "such as the training rows, to average over."
            )
        features.append(measure)
    return ColumnMeasure(view, features)


def site_matrices(cores: Sequence[NDArray], functions: Sequence[NDArray]) -> NDArray:
    """Products of adjacent cores at values of their functions.

    Shapes: cores (a, n, b) each, functions (n, Q) each -> (Q, first a, last b).
    """
    return reduce(np.matmul, [np.tensordot(v, core, axes=(0, 1)) for core, v in zip(cores, functions, strict=True)])


def column_cores(measure: ColumnMeasure, output: int) -> tuple[list[NDArray], int]:
    """One core per column, in functions that are orthonormal under the measure, the constant first.

    The functions of a column that is one feature are the map's, made orthonormal; those of other columns are any that
    span all that the train can distinguish. The cores are right-orthogonal: what lies right of a column sums to the
    identity, and nothing overflows. The train is theirs times 2 to the power of the integer that is also returned.
    """
    cores, sites = measure.view.fitted.trains[output].cores, []
    for column, group in enumerate(measure.view.groups):
        if measure.is_joint(column):
            sites.append(_joint_core(measure, column, [cores[k] for k in group]))
        else:
            sites.append(reduce(_merge, [np.einsum("aib,ij->ajb", cores[k], measure.matrices[k]) for k in group]))
    return orthogonalize_cores(sites, 0)


def _joint_core(measure: ColumnMeasure, column: int, cores: Sequence[NDArray]) -> NDArray:
    """Core of a column whose features are distributed together."""
    shape = cores[0].shape[0], cores[-1].shape[2]
    upper = np.zeros((0, 1 + shape[0] * shape[1]))
    for weights, matrices in measure.site_blocks(column, cores):
        rows = np.column_stack([np.ones(len(matrices)), matrices.reshape(len(matrices), -1)])
        # The first function is the constant: its coefficients are means, and deviations from them remain below it.
        upper = np.asarray(np.linalg.qr(np.vstack([upper, np.sqrt(weights)[:, None] * rows]), mode="r"))
    sign = np.where(upper[:1, :1] < 0, -1.0, 1.0)
    return np.ascontiguousarray((sign * upper[:, 1:]).reshape(-1, *shape).transpose(1, 0, 2))


def _merge(left: NDArray, right: NDArray) -> NDArray:
    """Two sites as one, with at most as many functions as there are entries in its matrices."""
    merged = np.einsum("aib,bjc->aijc", left, right, optimize=True)
    first, _, _, last = merged.shape
    merged = merged.reshape(first, -1, last)
    varying = merged[:, 1:].transpose(1, 0, 2).reshape(-1, first * last)
    if len(varying) > first * last:
        varying = np.asarray(np.linalg.qr(varying, mode="r"))
    return np.concatenate([merged[:, :1], varying.reshape(-1, first, last).transpose(1, 0, 2)], axis=1)


class Sites:
    """One train of a model with the means of its columns, to evaluate effects at values of columns.

    The values of a column are given by the numbers (Q,) of each of its features. The cores are right-orthogonal, so
    that products of hundreds of them neither overflow nor vanish.
    """

    def __init__(self, measure: ColumnMeasure, output: int) -> None:
        self.view, self.output = measure.view, output
        cores, self._exponent = orthogonalize_cores(self.view.fitted.trains[output].cores, 0)
        self._cores = [cores[group.start : group.stop] for group in self.view.groups]
        self._means = [measure.site_mean(column, some) for column, some in enumerate(self._cores)]
        self._suffix = suffix_products(self._means)
        self._prefix = suffix_products([mean.T for mean in reversed(self._means)])[::-1]

    def main(self, column: int, numbers: Sequence[NDArray]) -> NDArray:
        """Main effect (Q,) of a column."""
        left = self._deviation(column, numbers, self._prefix[column], False)
        return scale_exponent(left @ self._suffix[column + 1], self._exponent)

    def pair(self, i: int, j: int, first: Sequence[NDArray], second: Sequence[NDArray], on_grid: bool) -> NDArray:
        """Effect of the columns i < j: (Q,) row by row, or (Q, P) on the grid of both."""
        between = reduce(np.matmul, self._means[i + 1 : j], np.eye(self._means[i].shape[1]))
        left = self._deviation(i, first, self._prefix[i], False) @ between
        right = self._deviation(j, second, self._suffix[j + 1], True)
        return scale_exponent(left @ right.T if on_grid else np.sum(left * right, axis=1), self._exponent)

    def _deviation(self, column: int, numbers: Sequence[NDArray], vector: NDArray, transposed: bool) -> NDArray:
        """Product of a vector and the deviation of a column from its mean, or its transpose, (Q, rank)."""
        cores, mean, functions = self._cores[column], self._means[column], self.view.column_functions(column, numbers)
        if transposed:
            cores, functions, mean = [core.T for core in reversed(cores)], functions[::-1], mean.T
        first = np.tensordot(vector, cores[0], axes=1)[None]
        return site_matrices([first, *cores[1:]], functions)[:, 0] - vector @ mean


def suffix_products(matrices: Sequence[NDArray]) -> list[NDArray]:
    """Products of the matrices from k on, which end in a single column: d + 1 vectors."""
    vectors = [np.ones(1)]
    for matrix in reversed(matrices):
        vectors.append(matrix @ vectors[-1])
    return vectors[::-1]


@dataclass(frozen=True)
class ColumnAxis:
    """Values of a column.

    ``grid`` (Q,) holds numbers, names of levels or dates, ``features`` the numbers (Q,) of each feature of the column,
    and ``parts`` (Q,) the share of the rows nearest to each value. ``missing_part`` is the share of missing values, or
    None where the column has none.
    """

    kind: str
    grid: NDArray
    features: list[NDArray]
    parts: NDArray
    missing_part: float | None


def column_axis(measure: ColumnMeasure, column: int, size: int) -> ColumnAxis:
    """Values of a column: all levels of a category, and at most ``size`` numbers or dates from end to end."""
    view = measure.view
    feature, kind, levels = view.groups[column][0], view.column(column), view.levels(column)
    feature_map, numbers = view.fitted.maps[feature], number_grid(measure, feature, size)
    if levels is not None and not isinstance(feature_map, CategoryMap):
        numbers = np.arange(len(levels), dtype=np.float64)
    grid, features = numbers, [numbers]
    if isinstance(kind, DateColumn):
        unit, per_day = ("m", 1440.0) if "hour" in kind.parts else ("D", 1.0)
        grid = np.unique(np.rint(numbers * per_day)).astype(np.int64).astype(f"datetime64[{unit}]")
        features = kind.encode(Cells.of_array(kind.name, grid))
    # The distribution of the column, NaN where a value is missing; uniform if only its range is known.
    values, weights = features[0], measure.features[feature][1]
    if measure.rows is not None:
        values = measure.rows[:, feature]
    elif isinstance(feature_map, TabulatedMap):
        values = np.append(feature_map.points, np.nan)[: len(weights)]
    else:
        weights = np.full(len(values), 1.0 / len(values))
    present = ~np.isnan(values)
    missing = float(weights[~present].sum())
    missing_part = missing if missing > 0 or feature_map.has_missing else None
    values, weights = values[present], weights[present]
    is_map = isinstance(feature_map, CategoryMap)
    if levels is None and not is_map:
        nearest = np.searchsorted(features[0][:-1] / 2 + features[0][1:] / 2, values)
        return ColumnAxis(kind.kind, grid, features, np.bincount(nearest, weights, minlength=len(grid)), missing_part)
    names = [
        f"{code:g}" if levels is None else levels[int(code)] if 0 <= code < len(levels) else _OTHER_LEVELS
        for code in numbers
    ]
    places = feature_map.place(values) if is_map else np.where(values < 0, len(numbers), values)
    parts = np.bincount(places.astype(np.intp), weights, minlength=len(numbers) + 1)
    if parts[-1] > 0:
        names.append(_OTHER_LEVELS)
        numbers = np.append(numbers, numbers.max() + 1.0 if levels is None else -1.0)
    return ColumnAxis("category", np.array(names, dtype=object), [numbers], parts[: len(numbers)], missing_part)


def number_grid(measure: ColumnMeasure, feature: int, size: int) -> NDArray:
    """At most ``size`` values of a feature from end to end; all of them where there are few."""
    feature_map = measure.view.fitted.maps[feature]
    if isinstance(feature_map, TabulatedMap) and len(feature_map.points) <= size:
        return feature_map.points.copy()
    grid = feature_map.grid(size)
    if grid is None and measure.rows is not None:  # without rows, a map without a range has no measure either
        grid = np.linspace(measure.rows[:, feature].min(), measure.rows[:, feature].max(), size)
    return np.zeros(1) if grid is None else grid
