"""Read a whole training table: detect what its columns hold, and choose those to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.column_list import LEAST_ROWS, is_identifier
from polytrain.columns.forms import Form, find_form, is_number
from polytrain.tables.cells import FileCells
from polytrain.tables.layout import FileColumn, Layout, find_column
from polytrain.tables.options import Option, TableError, TableOptions
from polytrain.tables.reading import TableFile, position_names
from polytrain.texts import listed

__all__ = ["TrainingTable", "read_training_table"]

# A target with at most this many different whole numbers is taken for labels.
_MAX_NUMBER_LABELS = 10
_TEXT, _NUMBER = Form("text"), Form("number")


@dataclass(frozen=True)
class TrainingTable:
    """A training table, ready for an estimator.

    Attributes
    ----------
    X : pandas.DataFrame
        Columns to learn from.
    y : ndarray of shape (N,) or (N, n_targets)
        Labels, or numbers to predict.
    layout : Layout
        Where the columns are in the file.
    is_classification : bool
        Whether ``y`` are labels.
    n_dropped : int
        Rows that were left out because a target is missing.
    n_missing : int
        Missing cells in the columns that are used.
    notes : tuple of tuples of str and Option
        What was understood, and which columns were left out why; each a message in parts, as those of `TableError`.
    """

    X: Any
    y: NDArray
    layout: Layout
    is_classification: bool
    n_dropped: int
    n_missing: int
    notes: tuple[tuple[str | Option, ...], ...]


def read_training_table(table: TableFile, options: TableOptions) -> TrainingTable:
    r"""Read a table and detect what its columns hold.

    Parameters
    ----------
    table : TableFile
        What `open_table_file` returned.
    options : TableOptions
        What the user says about it.

    Returns
    -------
    TrainingTable
        Cells, target, layout and what was understood.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain.tables import TableOptions, open_table_file, read_training_table
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("31;smith;no\n?;cook;yes\n49,5;cook;no\n")
    >>> with open_table_file(path) as table:
    ...     rows = read_training_table(table, TableOptions(target=-1, names=("age", "job", "rich")))
    >>> rows.X["age"].tolist(), rows.is_classification
    ([31.0, nan, 49.5], True)
    """
    from pandas import DataFrame

    names = _names(table, options)

    def find(given: Sequence[str | int]) -> list[int]:
        return [find_column(one, names, table.n_columns, table.label) for one in given]

    several = not isinstance(options.target, str | int)
    targets = find(options.target if several else [options.target])  # type: ignore[list-item, arg-type]
    given = (options.drop, options.keep, options.categorical)
    dropped, kept, categorical = (set(find(some)) for some in given)  # type: ignore[arg-type]
    for target in targets:
        if target in dropped | categorical or targets.count(target) > 1:
            raise TableError(
                f"the target {names[target]!r} cannot be dropped, encoded or named twice. Leave it out of these "
                "options."
            )
    frame = next(table.blocks(None), None)
    if frame is None:
        raise TableError(f"{table.label} holds a header but no rows. Name a file with rows.")
    used = [k for k in range(table.n_columns) if k not in dropped]
    columns = {k: _Column(names[k], k, FileCells(frame.iloc[:, k], table.label), options) for k in used}
    del frame
    _find_forms(columns, categorical, table, options)
    goals = [columns.pop(target) for target in targets]
    rows = np.logical_and.reduce([goal.there for goal in goals])
    y, classify = _targets(goals, rows, table.label, options)
    if len(y) < 2:
        raise TableError(f"{table.label} holds one row only. Name a file with more.")
    notes: list[tuple[str | Option, ...]] = []
    X: dict[str, Any] = {}
    places, n_missing = [], 0
    for k, column in columns.items():
        reason = _reason_to_leave_out(column, rows, k in kept, k in categorical, options.max_categories)
        if reason is not None:
            notes.append(reason)
            continue
        notes += _understood("column", column)
        places.append(FileColumn(column.name, k, column.form))
        X[column.name] = column.series(rows)
        n_missing += int((~column.there[rows]).sum())
    for goal in goals:
        notes += _understood("target", goal)
    if not places:
        raise TableError(
            f"{table.label} has no column to learn from besides the target. Name a file with more, or keep a column "
            "that was left out with ",
            Option("keep"),
            *([] if not notes else [": ", *notes[0]]),
            ".",
        )
    layout = Layout(
        columns=tuple(places),
        targets=tuple(FileColumn(goal.name, goal.position, goal.form) for goal in goals),
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


class _Column:
    """A column of the training table; ``form`` says what it holds, None where all cells are missing."""

    def __init__(self, name: str, position: int, cells: FileCells, options: TableOptions) -> None:
        self.name, self.position, self.cells = name, position, cells
        self.form: Form | None = None
        self._missing = frozenset(options.missing_texts)

    @cached_property
    def coded(self) -> tuple[NDArray, list[str]]:
        """Codes of distinct texts, -1 for missing cells, and these texts."""
        return self.cells.coded(self._missing)

    @cached_property
    def values(self) -> NDArray:
        """Values with NaN or NaT for missing cells; of text, codes."""
        form = self.form or _NUMBER
        return self.coded[0] if form.kind == "text" else self.cells.values(form, self._missing)[0]

    @property
    def is_text(self) -> bool:
        """Whether it holds text."""
        return self.form is not None and self.form.kind == "text"

    @property
    def there(self) -> NDArray:
        """Whether each cell is not missing."""
        return self.values >= 0 if self.is_text else self.values == self.values

    def series(self, rows: NDArray) -> Any:
        """Return the cells of some rows for an estimator: text as categories, so that it is not interpreted again."""
        if not self.is_text:
            return self.values[rows]
        from pandas import Categorical

        return Categorical.from_codes(self.values[rows], self.coded[1])

    def find_form(self, as_category: bool, decimal: str | None, table: TableFile) -> None:
        """Find out what the column holds."""
        typed = self.cells.form
        if as_category or typed is not None:
            self.form = _TEXT if as_category else typed
            if typed is not None and not self.is_text:
                wrong = self.cells.values(typed, self._missing)[1]
                if wrong is not None:  # an infinite number
                    raise self._odd_cell(wrong, decimal, table)
            return
        if decimal != ",":
            values, wrong = self.cells.values(_NUMBER, self._missing)
            if wrong is None:  # as most are; their texts need not be looked at
                self.form = None if np.isnan(values).all() else _NUMBER
                return
        codes, texts = self.coded
        if not texts:
            return
        form = find_form(texts, decimal=decimal, delimiter=table.delimiter)
        counts = np.bincount(codes[codes >= 0])
        if form.kind == "text" and 2 * counts[[*map(is_number, texts)]].sum() > counts.sum():
            raise self._odd_cell(self.cells.values(_NUMBER, self._missing)[1] or 0, decimal, table)
        if form.is_plain and decimal == "," and not any("." in text for text in texts):
            form = replace(form, decimal=",")  # whole numbers so far
        self.form = form

    def _odd_cell(self, row: int, decimal: str | None, table: TableFile) -> TableError:
        text = self.cells[row]
        parts: list[str | Option] = [
            f"{table.label}, {table.place(row)}: column {self.name!r} holds numbers, but here {text!r:.60}. Fix the "
            "cell, name it as missing (",
            Option("missing", text),
            "), or encode the column as categories (",
            Option("categorical", self.name),
            ")",
        ]
        if decimal is None and "," in text and is_number(text.replace(",", ".")):
            parts += ["; if a comma separates fractions, say ", Option("decimal", ",")]
        return TableError(*parts, ".")


def _find_forms(columns: dict[int, _Column], categorical: set[int], table: TableFile, options: TableOptions) -> None:
    for k, column in columns.items():
        column.find_form(k in categorical, options.decimal, table)
    forms = [column.form for column in columns.values() if column.form is not None]
    if options.decimal is None and any(f.kind == "number" and f.decimal == "," and not f.guessed for f in forms):
        # In a table in which commas separate fractions, 1.234 may be 1234.
        for column in columns.values():
            if column.form is not None and column.form.is_plain and column.cells.form is None:
                form = find_form(column.coded[1], decimal=",", delimiter=table.delimiter)
                column.form = form if form.kind == "number" else column.form


def _understood(what: str, column: _Column) -> list[tuple[str | Option, ...]]:
    """Say how a column is written, if that is not as programs write numbers and text."""
    if column.form is None or column.form.is_plain or column.form.kind not in ("number", "date"):
        return []
    return [(f"{what} {column.name!r}: {column.form.describe()}",)]


def _names(table: TableFile, options: TableOptions) -> list[str]:
    if options.names is None:
        return table.names if table.names is not None else position_names(table.n_columns)
    names = list(options.names)
    if table.names is not None:
        raise TableError(
            f"{table.label} has a header with names. Leave out ",
            Option("names"),
            ", or say ",
            Option("header", "no"),
            ".",
        )
    if len(names) != table.n_columns or len(set(names)) < len(names) or not all(names):
        raise TableError(
            Option("names"),
            f" must be {table.n_columns} different names, one for each column of {table.label}, "
            f"got {len(names)}: {listed(names)}.",
        )
    return names


# --- the target -------------------------------------------------------------------------------------------------------


def _targets(goals: list[_Column], rows: NDArray, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    """Return the targets of some rows, and whether they are labels."""
    for goal in goals:
        if not goal.there.any():
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
    values, form = column.values[rows], column.form or _TEXT
    if form.kind == "truth" and options.task != "regression":
        return np.array(["False", "True"])[values.astype(np.intp)], True
    if form.kind == "date" or (form.kind == "text" and options.task == "regression"):
        held = f"text such as {column.coded[1][0]!r:.60}" if form.kind == "text" else "dates"
        raise TableError(
            f"{label}: the target {column.name!r} holds {held}; regression needs numbers, and labels are text or "
            "numbers. Name another target, or, of text, leave out ",
            Option("task"),
            ".",
        )
    if form.kind == "text":
        return np.array(column.coded[1])[values], True
    distinct = np.unique(values)
    whole = bool((distinct == np.round(distinct)).all() and np.abs(distinct).max() < 2**53)
    classify = options.task == "classification" or (
        options.task == "auto" and whole and len(distinct) <= _MAX_NUMBER_LABELS
    )
    if classify and not whole:
        raise TableError(
            f"{label}: the target {column.name!r} holds numbers with fractions, which cannot be labels. Leave out ",
            Option("task"),
            ", or name another target.",
        )
    return values.astype(np.int64) if classify else values, classify


# --- columns to learn from --------------------------------------------------------------------------------------------


def _reason_to_leave_out(
    column: _Column, rows: NDArray, kept: bool, as_category: bool, max_categories: int
) -> tuple[str | Option, ...] | None:
    """Say why a column is left out; None for one that is used."""
    start, keep = f"column {column.name!r} left out: ", ("; keep it with ", Option("keep", column.name))
    there, values = column.there[rows], column.values[rows]
    distinct = np.unique(values[there])
    if column.form is None or len(distinct) + (len(distinct) > 0 and not there.all()) < 2:
        return (f"{start}it has a single value, or none",)
    if kept:
        return None
    if column.is_text:
        count, example = len(distinct), f"such as {column.coded[1][distinct[0]]!r:.40}"
        if len(values) >= LEAST_ROWS and count > 0.9 * len(values):
            what = f"{count} different texts in {len(values)} rows, {example}, which looks like an identifier"
            return (f"{start}{what}", *keep)
        if count > max_categories and not as_category:
            return (f"{start}{count} different texts, {example}, are more than {max_categories} categories", *keep)
        return None
    if column.form.is_plain and is_identifier(column.name, column.values):
        return (f"{start}a different whole number in every row, which looks like an identifier", *keep)
    return None
