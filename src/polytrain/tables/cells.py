"""The cells of one column of a table in a file: as text, as codes of distinct texts, and as values of a form."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.cells import Cells
from polytrain.columns.forms import Form, is_number
from polytrain.columns.scalars import is_missing, text_of
from polytrain.columns.table import open_table
from polytrain.tables.options import TableError

__all__ = ["FileCells"]


class FileCells:
    """The cells of a column, a pandas.Series of any type; text is stripped here. ``label`` names the table.

    Examples
    --------
    >>> import pandas
    >>> from polytrain.columns.forms import Form
    >>> from polytrain.tables.cells import FileCells
    >>> column = FileCells(pandas.Series(["1,5", "?", "2", "1,5"]), "a.csv")
    >>> column.values(Form("number", ","), {"?"})
    (array([1.5, nan, 2. , 1.5]), None)
    >>> column.values(Form("number"), {"?"})[1]
    0
    >>> column.coded({"?"})
    (array([ 0, -1,  1,  0]), ['1,5', '2'])
    """

    def __init__(self, series: Any, label: str) -> None:
        self._series, self._label = series, label

    def __len__(self) -> int:
        return len(self._series)

    def __getitem__(self, row: int) -> str:
        """Text of a cell; numbers of files with types in their shortest form."""
        return _text(self._series.iloc[row])

    def __iter__(self) -> Iterator[str]:
        return map(_text, self._series)

    @cached_property
    def _cells(self) -> Cells:
        try:
            return open_table(self._series.to_frame()).read(0)
        except ValueError as error:
            raise TableError(f"{self._label}: {error}") from None

    @cached_property
    def form(self) -> Form | None:
        """What the type of the column says; None for text, which is yet to be understood."""
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

    def coded(self, missing: Collection[str]) -> tuple[NDArray, list[str]]:
        """Return int64 codes, -1 for missing cells, and the different texts."""
        codes, texts = self._cells.levels(as_text=True)
        known: dict[str, int] = {}
        stripped = [str(text).strip() for text in texts]
        places = [known.setdefault(text, len(known)) if text and text not in missing else -1 for text in stripped]
        return np.array([*places, -1], dtype=np.int64)[codes], list(known)

    def values(self, form: Form, missing: Collection[str]) -> tuple[NDArray, int | None]:
        """Return values, and the index of the first cell that does not fit the form, or None if all do.

        Values are float64 with NaN for missing cells, or datetime64[us] with NaT. Infinite numbers do not fit.
        """
        if self.form is not None and self.form.kind != "text":
            values, wrong = self._typed_values(form, missing)
        elif form.is_plain and (numbers := self._plain_numbers(missing)) is not None:
            return numbers, None
        else:
            codes, texts = self.coded(missing)
            parsed = [form.parse(text) for text in texts]
            wrong = np.array([*(value is None for value in parsed), False])[codes]
            is_date = form.kind == "date"
            gap = np.iinfo(np.int64).min if is_date else np.nan
            found = np.array(
                [*(gap if value is None else value for value in parsed), gap], "int64" if is_date else "f8"
            )
            values = (found.view("datetime64[us]") if is_date else found)[codes]
        if wrong.any():
            return np.full(len(self), np.nan).astype(values.dtype), int(wrong.argmax())
        return values, None

    def _plain_numbers(self, missing: Collection[str]) -> NDArray | None:
        """Return what pandas reads as finite numbers; None if any cell is something else."""
        import pandas

        if self._series.dtype != "str":
            return None
        values = pandas.to_numeric(self._series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        gone = self._series.str.strip().isin(["", *missing]).to_numpy()
        values = np.where(gone, np.nan, values)
        return values if (np.isfinite(values) | gone).all() else None

    def _typed_values(self, form: Form, missing: Collection[str]) -> tuple[NDArray, NDArray]:
        """Return values of a column that has a type, and which of them do not fit the form."""
        if self._cells.kind == "date":
            values = self._cells.dates().astype("datetime64[us]")
            fits = form.kind == "date"
            return (values, np.zeros(len(self), bool)) if fits else (np.full(len(self), np.nan), ~np.isnat(values))
        values = self._cells.numbers()
        for marker in filter(is_number, missing):
            values = np.where(values == float(marker), np.nan, values)
        present = ~np.isnan(values)
        if form.kind == "date":
            return np.full(len(self), np.datetime64("NaT", "us")), present
        if form.kind == "text":
            return values, present
        return values, np.isinf(values) | (form.kind == "truth") & present & (values != 0) & (values != 1)


def _text(value: Any) -> str:
    return "" if is_missing(value) else text_of(value).strip()
