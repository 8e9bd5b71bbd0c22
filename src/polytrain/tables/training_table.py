"""Read a whole training table: detect the kinds of its columns, and choose those to learn from."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.column_list import LEAST_ROWS, is_identifier
from polytrain.columns.forms import Form, is_number
from polytrain.tables.cells import FileCells, read_other
from polytrain.tables.layout import Layout, find_column
from polytrain.tables.options import TableError, TableOptions, option
from polytrain.tables.table_file import TableFile

__all__ = ["TrainingTable", "read_training_table"]

# A target with at most this many different whole numbers holds labels.
_MAX_NUMBER_LABELS = 10
# Names that pandas and R give to an index which they write with the rows.
_INDEX = re.compile("Unnamed: 0(_level_0)?|__index_level_[0-9]+__")


@dataclass(frozen=True)
class TrainingTable:
    """A training table for an estimator: a frame X, and labels or numbers y, (N,) or (N, n_targets).

    ``others`` are further arguments of its ``fit``: "offset" and "sample_weight", (N,), where columns hold them.
    ``n_dropped`` rows without target were left out, and ``n_missing`` cells are missing. ``notes`` tell how columns
    were interpreted, and why some were left out; options in them are marked as in `TableError`.
    """

    X: Any
    y: NDArray
    others: dict[str, NDArray]
    layout: Layout
    is_classification: bool
    n_dropped: int
    n_missing: int
    notes: tuple[str, ...]


def read_training_table(table: TableFile, options: TableOptions) -> TrainingTable:
    """Read a table and detect the kinds of its columns."""
    from pandas import DataFrame
    from pandas.api.types import infer_dtype

    def find(given: Any) -> list[int]:
        return [find_column(name, table) for name in given]

    targets = find([options.target] if isinstance(options.target, str | int) else options.target)
    dropped, kept, categorical = (set(find(given)) for given in (options.drop, options.keep, options.categorical))
    given = {"offset": options.offset, "weight": options.weight}
    others = {role: find_column(name, table) for role, name in given.items() if name is not None}
    held = [*targets, *others.values()]
    for role, k in (*(("target", k) for k in targets), *others.items()):
        if k in dropped | categorical or held.count(k) > 1:
            raise TableError(
                f"the {role} {table.names[k]!r} cannot be dropped, encoded or named twice. Leave it out of these "
                "options."
            )
    frame = next(table.blocks(None), None)
    if frame is None:
        raise TableError(f"{table.label} holds a header but no rows. Name a file with rows.")
    missing = frozenset(options.missing_texts)
    cells = {k: FileCells(frame.iloc[:, k], table, missing) for k in range(len(table.names)) if k not in dropped}
    forms = _find_forms(cells, categorical, others.values(), options.decimal)
    typed = DataFrame({cells[k].name: _values(cells[k], form) for k, form in forms.items() if k not in others.values()})
    goals = [table.names[k] for k in targets]
    rows = typed[goals].notna().all(axis=1)
    for goal in goals:
        if typed[goal].isna().all():
            raise TableError(f"{table.label}: all cells of the target {goal!r} are missing. Name another target.")
    if not rows.any():
        raise TableError(f"{table.label}: no row has all targets. Name fewer, or fill their cells.")
    has_targets = rows.to_numpy()
    arguments = {role: read_other(role, cells[k], forms[k], has_targets)[has_targets] for role, k in others.items()}
    if "weight" in arguments and not arguments["weight"].any():
        raise TableError(
            f"{table.label}: the weight {cells[others['weight']].name!r} is zero in all rows. Name another column with "
            f"{option('weight')}."
        )
    typed = typed[rows].reset_index(drop=True)
    if len(typed) < 2:
        raise TableError(f"{table.label} holds only one row. Name a file with more.")
    is_truth = infer_dtype(frame.iloc[:, targets[0]], skipna=True) == "boolean"
    y, classify = _targets(typed[goals], is_truth, table.label, options)
    reasons = {
        name: _reason_to_leave_out(typed[name], form, k in kept)
        for k, form in forms.items()
        if (name := table.names[k]) in typed and name not in goals
    }
    notes = [f"column {name!r} left out: {reason}" for name, reason in reasons.items() if reason is not None]
    X = typed[[name for name, reason in reasons.items() if reason is None]]
    used = {*X, *(table.names[k] for k in held)}
    written = {table.names[k]: form for k, form in forms.items() if form is not None and not cells[k].is_typed}
    written = {name: form for name, form in written.items() if name in used and form.kind != "text"}
    for name, form in written.items():
        if not form.is_plain:
            notes.append(f"{'target' if name in goals else 'column'} {name!r}: {form.describe()}")
    if X.empty:
        raise TableError(
            f"{table.label} has no column to learn from besides the target. Name a file with more, or keep a column "
            f"that was left out with {option('keep')}{': ' if notes else ''}{notes[0] if notes else ''}."
        )
    if "offset" in arguments:
        low, high = np.exp([arguments["offset"].min(), arguments["offset"].max()])
        notes.append(f"offset {table.names[others['offset']]!r}: exposures, exp(offset), are {low:.3g} to {high:.3g}")
    columns = {role: table.names[k] for role, k in others.items()}
    return TrainingTable(
        X=X,
        y=y,
        others={"sample_weight" if role == "weight" else role: values for role, values in arguments.items()},
        layout=Layout(tuple(table.names), tuple(goals), table.named, written, options.missing_texts, **columns),
        is_classification=classify,
        n_dropped=int((~rows).sum()),
        n_missing=int(X.isna().sum().sum()),
        notes=tuple(notes),
    )


# --- the kinds of columns ---


def _find_forms(
    cells: dict[int, FileCells], categorical: set[int], others: Collection[int], decimal: str | None
) -> dict[int, Form | None]:
    """Return the cells of columns, None where all are missing; ``others`` are checked when they are read."""
    forms = {k: Form("text") if k in categorical else _find_form(cells[k], decimal, k in others) for k in cells}
    # In a table with decimal commas, 1.234 may be 1234.
    has_comma = any(form is not None and form.decimal == "," and not form.guessed for form in forms.values())
    for k, form in forms.items():
        if has_comma and decimal is None and form is not None and form.is_plain and not cells[k].is_typed:
            other = cells[k].find_form(",")
            forms[k] = other if other is not None and other.kind == "number" else form
    return forms


def _find_form(cells: FileCells, decimal: str | None, takes_odd: bool) -> Form | None:
    """Return the cells of a column, None if all are missing; odd cells among numbers are refused or accepted."""
    form = cells.find_form(decimal)
    if form is None or cells.is_typed:
        return form
    if form.kind == "text" and not takes_odd:
        codes, texts = cells.coded
        counts = np.bincount(codes[codes >= 0])
        if 2 * counts[[*map(is_number, texts)]].sum() > counts.sum():
            raise _odd_cell(cells, cells.values(Form("number"))[1] or 0, decimal)
    if form.is_plain and decimal == "," and not any("." in text for text in cells.coded[1]):
        return replace(form, decimal=",")  # whole numbers so far
    return form


def _values(cells: FileCells, form: Form | None) -> Any:
    """Return numbers, dates, or categories: the estimator does not interpret these again."""
    values, wrong = cells.values(form or Form("number"))
    if wrong is not None:  # an infinite number
        raise _odd_cell(cells, wrong, None)
    return values


def _odd_cell(cells: FileCells, row: int, decimal: str | None) -> TableError:
    text = cells[row]
    is_decimal = decimal is None and "," in text and is_number(text.replace(",", "."))
    comma = f"; if the comma is the decimal mark, pass {option('decimal', ',')}" if is_decimal else ""
    return TableError(
        f"{cells.place(row)}: column {cells.name!r} holds numbers, but here {text!r:.60}. Fix the cell, name it as "
        f"missing ({option('missing', text)}), or encode the column as categories "
        f"({option('categorical', cells.name)}){comma}."
    )


# --- the target ---


def _targets(goals: Any, is_truth: bool, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    """Return the targets, a frame, as an array, and whether they are labels."""
    values, name = goals.iloc[:, 0], goals.columns[0]
    is_text = values.dtype == "category"
    if len(goals.columns) > 1:
        for name, dtype in goals.dtypes.items():
            if dtype.kind != "f" or options.task == "classification":
                raise TableError(
                    f"{label}: several targets must be numbers, for regression; {name!r} is not. Fit one model per "
                    "column."
                )
        return goals.to_numpy(), False
    if is_truth and options.task != "regression":
        return values.to_numpy(dtype=bool), True
    if values.dtype.kind == "M" or (is_text and options.task == "regression"):
        held = f"text such as {values[0]!r:.60}" if is_text else "dates"
        raise TableError(
            f"{label}: the target {name!r} holds {held}; regression needs numbers, and labels are text or numbers. "
            f"Name another target, or, of text, leave out {option('task')} and {option('loss')}."
        )
    if is_text:
        return values.to_numpy(dtype=str), True
    distinct = values.unique()
    whole = bool((distinct == np.round(distinct)).all() and np.abs(distinct).max() < 2**53)
    few = whole and len(distinct) <= _MAX_NUMBER_LABELS
    classify = options.task == "classification" or (options.task == "auto" and few)
    if classify and not whole:
        raise TableError(
            f"{label}: the target {name!r} holds numbers with fractions, which cannot be labels. Leave out "
            f"{option('task')}, or name another target."
        )
    return values.to_numpy(dtype=np.int64 if classify else np.float64), classify


# --- columns to learn from ---


def _reason_to_leave_out(column: Any, form: Form | None, kept: bool) -> str | None:
    """Return the reason to leave out a column; None for one that is used."""
    keep, count = f"; keep it with {option('keep', column.name)}", column.nunique()
    if column.nunique(dropna=False) < 2:
        return "it has a single value, or none"
    if kept:
        return None
    if _INDEX.fullmatch(column.name):
        return f"its name is that of an index{keep}"
    if column.dtype == "category":
        example = f"such as {column.dropna().iloc[0]!r:.40}"
        if len(column) >= LEAST_ROWS and count > 0.9 * len(column):
            return f"{count} different texts in {len(column)} rows, {example}, which looks like an identifier{keep}"
    elif form is not None and form.is_plain and is_identifier(column.name, column.to_numpy()):
        return f"a different whole number in every row, which looks like an identifier{keep}"
    return None
