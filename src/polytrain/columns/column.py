"""What one column became: a number, categories, or the parts of a date."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, repeat, takewhile
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.cells import Cells
from polytrain.columns.date_texts import DATE_PATTERNS
from polytrain.columns.forms import DEFAULT_MISSING, find_form
from polytrain.columns.scalars import Level, check_hashes, show, sort_levels, text_of

__all__ = [
    "KINDS",
    "CategoryColumn",
    "Column",
    "DateColumn",
    "NumberColumn",
    "TextColumn",
    "column_from_json",
    "fit_column",
]

#: Parts of a date that enter if they vary; "time" always enters.
_CALENDAR = ("month", "weekday", "hour")


@dataclass(frozen=True)
class Column(ABC):
    """How a column of a table becomes columns of numbers, the features.

    Attributes
    ----------
    name : str
        Name of the column.
    """

    kind: ClassVar[str]

    name: str

    @classmethod
    @abstractmethod
    def fit(cls, cells: Cells) -> Self:
        """Look at the training rows."""

    @abstractmethod
    def encode(self, cells: Cells) -> list[NDArray]:
        """Return the features of some rows, float64 of shape (N,) each."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.name,)

    @classmethod
    @abstractmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Make one column of those that were fitted to parts of the rows."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON has."""

    @classmethod
    @abstractmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Check and undo `to_json`; the kind and the name were checked."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # not what is computed from them


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers: also True and False, durations (in days) and times of day (in hours).

    Parameters
    ----------
    name : str
        Name of the column.
    empty : bool
        Whether every value was missing in training, so that the column might have been of any kind.

    Examples
    --------
    >>> from polytrain.columns import NumberColumn
    >>> NumberColumn("size").feature_names
    ('size',)
    """

    kind: ClassVar[str] = "number"

    empty: bool = False

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Notice whether there is any number."""
        return cls(cells.name, cells.kind == "empty")

    def encode(self, cells: Cells) -> list[NDArray]:
        """Return the numbers, NaN where one is missing."""
        return [cells.numbers()]

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Empty if all are."""
        return cls(parts[0].name, all(part.empty for part in parts))

    def to_json(self) -> dict[str, Any]:
        """The name, and whether it was empty."""
        return {"kind": self.kind, "name": self.name, "empty": self.empty}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Check the only entry there is."""
        _check_keys(entries, {"kind", "name", "empty"})
        return cls(entries["name"], _check_flag(entries, "empty"))


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column of categories, which become the numbers 0, 1, ... of their levels.

    Levels are compared by value: 1, 1.0 and True are one level, and "1" is another. Numbers with a fraction are the
    same if they are in single precision, unless that would make two levels one.

    Parameters
    ----------
    name : str
        Name of the column.
    levels : tuple of str, int, float or bool
        The different values in training: numbers first, ascending, then text by code point.
    as_text : bool
        Whether numbers were between text, so that every value stands for its text: 1 and 1.0 for "1".

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.columns import CategoryColumn
    >>> from polytrain.columns.cells import Cells
    >>> colours = CategoryColumn("colour", ("blue", "red"))
    >>> colours.encode(Cells.of_objects("colour", ["red", None, "pink"]))
    [array([ 1., nan, -1.])]
    """

    kind: ClassVar[str] = "category"
    #: Whether the feature is the number of a level.
    coded: ClassVar[bool] = True

    levels: tuple[Level, ...]
    as_text: bool = False

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Find the levels."""
        as_text = cells.kind == "mixed" and not cells.is_category
        return cls(cells.name, sort_levels(set(cells.levels(as_text)[1])), as_text)

    def encode(self, cells: Cells) -> list[NDArray]:
        """Return the numbers of the levels: NaN where one is missing, -1 for a level that was not in training."""
        codes, levels = cells.levels(self.as_text)
        table, rounded = self._table
        found = np.full(len(levels) + 1, np.nan)  # the last one is for missing values
        found[:-1] = list(map(table.get, _rounded(levels) if rounded else levels, repeat(-1)))
        return [found[codes]]

    @cached_property
    def _table(self) -> tuple[dict[Level, int], bool]:
        """Numbers of the levels, and whether levels are rounded to single precision, where they still differ."""
        n_numbers = sum(1 for _ in takewhile(lambda level: not isinstance(level, str), self.levels))
        numbers = _rounded(self.levels[:n_numbers])
        rounded = len(set(numbers)) == n_numbers > 0
        keys = chain(numbers, self.levels[n_numbers:]) if rounded else self.levels
        return dict(zip(keys, range(len(self.levels)), strict=True)), rounded

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Unite the levels."""
        as_text = any(part.as_text for part in parts)
        levels = {text_of(level) if as_text else level for part in parts for level in part.levels}
        return cls(parts[0].name, sort_levels(levels), as_text)

    def to_json(self) -> dict[str, Any]:
        """The levels as they are; JSON has no infinity."""
        levels = [{"number": str(v)} if isinstance(v, float) and math.isinf(v) else v for v in self.levels]
        return {"kind": self.kind, "name": self.name, "levels": levels, "as_text": self.as_text}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Check that the levels are plain, different and in order."""
        _check_keys(entries, {"kind", "name", "levels", "as_text"})
        where = f"column {show(entries['name'])}"
        listed, as_text = entries["levels"], _check_flag(entries, "as_text")
        if not isinstance(listed, list) or not listed:
            raise ValueError(f"the levels of {where} must be a list that is not empty, got {show(listed)}.")
        levels: list[Level] = []
        for entry in listed:
            level = _undo_infinity(entry)
            if type(level) not in (str, int, float, bool) or level != level:  # NaN
                raise ValueError(f"a level of {where} must be text or a number, got {show(entry)}.")
            if as_text and not isinstance(level, str):
                raise ValueError(f"the levels of {where} must be text, because as_text is true, got {show(entry)}.")
            levels.append(level)
        check_hashes(levels, f"the list of levels of {where}")
        if len(set(levels)) != len(levels) or sort_levels(set(levels)) != tuple(levels):
            raise ValueError(f"the levels of {where} must differ, and be numbers in order, then text in order.")
        return cls(entries["name"], tuple(levels), as_text)


@dataclass(frozen=True)
class TextColumn(CategoryColumn):
    """A column of text whose type does not say that it holds categories, until all rows have been seen."""

    kind: ClassVar[str] = "text"

    def settled(self) -> Column:
        """Return a column of dates if all texts are dates, as `find_form` finds out for files, else categories."""
        texts = [text for level in self.levels if (text := str(level).strip()) and text not in DEFAULT_MISSING]
        form = find_form(texts)
        if form.kind != "date":
            self._warn_of_values(texts)
            return CategoryColumn(self.name, self.levels, self.as_text)
        if form.guessed:
            _warn(f"column {self.name!r} is read as {form.describe()}. Convert it with pandas.to_datetime to be sure.")
        return DateColumn.fit(Cells.of_objects(self.name, self.levels), form.pattern)

    def _warn_of_values(self, texts: list[str]) -> None:
        """Warn of categories most of which look like numbers or dates; two of them are the same either way."""
        if len(texts) <= 2:
            return
        looks = {text: find_form([text]).kind for text in texts[:: 1 + len(texts) // _MOST_LOOKED_AT]}
        for kind, remedy in _REMEDIES.items():
            alike = [text for text, look in looks.items() if look == kind]
            if 2 * len(alike) > len(looks):
                other = next((f" but also {text!r:.40}," for text, look in looks.items() if look != kind), "")
                _warn(
                    f"column {self.name!r} holds text that looks like {kind}s, such as {alike[0]!r:.40},{other} and is "
                    f"taken as {len(self.levels)} categories. {remedy}, or name it in categorical_features if it holds "
                    "categories."
                )


# Texts of a column that are looked at one by one.
_MOST_LOOKED_AT = 100
_REMEDIES = {
    "number": "Make numbers of it, for example with pandas.to_numeric, or thousands and decimal of pandas.read_csv",
    "date": "Make dates of it, for example with pandas.to_datetime",
}


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)


_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def _undo_infinity(entry: Any) -> Any:
    """The infinity that a dict stands for; all else as it is."""
    if isinstance(entry, dict) and entry.keys() == {"number"} and isinstance(entry["number"], str):
        return _INFINITIES.get(entry["number"], entry)
    return entry


def _rounded(levels: Sequence[Level]) -> list[Level]:
    """Round fractions to single precision, unless that makes integers of them, and leave all else alone."""
    exact = np.array([level if isinstance(level, float) else 0.0 for level in levels], dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact.astype(np.float32).astype(np.float64)
    rounds = (exact != np.floor(exact)) & (rounded != np.floor(rounded))
    new = zip(levels, rounded.tolist(), rounds.tolist(), strict=True)
    return [single if changes else level for level, single, changes in new]


@dataclass(frozen=True)
class DateColumn(Column):
    """A column of dates, with or without times, which become a few numbers.

    The parts are "time", the days since the start of 1970, and those that vary in training of "month" (1 to 12),
    "weekday" (0 is Monday) and "hour" (of the day, with a fraction). Where a time zone is known, all are in local time.

    Parameters
    ----------
    name : str
        Name of the column.
    parts : tuple of str
        What the column became.
    ranges : tuple of (float, float)
        Least and largest month, weekday and hour in training; empty if they are not known. Together with those of
        other rows they tell which parts vary.
    pattern : str
        How dates in text are written, see `polytrain.columns.forms.Form`.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.columns import DateColumn
    >>> from polytrain.columns.cells import Cells
    >>> cells = Cells.of_array("when", np.array(["1970-01-02", "1970-03-06"], dtype="datetime64[D]"))
    >>> when = DateColumn.fit(cells)
    >>> when.feature_names
    ('when (time)', 'when (month)')
    >>> when.encode(cells)
    [array([ 1., 64.]), array([1., 3.])]
    """

    kind: ClassVar[str] = "date"

    parts: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...] = ()
    pattern: str = "iso"

    @classmethod
    def fit(cls, cells: Cells, pattern: str = "iso") -> Self:
        """Find the parts that vary."""
        found = _calendar(cells.dates(pattern), _CALENDAR)
        return cls._of_ranges(cells.name, tuple((float(np.nanmin(v)), float(np.nanmax(v))) for v in found), pattern)

    @classmethod
    def _of_ranges(cls, name: str, ranges: tuple[tuple[float, float], ...], pattern: str) -> Self:
        varying = (part for part, (least, most) in zip(_CALENDAR, ranges, strict=True) if least < most)
        return cls(name, ("time", *varying), ranges, pattern)

    def encode(self, cells: Cells) -> list[NDArray]:
        """Return the parts, NaN for a missing date."""
        return _calendar(cells.dates(self.pattern), self.parts)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name and part."""
        return tuple(f"{self.name} ({part})" for part in self.parts)

    @classmethod
    def merge(cls, parts: Sequence[Self]) -> Self:
        """Unite what the dates range over, or the parts themselves where that is not known."""
        if all(part.ranges for part in parts):
            each = zip(*(part.ranges for part in parts), strict=True)
            ranges = tuple((min(low for low, _ in some), max(high for _, high in some)) for some in map(list, each))
            return cls._of_ranges(parts[0].name, ranges, parts[0].pattern)
        united = {part for column in parts for part in column.parts}
        return cls(parts[0].name, ("time", *(part for part in _CALENDAR if part in united)))

    def to_json(self) -> dict[str, Any]:
        """The parts and the ranges, and the pattern if it is not that of ISO 8601."""
        ranges = [list(some) for some in self.ranges]
        entries = {"kind": self.kind, "name": self.name, "parts": list(self.parts), "ranges": ranges}
        return entries if self.pattern == "iso" else {**entries, "pattern": self.pattern}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Self:
        """Check that parts and ranges agree."""
        pattern = entries.get("pattern", "iso")
        _check_keys({"pattern": pattern, **entries}, {"kind", "name", "parts", "ranges", "pattern"})
        name, parts, ranges = entries["name"], entries["parts"], entries["ranges"]
        if pattern not in DATE_PATTERNS:
            raise ValueError(f"the pattern of column {show(name)} must be one of {DATE_PATTERNS}, got {show(pattern)}.")
        known = ["time", *_CALENDAR]
        if not isinstance(parts, list) or parts[:1] != ["time"] or parts != [part for part in known if part in parts]:
            raise ValueError(
                f"the parts of column {show(name)} must be some of {known}, time first, got {show(parts)}."
            )
        if ranges == []:
            return cls(name, tuple(parts), pattern=pattern)
        if not isinstance(ranges, list) or len(ranges) != len(_CALENDAR) or not all(map(_is_range, ranges)):
            raise ValueError(
                f"the ranges of column {show(name)} must be a least and a largest {', '.join(_CALENDAR)}, got "
                f"{show(ranges)}."
            )
        column = cls._of_ranges(name, tuple((float(low), float(high)) for low, high in ranges), pattern)
        if list(column.parts) != parts:
            raise ValueError(
                f"the parts of column {show(name)} must be those that vary, {list(column.parts)}, got {show(parts)}."
            )
        return column


def _is_range(entry: Any) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 2
        and all(type(end) in (int, float) for end in entry)
        and 0 <= entry[0] <= entry[1] <= 24
    )


def _calendar(dates: NDArray, parts: Sequence[str]) -> list[NDArray]:
    """Parts of dates, float64 of shape (N,) each, NaN for NaT."""
    unit = np.datetime_data(dates.dtype)[0]
    if unit in ("generic", "Y", "M", "W"):
        dates = dates.astype("datetime64[D]")
    elif unit in ("ns", "ps", "fs", "as"):  # float64 cannot tell these apart, and the first of such days overflow
        dates = dates.astype("datetime64[us]")
    missing = np.isnat(dates)
    days = dates.astype("datetime64[D]")

    def part(name: str) -> NDArray:
        match name:
            case "time":
                return (dates - np.datetime64(0, "D")) / np.timedelta64(1, "D")
            case "month":
                found = dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
            case "weekday":
                found = (days.astype(np.int64) + 3) % 7  # 1970 began with a Thursday
            case "hour":
                return (dates - days) / np.timedelta64(1, "h")
        return np.where(missing, np.nan, found)

    return [part(name) for name in parts]


#: All kinds of columns, by the name under which a model file knows them.
KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (NumberColumn, CategoryColumn, DateColumn)}


def fit_column(cells: Cells, is_category: bool) -> Column:
    """Choose the kind of a column by its cells.

    Examples
    --------
    >>> from polytrain.columns.cells import Cells
    >>> from polytrain.columns.column import fit_column
    >>> fit_column(Cells.of_objects("size", [3, None]), is_category=False)
    NumberColumn(name='size', empty=False)
    >>> fit_column(Cells.of_objects("size", [3, None]), is_category=True)
    CategoryColumn(name='size', levels=(3,), as_text=False)
    """
    if cells.kind == "empty":
        return NumberColumn.fit(cells)
    if cells.kind == "text" and not is_category:
        return TextColumn.fit(cells)
    if is_category or cells.kind == "mixed":
        return CategoryColumn.fit(cells)
    return (DateColumn if cells.kind == "date" else NumberColumn).fit(cells)


def column_from_json(entries: Any) -> Column:
    """Check and undo the ``to_json`` of a column of any kind."""
    if not isinstance(entries, dict):
        raise ValueError(f"a column must be a dict, got {show(entries)}.")
    kind, name = entries.get("kind"), entries.get("name")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"the kind of a column must be one of {list(KINDS)}, got {show(kind)}.")
    if not isinstance(name, str):
        raise ValueError(f"the name of a column must be text, got {show(name)}.")
    return KINDS[kind].from_json(entries)


def _check_keys(entries: dict[str, Any], expected: set[str]) -> None:
    if entries.keys() != expected:
        raise ValueError(
            f"column {show(entries['name'])} must have the entries {sorted(expected)}, got {show(list(entries))}."
        )


def _check_flag(entries: dict[str, Any], name: str) -> bool:
    flag = entries[name]
    if not isinstance(flag, bool):
        raise ValueError(f"{name} of column {show(entries['name'])} must be true or false, got {show(flag)}.")
    return flag
