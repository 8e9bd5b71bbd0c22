"""Read a whole training table: detect what its columns hold, and choose those to learn from."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.column_list import LEAST_ROWS, is_identifier
from polytrain.columns.forms import Form, is_number
from polytrain.tables.cells import FileCells
from polytrain.tables.layout import Layout, find_column
from polytrain.tables.options import TableError, TableOptions, option
from polytrain.tables.table_file import TableFile
from polytrain.texts import listed

__all__ = ["TrainingTable", "read_training_table"]

# A target with at most this many different whole numbers holds labels.
_MAX_NUMBER_LABELS = 10
# Names that pandas and R give to an index which they write with the rows.
_INDEX = re.compile("Unnamed: 0(_level_0)?|__index_level_[0-9]+__")


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

    if options.names is not None:
        _rename(table, list(options.names))

    def find(given: Any) -> list[int]:
        return [find_column(name, table) for name in given]

    targets = find([options.target] if isinstance(options.target, str | int) else options.target)
    dropped, kept, categorical = (set(find(given)) for given in (options.drop, options.keep, options.categorical))
    for target in targets:
        if target in dropped | categorical or targets.count(target) > 1:
            raise TableError(
                f"the target {table.names[target]!r} cannot be dropped, encoded or named twice. Leave it out of these "
                "options."
            )
    frame = next(table.blocks(None), None)
    if frame is None:
        raise TableError(f"{table.label} holds a header but no rows. Name a file with rows.")
    columns = _read_columns(frame, table, dropped, categorical, options)
    del frame
    goals = [columns.pop(target) for target in targets]
    rows = np.logical_and.reduce([goal.present for goal in goals])
    y, classify = _targets(goals, rows, table.label, options)
    if len(y) < 2:
        raise TableError(f"{table.label} holds one row only. Name a file with more.")
    notes: list[str] = []
    X: dict[str, Any] = {}
    forms, n_missing = {}, 0
    for k, column in columns.items():
        reason = _reason_to_leave_out(column, rows, k in kept, k in categorical, options.max_categories)
        if reason is not None:
            notes.append(f"column {column.name!r} left out: {reason}")
            continue
        # Text becomes categories, so that the estimator does not interpret it again.
        values = column.values[rows]
        X[column.name] = Categorical.from_codes(values, column.texts) if column.is_text else values
        n_missing += int((~column.present[rows]).sum())
    for column in [*(column for column in columns.values() if column.name in X), *goals]:
        if column.form is not None and not (column.is_text or column.is_typed):
            forms[column.name] = column.form
            if not column.form.is_plain:
                what = "target" if column in goals else "column"
                notes.append(f"{what} {column.name!r}: {column.form.describe()}")
    if not X:
        raise TableError(
            f"{table.label} has no column to learn from besides the target. Name a file with more, or keep a column "
            f"that was left out with {option('keep')}{': ' if notes else ''}{notes[0] if notes else ''}."
        )
    layout = Layout(
        names=tuple(table.names),
        targets=tuple(goal.name for goal in goals),
        named=table.named,
        forms=forms,
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


def _rename(table: TableFile, names: list[str]) -> None:
    """Give names to the columns of a table that has none."""
    if table.named:
        raise TableError(
            f"{table.label} has a header with names. Leave out {option('names')}, or say {option('header', 'no')}."
        )
    if len(names) != len(table.names) or len(set(names)) < len(names) or not all(names):
        raise TableError(
            f"{option('names')} must be {len(table.names)} different names, one for each column of {table.label}, "
            f"got {len(names)}: {listed(names)}."
        )
    table.names = names


# --- what columns hold ---


class _Column:
    """A column of the training table; ``form`` is None where all cells are missing.

    ``values`` are numbers or dates with NaN or NaT for missing cells, or codes of ``texts`` with -1.
    """

    def __init__(self, cells: FileCells, form: Form | None) -> None:
        self.name, self.form, self.is_typed = cells.name, form, cells.is_typed
        self.values, wrong = cells.values(form or Form("number"))
        if wrong is not None:
            raise _odd_cell(cells, wrong, None)
        self.is_text = form is not None and form.kind == "text"
        self.texts = cells.coded[1] if self.is_text else []
        self.present = self.values >= 0 if self.is_text else self.values == self.values
        from pandas.api.types import infer_dtype

        self.is_truth = infer_dtype(cells.series, skipna=True) == "boolean"


def _read_columns(
    frame: Any, table: TableFile, dropped: set[int], categorical: set[int], options: TableOptions
) -> dict[int, _Column]:
    """Return the columns that are not dropped, by position."""
    missing, decimal = frozenset(options.missing_texts), options.decimal
    cells = {k: FileCells(frame.iloc[:, k], table, missing) for k in range(len(table.names)) if k not in dropped}
    forms = {k: Form("text") if k in categorical else _find_form(cells[k], decimal) for k in cells}
    # In a table in which commas separate fractions, 1.234 may be 1234.
    has_comma = any(form is not None and form.decimal == "," and not form.guessed for form in forms.values())
    if decimal is None and has_comma:
        for k, form in forms.items():
            if form is not None and form.is_plain and not cells[k].is_typed:
                other = cells[k].find_form(",")
                forms[k] = other if other is not None and other.kind == "number" else form
    return {k: _Column(cells[k], form) for k, form in forms.items()}


def _find_form(cells: FileCells, decimal: str | None) -> Form | None:
    """Return what a column holds, None if all cells are missing."""
    form = cells.find_form(decimal)
    if form is None or cells.is_typed:
        return form
    if form.kind == "text":
        codes, texts = cells.coded
        counts = np.bincount(codes[codes >= 0])
        if 2 * counts[[*map(is_number, texts)]].sum() > counts.sum():
            raise _odd_cell(cells, cells.values(Form("number"))[1] or 0, decimal)
    if form.is_plain and decimal == "," and not any("." in text for text in cells.coded[1]):
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


# --- the target ---


def _targets(goals: list[_Column], rows: NDArray, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    """Return the targets of some rows, and whether they are labels."""
    for goal in goals:
        if not goal.present.any():
            raise TableError(f"{label}: all cells of the target {goal.name!r} are missing. Name another target.")
        if len(goals) > 1 and (goal.is_text or goal.values.dtype.kind != "f" or options.task == "classification"):
            raise TableError(
                f"{label}: several targets must be numbers, for regression; {goal.name!r} is not. Fit one model per "
                "column."
            )
    if not rows.any():
        raise TableError(f"{label}: no row has all targets. Name fewer, or fill their cells.")
    return (
        _one_target(goals[0], rows, label, options)
        if len(goals) == 1
        else (
            np.stack([goal.values[rows] for goal in goals], axis=1),
            False,
        )
    )


def _one_target(column: _Column, rows: NDArray, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    values = column.values[rows]
    if column.is_truth and options.task != "regression":
        return values.astype(bool), True
    if values.dtype.kind == "M" or (column.is_text and options.task == "regression"):
        held = f"text such as {column.texts[0]!r:.60}" if column.is_text else "dates"
        raise TableError(
            f"{label}: the target {column.name!r} holds {held}; regression needs numbers, and labels are text or "
            f"numbers. Name another target, or, of text, leave out {option('task')}."
        )
    if column.is_text:
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
    if _INDEX.fullmatch(column.name):
        return f"its name is that of an index{keep}"
    if column.is_text:
        count, example = len(distinct), f"such as {column.texts[distinct[0]]!r:.40}"
        if len(values) >= LEAST_ROWS and count > 0.9 * len(values):
            return f"{count} different texts in {len(values)} rows, {example}, which looks like an identifier{keep}"
        if count > max_categories and not as_category:
            return f"{count} different texts, {example}, are more than {max_categories} categories{keep}"
    elif column.form.is_plain and is_identifier(column.name, column.values):
        return f"a different whole number in every row, which looks like an identifier{keep}"
    return None
