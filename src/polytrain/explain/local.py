"""Why a row has its score: what each of its columns brings, as exact Shapley values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.explain.cell_texts import cell_texts, row_labels
from polytrain.explain.measure import FeatureMeasure, basis_means, make_measure
from polytrain.explain.pipelines import last_step
from polytrain.explain.shapley import present_matrices, rows_at_once, shapley_values
from polytrain.explain.view import ModelView, read_model
from polytrain.models import FittedModel, fitted_model
from polytrain.texts import listed, printable

__all__ = ["LocalExplanations", "Player", "explain_local", "explain_players"]

# Lines and columns that are printed.
_MOST_LINES, _MOST_COLUMNS = 10, 6
# Background rows whose matrices are averaged at once.
_BLOCK_ROWS = 1024

#: What scores are: of classifiers, and of regressors, by their link.
_CLASS_SCALES = {"logit": "log-odds", "softmax": "pre-softmax score"}
_NUMBER_SCALES = {"log": "log of the prediction"}


@dataclass(frozen=True)
class Player:
    """A column and the place of its features, which enter and leave together."""

    name: str
    features: slice


@dataclass(frozen=True, repr=False, eq=False)
class LocalExplanations:
    """What each column brings to the scores of some rows.

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
        What a high score speaks for.
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
        """What a score is, in words."""
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
    step = last_step(model)
    view = read_model(step.model)
    prepared = step.prepare(X)
    rows = view.rows(prepared)
    measures = make_measure(view, None if X_background is None else step.prepare(X_background), None)
    return explain_players(
        view,
        _column_players(view, step.names),
        rows,
        measures,
        joint=X_background is not None,
        scores=_chosen_scores(view, output),
        cells=cell_texts(X, step.columns),
        row_names=row_labels(X, len(rows)),
    )


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused at the end
def explain_players(
    view: ModelView,
    players: Sequence[Player],
    rows: NDArray,
    measures: Sequence[FeatureMeasure],
    *,
    joint: bool,
    scores: Sequence[int],
    cells: tuple[tuple[str, ...], ...],
    row_names: tuple[Any, ...],
) -> LocalExplanations:
    """Explain checked rows (N, d) by players, whose features make up all d in order.

    ``joint`` says whether the measures are rows, so that the features of a player can be drawn together.
    """
    fitted = fitted_model(view.model)
    means = basis_means(view, measures)
    trains = [view.trains[score].cores for score in scores]
    absent = [[_mean_matrix(view, cores, player, means, measures, joint) for player in players] for cores in trains]
    shift = view.shift[list(scores)]
    base = np.array([reduce(np.matmul, part)[0, 0] for part in absent]) + shift
    values = np.empty((len(rows), len(players), len(trains)))
    block = min(rows_at_once([matrix.shape for matrix in part]) for part in absent)
    for some, functions in _blocks(view, rows, block):
        for place, (cores, part) in enumerate(zip(trains, absent, strict=True)):
            present = [present_matrices(cores[p.features], functions[p.features]) for p in players]
            values[some, :, place] = shapley_values(present, part)
    totals = fitted.scores(rows)[list(scores)].T
    _check_finite(values, totals, row_names)
    return LocalExplanations(
        values=values,
        base=base,
        scores=totals,
        column_names=tuple(player.name for player in players),
        cells=cells,
        row_names=row_names,
        score_names=tuple(view.train_names[score] for score in scores),
        scale=_scale(fitted),
    )


def number_format(numbers: Sequence[float]) -> Callable[[float], str]:
    """How numbers that are added up are written: all with the decimals that give the largest three digits."""
    largest = max(map(abs, numbers), default=0.0)
    if not 1e-4 <= largest < 1e7:
        return lambda number: f"{number:.3g}"
    decimals = max(2 - math.floor(math.log10(largest)), 0)
    return lambda number: f"{round(number, decimals) + 0.0:.{decimals}f}"  # never -0.00


def _column_players(view: ModelView, names: tuple[str, ...] | None) -> list[Player]:
    """One player per column of the table."""
    if view.columns is None:
        return [Player(name, slice(k, k + 1)) for k, name in enumerate(names or view.feature_names)]
    sizes = [len(column.feature_names) for column in view.columns.columns]
    own = tuple(column.name for column in view.columns.columns)
    ends = np.cumsum(sizes).tolist()
    return [Player(name, slice(end - size, end)) for name, size, end in zip(names or own, sizes, ends, strict=True)]


def _chosen_scores(view: ModelView, output: int | str | None) -> list[int]:
    if output is None:
        return list(range(len(view.trains)))
    if isinstance(output, str):
        if output not in view.train_names:
            raise ValueError(f"there is no score {output!r}; there are {listed(view.train_names)}.")
        return [view.train_names.index(output)]
    return [view.train_index(output)]


def _mean_matrix(
    view: ModelView,
    cores: Sequence[NDArray],
    player: Player,
    means: Sequence[NDArray],
    measures: Sequence[FeatureMeasure],
    joint: bool,
) -> NDArray:
    """Matrix of a player that is absent."""
    own, maps = cores[player.features], view.maps[player.features]
    if not joint or len(own) == 1:
        return present_matrices(own, [mean[:, None] for mean in means[player.features]])[0]
    points = [one for one, _ in measures[player.features]]
    weights = measures[player.features][0][1]
    total = np.zeros((own[0].shape[0], own[-1].shape[2]))
    for start in range(0, len(weights), _BLOCK_ROWS):
        some = slice(start, start + _BLOCK_ROWS)
        functions = [one.values(place[some]) for one, place in zip(maps, points, strict=True)]
        total += np.tensordot(weights[some], present_matrices(own, functions), axes=1)
    return total


def _blocks(view: ModelView, rows: NDArray, size: int) -> Iterator[tuple[slice, list[NDArray]]]:
    """Places of some rows, and the functions (n_k, rows) of every feature there."""
    coordinates = view.maps.place(rows)
    for start in range(0, len(rows), size):
        some = slice(start, start + size)
        yield some, [one.values(place[some]) for one, place in zip(view.maps, coordinates, strict=True)]


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
