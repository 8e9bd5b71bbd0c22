"""Errors of a model beside those of simple models, and calibration of its probabilities and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import precision_recall_curve, precision_recall_fscore_support, roc_curve

from polytrain.columns import DateColumn
from polytrain.estimators.summary import error_lines
from polytrain.evaluation import (
    Answers,
    Metric,
    categories,
    class_areas,
    constant_answers,
    linear_answers,
    loss_metrics,
    row_costs,
)
from polytrain.explain.local import cell_text
from polytrain.explain.view import ModelView
from polytrain.learning.losses import get_loss
from polytrain.plotting.style import COLOURS, MARKERS, PAPER, shorten
from polytrain.reporting.pictures import draw_curves, number, percent, picture, table

_N_BOOTSTRAP = 400
# Points of a calibration curve with fewer rows are noise.
_LEAST_ROWS = 10
_MOST_POINTS, _N_WORST = 1000, 8
_COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Rows whose intervals are compared with their targets.
_MOST_INTERVALS = 2000
# Rows among which a column is shuffled: at least, at most, and multiplications that a column may cost.
_LEAST_SHUFFLED, _MOST_SHUFFLED, _SHUFFLING_COST = 2000, 5000, 3e9


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with their targets and predictions.

    ``every`` are the answers to all rows, ``X`` (N, d) the features of an even sample, and ``places`` (N,) the numbers
    of its rows, from 0, among all that have a target and a weight that is not zero. ``source`` is where the rows come
    from, ``seconds`` the time that reading and scoring took, and ``training`` holds facts about the training.
    """

    view: ModelView
    every: Answers
    X: NDArray
    places: NDArray
    target: str | None = None
    source: str = ""
    seconds: float = 0.0
    file_bytes: int | None = None
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def error_name(self) -> str:
        """Name of the error that `error` returns."""
        return self.metrics[self.headline].words if self.every.labels is None else "share of wrong labels"

    @property
    def metrics(self) -> dict[str, Metric]:
        """Metrics of the model's loss by name."""
        return loss_metrics(self.every.loss, self.every.labels is not None)

    @property
    def headline(self) -> str:
        """The metric that the model is judged by."""
        return next(iter(self.metrics))

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Metrics of all rows by name."""
        return self.every.summary()

    @cached_property
    def answers(self) -> Answers:
        """Targets and predictions of the rows of X."""
        return self.every.only(self.places)

    @cached_property
    def margins(self) -> NDArray:
        """Lead of the true class over all others, negative where the model is wrong; or minus the absolute error."""
        y, ranking = self.answers.y, self.answers.ranking
        if ranking is None:
            return -np.abs(self.answers.predicted - y)
        is_true = np.arange(ranking.shape[1]) == y[:, None]
        return ranking[is_true] - np.where(is_true, -np.inf, ranking).max(axis=1)

    def cells(self, j: int, columns: Sequence[int]) -> tuple[str, ...]:
        """Values of a row of X in some columns, as text."""
        return tuple(self._cell(k, float(self.X[j, self.view.groups[k].start])) for k in columns)

    def _cell(self, column: int, value: float) -> str:
        levels = self.view.levels(column)
        if levels is not None and not np.isnan(value):
            return levels[int(value)] if 0 <= value < len(levels) else "another"
        if isinstance(self.view.column(column), DateColumn) and not np.isnan(value):
            date = np.datetime64(round(1440 * value), "m")
            return str(date if value % 1 else date.astype("datetime64[D]"))
        return cell_text(value)

    def shuffled(self, columns: Sequence[int]) -> list[float]:
        """Return the rise of `error` for each column if the column is shuffled among the rows."""
        most = min(max(int(_SHUFFLING_COST / self.view.fitted.n_parameters), _LEAST_SHUFFLED), _MOST_SHUFFLED)
        some = slice(None, None, -(-len(self.X) // most))
        X, answers = self.X[some], self.answers.only(some)
        order = np.random.default_rng(0).permutation(answers.n)
        before, rises = self.error(answers), []
        more: dict[str, Any] = {"offset": answers.offset, "weights": answers.weights}
        for column in columns:
            mixed, group = X.copy(), self.view.groups[column]
            mixed[:, group.start : group.stop] = X[order, group.start : group.stop]
            rises.append(self.error(Answers.of(self.view.fitted, mixed, answers.y, **more)) - before)
        return rises

    def error(self, answers: Answers) -> float:
        """Return what the model is judged by: share of wrong labels, root mean squared error, or mean deviance."""
        words, measure = self.metrics[self.headline]
        if (error := measure(answers)) is None:
            get_loss(answers.loss).check_target(answers.y)
            raise ValueError(f"the {words} of these rows is infinite. Leave out the rows with the largest predictions.")
        return error


class Comparison(NamedTuple):
    """The error of a model with its 95 % interval, as numbers and as texts; ``how`` says on which rows."""

    name: str
    how: str
    error: float
    low: float
    high: float
    texts: tuple[str, str]


def bootstrap(answers: Answers, is_rmse: bool) -> tuple[float, float]:
    """Return a 95 % interval of the mean cost of rows, or of the RMSE, from rows drawn with replacement."""
    residuals = answers.predicted - answers.y
    size = (float(np.abs(residuals).max()) or 1.0) if is_rmse else 1.0
    costs = np.square(residuals / size) if is_rmse else row_costs(answers)  # squares of large numbers might overflow
    weights, rng = np.ones(answers.n) if answers.weights is None else answers.weights, np.random.default_rng(0)
    places = (rng.integers(answers.n, size=answers.n) for _ in range(_N_BOOTSTRAP))
    drawn = np.array([np.average(costs[some], weights=weights[some]) for some in places])
    low, high = np.quantile(size * np.sqrt(drawn) if is_rmse else drawn, [0.025, 0.975])
    return float(low), float(high)


def compare(rows: ScoredRows, train: tuple[NDArray, Answers] | None = None) -> list[Comparison]:
    """Return the errors of the model, of a linear model of the training rows, if given, and of the best constant."""
    asked, labels, every = rows.answers, rows.every.labels, rows.every
    loss, show = get_loss(every.loss), number if labels is None else percent

    def measured(name: str, how: str, answers: Answers) -> Comparison:
        error = rows.error(answers)
        if labels is not None and answers.weights is None:
            wrong = int((answers.predicted != answers.y).sum())
            low, high = map(float, binomtest(wrong, answers.n).proportion_ci(0.95, method="wilson"))
        else:
            some = answers.only(slice(None, None, -(-answers.n // len(rows.X))))
            low, high = bootstrap(some, rows.headline == "rmse")
        interval = f"{number(low)} to {number(high)}" if labels is None else f"{100 * low:.2f} to {100 * high:.2f} %"
        return Comparison(name, how, error, low, high, (show(error), interval))

    models: list[tuple[str, str, Answers | None]] = []
    if train is not None:
        linear = linear_answers(*train, rows.X, asked, categories(rows.view.fitted))
        kind = "logistic" if labels is not None else loss.name.capitalize() if loss.link == "log" else "ridge"
        models.append((f"linear model ({kind} regression)", f"fitted on {train[1].n} training rows", linear))
    constant = constant_answers(asked, asked)
    name = "always the best constant" if loss.needs_values else "always the mean"
    name = f"always {labels[constant.predicted[0]]}" if labels is not None else name
    models.append((name + " rate" * (asked.offset is not None), "the best constant here", constant))
    others = [
        measured(name, how, answers)
        for name, how, answers in models
        if answers is not None and rows.metrics[rows.headline].measure(answers) is not None
    ]
    return [measured("this model", f"on {number(every.n)} rows", every), *others]


def error_section(rows: ScoredRows, comparisons: Sequence[Comparison], columns: Sequence[int]) -> dict[str, Any]:
    """Errors beside those of simple models; then curves and a confusion matrix, or residuals and the worst rows."""

    def draw(ax: Any) -> None:
        for k, model in enumerate(comparisons):
            ends = [[model.error - model.low], [model.high - model.error]]
            ax.errorbar(model.error, k, xerr=np.maximum(ends, 0.0), fmt=MARKERS[k], color=COLOURS[k], capsize=4)
            where = {"xycoords": ("axes fraction", "data"), "xytext": (4, 8), "textcoords": "offset points"}
            ax.annotate(f"{shorten([model.name], 40)[0]}: {model.texts[0]}", (0, k), fontsize=11, **where)
        highest = max(model.high for model in comparisons)
        ax.set(xlim=(0, 1.05 * highest or 1.0), ylim=(len(comparisons) - 0.6, -0.8), yticks=[], xlabel=rows.error_name)
        ax.spines[["top", "right", "left"]].set_visible(False)

    lines = [(model.name, model.how, *model.texts) for model in comparisons]
    listed = table("Errors with 95 % intervals", ("model", "rows", rows.error_name, "interval"), lines, 2)
    about, note = rows.error_name, f"While training: {'; '.join(error_lines(rows.view.estimator))}."
    first = picture("Error", listed, draw, height=1.0 + 0.6 * len(lines), about=about, note=note, table=listed)
    if rows.every.labels is None:
        return {"pictures": [first, *_residuals(rows)], "worst": _worst(rows, columns)}
    return {"pictures": [first, *_curves(rows)], "tables": _class_tables(rows)}


def _curves(rows: ScoredRows) -> list[dict[str, Any]]:
    """ROC and precision-recall curves, of the second of two classes, or of each class against the others."""
    y, labels, ranking = rows.answers.y, rows.every.labels or [], np.asarray(rows.answers.ranking)
    areas, several = class_areas(rows.answers), len(labels) > 2
    if not areas:
        return []
    shares = {k: float((y == k).mean()) for k in areas}
    about = "mean over the classes" if several else f"for {labels[1]}"
    head = ("class", "area under ROC", "average precision", "share of the rows")
    lines = [(labels[k], f"{area:.3f}", f"{mean:.3f}", percent(shares[k])) for k, (area, mean) in areas.items()]
    listed = table("Each class against all others", head, lines)

    def drawn(which: int, title: str, axes: tuple[str, str], curves: dict[int, Any], chance: Any) -> dict[str, Any]:
        values = [area[which] for area in areas.values()]
        names = [f"{labels[k][:16]}: {value:.3f}" for k, value in zip(areas, values, strict=True)]
        curves = {k if several else 0: curve for k, curve in curves.items()}
        draw = partial(draw_curves, curves, names, axes, chance, 0.0)
        more: Any = {"table": listed} if several and not which else {}  # one is enough for both
        return picture(f"{title} {np.mean(values):.3f}", listed, draw, about=about, **more)

    roc = {k: roc_curve(y == k, ranking[:, k])[:2] for k in areas}
    # scikit-learn returns the precision before the recall, which is drawn along the first axis.
    recall = {k: precision_recall_curve(y == k, ranking[:, k], drop_intermediate=True)[1::-1] for k in areas}
    chance = ([], []) if several else ([0, 1], [shares[1]] * 2)
    return [
        drawn(0, "ROC: area", ("false positive rate", "true positive rate"), roc, ([0, 1], [0, 1])),
        drawn(1, "Precision-recall: average", ("recall", "precision"), recall, chance),
    ]


def _class_tables(rows: ScoredRows) -> list[dict[str, Any]]:
    """Recall and precision of each class, and figures of all classes together."""
    every, labels, figures = rows.every, rows.every.labels or [], rows.figures
    precision, recall, _, counts = precision_recall_fscore_support(
        every.y, every.predicted, labels=np.arange(len(labels)), zero_division=np.nan
    )
    shares = zip(labels, counts.tolist(), map(percent, recall), map(percent, precision), strict=True)
    whole = [(name.replace("_", " "), percent(figures[name])) for name in ("accuracy", "balanced_accuracy")]
    whole += [("log loss", number(figures["log_loss"]))] if "log_loss" in figures else []
    head = ("class", "rows", "recall", "precision")
    of_classes = table("Recall and precision of each class", head, list(shares))
    return [of_classes, table("All classes", ("metric", "value"), whole)]


def _residuals(rows: ScoredRows) -> list[dict[str, Any]]:
    """Scatter plots of predictions over true values, and of residuals over predictions."""
    figures, step = rows.figures, -(-len(rows.X) // _MOST_POINTS)
    y, predicted = rows.answers.y[::step], rows.answers.predicted[::step]
    residuals, part = y - predicted, "d2" if "d2" in figures else "r2"
    explained = f"{part[0].upper()}² {number(figures[part])}"
    ends = [f"{end:.4g}" for end in np.quantile(residuals, [0.05, 0.25, 0.5, 0.75, 0.95])]

    def draw(ax: Any, x: NDArray, y: NDArray, slope: float, names: tuple[str, str]) -> None:
        ax.plot(x, y, ".", color=COLOURS[0], alpha=0.6)
        ax.axline((slope * x.mean(),) * 2, slope=slope, linestyle="--", color=PAPER["muted"], linewidth=1)
        ax.set(xlabel=names[0], ylabel=names[1])

    names = {name: metric.words for name, metric in rows.metrics.items()} | {"largest_error": "largest error"}
    lines = [(text, number(figures[name])) for name, text in names.items()]
    fit = partial(draw, x=y, y=predicted, slope=1.0, names=("true value", "predicted value"))
    rest = partial(draw, x=predicted, y=residuals, slope=0.0, names=("predicted value", "true minus predicted"))
    words = (
        f"Half of the residuals lie between {ends[1]} and {ends[3]}, 90 % between {ends[0]} and {ends[4]}; the median "
        f"is {ends[2]}"
    )
    title, listed = "Predicted and true values", table("Errors", ("metric", "value"), lines)
    return [
        picture(title, f"{len(y)} points around the diagonal; {explained}", fit, about=explained, table=listed),
        picture("Residuals", words, rest, about="above the line: predicted too low"),
    ]


def _worst(rows: ScoredRows, columns: Sequence[int]) -> dict[str, Any]:
    """Rows with the largest residuals, with their values in the most important columns."""
    y, predicted = rows.answers.y, rows.answers.predicted
    lines = []
    for j in np.argsort(rows.margins, kind="stable")[:_N_WORST].tolist():
        residual = f"{y[j] - predicted[j]:+.4g}"
        lines.append((str(rows.places[j]), number(y[j]), number(predicted[j]), residual, *rows.cells(j, columns)))
    head = ("row", "true", "predicted", "residual", *(rows.view.column_names[k] for k in columns))
    return table("Rows with the largest errors, and their values in the most important columns", head, lines)


def calibration_section(rows: ScoredRows) -> dict[str, Any]:
    """Share of right predictions at each probability, or share of true values inside intervals."""
    every = rows.every
    if every.labels is None:
        return _coverage(rows)
    counts, sums, right = every.bins[:, every.bins[0] > 0]
    if not len(counts):
        return {}
    kept = counts >= min(_LEAST_ROWS, counts.max())
    stated, observed = sums / counts, right / counts
    lines = [(f"{100 * s:.1f} %", f"{100 * r:.1f} %", int(n)) for s, r, n in zip(stated, observed, counts, strict=True)]
    listed = table("Calibration", ("mean probability", "right", "rows"), lines, 0)
    axes = "probability of the predicted class", "share that is right"
    distance = 100 * np.abs(sums - right).sum() / counts.sum()
    return {"picture": _diagonal(axes, stated[kept], observed[kept], listed), "distance": distance}


def _coverage(rows: ScoredRows) -> dict[str, Any]:
    """Share of the true values inside intervals, by their coverage; nothing where there are none."""
    step, shares, lines = -(-len(rows.X) // _MOST_INTERVALS), [], []
    y, predicted = rows.answers.y[::step], rows.answers.predicted[::step]
    with suppress(ValueError):  # no rows were held out, or too few for a coverage
        for coverage, reach in zip(_COVERAGES, rows.view.fitted.half_widths(rows.X[::step], _COVERAGES), strict=False):
            shares.append(float(((predicted - reach <= y) & (y <= predicted + reach)).mean()))
            lines.append((f"{100 * coverage:.0f} %", f"{100 * shares[-1]:.1f} %", number(float(np.median(2 * reach)))))
    if not shares:
        return {}
    listed = table("Coverage of intervals", ("coverage", "inside", "median width"), lines, 0)
    axes = "coverage", "share of true values inside"
    return {"picture": _diagonal(axes, np.array(_COVERAGES[: len(shares)]), np.array(shares), listed), "n_rows": len(y)}


def _diagonal(axes: tuple[str, str], x: NDArray, y: NDArray, listed: dict[str, Any]) -> dict[str, Any]:
    """A picture of a curve that should be the diagonal."""
    low = min(0.5, float(x.min()), float(y.min()))
    draw = partial(draw_curves, {0: (x, y)}, [""], axes, ([low, 1], [low, 1]), low)
    return picture(listed["caption"], listed, draw, table=listed)
