"""Errors of a model and of simple models, and calibration of its probabilities and intervals."""

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
from polytrain.reporting.pictures import draw_curves, picture, table
from polytrain.texts import number_format, number_text, percent_text, unit_of

_N_BOOTSTRAP = 400
# Points of a calibration curve with fewer rows are noise.
_LEAST_ROWS = 10
_MOST_POINTS, _N_WORST = 1000, 8
# Curves with a colour of their own, where there are too many classes for all.
_MOST_MARKED = 6
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
        if self.every.labels is not None:
            return "share of wrong labels"
        return self.metrics[self.headline].words + self.unit * (self.headline in ("rmse", "mae"))

    @property
    def metrics(self) -> dict[str, Metric]:
        """Metrics of the model's loss by name."""
        return loss_metrics(self.every.loss, self.every.labels is not None)

    @property
    def headline(self) -> str:
        """The main metric of the model."""
        return next(iter(self.metrics))

    @property
    def unit(self) -> str:
        """The unit of the target in parentheses, where its name ends in one, or nothing."""
        unit = "" if self.every.labels else unit_of(self.target or "")
        return unit and f" ({unit})"

    @cached_property
    def further(self) -> dict[str, str]:
        """Names of the metrics that are shown beside the error, with words for them."""
        names = ["auc", "log_loss", "balanced_error"] if self.every.labels else ["d2", "r2", "rmse", "mae"]
        known = [name for name in names if name != self.headline and self.figures.get(name) is not None]
        units = dict.fromkeys(("rmse", "mae"), self.unit)
        return {
            name: self.metrics[name].words.replace("R2", "R²").replace("D2", "D²") + units.get(name, "")
            for name in known
        }

    @cached_property
    def relevances(self) -> list[float]:
        """Relevance of each column: the largest of its features; 1 where they were not learned."""
        learned = self.view.estimator.choice_.relevances
        return [1.0 if learned is None else float(max(learned[j] for j in group)) for group in self.view.groups]

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
        return cell_text(value) if np.isnan(value) else number_text(value, 5)

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
        """Return the main error of the model: share of wrong labels, root mean squared error, or mean deviance."""
        words, measure = self.metrics[self.headline]
        if (error := measure(answers)) is None:
            get_loss(answers.loss).check_target(answers.y)
            raise ValueError(f"the {words} of these rows is infinite. Leave out the rows with the largest predictions.")
        return error


class Comparison(NamedTuple):
    """The error of a model with its 95 % interval, as numbers and as texts, and ``more``: its `further` metrics.

    ``how`` describes the rows.
    """

    name: str
    how: str
    error: float
    low: float
    high: float
    texts: tuple[str, str]
    more: tuple[str, ...]


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
    loss = get_loss(every.loss)

    def measured(name: str, how: str, answers: Answers) -> Comparison:
        error = rows.error(answers)
        more = tuple(_text(key, rows.metrics[key].measure(answers)) for key in rows.further)
        if labels is not None and answers.weights is None:
            wrong = int((answers.predicted != answers.y).sum())
            low, high = map(float, binomtest(wrong, answers.n).proportion_ci(0.95, method="wilson"))
        else:
            some = answers.only(slice(None, None, -(-answers.n // len(rows.X))))
            low, high = bootstrap(some, rows.headline == "rmse")
        show = number_format([low, high]) if labels is None else percent_text
        return Comparison(
            name, how, error, low, high, (_text(rows.headline, error), f"{show(low)} to {show(high)}"), more
        )

    models: list[tuple[str, str, Answers | None]] = []
    if train is not None:
        linear = linear_answers(*train, rows.X, asked, categories(rows.view.fitted))
        kind = "logistic" if labels is not None else loss.name.capitalize() if loss.link == "log" else "ridge"
        how = f"fitted on {number_text(train[1].n)} training rows"
        models.append((f"linear model ({kind} regression)", how, linear))
    constant = constant_answers(asked, asked)
    name = "always the best constant" if loss.needs_values else "always the mean"
    name = f"always {labels[constant.predicted[0]]}" if labels is not None else name
    models.append((name + " rate" * (asked.offset is not None), "the best constant here", constant))
    others = [
        measured(name, how, answers)
        for name, how, answers in models
        if answers is not None and rows.metrics[rows.headline].measure(answers) is not None
    ]
    return [measured("this model", f"on {number_text(every.n)} rows", every), *others]


def error_section(rows: ScoredRows, comparisons: Sequence[Comparison], columns: Sequence[int]) -> dict[str, Any]:
    """Errors of the model and of simple models; then curves and a confusion matrix, or residuals and the worst rows."""

    def draw(ax: Any) -> None:
        for k, model in enumerate(comparisons):
            ends = [[model.error - model.low], [model.high - model.error]]
            ax.errorbar(model.error, k, xerr=np.maximum(ends, 0.0), fmt=MARKERS[k], color=COLOURS[k], capsize=4)
            where = {"xycoords": ("axes fraction", "data"), "xytext": (4, 8), "textcoords": "offset points"}
            ax.annotate(f"{shorten([model.name], 40)[0]}: {model.texts[0]}", (0, k), fontsize=11, **where)
        highest = max(model.high for model in comparisons)
        ax.set(xlim=(0, 1.05 * highest or 1.0), ylim=(len(comparisons) - 0.6, -0.8), yticks=[], xlabel=rows.error_name)
        ax.spines[["top", "right", "left"]].set_visible(False)

    lines = [(model.name, model.how, *model.texts, *model.more) for model in comparisons]
    head = ("model", "rows", rows.error_name, "95 % interval", *rows.further.values())
    listed = table("Errors of this model and of simple ones", head, lines, 2)
    about, note = rows.error_name, f"While training: {'; '.join(error_lines(rows.view.estimator))}."
    first = picture("Error", listed, draw, height=1.0 + 0.6 * len(lines), about=about, note=note)
    told = {"simple": listed}
    if rows.every.labels is None:
        return told | {"pictures": [first, *_residuals(rows)], "worst": _worst(rows, columns)}
    return told | {"pictures": [first, *_curves(rows)], "classes": _class_table(rows), "matrix": _confusion(rows)}


def _text(metric: str, value: Any) -> str:
    return (percent_text if metric.endswith("error") else number_text)(value)


def _curves(rows: ScoredRows) -> list[dict[str, Any]]:
    """ROC and precision-recall curves, of the second of two classes, or of each class against the others."""
    y, labels, ranking = rows.answers.y, rows.every.labels or [], np.asarray(rows.answers.ranking)
    areas, several = class_areas(rows.answers), len(labels) > 2
    if not areas:
        return []
    shares = {k: float((y == k).mean()) for k in areas}
    about = "mean over the classes" if several else f"for {labels[1]}"
    head = ("class", "area under ROC", "average precision", "share of the rows")
    lines = [(labels[k], *map(number_text, both), percent_text(shares[k])) for k, both in areas.items()]
    listed = table("Each class against all others", head, lines)

    def drawn(which: int, title: str, axes: tuple[str, str], curves: dict[int, Any], chance: Any) -> dict[str, Any]:
        values = [area[which] for area in areas.values()]
        names = [f"{labels[k]}: {number_text(value)}" for k, value in zip(areas, values, strict=True)]
        curves = {k if several else 0: curve for k, curve in curves.items()}
        lowest = np.argsort(values, kind="stable")[:_MOST_MARKED].tolist()
        draw = partial(draw_curves, curves, names, axes, chance, 0.0, marked=lowest)
        more: Any = {"table": listed} if several and not which else {}  # one is enough for both
        return picture(f"{title} {number_text(np.mean(values))}", listed, draw, about=about, **more)

    roc = {k: roc_curve(y == k, ranking[:, k])[:2] for k in areas}
    # scikit-learn returns the precision before the recall, which is drawn along the first axis.
    recall = {k: precision_recall_curve(y == k, ranking[:, k], drop_intermediate=True)[1::-1] for k in areas}
    chance = ([], []) if several else ([0, 1], [shares[1]] * 2)
    return [
        drawn(0, "ROC: area", ("false positive rate", "true positive rate"), roc, ([0, 1], [0, 1])),
        drawn(1, "Precision-recall: average", ("recall", "precision"), recall, chance),
    ]


def _class_table(rows: ScoredRows) -> dict[str, Any]:
    """Recall and precision of each class."""
    every, labels = rows.every, rows.every.labels or []
    precision, recall, _, counts = precision_recall_fscore_support(
        every.y, every.predicted, labels=np.arange(len(labels)), zero_division=np.nan
    )
    shares = zip(labels, counts.tolist(), map(percent_text, recall), map(percent_text, precision), strict=True)
    head = ("class", "rows", "recall", "precision")
    return table("Recall and precision of each class", head, list(shares))


def _confusion(rows: ScoredRows) -> dict[str, Any]:
    """The confusion matrix, with a shade in per cent for each cell, and the mistakes that are made most often."""
    counts, labels = np.array(rows.figures["confusion"]), rows.every.labels or []
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    wrong = counts - np.diag(np.diag(counts))
    # Shares of mistakes are small with many classes: the largest gets the shade of a class that is always right.
    top = (shares * (wrong > 0)).max() or 1.0
    shades = (55 * np.where(wrong > 0, shares / top, shares)).round(1)
    most = np.argsort(-wrong, axis=None, kind="stable")[:_N_WORST].tolist()
    lines = [
        (labels[true], labels[answer], int(wrong[true, answer]), percent_text(shares[true, answer]))
        for true, answer in (divmod(place, len(labels)) for place in most)
        if wrong[true, answer]
    ]
    head = ("true class", "predicted", "rows", "of the true class")
    mistakes = table("The most common mistakes", head, lines, 2) if len(labels) > 2 and lines else None
    return {"rows": list(zip(labels, counts.tolist(), shades.tolist(), strict=True)), "mistakes": mistakes}


def _residuals(rows: ScoredRows) -> list[dict[str, Any]]:
    """Scatter plots of predictions over true values, and of residuals over predictions."""
    figures, step = rows.figures, -(-len(rows.X) // _MOST_POINTS)
    y, predicted = rows.answers.y[::step], rows.answers.predicted[::step]
    residuals, part, unit = y - predicted, "d2" if "d2" in figures else "r2", rows.unit
    explained = f"{part[0].upper()}² {number_text(figures[part])}"
    quantiles = np.quantile(residuals, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
    ends = list(map(number_format(quantiles), quantiles))

    def draw(ax: Any, x: NDArray, y: NDArray, slope: float, names: tuple[str, str]) -> None:
        ax.plot(x, y, ".", color=COLOURS[0], alpha=0.6)
        ax.axline((slope * x.mean(),) * 2, slope=slope, linestyle="--", color=PAPER["muted"], linewidth=1)
        ax.set(xlabel=names[0], ylabel=names[1])

    answer = f"predicted value{unit}"
    fit = partial(draw, x=y, y=predicted, slope=1.0, names=(f"true value{unit}", answer))
    rest = partial(draw, x=predicted, y=residuals, slope=0.0, names=(answer, f"true minus predicted{unit}"))
    words = (
        f"Half of the residuals lie between {ends[1]} and {ends[3]}, 90 % between {ends[0]} and {ends[4]}; the median "
        f"is {ends[2]}"
    )
    most = f"above the line: predicted too low; the largest error is {number_text(figures['largest_error'])}"
    return [
        picture("Predicted and true values", f"{len(y)} points around the diagonal; {explained}", fit, about=explained),
        picture("Residuals", words, rest, about=most),
    ]


def _worst(rows: ScoredRows, columns: Sequence[int]) -> dict[str, Any]:
    """Rows with the largest residuals, with their values in the most important columns."""
    y, predicted = rows.answers.y, rows.answers.predicted
    lines, worst = [], np.argsort(rows.margins, kind="stable")[:_N_WORST].tolist()
    show = number_format([*y[worst], *predicted[worst]], 4)
    for j in worst:
        residual = y[j] - predicted[j]
        told = (show(y[j]), show(predicted[j]), "+" * int(residual > 0) + show(residual))
        lines.append((str(rows.places[j]), *told, *rows.cells(j, columns)))
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
    lines = [(percent_text(s), percent_text(r), int(n)) for s, r, n in zip(stated, observed, counts, strict=True)]
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
            width = number_text(float(np.median(2 * reach)))
            lines.append((percent_text(coverage), percent_text(shares[-1]), width))
    if not shares:
        return {}
    listed = table("Coverage of intervals", ("coverage", "inside", f"median width{rows.unit}"), lines, 0)
    axes = "coverage", "share of true values inside"
    return {"picture": _diagonal(axes, np.array(_COVERAGES[: len(shares)]), np.array(shares), listed), "n_rows": len(y)}


def _diagonal(axes: tuple[str, str], x: NDArray, y: NDArray, listed: dict[str, Any]) -> dict[str, Any]:
    """A picture of a curve that should be the diagonal."""
    low = min(0.5, float(x.min()), float(y.min()))
    draw = partial(draw_curves, {0: (x, y)}, [""], axes, ([low, 1], [low, 1]), low)
    return picture(listed["caption"], listed, draw, table=listed)
