"""Distributions of columns, and columns as sites of a train: their means and deviations from them.

A site is a column. It has one core where the column is one feature, and several adjacent ones where it became more, as
dates do. ``G(x)`` is the product of its cores at a value x of the column; the score is the product of these matrices
over the columns. With independent columns, only the mean of ``G(x)`` and the covariance of its entries matter.

The features of one column depend on each other: with given rows, their combinations are counted as they occur. Without
rows only the distribution of every single feature is known, and the features of a column are taken as independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.checks import check_weights
from polytrain.explain.view import ModelView
from polytrain.maps import MapList
from polytrain.tensor import TensorTrain
from polytrain.tensor.decompose import orthogonalize_cores, scale_exponent

__all__ = [
    "ColumnMeasure",
    "Sites",
    "column_cores",
    "make_measure",
    "open_sites",
    "row_weights",
    "site_matrices",
    "suffix_products",
]

# Combinations of the features of one column whose matrices are formed at once.
_BLOCK = 2048


@dataclass(frozen=True)
class ColumnMeasure:
    """Distribution of every column: coordinates (Q,) and weights (Q,), which sum to 1, of each of its features.

    ``joint`` says whether the features of a column share their rows.
    """

    maps: MapList
    groups: tuple[range, ...]
    features: list[tuple[NDArray, NDArray]]
    joint: bool

    @cached_property
    def means(self) -> list[NDArray]:
        """Mean of every function: one array (n_k,) per feature."""
        return [m.values(points) @ weights for m, (points, weights) in zip(self.maps, self.features, strict=True)]

    @cached_property
    def matrices(self) -> list[NDArray]:
        """Matrices (n_k, n_k) that rewrite a map's functions in functions which are orthonormal under the measure.

        Row i holds function i as a combination of the constant 1 and of uncorrelated functions with mean 0 and
        variance 1. In the new coefficients, the variance is the sum of the squares of all but the constant's.
        """
        matrices = []
        for feature_map, (points, weights), means in zip(self.maps, self.features, self.means, strict=True):
            # From the deviations and not from their covariance: squaring would lose half of the digits.
            deviations = (feature_map.values(points)[1:] - means[1:, None]) * np.sqrt(weights)
            left, singular, _ = np.linalg.svd(deviations, full_matrices=False)
            matrix = np.zeros((feature_map.n, feature_map.n))
            matrix[:, 0] = means
            matrix[1:, 1 : 1 + len(singular)] = left * singular
            matrices.append(matrix)
        return matrices

    def combinations(self, column: int) -> tuple[list[NDArray], NDArray]:
        """Different values of a column of several features, as coordinates (Q,) of each, and their weights (Q,)."""
        group = self.groups[column]
        points = np.stack([self.features[k][0] for k in group])
        different, index = np.unique(points, axis=1, return_inverse=True)
        weights = np.bincount(index.ravel(), self.features[group[0]][1], minlength=different.shape[1])
        return list(different), weights

    def functions(self, column: int, points: Sequence[NDArray]) -> list[NDArray]:
        """Functions (n_k, Q) of the features of a column at coordinates (Q,) of each."""
        return [self.maps[k].values(x) for k, x in zip(self.groups[column], points, strict=True)]

    def site_blocks(self, column: int, cores: Sequence[NDArray]) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield weights (Q,) and matrices (Q, left rank, right rank) of the combinations of a column."""
        points, weights = self.combinations(column)
        for start in range(0, len(weights), _BLOCK):
            block = slice(start, start + _BLOCK)
            yield weights[block], site_matrices(cores, self.functions(column, [x[block] for x in points]))

    def site_mean(self, column: int, cores: Sequence[NDArray]) -> NDArray:
        """Mean of the matrix of a column, given the cores of its features."""
        if len(cores) > 1 and self.joint:
            return np.sum(
                [np.tensordot(weights, matrices, axes=1) for weights, matrices in self.site_blocks(column, cores)],
                axis=0,
            )
        return site_matrices(cores, [self.means[k][:, None] for k in self.groups[column]])[0]


def make_measure(view: ModelView, X: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ColumnMeasure:
    """Distribution of every column: that in the rows of X, or that in its map."""
    if X is not None:
        coordinates = view.maps.place(view.rows(X))
        weights = row_weights(sample_weight, coordinates.shape[1])
        return ColumnMeasure(view.maps, view.groups, [(points, weights) for points in coordinates], joint=True)
    if sample_weight is not None:
        raise ValueError("sample_weight belongs to the rows of X; pass X as well, or leave sample_weight out.")
    features = []
    for name, feature_map in zip(view.feature_names, view.maps, strict=True):
        measure = feature_map.measure()
        if measure is None:
            raise ValueError(
                f"the model does not know the range of its feature {name!r} (as with scale=None); pass X, such as the "
                "training rows, to average over."
            )
        features.append(measure)
    return ColumnMeasure(view.maps, view.groups, features, joint=False)


def row_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray:
    """Weights of rows that sum to 1."""
    weights = check_weights(sample_weight, n_rows)
    return weights / weights.sum()


def site_matrices(cores: Sequence[NDArray], functions: Sequence[NDArray]) -> NDArray:
    """Products of adjacent cores at values of their functions.

    Shapes: cores (a, n, b) each, functions (n, Q) each -> (Q, first a, last b).
    """
    product: NDArray | None = None
    for core, values in zip(cores, functions, strict=True):
        left, n, right = core.shape
        matrices = (values.T @ core.transpose(1, 0, 2).reshape(n, left * right)).reshape(-1, left, right)
        product = matrices if product is None else product @ matrices
    if product is None:
        raise ValueError("a column has at least one core.")
    return product


def column_cores(train: TensorTrain, measure: ColumnMeasure) -> list[NDArray]:
    """One core per column, in functions that are orthonormal under the measure, the constant first.

    The functions of a column that is one feature are the map's, made orthonormal; those of others are any that span
    what the train can tell.
    """
    cores = [core.astype(np.float64, copy=False) for core in train.cores]
    sites = []
    for column, group in enumerate(measure.groups):
        if len(group) > 1 and measure.joint:
            sites.append(_joint_core(measure, column, [cores[k] for k in group]))
            continue
        site = np.einsum("aib,ij->ajb", cores[group[0]], measure.matrices[group[0]])
        for k in group[1:]:
            site = _merge(site, np.einsum("aib,ij->ajb", cores[k], measure.matrices[k]))
        sites.append(site)
    return sites


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
    """Means of the columns of one train, to evaluate effects at values of columns.

    ``cores`` are those of the features, scaled by a power of 2; ``means`` are those of ``G(x)``, and ``prefix`` and
    ``suffix`` their products before and after every column.
    """

    measure: ColumnMeasure
    cores: list[NDArray]
    exponent: int
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
        """Product of the means before a column and its deviation: functions (n_k, Q) each -> (Q, right rank)."""
        group = self.measure.groups[column]
        if len(group) == 1:
            return (functions[0] - self.measure.means[group[0]][:, None]).T @ np.tensordot(
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
            return (functions[0] - self.measure.means[group[0]][:, None]).T @ (
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
    means = [measure.site_mean(column, cores[g.start : g.stop]) for column, g in enumerate(measure.groups)]
    prefix = [np.ones(1)]
    for mean in means:
        prefix.append(prefix[-1] @ mean)
    return Sites(
        measure=measure, cores=cores, exponent=exponent, means=means, prefix=prefix, suffix=suffix_products(means)
    )


def suffix_products(matrices: Sequence[NDArray]) -> list[NDArray]:
    """Products of the matrices from k on, which end in a single column: d + 1 vectors."""
    vectors = [np.ones(1)]
    for matrix in reversed(matrices):
        vectors.append(matrix @ vectors[-1])
    return vectors[::-1]
