"""What a report says: one function per section."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.explain import top_terms
from polytrain.explain.view import read_model
from polytrain.report.drawing import bar_chart, line_chart, scatter_chart
from polytrain.report.page import details, matrix, paragraph, section, table
from polytrain.tables import CategoryColumn, NumberColumn, TableModel
from polytrain.tables.evaluation import ClassificationErrors, RegressionErrors
from polytrain.tables.explaining import column_importances, strongest_terms

__all__ = ["calibration", "convergence", "cost", "data_and_model", "errors", "importances", "terms"]

_MAX_BARS = 15
_MAX_TERMS = 10
_MAX_CLASSES = 20
# Points of a calibration curve with fewer rows are noise.
_LEAST_ROWS = 10


def percent(share: float) -> str:
    """Return a share as per cent."""
    return f"{100 * share:.2f} %"


def number(value: Any) -> str:
    """Return a number with thin spaces between thousands, or with five digits."""
    if value is None or value != value:
        return "-"
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else f"{value:.5g}"


def data_and_model(model: TableModel, facts: dict[str, Any], data_name: str, n_rows: int) -> str:
    """Cards of the model and of the data."""
    shown = {**facts, "parameters": number(facts["parameters"])}
    if "classes" in shown:
        labels = shown["classes"]
        shown["classes"] = f"{len(labels)}: {', '.join(labels[:12])}{', …' if len(labels) > 12 else ''}"
    rows = [(name.replace("_", " "), str(value)) for name, value in shown.items()]
    target = model.preparation.target
    known = [("evaluated on", data_name), ("rows evaluated", number(n_rows))]
    known += [("target", target.name if target else "not recorded")]
    known += [(name.replace("_", " "), _fact(name, value)) for name, value in model.training.items()]
    maps = model.estimator.maps_
    columns = [
        (
            column.name,
            "number" if isinstance(column, NumberColumn) else "category",
            "" if isinstance(column, NumberColumn) else ", ".join(column.categories),
            _missing(column, maps[place.start].has_missing),
        )
        for column, (_, place) in zip(model.preparation.columns, model.preparation.groups, strict=True)
    ]
    n_categories = sum(isinstance(column, CategoryColumn) for column in model.preparation.columns)
    return section(
        "Data and model",
        '<div class="pair"><div>',
        table("The model", ("property", "value"), rows),
        "</div><div>",
        table("The data; training facts as recorded by fit", ("property", "value"), known),
        "</div></div>",
        details(
            f"{len(columns)} columns, {n_categories} of them categories",
            table("Columns", ("column", "kind", "categories", "missing cells"), columns),
        ),
        _choice(model),
    )


def _choice(model: TableModel) -> str:
    """What was tried, and what was decided."""
    choice = model.estimator.choice_
    if not choice.tried:
        return ""
    rows = [
        (t.step, t.basis, number(t.bandwidth), number(t.alpha), str(t.rank or "any"), number(t.n_rows), number(t.error))
        for t in choice.tried
    ]
    head = ("step", "functions", "bandwidth", "alpha", "rank", "rows", "error")
    return details(
        "How the settings were chosen",
        *(paragraph(reason[:1].upper() + reason[1:] + ".") for reason in choice.reasons),
        table("What was tried: mean loss on rows that were left out", head, rows, (2, 3, 4, 5, 6)),
    )


def _missing(column: NumberColumn | CategoryColumn, had_missing: bool) -> str:
    """Say what the model makes of missing cells."""
    if isinstance(column, NumberColumn) and column.fill is not None:
        return f"→ {column.fill:g}{', marked' if column.marked else ''}"
    return "learned" if had_missing or column.marked else "none in training"


def _fact(name: str, value: Any) -> str:
    if isinstance(value, float) and name.endswith("error"):
        return percent(value)
    if isinstance(value, float):
        return f"{value:.2f} s" if name.endswith("seconds") else number(value)
    return number(value) if isinstance(value, int) else str(value)


def errors(counted: ClassificationErrors | RegressionErrors) -> str:
    """Figures and, for classes, the confusion matrix; for numbers, a picture of both."""
    figures = counted.summary()
    if isinstance(counted, RegressionErrors):
        words = {"n": "rows", "rmse": "root mean squared error", "mae": "mean absolute error", "r2": "R²"}
        rows = [(words.get(name, name.replace("_", " ")), number(value)) for name, value in figures.items()]
        sample = counted.sample
        chart = scatter_chart(
            "Predicted and true values",
            list(zip(*sample.tolist(), strict=True)),
            ("true value", "predicted value"),
            f"{sample.shape[1]} points, true value across and predicted value up, around the diagonal; "
            f"root mean squared error {figures['rmse']:.5g}, R² {number(figures['r2'])}.",
        )
        figures_table = table("Errors", ("figure", "value"), rows, (1,))
        return section("Errors", '<div class="pair"><div>', figures_table, "</div><div>", chart, "</div></div>")
    rows = [("rows", number(figures["n"])), ("error", percent(figures["error"]))]
    rows += [("accuracy", percent(figures["accuracy"])), ("balanced accuracy", percent(figures["balanced_accuracy"]))]
    rows += [("log loss", number(figures["log_loss"]))] if "log_loss" in figures else []
    share = counted.confusion.sum(axis=1) / counted.n
    rows += [("error of always saying the commonest class", percent(1 - float(share.max())))]
    return section("Errors", table("Errors", ("figure", "value"), rows, (1,)), _per_class(counted)) + section(
        "Confusion matrix",
        matrix("Rows by true and predicted class; the shade is the share of the true class", counted.labels,
               counted.confusion.tolist()),
    )  # fmt: skip


def _per_class(counted: ClassificationErrors) -> str:
    confusion = counted.confusion
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
    head = ("class", "rows", "recall", "precision")
    return table(
        "By class: rows of the class that are found, and predictions of it that are right", head, rows, (1, 2, 3)
    )


def calibration(counted: ClassificationErrors) -> str:
    """How often the model is right when it is so sure."""
    rows, sure, right = counted.bins
    kept = rows >= min(_LEAST_ROWS, rows.max())
    if not rows.any():
        return section(
            "Calibration",
            paragraph("This model has no probabilities: it was fitted with the squared loss on more than two classes."),
        )
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
        bounds=((low, 1.0), (low, 1.0)),
        diagonal=True,
    )
    listed = [
        (f"{100 * s / n:.1f} %", f"{100 * r / n:.1f} %", number(int(n)))
        for n, s, r in zip(rows, sure, right, strict=True)
        if n
    ]
    return section(
        "Calibration",
        paragraph(f"On the dashed line the model is right as often as it says. {source}"),
        '<div class="pair"><div>',
        chart,
        "</div><div>",
        paragraph(f"Mean distance from the line, weighted by rows: {100 * gap:.1f} percentage points."),
        details("The figures", table("Calibration", ("mean probability", "right", "rows"), listed, (0, 1, 2))),
        "</div></div>",
    )


def convergence(model: TableModel) -> str:
    """Objective of every train, sweep by sweep."""
    history = model.estimator.history_
    if not history or "objective" not in history[0]:
        start = "the exact solution" if model.estimator.plan_.init == "dual" else "the linear start"
        return section("Convergence", paragraph(f"The model made no sweep: it is {start}."))
    names = read_model(model.estimator).train_names
    series: list[tuple[str, list[tuple[float, float]]]] = [(name, []) for name in names]
    for record in history:
        series[record["train"]][1].append((float(record["sweep"]), float(record["objective"])))
    sweeps = sorted({int(record["sweep"]) for record in history})
    chart = line_chart(
        "Convergence",
        series,
        ("sweep", "objective"),
        "Objective after every sweep. "
        + "; ".join(
            f"{name}: {line[0][1]:.4g} at first, {line[-1][1]:.4g} at last" for name, line in series[:6] if line
        ),
        x_ticks=sweeps if len(sweeps) <= 12 else None,
    )
    reasons = {"tolerance": "the objective no longer changed", "max_sweeps": "the largest number of sweeps was made"}
    reason = reasons.get(model.estimator.stop_reason_, model.estimator.stop_reason_)
    seen = {record.get("n_rows") for record in history}
    note = (
        "The first sweeps saw a part of the rows, so that their objectives compare only roughly."
        if len(seen) > 1
        else ""
    )
    rows = [
        (names[record["train"]], str(record["sweep"]), number(record["objective"]), number(record.get("n_rows")),
         f"{record['seconds']:.2f}")
        for record in history[:200]
    ]  # fmt: skip
    return section(
        "Convergence",
        paragraph(f"The mean loss with its regularisation, after each sweep. It stopped because {reason}. {note}"),
        chart,
        details("The figures", table("Sweeps", ("train", "sweep", "objective", "rows", "seconds"), rows, (1, 2, 3, 4))),
    )


def importances(model: TableModel, X: NDArray) -> str:
    """Importances of columns, and of pairs of them."""
    found = column_importances(model, X)
    shown = found.columns[:_MAX_BARS]
    chart = bar_chart(
        "Importances of the columns",
        [(name, share, percent(share)) for name, share in shown],
        "Columns by importance: " + "; ".join(f"{name} {percent(share)}" for name, share in shown),
    )
    pairs = [(f"{one} * {two}", percent(share)) for one, two, share in found.pairs[:10] if share > 0]
    pairs.append(("three and more columns", percent(found.higher)))
    rest = found.columns[_MAX_BARS:]
    listed = table("Further columns", ("column", "importance"), [(name, percent(share)) for name, share in rest], (1,))
    return section(
        "Importances",
        paragraph(
            "Share of the variance of the scores that a column takes part in, columns taken as independent and "
            "distributed as in these rows (total Sobol indices, scaled to 100 %)."
        ),
        '<div class="pair"><div>',
        chart,
        details(f"{len(rest)} further columns", listed) if rest else "",
        "</div><div>",
        table("Strongest interactions: share of the variance", ("columns", "share"), pairs, (1,)),
        "</div></div>",
    )


def terms(model: TableModel, X: NDArray) -> str:
    """The strongest terms of every polynomial."""
    names = read_model(model.estimator).train_names
    parts = [
        paragraph(
            "The terms that make the scores vary most on these rows. The effect is a term's standard deviation. "
            + _about_signs(model)
        )
    ]
    for index, name in enumerate(names[:_MAX_CLASSES]):
        content = _term_bars(model, X, index)
        parts.append(content if len(names) == 1 else details(f"for {name}", content))
    if len(names) > _MAX_CLASSES:
        parts.append(paragraph(f"{len(names) - _MAX_CLASSES} further polynomials are left out.", "note"))
    return section("Strongest terms", *parts)


def _about_signs(model: TableModel) -> str:
    if all(feature_map.powers is not None for feature_map in model.estimator.maps_):
        return (
            "It has the sign of the term's slope: a positive one raises the score where the columns lie above their "
            "means. A power stands for what it adds to lower powers."
        )
    return (
        "f1(x), f2(x), … are the functions of a column that the model has, each without what those before it have in "
        "common with it. Those of numbers are positive at the largest value."
    )


def _term_bars(model: TableModel, X: NDArray, index: int) -> str:
    found = strongest_terms(model, X, _MAX_TERMS, index)
    signed = list(zip(found.names, found.effects.tolist(), strict=True))
    title = f"Strongest terms for {found.train_name}"
    chart = bar_chart(
        title,
        [(name, value, f"{value:+.4g}") for name, value in signed],
        f"{title}: " + "; ".join(f"{name} {value:+.4g}" for name, value in signed),
    )
    rows = [
        (name, f"{value:+.5g}", percent(share))
        for (name, value), share in zip(signed, found.shares.tolist(), strict=True)
    ]
    proof = "proven to be the strongest" if found.exact else "not proven to be the strongest"
    return (
        paragraph(f"For {found.train_name}, {proof}.", "note")
        + chart
        + details("The figures", table("Strongest terms", ("term", "effect", "share of the variance"), rows, (1, 2)))
        + _coefficients(model, index)
    )


def _coefficients(model: TableModel, index: int) -> str:
    """The polynomial's largest terms, where they say something: one-hot features of older files exclude each other."""
    polynomial = all(feature_map.powers is not None for feature_map in model.estimator.maps_)
    if not polynomial or any(isinstance(column, CategoryColumn) for column in model.preparation.columns):
        return ""
    found = top_terms(model.estimator, _MAX_TERMS, train=index, feature_names=model.preparation.feature_names)
    rows = [(name, f"{value:.6g}") for name, value in zip(found.names, found.coefficients.tolist(), strict=True)]
    proof = "proven to be" if found.exact else "not proven to be"
    caption = f"Coefficients in {found.units} features, {proof} those of the largest terms"
    return details("Coefficients of the polynomial", table(caption, ("term", "coefficient"), rows, (1,)))


def cost(model: TableModel, file_bytes: int, n_rows: int, seconds: float) -> str:
    """What the model takes: memory, arithmetic, time."""
    estimator = model.estimator
    multiplications = sum(
        core.size + core.shape[0] * core.shape[2] for train in estimator.trains_ for core in train.cores
    )
    dims = estimator.plan_.dims
    digits = sum(np.log10(n) for n in dims)
    full = f"about 10^{digits:.0f}" if digits > 9 else number(int(np.prod(dims)))
    rows = [
        ("model file", f"{number(file_bytes)} bytes"),
        ("stored coefficients", number(estimator.n_parameters_)),
        ("polynomials", number(len(estimator.trains_))),
        ("coefficients of each, written out", full),
        ("multiplications per row", f"about {number(int(multiplications))}"),
        ("reading and scoring here", f"{number(int(n_rows / seconds))} rows per second" if seconds > 0 else "-"),
    ]
    if isinstance(fit := model.training.get("fit_seconds"), float):
        rows.append(("time of the fit", f"{fit:.2f} s"))
    if isinstance(total := model.training.get("total_seconds"), float):
        rows.append(("time with the measurement of its error", f"{total:.2f} s"))
    return section("Cost", table("Cost", ("what", "how much"), rows))
