"""Product measures on the scaled features: what averages and variances are taken over.

A measure is one set of coordinates with weights per feature: those that stand for the range of the feature's map, or
the rows that are given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.checks import check_weights
from polytrain.explain.view import ModelView

__all__ = ["FeatureMeasure", "basis_means", "make_measure", "orthonormal_matrices", "row_weights"]

#: Points and weights, both of shape (Q,); the weights sum to 1.
FeatureMeasure = tuple[NDArray, NDArray]


def make_measure(view: ModelView, X: ArrayLike | None, sample_weight: ArrayLike | None) -> list[FeatureMeasure]:
    """Measure of every scaled feature: as in the rows of X, or as its map says."""
    if X is not None:
        coordinates = view.coordinates(X)
        weights = row_weights(sample_weight, coordinates.shape[1])
        return [(column, weights) for column in coordinates]
    if sample_weight is not None:
        raise ValueError("sample_weight belongs to the rows of X; pass X as well, or leave sample_weight out.")
    measures = []
    for name, feature_map in zip(view.feature_names, view.maps, strict=True):
        measure = feature_map.measure()
        if measure is None:
            raise ValueError(
                f"the model does not know the range of its feature {name!r} (as with scale=None); pass X, such as the "
                "training rows, to average over."
            )
        measures.append(measure)
    return measures


def row_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray:
    """Weights of rows that sum to 1."""
    weights = check_weights(sample_weight, n_rows)
    return weights / weights.sum()


def basis_means(view: ModelView, measures: Sequence[FeatureMeasure]) -> list[NDArray]:
    """Mean of every function: one array (n_k,) per feature."""
    return [
        feature_map.values(points) @ weights for feature_map, (points, weights) in zip(view.maps, measures, strict=True)
    ]


def orthonormal_matrices(view: ModelView, measures: Sequence[FeatureMeasure]) -> list[NDArray]:
    """Matrices (n_k, n_k) that rewrite a map's functions in functions which are orthonormal under the measure.

    Row i holds function i as a combination of the constant 1 and of functions with mean 0 and variance 1 that are not
    correlated. So, in the new coefficients, the variance is the sum of the squares of all but the constant's.
    """
    matrices = []
    for feature_map, (points, weights) in zip(view.maps, measures, strict=True):
        values = feature_map.values(points)
        means = values @ weights
        # From the deviations and not from their covariance: squaring would lose half of the digits.
        deviations = (values[1:] - means[1:, None]) * np.sqrt(weights)
        left, singular, _ = np.linalg.svd(deviations, full_matrices=False)
        matrix = np.zeros((feature_map.n, feature_map.n))
        matrix[:, 0] = means
        matrix[1:, 1 : 1 + len(singular)] = left * singular
        matrices.append(matrix)
    return matrices
