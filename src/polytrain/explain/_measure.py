"""Product measures on the scaled features: what averages and variances are taken over.

A measure is one set of points with weights per feature. For the uniform distribution the points are those of the
Gauss-Legendre rule, which is exact for the polynomials that occur; for data they are the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.estimators._parameters import check_weights
from polytrain.explain._view import ModelView

__all__ = ["FeatureMeasure", "basis_means", "make_measure", "orthonormal_maps", "row_weights"]

#: Points and weights, both of shape (Q,); the weights sum to 1.
FeatureMeasure = tuple[NDArray, NDArray]


def make_measure(view: ModelView, X: ArrayLike | None, sample_weight: ArrayLike | None) -> list[FeatureMeasure]:
    """Measure of every scaled feature: as in the rows of X, or uniform on the fitted range."""
    if X is not None:
        columns = view.columns(X)
        weights = row_weights(sample_weight, columns.shape[1])
        return [(column, weights) for column in columns]
    if sample_weight is not None:
        raise ValueError("sample_weight belongs to the rows of X; pass X as well, or leave sample_weight out.")
    if view.scale is None:
        raise ValueError(
            "the model was fitted with scale=None and does not know the range of its features; pass X, such as the "
            "training rows, to average over."
        )
    measures = []
    for n, factor in zip(view.trains[0].dims, view.scale.factor, strict=True):
        points, weights = np.polynomial.legendre.leggauss(n)
        # A feature that was constant in training is 0 after scaling, whatever its value.
        measures.append((points, weights / weights.sum()) if factor > 0 else (np.zeros(1), np.ones(1)))
    return measures


def row_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray:
    """Weights of rows that sum to 1."""
    weights = check_weights(sample_weight, n_rows)
    return weights / weights.sum()


def basis_means(view: ModelView, measures: Sequence[FeatureMeasure]) -> list[NDArray]:
    """Mean of every basis function: one array (n_k,) per feature."""
    return [
        view.basis.values(points, n) @ weights
        for n, (points, weights) in zip(view.trains[0].dims, measures, strict=True)
    ]


def orthonormal_maps(view: ModelView, measures: Sequence[FeatureMeasure]) -> list[NDArray]:
    """Matrices (n_k, n_k) that rewrite basis functions in functions which are orthonormal under the measure.

    Row i holds function i as a combination of the constant 1 and of functions with mean 0 and variance 1 that are not
    correlated. So, in the new coefficients, the variance is the sum of the squares of all but the constant's.
    """
    maps = []
    for n, (points, weights) in zip(view.trains[0].dims, measures, strict=True):
        values = view.basis.values(points, n)
        means = values @ weights
        # From the deviations and not from their covariance: squaring would lose half of the digits.
        deviations = (values[1:] - means[1:, None]) * np.sqrt(weights)
        left, singular, _ = np.linalg.svd(deviations, full_matrices=False)
        matrix = np.zeros((n, n))
        matrix[:, 0] = means
        matrix[1:, 1 : 1 + len(singular)] = left * singular
        maps.append(matrix)
    return maps
