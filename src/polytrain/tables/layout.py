"""Where the columns of a model are in a file, and how their cells are read.

What columns become features is the estimator's own knowledge (`polytrain.columns`). Here is what only files have:
names and positions, texts for missing values, and forms of numbers and dates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from polytrain.columns import CategoryColumn, CellFrame, Column, DateColumn
from polytrain.columns.cells import Cells
from polytrain.columns.scalars import Level, text_of
from polytrain.tables.errors import Option, TableError
from polytrain.tables.files import DEFAULT_MISSING, Block, CellColumn, Form, Table, find_form, position_names
from polytrain.tables.files.cells import number_text
from polytrain.texts import listed

__all__ = ["FileColumn", "Forms", "Layout", "find_column", "with_decimal"]

_NUMBER = Form("number")
_TRUTH = Form("truth")
# New categories of a column that a note names.
_EXAMPLES = 3


@dataclass(frozen=True)
class FileColumn:
    """A column of the training table.

    Attributes
    ----------
    name : str
    position : int
        Place in the training table, from 0.
    form : Form or None
        How its cells are written; None where the model was not fitted from a table, and this is found out.
    """

    name: str
    position: int
    form: Form | None = None


@dataclass(frozen=True)
class Layout:
    """What is remembered of the training table.

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
        count = estimator.n_features_in_
        named = hasattr(estimator, "feature_names_in_")
        names = [str(name) for name in (estimator.feature_names_in_ if named else position_names(count))]
        # In a frame, a question mark may be a category like others.
        levels = {text_of(level).strip() for column in _columns(estimator) for level in getattr(column, "levels", ())}
        missing = tuple(text for text in DEFAULT_MISSING if text not in levels)
        forms = map(_date_form, _columns(estimator))
        return cls(tuple(map(FileColumn, names, range(count), forms)), (), named, count, missing)

    @cached_property
    def missing_texts(self) -> frozenset[str]:
        """The same texts, for cells to be looked up in."""
        return frozenset(self.missing)

    # --- finding columns ----------------------------------------------------------------------------------------------

    def match(self, table: Table, targets: Sequence[int] = ()) -> list[int]:
        """Index in ``table`` of every column; ``targets`` are columns that stand among them in a model of arrays."""
        if self.named and table.names is not None:
            places = {name: k for k, name in enumerate(table.names)}
            lacking = [column.name for column in self.columns if column.name not in places]
            if lacking:
                raise TableError(
                    f"{table.label} lacks the column{'s' if len(lacking) > 1 else ''} {listed(lacking)}; it has "
                    f"{listed(table.names)}. Name the columns as in training, or, if it has no header, say ",
                    Option("header", "no"),
                    ".",
                )
            return [places[column.name] for column in self.columns]
        if not self.targets and targets and table.n_columns == self.n_columns + len(targets):
            others = [k for k in range(table.n_columns) if k not in targets]
            return [others[column.position] for column in self.columns]
        moved = self._left_out(table)
        return [column.position - sum(gone < column.position for gone in moved) for column in self.columns]

    def match_targets(self, table: Table, given: Sequence[str | int] | None, wanted: int) -> list[int]:
        """Index in ``table`` of every one of so many targets: those that are given, or those of the training."""
        if given is not None:
            if len(given) != wanted:
                named = ", ".join(map(str, given))
                raise TableError(
                    f"the model predicts {wanted} column{'s' if wanted > 1 else ''}, but {len(given)} targets are "
                    f"named: {named}. Name {wanted} with ",
                    _TARGET,
                    ".",
                )
            return [find_column(one, table.names, table.n_columns, table.label) for one in given]
        if not self.targets:
            raise TableError("the model file does not say which column is the target. Name it with ", _TARGET, ".")
        if self.named and table.names is not None:
            if all(target.name in table.names for target in self.targets):
                return [table.names.index(target.name) for target in self.targets]
        elif not self._left_out(table):
            return [target.position for target in self.targets]
        names = " and ".join(repr(target.name) for target in self.targets)
        raise TableError(f"{table.label} lacks the target {names}. Name another column with ", _TARGET, ".")

    def _left_out(self, table: Table) -> tuple[int, ...]:
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

    # --- reading cells ------------------------------------------------------------------------------------------------

    def read(
        self,
        block: Block,
        indexes: Sequence[int],
        estimator: Any,
        where: str,
        *,
        forms: Forms,
    ) -> CellFrame:
        """Cells of a block as the estimator takes them.

        Parameters
        ----------
        block : Block
            Some rows.
        indexes : sequence of int
            What `match` returned.
        estimator : estimator
            It knows what kind each column is, and its categories.
        where : str
            Name of the table, for messages.
        forms : Forms
            How cells of this table are written; it counts categories that the training did not have.
        """
        cells = []
        for column, kind, index in zip(self.columns, _columns(estimator), indexes, strict=True):
            given = block.columns[index]
            if isinstance(kind, CategoryColumn):
                cells.append(self._categories(given, kind, column.name, forms))
            else:
                cells.append(self._values(given, column, isinstance(kind, DateColumn), block, where, forms))
        return CellFrame(cells)

    def _values(
        self, given: CellColumn, column: FileColumn, is_date: bool, block: Block, where: str, forms: Forms
    ) -> Cells:
        form = given.form or forms.of(column, given, self.missing_texts, "date" if is_date else "number")
        values, wrong = given.values(form, self.missing_texts)
        if wrong is not None and not is_date and _TRUTH.parse(given[wrong]) is not None:
            values, wrong = given.values(_TRUTH, self.missing_texts)  # as in a column of a frame
        if wrong is None and is_date != (values.dtype.kind == "M"):
            seen = ~(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values))
            wrong = int(seen.argmax()) if seen.any() else None
            values = np.full(len(values), np.datetime64("NaT", "us") if is_date else np.nan)
        if wrong is None:
            return Cells.of_array(column.name, values)
        held = "dates" if is_date else "numbers"
        parts: list[str | Option] = [
            f"{where}, {block.place(wrong)}: column {column.name!r} holds {held}, but here {given[wrong]!r:.60}. Mend "
            "the cell, or leave it empty if the value is missing"
        ]
        if not is_date and forms.decimal is None:
            parts += _decimal_remedy(given[wrong], form)
        raise TableError(*parts, ".")

    def _categories(self, given: CellColumn, kind: CategoryColumn, name: str, forms: Forms) -> Cells:
        codes, texts = given.coded(self.missing_texts)
        known = _levels_by_text(kind, name)
        numbers = {number_text(text): level for text, level in known.items()}  # 3.0 is also 3
        levels: list[Level] = []
        for code, text in enumerate(texts):
            level = known.get(text, numbers.get(number_text(text)))
            if level is None:
                forms.count_new(name, text, int((codes == code).sum()))
            levels.append(text if level is None else level)
        return Cells.of_objects(name, levels).spread(codes)


_TARGET = Option("target")


def _columns(estimator: Any) -> tuple[Column | None, ...]:
    """What the columns of an estimator are; None for plain numbers."""
    columns = estimator.model_.columns
    return (None,) * estimator.n_features_in_ if columns is None else columns.columns


def _date_form(column: Column | None) -> Form | None:
    """How the dates of a frame were written, where this is not found out as well from a file."""
    if isinstance(column, DateColumn) and column.pattern != "iso":
        return Form("date", pattern=column.pattern)
    return None


def _levels_by_text(column: CategoryColumn, name: str) -> dict[str, Level]:
    known = {text_of(level).strip(): level for level in column.levels}  # cells of tables are stripped too
    if len(known) < len(column.levels):
        raise TableError(
            f"the model was fitted on categories of column {name!r} that look alike in a table, such as 1 and '1'. Use "
            "it from Python, with polytrain.load."
        )
    return known


def _decimal_remedy(text: str, form: Form) -> list[str | Option]:
    """Name the other decimal, if a cell is a number with that."""
    other, sign = (",", "comma") if form.decimal == "." else (".", "point")
    if with_decimal(form, other).parse(text) is None:
        return []
    return [f"; if a {sign} separates fractions in this file, say ", Option("decimal", other)]


def with_decimal(form: Form, decimal: str) -> Form:
    """Return a form of numbers with another decimal; what separates thousands gives way."""
    if form.kind != "number":
        return form
    other = "," if decimal == "." else "."
    return replace(form, decimal=decimal, thousands=other if form.thousands in ("", ".", ",") else form.thousands)


class Forms:
    """How the cells of one open table are written: as in training, or as is found out from its first cells.

    Parameters
    ----------
    table : Table
        The table.
    decimal : {".", ","}, optional
        What separates fractions, if it is another one than in training.
    say : callable, optional
        Told what was found out.
    """

    def __init__(self, table: Table, decimal: str | None = None, say: Callable[[str], None] | None = None) -> None:
        if decimal not in (None, ".", ","):
            raise TableError(Option("decimal", decimal), " is none of '.' and ','.")
        self.decimal, self._delimiter, self._say = decimal, table.delimiter, say or (lambda text: None)
        self._found: dict[str, Form] = {}
        self._new: dict[str, tuple[int, set[str]]] = {}

    def count_new(self, column: str, text: str, count: int) -> None:
        """Remember cells of a category that the training did not have; of their texts, a few."""
        before, examples = self._new.get(column, (0, set()))
        self._new[column] = before + count, examples if len(examples) >= _EXAMPLES else {*examples, text}

    def tell_new(self) -> None:
        """Say which columns had new categories, once all blocks are read."""
        for column, (count, examples) in self._new.items():
            shown = listed(map(repr, sorted(examples)))
            self._say(
                f"note: column {column!r}: {count} cells hold categories that the training did not have, such as "
                f"{shown}; they count as the mean of all rows"
            )

    def of(self, column: FileColumn, cells: CellColumn, missing: frozenset[str], kind: str) -> Form:
        """Form of a column of numbers or dates."""
        if column.form is not None and column.form.kind == kind:
            return column.form if self.decimal is None else with_decimal(column.form, self.decimal)
        if column.name not in self._found:
            texts = cells.coded(missing)[1]
            if not texts:
                return _NUMBER
            form = find_form(texts, decimal=self.decimal, delimiter=self._delimiter)
            if form.kind != kind:
                form = _NUMBER if self.decimal is None else with_decimal(_NUMBER, self.decimal)
            elif not form.is_plain:
                self._say(f"note: column {column.name!r}: {form.describe()}")
            self._found[column.name] = form
        return self._found[column.name]


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
