"""Reports about estimators and rows in memory, and about models and tables in files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from polytrain.atomic_file import write_atomically
from polytrain.checks import check_weights, need
from polytrain.evaluation import Answers, RowSample
from polytrain.explain.view import ModelView, read_model
from polytrain.learning.losses import get_loss
from polytrain.models import FittedModel, fitted_model
from polytrain.plotting.style import COLOURS, DARK_COLOURS, DARK_PAPER, PAPER
from polytrain.reporting.accuracy import ScoredRows, calibration_section, compare, error_section
from polytrain.reporting.effects import ColumnEffects, effect_section, row_pictures
from polytrain.reporting.training import settings_section, training_section
from polytrain.rows.checking import check_offset
from polytrain.tables import ReadOptions, TableModel
from polytrain.texts import number_text, percent_text, printable, short_list
from polytrain.version import __version__

# Largest number of rows for curves, comparisons and explanations.
_MOST_ROWS = 20_000
# Columns whose values are shown beside the worst rows.
_MOST_VALUES = 4


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a model, ``html``, with the heading ``title``; a notebook shows it in a frame."""

    html: str
    title: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write_atomically(path, [self.html.encode("utf-8", "replace")])

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.html) / 1024:.0f} KiB)"

    def _repr_html_(self) -> str:
        # In a frame, to separate the styles of page and notebook; scripts are disabled.
        title, style = escape(printable(self.title)), "width:100%;height:40rem;border:0"
        return f'<iframe sandbox="" title="{title}" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def report(
    model: Any,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    sample_weight_train: ArrayLike | None = None,
    offset_train: ArrayLike | None = None,
    title: str | None = None,
) -> Report:
    """Make an HTML page about a fitted estimator and its errors on given rows, to show to others.

    It shows the error with an interval, those of a linear model and the best constant, and curves; calibration; effects
    of columns and pairs; explanations of three rows; the trials of the fit; and the settings. Needs matplotlib and
    Jinja, the extra ``report``.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor, or Pipeline that ends with one
        A fitted estimator. Of a pipeline, the input columns of the last step are explained.
    X : array-like or frame of shape (N, d)
        Rows, preferably not those that the model was fitted on.
    y : array-like of shape (N,)
        Their targets.
    path : path-like, optional
        HTML file to write.
    sample_weight, offset : array-like of shape (N,), optional
        Weights of the rows, and the logarithms of their exposures.
    X_train, y_train, sample_weight_train, offset_train : optional
        Training rows with their targets, weights and offsets, for a linear model to compare with.
    title : str, optional
        Heading of the page.

    Returns
    -------
    Report
        The page, which needs no network and no script. Its size is a few hundred KiB.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import polytrain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = polytrain.TensorTrainClassifier(rank=2, alpha=1e-3, max_sweeps=2, random_state=0).fit(X[::2], y[::2])
    >>> page = polytrain.report(model, X[1::2], y[1::2], title="Iris")
    >>> "petal width (cm)" in page.html, "<script" in page.html
    (True, False)
    """
    need("a report", "report", "jinja2", "matplotlib")
    _check_one_output(fitted_model(model[-1] if isinstance(model, Pipeline) else model, "a report"))
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train must be passed together. Pass both, or neither.")
    view, started, sample = read_model(model, any_steps=True), time.perf_counter(), RowSample(_MOST_ROWS)
    rows, every = _rows(view, X, y, sample_weight, offset)
    sample.add(rows)
    seconds = time.perf_counter() - started
    train = None
    if X_train is not None and y_train is not None:
        train = _rows(view, X_train, y_train, sample_weight_train, offset_train)
    title, target = type(view.estimator).__name__ if title is None else str(title), getattr(y, "name", None)
    places, target = np.arange(every.n)[sample.places], None if target is None else str(target)
    scored = ScoredRows(view.on_features(), every, sample.rows, places, target, "rows from Python", seconds)
    return _make_page(scored, title, path, train)


def _check_one_output(fitted: FittedModel) -> None:
    if not fitted.one_output:
        raise ValueError(
            f"the model predicts {fitted.n_trains} numbers per row, but a report is about one; fit a model per target."
        )


def _rows(
    view: ModelView, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, offset: ArrayLike | None
) -> tuple[NDArray, Answers]:
    """Features (N, d) and answers of the rows of positive weight."""
    rows, classes = view.rows(X), view.fitted.classes
    if classes is None:
        targets = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
    else:
        labels, places = column_or_1d(np.asarray(y)).tolist(), {label: k for k, label in enumerate(classes.tolist())}
        targets = np.array([places.get(label, -1) for label in labels], dtype=np.intp)
        if (targets < 0).any():
            raise ValueError(
                f"y holds {labels[targets.argmin()]!r:.60}, which is not one of the model's classes "
                f"{short_list(classes)}. Leave such rows out."
            )
    check_consistent_length(rows, targets)
    weights = None if sample_weight is None else check_weights(sample_weight, len(rows))
    kept = np.ones(len(rows), dtype=bool) if weights is None else weights > 0
    offsets = None if offset is None else check_offset(offset, get_loss(view.fitted.loss), len(rows))
    offsets, weights = (None if values is None else values[kept] for values in (offsets, weights))
    return rows[kept], Answers.of(view.fitted, rows[kept], targets[kept], offset=offsets, weights=weights)


def report_table(
    model: TableModel,
    data: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    train: str | os.PathLike[str] | None = None,
    title: str | None = None,
    reading: ReadOptions | None = None,
    file_bytes: int | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> Report:
    """Make a page about a model and its errors on a table in a file: ``polytrain report`` in one call.

    Parameters
    ----------
    model : TableModel
        The model.
    data : path-like
        A table with the target, preferably of rows that the model was not fitted on.
    path : path-like, optional
        HTML file to write.
    train : path-like, optional
        Training rows, for a linear model to compare with.
    title : str, optional
        Heading of the page.
    reading : ReadOptions, optional
        How to read the files; detected by default.
    file_bytes : int, optional
        Size of the model file.
    say : callable, optional
        Called with notes about rows and labels that are changed or left out.
    **options
        See `TableModel.blocks`.

    Returns
    -------
    Report

    See Also
    --------
    polytrain.report : The same for rows in memory.
    """
    need("a report", "report", "jinja2", "matplotlib")
    _check_one_output(model.fitted)
    name = "standard input" if str(data) == "-" else Path(data).name
    started, options = time.perf_counter(), {"reading": reading, "say": say, "most_rows": _MOST_ROWS, **options}
    every, sample = model.read_answers(data, **options)
    seconds = time.perf_counter() - started
    learned = None
    if train is not None:
        others, kept = model.read_answers(train, **options)
        learned = kept.rows, others.only(kept.places)
    places = np.arange(every.n)[sample.places]
    target = model.layout.targets[0] if model.layout.targets else None
    scored = ScoredRows(model.view, every, sample.rows, places, target, name, seconds, file_bytes, model.training)
    return _make_page(scored, name if title is None else title, path, learned)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        if isinstance(value, Markup):
            return value
        text = number_text(value) if isinstance(value, int) else printable(value)
        return text.replace(" %", "\N{NO-BREAK SPACE}%")

    loader = PackageLoader("polytrain.reporting")
    environment = Environment(loader=loader, autoescape=True, finalize=shown, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number_text, "percent": percent_text}
    return environment.get_template("page.html.jinja")


def _make_page(
    rows: ScoredRows, title: str, path: str | os.PathLike[str] | None, train: tuple[NDArray, Answers] | None
) -> Report:
    """Make the report, and write it to ``path`` if given.

    ``train`` has features and answers of the training rows, for a linear model to compare with.
    """
    comparisons, effects = compare(rows, train), ColumnEffects(rows)
    important = list(effects.importances)
    html = _template().render(
        title=title,
        version=__version__,
        schemes=((PAPER, COLOURS), (DARK_PAPER, DARK_COLOURS)),
        scored=rows,
        most_important=rows.view.column_names[important[0]],
        comparisons=comparisons,
        warnings=rows.view.estimator.warnings_,
        errors=error_section(rows, comparisons, important[:_MOST_VALUES]),
        calibration=calibration_section(rows),
        effects=effect_section(rows, effects),
        rows=row_pictures(rows, effects.measure),
        training=training_section(rows),
        settings=settings_section(rows),
    )
    page = Report(html.lstrip(), title)
    if path is not None:
        page.save(path)
    return page
