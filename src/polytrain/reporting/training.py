"""The trials and choices of the fit, its sweeps, and all settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from polytrain.choice import LITTLE
from polytrain.estimators.summary import model_facts
from polytrain.plotting import ConvergenceDisplay
from polytrain.plotting.style import PAPER, draw_lines
from polytrain.reporting.accuracy import ScoredRows
from polytrain.reporting.pictures import picture, table
from polytrain.texts import number_text, percent_text

_REASONS = {"tolerance": "the objective no longer changed", "max_sweeps": "the largest number of sweeps was reached"}


def training_section(rows: ScoredRows) -> dict[str, Any]:
    """The reasons for the choice, and pictures of the trials and the sweeps."""
    estimator, pictures = rows.view.estimator, []
    reasons = [f"{reason[:1].upper()}{reason[1:]}." for reason in estimator.choice_.reasons]
    trials = estimator.choice_.tried
    if not trials:
        reasons = ["All settings were given, so there were no trials."]
    elif any(np.isfinite(trial.error) for trial in trials):
        pictures.append(_trials(trials))
    if estimator.history_ and "objective" in estimator.history_[0]:
        pictures.append(_convergence(estimator, rows.view.fitted.train_names))
    else:
        start = "the exact solution" if estimator.plan_.init == "dual" else "the linear start"
        reasons.append(f"The model made no sweeps: it is {start}.")
    return {"reasons": reasons, "pictures": pictures}


def _trials(trials: Any) -> dict[str, Any]:
    """Errors of all trials in their order, a colour for each step of the choice."""
    errors = np.array([trial.error for trial in trials], dtype=float)
    steps = np.array(["basis" if trial.step == "maps" else trial.step for trial in trials])
    kinds = list(dict.fromkeys(steps.tolist()))
    finite, best = errors[np.isfinite(errors)], int(np.nanargmin(errors))
    # Errors far above the others would compress the axis.
    shown = errors <= max(np.quantile(finite, 0.9), 3 * np.median(finite) - 2 * finite.min())
    hidden = len(finite) - int(shown.sum())

    def draw(ax: Any) -> None:
        places = [np.flatnonzero((steps == step) & shown) for step in kinds]
        draw_lines(ax, [(where + 1, errors[where]) for where in places], kinds, joined=False)
        ax.plot(best + 1, errors[best], "o", markersize=13, markerfacecolor="none", color=PAPER["ink"])
        ax.set(xlabel="trial", ylabel="mean loss on held-out rows")

    loss, head = "Mean loss on held-out rows", ("step", "basis", "bandwidth", "alpha", "rank", "rows", "error")
    lines = [
        (t.step, t.basis, *map(number_text, (t.bandwidth, t.alpha)), t.rank or "any", t.n_rows, number_text(t.error))
        for t in trials
    ]
    counts = ", ".join(f"{(steps == step).sum()} for the {step}" for step in kinds)
    words = f"{loss}; the smallest, of trial {best + 1}, is {number_text(errors[best])}. {counts}"
    about = "each point is a model; the best one is circled" + (f"; {hidden} far above left out" if hidden else "")
    return picture("Trials", words, draw, about=about, table=table(loss, head, lines, 2), summary="All trials")


def _convergence(estimator: Any, names: Any) -> dict[str, Any]:
    last = {names[record["train"]]: record["objective"] for record in estimator.history_}
    note = f"It stopped because {_REASONS.get(estimator.stop_reason_, estimator.stop_reason_)}."
    return picture(
        "Convergence",
        "Objective after the last sweep: " + "; ".join(f"{name} {number_text(value)}" for name, value in last.items()),
        lambda ax: ConvergenceDisplay.from_estimator(estimator, ax=ax),
        about="mean loss with its regularisation",
        note=note,
    )


def settings_section(rows: ScoredRows) -> dict[str, Any]:
    """Tables of the model, the data, the cost and the columns."""
    view, facts = rows.view, model_facts(rows.view.estimator)
    if (labels := facts.get("classes")) is not None:
        more = f" and {number_text(len(labels) - 50)} more" if len(labels) > 50 else ""
        facts["classes"] = f"{number_text(len(labels))}: {', '.join(labels[:50])}{more}"
    data = {"evaluated on": rows.source, "rows evaluated": rows.every.n, "target": rows.target or "not recorded"}
    columns = []
    for k, (group, relevance) in enumerate(zip(view.groups, rows.relevances, strict=True)):
        needed = f"{relevance:.2f}{', hardly needed' if relevance < LITTLE else ''}"
        missing = "learned" if any(view.fitted.maps[j].has_missing for j in group) else "none in training"
        columns.append((view.column_names[k], view.column(k).kind, ", ".join(view.levels(k) or ()), missing, needed))
    tables = {"Model": facts, "Data, and facts about the training": data | rows.training, "Cost": _cost(rows)}
    head = ("property", "value")
    return {
        "tables": [table(name, head, [_fact(*fact) for fact in lines.items()], None) for name, lines in tables.items()],
        "columns": table("Columns", ("column", "kind", "categories", "missing cells", "relevance"), columns, None),
        "summary": f"{len(columns)} columns, {sum(column[1] == 'category' for column in columns)} of them categories",
    }


def _fact(name: str, value: Any) -> tuple[str, str]:
    text = number_text(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    if isinstance(value, float) and name.endswith("error"):
        text = percent_text(value)
    elif isinstance(value, float) and name.endswith("seconds"):
        text += " s"
    return name.replace("_", " "), text


def _cost(rows: ScoredRows) -> dict[str, str]:
    """Memory, arithmetic and time."""
    fitted = rows.view.fitted
    n_products = sum(core.size + core.shape[0] * core.shape[2] for train in fitted.trains for core in train.cores)
    digits = sum(np.log10(n) for n in fitted.maps.dims)
    return {
        **({} if rows.file_bytes is None else {"model file": f"{number_text(rows.file_bytes)} bytes"}),
        "coefficients of the full tensor": f"10^{digits:.0f}" if digits > 9 else number_text(np.prod(fitted.maps.dims)),
        "multiplications per row": f"about {number_text(n_products)}",
        "reading and scoring": f"{number_text(int(rows.every.n / max(rows.seconds, 1e-9)))} rows per second",
    }
