"""Read a whole training table and learn how it is to be prepared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polytrain.tables.cells import DEFAULT_MISSING, as_numbers, as_text, is_number
from polytrain.tables.errors import TableError
from polytrain.tables.preparation import CategoryColumn, NumberColumn, Preparation, Target, find_column
from polytrain.tables.reading import Block, Table, position_names

__all__ = ["TableOptions", "TrainingRows", "read_training_rows"]

#: A number column with so few whole values is taken for labels where it is the target.
MAX_NUMBER_LABELS = 10


@dataclass(frozen=True)
class TableOptions:
    """What the user says about a training table. Columns are given by name or position.

    Attributes
    ----------
    target : str
        The column to predict.
    task : {"auto", "classification", "regression"}
        "auto": text is labels, and so are at most ten different whole numbers; all other numbers are to be predicted.
    names : sequence of str, optional
        Names for the columns of a table that has none.
    drop, categorical : sequence of str
        Columns to leave out; columns of numbers that are categories.
    missing : sequence of str
        What stands for a missing value, besides the empty cell.
    max_categories : int
        Most categories of a column.
    """

    target: str
    task: str = "auto"
    names: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    missing: Sequence[str] = DEFAULT_MISSING
    max_categories: int = 100


@dataclass(frozen=True)
class TrainingRows:
    """A training table, prepared.

    Attributes
    ----------
    X : ndarray of shape (N, d)
        Features.
    y : ndarray of shape (N,)
        Labels, or numbers to predict.
    preparation : Preparation
        How the features were made.
    is_classification : bool
        Whether ``y`` are labels.
    n_dropped : int
        Rows that were left out because their target is missing.
    n_missing : int
        Missing cells in the columns that are used.
    left_out : tuple of str
        Columns without information: a single value, or none.
    """

    X: NDArray
    y: NDArray
    preparation: Preparation
    is_classification: bool
    n_dropped: int
    n_missing: int
    left_out: tuple[str, ...]


@dataclass
class _Gathered:
    """Cells of one column: numbers as long as all are numbers, else codes of distinct text; -1 is missing."""

    name: str
    as_category: bool
    numbers: list[NDArray] = field(default_factory=list)
    codes: list[NDArray] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    first_text: tuple[str, str] | None = None

    def add(self, block: Block, index: int, missing: Collection[str]) -> None:
        if not self.as_category and not self.codes:
            values, wrong = as_numbers(block.columns[index], missing)
            if wrong is None:
                self.numbers.append(values)
                return
            self.first_text = block.place(wrong), str(block.columns[index][wrong])
        known = self.known
        cells = as_text(block.columns[index], missing)
        self.codes.append(
            np.array([-1 if cell is None else known.setdefault(cell, len(known)) for cell in cells], dtype=np.int64)
        )

    def check(self, label: str, remedy: str) -> None:
        """Refuse a column of numbers with some text in it."""
        if self.first_text is None:
            return
        counts = np.bincount(np.concatenate(self.codes) + 1, minlength=len(self.known) + 1)[1:]
        among = sum(int(count) for text, count in zip(self.known, counts, strict=True) if is_number(text))
        before = sum(int(np.isfinite(values).sum()) for values in self.numbers)
        # Numbers of earlier blocks are no longer known as text, so that they cannot become categories.
        if before or among > counts.sum() - among:
            place, text = self.first_text
            raise TableError(
                f"{label}, {place}: column {self.name!r} holds numbers, but here {text!r:.60}. "
                f"Mend the cell, name it as missing (--missing {text:.20}), or {remedy}."
            )

    @property
    def is_text(self) -> bool:
        return bool(self.codes)

    def values(self) -> NDArray:
        """Numbers with NaN, or codes with -1, for missing cells."""
        if not self.is_text:
            return np.concatenate(self.numbers)
        return np.concatenate([*(np.full(len(values), -1) for values in self.numbers), *self.codes])


def read_training_rows(table: Table, options: TableOptions) -> TrainingRows:
    r"""Read a table and learn its preparation.

    Parameters
    ----------
    table : Table
        What `open_table` returned.
    options : TableOptions
        What the user says about it.

    Returns
    -------
    TrainingRows
        Features, target and preparation.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain.tables import TableOptions, open_table, read_training_rows
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("31,smith,no\n?,cook,yes\n49,cook,no\n")
    >>> with open_table(path) as table:
    ...     rows = read_training_rows(table, TableOptions(target="-1", names=("age", "job", "rich")))
    >>> rows.preparation.feature_names, rows.is_classification
    (['age', 'job'], True)
    >>> rows.X[1]
    array([nan,  0.])
    """
    names = _names(table, options)
    find = [find_column(given, names, table.n_columns, table.label) for given in (options.target, *options.drop)]
    target, dropped = find[0], set(find[1:])
    categorical = {find_column(given, names, table.n_columns, table.label) for given in options.categorical}
    if target in dropped | categorical:
        raise TableError(f"the target {names[target]!r} cannot be dropped or encoded. Leave it out of these options.")
    used = [k for k in range(table.n_columns) if k not in dropped]
    gathered = {k: _Gathered(names[k], k in categorical) for k in used}
    for block in table.blocks():
        for k in used:
            gathered[k].add(block, k, options.missing)
    if not gathered[target].codes and not gathered[target].numbers:
        raise TableError(f"{table.label} holds a header but no rows. Name a file with rows.")
    y, rows, is_text, classify = _target(gathered.pop(target), table.label, options)
    if len(y) < 2:
        raise TableError(f"{table.label} holds one row only. Name a file with more.")
    columns, features, left_out = [], [], []
    n_missing = 0
    for k, column in gathered.items():
        learned, values, n_gone = _column(column, k, rows, table.label, options.max_categories)
        if learned is None:
            left_out.append(column.name)
            continue
        columns.append(learned)
        features.append(values)
        n_missing += n_gone
    if not columns:
        raise TableError(f"{table.label} has no column to learn from besides the target. Name a file with more.")
    preparation = Preparation(
        tuple(columns),
        Target(names[target], target, is_text),
        table.names is not None,
        table.n_columns,
        tuple(options.missing),
    )
    X = np.concatenate(features, axis=1)
    return TrainingRows(X, y, preparation, classify, int((~rows).sum()), n_missing, tuple(left_out))


def _names(table: Table, options: TableOptions) -> list[str]:
    if options.names is None:
        return table.names if table.names is not None else position_names(table.n_columns)
    names = list(options.names)
    if table.names is not None:
        raise TableError(f"{table.label} has a header with names. Leave out --names, or say --header no.")
    if len(names) != table.n_columns or len(set(names)) < len(names) or not all(names):
        raise TableError(
            f"--names must be {table.n_columns} different names, one for each column of {table.label}, "
            f"got {len(names)}: {','.join(names):.100}."
        )
    return names


def _target(column: _Gathered, label: str, options: TableOptions) -> tuple[NDArray, NDArray, bool, bool]:
    """Return target, which rows have one, whether it is text, whether it is labels."""
    column.check(label, "make the target consistent")
    values = column.values()
    rows = values >= 0 if column.is_text else ~np.isnan(values)
    if not rows.any():
        raise TableError(f"{label}: all cells of the target {column.name!r} are missing. Name another target.")
    values = values[rows]
    if column.is_text:
        if options.task == "regression":
            raise TableError(
                f"{label}: the target {column.name!r} holds text such as {next(iter(column.known))!r:.60}; regression "
                "needs numbers. Name another target, or leave out --task."
            )
        return np.array(list(column.known))[values], rows, True, True
    distinct = np.unique(values)
    whole = bool((distinct == np.round(distinct)).all() and np.abs(distinct).max() < 2**53)
    classify = options.task == "classification" or (
        options.task == "auto" and whole and len(distinct) <= MAX_NUMBER_LABELS
    )
    return values.astype(np.int64) if classify and whole else values, rows, False, classify


def _column(
    column: _Gathered, position: int, rows: NDArray, label: str, max_categories: int
) -> tuple[NumberColumn | CategoryColumn | None, NDArray, int]:
    """Return the learned column (None if it says nothing), its features and its number of missing cells."""
    column.check(label, f"encode the column as categories (--categorical '{column.name}')")
    values = column.values()[rows]
    if not column.is_text:
        gone = np.isnan(values)
        if gone.all() or (not gone.any() and values.min() == values.max()):
            return None, values, 0
        return NumberColumn(column.name, position), values[:, None], int(gone.sum())
    gone = values < 0
    texts = list(column.known)
    present = sorted(set(np.unique(values[~gone]).tolist()), key=lambda code: texts[code])
    if len(present) + bool(gone.any()) < 2:
        return None, values, 0
    if len(present) > max_categories:
        raise TableError(
            f"{label}: column {column.name!r} holds text with {len(present)} different values, more than "
            f"{max_categories} categories. Leave it out (--drop '{column.name}'), or raise --max-categories."
        )
    order = np.full(len(texts) + 1, np.nan)  # the last entry is for -1
    order[present] = np.arange(len(present))
    categories = tuple(texts[code] for code in present)
    return CategoryColumn(column.name, position, categories), order[values][:, None], int(gone.sum())
