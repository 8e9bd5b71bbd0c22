"""Put the sections of a report together."""

from __future__ import annotations

from numpy.typing import NDArray

from polytrain.reporting.answer import answer, calibration, compared, in_one_sentence
from polytrain.reporting.evidence import ScoredRows
from polytrain.reporting.insights import Insights
from polytrain.reporting.matters import three_rows, what_matters
from polytrain.reporting.page import cards, make_page, number, paragraph, percent
from polytrain.reporting.training import settings, tried
from polytrain.tables.evaluation import ClassificationErrors, RegressionErrors
from polytrain.tables.facts import model_facts
from polytrain.texts import page_text
from polytrain.version import __version__

__all__ = ["build_report"]

# Columns whose values are shown beside the worst rows.
_MOST_VALUES = 4


def build_report(
    counted: ClassificationErrors | RegressionErrors,
    scored: ScoredRows,
    *,
    title: str,
    data_name: str,
    train: tuple[NDArray, NDArray] | None = None,
    file_bytes: int | None = None,
    seconds: float = 0.0,
) -> str:
    """Return the HTML of a report.

    Parameters
    ----------
    counted : ClassificationErrors or RegressionErrors
        Errors of a model on a table.
    scored : ScoredRows
        The model and the rows of the table, or an even sample of them.
    title : str
        Heading of the page.
    data_name : str
        Name of the rows.
    train : (X, y), optional
        Prepared rows that a linear model learns from, to compare with; without them there is none.
    file_bytes : int, optional
        Size of the model file.
    seconds : float, default=0.0
        Time that reading and scoring the table took; 0 if that is not known.

    Returns
    -------
    str
        A page that needs nothing else: no network, no script.
    """
    model = scored.model
    insights = Insights(model, scored.X)
    found = compared(counted, scored, train)
    top = [
        f"<h1>{page_text(title)}</h1>",
        paragraph(in_one_sentence(found, model.is_classifier, _target(scored), counted.n), "lead"),
        cards(_cards(counted, scored, insights)),
    ]
    columns = [name for name, _ in insights.importances[:_MOST_VALUES]]
    sections = [
        answer(counted, scored, found, columns),
        calibration(counted, scored),
        what_matters(insights, scored),
        three_rows(insights, scored),
        tried(model),
        settings(model, model_facts(model.estimator), data_name, counted.n, file_bytes=file_bytes, seconds=seconds),
    ]
    return make_page(title, top, sections, f"Made by polytrain {__version__}.")


def _target(scored: ScoredRows) -> str:
    name = "the target" if scored.model.target is None else scored.model.target
    if not scored.model.is_classifier:
        return f"{name}, a number"
    labels = [str(label) for label in scored.model.estimator.classes_]
    shown = ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "")
    return f"{name}, one of {len(labels)} classes ({shown})"


def _cards(
    counted: ClassificationErrors | RegressionErrors, scored: ScoredRows, insights: Insights
) -> list[tuple[str, str]]:
    figures = counted.summary()
    if isinstance(counted, ClassificationErrors):
        items = [("error", percent(figures["error"]))]
        items += [("log loss", number(figures["log_loss"]))] if "log_loss" in figures else []
    else:
        items = [("root mean squared error", number(figures["rmse"])), ("R²", number(figures["r2"]))]
    items += [
        ("rows", number(counted.n)),
        ("columns", number(scored.model.view.n_columns)),
        ("matters most", insights.importances[0][0]),
    ]
    return items
