"""Explanations of a table's model in terms of the table's columns.

Coefficients say little: functions of a column overlap. `strongest_terms` therefore measures terms by what they do on
the rows: every column's functions are made orthonormal under its distribution, and the square of a coefficient is then
the variance that its term brings. The one-hot features of a category, which models of older files have, exclude each
other: they are the functions of one column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.names import unique_names
from polytrain.explain import Effects
from polytrain.explain.effects import view_effects
from polytrain.explain.search import entries_at, largest_entries
from polytrain.explain.sensitivity import variance_shares, view_indices
from polytrain.explain.sites import ColumnMeasure, column_cores, make_column_measure, site_matrices
from polytrain.explain.view import ModelView, read_model
from polytrain.maps import FeatureMap, TableMap
from polytrain.tables.model import TableModel
from polytrain.tables.preparation import CategoryColumn
from polytrain.tensor import TensorTrain

__all__ = [
    "ColumnImportances",
    "RowSample",
    "StrongestTerms",
    "column_importances",
    "strongest_terms",
    "table_effects",
    "table_view",
]

# Prefixes that the search for terms follows at once.
_MAX_NODES = 50_000
# Functions of a column that earlier ones explain but for this part of their size add nothing.
_LEAST_NEW = 1e-9


def table_view(model: TableModel) -> ModelView:
    """Read the model of a table for explanations of the table's columns: their names, features and levels."""
    preparation = model.preparation
    view = read_model(model.estimator, preparation.feature_names)
    levels = [column.categories if isinstance(column, CategoryColumn) else None for column in preparation.columns]
    return replace(
        view,
        column_names=tuple(name for name, _ in preparation.groups),
        groups=tuple(range(place.start, place.stop) for _, place in preparation.groups),
        level_names=tuple(levels),
    )


def table_effects(
    model: TableModel, X: NDArray | None = None, *, output: int | str = 0, top_pairs: int = 10, grid_size: int = 100
) -> Effects:
    """Split a score into the effects of the table's columns.

    Parameters
    ----------
    model : TableModel
        The model.
    X : ndarray of shape (N, d), optional
        Prepared rows that give the distribution of each column; without them, it is that of the training.
    output, top_pairs, grid_size
        See `polytrain.explain.effects`.

    Returns
    -------
    Effects
        Its ``of_rows`` takes prepared rows.
    """
    return view_effects(table_view(model), X, output=output, top_pairs=top_pairs, grid_size=grid_size)


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
        Columns and their importances, which sum to 1, the most important first: total Sobol indices, averaged over the
        trains.
    pairs : list of (str, str, float)
        Pairs of columns and the share of the variance that their interactions make, largest first.
    higher : float
        Share of interactions of three and more columns.
    """

    columns: list[tuple[str, float]]
    pairs: list[tuple[str, str, float]]
    higher: float


def column_importances(model: TableModel, X: NDArray | None = None) -> ColumnImportances:
    """Compute Sobol indices of columns, which are taken as independent, each with its own distribution.

    Parameters
    ----------
    model : TableModel
        The model.
    X : ndarray of shape (N, d), optional
        Prepared rows that give the distribution of each column; without them, columns are distributed as their maps
        say: as in training, those of polynomials evenly over their range.

    Returns
    -------
    ColumnImportances
    """
    indices = view_indices(table_view(model), X)
    names = indices.feature_names
    total, second = indices.total.mean(axis=0), indices.second.mean(axis=0)
    whole = float(total.sum()) or 1.0
    columns = [(name, share / whole) for name, share in zip(names, total.tolist(), strict=True)]
    pairs = [(names[i], names[j], float(second[i, j])) for i, j in zip(*np.triu_indices(len(names), 1), strict=True)]
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
        Products of functions of columns. A power stands for what it adds to the lower powers of the feature, and f2(x)
        for what the second function of a map that is no polynomial adds to the first. "x is missing" tells missing
        numbers from others, and "x=a" one level from those before it.
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
    """Find the terms that bring most variance, columns taken as independent.

    Parameters
    ----------
    model : TableModel
        The model.
    X : ndarray of shape (N, d), optional
        Prepared rows that give the distribution of each column; without them, columns are distributed as their maps
        say: as in training, those of polynomials evenly over their range.
    k : int, default=10
        How many terms.
    train : int, default=0
        Which of the model's polynomials.

    Returns
    -------
    StrongestTerms
    """
    view = table_view(model)
    measure = make_column_measure(view, X, None)
    cores, names = _named_cores(view, view.trains[train], measure)
    index, exact = largest_entries(cores, k + 1, _MAX_NODES)  # one of them may be the constant
    index = index[index.any(axis=1)][:k]
    effects = entries_at(cores, index)
    deviation = variance_shares(column_cores(view.trains[train], measure), pairs=False)[1]
    return StrongestTerms(
        tuple(" * ".join(some[j - 1] for some, j in zip(names, term, strict=True) if j) for term in index.tolist()),
        effects,
        (effects / deviation) ** 2 if deviation > 0 else np.zeros(len(effects)),
        exact,
        view.train_names[train],
    )


def _named_cores(
    view: ModelView, train: TensorTrain, measure: ColumnMeasure
) -> tuple[list[NDArray], list[tuple[str, ...]]]:
    """Cores in orthonormal functions, each without what those before it explain, and the names of the functions.

    There is one core per column, but where the features of a column are independent for lack of rows.
    """
    titles = unique_names([(name, (name, f"{name} is missing")) for name in view.feature_names])
    cores = [core.astype(np.float64) for core in train.cores]
    found, names = [], []
    for column, group in enumerate(view.groups):
        named = [_function_names(titles[2 * k], titles[2 * k + 1], view.maps[k]) for k in group]
        if len(group) > 1 and measure.joint:
            found.append(_joint_core(measure, column, [cores[k] for k in group]))
            names.append(tuple(name for some in named for name in some))
            continue
        for k, some in zip(group, named, strict=True):
            points, weights = measure.features[k]
            found.append(np.einsum("aib,ij->ajb", cores[k], _ordered_matrix(view.maps[k], points, weights)))
            names.append(some)
    return found, names


def _ordered_matrix(feature_map: FeatureMap, points: NDArray, weights: NDArray) -> NDArray:
    """Matrix (n, n) that rewrites a map's functions in orthonormal ones, of which the j-th has degree j."""
    n = feature_map.n
    values = (feature_map.values(points) * np.sqrt(weights)).T
    if len(values) < n:  # more functions than points: the missing ones vanish
        values = np.concatenate((values, np.zeros((n - len(values), n))))
    upper = np.asarray(np.linalg.qr(values, mode="r"))
    return (upper * np.where(np.diagonal(upper) < 0, -1.0, 1.0)[:, None]).T


def _joint_core(measure: ColumnMeasure, column: int, cores: list[NDArray]) -> NDArray:
    """Core of a column of several features in the functions of each of them, made orthonormal on the rows that occur.

    Products of functions of two features are no others: where one category is, no other one is, and where a number is
    missing, it has been replaced by one value.
    """
    points, weights = measure.combinations(column)
    functions = measure.functions(column, points)
    roots = np.sqrt(weights)
    given = np.concatenate([functions[0][:1], *(values[1:] for values in functions)]) * roots
    basis = np.zeros_like(given)
    for j, values in enumerate(given):
        new = values
        for _ in range(2):  # once more, for what rounding has left
            new = new - basis[:j].T @ (basis[:j] @ new)
        size = float(np.linalg.norm(new))
        if size > _LEAST_NEW * float(np.linalg.norm(values)):
            basis[j] = new / size
    matrices = site_matrices(cores, functions)
    return np.einsum("jq,qab->ajb", basis * roots, matrices, optimize=True)


def _function_names(name: str, missing: str, feature_map: FeatureMap) -> tuple[str, ...]:
    """Names of all functions of a feature but the constant."""
    names = [f"f{j}({name})" for j in range(1, feature_map.n)]
    if feature_map.powers is not None:
        names = [name if j == 1 else f"{name}^{j}" for j in range(1, feature_map.n)]
    if isinstance(feature_map, TableMap) and feature_map.has_missing:
        names[-1] = missing
    return tuple(names)
