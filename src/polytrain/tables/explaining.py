"""Explanations of a table's model in terms of the table's columns.

Coefficients say little: functions of a column overlap, and those of one-hot features, which models of older files have,
exclude each other. `strongest_terms` therefore measures terms by what they do on the rows: every feature's functions
are made orthonormal under its distribution, and the square of a coefficient is then the variance that its term brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.names import unique_names
from polytrain.explain import sobol_indices
from polytrain.explain.measure import FeatureMeasure, make_measure
from polytrain.explain.search import entries_at, largest_entries
from polytrain.explain.view import ModelView, read_model
from polytrain.maps import TableMap
from polytrain.tables.model import TableModel

__all__ = ["ColumnImportances", "RowSample", "StrongestTerms", "column_importances", "strongest_terms"]

# Prefixes that the search for terms follows at once.
_MAX_NODES = 50_000


class RowSample:
    """Keeps an even sample of a stream of rows: every row at first, every second one when there are many, ..."""

    def __init__(self, max_rows: int = 20_000) -> None:
        self._parts: list[NDArray] = []
        self._max_rows, self._n, self._step, self._offset = max_rows, 0, 1, 0

    def __call__(self, X: NDArray) -> None:
        """Take note of a block."""
        part = X[self._offset :: self._step]
        self._offset = (self._offset - len(X)) % self._step
        self._parts.append(part)
        self._n += len(part)
        while self._n > self._max_rows:
            rows = np.concatenate(self._parts)
            self._offset = (self._offset + self._step * (len(rows) % 2)) % (2 * self._step)
            self._parts, self._step = [rows[::2]], 2 * self._step
            self._n = len(self._parts[0])

    def __len__(self) -> int:
        return self._n

    @property
    def rows(self) -> NDArray:
        """The sample."""
        return np.concatenate(self._parts)


@dataclass(frozen=True)
class ColumnImportances:
    """How much columns and pairs of columns matter.

    Attributes
    ----------
    columns : list of (str, float)
        Columns and their importances, which sum to 1, the most important first: the sum of the total Sobol indices of
        the column's features, averaged over the trains.
    pairs : list of (str, str, float)
        Pairs of columns and the share of the variance that their interactions of two features make, largest first.
    higher : float
        Share of interactions of three and more features.
    """

    columns: list[tuple[str, float]]
    pairs: list[tuple[str, str, float]]
    higher: float


def column_importances(model: TableModel, X: NDArray | None = None) -> ColumnImportances:
    """Sum Sobol indices over the features of each column.

    Parameters
    ----------
    model : TableModel
        The model.
    X : ndarray of shape (N, d), optional
        Prepared rows that give the distribution of each feature; without them, features are distributed as their
        maps say: as in training, those of polynomials evenly over their range.

    Returns
    -------
    ColumnImportances
    """
    indices = sobol_indices(model.estimator, X)
    groups = model.preparation.groups
    total, second = indices.total.mean(axis=0), indices.second.mean(axis=0)
    whole = float(total.sum()) or 1.0
    columns = [(name, float(total[place].sum()) / whole) for name, place in groups]
    pairs = [
        (one, two, float(second[first, other].sum()))
        for k, (one, first) in enumerate(groups)
        for two, other in groups[k + 1 :]
    ]
    higher = float(np.mean(indices.higher))
    return ColumnImportances(
        sorted(columns, key=lambda pair: -pair[1]), sorted(pairs, key=lambda pair: -pair[2]), higher
    )


@dataclass(frozen=True)
class StrongestTerms:
    """The terms that make a polynomial vary most, strongest first.

    Attributes
    ----------
    names : tuple of str
        Products of features. A power stands for what it adds to the lower powers of the feature, and f2(x) for what
        the second function of a map that is no polynomial adds to the first. "x is missing" tells missing numbers from
        others.
    effects : ndarray of shape (K,)
        Standard deviation of each term over the rows. Of polynomials it has the sign of the slope: positive if it grows
        with the product of its features' deviations from their means. Other functions are those of the map, up to what
        they have in common with earlier ones; of numbers these are positive at the largest value.
    shares : ndarray of shape (K,)
        Share of the polynomial's variance.
    exact : bool
        Whether these are proven to be the strongest.
    train_name : str
        What a high value of the polynomial speaks for: a class, or "prediction".
    """

    names: tuple[str, ...]
    effects: NDArray
    shares: NDArray
    exact: bool
    train_name: str


def strongest_terms(model: TableModel, X: NDArray | None = None, k: int = 10, train: int = 0) -> StrongestTerms:
    """Find the terms that bring most variance, features taken as independent.

    Parameters
    ----------
    model : TableModel
        The model.
    X : ndarray of shape (N, d), optional
        Prepared rows that give the distribution of each feature; without them, features are distributed as their
        maps say: as in training, those of polynomials evenly over their range.
    k : int, default=10
        How many terms.
    train : int, default=0
        Which of the model's polynomials.

    Returns
    -------
    StrongestTerms
    """
    view = read_model(model.estimator, model.preparation.feature_names)
    cores = [
        np.einsum("aib,ij->ajb", core.astype(np.float64), matrix)
        for core, matrix in zip(
            view.trains[train].cores, _ordered_matrices(view, make_measure(view, X, None)), strict=True
        )
    ]
    index, exact = largest_entries(cores, k + 1, _MAX_NODES)  # one of them may be the constant
    index = index[index.any(axis=1)][:k]
    effects = entries_at(cores, index)
    deviation = float(sobol_indices(model.estimator, X).deviation[train])
    return StrongestTerms(
        tuple(_term_names(index, view)),
        effects,
        (effects / deviation) ** 2 if deviation > 0 else np.zeros(len(effects)),
        exact,
        view.train_names[train],
    )


def _ordered_matrices(view: ModelView, measures: list[FeatureMeasure]) -> list[NDArray]:
    """Matrices (n, n) that rewrite a map's functions in orthonormal ones, of which the j-th has degree j."""
    matrices = []
    for feature_map, (points, weights) in zip(view.maps, measures, strict=True):
        n = feature_map.n
        values = (feature_map.values(points) * np.sqrt(weights)).T
        if len(values) < n:  # more functions than points: the missing ones vanish
            values = np.concatenate((values, np.zeros((n - len(values), n))))
        upper = np.asarray(np.linalg.qr(values, mode="r"))
        matrices.append((upper * np.where(np.diagonal(upper) < 0, -1.0, 1.0)[:, None]).T)
    return matrices


def _term_names(terms: NDArray, view: ModelView) -> Iterator[str]:
    """Name terms (K, d), given by the function of each feature that is in them."""
    names = unique_names([(name, (name, f"{name} is missing")) for name in view.feature_names])
    for term in terms.tolist():
        factors = []
        for j, name, missing, feature_map in zip(term, names[::2], names[1::2], view.maps, strict=True):
            if isinstance(feature_map, TableMap) and feature_map.has_missing and j == feature_map.n - 1:
                factors.append(missing)
            elif feature_map.powers is None and j:
                factors.append(f"f{j}({name})")
            elif j:
                factors.append(name if j == 1 else f"{name}^{j}")
        yield " * ".join(factors)
