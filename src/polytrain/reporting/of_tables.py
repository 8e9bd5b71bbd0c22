"""Reports about models and tables in files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.reporting.build import build_report
from polytrain.reporting.evidence import ScoredRows
from polytrain.reporting.face import MOST_ROWS, Report
from polytrain.reporting.subject import Subject
from polytrain.tables import ReadOptions, TableError, TableModel
from polytrain.tables.evaluation import ClassificationErrors, RegressionErrors, count_errors
from polytrain.tables.row_sample import RowSample

__all__ = ["report_table"]


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
        A table with the target, best of rows that the model has not learned from.
    path : path-like, optional
        HTML file to write.
    train : path-like, optional
        Training rows, for a linear model to learn from, to compare with. Without them there is no linear model on
        ``data``; the page has the one in the folds of the fit, if the model file knows it.
    title : str, optional
        Heading of the page.
    reading : ReadOptions, optional
        How the files are read; by default this is found out.
    file_bytes : int, optional
        Size of the model file.
    say : callable, optional
        Told about rows and labels that are not taken as they are.
    **options
        See `TableModel.blocks`.

    Returns
    -------
    Report

    See Also
    --------
    polytrain.report : The same for rows in memory.
    """
    if not model.fitted.one_output:
        raise TableError(
            f"the model predicts {model.fitted.n_trains} numbers per row, and a report is about one. Fit a model per "
            "target."
        )
    name = "standard input" if str(data) == "-" else Path(data).name
    started = time.perf_counter()
    counted, rows = _read(model, data, reading, say, options)
    seconds = time.perf_counter() - started
    learned = None if train is None else _read(model, train, reading, say, options)[1][:2]
    targets = model.layout.targets
    subject = Subject.of(model.view, targets[0].name if targets else None, model.training)
    title = name if title is None else title
    html = build_report(
        counted,
        ScoredRows(subject, *rows),
        title=title,
        data_name=name,
        train=learned,
        file_bytes=file_bytes,
        seconds=seconds,
    )
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
) -> tuple[ClassificationErrors | RegressionErrors, tuple[NDArray, NDArray, NDArray]]:
    """Errors on all rows, and an even sample of them: features, targets, and places among the rows with a target."""
    sample, n_rows = RowSample(MOST_ROWS), 0

    def visit(X: NDArray, y: NDArray) -> None:
        nonlocal n_rows
        sample(np.column_stack([X, y, np.arange(n_rows, n_rows + len(X))]))
        n_rows += len(X)

    with model.open(data, reading) as table:
        if say is not None:
            for note in table.notes:
                say(f"note: {note}")
        counted = count_errors(model, table, visit=visit, say=say, **options)
    X, y, places = np.ascontiguousarray(sample.rows[:, :-2]), sample.rows[:, -2], sample.rows[:, -1]
    return counted, (X, y.astype(np.intp) if model.is_classifier else y, places.astype(np.intp))
