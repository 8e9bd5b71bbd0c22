"""Explanations of single rows: the contribution of each column to the score, as exact Shapley values.

A player is a column: one core of the train, or a few that stand side by side. Where it is present, its cores are taken
at the row's value, as a matrix ``P``; where it is absent, at their mean ``A``. A coalition's worth is the product of
these matrices. The Shapley value is the mean of what a player adds, over all sizes of coalitions and all coalitions of
a size. It is also an integral: let every other player be present with probability t, and let t be uniform on [0, 1].
Then all sizes are equally likely, and so are coalitions of one size (Owen's multilinear extension).

Being linear in each player, the mean over coalitions for one t is again a product of matrices, ``A + t (P - A)``. It is
a polynomial in t, whose degree is less than the number of players, so that Gauss-Legendre quadrature with half as many
nodes is exact. All weights are positive and no binomials appear: nothing overflows or cancels, however many players.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.checks import dense
from polytrain.columns.frames import open_table
from polytrain.columns.scalars import is_missing, sort_of, text_of
from polytrain.explain.sensitivity import frame
from polytrain.explain.sites import ColumnMeasure, make_measure, site_matrices
from polytrain.explain.view import column_groups, group_names, read_model
from polytrain.texts import number_format, printable

# Largest numbers of lines and columns that are printed.
_MOST_LINES, _MOST_COLUMNS = 10, 6
# Numbers in memory at once: few enough to stay in cache.
_BLOCK_NUMBERS = 1 << 20

#: Text of a missing value.
MISSING = "missing"

# Nodes and weights on [-1, 1].
_quadrature = cache(np.polynomial.legendre.leggauss)

# Names of scores by their link; others are "score" of a class, or "prediction".
_SCALES = {"logit": "log-odds", "softmax": "pre-softmax score", "log": "log of the prediction"}


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
        Meaning of a high score.
    scale : str
        Kind of the scores: "log-odds", "pre-softmax score" or "score" of a class, "prediction", or "log of the
        prediction".
    """

    values: NDArray
    base: NDArray
    scores: NDArray
    column_names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    row_names: tuple[Any, ...]
    score_names: tuple[str, ...]
    scale: str

    def __repr__(self) -> str:
        n_rows, n_columns, n_scores = self.values.shape
        return f"<LocalExplanations: {n_rows} rows, {n_columns} columns, {n_scores} scores; print it to read them>"

    def __str__(self) -> str:
        shown = range(min(self.scores.size, _MOST_LINES))
        lines = [self.sentence(*divmod(line, len(self.score_names))) for line in shown]
        more = self.scores.size - len(lines)
        return "\n".join([*lines, f"... and {more} more"] if more else lines)

    def joined(self, groups: Sequence[Sequence[int]]) -> LocalExplanations:
        """Return the explanations with the contributions of groups of columns, given by their numbers, added up."""
        return replace(
            self,
            values=np.stack([self.values[:, group].sum(axis=1) for group in groups], axis=1),
            column_names=group_names(self.column_names, groups),
            cells=tuple(tuple(", ".join(row[k] for k in group) for group in groups) for row in self.cells),
        )

    def score_label(self, score: int = 0) -> str:
        """Return a description of a score."""
        name = self.score_names[score]
        is_only_number = name == "prediction" and self.scale.endswith(name)
        return self.scale if is_only_number else f"{self.scale} of {printable(name)}"

    def ranked(self, row: int = 0, score: int = 0, most: int | None = None) -> list[tuple[str, str, float]]:
        """Return the name of each column, the row's value and its contribution, the largest contribution first.

        All columns after the first ``most`` share one entry, without a value, unless it would hold a single column.
        """
        values = self.values[row, :, score]
        order = np.argsort(-np.abs(values), kind="stable").tolist()
        ranked = [(self.column_names[k], self.cells[row][k], float(values[k])) for k in order]
        if most is None or len(ranked) <= most + 1:
            return ranked
        rest = math.fsum(value for *_, value in ranked[most:])
        return [*ranked[:most], (f"{len(ranked) - most} other columns", "", rest)]

    def sentence(self, row: int = 0, score: int = 0, most: int = _MOST_COLUMNS) -> str:
        """One line about a row, given by numbers: its score is the mean plus the contributions of the columns."""
        ranked, base, total = self.ranked(row, score, most), float(self.base[score]), float(self.scores[row, score])
        shown = number_format([base, total, *(value for *_, value in ranked)])
        terms = ""
        for name, cell, value in ranked:
            value_of = f" ({printable(cell)})" if cell else ""
            terms += f" {'-' if value < 0 else '+'} {printable(name)}{value_of} {shown(abs(value))}"
        name, label = printable(self.row_names[row]), self.score_label(score)
        return f"row {name}: {label} {shown(total)} = mean {shown(base)}{terms}"

    def to_frame(self) -> Any:
        """Return a frame of pandas with one line per row, score and column.

        Its columns are ``row``, ``score_of``, ``column``, ``value`` (the row's own, as text), ``contribution``,
        ``mean`` and ``score``.
        """
        n_rows, n_columns, n_scores = self.values.shape
        row, score, column = (index.ravel() for index in np.indices((n_rows, n_scores, n_columns)))
        return frame(
            {
                "row": [self.row_names[j] for j in row],
                "score_of": [self.score_names[k] for k in score],
                "column": [self.column_names[k] for k in column],
                "value": [self.cells[j][k] for j, k in zip(row, column, strict=True)],
                "contribution": self.values[row, column, score],
                "mean": self.base[score],
                "score": self.scores[row, score],
            }
        )

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, which shap's plots take.

        Its values and base values are those of the only score, or have a last axis with an entry per score: of several
        classes, plot ``to_shap()[..., k]``. ``data`` has the rows' own values, six digits of each number.
        """
        try:
            from shap import Explanation
        except ImportError as error:
            raise ImportError("to_shap needs shap, which is not installed: pip install shap.") from error
        values, base, names = self.values, np.tile(self.base, (len(self.values), 1)), list(self.score_names)
        cells = [_shap_column(column) for column in zip(*self.cells, strict=True)]
        is_text = any(isinstance(cell, str) for column in cells for cell in column)
        data = np.array(cells, dtype=object if is_text else np.float64).T
        if len(names) == 1:
            return Explanation(values[..., 0], base[:, 0], data, feature_names=list(self.column_names))
        return Explanation(values, base, data, feature_names=list(self.column_names), output_names=names)


def explain_local(
    model: BaseEstimator,
    X: Any,
    *,
    X_background: ArrayLike | None = None,
    output: int | str | None = None,
    groups: str | Sequence[Sequence[int | str]] | None = None,
) -> LocalExplanations:
    """Split the scores of rows into contributions of the columns, by exact Shapley values.

    The score of a row is compared with the mean score over independent columns. A column that is present has the row's
    value; one that is absent is averaged over. The contribution of a column is the change of the score when it enters,
    averaged over all orders in which columns may enter. No order is sampled: the average is computed from the cores.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor, or a Pipeline that ends with one
        A fitted estimator. The steps before it must keep columns, as scalers and imputers do; their
        ``get_feature_names_out`` tells which columns they return.
    X : array-like or frame of shape (N, n_columns)
        Rows to explain, as for ``predict``.
    X_background : array-like or frame of shape (M, n_columns), optional
        Rows that give the distribution of every single column; see `sobol_indices`.
    output : int or str, optional
        The score to explain, by its number or name, such as a class as text; by default all.
    groups : None, "auto", or sequence of sequences of int or str, default=None
        Columns, by number or name, whose contributions are added up. For columns that always vary together, only this
        sum is meaningful. "auto" groups near-copies in ``X_background``, or else in ``X``.

    Returns
    -------
    LocalExplanations
        Log-odds for classifiers with probabilities, or with a softmax the scores before it, of which only differences
        between classes matter; predictions for regressors, or their logarithms with a log link.

    Notes
    -----
    A column of dates is several features, which enter and leave together. Where they are absent they have the joint
    distribution of the rows of ``X_background``; without it they are taken as independent of each other. The ``offset``
    of a prediction is not part of its score here.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import explain_local
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    >>> model = TensorTrainRegressor(basis="power", rank=3, alpha=1e-6, random_state=0)
    >>> model = model.fit(X, 4 * X[:, 0] + 2 * X[:, 1] * X[:, 2])
    >>> found = explain_local(model, [[0.5, 0.9, -0.8]], X_background=[[0.0, 0.0, 0.5]])
    >>> print(found)
    row 0: prediction 0.56 = mean 0.00 + x1 (0.5) 2.00 - x3 (-0.8) 1.17 - x2 (0.9) 0.27
    >>> bool(np.allclose(found.values.sum(axis=1), found.scores - found.base))
    True
    """
    view = read_model(model)
    rows = view.rows(X)
    explained = explain_rows(
        rows,
        make_measure(view, X_background),
        scores=None if output is None else [view.index("output", output)],
        cells=cell_texts(dense(X), view.taken),
        row_names=tuple(X.index if hasattr(X, "iloc") else range(len(rows))),
    )
    return explained.joined(column_groups(view, groups, X if X_background is None else X_background))


@np.errstate(over="ignore", invalid="ignore")  # numbers that are not finite are refused at the end
def explain_rows(
    rows: NDArray,
    measure: ColumnMeasure,
    *,
    cells: tuple[tuple[str, ...], ...],
    row_names: tuple[Any, ...],
    scores: Sequence[int] | None = None,
) -> LocalExplanations:
    """Explain all or some scores of checked rows (N, d); columns that are absent are averaged over the measure."""
    view, fitted = measure.view, measure.view.fitted
    scores = range(fitted.n_trains) if scores is None else scores
    trains = [fitted.trains[score].cores for score in scores]
    groups = [slice(group.start, group.stop) for group in view.groups]
    absent = [[measure.site_mean(k, cores[group]) for k, group in enumerate(groups)] for cores in trains]
    base = np.array([reduce(np.matmul, means)[0, 0] for means in absent]) + fitted.shift[list(scores)]
    values = np.empty((len(rows), len(groups), len(trains)))
    # Of every row: the matrices of all columns, and one vector per column and node of the quadrature.
    per_row = max(sum(mean.size + len(mean) * (len(groups) // 2) for mean in means) for means in absent)
    size = max(1, _BLOCK_NUMBERS // per_row)
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        functions = [m.values(x) for m, x in zip(fitted.maps, fitted.maps.place(rows[block]), strict=True)]
        for k, (cores, means) in enumerate(zip(trains, absent, strict=True)):
            present = [site_matrices(cores[group], functions[group]) for group in groups]
            values[block, :, k] = shapley_values(present, means)
    totals = fitted.scores(rows)[list(scores)].T
    wrong = ~(np.isfinite(values).all(axis=(1, 2)) & np.isfinite(totals).all(axis=1))
    if wrong.any():
        raise ValueError(
            f"the score of row {row_names[int(wrong.argmax())]!r} exceeds the largest float, and cannot be explained. "
            "Check its values, or fit with a basis that scales features, such as 'power'."
        )
    score_names = tuple(fitted.train_names[score] for score in scores)
    scale = _SCALES.get(fitted.link, "score" if fitted.classes is not None else "prediction")
    return LocalExplanations(values, base, totals, view.column_names, cells, row_names, score_names, scale)


def cell_texts(X: Any, columns: Sequence[int] | None) -> tuple[tuple[str, ...], ...]:
    """Cells of a frame or an array as text: one tuple per row, for some of the columns or all."""
    table = open_table(X)
    texts = []
    for k in range(len(table.names)) if columns is None else columns:
        cells = table.read(k)
        distinct = [cell_text(value) for value in cells.values]
        codes = range(len(distinct)) if cells.codes is None else cells.codes
        texts.append([distinct[code] if code >= 0 else MISSING for code in codes])
    return tuple(zip(*texts, strict=True))


def _shap_column(cells: Sequence[str]) -> Sequence[float | str]:
    """Return a column's cells as numbers, NaN where missing, if all of them are; its text otherwise."""
    try:
        return [np.nan if cell == MISSING else float(cell) for cell in cells]
    except ValueError:
        return cells


def cell_text(value: Any) -> str:
    """A value as text: whole numbers below 1e15 in full, others with six digits."""
    if is_missing(value):
        return MISSING
    if sort_of(type(value)) != "number" or isinstance(value, (bool, np.bool_)):
        return text_of(value)
    number = float(value)
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else f"{number:.6g}"


def shapley_values(present: Sequence[NDArray], absent: Sequence[NDArray]) -> NDArray:
    """Shapley values (N, d) of all players, which sum to the product of the present matrices minus the absent ones'.

    Shapes: present (N, r_{k-1}, r_k) each, at the rows; absent (r_{k-1}, r_k) each, the mean matrices.
    """
    differences = [matrices - mean for matrices, mean in zip(present, absent, strict=True)]
    nodes, weights = _quadrature((len(present) + 1) // 2)  # exact for polynomials of degree d - 1
    n_rows, probability = len(present[0]), (nodes[:, None] + 1) / 2
    # Left and right parts have shape (N, nodes, rank).
    lefts = [np.ones((n_rows, len(nodes), 1))]
    for difference, mean in zip(differences[:-1], absent[:-1], strict=True):
        left = lefts[-1]
        lefts.append(np.tensordot(left, mean, axes=1) + probability * (left @ difference))
    values = np.empty((n_rows, len(differences)))
    right = np.ones((n_rows, len(nodes), 1))
    for k in reversed(range(len(differences))):
        added = right @ differences[k].transpose(0, 2, 1)
        values[:, k] = (lefts[k] * added).sum(axis=2) @ (weights / 2)
        if k:
            right = np.tensordot(right, absent[k].T, axes=1) + probability * added
    return values
