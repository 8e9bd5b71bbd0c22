"""The cells of a table in a file: as text, as codes of distinct texts, as values of a form, as rows for a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import CategoryColumn, DateColumn
from polytrain.columns.cells import Cells
from polytrain.columns.forms import Form, Kind, find_form, is_number
from polytrain.columns.frames import open_table
from polytrain.columns.scalars import is_missing, text_of
from polytrain.tables.layout import Layout, column_names, fitted_columns
from polytrain.tables.options import Say, TableError, option
from polytrain.tables.table_file import TableFile
from polytrain.texts import listed

__all__ = ["FileCells", "RowReader", "match_texts", "read_other"]

_TRUTH = Form("truth")
# Smallest and largest value of offsets and weights, and a description of each.
_OTHERS = {
    "offset": (-700.0, 700.0, "a number from -700 to 700, the logarithm of the exposure and not the exposure itself"),
    "weight": (0.0, 1e300, "a number that is not negative"),
}
# New categories of a column that a note names.
_N_EXAMPLES = 3


class FileCells:
    """The cells of a column, a pandas.Series of any type from a block of ``table``; text is stripped here.

    ``missing`` are the texts that stand for a missing value, besides the empty cell.
    """

    def __init__(self, series: Any, table: TableFile, missing: Collection[str] = ()) -> None:
        self.series, self._table, self._missing = series, table, missing
        self.name = series.name

    def __getitem__(self, row: int) -> str:
        """Text of a cell; numbers of files with types in their shortest form."""
        return _text(self.series.iloc[row])

    def __iter__(self) -> Iterator[str]:
        return map(_text, self.series)

    def place(self, row: int) -> str:
        """Return where a cell is, for a message: the file and its line."""
        return f"{self._table.label}, {self._table.place(self.series.index[row])}"

    @cached_property
    def _cells(self) -> Cells:
        try:
            return open_table(self.series.to_frame()).read(0)
        except ValueError as error:
            raise TableError(f"{self._table.label}: {error}") from None

    @cached_property
    def is_typed(self) -> bool:
        """Whether the cells are numbers or dates by their type."""
        return self.series.dtype != "str" and not self._cells.is_category and self._cells.kind in ("number", "date")

    @cached_property
    def coded(self) -> tuple[NDArray, list[str]]:
        """int64 codes, -1 for missing cells, and the distinct texts."""
        codes, texts = self._cells.levels(as_text=True)
        known: dict[str, int] = {}
        stripped = [str(text).strip() for text in texts]
        places = [known.setdefault(text, len(known)) if text and text not in self._missing else -1 for text in stripped]
        return np.array([*places, -1], dtype=np.int64)[codes], list(known)

    def find_form(self, decimal: str | None = None) -> Form | None:
        """Return the form that fits the cells, see `polytrain.columns.forms.find_form`; None if all are missing."""
        if self.is_typed:
            return Form("date" if self._cells.kind == "date" else "number")
        if self.series.dtype == "category":
            return Form("text")
        if decimal != "," and self._plain_numbers is not None:  # as in most columns; no need to read their texts
            return None if np.isnan(self._plain_numbers).all() else Form("number")
        texts = self.coded[1]
        return find_form(texts, decimal=decimal, delimiter=self._table.delimiter) if texts else None

    def values(self, form: Form) -> tuple[Any, int | None]:
        """Return values, and the index of the first cell that does not fit the form, or None if all do.

        Values are float64 with NaN for missing cells, datetime64[us] with NaT, or categories of text. Infinite numbers
        do not fit.
        """
        if form.kind == "text":
            from pandas import Categorical

            return Categorical.from_codes(*self.coded), None
        if self.is_typed:
            values = self._typed_values(form)
            wrong = np.isinf(values)
        elif form.is_plain and self._plain_numbers is not None:
            return self._plain_numbers, None
        else:
            codes, texts = self.coded
            parsed = [*map(form.parse, texts), None]
            values = np.array(parsed, dtype="datetime64[us]" if form.kind == "date" else np.float64)[codes]
            wrong = np.isnan(values) & (codes >= 0)
        return values, int(wrong.argmax()) if wrong.any() else None

    @cached_property
    def _plain_numbers(self) -> NDArray | None:
        """The numbers that pandas reads; None unless all cells are finite numbers."""
        import pandas

        if self.series.dtype != "str":
            return None
        values = pandas.to_numeric(self.series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        gone = self.series.str.strip().isin(["", *self._missing]).to_numpy()
        values = np.where(gone, np.nan, values)
        return values if (np.isfinite(values) | gone).all() else None

    def _typed_values(self, form: Form) -> NDArray:
        """Return values of a column that has a type."""
        try:
            if form.kind == "date":
                return self._cells.dates().astype("datetime64[us]")
            values = self._cells.numbers()
        except ValueError as error:  # a date in a column of numbers, or the reverse
            raise TableError(f"{self._table.label}: {error}") from None
        markers = [float(text) for text in self._missing if is_number(text)]
        return np.where(np.isin(values, markers), np.nan, values)


def read_other(role: str, cells: FileCells, form: Form | None, rows: NDArray | None = None) -> NDArray:
    """Return the numbers of a column that holds "offset" or "weight"; refuse others, and missing ones, of ``rows``."""
    values, _ = cells.values(form if form is not None and form.kind == "number" else Form("number"))
    low, high, wanted = _OTHERS[role]
    wrong = ~((values >= low) & (values <= high)) & (True if rows is None else rows)  # NaN, too
    if wrong.any():
        row = int(wrong.argmax())
        raise TableError(
            f"{cells.place(row)}: the {role} {cells.name!r} should be {wanted}, but here {cells[row]!r:.60}. Fix the "
            f"cell, leave the row out, or name another column with {option(role)}."
        )
    return values


def _text(value: Any) -> str:
    return "" if is_missing(value) else text_of(value).strip()


class RowReader:
    """Reads blocks of one open table as rows for an estimator.

    ``targets`` are columns that stand among the others in a table for a model of arrays, ``decimal`` replaces that of
    the training, and ``say`` is called with notes.
    """

    def __init__(
        self, layout: Layout, estimator: Any, table: TableFile, targets: Sequence[int], decimal: str | None, say: Say
    ) -> None:
        if decimal not in (None, ".", ","):
            raise TableError(f"{option('decimal', decimal)} must be '.' or ','.")
        names = column_names(layout, estimator)
        self._table, self._missing = table, frozenset(layout.missing)
        self._columns = list(zip(names, fitted_columns(estimator), layout.find(table, names, targets), strict=True))
        self._decimal, self._say = decimal, say
        self._forms = {name: _with_decimal(form, decimal) for name, form in layout.forms.items()}
        self._new: dict[str, tuple[int, list[str]]] = {}

    def cells(self, frame: Any, index: int) -> FileCells:
        """Return the cells of a column of a block."""
        return FileCells(frame.iloc[:, index], self._table, self._missing)

    def read(self, frame: Any) -> Any:
        """Return the cells of a block as the estimator takes them, a frame."""
        from pandas import DataFrame

        columns = {}
        for name, kind, index in self._columns:
            cells = self.cells(frame, index)
            if isinstance(kind, CategoryColumn):
                columns[name] = self._categories(cells, kind, name)
            else:
                columns[name] = self.values(cells, name, "date" if isinstance(kind, DateColumn) else "number")
        return DataFrame(columns, index=frame.index)

    def values(self, cells: FileCells, name: str, kind: Kind = "number", what: str = "") -> NDArray:
        """Return numbers or dates of a column; an error names the cells, ``what``, that are something else."""
        form = Form(kind) if cells.is_typed else self._form_of(name, cells, kind)
        values, wrong = cells.values(form)
        if wrong is not None and kind == "number" and _TRUTH.parse(cells[wrong]) is not None:
            values, wrong = cells.values(_TRUTH)  # as in a column of a frame
        if wrong is None:
            return values
        remedy = "" if self._decimal is not None else _decimal_remedy(cells[wrong], form)
        raise TableError(
            f"{cells.place(wrong)}: {what or f'column {name!r} holds {kind}s'}, but here {cells[wrong]!r:.60}. Fix the "
            f"cell, or leave it empty if the value is missing{remedy}."
        )

    def others(self, role: str, frame: Any, index: int | None) -> NDArray | None:
        """Return the offsets or the weights of a block, which are in the column ``index`` if there is one."""
        if index is None:
            return None
        cells = self.cells(frame, index)
        return read_other(role, cells, None if cells.is_typed else self._form_of(cells.name, cells, "number"))

    def _form_of(self, name: str, cells: FileCells, kind: Kind) -> Form:
        """Return the form of text that holds numbers or dates: as in training, or as its first cells show."""
        if name not in self._forms and (form := cells.find_form(self._decimal)) is not None:
            if form.kind == kind and not form.is_plain:
                self._say(f"note: column {name!r}: {form.describe()}")
            self._forms[name] = form
        form = self._forms.get(name)
        return form if form is not None and form.kind == kind else _with_decimal(Form(kind), self._decimal)

    def _categories(self, cells: FileCells, kind: CategoryColumn, name: str) -> NDArray:
        """Return the levels of cells; new ones are text."""
        if len({text_of(level).strip() for level in kind.levels}) < len(kind.levels):
            raise TableError(
                f"the model was fitted on categories of column {name!r} that look alike in a table, such as 1 and '1'. "
                "Use it from Python, with polytrain.load."
            )
        codes, texts = cells.coded
        places = match_texts(texts, kind.levels)
        if new := [code for code, place in enumerate(places) if place < 0]:
            count, examples = self._new.get(name, (0, []))
            examples = sorted({*examples, *(texts[code] for code in new)})[:_N_EXAMPLES]
            self._new[name] = count + int(np.isin(codes, new).sum()), examples
        levels = [text if place < 0 else kind.levels[place] for text, place in zip(texts, places, strict=True)]
        return np.fromiter([*levels, None], dtype=object, count=len(levels) + 1)[codes]

    def tell_new(self) -> None:
        """Report which columns had new categories, once all blocks are read."""
        for column, (count, examples) in self._new.items():
            self._say(
                f"note: column {column!r}: {count} cells hold categories that were not in the training data, such as "
                f"{listed(map(repr, examples))}; they are treated as the mean of all rows"
            )


def _decimal_remedy(text: str, form: Form) -> str:
    """Suggest the other decimal mark if a cell is a number with it."""
    other, sign = (",", "comma") if form.decimal == "." else (".", "point")
    fits = form.kind == "number" and _with_decimal(form, other).parse(text) is not None
    return f"; if a {sign} is the decimal mark in this file, pass {option('decimal', other)}" if fits else ""


def _with_decimal(form: Form, decimal: str | None) -> Form:
    """Return a form of numbers with another decimal mark; the separator of thousands changes if it is the same."""
    if form.kind != "number" or decimal is None:
        return form
    other = "," if decimal == "." else "."
    return replace(form, decimal=decimal, thousands=other if form.thousands in ("", ".", ",") else form.thousands)


def match_texts(texts: Sequence[str], labels: Iterable[Any]) -> list[int]:
    """Return which of the labels each text is, -1 for none; 3.0 is also the label 3."""
    known = {text_of(label).strip(): k for k, label in enumerate(labels)}  # cells of tables are stripped, too
    known = {_number_text(text): k for text, k in known.items()} | known
    return [known.get(text, known.get(_number_text(text), -1)) for text in texts]


def _number_text(text: str) -> str:
    """Return a plain number in its shortest form, as in 3 for 3.0; other text as it is."""
    return text_of(float(text)) if is_number(text) else text
