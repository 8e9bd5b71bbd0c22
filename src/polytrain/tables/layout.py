"""Positions and forms of a model's columns in a file, the reading of their cells, and the record in a model file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import CategoryColumn, Column, DateColumn
from polytrain.columns.forms import DEFAULT_MISSING, Form, is_number
from polytrain.columns.scalars import Level, text_of
from polytrain.tables.cells import FileCells
from polytrain.tables.options import TableError, option
from polytrain.tables.table_file import TableFile, position_names
from polytrain.texts import listed

__all__ = ["Fact", "FileColumn", "Layout", "RowReader", "find_column", "read_section", "write_section"]

#: Values in the record of the training.
Fact = str | int | float | bool | None

_NUMBER = Form("number")
_DATE = Form("date")
_TRUTH = Form("truth")
# New categories of a column that a note names.
_EXAMPLES = 3


@dataclass(frozen=True)
class FileColumn:
    """A column of the training table: its name, its position from 0, and how its cells are written.

    ``form`` is None, and is detected in each file, where the model was not fitted from a table.
    """

    name: str
    position: int
    form: Form | None = None


@dataclass(frozen=True)
class Layout:
    """Columns of the training table: where they are and how they are written.

    Attributes
    ----------
    columns : tuple of FileColumn
        The columns of the estimator, in its order.
    targets : tuple of FileColumn
        What is predicted; none where the model was not fitted from a table.
    named : bool
        Whether columns are found by name; otherwise by position.
    n_columns : int
        Columns of the training table, the targets included.
    missing : tuple of str
        What stands for a missing value, besides the empty cell.
    """

    columns: tuple[FileColumn, ...]
    targets: tuple[FileColumn, ...]
    named: bool
    n_columns: int
    missing: tuple[str, ...] = DEFAULT_MISSING

    @classmethod
    def of_estimator(cls, estimator: Any) -> Layout:
        """Return the layout of a model that was not fitted from a file, but from an array or a frame."""
        count, columns = estimator.n_features_in_, _columns(estimator)
        names = map(str, getattr(estimator, "feature_names_in_", position_names(count)))
        # In a frame, a question mark may be a category like others.
        levels = {text_of(level).strip() for column in columns for level in getattr(column, "levels", ())}
        # Dates are written as in the frame, unless a file shows it as well.
        patterns = [getattr(column, "pattern", "iso") for column in columns]
        forms = [None if pattern == "iso" else Form("date", pattern=pattern) for pattern in patterns]
        return cls(
            columns=tuple(map(FileColumn, names, range(count), forms)),
            targets=(),
            named=hasattr(estimator, "feature_names_in_"),
            n_columns=count,
            missing=tuple(text for text in DEFAULT_MISSING if text not in levels),
        )

    def match(self, table: TableFile, targets: Sequence[int] = ()) -> list[int]:
        """Indexes in ``table`` of all columns; ``targets`` are columns that stand among them in a model of arrays."""
        if self.named and table.names is not None:
            places = {name: k for k, name in enumerate(table.names)}
            lacking = [column.name for column in self.columns if column.name not in places]
            if lacking:
                raise TableError(
                    f"{table.label} lacks the column{'s' if len(lacking) > 1 else ''} {listed(lacking)}; it has "
                    f"{listed(table.names)}. Name the columns as in training, or, if it has no header, say "
                    f"{option('header', 'no')}."
                )
            return [places[column.name] for column in self.columns]
        if not self.targets and targets and table.n_columns == self.n_columns + len(targets):
            absent: Sequence[int] = ()
            present = [k for k in range(table.n_columns) if k not in targets]
        else:
            absent = self._left_out(table)
            present = list(range(table.n_columns))
        return [present[column.position - sum(gone < column.position for gone in absent)] for column in self.columns]

    def match_targets(self, table: TableFile, given: Sequence[str | int] | None, wanted: int) -> list[int]:
        """Index in ``table`` of each of the ``wanted`` targets: those that are given, or those of the training."""
        if given is not None:
            if len(given) != wanted:
                raise TableError(
                    f"the model predicts {wanted} column{'s' if wanted > 1 else ''}, but {len(given)} targets are "
                    f"named: {', '.join(map(str, given))}. Name {wanted} with {option('target')}."
                )
            return [find_column(name, table.names, table.n_columns, table.label) for name in given]
        if not self.targets:
            raise TableError(
                f"the model file does not say which column is the target. Name it with {option('target')}."
            )
        if self.named and table.names is not None:
            if all(target.name in table.names for target in self.targets):
                return [table.names.index(target.name) for target in self.targets]
        elif not self._left_out(table):
            return [target.position for target in self.targets]
        names = " and ".join(repr(target.name) for target in self.targets)
        raise TableError(f"{table.label} lacks the target {names}. Name another column with {option('target')}.")

    def _left_out(self, table: TableFile) -> tuple[int, ...]:
        """Positions that a table does not have: those of the targets, where it comes without them."""
        if table.n_columns == self.n_columns:
            return ()
        if self.targets and table.n_columns == self.n_columns - len(self.targets):
            return tuple(target.position for target in self.targets)
        without = ", the target included" if self.targets else ""
        raise TableError(
            f"{table.label} has {table.n_columns} columns, but the model was fitted on {self.n_columns}{without}. "
            "Bring the same columns in the same order."
        )


def _columns(estimator: Any) -> tuple[Column | None, ...]:
    """Return the columns of an estimator; None for plain numbers."""
    columns = estimator.model_.columns
    return (None,) * estimator.n_features_in_ if columns is None else columns.columns


def _levels_by_text(column: CategoryColumn, name: str) -> dict[str, Level]:
    known = {text_of(level).strip(): level for level in column.levels}  # cells of tables are stripped too
    if len(known) < len(column.levels):
        raise TableError(
            f"the model was fitted on categories of column {name!r} that look alike in a table, such as 1 and '1'. Use "
            "it from Python, with polytrain.load."
        )
    return known


def _decimal_remedy(text: str, form: Form) -> str:
    """Name the other decimal mark, if a cell is a number with that."""
    other, sign = (",", "comma") if form.decimal == "." else (".", "point")
    fits = _with_decimal(form, other).parse(text) is not None
    return f"; if a {sign} separates fractions in this file, say {option('decimal', other)}" if fits else ""


def _with_decimal(form: Form, decimal: str | None) -> Form:
    """Return a form of numbers with another decimal mark; the separator of thousands gives way."""
    if form.kind != "number" or decimal is None:
        return form
    other = "," if decimal == "." else "."
    return replace(form, decimal=decimal, thousands=other if form.thousands in ("", ".", ",") else form.thousands)


class RowReader:
    """Reads blocks of one open table as rows for an estimator.

    ``targets`` are columns that stand among the others in a table for a model of arrays, ``decimal`` replaces that of
    the training, and ``say`` is called with notes.
    """

    def __init__(
        self,
        layout: Layout,
        estimator: Any,
        table: TableFile,
        targets: Sequence[int] = (),
        decimal: str | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if decimal not in (None, ".", ","):
            raise TableError(f"{option('decimal', decimal)} must be '.' or ','.")
        self._table, self._missing = table, frozenset(layout.missing)
        self._columns = list(zip(layout.columns, _columns(estimator), layout.match(table, targets), strict=True))
        self._decimal, self._say = decimal, say or (lambda text: None)
        self._forms: dict[str, Form] = {}
        self._new: dict[str, tuple[int, set[str]]] = {}

    def cells(self, frame: Any, index: int) -> FileCells:
        """Return the cells of a column of a block."""
        return FileCells(frame.iloc[:, index], self._table, self._missing)

    def read(self, frame: Any) -> Any:
        """Return the cells of a block as the estimator takes them, a frame."""
        from pandas import DataFrame

        columns = {}
        for column, kind, index in self._columns:
            cells = self.cells(frame, index)
            if isinstance(kind, CategoryColumn):
                columns[column.name] = self._categories(cells, kind, column.name)
            else:
                columns[column.name] = self.values(cells, column, isinstance(kind, DateColumn))
        return DataFrame(columns, index=frame.index)

    def values(self, cells: FileCells, column: FileColumn, is_date: bool = False, what: str = "") -> NDArray:
        """Return numbers or dates; an error names the cells, ``what``, that are something else."""
        form = cells.declared or self._form_of(column, cells, "date" if is_date else "number")
        if form.kind == "text":
            form = _DATE if is_date else _NUMBER
        values, wrong = cells.values(form)
        if wrong is not None and not is_date and _TRUTH.parse(cells[wrong]) is not None:
            values, wrong = cells.values(_TRUTH)  # as in a column of a frame
        if wrong is None and is_date != (values.dtype.kind == "M"):
            present = values == values
            wrong = int(present.argmax()) if present.any() else None
            values = np.full(len(values), np.datetime64("NaT", "us") if is_date else np.nan)
        if wrong is None:
            return values
        remedy = "" if is_date or self._decimal is not None else _decimal_remedy(cells[wrong], form)
        what = what or f"column {column.name!r} holds {'dates' if is_date else 'numbers'}"
        raise TableError(
            f"{cells.place(wrong)}: {what}, but here {cells[wrong]!r:.60}. Fix the cell, or leave it empty if the "
            f"value is missing{remedy}."
        )

    def _categories(self, cells: FileCells, kind: CategoryColumn, name: str) -> NDArray:
        codes, texts = cells.coded
        known = _levels_by_text(kind, name)
        numbers = {_number_text(text): level for text, level in known.items()}  # 3.0 is also 3
        levels: list[Level | None] = [known.get(text, numbers.get(_number_text(text))) for text in texts]
        for code, text in enumerate(texts):
            if levels[code] is None:
                levels[code] = text
                count, examples = self._new.get(name, (0, set()))
                examples = examples if len(examples) >= _EXAMPLES else {*examples, text}
                self._new[name] = count + int((codes == code).sum()), examples
        return np.fromiter([*levels, None], dtype=object, count=len(levels) + 1)[codes]

    def _form_of(self, column: FileColumn, cells: FileCells, kind: str) -> Form:
        """Return the form of text that holds numbers or dates: as in training, or as its first cells show."""
        if column.form is not None and column.form.kind == kind:
            return _with_decimal(column.form, self._decimal)
        if column.name not in self._forms:
            if not cells.coded[1]:
                return _NUMBER
            form = cells.find_form(self._decimal)
            if form.kind != kind:
                form = _with_decimal(_NUMBER, self._decimal)
            elif not form.is_plain:
                self._say(f"note: column {column.name!r}: {form.describe()}")
            self._forms[column.name] = form
        return self._forms[column.name]

    def tell_new(self) -> None:
        """Say which columns had new categories, once all blocks are read."""
        for column, (count, examples) in self._new.items():
            shown = listed(map(repr, sorted(examples)))
            self._say(
                f"note: column {column!r}: {count} cells hold categories that the training did not have, such as "
                f"{shown}; they count as the mean of all rows"
            )


def _number_text(text: str) -> str:
    """Return a plain number in its shortest form, as in 3 for 3.0; other text as it is."""
    return text_of(float(text)) if is_number(text) else text


def find_column(given: str | int, names: Sequence[str] | None, n_columns: int, label: str) -> int:
    """Index of a column given by name or by position, 0 being the first and -1 the last; names come first."""
    if names is not None and given in names:
        return list(names).index(str(given))
    try:
        position = int(given)
    except ValueError:
        position = n_columns
    if -n_columns <= position < n_columns:
        return position % n_columns
    known = "no header" if names is None else f"the columns {listed(names)}"
    raise TableError(
        f"{label} has no column {given!r}; it has {known}. Give a name, or a position from 0 to {n_columns - 1}; "
        "-1 is the last."
    )


# --- the layout in a model file: docs/model-files.md describes it ---


def write_section(layout: Layout, training: dict[str, Fact], estimator: Any) -> dict[str, Any]:
    """Return the JSON of a layout, and of facts about the training: file, rows, errors."""
    _check_fits(layout, estimator)

    def write(columns: Sequence[FileColumn]) -> list[dict[str, Any]]:
        return [vars(column) | {"form": column.form and column.form.to_json()} for column in columns]

    section = vars(layout) | {"columns": write(layout.columns), "targets": write(layout.targets)}
    return section | {"missing": list(layout.missing), "training": training}


def read_section(content: dict[str, Any], estimator: Any) -> tuple[Layout, dict[str, Fact]]:
    """Return layout and facts about the training; nothing is trusted, and what is wrong is a ValueError."""
    names = ("columns", "targets", "named", "n_columns", "missing", "training")
    columns, targets, named, n_columns, missing, training = _take(content, "the table", names)
    if type(n_columns) is not int or not 1 <= n_columns <= 1 << 31 or type(named) is not bool:
        raise ValueError("the table's number of columns is not plausible.")
    if not isinstance(columns, list) or not columns or not isinstance(targets, list):
        raise ValueError("the table has no columns.")
    both = [_read_column(entry, n_columns) for entry in columns + targets]
    if len({column.position for column in both}) < len(both) or len({column.name for column in both}) < len(both):
        raise ValueError("the table has a column twice.")
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        raise ValueError("missing should be a list of text.")
    if len(set(missing)) < len(missing):
        raise ValueError("missing names something twice.")
    if not isinstance(training, dict) or not all(isinstance(value, Fact) for value in training.values()):
        raise ValueError("the record of the training should map names to text and numbers.")
    if any(isinstance(value, float) and not math.isfinite(value) for value in training.values()):
        raise ValueError("the record of the training holds a number that is not finite.")
    layout = Layout(
        columns=tuple(both[: len(columns)]),
        targets=tuple(both[len(columns) :]),
        named=named,
        n_columns=n_columns,
        missing=tuple(missing),
    )
    _check_fits(layout, estimator)
    return layout, training


def _check_fits(layout: Layout, estimator: Any) -> None:
    """Refuse a layout with other columns or targets than the estimator has."""
    names = [column.name for column in layout.columns]
    if list(map(str, getattr(estimator, "feature_names_in_", ()))) != names:
        raise ValueError("the columns of the table are not those of the model.")
    fitted = estimator.model_
    n_outputs = 1 if fitted.one_output else fitted.n_trains
    if layout.targets and len(layout.targets) != n_outputs:
        raise ValueError(f"the table has {len(layout.targets)} targets, and the model predicts {n_outputs}.")


def _take(entry: Any, what: str, names: tuple[str, ...]) -> list[Any]:
    """Values of these entries, which must be all there are."""
    if not isinstance(entry, dict) or entry.keys() != set(names):
        raise ValueError(f"{what} should have {', '.join(names)}.")
    return [entry[name] for name in names]


def _read_column(entry: Any, n_columns: int) -> FileColumn:
    name, position, form = _take(entry, "a column", ("name", "position", "form"))
    if not isinstance(name, str) or type(position) is not int or not 0 <= position < n_columns:
        raise ValueError(f"the column {name!r:.60} of the table is not plausible.")
    return FileColumn(name, position, None if form is None else Form.from_json(form))
