"""Last part of a report: what was tried and chosen, how the fit went, and all settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from polytrain.explain.view import read_model
from polytrain.reporting.charts import line_chart
from polytrain.reporting.page import details, figure, grid, number, paragraph, percent, section, table
from polytrain.reporting.subject import Subject

__all__ = ["settings", "tried"]

_MOST_RECORDS = 200


def tried(model: Subject) -> tuple[str, str]:
    """Pictures of what was tried and of the sweeps."""
    choice = model.estimator.choice_
    words = [paragraph(reason[:1].upper() + reason[1:] + ".") for reason in choice.reasons]
    if not choice.tried:
        words = [paragraph("All settings were given: nothing was tried.")]
    return section("What was tried", *words, grid(_trials(model), _convergence(model)))


def _trials(model: Subject) -> str:
    """Errors of all that was tried, in its order, a colour for every question."""
    trials = model.estimator.choice_.tried
    points: dict[str, list[tuple[float, float]]] = {}
    for k, trial in enumerate(trials):
        if np.isfinite(trial.error):
            points.setdefault(trial.step, []).append((float(k + 1), float(trial.error)))
    if not points:
        return ""
    words = {"maps": "kind of functions"}
    series = [(words.get(step, step), some) for step, some in points.items()]
    # What is far above the others would press them together.
    errors = np.array([error for some in points.values() for _, error in some])
    most = max(float(np.quantile(errors, 0.9)), 3 * float(np.median(errors)) - 2 * float(errors.min()))
    shown = [(name, [point for point in some if point[1] <= most] or some[:1]) for name, some in series]
    chart = line_chart(
        "What was tried",
        shown,
        ("trial", "mean loss on rows left out"),
        f"Error of {len(errors)} trials on rows that were left out, by what was to be decided: "
        + "; ".join(f"{name}, {len(some)} trials, best {min(error for _, error in some):.4g}" for name, some in series),
        joined=False,
        ringed=min((point for some in points.values() for point in some), key=lambda point: point[1]),
    )
    rows = [
        (t.step, t.basis, number(t.bandwidth), number(t.alpha), str(t.rank or "any"), number(t.n_rows), number(t.error))
        for t in trials
    ]
    head = ("step", "functions", "bandwidth", "alpha", "rank", "rows", "error")
    listed = table("What was tried: mean loss on rows that were left out", head, rows, (2, 3, 4, 5, 6))
    hidden = len(errors) - sum(len(some) for _, some in shown)
    about = "each point is a model, the best is ringed" + (f"; {hidden} far above are not shown" if hidden else "")
    return figure("What was tried", chart, about, details("How the settings were chosen", listed))


def _convergence(model: Subject) -> str:
    """Objective of every train, sweep by sweep."""
    history = model.estimator.history_
    if not history or "objective" not in history[0]:
        start = "the exact solution" if model.estimator.plan_.init == "dual" else "the linear start"
        return f"<div>{paragraph(f'The model made no sweep: it is {start}.')}</div>"
    names = read_model(model.estimator).train_names
    series: list[tuple[str, list[tuple[float, float]]]] = [(name, []) for name in names]
    for record in history:
        series[record["train"]][1].append((float(record["sweep"]), float(record["objective"])))
    series = [(name, line) for name, line in series if line]
    sweeps = sorted({int(record["sweep"]) for record in history})
    chart = line_chart(
        "Convergence",
        series,
        ("sweep", "objective"),
        "Objective after every sweep. "
        + "; ".join(f"{name}: {line[0][1]:.4g} at first, {line[-1][1]:.4g} at last" for name, line in series[:6]),
        x_ticks=sweeps if len(sweeps) <= 12 else None,
    )
    reasons = {"tolerance": "the objective no longer changed", "max_sweeps": "the largest number of sweeps was made"}
    reason = reasons.get(model.estimator.stop_reason_, model.estimator.stop_reason_)
    seen = {record.get("n_rows") for record in history}
    note = f"The mean loss with its regularisation, after each sweep. It stopped because {reason}."
    if len(seen) > 1:
        note += " The first sweeps saw a part of the rows, so that their objectives compare only roughly."
    rows = [
        (names[record["train"]], str(record["sweep"]), number(record["objective"]), number(record.get("n_rows")),
         f"{record['seconds']:.2f}")
        for record in history[:_MOST_RECORDS]
    ]  # fmt: skip
    head = ("train", "sweep", "objective", "rows", "seconds")
    listed = details("The figures", table("Sweeps", head, rows, (1, 2, 3, 4)))
    return figure("Convergence", chart, "", paragraph(note, "note") + listed)


def settings(
    model: Subject, facts: dict[str, Any], data_name: str, n_rows: int, *, file_bytes: int | None, seconds: float
) -> tuple[str, str]:
    """All that is known about the model, the data and the cost."""
    shown = {**facts, "parameters": number(facts["parameters"])}
    if "classes" in shown:
        labels = shown["classes"]
        shown["classes"] = f"{len(labels)}: {', '.join(labels[:12])}{', …' if len(labels) > 12 else ''}"
    rows = [(name.replace("_", " "), _fact(name, value)) for name, value in shown.items()]
    known = [("evaluated on", data_name), ("rows evaluated", number(n_rows))]
    known += [("target", model.target or "not recorded")]
    known += [(name.replace("_", " "), _fact(name, value)) for name, value in model.training.items()]
    return section(
        "Settings",
        grid(
            table("The model", ("property", "value"), rows),
            table("The data; training facts as recorded by fit", ("property", "value"), known),
            table("Cost", ("what", "how much"), _cost(model, file_bytes, n_rows, seconds)),
        ),
        _columns(model),
    )


def _columns(model: Subject) -> str:
    levels = model.levels
    columns = [
        (
            name,
            "category" if k in levels else "number",
            ", ".join(levels.get(k, ())),
            "learned" if model.fitted.maps[k].has_missing else "none in training",
        )
        for name, k in model.places.items()
    ]
    return details(
        f"{len(columns)} columns, {len(levels)} of them categories",
        table("Columns", ("column", "kind", "categories", "missing cells"), columns),
    )


def _fact(name: str, value: Any) -> str:
    if isinstance(value, float) and name.endswith("error"):
        return percent(value)
    if isinstance(value, float):
        return f"{value:.2f} s" if name.endswith("seconds") else number(value)
    return number(value) if isinstance(value, int) else str(value)


def _cost(model: Subject, file_bytes: int | None, n_rows: int, seconds: float) -> list[tuple[str, str]]:
    """What the model takes: memory, arithmetic, time."""
    estimator = model.estimator
    multiplications = sum(
        core.size + core.shape[0] * core.shape[2] for train in estimator.trains_ for core in train.cores
    )
    dims = estimator.plan_.dims
    digits = sum(np.log10(n) for n in dims)
    full = f"about 10^{digits:.0f}" if digits > 9 else number(int(np.prod(dims)))
    rows = [] if file_bytes is None else [("model file", f"{number(file_bytes)} bytes")]
    rows += [
        ("stored coefficients", number(estimator.n_parameters_)),
        ("trains", number(len(estimator.trains_))),
        ("coefficients of each, written out", full),
        ("multiplications per row", f"about {number(int(multiplications))}"),
        ("reading and scoring here", f"{number(int(n_rows / seconds))} rows per second" if seconds > 0 else "-"),
    ]
    if isinstance(fit := model.training.get("fit_seconds"), float):
        rows.append(("time of the fit", f"{fit:.2f} s"))
    if isinstance(total := model.training.get("total_seconds"), float):
        rows.append(("time with the measurement of its error", f"{total:.2f} s"))
    return rows
