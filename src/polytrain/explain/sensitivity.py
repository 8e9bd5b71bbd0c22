"""Sobol indices: which features and pairs of features make a polynomial vary.

The method
----------
Rewrite every core in functions that are orthonormal under the measure and start with the constant 1. Then the square of
a coefficient is the share of the variance that belongs to the set of features whose index is not 0. All indices are
sums of such squares, contracted along the train: nothing is sampled, and nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.explain.measure import make_measure, orthonormal_matrices
from polytrain.explain.view import read_model
from polytrain.tensor.decompose import orthogonalize_cores, scale_exponent

__all__ = ["FeatureImportances", "SobolIndices", "feature_importances", "sobol_indices"]


@dataclass(frozen=True)
class SobolIndices:
    """Shares of the variance of each polynomial; the first axis counts the trains.

    Attributes
    ----------
    mean : ndarray of shape (n_trains,)
        Mean of the polynomial, with a regressor's intercept.
    variance : ndarray of shape (n_trains,)
        Its variance; infinite if it exceeds the largest float.
    first : ndarray of shape (n_trains, d)
        Main effects: share of the variance that one feature makes alone.
    second : ndarray of shape (n_trains, d, d)
        Interactions: share that a pair makes beyond both main effects. Symmetric, with zeros on the diagonal.
    total : ndarray of shape (n_trains, d)
        Share of everything that a feature takes part in. The sum over the features exceeds 1 if there are interactions.
    feature_names : tuple of d str
        Names of the features.
    train_names : tuple of n_trains str
        What a high value of each polynomial speaks for.
    deviation : ndarray of shape (n_trains,)
        Standard deviation of the polynomial, which is finite where its variance may not be.
    """

    mean: NDArray
    variance: NDArray
    first: NDArray
    second: NDArray
    total: NDArray
    feature_names: tuple[str, ...]
    train_names: tuple[str, ...]
    deviation: NDArray

    @property
    def higher(self) -> NDArray:
        """Share of the interactions of three and more features, shape (n_trains,)."""
        explained = self.first.sum(axis=1) + self.second.sum(axis=(1, 2)) / 2
        return np.where(self.variance > 0, np.maximum(1.0 - explained, 0.0), 0.0)


@dataclass(frozen=True)
class FeatureImportances:
    """One number per feature; they sum to 1 unless all polynomials are constant.

    Attributes
    ----------
    importances : ndarray of shape (d,)
        Importance of each feature.
    feature_names : tuple of d str
        Names of the features.
    """

    importances: NDArray
    feature_names: tuple[str, ...]

    def ranked(self) -> list[tuple[str, float]]:
        """Return pairs of name and importance, the most important feature first."""
        order = np.argsort(-self.importances, kind="stable")
        return [(self.feature_names[k], float(self.importances[k])) for k in order]


def sobol_indices(
    model: BaseEstimator,
    X: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> SobolIndices:
    """Compute Sobol indices of first, second and total order in closed form.

    Features are taken as independent, each distributed as in the rows of ``X`` or as its map says. For a classifier the
    indices describe its scores (log-odds where it has probabilities), not its probabilities.

    Parameters
    ----------
    model : TensorTrainClassifier or TensorTrainRegressor
        A fitted estimator.
    X : array-like of shape (N, d), optional
        Rows that give the distribution of every single feature, such as the training rows. Without it, features are
        distributed as in training; those of polynomials, which know their range only, uniformly on it.
    sample_weight : array-like of shape (N,), optional
        Weights of the rows of ``X``.
    feature_names : sequence of d str, optional
        By default those of the training data, or x1, x2, ...

    Returns
    -------
    SobolIndices
        One entry per train. A constant polynomial has indices 0.

    Notes
    -----
    Independence is an assumption. If two features always move together, the indices describe what the polynomial would
    do where they do not.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import sobol_indices
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> model = TensorTrainRegressor(basis="power", rank=3, alpha=1e-6, random_state=0).fit(X, y)
    >>> indices = sobol_indices(model)
    >>> abs(indices.first[0].round(2))
    array([0.75, 0.  , 0.  ])
    >>> indices.total[0].round(2)
    array([0.75, 0.25, 0.25])
    >>> indices.second[0, 1, 2].round(2)
    np.float64(0.25)
    """
    view = read_model(model, feature_names)
    matrices = orthonormal_matrices(view, make_measure(view, X, sample_weight))
    shares = [
        _variance_shares(
            [np.einsum("aib,ij->ajb", core, matrix) for core, matrix in zip(train.cores, matrices, strict=True)]
        )
        for train in view.trains
    ]
    mean, deviation, first, second, total = (np.array(part) for part in zip(*shares, strict=True))
    with np.errstate(over="ignore"):
        variance = np.square(deviation)
    names = view.feature_names, view.train_names
    return SobolIndices(mean + view.shift, variance, first, second, total, *names, deviation)


def feature_importances(
    model: BaseEstimator,
    X: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> FeatureImportances:
    """Rank the features by how much of the variance they take part in.

    The importance of a feature is its total Sobol index, averaged over the trains, so that every class (or pair of
    classes) counts the same, and divided by the sum over the features.

    Parameters
    ----------
    model, X, sample_weight, feature_names
        See `sobol_indices`.

    Returns
    -------
    FeatureImportances
        Numbers that sum to 1; all 0 if every polynomial is constant.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.explain import feature_importances
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TensorTrainClassifier(rank=3, random_state=0).fit(X, y)
    >>> importances = feature_importances(model, X)
    >>> float(importances.importances.sum().round(6))
    1.0
    >>> [name for name, _ in importances.ranked()[:2]]
    ['petal width (cm)', 'petal length (cm)']
    """
    indices = sobol_indices(model, X, sample_weight=sample_weight, feature_names=feature_names)
    mean = indices.total.mean(axis=0)
    whole = mean.sum()
    return FeatureImportances(mean / whole if whole > 0 else mean, indices.feature_names)


def _variance_shares(cores: list[NDArray]) -> tuple[float, float, NDArray, NDArray, NDArray]:
    """Mean, standard deviation and indices of a train in orthonormal functions, the constant first in every core.

    Shapes: -> scalar, scalar, first (d,), second (d, d), total (d,).
    """
    d = len(cores)
    # Right-orthogonal cores: what lies right of a feature then sums to the identity, and nothing overflows.
    cores, exponent = orthogonalize_cores([core.astype(np.float64, copy=False) for core in cores], 0)
    constants = _suffix_constants(cores)
    first, total, second = np.zeros(d), np.zeros(d), np.zeros((d, d))
    constant_left, gram = np.ones((1, 1)), np.ones((1, 1))
    open_left = np.zeros((0, 1))  # one row per pair of earlier feature and its function, constant elsewhere
    owner = np.zeros(0, dtype=np.intp)
    for k, core in enumerate(cores):
        varying = core[:, 1:, :]
        first[k] = np.sum((constant_left @ (varying @ constants[k + 1])) ** 2)
        total[k] = np.einsum("ab,aic,bic->", gram, varying, varying)
        pairs = open_left @ (varying @ constants[k + 1])
        second[:, k] = np.bincount(owner, np.sum(pairs**2, axis=1), minlength=d)
        fresh = np.tensordot(constant_left[0], varying, axes=1)
        open_left = np.concatenate((open_left @ core[:, 0, :], fresh))
        owner = np.concatenate((owner, np.full(len(fresh), k)))
        constant_left = constant_left @ core[:, 0, :]
        gram = np.einsum("ab,aic,bid->cd", gram, core, core, optimize=True)
    mean = float(constant_left[0, 0])
    variance = _variance(cores)
    scale = 1.0 / variance if variance > 0 else 0.0
    exact_mean = float(scale_exponent(np.asarray(mean), exponent))
    deviation = float(scale_exponent(np.sqrt(variance), exponent))
    return exact_mean, deviation, first * scale, (second + second.T) * scale, total * scale


def _suffix_constants(cores: Sequence[NDArray]) -> list[NDArray]:
    """Column vectors of the cores from k on, all in the constant function: d + 1 arrays (r_k,)."""
    vectors = [np.ones(1)]
    for core in reversed(cores):
        vectors.append(core[:, 0, :] @ vectors[-1])
    return vectors[::-1]


def _variance(cores: Sequence[NDArray]) -> float:
    """Sum of the squares of all coefficients but the constant: everything that first varies at feature k, for each k.

    The cores are right-orthogonal, so what follows feature k sums to the norm of the row vector there.
    """
    left = np.ones(1)
    variance = 0.0
    for core in cores:
        variance += float(np.sum(np.tensordot(left, core[:, 1:, :], axes=1) ** 2))
        left = left @ core[:, 0, :]
    return variance
