"""Why a row has its score: what each of its columns brings, as exact Shapley values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.columns.cells import Cells
from polytrain.columns.scalars import is_missing, sort_of, text_of
from polytrain.columns.table import open_table
from polytrain.explain.shapley import rows_at_once, shapley_values
from polytrain.explain.sites import ColumnMeasure, make_measure, site_matrices
from polytrain.explain.view import ModelView, read_model
from polytrain.models import FittedModel
from polytrain.texts import printable

__all__ = ["MISSING", "LocalExplanations", "explain_local", "explain_rows", "number_format"]

# Lines and columns that are printed.
_MOST_LINES, _MOST_COLUMNS = 10, 6
# Whole numbers below this are written with all of their digits.
_LARGEST_WHOLE = 1e15

#: What stands for a missing value.
MISSING = "missing"

#: What scores are: of classifiers, and of regressors, by their link.
_CLASS_SCALES = {"logit": "log-odds", "softmax": "pre-softmax score"}
_NUMBER_SCALES = {"log": "log of the prediction"}


@dataclass(frozen=True, repr=False, eq=False)
class LocalExplanations:
    """Contributions of the columns to the scores of some rows.

    Attributes
    ----------
    values : ndarray of shape (N, n_columns, n_scores)
        Shapley values. Over the columns they sum to ``scores - base``.
    base : ndarray of shape (n_scores,)
        Mean scores.
    scores : ndarray of shape (N, n_scores)
        Scores of the rows.
    column_names : tuple of n_columns str
        Names of the columns.
    cells : tuple of N tuples of n_columns str
        The rows' own values, as text.
    row_names : tuple of N
        Labels of the rows: the index of a frame of pandas, or numbers from 0.
    score_names : tuple of n_scores str
        What a high score stands for.
    scale : str
        What scores are: "log-odds", "pre-softmax score" or "score" of a class, "prediction", or "log of the
        prediction".

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import explain_local
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    >>> y = 4 * X[:, 0] + 2 * X[:, 1] * X[:, 2]
    >>> model = TensorTrainRegressor(basis="power", rank=3, alpha=1e-6, random_state=0).fit(X, y)
    >>> print(explain_local(model, [[0.5, 0.9, -0.8]], X_background=[[0.0, 0.0, 0.5]]))
    row 0: prediction 0.56 = mean 0.00 + x1 (0.5) 2.00 - x3 (-0.8) 1.17 - x2 (0.9) 0.27
    """

    values: NDArray
    base: NDArray
    scores: NDArray
    column_names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    row_names: tuple[Any, ...]
    score_names: tuple[str, ...]
    scale: str

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        n_rows, n_columns, n_scores = self.values.shape
        return f"<LocalExplanations: {n_rows} rows, {n_columns} columns, {n_scores} scores; print it to read them>"

    def __str__(self) -> str:
        lines = [self.sentence(row, score) for row, score in self._first_lines()]
        more = self.scores.size - len(lines)
        return "\n".join([*lines, f"... and {more} more"] if more else lines)

    def _first_lines(self) -> list[tuple[int, int]]:
        n_scores = len(self.score_names)
        return [divmod(line, n_scores) for line in range(min(self.scores.size, _MOST_LINES))]

    def score_label(self, score: int = 0) -> str:
        """Return a description of a score."""
        is_only_number = self.scale.endswith("prediction") and self.score_names == ("prediction",)
        return self.scale if is_only_number else f"{self.scale} of {printable(self.score_names[score])}"

    def renamed(self, row_names: tuple[Any, ...]) -> LocalExplanations:
        """Return the same with other labels of the rows."""
        return replace(self, row_names=row_names)

    def ranked(self, row: int = 0, score: int = 0) -> list[tuple[str, str, float]]:
        """Names of the columns, the row's values and what they bring, the largest first; given by numbers."""
        values = self.values[row, :, score]
        order = np.argsort(-np.abs(values), kind="stable").tolist()
        return [(self.column_names[k], self.cells[row][k], float(values[k])) for k in order]

    def sentence(self, row: int = 0, score: int = 0, most: int = _MOST_COLUMNS) -> str:
        """One line about a row, given by numbers: its score is the mean plus what the columns bring."""
        ranked, base, total = self.ranked(row, score), float(self.base[score]), float(self.scores[row, score])
        shown = number_format([base, total, *(value for *_, value in ranked)])
        parts = [(f"{printable(name)} ({printable(cell)})", value) for name, cell, value in ranked[:most]]
        rest = ranked[most:]
        if rest:
            parts.append((f"{len(rest)} others", math.fsum(value for *_, value in rest)))
        terms = "".join(f" {'-' if value < 0 else '+'} {name} {shown(abs(value))}" for name, value in parts)
        label = self.score_label(score)
        return f"row {printable(self.row_names[row])}: {label} {shown(total)} = mean {shown(base)}{terms}"

    def to_frame(self) -> Any:
        """Return a frame of pandas with one line per row, score and column.

        Its columns are ``row``, ``score_of``, ``column``, ``value`` (the row's own, as text), ``contribution``,
        ``mean`` and ``score``.
        """
        import pandas as pd

        n_rows, n_columns, n_scores = self.values.shape
        per_row = n_columns * n_scores
        return pd.DataFrame(
            {
                "row": [name for name in self.row_names for _ in range(per_row)],
                "score_of": list(np.repeat(np.array(self.score_names, dtype=object), n_columns)) * n_rows,
                "column": list(self.column_names) * (n_rows * n_scores),
                "value": [cell for cells in self.cells for _ in range(n_scores) for cell in cells],
                "contribution": self.values.transpose(0, 2, 1).ravel(),
                "mean": np.tile(np.repeat(self.base, n_columns), n_rows),
                "score": np.repeat(self.scores.ravel(), n_columns),
            }
        )


def explain_local(
    model: BaseEstimator, X: ArrayLike, *, X_background: ArrayLike | None = None, output: int | str | None = None
) -> LocalExplanations:
    """Say what each column brings to the scores of given rows, by exact Shapley values.

    The score of a row is compared with the mean score, over columns that are independent, each with its own
    distribution. A column that is present has the row's value; one that is absent is averaged over. What a column
    brings is how much the score changes when it enters, averaged over all orders in which columns may enter. No order
    is sampled: the average is computed from the cores, and the values sum to the score minus the mean.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor, or a Pipeline that ends with one
        A fitted estimator. The steps before it must keep columns, as scalers and imputers do; which columns they make
        is told by their ``get_feature_names_out``.
    X : array-like or frame of shape (N, n_columns)
        Rows to explain, as for ``predict``.
    X_background : array-like or frame of shape (M, n_columns), optional
        Rows that give the distribution of every single column. Without it, columns are distributed as in training;
        those of polynomials, which know their range only, uniformly on it.
    output : int or str, optional
        The score that is explained, by its number or name, such as a class as text; by default all.

    Returns
    -------
    LocalExplanations
        Log-odds for classifiers with probabilities, or with a softmax the scores before it, of which only differences
        between classes matter; predictions for regressors, or their logarithms with a log link.

    Notes
    -----
    A column of dates is several features, which enter and leave together. Where they are absent they have the joint
    distribution of the rows of ``X_background``; without it they are taken as independent of each other, because
    nothing is known of how they go together. An ``offset`` of a prediction is not part of its score here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.explain import explain_local
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TensorTrainClassifier(random_state=0).fit(X, y)
    >>> found = explain_local(model, X.iloc[[0, 100]], X_background=X, output="2")
    >>> found.values.shape
    (2, 4, 1)
    >>> bool(abs(found.values.sum(axis=1) - (found.scores - found.base)).max() < 1e-9)
    True
    >>> [name for name, _, _ in found.ranked(1)[:2]]
    ['petal width (cm)', 'petal length (cm)']
    """
    view = read_model(model)
    scores = list(range(len(view.trains))) if output is None else [view.index("output", output)]
    rows, measure = view.rows(X), make_measure(view, X_background)
    cells, row_names = cell_texts(X, view.taken), row_labels(X, len(rows))
    return explain_rows(view, rows, measure, scores=scores, cells=cells, row_names=row_names)


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused at the end
def explain_rows(
    view: ModelView,
    rows: NDArray,
    measure: ColumnMeasure,
    *,
    scores: Sequence[int],
    cells: tuple[tuple[str, ...], ...],
    row_names: tuple[Any, ...],
) -> LocalExplanations:
    """Explain scores of checked rows (N, d); columns that are absent are averaged over the measure."""
    trains = [view.trains[score].cores for score in scores]
    groups = [slice(group.start, group.stop) for group in view.groups]
    absent = [[measure.site_mean(k, cores[group]) for k, group in enumerate(groups)] for cores in trains]
    base = np.array([reduce(np.matmul, means)[0, 0] for means in absent]) + view.fitted.shift[list(scores)]
    values = np.empty((len(rows), len(groups), len(trains)))
    size = min(rows_at_once([matrix.shape for matrix in means]) for means in absent)
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        functions = view.functions(rows[block])
        for k, (cores, means) in enumerate(zip(trains, absent, strict=True)):
            present = [site_matrices(cores[group], functions[group]) for group in groups]
            values[block, :, k] = shapley_values(present, means)
    totals = view.fitted.scores(rows)[list(scores)].T
    _check_finite(values, totals, row_names)
    return LocalExplanations(
        values=values,
        base=base,
        scores=totals,
        column_names=view.column_names,
        cells=cells,
        row_names=row_names,
        score_names=tuple(view.train_names[score] for score in scores),
        scale=_scale(view.fitted),
    )


def number_format(numbers: Sequence[float]) -> Callable[[float], str]:
    """How numbers that are added up are written: all with the decimals that give the largest three digits."""
    largest = max(map(abs, numbers), default=0.0)
    if not 1e-4 <= largest < 1e7:
        return lambda number: f"{number:.3g}"
    decimals = max(2 - math.floor(math.log10(largest)), 0)
    return lambda number: f"{round(number, decimals) + 0.0:.{decimals}f}"  # never -0.00


def _check_finite(values: NDArray, scores: NDArray, row_names: Sequence[Any]) -> None:
    wrong = ~(np.isfinite(values).all(axis=(1, 2)) & np.isfinite(scores).all(axis=1))
    if wrong.any():
        raise ValueError(
            f"the score of row {row_names[int(wrong.argmax())]!r} exceeds the largest float, and cannot be explained. "
            "Check its values, or fit with scale='minmax'."
        )


def _scale(fitted: FittedModel) -> str:
    if fitted.classes is None:
        return _NUMBER_SCALES.get(fitted.link, "prediction")
    return _CLASS_SCALES.get(fitted.link, "score")


def cell_texts(X: Any, columns: Iterable[int] | None = None) -> tuple[tuple[str, ...], ...]:
    """Cells of a frame or an array as text: one tuple per row, for some of the columns or all."""
    table = open_table(X)
    chosen = range(len(table.names)) if columns is None else columns
    return tuple(zip(*(_column_texts(table.read(k)) for k in chosen), strict=True))


def _column_texts(cells: Cells) -> list[str]:
    texts = [_cell_text(value) for value in cells.values]
    return texts if cells.codes is None else [texts[code] if code >= 0 else MISSING for code in cells.codes]


def _cell_text(value: Any) -> str:
    if is_missing(value):
        return MISSING
    if sort_of(type(value)) != "number" or isinstance(value, (bool, np.bool_)):
        return text_of(value)
    number = float(value)
    return str(int(number)) if abs(number) < _LARGEST_WHOLE and number == int(number) else f"{number:.6g}"


def row_labels(X: Any, count: int) -> tuple[Any, ...]:
    """Return the index of a pandas frame, or numbers from 0."""
    return tuple(X.index) if hasattr(X, "iloc") else tuple(range(count))
