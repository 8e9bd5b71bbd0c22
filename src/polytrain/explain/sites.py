"""Columns of a table as sites of a train: their means and their deviations from them, under independent columns.

A site is a column. It has one core where the column is one feature, and several that follow each other where it became
more, as dates do. ``G(x)`` is the product of its cores at a value x of the column, a matrix; the score is the product
of these matrices over the columns. Columns being independent, all that is asked needs of a column is the mean of
``G(x)`` and the covariance of its entries.

The features of one column depend on each other: of given rows, their combinations are counted as they occur. Without
rows only the distribution of every single feature is known, and the features of a column are independent, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.explain.measure import FeatureMeasure, make_measure, orthonormal_matrices
from polytrain.explain.view import ModelView
from polytrain.maps import MapList
from polytrain.tensor import TensorTrain
from polytrain.tensor.decompose import orthogonalize_cores, scale_exponent

__all__ = [
    "ColumnMeasure",
    "Sites",
    "column_cores",
    "make_column_measure",
    "open_sites",
    "site_matrices",
    "suffix_products",
]

# Combinations of the features of one column whose matrices are formed at once.
_BLOCK = 2048


@dataclass(frozen=True)
class ColumnMeasure:
    """Distribution of every column: points and weights of its features, which belong together where ``joint``."""

    maps: MapList
    groups: tuple[range, ...]
    features: list[FeatureMeasure]
    matrices: list[NDArray]
    joint: bool

    def combinations(self, column: int) -> tuple[list[NDArray], NDArray]:
        """Different values of a column of several features, as coordinates (Q,) of each, and their weights (Q,)."""
        group = self.groups[column]
        points = np.stack([self.features[k][0] for k in group])
        different, index = np.unique(points, axis=1, return_inverse=True)
        weights = np.bincount(index.ravel(), self.features[group[0]][1], minlength=different.shape[1])
        return list(different), weights

    def functions(self, column: int, points: Sequence[NDArray]) -> list[NDArray]:
        """Functions (n_k, Q) of the features of a column at coordinates (Q,) of each."""
        return [self.maps[k].values(some) for k, some in zip(self.groups[column], points, strict=True)]


def make_column_measure(view: ModelView, X: ArrayLike | None, sample_weight: ArrayLike | None) -> ColumnMeasure:
    """Distribution of every column: that in the rows of X, or what the maps say."""
    features = make_measure(view, X, sample_weight)
    matrices = orthonormal_matrices(view, features)
    return ColumnMeasure(view.maps, view.groups, features, matrices, joint=X is not None)


def site_matrices(cores: Sequence[NDArray], functions: Sequence[NDArray]) -> NDArray:
    """Products of cores at values of their functions (n_k, Q): matrices (Q, left rank, right rank)."""
    found = np.einsum("aib,iq->qab", cores[0], functions[0], optimize=True)
    for core, values in zip(cores[1:], functions[1:], strict=True):
        found = found @ np.einsum("aib,iq->qab", core, values, optimize=True)
    return found


def column_cores(train: TensorTrain, measure: ColumnMeasure) -> list[NDArray]:
    """One core per column, in functions that are orthonormal under the measure, the constant first.

    The functions of a column that is one feature are the map's, made orthonormal; those of others are any that span
    what the train can tell.
    """
    cores = [core.astype(np.float64, copy=False) for core in train.cores]
    found = []
    for column, group in enumerate(measure.groups):
        if len(group) > 1 and measure.joint:
            found.append(_joint_core(measure, column, [cores[k] for k in group]))
            continue
        site = np.einsum("aib,ij->ajb", cores[group[0]], measure.matrices[group[0]])
        for k in group[1:]:
            site = _merge(site, np.einsum("aib,ij->ajb", cores[k], measure.matrices[k]))
        found.append(site)
    return found


def _joint_core(measure: ColumnMeasure, column: int, cores: Sequence[NDArray]) -> NDArray:
    """Core of a column whose features are distributed together."""
    points, weights = measure.combinations(column)
    shape = cores[0].shape[0], cores[-1].shape[2]
    upper = np.zeros((0, 1 + shape[0] * shape[1]))
    for start in range(0, len(weights), _BLOCK):
        some = slice(start, start + _BLOCK)
        matrices = site_matrices(cores, measure.functions(column, [p[some] for p in points]))
        rows = np.column_stack([np.ones(len(matrices)), matrices.reshape(len(matrices), -1)])
        # The first function is the constant. Its coefficients are means, and below it deviations from them are left.
        stacked = np.vstack([upper, np.sqrt(weights[some])[:, None] * rows])
        upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    sign = np.where(upper[:1, :1] < 0, -1.0, 1.0)
    return np.ascontiguousarray((sign * upper[:, 1:]).reshape(-1, *shape).transpose(1, 0, 2))


def _merge(left: NDArray, right: NDArray) -> NDArray:
    """Two sites as one, with no more functions than there are entries in its matrices."""
    merged = np.einsum("aib,bjc->aijc", left, right, optimize=True)
    first, _, _, last = merged.shape
    merged = merged.reshape(first, -1, last)
    varying = merged[:, 1:].transpose(1, 0, 2).reshape(-1, first * last)
    if len(varying) > first * last:
        varying = np.asarray(np.linalg.qr(varying, mode="r"))
    return np.concatenate([merged[:, :1], varying.reshape(-1, first, last).transpose(1, 0, 2)], axis=1)


@dataclass(frozen=True)
class Sites:
    """The columns of one train: what is needed to evaluate effects at values of columns.

    ``cores`` are those of the features, their size taken out as a power of 2; ``function_means`` the means (n_k,) of
    the functions of a column that is one feature; ``means`` those of ``G(x)``, and ``prefix`` and ``suffix`` their
    products before and after every column.
    """

    measure: ColumnMeasure
    cores: list[NDArray]
    exponent: int
    function_means: list[NDArray]
    means: list[NDArray]
    prefix: list[NDArray]
    suffix: list[NDArray]

    @property
    def mean(self) -> float:
        """Mean of the train."""
        return float(self.scaled(self.prefix[-1])[0])

    def scaled(self, values: NDArray) -> NDArray:
        """Bring values to the units of the train."""
        return scale_exponent(np.asarray(values, dtype=np.float64), self.exponent)

    def left(self, column: int, functions: Sequence[NDArray]) -> NDArray:
        """What is before a column, times its deviation from its mean: functions (n_k, Q) each -> (Q, right rank)."""
        group = self.measure.groups[column]
        if len(group) == 1:
            return (functions[0] - self.function_means[column][:, None]).T @ np.tensordot(
                self.prefix[column], self.cores[group[0]], axes=1
            )
        rows = np.repeat(self.prefix[column][None], functions[0].shape[1], axis=0)
        for k, values in zip(group, functions, strict=True):
            rows = np.einsum("qa,aib,iq->qb", rows, self.cores[k], values, optimize=True)
        return rows - self.prefix[column] @ self.means[column]

    def right(self, column: int, functions: Sequence[NDArray]) -> NDArray:
        """The deviation of a column from its mean, times what is after it: functions (n_k, Q) -> (Q, left rank)."""
        group = self.measure.groups[column]
        if len(group) == 1:
            return (functions[0] - self.function_means[column][:, None]).T @ (
                self.cores[group[0]] @ self.suffix[column + 1]
            ).T
        rows = np.repeat(self.suffix[column + 1][None], functions[0].shape[1], axis=0)
        for k, values in zip(reversed(group), reversed(functions), strict=True):
            rows = np.einsum("qb,aib,iq->qa", rows, self.cores[k], values, optimize=True)
        return rows - self.means[column] @ self.suffix[column + 1]

    def main(self, column: int, functions: Sequence[NDArray]) -> NDArray:
        """Main effect of a column, (Q,)."""
        return self.scaled(self.left(column, functions) @ self.suffix[column + 1])

    def between(self, first: int, second: int) -> NDArray:
        """Product of the means of the columns between two."""
        product = np.eye(self.means[first].shape[1])
        for column in range(first + 1, second):
            product = product @ self.means[column]
        return product


def open_sites(train: TensorTrain, measure: ColumnMeasure) -> Sites:
    """Compute the means of every column of a train."""
    # Right-orthogonal cores: products of hundreds of them neither overflow nor vanish.
    cores, exponent = orthogonalize_cores([core.astype(np.float64, copy=False) for core in train.cores], 0)
    feature_means = [measure.maps[k].values(points) @ weights for k, (points, weights) in enumerate(measure.features)]
    means, function_means = [], []
    for column, group in enumerate(measure.groups):
        if len(group) > 1 and measure.joint:
            means.append(_joint_mean(measure, column, [cores[k] for k in group]))
        else:
            means.append(site_matrices([cores[k] for k in group], [feature_means[k][:, None] for k in group])[0])
        function_means.append(feature_means[group[0]])
    prefix = [np.ones(1)]
    for mean in means:
        prefix.append(prefix[-1] @ mean)
    return Sites(measure, cores, exponent, function_means, means, prefix, suffix_products(means))


def _joint_mean(measure: ColumnMeasure, column: int, cores: Sequence[NDArray]) -> NDArray:
    points, weights = measure.combinations(column)
    total = np.zeros((cores[0].shape[0], cores[-1].shape[2]))
    for start in range(0, len(weights), _BLOCK):
        some = slice(start, start + _BLOCK)
        matrices = site_matrices(cores, measure.functions(column, [p[some] for p in points]))
        total += np.tensordot(weights[some], matrices, axes=1)
    return total


def suffix_products(matrices: Sequence[NDArray]) -> list[NDArray]:
    """Products of the matrices from k on, which end in a single column: d + 1 vectors."""
    vectors = [np.ones(1)]
    for matrix in reversed(matrices):
        vectors.append(matrix @ vectors[-1])
    return vectors[::-1]
