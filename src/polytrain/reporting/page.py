"""The HTML page of a report: facts and pictures in a template."""

from __future__ import annotations

from functools import cache
from typing import Any

from numpy.typing import NDArray

from polytrain.plotting import COLOURS, DARK_COLOURS, DARK_PAPER, PAPER
from polytrain.reporting.effects import ColumnEffects, effect_section, row_section
from polytrain.reporting.errors import calibration_section, compare, error_section
from polytrain.reporting.pictures import number, percent
from polytrain.reporting.scored import ScoredRows
from polytrain.reporting.training import settings_section, training_section
from polytrain.texts import printable
from polytrain.version import __version__

__all__ = ["build_page", "check_extra"]

# Columns whose values are shown beside the worst rows, and classes that are named.
_MOST_VALUES, _MOST_CLASSES = 4, 6


def check_extra() -> None:
    """Raise an error if the packages that draw the page are missing."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"a report needs {error.name}, which is not installed: pip install 'polytrain[report]'."
        ) from error


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    def harmless(value: Any) -> Any:
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    loader = PackageLoader("polytrain.reporting")
    environment = Environment(loader=loader, autoescape=True, finalize=harmless, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("page.html.jinja")


def build_page(
    rows: ScoredRows,
    *,
    title: str,
    data_name: str,
    train: tuple[NDArray, NDArray] | None = None,
    file_bytes: int | None = None,
    seconds: float = 0.0,
) -> str:
    """Return the HTML of a report.

    ``train`` has features and targets of the training rows, for a linear model to compare with, ``file_bytes`` is the
    size of the model file, and ``seconds`` the time that reading and scoring took; 0 if it is not known.
    """
    comparisons, effects = compare(rows, train), ColumnEffects(rows)
    important = list(effects.importances)
    figures, labels, target = rows.errors.summary(), rows.labels, rows.target or "the target"
    if labels is None:
        target += ", a number"
        cards = [("root mean squared error", number(figures["rmse"])), ("R²", number(figures["r2"]))]
    else:
        more = ", …" if len(labels) > _MOST_CLASSES else ""
        target += f", one of {len(labels)} classes ({', '.join(labels[:_MOST_CLASSES])}{more})"
        cards = [("error", percent(figures["error"]))]
        cards += [("log loss", number(figures["log_loss"]))] if "log_loss" in figures else []
    cards += [("rows", number(rows.errors.n)), ("columns", number(rows.view.n_columns))]
    cards.append(("most important", rows.view.column_names[important[0]]))
    schemes = [
        {**paper, **{f"series{k}": colour for k, colour in enumerate(colours)}}
        for paper, colours in ((PAPER, COLOURS), (DARK_PAPER, DARK_COLOURS))
    ]
    page: str = _template().render(
        title=title,
        version=__version__,
        schemes=schemes,
        target=target,
        cards=cards,
        is_classifier=labels is not None,
        comparisons=[(one.name, *one.texts(labels is not None)) for one in comparisons],
        n_rows=number(rows.errors.n),
        n_sampled=number(len(rows.X)) if len(rows.X) < rows.errors.n else None,
        errors=error_section(rows, comparisons, important[:_MOST_VALUES]),
        calibration=calibration_section(rows),
        effects=effect_section(rows, effects),
        rows=row_section(rows),
        training=training_section(rows),
        settings=settings_section(rows, data_name, file_bytes, seconds),
    )
    return page.lstrip()
