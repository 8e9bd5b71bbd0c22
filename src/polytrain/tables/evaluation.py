"""Errors of a model on rows, and of simple models to compare with; scikit-learn computes the figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from polytrain.learning.losses import get_loss
from polytrain.models import FittedModel
from polytrain.tables.options import TableError, option
from polytrain.tables.table_file import TableFile

__all__ = [
    "METRICS",
    "Answers",
    "Errors",
    "class_areas",
    "constant_answers",
    "count_errors",
    "linear_answers",
    "measure",
    "metric_names",
]

# Probabilities are counted in this many bins, of which a plot may join some.
N_BINS = 20


@dataclass(frozen=True, eq=False)
class Answers:
    """True and predicted values of some rows.

    ``y`` and ``predicted`` are (N,) or (N, n_targets); for classes, indexes. ``decided`` and ``probabilities``,
    (N, n_classes), are the decision function (of two classes its negative and itself) and what ``predict_proba``
    returns, or None. ``loss`` is the loss of the model, whose deviance is measured.
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
        # All answers come from the scores, which are what takes time.
        scores, n_classes = fitted.scores(X), len(fitted.classes)
        decided = fitted.decision.decide(scores, n_classes)
        predicted = fitted.decision.choose(decided)
        decided = np.column_stack([-decided, decided]) if decided.ndim == 1 else decided
        probabilities = fitted.decision.probabilities(scores, n_classes) if fitted.has_probabilities else None
        return Answers(y, predicted, decided, probabilities, fitted.loss)

    @staticmethod
    def join(parts: list[Answers]) -> Answers:
        """Put blocks of rows together."""
        return parts[0]._changed(lambda name: np.concatenate([getattr(part, name) for part in parts]))

    def only(self, rows: NDArray) -> Answers:
        """Take some of the rows, given as a mask or as indexes."""
        return self._changed(lambda name: getattr(self, name)[rows])

    def _changed(self, change: Callable[[str], Any]) -> Answers:
        names = ("y", "predicted", "decided", "probabilities")
        return replace(self, **{name: change(name) for name in names if getattr(self, name) is not None})

    @property
    def ranking(self) -> NDArray | None:
        """Scores that rank rows for every class, (N, n_classes): probabilities, or else the decision function."""
        return self.decided if self.probabilities is None else self.probabilities


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
                precision = metrics.average_precision_score(truth, values)
                areas[k] = float(metrics.roc_auc_score(truth, values)), float(precision)
    return areas


def _log_loss(answers: Answers) -> float | None:
    sure = answers.probabilities
    return None if sure is None else float(metrics.log_loss(answers.y, sure, labels=np.arange(sure.shape[1])))


def _auc(answers: Answers) -> float | None:
    """Mean area under the ROC curve of each class against the rest; None where a class has no row."""
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
    """Mean deviance of the model's loss: Poisson, gamma, pinball, or else the mean squared error."""
    loss = get_loss(answers.loss)
    try:
        with np.errstate(over="ignore"):
            deviance = float(getattr(metrics, loss.metric)(answers.y, answers.predicted, **loss.metric_options))
    except ValueError:  # a count below 0, or an amount of 0
        return None
    return deviance if np.isfinite(deviance) else None


def _r2(answers: Answers) -> float | None:
    top = float(np.abs(answers.y).max()) or 1.0
    if (np.ptp(answers.y, axis=0) == 0).all():
        return None
    return float(metrics.r2_score(answers.y / top, answers.predicted / top))


def _balanced_error(answers: Answers) -> float:
    y = answers.y
    return 1.0 - float(metrics.recall_score(y, answers.predicted, labels=np.unique(y), average="macro"))


#: Name -> (task, words for people, error of answers). Less is better, except for auc and r2.
METRICS: dict[str, tuple[str, str, Callable[[Answers], float | None]]] = {
    "error": ("classification", "error", lambda a: float(metrics.zero_one_loss(a.y, a.predicted))),
    "balanced_error": ("classification", "error, the mean over classes", _balanced_error),
    "log_loss": ("classification", "log loss", _log_loss),
    "auc": ("classification", "area under the ROC curve", _auc),
    "rmse": ("regression", "root mean squared error", _scaled(metrics.root_mean_squared_error)),
    "mae": ("regression", "mean absolute error", _scaled(metrics.mean_absolute_error)),
    "deviance": ("regression", "mean deviance", _deviance),
    "r2": ("regression", "R2", _r2),
}


def metric_names(task: str) -> list[str]:
    """Return the names of the metrics of a task, the default first."""
    return [name for name, (kind, _, _) in METRICS.items() if kind == task]


def measure(name: str, answers: Answers) -> float | None:
    """Compute a metric; None where the rows, or the model, have none.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.tables.evaluation import Answers, measure
    >>> measure("error", Answers(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])))
    0.25
    """
    if name not in METRICS:
        raise TableError(f"there is no metric {name!r}. Name one of {', '.join(METRICS)}.")
    return METRICS[name][2](answers)


# --- errors of blocks of rows ---


class Errors:
    """Answers of a fitted model to rows that come block by block; add all rows before asking for figures.

    ``labels`` are the names of the classes, None for regression.
    """

    def __init__(self, fitted: FittedModel) -> None:
        self.labels = None if fitted.classes is None else [str(label) for label in fitted.classes]
        self.has_probabilities = fitted.has_probabilities
        self._fitted = fitted
        self._parts: list[Answers] = []

    def add(self, X: NDArray, y: NDArray) -> None:
        """Add features of rows, with their true values or indexes of classes."""
        self._parts.append(Answers.of(self._fitted, X, y))

    @cached_property
    def answers(self) -> Answers:
        """The answers to all rows."""
        return Answers.join(self._parts)

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return sum(len(part.y) for part in self._parts)

    @cached_property
    def confusion(self) -> NDArray:
        """Number of rows by true class (first axis) and predicted class (second axis)."""
        labels = np.arange(len(self.labels or ()))
        return metrics.confusion_matrix(self.answers.y, self.answers.predicted, labels=labels)

    @cached_property
    def bins(self) -> NDArray:
        """Rows, sum of probabilities, and rows that are right, by bins of the predicted class's probability: (3, bins).

        All 0 where there are no probabilities, and no margin of two classes either.
        """
        answers = self.answers
        if answers.probabilities is not None:
            sure = answers.probabilities[np.arange(self.n), answers.predicted]
        elif answers.decided is not None and answers.decided.shape[1] == 2:
            sure = np.minimum((1.0 + np.abs(answers.decided[:, 1])) / 2, 1.0)
        else:
            return np.zeros((3, N_BINS))
        place = np.minimum((sure * N_BINS).astype(np.intp), N_BINS - 1)
        right = (answers.predicted == answers.y).astype(np.float64)
        return np.stack([np.bincount(place, weights, minlength=N_BINS) for weights in (None, sure, right)])

    def summary(self) -> dict[str, Any]:
        """Return the figures by name; None for those that these rows do not have."""
        names = metric_names("regression" if self.labels is None else "classification")
        figures: dict[str, Any] = {"n": self.n} | {name: measure(name, self.answers) for name in names}
        if self.labels is None:
            return figures | {"largest_error": float(np.abs(self.answers.predicted - self.answers.y).max())}
        figures |= {"accuracy": 1.0 - figures["error"], "balanced_accuracy": 1.0 - figures["balanced_error"]}
        if not self.has_probabilities:
            del figures["log_loss"]
        return figures | {"classes": self.labels, "confusion": self.confusion.tolist()}


def count_errors(
    model: Any,
    table: TableFile,
    *,
    visit: Callable[[NDArray, NDArray], None] | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> Errors:
    """Compare the predictions of a `TableModel` with the targets in a table.

    ``visit`` is called with features and targets of every block, ``say`` with notes on rows and labels that are not
    taken as they are; ``options`` are those of `TableModel.blocks`.
    """
    errors, n_rows, n_dotted = Errors(model.fitted), 0, 0
    talk = say or (lambda text: None)
    for block in model.blocks(table, with_target=True, say=say, **options):
        n_rows += len(block.frame)
        n_dotted += block.n_dotted
        if len(block.X):
            errors.add(block.X, block.y)
            if visit is not None:
                visit(block.X, block.y)
    if not errors.n:
        raise TableError(f"{table.label} holds no row with a target. Name the right column with {option('target')}.")
    if n_dotted:
        talk(f"note: {n_dotted} labels end with a dot that the model's labels do not have; they are taken without it")
    if n_rows > errors.n:
        talk(f"note: {n_rows - errors.n} rows without target are left out")
    return errors


# --- simple models to compare with ---


def constant_answers(learned: NDArray, y: NDArray, n_classes: int | None, loss: str = "squared") -> Answers:
    """Answer all rows with the most frequent class, or the best constant, of the targets ``learned``."""
    if n_classes is not None:
        shares = np.bincount(learned, minlength=n_classes) / len(learned)
        sure = np.tile(shares, (len(y), 1))
        return Answers(y, sure.argmax(axis=1), sure, sure, loss)
    rule, weights = get_loss(loss), np.ones(len(learned))
    starts = np.array([rule.start(column, weights) for column in learned.reshape(len(learned), -1).T])
    return Answers(y, np.broadcast_to(rule.mean(starts), (len(y), len(starts))).reshape(y.shape), loss=loss)


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
    from sklearn.compose import ColumnTransformer
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
    encoder = ColumnTransformer(
        [("numbers", numbers, ~is_category), ("categories", OneHotEncoder(handle_unknown="ignore"), is_category)]
    )
    model = RidgeCV(np.logspace(-3, 4, 15)) if n_classes is None else LogisticRegression(max_iter=200)
    learner = make_pipeline(encoder, model)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the result of few steps is good enough for a comparison
        try:
            learner.fit(X, learned)
            if n_classes is None:
                return Answers(y, learner.predict(others), loss=loss)
            sure = np.zeros((len(y), n_classes))
            sure[:, learner.classes_] = learner.predict_proba(others)
            return Answers(y, learner.predict(others), sure, sure, loss)
        except (ValueError, np.linalg.LinAlgError):
            return None
