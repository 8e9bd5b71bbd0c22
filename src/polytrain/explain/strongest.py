"""The terms that make a score vary most.

Coefficients say little: functions of a column overlap. `strongest_terms` therefore measures terms by what they do on
the rows: every column's functions are made orthonormal under its distribution, and the square of a coefficient is then
the variance that its term brings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.column_list import unique_names
from polytrain.explain.search import entries_at, largest_entries
from polytrain.explain.sensitivity import variance_shares
from polytrain.explain.sites import ColumnMeasure, column_cores, make_measure, site_matrices
from polytrain.explain.view import ModelView
from polytrain.maps import FeatureMap, TableMap
from polytrain.tensor import TensorTrain

__all__ = ["StrongestTerms", "strongest_terms"]

# Prefixes that the search for terms follows at once.
_MAX_NODES = 50_000
# Functions of a column that earlier ones explain but for this part of their size add nothing.
_LEAST_NEW = 1e-9


@dataclass(frozen=True)
class StrongestTerms:
    """The terms that make a polynomial vary most, strongest first.

    Attributes
    ----------
    names : tuple of str
        Products of functions of columns. A power stands for what it adds to the lower powers of the feature, and f2(x)
        for what the second function of a map that is not a polynomial adds to the first. "x is missing" tells missing
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
        What a high value of the polynomial stands for: a class, or "prediction".
    """

    names: tuple[str, ...]
    effects: NDArray
    shares: NDArray
    exact: bool
    train_name: str


def strongest_terms(view: ModelView, X: NDArray | None = None, k: int = 10, train: int = 0) -> StrongestTerms:
    """Find the terms that bring most variance, columns taken as independent.

    Parameters
    ----------
    view : ModelView
        The model, as `polytrain.explain.view.read_model` reads it.
    X : array-like, optional
        Rows that give the distribution of each column; without them, columns are distributed as their maps
        say: as in training, those of polynomials evenly over their range.
    k : int, default=10
        How many terms.
    train : int, default=0
        Which of the model's polynomials.

    Returns
    -------
    StrongestTerms
    """
    measure = make_measure(view, X, None)
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
