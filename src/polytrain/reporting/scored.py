"""The rows of a report, scored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import DateColumn
from polytrain.explain.view import ModelView
from polytrain.models import FittedModel
from polytrain.tables.evaluation import Answers, ClassificationErrors, RegressionErrors

__all__ = ["ScoredRows"]

# Rows among which a column is shuffled: at least, at most, and multiplications that a column may cost.
_LEAST_SHUFFLED, _MOST_SHUFFLED, _SHUFFLING_COST = 2000, 5000, 3e9


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with their targets and predictions.

    Attributes
    ----------
    view : ModelView
        The model; its rows are features.
    errors : ClassificationErrors or RegressionErrors
        Predictions and errors of all rows.
    X : ndarray of shape (N, d)
        Features of these rows, or of an even sample of many.
    places : ndarray of shape (N,)
        Numbers of the rows of X, from 0, among all rows that have a target.
    target : str or None
        Name of the target.
    training : dict
        Facts about the training, where they are known.
    """

    view: ModelView
    errors: ClassificationErrors | RegressionErrors
    X: NDArray
    places: NDArray
    target: str | None = None
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def fitted(self) -> FittedModel:
        """The fitted model."""
        return self.view.model.model_

    @property
    def labels(self) -> list[str] | None:
        """Names of the classes; None for regressors."""
        return None if self.fitted.classes is None else [str(label) for label in self.fitted.classes]

    @cached_property
    def answers(self) -> Answers:
        """Targets and predictions of the rows of X."""
        return self.errors.answers.only(self.places)

    @cached_property
    def margins(self) -> NDArray:
        """Lead of the true class over all others, negative where the model is wrong; or minus the absolute error."""
        y, ranking = self.answers.y, self.answers.ranking
        if ranking is None:
            return -np.abs(self.answers.predicted - y)
        others = ranking.copy()
        others[np.arange(len(y)), y] = -np.inf
        return ranking[np.arange(len(y)), y] - others.max(axis=1)

    def cells(self, j: int, columns: Sequence[int] | None = None) -> tuple[str, ...]:
        """Values of a row of X in some columns, or in all, as text."""
        shown = range(self.view.n_columns) if columns is None else columns
        return tuple(self._cell(k, float(self.X[j, self.view.groups[k].start])) for k in shown)

    def _cell(self, column: int, value: float) -> str:
        levels = self.view.levels(column)
        if np.isnan(value):
            return "missing"
        if levels is not None:
            return levels[int(value)] if 0 <= value < len(levels) else "another"
        if isinstance(self.view.column(column), DateColumn):
            date = np.datetime64(round(1440 * value), "m")
            return str(date if value % 1 else date.astype("datetime64[D]"))
        return str(int(value)) if abs(value) < 1e9 and value == int(value) else f"{value:.5g}"

    def shuffled(self, columns: Sequence[int]) -> list[float]:
        """How much the error rises if a column is shuffled among the rows: wrong labels, or root mean squared error."""
        most = min(max(int(_SHUFFLING_COST / self.fitted.n_parameters), _LEAST_SHUFFLED), _MOST_SHUFFLED)
        some = slice(None, None, -(-len(self.X) // most))
        X, y = self.X[some], self.answers.y[some]
        order = np.random.default_rng(0).permutation(len(y))
        before, rises = self._error(self.answers.predicted[some], y), []
        for column in columns:
            mixed, group = X.copy(), self.view.groups[column]
            mixed[:, group.start : group.stop] = X[order, group.start : group.stop]
            rises.append(self._error(Answers.of(self.fitted, mixed, y).predicted, y) - before)
        return rises

    def _error(self, predicted: NDArray, y: NDArray) -> float:
        if self.labels is not None:
            return float((predicted != y).mean())
        return float(np.sqrt(np.mean(np.square(predicted - y))))
