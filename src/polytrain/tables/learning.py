"""Read a whole training table: detect what its columns hold, and choose those to learn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.column_list import LEAST_ROWS, is_identifier
from polytrain.columns.forms import Form, is_number
from polytrain.tables.cells import FileCells
from polytrain.tables.layout import FileColumn, Layout, find_column
from polytrain.tables.options import TableError, TableOptions, option
from polytrain.tables.table_file import TableFile, position_names
from polytrain.texts import listed

__all__ = ["TrainingTable", "read_training_table"]

# A target with at most this many different whole numbers holds labels.
_MAX_NUMBER_LABELS = 10
_NUMBER = Form("number")


@dataclass(frozen=True)
class TrainingTable:
    """A training table for an estimator: a frame X, and labels or numbers y, (N,) or (N, n_targets).

    ``n_dropped`` rows without target were left out, and ``n_missing`` cells are missing. ``notes`` say how columns were
    understood, and why some were left out; options in them are marked as in `TableError`.
    """

    X: Any
    y: NDArray
    layout: Layout
    is_classification: bool
    n_dropped: int
    n_missing: int
    notes: tuple[str, ...]


def read_training_table(table: TableFile, options: TableOptions) -> TrainingTable:
    """Read a table and detect what its columns hold."""
    from pandas import Categorical, DataFrame

    names = _names(table, options)

    def find(given: Any) -> list[int]:
        return [find_column(name, names, table.n_columns, table.label) for name in given]

    targets = find([options.target] if isinstance(options.target, str | int) else options.target)
    dropped, kept, categorical = (set(find(given)) for given in (options.drop, options.keep, options.categorical))
    for target in targets:
        if target in dropped | categorical or targets.count(target) > 1:
            raise TableError(
                f"the target {names[target]!r} cannot be dropped, encoded or named twice. Leave it out of these "
                "options."
            )
    frame = next(table.blocks(None), None)
    if frame is None:
        raise TableError(f"{table.label} holds a header but no rows. Name a file with rows.")
    frame.columns = names
    columns = _read_columns(frame, table, dropped, categorical, options)
    del frame
    goals = [columns.pop(target) for target in targets]
    rows = np.logical_and.reduce([goal.present for goal in goals])
    y, classify = _targets(goals, rows, table.label, options)
    if len(y) < 2:
        raise TableError(f"{table.label} holds one row only. Name a file with more.")
    notes: list[str] = []
    X: dict[str, Any] = {}
    places, n_missing = [], 0
    for k, column in columns.items():
        reason = _reason_to_leave_out(column, rows, k in kept, k in categorical, options.max_categories)
        if reason is not None:
            notes.append(f"column {column.name!r} left out: {reason}")
            continue
        notes += _understood("column", column)
        places.append(FileColumn(column.name, k, column.form))
        # Text becomes categories, so that the estimator does not interpret it again.
        values = column.values[rows]
        X[column.name] = Categorical.from_codes(values, column.texts) if column.is_text else values
        n_missing += int((~column.present[rows]).sum())
    for goal in goals:
        notes += _understood("target", goal)
    if not places:
        raise TableError(
            f"{table.label} has no column to learn from besides the target. Name a file with more, or keep a column "
            f"that was left out with {option('keep')}{': ' if notes else ''}{notes[0] if notes else ''}."
        )
    layout = Layout(
        columns=tuple(places),
        targets=tuple(FileColumn(goal.name, k, goal.form) for k, goal in zip(targets, goals, strict=True)),
        named=table.names is not None,
        n_columns=table.n_columns,
        missing=options.missing_texts,
    )
    return TrainingTable(
        X=DataFrame(X),
        y=y,
        layout=layout,
        is_classification=classify,
        n_dropped=int((~rows).sum()),
        n_missing=n_missing,
        notes=tuple(notes),
    )


# --- what columns hold ---


class _Column:
    """A column of the training table; ``form`` is None where all cells are missing.

    ``values`` are numbers or dates with NaN or NaT for missing cells, or codes of ``texts`` with -1.
    """

    def __init__(self, cells: FileCells, form: Form | None) -> None:
        self.name, self.form = cells.name, form
        self.values = cells.values(form or _NUMBER)[0]
        self.is_text = form is not None and form.kind == "text"
        self.texts = cells.coded[1] if self.is_text else []
        self.present = self.values >= 0 if self.is_text else self.values == self.values


def _read_columns(
    frame: Any, table: TableFile, dropped: set[int], categorical: set[int], options: TableOptions
) -> dict[int, _Column]:
    """Return the columns that are not dropped, by position."""
    used, missing = [k for k in range(table.n_columns) if k not in dropped], frozenset(options.missing_texts)
    cells = {k: FileCells(frame.iloc[:, k], table, missing) for k in used}
    forms = {k: Form("text") if k in categorical else _find_form(cells[k], options.decimal) for k in used}
    numbers = [form for form in forms.values() if form is not None and form.kind == "number"]
    if options.decimal is None and any(form.decimal == "," and not form.guessed for form in numbers):
        # In a table in which commas separate fractions, 1.234 may be 1234.
        for k, form in forms.items():
            if form is not None and form.is_plain and cells[k].declared is None:
                other = cells[k].find_form(",")
                forms[k] = other if other.kind == "number" else form
    return {k: _Column(cells[k], form) for k, form in forms.items()}


def _find_form(cells: FileCells, decimal: str | None) -> Form | None:
    """Return what a column holds, None if all cells are missing."""
    if cells.declared is not None:
        wrong = cells.values(cells.declared)[1]
        if wrong is not None:  # an infinite number
            raise _odd_cell(cells, wrong, decimal)
        return cells.declared
    if decimal != ",":
        values, wrong = cells.values(_NUMBER)
        if wrong is None:  # as in most columns; their texts need not be looked at
            return None if np.isnan(values).all() else _NUMBER
    codes, texts = cells.coded
    if not texts:
        return None
    form = cells.find_form(decimal)
    counts = np.bincount(codes[codes >= 0])
    if form.kind == "text" and 2 * counts[[*map(is_number, texts)]].sum() > counts.sum():
        raise _odd_cell(cells, cells.values(_NUMBER)[1] or 0, decimal)
    if form.is_plain and decimal == "," and not any("." in text for text in texts):
        return replace(form, decimal=",")  # whole numbers so far
    return form


def _odd_cell(cells: FileCells, row: int, decimal: str | None) -> TableError:
    text = cells[row]
    is_decimal = decimal is None and "," in text and is_number(text.replace(",", "."))
    comma = f"; if a comma separates fractions, say {option('decimal', ',')}" if is_decimal else ""
    return TableError(
        f"{cells.place(row)}: column {cells.name!r} holds numbers, but here {text!r:.60}. Fix the cell, name it as "
        f"missing ({option('missing', text)}), or encode the column as categories "
        f"({option('categorical', cells.name)}){comma}."
    )


def _understood(what: str, column: _Column) -> list[str]:
    """Say how a column is written, if that is not as programs write numbers and text."""
    if column.form is None or column.form.is_plain or column.form.kind not in ("number", "date"):
        return []
    return [f"{what} {column.name!r}: {column.form.describe()}"]


def _names(table: TableFile, options: TableOptions) -> list[str]:
    if options.names is None:
        return table.names if table.names is not None else position_names(table.n_columns)
    names = list(options.names)
    if table.names is not None:
        raise TableError(
            f"{table.label} has a header with names. Leave out {option('names')}, or say {option('header', 'no')}."
        )
    if len(names) != table.n_columns or len(set(names)) < len(names) or not all(names):
        raise TableError(
            f"{option('names')} must be {table.n_columns} different names, one for each column of {table.label}, "
            f"got {len(names)}: {listed(names)}."
        )
    return names


# --- the target ---


def _targets(goals: list[_Column], rows: NDArray, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    """Return the targets of some rows, and whether they are labels."""
    for goal in goals:
        if not goal.present.any():
            raise TableError(f"{label}: all cells of the target {goal.name!r} are missing. Name another target.")
    if not rows.any():
        raise TableError(f"{label}: no row has all targets. Name fewer, or fill their cells.")
    if len(goals) == 1:
        return _one_target(goals[0], rows, label, options)
    for goal in goals:
        if goal.form is None or goal.form.kind not in ("number", "truth") or options.task == "classification":
            raise TableError(
                f"{label}: several targets must be numbers, for regression; {goal.name!r} is not. Fit one model per "
                "column."
            )
    return np.stack([goal.values[rows] for goal in goals], axis=1), False


def _one_target(column: _Column, rows: NDArray, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    values, form = column.values[rows], column.form or Form("text")
    if form.kind == "truth" and options.task != "regression":
        return np.array(["False", "True"])[values.astype(np.intp)], True
    if form.kind == "date" or (form.kind == "text" and options.task == "regression"):
        held = f"text such as {column.texts[0]!r:.60}" if form.kind == "text" else "dates"
        raise TableError(
            f"{label}: the target {column.name!r} holds {held}; regression needs numbers, and labels are text or "
            f"numbers. Name another target, or, of text, leave out {option('task')}."
        )
    if form.kind == "text":
        return np.array(column.texts)[values], True
    distinct = np.unique(values)
    whole = bool((distinct == np.round(distinct)).all() and np.abs(distinct).max() < 2**53)
    classify = options.task == "classification" or (
        options.task == "auto" and whole and len(distinct) <= _MAX_NUMBER_LABELS
    )
    if classify and not whole:
        raise TableError(
            f"{label}: the target {column.name!r} holds numbers with fractions, which cannot be labels. Leave out "
            f"{option('task')}, or name another target."
        )
    return values.astype(np.int64) if classify else values, classify


# --- columns to learn from ---


def _reason_to_leave_out(
    column: _Column, rows: NDArray, kept: bool, as_category: bool, max_categories: int
) -> str | None:
    """Say why a column is left out; None for one that is used."""
    keep = f"; keep it with {option('keep', column.name)}"
    present, values = column.present[rows], column.values[rows]
    distinct = np.unique(values[present])
    if column.form is None or len(distinct) + (len(distinct) > 0 and not present.all()) < 2:
        return "it has a single value, or none"
    if kept:
        return None
    if column.is_text:
        count, example = len(distinct), f"such as {column.texts[distinct[0]]!r:.40}"
        if len(values) >= LEAST_ROWS and count > 0.9 * len(values):
            return f"{count} different texts in {len(values)} rows, {example}, which looks like an identifier{keep}"
        if count > max_categories and not as_category:
            return f"{count} different texts, {example}, are more than {max_categories} categories{keep}"
    elif column.form.is_plain and is_identifier(column.name, column.values):
        return f"a different whole number in every row, which looks like an identifier{keep}"
    return None
