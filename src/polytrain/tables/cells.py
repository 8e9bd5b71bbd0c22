"""The cells of one column of a table in a file: as text, as codes of distinct texts, and as values of a form."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.cells import Cells
from polytrain.columns.forms import Form, find_form, is_number
from polytrain.columns.scalars import is_missing, text_of
from polytrain.columns.table import open_table
from polytrain.tables.options import TableError
from polytrain.tables.table_file import TableFile

__all__ = ["FileCells"]


class FileCells:
    """The cells of a column, a pandas.Series of any type from a block of ``table``; text is stripped here.

    ``missing`` are the texts that stand for a missing value, besides the empty cell.
    """

    def __init__(self, series: Any, table: TableFile, missing: Collection[str] = ()) -> None:
        self._series, self._table, self._missing = series, table, missing
        self.name = series.name

    def __len__(self) -> int:
        return len(self._series)

    def __getitem__(self, row: int) -> str:
        """Text of a cell; numbers of files with types in their shortest form."""
        return _text(self._series.iloc[row])

    def __iter__(self) -> Iterator[str]:
        return map(_text, self._series)

    def place(self, row: int) -> str:
        """Return where a cell is, for a message: the file and its line."""
        return f"{self._table.label}, {self._table.place(self._series.index[row])}"

    @cached_property
    def _cells(self) -> Cells:
        try:
            return open_table(self._series.to_frame()).read(0)
        except ValueError as error:
            raise TableError(f"{self._table.label}: {error}") from None

    @cached_property
    def declared(self) -> Form | None:
        """The form that the type of the column declares; None for text, whose form is yet to be found."""
        if self._series.dtype == "str":
            return None
        cells = self._cells
        if cells.is_category:
            return Form("text")
        if cells.kind in ("text", "mixed", "empty"):
            return None
        if cells.kind == "date":
            return Form("date")
        is_truth = cells.values.dtype.kind == "b" or set(map(type, cells.values.tolist())) == {bool}
        return Form("truth" if is_truth else "number")

    @cached_property
    def coded(self) -> tuple[NDArray, list[str]]:
        """int64 codes, -1 for missing cells, and the distinct texts."""
        codes, texts = self._cells.levels(as_text=True)
        known: dict[str, int] = {}
        stripped = [str(text).strip() for text in texts]
        places = [known.setdefault(text, len(known)) if text and text not in self._missing else -1 for text in stripped]
        return np.array([*places, -1], dtype=np.int64)[codes], list(known)

    def find_form(self, decimal: str | None) -> Form:
        """Return the form that fits the texts, see `polytrain.columns.forms.find_form`."""
        return find_form(self.coded[1], decimal=decimal, delimiter=self._table.delimiter)

    def values(self, form: Form) -> tuple[NDArray, int | None]:
        """Return values, and the index of the first cell that does not fit the form, or None if all do.

        Values are float64 with NaN for missing cells, or datetime64[us] with NaT. Infinite numbers do not fit. Text has
        its codes.
        """
        if form.kind == "text":
            return self.coded[0], None
        if self.declared is not None and self.declared.kind != "text":
            values, wrong = self._typed_values(form)
        elif form.is_plain and (numbers := self._plain_numbers()) is not None:
            return numbers, None
        else:
            codes, texts = self.coded
            parsed = [form.parse(text) for text in texts]
            wrong = np.array([*(value is None for value in parsed), False])[codes]
            is_date = form.kind == "date"
            gap = np.iinfo(np.int64).min if is_date else np.nan
            filled = [*(gap if value is None else value for value in parsed), gap]
            values = np.array(filled, np.int64).view("M8[us]")[codes] if is_date else np.array(filled, float)[codes]
        return values, int(wrong.argmax()) if wrong.any() else None

    def _plain_numbers(self) -> NDArray | None:
        """Return what pandas reads as finite numbers; None if any cell is something else."""
        import pandas

        if self._series.dtype != "str":
            return None
        values = pandas.to_numeric(self._series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        gone = self._series.str.strip().isin(["", *self._missing]).to_numpy()
        values = np.where(gone, np.nan, values)
        return values if (np.isfinite(values) | gone).all() else None

    def _typed_values(self, form: Form) -> tuple[NDArray, NDArray]:
        """Return values of a column that has a type, and which of them do not fit the form."""
        if self._cells.kind == "date":
            values = self._cells.dates().astype("datetime64[us]")
            return values, ~np.isnat(values) & (form.kind != "date")
        values = self._cells.numbers()
        for marker in filter(is_number, self._missing):
            values = np.where(values == float(marker), np.nan, values)
        present = ~np.isnan(values)
        if form.kind == "date":
            return np.full(len(self), np.datetime64("NaT", "us")), present
        return values, np.isinf(values) | (form.kind == "truth") & present & (values != 0) & (values != 1)


def _text(value: Any) -> str:
    return "" if is_missing(value) else text_of(value).strip()
