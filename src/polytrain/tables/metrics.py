"""Errors by name, as scikit-learn computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from polytrain.tables.errors import TableError

__all__ = ["METRICS", "Answers", "class_areas", "measure", "metric_names"]


@dataclass(frozen=True, eq=False)
class Answers:
    """True and predicted values of some rows.

    Attributes
    ----------
    y : ndarray of shape (N,) or (N, n_targets)
        True values; of classes their indexes.
    predicted : ndarray of the same shape
        Predicted ones.
    decided : ndarray of shape (N, n_classes), or None
        Of classes, the decision function; of two classes its negative and itself.
    probabilities : ndarray of shape (N, n_classes), or None
        Of classes, where the model has probabilities: what ``predict_proba`` returns.
    loss : str
        What the model was learned with, which says what its deviance is.
    """

    y: NDArray
    predicted: NDArray
    decided: NDArray | None = None
    probabilities: NDArray | None = None
    loss: str = "squared"

    @staticmethod
    def of(fitted: Any, X: NDArray, y: NDArray) -> Answers:
        """Ask a fitted model about features; ``y`` are numbers or indexes of classes."""
        if fitted.classes is None:
            return Answers(y, fitted.predict(X), loss=fitted.loss)
        # All answers from the scores, which are what takes time.
        values, n_classes = fitted.scores(X), len(fitted.classes)
        decided = fitted.decision.decide(values, n_classes)
        guess = fitted.decision.choose(decided)
        decided = np.column_stack([-decided, decided]) if decided.ndim == 1 else decided
        sure = fitted.decision.probabilities(values, n_classes) if fitted.has_probabilities else None
        return Answers(y, guess, decided, sure, fitted.loss)

    @staticmethod
    def join(parts: list[Answers]) -> Answers:
        """Put blocks of rows together."""

        def whole(name: str) -> Any:
            return None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])

        return Answers(whole("y"), whole("predicted"), whole("decided"), whole("probabilities"), parts[0].loss)

    def only(self, rows: NDArray) -> Answers:
        """Take some of the rows, given as a mask."""
        decided, sure = (part if part is None else part[rows] for part in (self.decided, self.probabilities))
        return Answers(self.y[rows], self.predicted[rows], decided, sure, self.loss)

    @property
    def ranking(self) -> NDArray | None:
        """What ranks rows for every class, (N, n_classes): probabilities, or else the decision function."""
        return self.decided if self.probabilities is None else self.probabilities


def class_areas(answers: Answers) -> dict[int, tuple[float, float]]:
    """Area under the ROC curve and average precision of each class against the rest, if it has rows, but not all.

    Of two classes, those of the second one.
    """
    ranking, found = answers.ranking, {}
    if ranking is not None:
        for k in range(1 if ranking.shape[1] == 2 else 0, ranking.shape[1]):
            truth = answers.y == k
            if 0 < truth.sum() < len(truth):
                areas = (
                    metrics.roc_auc_score(truth, ranking[:, k]),
                    metrics.average_precision_score(truth, ranking[:, k]),
                )
                found[k] = float(areas[0]), float(areas[1])
    return found


def _log_loss(answers: Answers) -> float | None:
    sure = answers.probabilities
    return None if sure is None else float(metrics.log_loss(answers.y, sure, labels=np.arange(sure.shape[1])))


def _auc(answers: Answers) -> float | None:
    """Area under the curve, of several classes the mean over each against the rest; None where a class has no row."""
    if answers.ranking is None or len(np.unique(answers.y)) < answers.ranking.shape[1]:
        return None
    return float(np.mean([auc for auc, _ in class_areas(answers).values()]))


def _scaled(function: Callable[..., Any]) -> Callable[[Answers], float]:
    """Compute an error of numbers on numbers of size one: squares of large ones would overflow."""

    def error(answers: Answers) -> float:
        top = float(max(np.abs(answers.y).max(), np.abs(answers.predicted).max())) or 1.0
        return top * float(function(answers.y / top, answers.predicted / top))

    return error


def _deviance(answers: Answers) -> float | None:
    """Mean deviance of what the model was learned with: Poisson, gamma, or else the mean squared error."""
    name = answers.loss.partition("(")[0]
    if name == "quantile":
        level = float(answers.loss.partition("(")[2].partition(",")[0].rstrip(")"))
        return float(metrics.mean_pinball_loss(answers.y, answers.predicted, alpha=level))
    function = {"poisson": metrics.mean_poisson_deviance, "gamma": metrics.mean_gamma_deviance}.get(name)
    try:
        with np.errstate(over="ignore"):
            found = float((function or metrics.mean_squared_error)(answers.y, answers.predicted))
    except ValueError:  # a count below 0, or an amount of 0
        return None
    return found if np.isfinite(found) else None


def _r2(answers: Answers) -> float | None:
    top = float(np.abs(answers.y).max()) or 1.0
    if (np.ptp(answers.y, axis=0) == 0).all():
        return None
    return float(metrics.r2_score(answers.y / top, answers.predicted / top))


#: Name -> (task, what it is called for people, error of answers). Less is better, but of auc and r2.
METRICS: dict[str, tuple[str, str, Callable[[Answers], float | None]]] = {
    "error": ("classification", "error", lambda a: float(metrics.zero_one_loss(a.y, a.predicted))),
    "balanced_error": (
        "classification",
        "error, the mean over classes",
        lambda a: 1.0 - float(metrics.recall_score(a.y, a.predicted, labels=np.unique(a.y), average="macro")),
    ),
    "log_loss": ("classification", "log loss", _log_loss),
    "auc": ("classification", "area under the ROC curve", _auc),
    "rmse": ("regression", "root mean squared error", _scaled(metrics.root_mean_squared_error)),
    "mae": ("regression", "mean absolute error", _scaled(metrics.mean_absolute_error)),
    "deviance": ("regression", "mean deviance", _deviance),
    "r2": ("regression", "R2", _r2),
}


def metric_names(task: str) -> list[str]:
    """Names of the errors of a task, the usual one first.

    Examples
    --------
    >>> from polytrain.tables.metrics import metric_names
    >>> metric_names("regression")
    ['rmse', 'mae', 'deviance', 'r2']
    """
    return [name for name, (kind, _, _) in METRICS.items() if kind == task]


def measure(name: str, answers: Answers) -> float | None:
    """Compute an error; None where the rows, or the model, have none.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.tables.metrics import Answers, measure
    >>> measure("error", Answers(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])))
    0.25
    """
    if name not in METRICS:
        raise TableError(f"there is no metric {name!r}. Name one of {', '.join(METRICS)}.")
    return METRICS[name][2](answers)
