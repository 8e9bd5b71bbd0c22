"""The cells of one column, in NumPy's types, whatever library the column comes from.

Conventions
-----------
Cells are either all there, one by one (``codes`` is None), or there is a list of values and, for every row, the index
of its value (``codes``, -1 for a missing one). Values are numbers, dates or durations in NumPy's own types, or objects;
objects are always different from each other, occur in the rows, and none of them is missing. So whatever needs a loop
in Python runs over different values, not over rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.date_texts import parse_date
from polytrain.columns.forms import DEFAULT_MISSING
from polytrain.columns.scalars import Level, date_of, is_missing, level_of, number_of, show, sort_of, text_of

__all__ = ["Cells", "used_codes"]

_NUMBERS = frozenset({"number", "duration", "time"})


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column.

    Parameters
    ----------
    name : str
        Name of the column, for errors.
    values : ndarray
        All cells, or different values of them.
    codes : ndarray of intp or None
        Which of the values each row has, -1 for none; None if `values` has one value per row.
    is_category : bool
        Whether the type of the column says that it holds categories.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.columns.cells import Cells
    >>> cells = Cells.of_array("size", np.array([1, None, 2.5], dtype=object))
    >>> cells.kind, cells.numbers()
    ('number', array([1. , nan, 2.5]))
    """

    name: str
    values: NDArray
    codes: NDArray | None = None
    is_category: bool = False

    @classmethod
    def of_array(cls, name: str, array: NDArray) -> Self:
        """Take an array of any type, one cell per row."""
        if array.dtype.kind in "biufMm":
            return cls(name, array.astype(np.float64) if array.dtype == np.longdouble else array)
        if array.dtype.kind in "US":
            values, codes = np.unique(array, return_inverse=True)
            return cls.of_distinct(name, values.tolist(), codes)
        return cls.of_objects(name, array.astype(object, copy=False))

    @classmethod
    def of_masked(cls, name: str, values: NDArray, missing: NDArray) -> Self:
        """Take an array of numbers and say which of them are missing."""
        return cls(name, values, np.where(missing, -1, np.arange(len(values))) if missing.any() else None)

    @classmethod
    def of_objects(cls, name: str, objects: Iterable[Any]) -> Self:
        """Take any Python values, one per row."""
        items = list(objects)
        types = set(map(type, items))
        _check_types(name, items, types)
        # Python takes True and 1, or 1 and Decimal(1), as the same key; with their types they are not.
        several = len({kind for kind in types if sort_of(kind) != "missing"}) > 1
        keys: list[Any] = list(zip(map(type, items), items, strict=True)) if several else items
        try:
            index = dict.fromkeys(keys, -1)
        except TypeError:
            _refuse_unhashable(name, items)
        kept = [key for key in index if not is_missing(key[1] if several else key)] if types != {str} else list(index)
        index.update(zip(kept, range(len(kept)), strict=True))
        codes = np.fromiter(map(index.__getitem__, keys), dtype=np.intp, count=len(keys))
        values = (key[1] for key in kept) if several else kept
        return cls(name, np.fromiter(values, dtype=object, count=len(kept)), codes)

    @classmethod
    def of_distinct(cls, name: str, objects: Iterable[Any], codes: NDArray) -> Self:
        """Take different Python values that all occur, and say which of them each row has, -1 for none."""
        items = list(objects)
        if not set(map(type, items)) <= {str}:
            return cls.of_objects(name, items).spread(codes)
        return cls(name, np.fromiter(items, dtype=object, count=len(items)), np.asarray(codes, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.values if self.codes is None else self.codes)

    def spread(self, codes: NDArray) -> Self:
        """Say which of these cells each of other rows has, -1 for none."""
        codes = np.asarray(codes, dtype=np.intp)
        if self.codes is not None:
            codes = np.append(self.codes, -1)[codes]
        return replace(self, codes=codes)

    @cached_property
    def _sorts(self) -> set[str]:
        """What the objects are."""
        return set(map(sort_of, set(map(type, self.values.tolist()))))

    @cached_property
    def kind(self) -> str:
        """What the cells are: "number", "date", "text", "mixed", or "empty" if all of them are missing."""
        letter = self.values.dtype.kind
        if letter != "O":
            present = self.values if self.codes is None else self.values[self.codes[self.codes >= 0]]
            if not present.size or (letter in "f" and np.isnan(present).all()) or np.isnat(_as_times(present)).all():
                return "empty"
            return "date" if letter == "M" else "number"
        match list(self._sorts):
            case []:
                return "empty"
            case [sort]:
                return "number" if sort in _NUMBERS else "date" if sort == "date" else "text"
        return "mixed"

    def numbers(self) -> NDArray:
        """Return float64 per row: durations are days, times of day are hours, missing ones are NaN."""
        match self.values.dtype.kind:
            case "O":
                self._demand(_NUMBERS, "numbers", "Give numbers, with NaN where one is missing")
                found = np.array([_as_float(number_of(value)) for value in self.values.tolist()], dtype=np.float64)
            case "m":
                found = _days(self.values)
            case "M":
                self._demand_empty("numbers", "Give numbers, with NaN where one is missing")
                found = np.full(len(self.values), np.nan)
            case _:
                found = self.values.astype(np.float64)
        return found if self.codes is None else np.append(found, np.nan)[self.codes]

    def dates(self, pattern: str = "iso") -> NDArray:
        """Return datetime64 per row, the local time where a zone is known; NaT for missing ones.

        Text is read in the way that `pattern` says, see `polytrain.columns.forms.Form`.
        """
        remedy = "Give dates, for example with pandas.to_datetime"
        match self.values.dtype.kind:
            case "O":
                self._demand({"date", "text"}, "dates", remedy)
                moments = [_moment(value, pattern) for value in self.values.tolist()]
                wrong = np.array([moment is None for moment in moments], dtype=bool)
                if wrong.any():
                    self._refuse(wrong, "dates", remedy)
                found = np.array(moments, dtype="datetime64[us]")
            case "M":
                found = self.values
            case _:
                self._demand_empty("dates", remedy)
                found = np.full(len(self.values), np.datetime64("NaT", "us"))
        return found if self.codes is None else np.append(found, np.datetime64("NaT"))[self.codes]

    def levels(self, as_text: bool = False) -> tuple[NDArray, list[Level]]:
        """Return the number of a level per row, -1 for missing ones, and the levels, in any order.

        Two of the levels may be equal: ``1`` and ``1.0`` are, if they were objects of their own.
        """
        values, codes = self.values, self.codes
        if values.dtype.kind != "O":
            values = _days(values) if values.dtype.kind == "m" else values
            values, inverse = np.unique(values, return_inverse=True)
            gone = np.isnan(values) if values.dtype.kind == "f" else np.isnat(_as_times(values))
            values, inverse = values[~gone], np.where(gone[inverse], -1, inverse)  # missing values are the last ones
            codes = inverse if codes is None else np.append(inverse, -1)[codes]
            if codes is not inverse:  # what stood in the place of missing values is not a level
                used, codes = used_codes(codes)
                values = values[used]
        assert codes is not None
        if as_text:
            return codes, [text_of(value) for value in values]
        if values.dtype.kind in "biuf":
            return codes, values.tolist()
        items = list(values)  # not tolist(), which makes integers of some dates
        return codes, items if set(map(type, items)) <= {str} else [level_of(value) for value in items]

    def _demand(self, allowed: set[str] | frozenset[str], held: str, remedy: str) -> None:
        """Refuse objects that are of another sort."""
        if not self._sorts <= allowed:
            wrong = [sort_of(type(value)) not in allowed for value in self.values.tolist()]
            self._refuse(np.array(wrong), held, remedy)

    def _demand_empty(self, held: str, remedy: str) -> None:
        """Refuse values in NumPy's types if any is there."""
        if self.kind != "empty":
            present = self.values == self.values
            self._refuse(present, held, remedy)

    def _refuse(self, wrong: NDArray, held: str, remedy: str) -> NoReturn:
        codes = np.arange(len(wrong)) if self.codes is None else self.codes
        first = codes[np.append(wrong, False)[codes].argmax()]
        value = self.values[first]
        if isinstance(value, np.generic) and self.values.dtype.kind != "O":
            value = text_of(value) if self.values.dtype.kind == "M" else value.item()
        raise ValueError(
            f"column {self.name!r} held {held} in training, but now holds {show(value)}. {remedy}, or fit again with "
            "rows like these."
        )


def used_codes(codes: NDArray) -> tuple[NDArray, NDArray]:
    """Return which codes occur, ascending, and the place of each row's code among them; -1 stays.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.columns.cells import used_codes
    >>> used_codes(np.array([7, -1, 3, 7]))
    (array([3, 7]), array([ 1, -1,  0,  1]))
    """
    count = np.bincount(codes[codes >= 0])
    used = np.flatnonzero(count)
    places = np.full(len(count) + 1, -1, dtype=np.intp)
    places[used] = np.arange(len(used))
    return used, places[codes]


def _as_times(values: NDArray) -> NDArray:
    """Dates and durations as they are; for other types something that is never NaT."""
    return values if values.dtype.kind in "mM" else np.zeros(len(values), dtype="timedelta64[s]")


def _as_float(number: int | float | bool) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of more than 308 digits
        return np.inf if number > 0 else -np.inf


def _moment(value: Any, pattern: str) -> np.datetime64 | None:
    """A date, or text that is one; None for other text."""
    if sort_of(type(value)) == "date":
        return date_of(value)
    text = text_of(value).strip()
    if not text or text in DEFAULT_MISSING:
        return np.datetime64("NaT", "us")
    microseconds = parse_date(text, pattern)
    return None if microseconds is None else np.datetime64(microseconds, "us")


def _days(durations: NDArray) -> NDArray:
    return durations / np.timedelta64(1, "D")


def _check_types(name: str, items: list[Any], types: set[type]) -> None:
    if any(sort_of(kind) == "complex" for kind in types):
        value = next(item for item in items if sort_of(type(item)) == "complex")
        raise ValueError(
            f"Complex data not supported: column {name!r} holds {show(value)}. Give its parts as two columns of real "
            "numbers."
        )


def _refuse_unhashable(name: str, items: list[Any]) -> NoReturn:
    for item in items:
        try:
            hash(item)
        except TypeError:
            raise ValueError(
                f"column {name!r} holds {show(item)}, of type {type(item).__name__}. A cell must hold a single value: "
                "a number, text or a date. Spread its parts over columns, or leave the column out."
            ) from None
    raise AssertionError("something was not hashable")
