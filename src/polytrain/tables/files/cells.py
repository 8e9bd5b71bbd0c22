"""Cells of a column, and how they become values or codes.

Conventions
-----------
A column of a block holds cells of one kind. The text of a cell is stripped, and missing if it is empty or among the
markers for missing values; cells of files with types may also be missing as such, and their text is then empty.
`TextColumn` is the slow and obvious one: `ArrowTextColumn` in ``arrow_cells.py`` must equal it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.forms import DEFAULT_MISSING, Form
from polytrain.columns.number_texts import is_number

__all__ = [
    "DEFAULT_MISSING",
    "CellColumn",
    "DateColumn",
    "NumberColumn",
    "TextColumn",
    "TruthColumn",
    "number_text",
    "shortest_text",
]


class CellColumn(Protocol):
    """Cells of one column in one block.

    ``form`` is that of the type, in files with types; None where the text has yet to be understood.
    """

    form: Form | None

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> str:
        """Text of a cell as it stands in the file, stripped; numbers of files with types in their shortest form."""

    def values(self, form: Form, missing: frozenset[str]) -> tuple[NDArray, int | None]:
        """Return values, and the index of the first cell that does not fit the form, or None if all do.

        Values are float64 with NaN for missing cells, or datetime64[us] with NaT. Infinite numbers do not fit. The
        values say nothing if there is a cell that does not fit.
        """

    def coded(self, missing: frozenset[str]) -> tuple[NDArray, list[str]]:
        """Return int64 codes, -1 for missing cells, and the different texts, in the order of their first cells."""


class TextColumn:
    """Cells as a list of stripped text.

    Parameters
    ----------
    texts : sequence of str
        The cells.
    form : Form, optional
        That of the type, where the file says that it is text.

    Examples
    --------
    >>> from polytrain.tables.files import Form
    >>> from polytrain.tables.files.cells import TextColumn
    >>> column = TextColumn(["1,5", "?", "2", "1,5"])
    >>> column.values(Form("number", ","), frozenset("?"))
    (array([1.5, nan, 2. , 1.5]), None)
    >>> column.values(Form("number"), frozenset("?"))[1]
    0
    >>> column.coded(frozenset("?"))
    (array([ 0, -1,  1,  0]), ['1,5', '2'])
    """

    def __init__(self, texts: Sequence[str], form: Form | None = None) -> None:
        self._texts = texts
        self.form = form

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> str:
        return self._texts[index]

    def values(self, form: Form, missing: frozenset[str]) -> tuple[NDArray, int | None]:
        """Return values and the index of the first misfit, see `CellColumn`."""
        if form.is_plain and (plain := self._plain_numbers(missing)) is not None:
            return plain, None
        gone = float("nan") if form.kind != "date" else np.iinfo(np.int64).min  # NaT
        values: list[float | int] = []
        for index, text in enumerate(self._texts):
            value = gone if not text or text in missing else form.parse(text)
            if value is None:
                return _no_values(form, len(self)), index
            values.append(value)
        if form.kind == "date":
            return np.array(values, dtype=np.int64).view("datetime64[us]"), None
        return np.array(values, dtype=np.float64), None

    def _plain_numbers(self, missing: frozenset[str]) -> NDArray | None:
        """Return plain numbers, None if there might be anything else."""
        texts = ["nan" if not text or text in missing else text for text in self._texts]
        try:
            values = np.array(texts, dtype=np.float64)
        except ValueError:
            return None
        whole = "".join(texts)
        # NumPy reads what Python does: 1_000 and digits of all scripts, too. Other words than nan are not finite.
        if "_" in whole or not whole.isascii() or np.count_nonzero(~np.isfinite(values)) != texts.count("nan"):
            return None
        return values if "nan" not in self._texts or "nan" in missing else None

    def coded(self, missing: frozenset[str]) -> tuple[NDArray, list[str]]:
        """Return codes and texts, see `CellColumn`."""
        known: dict[str, int] = {}
        codes = [-1 if not text or text in missing else known.setdefault(text, len(known)) for text in self._texts]
        return np.array(codes, dtype=np.int64), list(known)


class _TypedColumn(ABC):
    """Cells of a file with types: an array, and which of them are missing."""

    form: Form | None

    def __init__(self, cells: NDArray, gone: NDArray | None = None) -> None:
        self._cells = cells
        self._gone = np.zeros(len(cells), dtype=bool) if gone is None else gone

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: int) -> str:
        return "" if self._gone[index] else self._text(self._cells[index])

    @abstractmethod
    def _text(self, cell: object) -> str:
        """Text of a cell that is there."""

    def coded(self, missing: frozenset[str]) -> tuple[NDArray, list[str]]:
        """Return codes and texts, see `CellColumn`."""
        codes = np.full(len(self), -1, dtype=np.int64)
        present = np.flatnonzero(~self._gone)
        distinct, first, inverse = np.unique(self._cells[present], return_index=True, return_inverse=True)
        texts = [self._text(cell) for cell in distinct]
        known: dict[str, int] = {}
        # Two values may share a text, such as 0 and -0, and values that are markers are missing after all.
        for number in np.argsort(first):
            if texts[number] not in missing:
                known.setdefault(texts[number], len(known))
        codes[present] = np.array([known.get(text, -1) for text in texts], dtype=np.int64)[inverse]
        return codes, list(known)

    def _marked(self, missing: frozenset[str]) -> NDArray:
        """Which cells are missing, markers included."""
        gone = self._gone
        for marker in missing:
            if is_number(marker) and number_text(marker) == marker:
                gone = gone | (self._cells == float(marker))
        return gone


class NumberColumn(_TypedColumn):
    """Cells that are numbers.

    Parameters
    ----------
    cells : ndarray of numbers
    gone : ndarray of bool, optional
        Which are missing; NaN is, too.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.tables.files.cells import NumberColumn
    >>> column = NumberColumn(np.array([3.0, np.nan, 0.25]))
    >>> column[0], column[1], column[2]
    ('3', '', '0.25')
    """

    form: Form | None = Form("number")

    def __init__(self, cells: NDArray, gone: NDArray | None = None) -> None:
        if cells.dtype.kind == "f":
            gone = np.isnan(cells) if gone is None else gone | np.isnan(cells)
        super().__init__(cells, gone)

    def _text(self, cell: object) -> str:
        return str(int(cell)) if isinstance(cell, np.integer) else shortest_text(float(cell))  # type: ignore[arg-type]

    def values(self, form: Form, missing: frozenset[str]) -> tuple[NDArray, int | None]:
        """Return values and the index of the first misfit, see `CellColumn`."""
        gone = self._marked(missing)
        values = np.where(gone, np.nan, self._cells.astype(np.float64))
        misfit = np.isinf(values)
        if form.kind == "truth":
            misfit |= ~gone & (values != 0) & (values != 1)
        elif form.kind != "number":
            misfit = ~gone
        if misfit.any():
            return _no_values(form, len(self)), int(misfit.argmax())
        return (values if form.kind != "date" else _no_values(form, len(self))), None


class TruthColumn(_TypedColumn):
    """Cells that are true or false.

    Parameters
    ----------
    cells : ndarray of bool
    gone : ndarray of bool, optional
        Which are missing.
    """

    form: Form | None = Form("truth")

    def _text(self, cell: object) -> str:
        return "True" if cell else "False"

    def values(self, form: Form, missing: frozenset[str]) -> tuple[NDArray, int | None]:
        """Return values and the index of the first misfit, see `CellColumn`."""
        if form.kind in ("truth", "number"):
            return np.where(self._gone, np.nan, self._cells.astype(np.float64)), None
        return _no_values(form, len(self)), _first(~self._gone)


class DateColumn(_TypedColumn):
    """Cells that are dates, in their local time.

    Parameters
    ----------
    cells : ndarray of datetime64
        NaT is missing.
    """

    form: Form | None = Form("date")

    def __init__(self, cells: NDArray) -> None:
        cells = cells.astype("datetime64[us]")
        super().__init__(cells, np.isnat(cells))

    def _text(self, cell: object) -> str:
        text = str(cell)
        if text.endswith("T00:00:00.000000"):
            return text[:10]
        return text.rstrip("0").removesuffix(".") if text.endswith("0") and "." in text else text

    def values(self, form: Form, missing: frozenset[str]) -> tuple[NDArray, int | None]:
        """Return values and the index of the first misfit, see `CellColumn`."""
        if form.kind == "date":
            return self._cells, None
        return _no_values(form, len(self)), _first(~self._gone)


def number_text(text: str) -> str:
    """Return a plain number in its shortest form, as in 3 for 3.0; other text as it is."""
    return shortest_text(float(text)) if is_number(text) else text


def shortest_text(value: float) -> str:
    """Return a number in its shortest form."""
    return str(int(value)) if abs(value) < 2**53 and value == int(value) else repr(value)


def _first(mask: NDArray) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def _no_values(form: Form, n: int) -> NDArray:
    if form.kind == "date":
        return np.full(n, "NaT", dtype="datetime64[us]")
    return np.full(n, np.nan)
