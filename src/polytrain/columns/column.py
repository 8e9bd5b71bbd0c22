"""The encoding of one column: as a number, as categories, or as the parts of a date."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.checks import warn_of_data
from polytrain.columns.cells import Cells
from polytrain.columns.forms import DATE_PATTERNS, DEFAULT_MISSING, find_form
from polytrain.columns.scalars import Level, check_hashes, sort_levels, text_of
from polytrain.records import read_value
from polytrain.texts import shown

__all__ = ["CategoryColumn", "Column", "DateColumn", "NumberColumn", "TextColumn", "column_from_json", "fit_column"]

#: Parts of a date that become features if they vary; "time" always does.
_CALENDAR = ("month", "weekday", "hour")
# JSON does not have infinity.
_INFINITIES: dict[Level, dict[str, str]] = {number: {"number": str(number)} for number in (math.inf, -math.inf)}
# Largest number of texts of a column that are examined one by one for a warning.
_MOST_EXAMINED = 100
_REMEDIES = {
    "number": "Convert it to numbers, for example with pandas.to_numeric, or thousands and decimal of pandas.read_csv",
    "date": "Convert it to dates, for example with pandas.to_datetime",
}


@dataclass(frozen=True)
class Column(ABC):
    """The encoding of a column as one or more columns of numbers, the features."""

    kind: ClassVar[str]

    name: str

    @abstractmethod
    def encode(self, cells: Cells) -> list[NDArray]:
        """Return the features of some rows, float64 of shape (N,) each."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.name,)

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Combine columns that were fitted to parts of the rows."""
        return parts[0]

    def to_json(self) -> dict[str, Any]:
        """Return values that JSON can hold."""
        return {"kind": self.kind, **self.__getstate__()}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Check and undo `to_json`, without the kind."""
        return read_value(f"column {shown(entries.get('name'))}", entries, cls)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without cached properties


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers: also True and False, durations (in days) and times of day (in hours).

    It is ``empty`` if every value was missing in training, so that the column might have been of any kind.
    """

    kind: ClassVar[str] = "number"

    empty: bool = False

    def encode(self, cells: Cells) -> list[NDArray]:
        return [cells.numbers()]


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column of categories, which become the indices 0, 1, ... of their levels.

    Levels are the distinct values in training: numbers first, ascending, then text by code point. They are compared by
    value: 1, 1.0 and True are one level, and "1" is another. Fractions are compared in single precision, unless that
    would make two levels equal. With ``as_text``, because numbers were mixed with text, every value is replaced by its
    text: 1 and 1.0 by "1". Missing cells become NaN, unknown levels -1.

    >>> colours = CategoryColumn("colour", ("blue", "red"))
    >>> colours.encode(Cells.of_objects("colour", ["red", None, "pink"]))
    [array([ 1., nan, -1.])]
    """

    kind: ClassVar[str] = "category"

    levels: tuple[Level, ...]
    as_text: bool = False

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        as_text = cells.kind == "mixed" and not cells.is_category
        return cls(cells.name, sort_levels(cells.levels(as_text)[1]), as_text)

    def encode(self, cells: Cells) -> list[NDArray]:
        codes, levels = cells.levels(self.as_text)
        indices, rounded = self._indices
        encoded = np.full(len(levels) + 1, np.nan)  # the last one is for missing values
        encoded[:-1] = list(map(indices.get, _rounded(levels) if rounded else levels, repeat(-1)))
        return [encoded[codes]]

    @cached_property
    def _indices(self) -> tuple[dict[Level, int], bool]:
        """Indices by level, and whether levels are rounded to single precision, where they still differ."""
        has_numbers = not all(isinstance(level, str) for level in self.levels[:1])  # numbers come first
        keys = _rounded(self.levels) if has_numbers else list(self.levels)
        rounded = has_numbers and len(set(keys)) == len(keys)
        return dict(zip(keys if rounded else self.levels, range(len(keys)), strict=True)), rounded

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        as_text = any(part.as_text for part in parts)
        levels = (text_of(level) if as_text else level for part in parts for level in part.levels)
        return cls(parts[0].name, sort_levels(levels), as_text)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "levels": [_INFINITIES.get(level, level) for level in self.levels]}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        stored = entries.get("levels")
        column = super().from_json({**entries, "levels": []} if stored else entries)
        infinities = {repr(entry): number for number, entry in _INFINITIES.items()}
        levels: list[Any] = [infinities.get(repr(entry), entry) for entry in stored] if isinstance(stored, list) else []
        where = f"the levels of column {shown(column.name)}"
        kinds, what = ((str,), "text") if column.as_text else ((str, int, float, bool), "text or numbers")
        if not levels or any(type(level) not in kinds or level != level for level in levels):  # NaN
            raise ValueError(f"{where} must be {what}, got {shown(stored)}.")
        check_hashes(levels, f"the list of {where}")
        if sort_levels(levels) != tuple(levels):
            raise ValueError(f"{where} must differ, and be numbers in order, then text in order.")
        return replace(column, levels=tuple(levels))


@dataclass(frozen=True)
class TextColumn(CategoryColumn):
    """A column of text that is not declared as categories; `resolve` decides once all rows are known."""

    kind: ClassVar[str] = "text"

    def resolve(self) -> Column:
        """Return a column of dates if `find_form` reads all texts as dates, else categories."""
        texts = [text for level in self.levels if (text := str(level).strip()) and text not in DEFAULT_MISSING]
        form = find_form(texts)
        if form.kind != "date":
            self._warn_of_values(texts)
            return CategoryColumn(self.name, self.levels, self.as_text)
        if form.guessed:
            how = f"column {self.name!r} is read as {form.describe()}."
            warn_of_data(f"{how} Convert it with pandas.to_datetime to be sure.")
        return DateColumn.fit(Cells.of_objects(self.name, self.levels), form.pattern)

    def _warn_of_values(self, texts: list[str]) -> None:
        """Warn of categories most of which look like numbers or dates, unless there are only two."""
        if len(texts) <= 2:
            return
        kinds = {text: find_form([text]).kind for text in texts[:: 1 + len(texts) // _MOST_EXAMINED]}
        for kind, remedy in _REMEDIES.items():
            alike = [text for text in kinds if kinds[text] == kind]
            if 2 * len(alike) > len(kinds):
                other = next((f" but also {text!r:.40}," for text in kinds if kinds[text] != kind), "")
                warn_of_data(
                    f"column {self.name!r} holds text that looks like {kind}s, such as {alike[0]!r:.40},{other} and is "
                    f"taken as {len(self.levels)} categories. {remedy}, or name it in categorical_features if it holds "
                    "categories."
                )


@dataclass(frozen=True)
class DateColumn(Column):
    """A column of dates, with or without times, which become a few numbers.

    The parts are "time", the days since the start of 1970, and those of "month" (1 to 12), "weekday" (0 is Monday) and
    "hour" (of the day, with a fraction) that vary in training, as their smallest and largest values in ``ranges`` say.
    Dates with a time zone are taken in local time; dates in text are read by ``pattern``, see
    `polytrain.columns.forms.Form`.

    >>> cells = Cells.of_array("when", np.array(["1970-01-02", "1970-03-06"], dtype="datetime64[D]"))
    >>> when = DateColumn.fit(cells)
    >>> when.feature_names
    ('when (time)', 'when (month)')
    >>> when.encode(cells)
    [array([ 1., 64.]), array([1., 3.])]
    """

    kind: ClassVar[str] = "date"

    ranges: tuple[tuple[float, float], ...]
    pattern: str = "iso"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the date that are features."""
        return ("time", *(part for part, (low, high) in zip(_CALENDAR, self.ranges, strict=True) if low < high))

    @classmethod
    def fit(cls, cells: Cells, pattern: str = "iso") -> Self:
        columns = _date_parts(cells.dates(pattern), _CALENDAR)
        return cls(cells.name, tuple((float(np.nanmin(v)), float(np.nanmax(v))) for v in columns), pattern)

    def encode(self, cells: Cells) -> list[NDArray]:
        return _date_parts(cells.dates(self.pattern), self.parts)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name} ({part})" for part in self.parts)

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        lows, highs = np.array([part.ranges for part in parts]).T
        ranges = zip(lows.min(axis=1).tolist(), highs.max(axis=1).tolist(), strict=True)
        return cls(parts[0].name, tuple(ranges), parts[0].pattern)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "ranges": [list(ends) for ends in self.ranges]}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        column = super().from_json(entries)
        are_ranges = len(column.ranges) == len(_CALENDAR) and all(0 <= low <= high <= 24 for low, high in column.ranges)
        if not are_ranges or column.pattern not in DATE_PATTERNS:
            raise ValueError(f"column {shown(column.name)} has ranges or a pattern that are not plausible.")
        return column


def _date_parts(dates: NDArray, parts: Sequence[str]) -> list[NDArray]:
    """Return parts of dates, float64 of shape (N,) each, NaN for NaT."""
    unit = np.datetime_data(dates.dtype)[0]
    if unit in ("generic", "Y", "M", "W"):
        dates = dates.astype("datetime64[D]")
    elif unit in ("ns", "ps", "fs", "as"):  # float64 cannot tell these apart, and the first of such days overflow
        dates = dates.astype("datetime64[us]")
    days = dates.astype("datetime64[D]")
    values = {
        "time": (dates - np.datetime64(0, "D")) / np.timedelta64(1, "D"),
        "month": dates.astype("datetime64[M]").astype(np.int64) % 12 + 1,
        "weekday": (days.astype(np.int64) + 3) % 7,  # 1970 began with a Thursday
        "hour": (dates - days) / np.timedelta64(1, "h"),
    }
    return [np.where(np.isnat(dates), np.nan, values[part]) for part in parts]


def _rounded(levels: Sequence[Level]) -> list[Level]:
    """Round fractions to single precision, unless that makes integers of them, and keep all other values."""
    exact = np.array([level if isinstance(level, float) else 0.0 for level in levels], dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact.astype(np.float32).astype(np.float64)
    changes = (exact != np.floor(exact)) & (rounded != np.floor(rounded))
    triples = zip(levels, rounded.tolist(), changes.tolist(), strict=True)
    return [single if change else level for level, single, change in triples]


def fit_column(cells: Cells, is_category: bool | None = None) -> Column:
    """Return a column of the kind that suits the cells; their type decides about categories unless the user does."""
    if cells.kind == "empty":
        return NumberColumn(cells.name, empty=True)
    if cells.kind == "mixed" or (cells.is_category if is_category is None else is_category):
        return CategoryColumn.fit(cells)
    if cells.kind == "number":
        return NumberColumn(cells.name)
    return (DateColumn if cells.kind == "date" else TextColumn).fit(cells)


def column_from_json(entries: Any) -> Column:
    """Check and undo the ``to_json`` of a column of any kind."""
    if isinstance(entries, dict):
        for cls in (NumberColumn, CategoryColumn, DateColumn):
            if entries.get("kind") == cls.kind:
                return cls.from_json({name: entry for name, entry in entries.items() if name != "kind"})
    raise ValueError(f"a column must be a dict whose kind is number, category or date, got {shown(entries)}.")
