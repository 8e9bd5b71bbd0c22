"""Put the sections of a report together."""

from __future__ import annotations

from html import escape
from typing import Any

from numpy.typing import NDArray

from polytrain.report import sections
from polytrain.report.page import cards, make_page, paragraph
from polytrain.tables import TableModel
from polytrain.tables.evaluation import ClassificationErrors, RegressionErrors
from polytrain.version import __version__

__all__ = ["build_report"]


def build_report(
    model: TableModel,
    counted: ClassificationErrors | RegressionErrors,
    X: NDArray,
    *,
    facts: dict[str, Any],
    model_name: str,
    data_name: str,
    file_bytes: int,
    seconds: float,
) -> str:
    """Return the HTML of a report.

    Parameters
    ----------
    model : TableModel
        The model.
    counted : ClassificationErrors or RegressionErrors
        Its errors on the table.
    X : ndarray of shape (N, d)
        Prepared rows, or a sample of them, for the importances.
    facts : dict
        Properties of the model for its card.
    model_name, data_name : str
        Names of the files.
    file_bytes : int
        Size of the model file.
    seconds : float
        Time that reading and scoring the table took.

    Returns
    -------
    str
        A page that needs nothing else: no network, no script.
    """
    figures = counted.summary()
    if isinstance(counted, ClassificationErrors):
        top = [("error", sections.percent(figures["error"]))]
        top += [("log loss", sections.number(figures["log_loss"]))] if "log_loss" in figures else []
    else:
        top = [("root mean squared error", sections.number(figures["rmse"]))]
        top += [("R²", sections.number(figures["r2"]))]
    top += [
        ("rows evaluated", sections.number(counted.n)),
        ("features", sections.number(facts["features"])),
        ("coefficients", sections.number(facts["parameters"])),
        ("model file", f"{file_bytes / 1024:.1f} KiB"),
    ]
    body = [
        f"<header>\n<h1>{escape(model_name)} on {escape(data_name)}</h1>",
        paragraph(_summary(facts)),
        cards(top),
        "</header>",
        sections.data_and_model(model, facts, data_name, counted.n),
        sections.errors(counted),
    ]
    if isinstance(counted, ClassificationErrors):
        body.append(sections.calibration(counted))
    body += [
        sections.convergence(model),
        sections.importances(model, X),
        sections.terms(model, X),
        sections.cost(model, file_bytes, counted.n, seconds),
    ]
    return make_page(f"{model_name} on {data_name}", body, f"Made by polytrain {__version__}.")


def _summary(facts: dict[str, Any]) -> str:
    kind = f"{len(facts['classes'])} classes" if "classes" in facts else "a number"
    what = (
        f"A polynomial in {facts['features']} features, each of degree {facts['degree']} at most"
        if "degree" in facts
        else f"Products of functions of {facts['features']} features, at most {facts['functions']} of each"
    )
    verb = "predicts" if "degree" in facts else "predict"
    return (
        f"{what}, that {verb} {kind}; kept as tensor trains of rank {facts['rank']} and fitted with the "
        f"{facts['loss']} loss."
    )
