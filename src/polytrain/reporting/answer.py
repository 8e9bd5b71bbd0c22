"""First part of a report: how good the model is, beside simple ones, and whether it knows how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from polytrain.reporting.charts import interval_chart, line_chart, scatter_chart
from polytrain.reporting.drawing import Point
from polytrain.reporting.evidence import Comparison, ScoredRows, bootstrap_rmse, cell_text, compare, wilson
from polytrain.reporting.page import details, figure, grid, heading, matrix, number, paragraph, percent, section, table
from polytrain.tables.evaluation import ClassificationErrors, RegressionErrors
from polytrain.tables.metrics import METRICS, class_areas

__all__ = ["answer", "calibration", "compared", "in_one_sentence"]

# Points of a calibration curve with fewer rows are noise.
_LEAST_ROWS = 10
_MOST_POINTS = 1500
_CURVE_POINTS = 80
_WORST = 8
_COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Rows whose intervals are compared with the truth.
_MOST_INTERVALS = 2000


def compared(
    counted: ClassificationErrors | RegressionErrors, scored: ScoredRows, train: tuple[NDArray, NDArray] | None
) -> list[Comparison]:
    """Errors of the model, of a linear one, and of the best constant, with their intervals."""
    figures = counted.summary()
    how = f"on {number(counted.n)} rows"
    if isinstance(counted, ClassificationErrors):
        n_wrong = counted.n - int(np.trace(counted.confusion))
        own = Comparison("this model", figures["error"], *wilson(n_wrong, counted.n), how)
    else:
        own = Comparison("this model", figures["rmse"], *bootstrap_rmse(scored.predicted - scored.y), how)
    return [own, *compare(scored, train)]


def in_one_sentence(found: Sequence[Comparison], is_classifier: bool, target: str, n_rows: int) -> str:
    """Say what comes out."""
    own, *others = found
    beside = " and ".join(f"{_error(other, is_classifier)} for {_the(other.name)}" for other in others)
    what = "The model gets {} of the rows wrong" if is_classifier else "The model's root mean squared error is {}"
    return (
        f"It predicts {target}. {what.format(_error(own, is_classifier))} ({_interval(own, is_classifier)} with 95 % "
        f"confidence, {number(n_rows)} rows). Compare: {beside}."
    )


def _the(name: str) -> str:
    return f"the {name}" if name.startswith("linear") else f"answering {name}" if name.startswith("always") else name


def _error(found: Comparison, is_classifier: bool) -> str:
    return percent(found.error) if is_classifier else number(found.error)


def _interval(found: Comparison, is_classifier: bool) -> str:
    if is_classifier:
        return f"{100 * found.low:.2f} to {100 * found.high:.2f} %"
    return f"{number(found.low)} to {number(found.high)}"


def answer(
    counted: ClassificationErrors | RegressionErrors,
    scored: ScoredRows,
    found: Sequence[Comparison],
    columns: list[str],
) -> tuple[str, str]:
    """Errors beside those of simple models; then curves and the confusion matrix, or residuals and the worst rows."""
    is_classifier = isinstance(counted, ClassificationErrors)
    what = "share of wrong labels" if is_classifier else "root mean squared error"
    chart = interval_chart(
        f"Error of this model and of simple ones: {what}",
        [(one.name, one.error, one.low, one.high, _error(one, is_classifier)) for one in found],
        "; ".join(
            f"{one.name}: {_error(one, is_classifier)}, interval {_interval(one, is_classifier)}, {one.how}"
            for one in found
        ),
    )
    rows = [(one.name, _error(one, is_classifier), _interval(one, is_classifier), one.how) for one in found]
    listed = details("The figures", table("Errors", ("model", what, "95 % interval", "how"), rows, (1, 2)))
    note = "Whiskers are intervals of 95 %. " + "; ".join(f"{one.name}: {one.how}" for one in found[1:]) + "."
    note += _in_folds(scored.model.training)
    sampled = (
        paragraph(
            f"Curves, comparisons and explanations are of an even sample of {number(len(scored.y))} rows.", "note"
        )
        if len(scored.y) < counted.n
        else ""
    )
    errors = figure("Error", chart, what, paragraph(note, "note") + listed)
    if isinstance(counted, ClassificationErrors):
        return section("How good is it?", sampled, grid(errors, *_curves(scored)), _confusion(counted))
    return section("How good is it?", sampled, grid(errors, *_residuals(counted, scored)), _worst(scored, columns))


def _in_folds(training: dict[str, Any]) -> str:
    """Errors of simple models beside those of the model in the folds of its fit, in words; nothing if not known."""
    for metric, (_, words, _) in METRICS.items():
        errors = [training.get(f"cv_{name}{metric}") for name in ("", "linear_", "constant_")]
        if all(isinstance(error, float) for error in errors):
            show: Callable[[Any], str] = percent if metric.endswith("error") else number
            own, linear, constant = map(show, errors)
            return (
                f" In {training.get('cv_folds')} folds of the training rows, where all models learned from the same "
                f"rows: {words} {own} of models fitted like this one, {linear} of a linear model, {constant} of a "
                "constant."
            )
    return ""


def _thin(points: NDArray) -> list[Point]:
    """Some points of a long curve, evenly along its way."""
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(points, axis=0)).sum(axis=1))])
    kept = np.unique(np.searchsorted(way, np.linspace(0.0, way[-1], _CURVE_POINTS)).clip(0, len(points) - 1))
    return [(float(x), float(y)) for x, y in points[kept]]


def _curves(scored: ScoredRows) -> list[str]:
    """ROC and precision-recall, for the second of two classes, or for every class against the others."""
    labels = [str(label) for label in scored.model.estimator.classes_]
    ranking = np.asarray(scored.answers.ranking)
    roc, recall, areas = [], [], []
    for k, (area, mean) in class_areas(scored.answers).items():
        truth = scored.y == k
        false, true, _ = roc_curve(truth, ranking[:, k])
        precision, found, _ = precision_recall_curve(truth, ranking[:, k])
        areas.append((labels[k], area, mean, float(truth.mean())))
        roc.append((f"{labels[k]}: {area:.3f}", _thin(np.column_stack([false, true]))))
        recall.append((f"{labels[k]}: {mean:.3f}", _thin(np.column_stack([found, precision]))))
    if not areas:
        return [paragraph("These rows are all of one class: there are no curves.", "note")]
    means = np.array([line[1:3] for line in areas]).mean(axis=0)
    told = "; ".join(f"{name} {area:.3f}" for name, area, _, _ in areas)
    told_mean = "; ".join(f"{name} {mean:.3f}, of {percent(share)} of the rows" for name, _, mean, share in areas)
    square = ((0.0, 1.0), (0.0, 1.0))
    several = len(areas) > 1
    listed = ""
    if several:
        cells = [(name, f"{area:.3f}", f"{mean:.3f}", percent(share)) for name, area, mean, share in areas]
        head = ("class", "area under ROC", "average precision", "share of the rows")
        listed = details("Of every class", table("Every class against all others", head, cells, (1, 2, 3)))
    whom = f"for {areas[0][0]}" if not several else "mean over the classes"
    level = [[(0.0, areas[0][3]), (1.0, areas[0][3])]] if not several else []
    first = line_chart(
        "ROC curve", roc, ("false alarms: share of other rows", "found: share of the class"),
        f"Share of the class that is found against the share of other rows taken for it. Area under the curve: {told}.",
        limits=square, references=[[(0.0, 0.0), (1.0, 1.0)]], marked=False,
    )  # fmt: skip
    second = line_chart(
        "Precision and recall", recall, ("recall: share of the class found", "precision: share that is right"),
        f"Share of right alarms against the share of the class that is found. Average precision: {told_mean}.",
        limits=square, references=level, marked=False,
    )  # fmt: skip
    return [
        figure(f"ROC: area {means[0]:.3f}", first, whom, listed),
        figure(f"Precision-recall: average {means[1]:.3f}", second, whom),
    ]


def _confusion(counted: ClassificationErrors) -> str:
    confusion, figures = counted.confusion, counted.summary()
    right, true, said = np.diagonal(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    rows = [
        (
            label,
            number(int(true[k])),
            percent(right[k] / true[k]) if true[k] else "-",
            percent(right[k] / said[k]) if said[k] else "-",
        )
        for k, label in enumerate(counted.labels)
    ]
    whole = [("accuracy", percent(figures["accuracy"])), ("balanced accuracy", percent(figures["balanced_accuracy"]))]
    whole += [("log loss", number(figures["log_loss"]))] if "log_loss" in figures else []
    caption = "Rows by true and predicted class; the shade is the share of the true class"
    head = ("class", "rows", "recall", "precision")
    counts = matrix(caption, counted.labels, counted.confusion.tolist())
    return heading("Confusion matrix") + grid(
        counts if len(counted.labels) == 2 else f'<div class="full">{counts}</div>',
        table("Rows of the class that are found, and predictions of it that are right", head, rows, (1, 2, 3)),
        table("All classes together", ("figure", "value"), whole, (1,)),
    )


def _residuals(counted: RegressionErrors, scored: ScoredRows) -> list[str]:
    figures = counted.summary()
    step = -(-len(scored.y) // _MOST_POINTS)
    truth, guess = scored.y[::step], scored.predicted[::step]
    r2 = number(figures["r2"])
    around = scatter_chart(
        "Predicted and true values",
        list(zip(truth.tolist(), guess.tolist(), strict=True)),
        ("true value", "predicted value"),
        f"{len(truth)} points, true value across and predicted value up, around the diagonal; root mean squared error "
        f"{figures['rmse']:.5g}, R² {r2}.",
    )
    left = truth - guess
    quartiles = np.quantile(left, [0.05, 0.25, 0.5, 0.75, 0.95])
    beside = scatter_chart(
        "Residuals",
        list(zip(guess.tolist(), left.tolist(), strict=True)),
        ("predicted value", "true minus predicted"),
        "True minus predicted value against the predicted value. Of all residuals, a half lies between "
        f"{quartiles[1]:.4g} and {quartiles[3]:.4g}, nine tenths between {quartiles[0]:.4g} and {quartiles[4]:.4g}, "
        f"the middle at {quartiles[2]:.4g}.",
        level=0.0,
    )
    rows = [("root mean squared error", number(figures["rmse"])), ("mean absolute error", number(figures["mae"]))]
    rows += [("largest error", number(figures["largest_error"])), ("R²", r2)]
    listed = details("The figures", table("Errors", ("figure", "value"), rows, (1,)))
    return [
        figure("Predicted and true", around, f"R² {r2}", listed),
        figure("Residuals", beside, "above the line: predicted too low"),
    ]


def _worst(scored: ScoredRows, columns: list[str]) -> str:
    """Rows with the largest residuals, with their values of the columns that matter most."""
    order = np.argsort(scored.trust, kind="stable")[:_WORST]
    places, levels = scored.model.places, scored.model.levels
    rows = [
        (
            str(scored.places[j]),
            number(float(scored.y[j])),
            number(float(scored.predicted[j])),
            f"{scored.y[j] - scored.predicted[j]:+.4g}",
            *(cell_text(scored.X[j, places[name]], levels.get(places[name])) for name in columns),
        )
        for j in order.tolist()
    ]
    head = ("row", "true", "predicted", "residual", *columns)
    return heading("The worst rows") + table(
        "Rows with the largest errors, counted from 0, and their values in the columns that matter most", head, rows,
        range(1, len(head)),
    )  # fmt: skip


def calibration(counted: ClassificationErrors | RegressionErrors, scored: ScoredRows) -> tuple[str, str]:
    """How often the model is right when it is so sure, or how many true values lie in its intervals."""
    title = "Does it know how sure it is?"
    if isinstance(counted, RegressionErrors):
        return section(title, *_coverage(scored))
    rows, sure, right = counted.bins
    kept = rows >= min(_LEAST_ROWS, rows.max())
    if not rows.any():
        words = "This model has no probabilities: it was fitted with the squared loss on more than two classes."
        return section(title, paragraph(words))
    points = [(float(s / n), float(r / n)) for n, s, r in zip(rows[kept], sure[kept], right[kept], strict=True)]
    gap = float(np.abs(sure - right).sum() / rows.sum())
    if counted.has_probabilities:
        source = "The probability is the model's."
    else:
        source = (
            "The squared loss has no probabilities of its own; its score s, which estimates the mean of a target of -1 "
            "and 1, is read as the probability (1 + |s|) / 2 of the predicted class, at most 1."
        )
    low = min(0.5, max(0.0, min([p for point in points for p in point]) - 0.03))
    chart = line_chart(
        "Calibration",
        [("observed", points)],
        ("probability of the predicted class", "share that is right"),
        "Share of right predictions against the probability of the predicted class: "
        + "; ".join(f"{100 * s:.0f} % sure, {100 * r:.0f} % right" for s, r in points),
        limits=((low, 1.0), (low, 1.0)),
        references=[[(low, low), (1.0, 1.0)]],
    )
    filled = rows > 0
    spread = line_chart(
        "How sure it is",
        [("rows", [(float(s / n), float(n / rows.sum())) for n, s in zip(rows[filled], sure[filled], strict=True)])],
        ("probability of the predicted class", "share of the rows"),
        "Share of the rows by the probability of the predicted class: "
        + "; ".join(
            f"{100 * s / n:.0f} % sure, {100 * n / rows.sum():.0f} % of the rows"
            for n, s in zip(rows[filled], sure[filled], strict=True)
        ),
    )
    listed = [
        (f"{100 * s / n:.1f} %", f"{100 * r / n:.1f} %", number(int(n)))
        for n, s, r in zip(rows, sure, right, strict=True)
        if n
    ]
    figures = details("The figures", table("Calibration", ("mean probability", "right", "rows"), listed, (0, 1, 2)))
    return section(
        title,
        paragraph(
            f"On the dashed line the model is right as often as it says. {source} Mean distance from the line, "
            f"weighted by rows: {100 * gap:.1f} percentage points."
        ),
        grid(figure("Calibration", chart, "", figures), figure("How sure it is", spread)),
    )


def _coverage(scored: ScoredRows) -> list[str]:
    """Share of true values inside of intervals of growing coverage."""
    if scored.fitted.uncertainty is None:
        return [
            paragraph(
                "Nothing is known about the uncertainty of this model: no rows were left out of its fit, or its loss "
                "has no noise of one kind, or its file is too old."
            )
        ]
    step = -(-len(scored.y) // _MOST_INTERVALS)
    X, y = scored.X[::step], scored.y[::step]
    points, widths = [], []
    for coverage in _COVERAGES:
        try:
            ends = scored.fitted.intervals(X, coverage=coverage)
        except ValueError:  # too few rows were left out for so much
            break
        points.append((coverage, float(((ends[:, 0] <= y) & (y <= ends[:, 1])).mean())))
        widths.append((coverage, float(np.median(ends[:, 1] - ends[:, 0]))))
    if not points:
        return [paragraph("Too few rows were left out of the fit to say how sure the model is.")]
    told = "; ".join(f"{100 * asked:.0f} % asked, {100 * seen:.1f} % seen" for asked, seen in points)
    finite = [(asked, width) for asked, width in widths if np.isfinite(width)]
    low = min(0.45, min(seen for _, seen in points) - 0.03)
    chart = line_chart(
        "Coverage of intervals", [("observed", points)], ("coverage that was asked for", "share of true values inside"),
        f"Share of the true values that lie in the model's intervals: {told}.",
        limits=((0.45, 1.0), (low, 1.0)), references=[[(0.45, 0.45), (1.0, 1.0)]],
    )  # fmt: skip
    pictures = [figure("Coverage of intervals", chart)]
    if finite:
        wide = line_chart(
            "Width of intervals", [("median width", finite)], ("coverage that was asked for", "median width"),
            "Median width of the intervals: " + "; ".join(f"{100 * a:.0f} %: {w:.4g}" for a, w in finite) + ".",
        )  # fmt: skip
        pictures.append(figure("Width of intervals", wide, "in units of the target"))
    words = f"On the dashed line as many true values lie inside of an interval as it says ({number(len(y))} rows)."
    return [paragraph(words), grid(*pictures)]
