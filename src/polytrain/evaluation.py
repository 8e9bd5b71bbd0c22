"""Errors of a model on rows, and of simple models to compare with; scikit-learn computes the figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from polytrain.learning.losses import get_loss

__all__ = [
    *("METRICS", "Answers", "LeftOut", "RowSample", "class_areas", "constant_answers", "linear_answers"),
    *("leading_metrics", "metric_names", "metric_text"),
]

# Probabilities are counted in this many bins, of which a plot may join some.
N_BINS = 20


@dataclass(frozen=True, eq=False)
class Answers:
    """True and predicted values of some rows.

    ``y`` and ``predicted`` are (N,) or (N, n_targets); for classes, indexes. ``decided`` and ``probabilities``,
    (N, n_classes), are the decision function (of two classes its negative and itself) and what ``predict_proba``
    returns, or None. ``loss`` is the loss of the model, whose deviance is measured, and ``labels`` are the names of the
    classes, None for regression. ``weights`` (N,) are those of the rows; None if all are equal.
    """

    y: NDArray
    predicted: NDArray
    decided: NDArray | None = None
    probabilities: NDArray | None = None
    loss: str = "squared"
    labels: list[str] | None = None
    weights: NDArray | None = None

    @staticmethod
    def of(fitted: Any, X: NDArray, y: NDArray) -> Answers:
        """Ask a fitted model about features; ``y`` are numbers or indexes of classes."""
        if fitted.classes is None:
            return Answers(y, fitted.predict(X), loss=fitted.loss)
        # All answers come from the scores, which are what takes time.
        return Answers.of_scores(fitted, fitted.scores(X), y)

    @staticmethod
    def of_scores(fitted: Any, scores: NDArray, y: NDArray, weights: NDArray | None = None) -> Answers:
        """Make answers of scores (n_trains, N), which may be those of models without these rows."""
        if fitted.classes is None:
            return Answers(y, fitted.numbers(scores), loss=fitted.loss, weights=weights)
        n_classes = len(fitted.classes)
        decided = fitted.decision.decide(scores, n_classes)
        predicted = fitted.decision.choose(decided)
        decided = np.column_stack([-decided, decided]) if decided.ndim == 1 else decided
        probabilities = fitted.decision.probabilities(scores, n_classes) if fitted.has_probabilities else None
        labels = [str(label) for label in fitted.classes]
        return Answers(y, predicted, decided, probabilities, fitted.loss, labels, weights)

    @staticmethod
    def join(parts: list[Answers]) -> Answers:
        """Put blocks of rows together."""
        return parts[0]._changed(lambda name: np.concatenate([getattr(part, name) for part in parts]))

    def only(self, rows: NDArray) -> Answers:
        """Take some of the rows, given as a mask or as indexes."""
        return self._changed(lambda name: getattr(self, name)[rows])

    def _changed(self, change: Callable[[str], Any]) -> Answers:
        names = ("y", "predicted", "decided", "probabilities", "weights")
        return replace(self, **{name: change(name) for name in names if getattr(self, name) is not None})

    @property
    def ranking(self) -> NDArray | None:
        """Scores that rank rows for every class, (N, n_classes): probabilities, or else the decision function."""
        return self.decided if self.probabilities is None else self.probabilities

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @cached_property
    def bins(self) -> NDArray:
        """Rows, sum of probabilities, and rows that are right, by bins of the predicted class's probability: (3, bins).

        All 0 where there are no probabilities, and no margin of two classes either.
        """
        if self.probabilities is not None:
            sure = self.probabilities[np.arange(self.n), self.predicted]
        elif self.decided is not None and self.decided.shape[1] == 2:
            sure = np.minimum((1.0 + np.abs(self.decided[:, 1])) / 2, 1.0)
        else:
            return np.zeros((3, N_BINS))
        place = np.minimum((sure * N_BINS).astype(np.intp), N_BINS - 1)
        right = (self.predicted == self.y).astype(np.float64)
        return np.stack([np.bincount(place, weights, minlength=N_BINS) for weights in (None, sure, right)])

    def figures(self, names: Iterable[str]) -> dict[str, float | None]:
        """Return some metrics by name."""
        return {name: METRICS[name][2](self) for name in names}

    def summary(self) -> dict[str, Any]:
        """Return the figures by name; None for those that these rows do not have."""
        names = metric_names("regression" if self.labels is None else "classification")
        figures: dict[str, Any] = {"n": self.n, **self.figures(names)}
        if self.labels is None:
            return figures | {"largest_error": float(np.abs(self.predicted - self.y).max())}
        figures |= {"accuracy": 1.0 - figures["error"], "balanced_accuracy": 1.0 - figures["balanced_error"]}
        if self.probabilities is None:
            del figures["log_loss"]
        confusion = metrics.confusion_matrix(self.y, self.predicted, labels=np.arange(len(self.labels)))
        return figures | {"classes": self.labels, "confusion": confusion.tolist()}


class RowSample:
    """Keeps an even sample of a stream of rows: every ``step``-th row, so that there are at most ``max_rows``."""

    def __init__(self, max_rows: int = 20_000) -> None:
        self.rows, self.step = np.empty((0, 0)), 1
        self._max_rows, self._n_seen = max_rows, 0

    def add(self, X: NDArray) -> None:
        """Add a block of rows."""
        part = X[-self._n_seen % self.step :: self.step]
        self.rows = np.concatenate([self.rows, part]) if self._n_seen else part
        self._n_seen += len(X)
        while len(self.rows) > self._max_rows:
            self.rows, self.step = self.rows[::2], 2 * self.step


# --- metrics ---


def class_areas(answers: Answers) -> dict[int, tuple[float, float]]:
    """Return area under the ROC curve and average precision of each class against the rest, if both have rows.

    Of two classes, those of the second one.
    """
    ranking, areas = answers.ranking, {}
    if ranking is not None:
        for k in range(1 if ranking.shape[1] == 2 else 0, ranking.shape[1]):
            truth, values = answers.y == k, ranking[:, k]
            if 0 < truth.sum() < len(truth):
                precision = metrics.average_precision_score(truth, values, sample_weight=answers.weights)
                areas[k] = float(metrics.roc_auc_score(truth, values, sample_weight=answers.weights)), float(precision)
    return areas


def _log_loss(answers: Answers) -> float | None:
    sure = answers.probabilities
    if sure is None:
        return None
    labels = np.arange(sure.shape[1])
    return float(metrics.log_loss(answers.y, sure, labels=labels, sample_weight=answers.weights))


def _auc(answers: Answers) -> float | None:
    """Mean area under the ROC curve of each class against the rest; None where a class has no row."""
    if answers.ranking is None or len(np.unique(answers.y)) < answers.ranking.shape[1]:
        return None
    return float(np.mean([auc for auc, _ in class_areas(answers).values()]))


def _scaled(error: Callable[..., Any], answers: Answers) -> float:
    """Compute an error of numbers on numbers of size one: squares of large ones would overflow."""
    top = float(max(np.abs(answers.y).max(), np.abs(answers.predicted).max())) or 1.0
    return top * float(error(answers.y / top, answers.predicted / top, sample_weight=answers.weights))


def _deviance(answers: Answers) -> float | None:
    """Mean deviance of the model's loss: Poisson, gamma, pinball, or else the mean squared error."""
    loss, options = get_loss(answers.loss), {"sample_weight": answers.weights}
    columns = (values.reshape(answers.n, -1).T for values in (answers.y, answers.predicted))
    try:
        with np.errstate(over="ignore"):
            measure = partial(getattr(metrics, loss.metric), **loss.metric_options, **options)
            deviance = float(np.mean([measure(*pair) for pair in zip(*columns, strict=True)]))
    except ValueError:  # a count below 0, or an amount of 0
        return None
    return deviance if np.isfinite(deviance) else None


def _r2(answers: Answers) -> float | None:
    top = float(np.abs(answers.y).max()) or 1.0
    if (np.ptp(answers.y, axis=0) == 0).all():
        return None
    return float(metrics.r2_score(answers.y / top, answers.predicted / top, sample_weight=answers.weights))


def _balanced_error(answers: Answers) -> float:
    y, options = answers.y, {"average": "macro", "sample_weight": answers.weights}
    return 1.0 - float(metrics.recall_score(y, answers.predicted, labels=np.unique(y), **options))


def _error(answers: Answers) -> float:
    return float(metrics.zero_one_loss(answers.y, answers.predicted, sample_weight=answers.weights))


#: Name -> (task, words for people, error of answers). Less is better, except for auc and r2.
METRICS: dict[str, tuple[str, str, Callable[[Answers], float | None]]] = {
    "error": ("classification", "error", _error),
    "balanced_error": ("classification", "error, the mean over classes", _balanced_error),
    "log_loss": ("classification", "log loss", _log_loss),
    "auc": ("classification", "area under the ROC curve", _auc),
    "rmse": ("regression", "root mean squared error", lambda a: _scaled(metrics.root_mean_squared_error, a)),
    "mae": ("regression", "mean absolute error", lambda a: _scaled(metrics.mean_absolute_error, a)),
    "deviance": ("regression", "mean deviance", _deviance),
    "r2": ("regression", "R2", _r2),
}


def metric_names(task: str) -> list[str]:
    """Return the names of the metrics of a task, the default first."""
    return [name for name, (kind, _, _) in METRICS.items() if kind == task]


def leading_metrics(loss: str, classify: bool) -> tuple[str, ...]:
    """Return the metrics that say most about models with this loss; the first is the one that people think in.

    >>> leading_metrics("squared", False), leading_metrics("absolute", False), leading_metrics("poisson", False)
    (('rmse', 'r2'), ('mae', 'r2'), ('deviance', 'rmse'))
    """
    if classify:
        return "error", "auc", "log_loss"
    kind = get_loss(loss)
    if kind.metric != "mean_squared_error":
        return "deviance", "rmse"
    return ("mae" if kind.name == "absolute" else "rmse"), "r2"


def metric_text(name: str, value: float | None, loss: str | None = None) -> str:
    """Write a figure as people read it: an error in per cent, after its name if the ``loss`` of the model is given.

    >>> metric_text("error", 0.0281), metric_text("deviance", 0.5, "poisson")
    ('2.81 %', 'mean Poisson deviance 0.5')
    """
    text = "-" if value is None else f"{100 * value:.2f} %" if name.endswith("error") else f"{value:.5g}"
    if loss is None:
        return text
    words = METRICS[name][1]
    if name == "deviance":
        words = get_loss(loss).metric.replace("_", " ").replace("poisson", "Poisson")
    return f"{words} {text}"


class LeftOut(NamedTuple):
    """Figures of a model on rows that it has not learned from, and of simple models on the same rows.

    Attributes
    ----------
    where : str
        Which rows these are.
    model, constant, linear : dict
        Metrics of models like this one, of the best constant, and of a linear model, which may be empty. The first is
        the one that people think in, see `leading_metrics`.

    """

    where: str
    model: dict[str, float | int]
    constant: dict[str, float | int]
    linear: dict[str, float | int]

    @classmethod
    def of(cls, answers: Answers, where: str) -> LeftOut | None:
        """Measure answers, beside the best constant; None where they are not finite."""
        names = leading_metrics(answers.loss, answers.labels is not None)
        if answers.labels is None and not np.isfinite(answers.predicted).all():
            return None
        n_classes = None if answers.labels is None else len(answers.labels)
        constant = constant_answers(answers.y, answers.y, n_classes, answers.loss, answers.weights)
        return cls(where, _finite(answers.figures(names)), _finite(constant.figures(names)), {})


def _finite(figures: dict[str, float | None]) -> dict[str, float | int]:
    return {name: value for name, value in figures.items() if value is not None and np.isfinite(value)}


# --- simple models to compare with ---


def constant_answers(
    learned: NDArray, y: NDArray, n_classes: int | None, loss: str = "squared", weights: NDArray | None = None
) -> Answers:
    """Answer all rows with the most frequent class, or the best constant, of the targets ``learned``.

    ``weights`` are those of the rows of both, if any.
    """
    given, weights = weights, np.ones(len(learned)) if weights is None else weights
    if n_classes is not None:
        shares = np.bincount(learned, weights, minlength=n_classes) / weights.sum()
        sure = np.tile(shares, (len(y), 1))
        return Answers(y, sure.argmax(axis=1), sure, sure, loss, weights=given)
    rule = get_loss(loss)
    starts = np.array([rule.start(column, weights) for column in learned.reshape(len(learned), -1).T])
    predicted = np.broadcast_to(rule.mean(starts), (len(y), len(starts))).reshape(y.shape)
    return Answers(y, predicted, loss=loss, weights=given)


def linear_answers(
    X: NDArray,
    learned: NDArray,
    others: NDArray,
    y: NDArray,
    categories: Collection[int],
    n_classes: int | None,
    loss: str = "squared",
) -> Answers | None:
    """Answer the rows ``others`` with a linear model of the rows ``X``; None where there is nothing to learn.

    ``learned`` and ``y`` are the targets of the two, for ``n_classes`` classes their indexes; ``categories`` are the
    features that hold numbers of categories.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if n_classes is not None and len(np.unique(learned)) < 2:
        return None
    is_category = np.isin(np.arange(X.shape[1]), list(categories))
    sizes = np.fmax.reduce(np.abs(X), initial=0.0)
    sizes[is_category | (sizes == 0)] = 1.0
    X, others = X / sizes, others / sizes  # squares of large numbers would overflow
    numbers = make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True, keep_empty_features=True))
    encoder = make_column_transformer((numbers, ~is_category), (OneHotEncoder(handle_unknown="ignore"), is_category))
    model = RidgeCV(np.logspace(-3, 4, 15)) if n_classes is None else LogisticRegression(max_iter=200)
    learner = make_pipeline(encoder, model)
    # The result of few steps is good enough for a comparison.
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        try:
            learner.fit(X, learned)
            if n_classes is None:
                return Answers(y, learner.predict(others), loss=loss)
            sure = np.zeros((len(y), n_classes))
            sure[:, learner.classes_] = learner.predict_proba(others)
            return Answers(y, learner.predict(others), sure, sure, loss)
        except (ValueError, np.linalg.LinAlgError):
            return None
