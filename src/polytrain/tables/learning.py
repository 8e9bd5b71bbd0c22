"""Read a whole training table: find out what its columns are, and which of them are to be learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import CellFrame
from polytrain.columns.cells import Cells
from polytrain.columns.identifiers import LEAST_ROWS, is_identifier
from polytrain.tables.errors import Option, TableError
from polytrain.tables.files import Form, Table, position_names
from polytrain.tables.gathering import MOST_TEXTS, GatheredColumn, gather
from polytrain.tables.layout import FileColumn, Layout, find_column
from polytrain.tables.options import TableOptions
from polytrain.texts import listed

__all__ = ["TrainingTable", "read_training_table"]

#: A number column with so few whole values is taken for labels where it is the target.
MAX_NUMBER_LABELS = 10
_TEXT = Form("text")


@dataclass(frozen=True)
class TrainingTable:
    """A training table, ready for an estimator.

    Attributes
    ----------
    X : CellFrame
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

    X: CellFrame
    y: NDArray
    layout: Layout
    is_classification: bool
    n_dropped: int
    n_missing: int
    notes: tuple[tuple[str | Option, ...], ...]


def read_training_table(table: Table, options: TableOptions) -> TrainingTable:
    r"""Read a table and find out what its columns are.

    Parameters
    ----------
    table : Table
        What `open_table` returned.
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
    >>> from polytrain.tables import TableOptions, open_table, read_training_table
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("31;smith;no\n?;cook;yes\n49,5;cook;no\n")
    >>> with open_table(path) as table:
    ...     rows = read_training_table(table, TableOptions(target=-1, names=("age", "job", "rich")))
    >>> rows.X.names, rows.is_classification
    (('age', 'job'), True)
    >>> rows.X.columns[0].numbers()
    array([31. ,  nan, 49.5])
    """
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
    used = [k for k in range(table.n_columns) if k not in dropped]
    gathered = {k: GatheredColumn(FileColumn(names[k], k), k in categorical) for k in used}
    if not gather(table, list(gathered.values()), options):
        raise TableError(f"{table.label} holds a header but no rows. Name a file with rows.")
    goals = [gathered.pop(target) for target in targets]
    rows = np.logical_and.reduce([_target_rows(goal, table.label) for goal in goals])
    y, classify = _targets(goals, rows, table.label, options)
    if len(y) < 2:
        raise TableError(f"{table.label} holds one row only. Name a file with more.")
    notes: list[tuple[str | Option, ...]] = []
    columns, cells, n_missing = [], [], 0
    for k, column in gathered.items():
        found = None if column.too_many else _cells(column, rows)
        reason = _left_out(column, found, k in kept, k in categorical, options.max_categories)
        if reason is not None or found is None:
            if reason is not None:
                notes.append(reason)
            continue
        notes += _understood("column", column)
        columns.append(FileColumn(column.name, k, column.form))
        cells.append(found)
        n_missing += int((~column.there()[rows]).sum())
    for goal in goals:
        notes += _understood("target", goal)
    if not columns:
        raise TableError(
            f"{table.label} has no column to learn from besides the target. Name a file with more, or keep a column "
            "that was left out with ",
            Option("keep"),
            *([] if not notes else [": ", *notes[0]]),
            ".",
        )
    layout = Layout(
        tuple(columns),
        tuple(FileColumn(goal.name, goal.column.position, goal.form) for goal in goals),
        table.names is not None,
        table.n_columns,
        options.missing_texts,
    )
    return TrainingTable(CellFrame(cells), y, layout, classify, int((~rows).sum()), n_missing, tuple(notes))


def _understood(what: str, column: GatheredColumn) -> list[tuple[str | Option, ...]]:
    """Say how a column is written, if that is not as programs write numbers and text."""
    if column.form is None or column.form.is_plain or column.form.kind not in ("number", "date"):
        return []
    return [(f"{what} {column.name!r}: {column.form.describe()}",)]


def _names(table: Table, options: TableOptions) -> list[str]:
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


def _target_rows(column: GatheredColumn, label: str) -> NDArray:
    """Which rows have a target."""
    if column.too_many:
        raise TableError(
            f"{label}: the target {column.name!r} holds more than {MOST_TEXTS} different texts. Name another target."
        )
    rows = column.there()
    if not rows.any():
        raise TableError(f"{label}: all cells of the target {column.name!r} are missing. Name another target.")
    return rows


def _targets(goals: list[GatheredColumn], rows: NDArray, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    """Return the targets of some rows, and whether they are labels."""
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
    return np.stack([goal.all()[rows] for goal in goals], axis=1), False


def _one_target(column: GatheredColumn, rows: NDArray, label: str, options: TableOptions) -> tuple[NDArray, bool]:
    values = column.all()[rows]
    form = column.form or _TEXT
    if form.kind == "truth" and options.task != "regression":
        return np.array(["False", "True"])[values.astype(np.intp)], True
    if form.kind == "date" or (form.kind == "text" and options.task == "regression"):
        held = f"text such as {next(iter(column.known))!r:.60}" if form.kind == "text" else "dates"
        raise TableError(
            f"{label}: the target {column.name!r} holds {held}; regression needs numbers, and labels are text or "
            "numbers. Name another target, or, of text, leave out ",
            Option("task"),
            ".",
        )
    if form.kind == "text":
        return np.array(list(column.known))[values], True
    distinct = np.unique(values)
    whole = bool((distinct == np.round(distinct)).all() and np.abs(distinct).max() < 2**53)
    classify = options.task == "classification" or (
        options.task == "auto" and whole and len(distinct) <= MAX_NUMBER_LABELS
    )
    if classify and not whole:
        raise TableError(
            f"{label}: the target {column.name!r} holds numbers with fractions, which are no labels. Leave out ",
            Option("task"),
            ", or name another target.",
        )
    return values.astype(np.int64) if classify else values, classify


# --- columns to learn from --------------------------------------------------------------------------------------------


def _cells(column: GatheredColumn, rows: NDArray) -> Cells | None:
    """Cells of some rows; None for a column that says nothing: a single value, or none."""
    values = column.all()[rows]
    if column.form is None:
        return None
    if column.is_text:
        # Objects must all occur in the rows.
        cells = Cells.of_distinct(column.name, list(column.known), column.all()).take(np.flatnonzero(rows))
        cells = replace(cells, is_category=True)  # what else the texts might be was found out before
        varies = len(cells.values) + bool((values < 0).any()) >= 2
    else:
        cells = Cells.of_array(column.name, values)
        there = values[values == values]
        varies = len(there) > 0 and (len(there) < len(values) or there.min() < there.max())
    return cells if varies else None


def _left_out(
    column: GatheredColumn, cells: Cells | None, kept: bool, as_category: bool, max_categories: int
) -> tuple[str | Option, ...] | None:
    """Say why a column is left out; None for one that is used."""
    start, keep = f"column {column.name!r} left out: ", ("; keep it with ", Option("keep", column.name))
    if column.too_many:
        return (f"{start}more than {MOST_TEXTS} different texts",)
    if cells is None:
        return (f"{start}it has a single value, or none",)
    if kept:
        return None
    if column.is_text:
        count = len(cells.values)
        example = f"such as {cells.values[0]!r:.40}"
        if len(cells) >= LEAST_ROWS and count > 0.9 * len(cells):
            return (
                f"{start}{count} different texts in {len(cells)} rows, {example}, which looks like an identifier",
                *keep,
            )
        if count > max_categories and not as_category:
            return (f"{start}{count} different texts, {example}, are more than {max_categories} categories", *keep)
        return None
    if column.form is not None and column.form.is_plain and is_identifier(column.name, column.all()):
        return (f"{start}a different whole number in every row, which looks like an identifier", *keep)
    return None
