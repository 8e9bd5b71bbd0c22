"""The cells of one column, in NumPy's types, whatever library the column comes from.

Conventions
-----------
Either ``values`` has one value per row (``codes`` is None), or ``codes`` has the index of each row's value, -1 for a
missing one. Values are numbers or dates in NumPy's own types, or objects. Objects are distinct, occur in the rows and
are never missing, so that loops in Python run over distinct values, not over rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.forms import DEFAULT_MISSING, Form
from polytrain.columns.scalars import Level, date_of, is_missing, level_of, number_of, sort_of, text_of
from polytrain.texts import shown

__all__ = ["Cells", "used_codes"]

_KINDS = {"number": "number", "duration": "number", "time": "number", "date": "date"}
_REMEDIES = {
    "numbers": "Give numbers, with NaN where one is missing",
    "dates": "Give dates, for example with pandas.to_datetime",
}


@dataclass(frozen=True, eq=False)
class Cells:
    """The name of a column, for errors, and its cells; ``is_category`` says that its type declares categories."""

    name: str
    values: NDArray
    codes: NDArray | None = None
    is_category: bool = False

    @classmethod
    def of_array(cls, name: str, array: NDArray, missing: NDArray | None = None) -> Self:
        """Build cells from an array of any type, one per row, and perhaps a mask of the missing ones."""
        if array.dtype.kind not in "biufMm":
            return cls.of_objects(name, array.astype(object, copy=False))
        if array.dtype.kind == "m":
            array = array / np.timedelta64(1, "D")
        elif array.dtype == np.longdouble:
            array = array.astype(np.float64)
        codes = np.where(missing, -1, np.arange(len(array))) if missing is not None and missing.any() else None
        return cls(name, array, codes)

    @classmethod
    def of_objects(cls, name: str, objects: Iterable[Any]) -> Self:
        """Build cells from any Python values, one per row."""
        items = list(objects)
        types = set(map(type, items))
        if any(sort_of(kind) == "complex" for kind in types):
            value = next(item for item in items if sort_of(type(item)) == "complex")
            raise ValueError(
                f"Complex data not supported: column {name!r} holds {shown(value)}. Give its parts as two columns of "
                "real numbers."
            )
        # True and 1, or 1 and Decimal(1), are the same key of a dict; together with their types they are not.
        several = len({kind for kind in types if sort_of(kind) != "missing"}) > 1
        keys: list[Any] = list(zip(map(type, items), items, strict=True)) if several else items
        try:
            index = dict.fromkeys(keys, -1)
        except TypeError:
            item = next(item for item in items if not _is_hashable(item))
            raise ValueError(
                f"column {name!r} holds {shown(item)}, of type {type(item).__name__}. A cell must hold a single value: "
                "a number, text or a date. Put its parts into columns of their own, or leave the column out."
            ) from None
        present = [key for key in index if not is_missing(key[1] if several else key)]
        index.update(zip(present, range(len(present)), strict=True))
        codes = np.fromiter(map(index.__getitem__, keys), dtype=np.intp, count=len(keys))
        values = (key[1] for key in present) if several else present
        return cls(name, np.fromiter(values, dtype=object, count=len(present)), codes)

    def take(self, codes: NDArray) -> Self:
        """Return cells of other rows, given the index here of each, -1 for a missing one."""
        codes = np.asarray(codes, dtype=np.intp)
        return replace(self, codes=codes if self.codes is None else np.append(self.codes, -1)[codes])

    @cached_property
    def _sorts(self) -> set[str]:
        """Sorts of the values that are not missing."""
        if self.values.dtype.kind == "O":
            return set(map(sort_of, set(map(type, self.values.tolist()))))
        present = self.values if self.codes is None else self.values[self.codes[self.codes >= 0]]
        if np.isnan(present).all():  # NaN or NaT
            return set()
        return {"date" if self.values.dtype.kind == "M" else "number"}

    @cached_property
    def kind(self) -> str:
        """One of "number", "date", "text", "mixed", and "empty" if all cells are missing."""
        if not self._sorts:
            return "empty"
        return "mixed" if len(self._sorts) > 1 else _KINDS.get(next(iter(self._sorts)), "text")

    def numbers(self) -> NDArray:
        """Return float64 per row, NaN for missing cells; durations are in days, times of day in hours."""
        self._require(_KINDS.keys() - {"date"}, "numbers")
        if self.values.dtype.kind == "O":
            numbers = np.array([_as_float(number_of(value)) for value in self.values.tolist()], dtype=np.float64)
        elif self.kind == "empty":
            numbers = np.full(len(self.values), np.nan)
        else:
            numbers = self.values.astype(np.float64)
        return numbers if self.codes is None else np.append(numbers, np.nan)[self.codes]

    def dates(self, pattern: str = "iso") -> NDArray:
        """Return datetime64 per row, NaT for missing cells, in local time if there is a time zone.

        Text is read by `pattern`, see `polytrain.columns.forms.Form`.
        """
        self._require({"date", "text"}, "dates")
        dates = self.values
        if dates.dtype.kind == "O":
            form = Form("date", pattern=pattern)
            moments = [_moment(value, form) for value in dates.tolist()]
            if None in moments:
                self._refuse(np.array([moment is None for moment in moments]), "dates")
            dates = np.array(moments, dtype="datetime64[us]")
        elif dates.dtype.kind != "M":  # all of them are missing
            dates = np.full(len(dates), np.datetime64("NaT", "us"))
        return dates if self.codes is None else np.append(dates, np.datetime64("NaT"))[self.codes]

    def levels(self, as_text: bool = False) -> tuple[NDArray, list[Level]]:
        """Return the index of a level per row, -1 for missing cells, and the levels, in any order.

        Two levels may be equal, such as the objects ``1`` and ``1.0``.
        """
        values, codes = self.values, self.codes
        if values.dtype.kind != "O":
            values, inverse = np.unique(values, return_inverse=True)
            inverse = np.where(np.isnan(values)[inverse], -1, inverse)
            # Missing values, and the placeholders of masked ones, are not levels.
            used, codes = used_codes(inverse if codes is None else np.append(inverse, -1)[codes])
            values = values[used]
        assert codes is not None
        if as_text:
            return codes, [text_of(value) for value in values]
        if values.dtype.kind in "biuf":
            return codes, values.tolist()
        items = list(values)  # tolist() would turn some dates into integers
        return codes, items if set(map(type, items)) <= {str} else [level_of(value) for value in items]

    def _require(self, allowed: set[str], held: str) -> None:
        """Refuse values of other sorts than those allowed."""
        if not self._sorts <= allowed:
            wrong = [sort_of(type(value)) not in allowed and not is_missing(value) for value in self.values]
            self._refuse(np.array(wrong), held)

    def _refuse(self, wrong: NDArray, held: str) -> None:
        """Raise an error that shows the first row whose value is wrong."""
        codes = np.arange(len(wrong)) if self.codes is None else self.codes
        value = self.values[codes[np.append(wrong, False)[codes].argmax()]]
        value = level_of(value) if isinstance(value, np.generic) else value
        raise ValueError(
            f"column {self.name!r} held {held} in training, but now holds {shown(value)}. {_REMEDIES[held]}, or fit "
            "again with rows like these."
        )


def used_codes(codes: NDArray) -> tuple[NDArray, NDArray]:
    """Return the codes that occur, ascending, and the index of each row's code among them; -1 stays."""
    used, places = np.unique(codes, return_inverse=True)
    n_missing = np.count_nonzero(used < 0)
    return used[n_missing:], places - n_missing


def _as_float(number: int | float | bool) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer with more than 308 digits
        return np.inf if number > 0 else -np.inf


def _moment(value: Any, form: Form) -> np.datetime64 | None:
    """Return a date, or the date that a text holds; None for other text."""
    if sort_of(type(value)) == "date":
        return date_of(value)
    text = text_of(value).strip()
    if not text or text in DEFAULT_MISSING:
        return np.datetime64("NaT", "us")
    microseconds = form.parse(text)
    return None if microseconds is None else np.datetime64(int(microseconds), "us")


def _is_hashable(item: Any) -> bool:
    try:
        hash(item)
    except TypeError:
        return False
    return True
