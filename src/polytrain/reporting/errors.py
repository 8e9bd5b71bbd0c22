"""The errors of a model beside those of simple models, and whether its probabilities and intervals hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import precision_recall_curve, roc_curve

from polytrain.columns import DateColumn
from polytrain.explain.view import ModelView
from polytrain.models import FittedModel
from polytrain.plotting import COLOURS, MARKERS, PAPER, draw_lines, shorten
from polytrain.reporting.pictures import number, percent, picture, table
from polytrain.tables.evaluation import (
    METRICS,
    Answers,
    Errors,
    class_areas,
    constant_answers,
    linear_answers,
)

__all__ = ["Comparison", "ScoredRows", "bootstrap_rmse", "calibration_section", "compare", "error_section", "wilson"]

_N_BOOTSTRAP = 400
# Points of a calibration curve with fewer rows are noise.
_LEAST_ROWS = 10
_MOST_POINTS, _CURVE_POINTS, _N_WORST = 1000, 80, 8
_COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Rows whose intervals are compared with their targets.
_MOST_INTERVALS = 2000
# Rows among which a column is shuffled: at least, at most, and multiplications that a column may cost.
_LEAST_SHUFFLED, _MOST_SHUFFLED, _SHUFFLING_COST = 2000, 5000, 3e9


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with their targets and predictions.

    Attributes
    ----------
    view : ModelView
        The model; its rows are features.
    errors : Errors
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
    errors: Errors
    X: NDArray
    places: NDArray
    target: str | None = None
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def fitted(self) -> FittedModel:
        """The fitted model."""
        return self.view.fitted

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
        shown = range(len(self.view.groups)) if columns is None else columns
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


class Comparison(NamedTuple):
    """The error of a model: share of wrong labels, or root mean squared error, with its 95 % interval."""

    name: str
    error: float
    low: float
    high: float
    how: str

    def texts(self, is_share: bool) -> tuple[str, str]:
        """The error and its interval."""
        if is_share:
            return percent(self.error), f"{100 * self.low:.2f} to {100 * self.high:.2f} %"
        return number(self.error), f"{number(self.low)} to {number(self.high)}"


def wilson(n_wrong: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    interval = binomtest(n_wrong, n).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_rmse(residuals: NDArray) -> tuple[float, float]:
    """Return a 95 % interval of the root mean squared error, from rows drawn with replacement."""
    size = float(np.abs(residuals).max())
    if size == 0:
        return 0.0, 0.0
    squares = np.square(residuals / size)  # squares of large numbers might overflow
    rng = np.random.default_rng(0)
    drawn = [squares[rng.integers(len(squares), size=len(squares))].mean() for _ in range(_N_BOOTSTRAP)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return size * math.sqrt(low), size * math.sqrt(high)


def compare(rows: ScoredRows, train: tuple[NDArray, NDArray] | None = None) -> list[Comparison]:
    """Return the errors of the model, of a linear model of the training rows, if given, and of the best constant."""
    y, labels, errors = rows.answers.y, rows.labels, rows.errors
    n_classes = None if labels is None else len(labels)
    if errors.labels is not None:
        n_wrong = errors.n - int(np.trace(errors.confusion))
        own = n_wrong / errors.n, *wilson(n_wrong, errors.n)
    else:
        own = errors.summary()["rmse"], *bootstrap_rmse(rows.answers.predicted - y)
    found = [Comparison("this model", *own, f"on {number(errors.n)} rows")]

    def add(name: str, predicted: NDArray, how: str) -> None:
        if labels is None:
            error, interval = float(np.sqrt(np.mean(np.square(predicted - y)))), bootstrap_rmse(predicted - y)
        else:
            n_wrong = int((predicted != y).sum())
            error, interval = n_wrong / len(y), wilson(n_wrong, len(y))
        found.append(Comparison(name, error, *interval, how))

    if train is not None:
        categories = [group.start for k, group in enumerate(rows.view.groups) if rows.view.levels(k) is not None]
        linear = linear_answers(*train, rows.X, y, categories, n_classes)
        name = "ridge regression" if labels is None else "logistic regression"
        if linear is not None:
            add(f"linear model ({name})", linear.predicted, f"fitted on {len(train[1])} training rows")
    constant = constant_answers(y, y, n_classes).predicted
    add("always the mean" if labels is None else f"always {labels[constant[0]]}", constant, "the best constant here")
    return found


def error_section(rows: ScoredRows, found: Sequence[Comparison], columns: Sequence[int]) -> dict[str, Any]:
    """Errors beside those of simple models; then curves and a confusion matrix, or residuals and the worst rows."""
    is_classifier = rows.labels is not None
    what = "share of wrong labels" if is_classifier else "root mean squared error"
    lines = [(one.name, *one.texts(is_classifier), one.how) for one in found]

    def draw(ax: Any) -> None:
        for k, one in enumerate(found):
            ends = [[one.error - one.low], [one.high - one.error]]
            ax.errorbar(one.error, k, xerr=np.maximum(ends, 0.0), fmt=MARKERS[k], color=COLOURS[k], capsize=4)
            name = shorten([one.name], 40)[0]
            ax.annotate(f"{name}: {lines[k][1]}", (0, k), xytext=(4, 8), xycoords=("axes fraction", "data"),
                        textcoords="offset points", fontsize=11)  # fmt: skip
        ax.set_xlim(0, 1.05 * max(one.high for one in found) or 1.0)
        ax.set_ylim(len(found) - 0.6, -0.8)
        ax.set_yticks([])
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_xlabel(what)

    first = picture(
        "Error", "; ".join(f"{name}: {error}, interval {interval}, {how}" for name, error, interval, how in lines),
        draw, height=1.0 + 0.6 * len(found), about=what, note=_in_folds(rows.training),
        table=table("Errors with 95 % intervals", ("model", what, "interval", ""), lines, (1, 2)),
    )  # fmt: skip
    if rows.errors.labels is None:
        return {"pictures": [first, *_residuals(rows)], "worst": _worst(rows, columns)}
    return {"pictures": [first, *_curves(rows)], "confusion": _confusion(rows.errors, rows.errors.labels)}


def _in_folds(training: dict[str, Any]) -> str:
    """Errors of the model and of simple models in the folds of the fit, in words; nothing if they are not known."""
    for metric, (_, words, _) in METRICS.items():
        errors = [training.get(f"cv_{name}{metric}") for name in ("", "linear_", "constant_")]
        if all(isinstance(error, float) for error in errors):
            show: Callable[[Any], str] = percent if metric.endswith("error") else number
            own, linear, constant = map(show, errors)
            return (
                f"In {training.get('cv_folds')} folds of the training rows: {words} {own} for models fitted like this "
                f"one, {linear} for a linear model, {constant} for a constant."
            )
    return ""


def _thin(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Some points of a long curve, evenly along it."""
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    kept = np.unique(np.searchsorted(length, np.linspace(0.0, length[-1], _CURVE_POINTS)).clip(0, len(x) - 1))
    return x[kept], y[kept]


def _draw_curves(
    curves: dict[int, tuple[Any, Any]], names: Sequence[str], axes: tuple[str, str], reference: Any, low: float = 0.0
) -> Callable[[Any], None]:
    """Return a function that draws curves between ``low`` and 1 with a dashed line, in the colours of the classes."""

    def draw(ax: Any) -> None:
        draw_lines(ax, list(curves.values()), names, indices=list(curves))
        ax.plot(*reference, "--", color=PAPER["muted"], linewidth=1)
        ax.set(xlim=(low - 0.02, 1.02), ylim=(low - 0.02, 1.03), xlabel=axes[0], ylabel=axes[1])

    return draw


def _curves(rows: ScoredRows) -> list[dict[str, Any]]:
    """ROC and precision-recall curves, of the second of two classes, or of each class against the others."""
    labels, ranking = rows.labels or [], np.asarray(rows.answers.ranking)
    areas = class_areas(rows.answers)
    if not areas:
        return []
    several = len(labels) > 2
    roc, recall, lines = {}, {}, []
    for k, (area, mean) in areas.items():
        is_class = rows.answers.y == k
        false, true, _ = roc_curve(is_class, ranking[:, k])
        precision, found, _ = precision_recall_curve(is_class, ranking[:, k])
        roc[k if several else 0], recall[k if several else 0] = _thin(false, true), _thin(found, precision)
        lines.append((labels[k], f"{area:.3f}", f"{mean:.3f}", percent(float(is_class.mean()))))
    about = "mean over the classes" if several else f"for {lines[0][0]}"
    share = float((rows.answers.y == 1).mean())
    head = ("class", "area under ROC", "average precision", "share of the rows")
    more: dict[str, Any] = {"table": table("Each class against all others", head, lines)} if several else {}
    means = np.mean(list(areas.values()), axis=0)
    first = picture(
        f"ROC: area {means[0]:.3f}", "Area under the curve: " + "; ".join(f"{line[0]} {line[1]}" for line in lines),
        _draw_curves(roc, [f"{name[:16]}: {area}" for name, area, *_ in lines],
                     ("false positive rate", "true positive rate"), ([0, 1], [0, 1])),
        about=about, **more,
    )  # fmt: skip
    second = picture(
        f"Precision-recall: average {means[1]:.3f}",
        "Average precision: " + "; ".join(f"{name} {mean}, {part} of the rows" for name, _, mean, part in lines),
        _draw_curves(recall, [f"{name[:16]}: {mean}" for name, _, mean, _ in lines], ("recall", "precision"),
                     ([], []) if several else ([0, 1], [share, share])),
        about=about,
    )  # fmt: skip
    return [first, second]


def _confusion(errors: Errors, labels: list[str]) -> dict[str, Any]:
    counts, figures = errors.confusion, errors.summary()
    right, true, predicted = np.diagonal(counts), counts.sum(axis=1), counts.sum(axis=0)

    def share(part: Any, whole: Any) -> str:
        return percent(part / whole) if whole else "-"

    rows = [
        (label, number(int(true[k])), share(right[k], true[k]), share(right[k], predicted[k]))
        for k, label in enumerate(labels)
    ]
    whole = [("accuracy", percent(figures["accuracy"])), ("balanced accuracy", percent(figures["balanced_accuracy"]))]
    whole += [("log loss", number(figures["log_loss"]))] if "log_loss" in figures else []
    return {
        "labels": labels,
        "counts": counts.tolist(),
        "tables": [
            table("Recall and precision of each class", ("class", "rows", "recall", "precision"), rows),
            table("All classes", ("metric", "value"), whole),
        ],
    }


def _residuals(rows: ScoredRows) -> list[dict[str, Any]]:
    figures = rows.errors.summary()
    step = -(-len(rows.X) // _MOST_POINTS)
    y, predicted = rows.answers.y[::step], rows.answers.predicted[::step]
    residuals = y - predicted
    ends = np.quantile(residuals, [0.05, 0.25, 0.5, 0.75, 0.95])

    def draw_diagonal(ax: Any) -> None:
        ax.plot(y, predicted, ".", color=COLOURS[0], alpha=0.6)
        ax.axline((y.mean(), y.mean()), slope=1, linestyle="--", color=PAPER["muted"], linewidth=1)
        ax.set(xlabel="true value", ylabel="predicted value")

    def draw_residuals(ax: Any) -> None:
        ax.plot(predicted, residuals, ".", color=COLOURS[0], alpha=0.6)
        ax.axhline(0.0, linestyle="--", color=PAPER["muted"], linewidth=1)
        ax.set(xlabel="predicted value", ylabel="true minus predicted")

    names = {"rmse": "root mean squared error", "mae": "mean absolute error", "largest_error": "largest error"}
    lines = [(text, number(figures[name])) for name, text in {**names, "r2": "R²"}.items()]
    return [
        picture(
            "Predicted and true values", f"{len(y)} points around the diagonal; R² {number(figures['r2'])}",
            draw_diagonal, about=f"R² {number(figures['r2'])}", table=table("Errors", ("metric", "value"), lines),
        ),
        picture(
            "Residuals",
            f"Half of the residuals lie between {ends[1]:.4g} and {ends[3]:.4g}, 90 % between {ends[0]:.4g} and "
            f"{ends[4]:.4g}; the median is {ends[2]:.4g}",
            draw_residuals, about="above the line: predicted too low",
        ),
    ]  # fmt: skip


def _worst(rows: ScoredRows, columns: Sequence[int]) -> dict[str, Any]:
    """Rows with the largest residuals, with their values in the most important columns."""
    y, predicted = rows.answers.y, rows.answers.predicted
    lines = [
        (str(rows.places[j]), number(float(y[j])), number(float(predicted[j])), f"{y[j] - predicted[j]:+.4g}",
         *rows.cells(j, columns))
        for j in np.argsort(rows.margins, kind="stable")[:_N_WORST].tolist()
    ]  # fmt: skip
    head = ("row", "true", "predicted", "residual", *(rows.view.column_names[k] for k in columns))
    return table("Rows with the largest errors, and their values in the most important columns", head, lines)


def calibration_section(rows: ScoredRows) -> dict[str, Any]:
    """How often the model is right at each probability, or how many true values lie in its intervals."""
    errors = rows.errors
    if errors.labels is None:
        return _coverage(rows)
    counts, sums, right = errors.bins[:, errors.bins[0] > 0]
    if not len(counts):
        return {"words": "This model has no probabilities: it was fitted with the squared loss on more than 2 classes."}
    kept = counts >= min(_LEAST_ROWS, counts.max())
    stated, observed = sums / counts, right / counts
    source = "The probability is the model's." if errors.has_probabilities else (
        "The squared loss has no probabilities of its own: its score s, an estimate of the mean of a target of -1 and "
        "1, is read as the probability (1 + |s|) / 2 of the predicted class, at most 1."
    )  # fmt: skip
    low = min(0.5, float(min(stated[kept].min(), observed[kept].min())))
    lines = [
        (f"{100 * s:.1f} %", f"{100 * r:.1f} %", number(int(n)))
        for s, r, n in zip(stated, observed, counts, strict=True)
    ]
    listed = table("Calibration", ("mean probability", "right", "rows"), lines, (0, 1, 2))

    words = (
        f"On the dashed line the model is right as often as it says. {source} Mean distance from the line, weighted "
    )
    words += f"by rows: {100 * np.abs(sums - right).sum() / counts.sum():.1f} percentage points."
    return {"words": words, "pictures": [
        picture(
            "Calibration", "; ".join(f"probability {stated}, {share} right" for stated, share, _ in lines),
            _draw_curves({0: (stated[kept], observed[kept])}, [""],
                         ("probability of the predicted class", "share that is right"), ([low, 1], [low, 1]), low),
            table=listed,
        ),
    ]}  # fmt: skip


def _coverage(rows: ScoredRows) -> dict[str, Any]:
    """Share of the true values inside of intervals, by their coverage."""
    if rows.fitted.uncertainty is None:
        return {"words": "This model has no intervals: no rows were held out for them, or its loss does not give any."}
    step = -(-len(rows.X) // _MOST_INTERVALS)
    y, predicted, found = rows.answers.y[::step], rows.answers.predicted[::step], {}
    with suppress(ValueError):  # too few rows were held out for a coverage
        for coverage, reach in zip(_COVERAGES, rows.fitted.half_widths(rows.X[::step], _COVERAGES), strict=False):
            inside = (predicted - reach <= y) & (y <= predicted + reach)
            found[coverage] = float(inside.mean()), float(np.median(2 * reach))
    if not found:
        return {"words": "Too few rows were held out of the fit for intervals."}
    shares = [share for share, _ in found.values()]
    least = min(0.45, *shares)
    lines = [(f"{100 * c:.0f} %", f"{100 * share:.1f} %", number(width)) for c, (share, width) in found.items()]
    words = f"On the dashed line as many true values lie inside of an interval as it says ({number(len(y))} rows)."
    return {"words": words, "pictures": [
        picture(
            "Coverage of intervals",
            "; ".join(f"{asked} expected, {share} observed, median width {width}" for asked, share, width in lines),
            _draw_curves({0: (list(found), shares)}, [""], ("coverage", "share of true values inside"),
                         ([least, 1], [least, 1]), least),
            table=table("Coverage and width of intervals", ("coverage", "inside", "median width"), lines, (0, 1, 2)),
        )
    ]}  # fmt: skip
