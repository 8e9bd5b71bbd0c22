"""What a report measures: predictions for rows with known answers, and simple models to compare with.

Errors of all rows are counted elsewhere, block by block; here are the rows, or an even sample of very many, of which
curves, intervals and comparisons are made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from polytrain.models import FittedModel
from polytrain.reporting.subject import Subject
from polytrain.tables.baselines import constant_answers, linear_answers
from polytrain.tables.metrics import Answers

__all__ = ["Comparison", "ScoredRows", "bootstrap_rmse", "cell_text", "compare", "wilson"]

# Rows that columns are shuffled among: at least, at most, and what a column may cost in multiplications.
_LEAST_SHUFFLED, _MOST_SHUFFLED, _SHUFFLING_COST = 2000, 5000, 3e9
_N_BOOTSTRAP = 400
# Two-sided, 95 %.
_Z = 1.959964


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows and what a model makes of them.

    Attributes
    ----------
    model : Subject
    X : ndarray of shape (N, d)
        Features.
    y : ndarray of shape (N,)
        Numbers, or indexes of classes.
    places : ndarray of shape (N,)
        Which rows they are, counted from 0 among those that have a target.
    """

    model: Subject
    X: NDArray
    y: NDArray
    places: NDArray

    @property
    def fitted(self) -> FittedModel:
        """The model behind the estimator."""
        return self.model.fitted

    @cached_property
    def answers(self) -> Answers:
        """What the model says about the rows."""
        return Answers.of(self.fitted, self.X, self.y)

    @property
    def probabilities(self) -> NDArray | None:
        """Probabilities (N, n_classes), if the model has any."""
        return self.answers.probabilities

    @property
    def predicted(self) -> NDArray:
        """Numbers, or indexes of classes."""
        return self.answers.predicted

    @cached_property
    def trust(self) -> NDArray:
        """What speaks for the true answer: its probability or its lead over other classes, or minus the distance."""
        ranking, rows = self.answers.ranking, np.arange(len(self.y))
        if ranking is None:
            return -np.abs(self.predicted - self.y)
        others = ranking.copy()
        others[rows, self.y] = -np.inf
        return ranking[rows, self.y] - others.max(axis=1)

    def shuffled(self, columns: Sequence[str]) -> list[float]:
        """How much the error rises if a column is shuffled among the rows: wrong labels, or root mean squared error."""
        most = min(max(int(_SHUFFLING_COST / self.fitted.n_parameters), _LEAST_SHUFFLED), _MOST_SHUFFLED)
        some = slice(None, None, -(-len(self.y) // most))
        X, y = self.X[some], self.y[some]
        order = np.random.default_rng(0).permutation(len(y))
        places = self.model.places
        before, rises = self._error(X, y), []
        for name in columns:
            mixed = X.copy()
            mixed[:, places[name]] = X[order, places[name]]
            rises.append(self._error(mixed, y) - before)
        return rises

    def _error(self, X: NDArray, y: NDArray) -> float:
        predicted = self.fitted.predict(X)
        if self.fitted.classes is not None:
            return float((predicted != self.fitted.classes[y]).mean())
        return float(np.sqrt(np.mean(np.square(predicted - y))))


def cell_text(value: float, levels: tuple[str, ...] | None) -> str:
    """Value of a feature as text, given the names of its levels, if it has any."""
    if np.isnan(value):
        return "missing"
    if levels is None:
        return str(int(value)) if abs(value) < 1e9 and value == int(value) else f"{value:.5g}"
    return levels[int(value)] if 0 <= value < len(levels) else "another"


@dataclass(frozen=True)
class Comparison:
    """The error of a simple model: share of wrong labels, or root mean squared error, with an interval of 95 %."""

    name: str
    error: float
    low: float
    high: float
    how: str


def wilson(n_wrong: int, n: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share.

    Examples
    --------
    >>> from polytrain.reporting.evidence import wilson
    >>> [round(end, 3) for end in wilson(10, 100)]
    [0.055, 0.174]
    """
    share, square = n_wrong / n, _Z * _Z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = _Z * math.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def bootstrap_rmse(residuals: NDArray) -> tuple[float, float]:
    """Interval of 95 % for a root mean squared error, from rows drawn with replacement."""
    size = float(np.abs(residuals).max())
    if size == 0:
        return 0.0, 0.0
    squares = np.square(residuals / size)  # squares of large numbers might overflow
    rng = np.random.default_rng(0)
    drawn = [squares[rng.integers(len(squares), size=len(squares))].mean() for _ in range(_N_BOOTSTRAP)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return size * math.sqrt(low), size * math.sqrt(high)


def compare(scored: ScoredRows, train: tuple[NDArray, NDArray] | None = None) -> list[Comparison]:
    """Return errors of a linear model, if there are rows to learn it from, and of the best constant answer.

    Parameters
    ----------
    scored : ScoredRows
        What the models are judged on.
    train : (X, y), optional
        What the linear model learns from: the training rows of the model. Without them there is no linear model,
        since fewer rows than the model had, or others, would make it look worse than it is.
    """
    model, y, found = scored.model, scored.y, []
    n_classes = len(model.estimator.classes_) if model.is_classifier else None
    if train is not None:
        linear = linear_answers(*train, scored.X, y, list(model.levels), n_classes)
        name = "logistic regression" if model.is_classifier else "ridge regression"
        if linear is not None:
            how = f"learned from {len(train[1])} training rows"
            found.append(_comparison(scored, f"linear model ({name})", linear.predicted, how))
    constant = constant_answers(y, y, n_classes).predicted
    name = f"always {model.estimator.classes_[constant[0]]}" if model.is_classifier else "always the mean"
    return [*found, _comparison(scored, name, constant, "the best constant in hindsight")]


def _comparison(scored: ScoredRows, name: str, guess: NDArray, how: str) -> Comparison:
    y = scored.y
    if scored.model.is_classifier:
        wrong = int((guess != y).sum())
        return Comparison(name, wrong / len(y), *wilson(wrong, len(y)), how)
    return Comparison(name, float(np.sqrt(np.mean(np.square(guess - y)))), *bootstrap_rmse(guess - y), how)
