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
from polytrain.explain.view import ModelView, read_model
from polytrain.models import FittedModel, fitted_model
from polytrain.plotting import COLOURS, DARK_COLOURS, DARK_PAPER, PAPER
from polytrain.reporting.effects import ColumnEffects, effect_section, row_section
from polytrain.reporting.errors import ScoredRows, calibration_section, compare, error_section
from polytrain.reporting.pictures import number, percent
from polytrain.reporting.training import settings_section, training_section
from polytrain.tables import ReadOptions, TableError, TableModel
from polytrain.tables.evaluation import Errors, count_errors
from polytrain.tables.row_explanations import RowSample
from polytrain.texts import page_text, printable
from polytrain.version import __version__

__all__ = ["Report", "report", "report_table"]

# Rows that curves, comparisons and explanations are made from.
_MOST_ROWS = 20_000
# Columns whose values are shown beside the worst rows, and classes that are named.
_MOST_VALUES, _MOST_CLASSES = 4, 6


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a model, which a notebook shows in a frame.

    Attributes
    ----------
    html : str
        The page.
    title : str
        Its heading.
    """

    html: str
    title: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write_atomically(path, [self.html.encode("utf-8", "replace")])

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.html) / 1024:.0f} KiB)"

    def _repr_html_(self) -> str:
        # In a frame, so that the styles of page and notebook stay apart; nothing in it may run.
        style = "width:100%;height:40rem;border:0"
        return (
            f'<iframe sandbox="" title="{page_text(self.title)}" style="{style}" srcdoc="{escape(self.html)}"></iframe>'
        )


def report(
    model: Any,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str] | None = None,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    title: str | None = None,
) -> Report:
    """Make an HTML page about a fitted estimator and its errors on given rows, to show to others.

    It has the error with an interval, beside a linear model and the best constant, and curves; calibration; effects of
    columns and pairs; three rows explained; what the fit tried; and the settings. Needs matplotlib and Jinja, the extra
    ``report``.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor, or Pipeline that ends with one
        A fitted estimator. Of a pipeline, the columns that the last step sees are explained.
    X : array-like or frame of shape (N, d)
        Rows, best those that the model was not fitted on.
    y : array-like of shape (N,)
        Their targets.
    path : path-like, optional
        HTML file to write.
    X_train, y_train : optional
        Training rows and their targets, for a linear model to compare with.
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
    _check_extra()
    before, estimator = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    fitted = fitted_model(estimator, "a report")
    _check_one_output(fitted, ValueError)
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train belong together; pass both, or none.")
    view = read_model(estimator, _names_after(before, estimator, fitted))
    started = time.perf_counter()
    rows, targets = _rows(view, before, X, y)
    errors = Errors(fitted)
    for start in range(0, len(rows), _MOST_ROWS):
        errors.add(rows[start : start + _MOST_ROWS], targets[start : start + _MOST_ROWS])
    seconds = time.perf_counter() - started
    train = None if X_train is None or y_train is None else _rows(view, before, X_train, y_train)
    places = np.arange(len(rows))[:: -(-len(rows) // _MOST_ROWS)]
    name = getattr(y, "name", None)
    scored = ScoredRows(view.on_features(), errors, rows[places], places, None if name is None else str(name))
    title = type(estimator).__name__ if title is None else str(title)
    page = Report(_build_page(scored, title=title, data_name="rows from Python", train=train, seconds=seconds), title)
    if path is not None:
        page.save(path)
    return page


def _check_one_output(fitted: FittedModel, error: type[ValueError]) -> None:
    if not fitted.one_output:
        raise error(
            f"the model predicts {fitted.n_trains} numbers per row, but a report is about one; fit a model per target."
        )


def _names_after(before: Any, estimator: Any, fitted: FittedModel) -> list[str] | None:
    """Names of the columns that the first steps of a pipeline return, where the last step does not know them."""
    if before is None or fitted.columns is not None or hasattr(estimator, "feature_names_in_"):
        return None
    try:
        names = [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError):
        return None
    return names if len(set(names)) == len(names) == fitted.n_features else None


def _rows(view: ModelView, before: Any, X: Any, y: ArrayLike) -> tuple[NDArray, NDArray]:
    """Features (N, d) and targets (N,), for classifiers as indexes of classes."""
    rows = view.rows(X if before is None else before.transform(X))
    classes = view.fitted.classes
    if classes is None:
        targets = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
    else:
        known = {label: k for k, label in enumerate(classes.tolist())}
        labels = column_or_1d(np.asarray(y)).tolist()
        unknown = next((label for label in labels if label not in known), None)
        if unknown is not None:
            raise ValueError(
                f"y holds {unknown!r:.60}, which is not one of the model's classes {list(known)!s:.100}. Leave such "
                "rows out."
            )
        targets = np.array([known[label] for label in labels], dtype=np.intp)
    check_consistent_length(rows, targets)
    return rows, targets


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
        A table with the target, best of rows that the model was not fitted on.
    path : path-like, optional
        HTML file to write.
    train : path-like, optional
        Training rows, for a linear model to compare with. Without them the page has only the linear model of the folds
        of the fit, if the model file knows it.
    title : str, optional
        Heading of the page.
    reading : ReadOptions, optional
        How to read the files; detected by default.
    file_bytes : int, optional
        Size of the model file.
    say : callable, optional
        Gets notes about rows and labels that are not taken as they are.
    **options
        See `TableModel.blocks`.

    Returns
    -------
    Report

    See Also
    --------
    polytrain.report : The same for rows in memory.
    """
    _check_extra()
    _check_one_output(model.fitted, TableError)
    name = "standard input" if str(data) == "-" else Path(data).name
    started = time.perf_counter()
    errors, sample = _read(model, data, reading, say, options)
    seconds = time.perf_counter() - started
    learned = None
    if train is not None:
        others, kept = _read(model, train, reading, say, options)
        learned = kept[:, :-1], others.answers.y[kept[:, -1].astype(np.intp)]
    target = model.layout.targets[0].name if model.layout.targets else None
    X, places = np.ascontiguousarray(sample[:, :-1]), sample[:, -1].astype(np.intp)
    scored = ScoredRows(model.view.on_features(), errors, X, places, target, model.training)
    title = name if title is None else title
    html = _build_page(scored, title=title, data_name=name, train=learned, file_bytes=file_bytes, seconds=seconds)
    page = Report(html, title)
    if path is not None:
        page.save(path)
    return page


def _read(
    model: TableModel,
    data: str | os.PathLike[str],
    reading: ReadOptions | None,
    say: Callable[[str], None] | None,
    options: dict[str, Any],
) -> tuple[Errors, NDArray]:
    """Errors on all rows, and an even sample of the features, with the numbers of the rows in the last column."""
    sample, n_rows = RowSample(_MOST_ROWS), 0

    def visit(X: NDArray, y: NDArray) -> None:
        nonlocal n_rows
        sample(np.column_stack([X, np.arange(n_rows, n_rows + len(X))]))
        n_rows += len(X)

    with model.open(data, reading) as table:
        if say is not None:
            for note in table.notes:
                say(f"note: {note}")
        errors = count_errors(model, table, visit=visit, say=say, **options)
    return errors, sample.rows


def _check_extra() -> None:
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


def _build_page(
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
    cards += [("rows", number(rows.errors.n)), ("columns", number(len(rows.view.groups)))]
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
