"""Errors of a model on rows, and of simple models to compare with; scikit-learn computes the figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from polytrain.learning.losses import Loss, get_loss
from polytrain.rows.checking import to_rates, with_exposure

__all__ = [
    *("METRICS", "Answers", "LeftOut", "Metric", "RowSample", "categories", "class_areas", "constant_answers"),
    *("leading_metrics", "linear_answers", "loss_metrics", "metric_text", "row_costs"),
]

# Penalties of Poisson and gamma regressions to choose from.
_ALPHAS = (1e-6, 1e-4, 1e-2, 1.0)
# Probabilities are counted in this many bins, of which a plot may join some.
N_BINS = 20


@dataclass(frozen=True, eq=False)
class Answers:
    """True and predicted values of some rows.

    ``y`` and ``predicted`` are (N,) or (N, n_targets); for classes, indexes. ``decided`` and ``probabilities``,
    (N, n_classes), are the decision function (of two classes its negative and itself) and what ``predict_proba``
    returns, or None. ``loss`` is the loss of the model, whose deviance is measured, and ``labels`` are the names of the
    classes, None for regression. ``weights`` of the rows, (N,), are positive. The ``offset``, (N,), is part of the
    predictions.
    """

    y: NDArray
    predicted: NDArray
    decided: NDArray | None = None
    probabilities: NDArray | None = None
    loss: str = "squared"
    labels: list[str] | None = None
    weights: NDArray | None = None
    offset: NDArray | None = None

    @staticmethod
    def of(
        fitted: Any, X: NDArray, y: NDArray, *, offset: NDArray | None = None, weights: NDArray | None = None
    ) -> Answers:
        """Answers of a fitted model for some features; ``y`` are numbers or indexes of classes."""
        if fitted.classes is None:
            predicted = with_exposure(get_loss(fitted.loss), fitted.predict(X), offset)
            return Answers(y, predicted, loss=fitted.loss, weights=weights, offset=offset)
        # All answers are computed from the scores, which take the time.
        return Answers.of_scores(fitted, fitted.scores(X), y, weights)

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
        """Join blocks of rows."""
        return parts[0]._changed(lambda name: np.concatenate([getattr(part, name) for part in parts]))

    def only(self, rows: NDArray | slice) -> Answers:
        """Take some of the rows, given as a mask, as indexes or as a slice."""
        return self._changed(lambda name: getattr(self, name)[rows])

    def _changed(self, change: Callable[[str], Any]) -> Answers:
        names = ("y", "predicted", "decided", "probabilities", "weights", "offset")
        return replace(self, **{name: change(name) for name in names if getattr(self, name) is not None})

    @property
    def rates(self) -> tuple[NDArray, NDArray]:
        """Targets and weights that a simple model learns from without knowing the offset."""
        weights = np.ones(self.n) if self.weights is None else self.weights
        return (self.y, weights) if self.offset is None else to_rates(get_loss(self.loss), self.y, weights, self.offset)

    def by(self, rates: NDArray) -> Answers:
        """Replace the predictions by those of a simple model that does not know the offset."""
        predicted = with_exposure(get_loss(self.loss), rates.reshape(self.y.shape), self.offset)
        return replace(self, predicted=predicted, decided=None, probabilities=None)

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

    def figures(self, names: Iterable[str] | None = None) -> dict[str, float | None]:
        """Return some metrics by name, or all; None for those that these rows do not have."""
        known = loss_metrics(self.loss, self.labels is not None)
        return {name: known[name].measure(self) for name in names or known}

    def summary(self) -> dict[str, Any]:
        """Return all figures by name. Rows of the confusion matrix are counted, whatever they weigh."""
        figures: dict[str, Any] = {"n": self.n, **self.figures()}
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

    @property
    def places(self) -> slice:
        """Which of the rows of the stream are in the sample."""
        return slice(None, None, self.step)

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
    ranking, areas, weights = answers.ranking, {}, {"sample_weight": answers.weights}
    if ranking is not None:
        for k in range(1 if ranking.shape[1] == 2 else 0, ranking.shape[1]):
            truth, values = answers.y == k, ranking[:, k]
            if 0 < truth.sum() < len(truth):
                precision = metrics.average_precision_score(truth, values, **weights)
                areas[k] = float(metrics.roc_auc_score(truth, values, **weights)), float(precision)
    return areas


def _log_loss(answers: Answers) -> float | None:
    sure, weights = answers.probabilities, {"sample_weight": answers.weights}
    return None if sure is None else float(metrics.log_loss(answers.y, sure, labels=range(sure.shape[1]), **weights))


def _auc(answers: Answers) -> float | None:
    """Mean area under the ROC curve of each class against the rest; None where a class has no row."""
    if answers.ranking is None or len(np.unique(answers.y)) < answers.ranking.shape[1]:
        return None
    return float(np.mean([auc for auc, _ in class_areas(answers).values()]))


def _balanced_error(answers: Answers) -> float:
    y, weights = answers.y, {"sample_weight": answers.weights}
    return 1.0 - float(metrics.recall_score(y, answers.predicted, labels=np.unique(y), average="macro", **weights))


def _scaled(error: Callable[..., Any]) -> Callable[[Answers], float]:
    """Return an error of numbers that is computed on numbers of size one: squares of large ones would overflow."""

    def measure(answers: Answers) -> float:
        top = float(max(np.abs(answers.y).max(), np.abs(answers.predicted).max())) or 1.0
        return top * float(error(answers.y / top, answers.predicted / top, sample_weight=answers.weights))

    return measure


def _r2(answers: Answers) -> float | None:
    top = float(np.abs(answers.y).max()) or 1.0
    if (np.ptp(answers.y, axis=0) == 0).all():
        return None
    return float(metrics.r2_score(answers.y / top, answers.predicted / top, sample_weight=answers.weights))


def _deviance(answers: Answers) -> float | None:
    """Mean deviance of the model's loss: Poisson, gamma, pinball, or else the mean squared error."""
    loss = get_loss(answers.loss)
    measure = partial(getattr(metrics, loss.metric), sample_weight=answers.weights, **loss.metric_options)
    try:
        with np.errstate(over="ignore"):
            deviance = float(np.mean([measure(one.y, one.predicted) for one in _outputs(answers)]))
    except ValueError:  # a count below 0, or an amount of 0
        return None
    return deviance if np.isfinite(deviance) else None


def _d2(answers: Answers) -> float | None:
    """Explained fraction of the deviance of the best constant, or constant rate, of these rows."""
    explained = []
    for one in _outputs(answers):
        if (own := _deviance(one)) is None or not (best := _deviance(constant_answers(one, one))):
            return None
        explained.append(1.0 - own / best)
    return float(np.mean(explained))


def _outputs(answers: Answers) -> list[Answers]:
    """Return the answers of each output."""
    if answers.y.ndim == 1:
        return [answers]
    pairs = zip(answers.y.T, answers.predicted.T, strict=True)
    return [replace(answers, y=y, predicted=predicted) for y, predicted in pairs]


def row_costs(answers: Answers) -> NDArray:
    """Return the costs of rows, (N,), whose mean is what `loss_metrics` has first: the root of it, if that is rmse."""
    loss, y, predicted = get_loss(answers.loss), answers.y, answers.predicted
    if answers.labels is not None:
        return (y != predicted).astype(np.float64)
    if loss.link == "log":
        return 2.0 * loss.evaluate(y, np.log(predicted))[0]
    each: NDArray = getattr(metrics, loss.metric)(
        y[None], predicted[None], multioutput="raw_values", **loss.metric_options
    )
    return each


class Metric(NamedTuple):
    """A metric: its name in words, and the function that computes it, or returns None where it is undefined."""

    words: str
    measure: Callable[[Answers], float | None]


_CLASS_METRICS = {
    "error": Metric("error", lambda a: float(metrics.zero_one_loss(a.y, a.predicted, sample_weight=a.weights))),
    "balanced_error": Metric("error, the mean over classes", _balanced_error),
    "log_loss": Metric("log loss", _log_loss),
    "auc": Metric("area under the ROC curve", _auc),
}
_NUMBER_METRICS = {
    "rmse": Metric("root mean squared error", _scaled(metrics.root_mean_squared_error)),
    "mae": Metric("mean absolute error", _scaled(metrics.mean_absolute_error)),
    "deviance": Metric("mean deviance", _deviance),
    "r2": Metric("R2", _r2),
}
#: Names of all metrics. Lower is better, except for auc, d2 and r2.
METRICS = (*_CLASS_METRICS, *_NUMBER_METRICS, "d2")


def loss_metrics(loss: str, is_classification: bool = False) -> dict[str, Metric]:
    """Return the metrics of a model with this loss by name, the main one first.

    >>> {name: metric.words for name, metric in loss_metrics("poisson").items()}  # doctest: +NORMALIZE_WHITESPACE
    {'deviance': 'mean Poisson deviance', 'd2': 'D2, the explained part of the deviance',
     'rmse': 'root mean squared error', 'mae': 'mean absolute error', 'r2': 'R2'}
    >>> [*loss_metrics("squared")], [*loss_metrics("squared", is_classification=True)]
    (['rmse', 'mae', 'deviance', 'r2'], ['error', 'balanced_error', 'log_loss', 'auc'])
    """
    if is_classification:
        return _CLASS_METRICS
    if (metric := get_loss(loss).metric) == Loss.metric:  # the mean squared error
        return _NUMBER_METRICS
    words = metric.replace("_", " ").replace("poisson", "Poisson")
    own = {"deviance": Metric(words, _deviance), "d2": Metric("D2, the explained part of the deviance", _d2)}
    return own | {name: metric for name, metric in _NUMBER_METRICS.items() if name not in own}


def leading_metrics(loss: str, classify: bool) -> tuple[str, ...]:
    """Return the leading metrics of models with this loss, the usual one first.

    >>> leading_metrics("squared", False), leading_metrics("absolute", False), leading_metrics("poisson", False)
    (('rmse', 'r2'), ('mae', 'r2'), ('deviance', 'd2'))
    """
    if classify:
        return "error", "auc", "log_loss"
    if "d2" in loss_metrics(loss):
        return "deviance", "d2"
    return "mae" if get_loss(loss).name == "absolute" else "rmse", "r2"


def metric_text(name: str, value: float | None, loss: str | None = None) -> str:
    """Format a metric: an error in per cent, after its name if the ``loss`` of the model is given.

    >>> metric_text("error", 0.0281), metric_text("deviance", 0.5, "poisson")
    ('2.81 %', 'mean Poisson deviance 0.5')
    """
    text = "-" if value is None else f"{100 * value:.2f} %" if name.endswith("error") else f"{value:.5g}"
    return text if loss is None else f"{(_CLASS_METRICS | loss_metrics(loss))[name].words} {text}"


class LeftOut(NamedTuple):
    """Metrics of a model on left-out rows, and of simple models on the same rows.

    Attributes
    ----------
    where : str
        Description of the rows.
    model, constant, linear : dict
        Metrics of models like this one, of the best constant, and of a linear model, which may be empty. The first is
        the usual one, see `leading_metrics`.

    """

    where: str
    model: dict[str, float | int]
    constant: dict[str, float | int]
    linear: dict[str, float | int]

    @classmethod
    def of(cls, answers: Answers, where: str) -> LeftOut | None:
        """Measure answers and the best constant; None where they are not finite, or rows have several labels."""
        names = leading_metrics(answers.loss, answers.labels is not None)
        if answers.labels is not None and answers.predicted.ndim == 2:
            return None
        if answers.labels is None and not np.isfinite(answers.predicted).all():
            return None
        constant = constant_answers(answers, answers)
        return cls(where, _finite(answers.figures(names)), _finite(constant.figures(names)), {})


def _finite(figures: dict[str, float | None]) -> dict[str, float | int]:
    return {name: value for name, value in figures.items() if value is not None and np.isfinite(value)}


# --- simple models to compare with ---


def constant_answers(learned: Answers, asked: Answers) -> Answers:
    """Answer rows with the most frequent class, or the best constant, of the targets of ``learned``."""
    y, weights = learned.rates
    if asked.labels is not None:
        shares = np.bincount(y, weights, minlength=len(asked.labels)) / weights.sum()
        sure = np.tile(shares, (asked.n, 1))
        return replace(asked, predicted=sure.argmax(axis=1), decided=sure, probabilities=sure)
    rule = get_loss(asked.loss)
    starts = np.array([rule.start(column, weights) for column in y.reshape(len(y), -1).T])
    return asked.by(np.tile(rule.mean(starts), (asked.n, 1)))


def linear_answers(
    X: NDArray, learned: Answers, others: NDArray, asked: Answers, categories: Sequence[int]
) -> Answers | None:
    """Answer the rows ``others`` with a linear model of the rows ``X``; None where there is nothing to learn.

    It is a logistic, Poisson, gamma or ridge regression. Of the two answers, the targets are used, with their weights
    and offsets; for classes, their indexes. ``categories`` are the features that hold numbers of categories.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    y, weights = learned.rates
    classify, loss = asked.labels is not None, get_loss(asked.loss)
    if classify and len(np.unique(y)) < 2:
        return None
    is_category = np.isin(np.arange(X.shape[1]), categories)
    sizes = np.fmax.reduce(np.abs(X), initial=0.0)
    sizes[is_category | (sizes == 0)] = 1.0
    X, others = X / sizes, others / sizes  # squares of large numbers would overflow
    numbers = make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True, keep_empty_features=True))
    encoder = make_column_transformer((numbers, ~is_category), (OneHotEncoder(handle_unknown="ignore"), is_category))
    # The result of few steps is good enough for a comparison.
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        try:
            X, others = encoder.fit_transform(X), encoder.transform(others)
            if classify:
                model = LogisticRegression(max_iter=200).fit(X, y, weights)
                sure = np.zeros((asked.n, len(asked.labels or ())))
                sure[:, model.classes_] = model.predict_proba(others)
                return replace(asked, predicted=model.predict(others), decided=sure, probabilities=sure)
            model = _general_linear(X, y, weights, loss) if loss.link == "log" else RidgeCV(np.logspace(-3, 4, 15))
            return asked.by(model.fit(X, y, weights).predict(others))
        except (ValueError, np.linalg.LinAlgError):
            return None


def categories(fitted: Any) -> list[int]:
    """Return which features of a fitted model hold numbers of categories."""
    return [k for k, feature_map in enumerate(fitted.maps) if feature_map.basis == "category"]


def _general_linear(X: Any, y: NDArray, weights: NDArray, loss: Loss) -> Any:
    """Return an unfitted Poisson or gamma regression with the alpha that is best in three folds of the rows."""
    from sklearn.linear_model import GammaRegressor, PoissonRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    kind = PoissonRegressor if loss.name == "poisson" else GammaRegressor
    models = [kind(alpha=alpha, max_iter=200) for alpha in _ALPHAS]
    folds, measure = KFold(3, shuffle=True, random_state=0), getattr(metrics, loss.metric)
    guesses = [cross_val_predict(model, X, y, cv=folds, params={"sample_weight": weights}) for model in models]
    return models[int(np.argmin([measure(y, guess, sample_weight=weights) for guess in guesses]))]
