"""Sobol indices: the shares of columns and pairs of columns in the variance of a score.

Every core is rewritten in functions that are orthonormal under the measure and start with the constant 1. Then the
square of a coefficient is the share of the variance that belongs to the set of columns whose index is not 0. All
indices are sums of such squares, contracted along the train: nothing is sampled, and nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.explain.sites import ColumnMeasure, column_cores, make_measure, suffix_products
from polytrain.explain.view import column_groups, group_names, read_model
from polytrain.tensor.decompose import scale_exponent
from polytrain.texts import number_text, printable

#: Note beside all printed shares of a variance.
INDEPENDENCE = "columns taken as independent, each with its own distribution"

# Largest number of columns that are printed.
_MOST_LINES = 20


@dataclass(frozen=True)
class SobolIndices:
    """Shares of the variance of each score; the first axis counts the trains.

    The parts of a date count as one column, and so do the levels of a category.

    Attributes
    ----------
    mean : ndarray of shape (n_trains,)
        Mean of the score, with a regressor's intercept.
    variance : ndarray of shape (n_trains,)
        Its variance; infinite if it exceeds the largest float.
    first : ndarray of shape (n_trains, d)
        Main effects: share of the variance due to one column alone.
    second : ndarray of shape (n_trains, d, d)
        Interactions: share due to a pair beyond both main effects. Symmetric, with zeros on the diagonal.
    total : ndarray of shape (n_trains, d)
        Share of a column with all its interactions. The sum over the columns exceeds 1 if there are interactions.
    feature_names : tuple of d str
        Names of the columns.
    train_names : tuple of n_trains str
        Meaning of a high value of each score.
    deviation : ndarray of shape (n_trains,)
        Standard deviation of the score, which is finite where its variance may not be.
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
        """Share of the interactions of three and more columns, shape (n_trains,)."""
        explained = self.first.sum(axis=1) + self.second.sum(axis=(1, 2)) / 2
        return np.where(self.variance > 0, np.maximum(1.0 - explained, 0.0), 0.0)

    def to_frame(self) -> Any:
        """Return a frame of pandas: a row per train and column, with main effect, share in pairs, and total."""
        lines = [
            (output, *line)
            for output, *shares in zip(self.train_names, self.first, self.second.sum(axis=2), self.total, strict=True)
            for line in zip(self.feature_names, *shares, strict=True)
        ]
        return frame(lines, columns=["output", "column", "main", "pairs", "total"])

    def __str__(self) -> str:
        lines = []
        for name, *shares in zip(self.train_names, self.first, self.second.sum(axis=2), self.total, strict=True):
            order = np.argsort(-shares[-1], kind="stable")[:_MOST_LINES].tolist()
            lines.append(f"{printable(name)}: shares of the variance (Sobol indices; {INDEPENDENCE})")
            columns = [(self.feature_names[k], *(share[k] for share in shares)) for k in order]
            lines += table_lines(("column", "main", "pairs", "total"), columns)
        return "\n".join(lines)


@dataclass(frozen=True)
class FeatureImportances:
    """One number per column; they sum to 1 unless all scores are constant.

    Attributes
    ----------
    importances : ndarray of shape (d,)
        Importance of each column, columns taken as independent.
    feature_names : tuple of d str
        Names of the columns.
    """

    importances: NDArray
    feature_names: tuple[str, ...]

    def ranked(self) -> list[tuple[str, float]]:
        """Return names and importances, the most important column first."""
        order = np.argsort(-self.importances, kind="stable").tolist()
        return [(self.feature_names[k], float(self.importances[k])) for k in order]

    def to_frame(self) -> Any:
        """Return a frame of pandas, one row per column, the most important first."""
        return frame(self.ranked(), columns=["column", "importance"])

    def __str__(self) -> str:
        about = f"importances (total Sobol indices; {INDEPENDENCE})"
        return "\n".join([about, *table_lines(("column", "importance"), self.ranked()[:_MOST_LINES])])


def frame(data: Any, **options: Any) -> Any:
    """Make a frame of pandas, which is imported only here."""
    import pandas as pd

    return pd.DataFrame(data, **options)


def value_text(value: Any, digits: int = 4) -> str:
    """A number with a few digits, or the name of a level or date."""
    return number_text(value, digits) if isinstance(value, float) else str(value)


def table_lines(heads: Sequence[str], lines: Sequence[tuple[Any, ...]]) -> list[str]:
    """Lines of a name and some numbers below each other."""
    lines = [(printable(name), *values) for name, *values in lines]
    width = max(len(line[0]) for line in [heads, *lines])
    head = [f"  {heads[0]:<{width}}" + "".join(f"{name:>12}" for name in heads[1:])]
    return head + [f"  {name:<{width}}" + "".join(f"{value:12.4f}" for value in values) for name, *values in lines]


def sobol_indices(
    model: BaseEstimator,
    X: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> SobolIndices:
    """Compute Sobol indices of first, second and total order in closed form.

    For a classifier the indices describe its scores (log-odds where it has probabilities), not its probabilities.

    Parameters
    ----------
    model : TensorTrainClassifier or TensorTrainRegressor
        A fitted estimator, or a pipeline that ends in one and whose steps before keep columns.
    X : array-like of shape (N, d), optional
        Rows that give the distribution of every single column, such as the training rows. Without it, columns are
        distributed as in training; those of polynomials, which know their range only, uniformly on it. The parts of a
        date, whose combinations are not known then, are independent.
    sample_weight : array-like of shape (N,), optional
        Weights of the rows of ``X``.
    feature_names : sequence of str, optional
        Names of the features. By default those of the training data, or x1, x2, ...

    Returns
    -------
    SobolIndices
        One entry per train. A constant score has indices 0.

    Notes
    -----
    Columns are taken as independent. If two columns always vary together, the indices also describe the score where
    they would not.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import sobol_indices
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    >>> model = TensorTrainRegressor(basis="power", rank=3, alpha=1e-6, random_state=0)
    >>> indices = sobol_indices(model.fit(X, X[:, 0] + X[:, 1] * X[:, 2]))
    >>> indices.total[0].round(2)
    array([0.75, 0.25, 0.25])
    >>> indices.second[0, 1, 2].round(2)
    np.float64(0.25)
    """
    view = read_model(model, feature_names)
    measure = make_measure(view, X, sample_weight)
    shares = [variance_shares(measure, output) for output in range(view.fitted.n_trains)]
    mean, deviation, first, second, total = (np.array(part) for part in zip(*shares, strict=True))
    mean += view.fitted.shift
    with np.errstate(over="ignore"):
        variance = np.square(deviation)
    return SobolIndices(mean, variance, first, second, total, view.column_names, view.fitted.train_names, deviation)


def feature_importances(
    model: BaseEstimator,
    X: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    groups: str | Sequence[Sequence[int | str]] | None = None,
) -> FeatureImportances:
    """Rank the columns by their share of the variance of the scores, interactions included.

    The importance of a column is its total Sobol index, averaged over the trains, so that every class (or pair of
    classes) counts the same, and divided by the sum over the columns.

    Parameters
    ----------
    model, X, sample_weight, feature_names
        See `sobol_indices`.
    groups : None, "auto", or sequence of sequences of int or str, default=None
        Columns, by number or name, that count as one: the total index of a set is the share of all terms with any of
        its columns. "auto" groups the columns that are nearly copies of each other in ``X``.

    Returns
    -------
    FeatureImportances
        Numbers that sum to 1; all 0 if every score is constant.

    See Also
    --------
    sklearn.inspection.permutation_importance : Importances on rows with targets, without assuming independence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.explain import feature_importances
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TensorTrainClassifier(rank=3, random_state=0).fit(X, y)
    >>> [name for name, _ in feature_importances(model, X).ranked()[:2]]
    ['petal length (cm)', 'petal width (cm)']
    """
    view = read_model(model, feature_names)
    measure = make_measure(view, X, sample_weight)
    shares = [variance_shares(measure, output, pairs=False) for output in range(view.fitted.n_trains)]
    parts = column_groups(view, groups, X)
    totals = [
        [share.total[part[0]] if len(part) == 1 else _total_index(measure, output, part) for part in parts]
        for output, share in enumerate(shares)
    ]
    total = np.mean(totals, axis=0)
    return FeatureImportances(total / (total.sum() or 1.0), group_names(view.column_names, parts))


def _total_index(measure: ColumnMeasure, output: int, columns: Sequence[int]) -> float:
    """Share of the variance of a score that any of these columns takes part in."""
    cores, _ = column_cores(measure, output)

    def variance(chosen: Sequence[int]) -> float:
        gram, terms = np.ones((1, 1)), 0.0
        for k, core in enumerate(cores):
            if k in chosen:  # terms in which no chosen column before varies, and this one does
                terms += float(np.einsum("ab,aic,bic->", gram, core[:, 1:], core[:, 1:], optimize=True))
                core = core[:, :1]
            gram = np.einsum("ab,aic,bid->cd", gram, core, core, optimize=True)
        return terms

    return variance(columns) / (variance(range(len(cores))) or 1.0)


class VarianceShares(NamedTuple):
    """Mean, standard deviation and indices of a train: first (d,), second (d, d) and total (d,)."""

    mean: float
    deviation: float
    first: NDArray
    second: NDArray
    total: NDArray


def variance_shares(measure: ColumnMeasure, output: int, pairs: bool = True) -> VarianceShares:
    """Shares of the variance of a score; without ``pairs``, ``second`` is 0."""
    cores, exponent = column_cores(measure, output)
    d = len(cores)
    constants = suffix_products([core[:, 0, :] for core in cores])
    first, total, second = np.zeros(d), np.zeros(d), np.zeros((d, d))
    constant_left, gram, variance = np.ones(1), np.ones((1, 1)), 0.0
    open_left = np.zeros((0, 1))  # rows of every earlier column, constant since then
    owner = np.zeros(0, dtype=np.intp)
    for k, core in enumerate(cores):
        varying = core[:, 1:, :]
        fresh = np.tensordot(constant_left, varying, axes=1)
        variance += float(np.sum(fresh**2))  # of all terms that first vary at column k
        first[k] = np.sum((fresh @ constants[k + 1]) ** 2)
        total[k] = np.einsum("ab,aic,bic->", gram, varying, varying)
        if pairs:
            ends = open_left @ (varying @ constants[k + 1])
            second[:, k] = np.bincount(owner, np.sum(ends**2, axis=1), minlength=d)
            # At most as many rows as the rank give the same sums of squares.
            rows = fresh if len(fresh) <= fresh.shape[1] else np.asarray(np.linalg.qr(fresh, mode="r"))
            open_left = np.concatenate((open_left @ core[:, 0, :], rows))
            owner = np.concatenate((owner, np.full(len(rows), k)))
        constant_left = constant_left @ core[:, 0, :]
        gram = np.einsum("ab,aic,bid->cd", gram, core, core, optimize=True)
    scale = 1.0 / variance if variance > 0 else 0.0
    mean, deviation = scale_exponent(np.array([constant_left[0], np.sqrt(variance)]), exponent).tolist()
    return VarianceShares(mean, deviation, first * scale, (second + second.T) * scale, total * scale)
