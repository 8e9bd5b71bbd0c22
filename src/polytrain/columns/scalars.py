"""Single values: what sort they are, and what they are as a number, as a date and as a level.

Everything here is done once per different value, never once per row.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = [
    "Level",
    "check_hashes",
    "date_of",
    "is_missing",
    "level_of",
    "number_of",
    "show",
    "sort_levels",
    "sort_of",
    "text_of",
]

#: What tells the categories of a column apart: plain Python values.
Level = str | float | int | bool

_SORTS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("number", (bool, np.bool_, int, float, np.integer, np.floating, Decimal, Fraction)),
    ("text", (str, bytes)),
    ("date", (datetime.date, np.datetime64)),  # the first is the base class of all dates with times
    ("duration", (datetime.timedelta, np.timedelta64)),
    ("time", (datetime.time,)),
    ("complex", (complex, np.complexfloating)),
)
_LONGEST_SHOWN = 60
_MOST_ALIKE = 100
_found_sorts: dict[type, str] = {}


def sort_of(kind: type) -> str:
    """Say what values of a type are: number, text, date, duration, time, complex, missing or other.

    Examples
    --------
    >>> from polytrain.columns.scalars import sort_of
    >>> sort_of(bool), sort_of(type(None)), sort_of(tuple)
    ('number', 'missing', 'other')
    """
    sort = _found_sorts.get(kind)
    if sort is None:
        sort = _found_sorts[kind] = _find_sort(kind)
    return sort


def _find_sort(kind: type) -> str:
    if kind is type(None) or (kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas")):
        return "missing"
    for sort, bases in reversed(_SORTS):  # NumPy's durations are integers too
        if issubclass(kind, bases):
            return sort
    return "other"


def is_missing(value: Any) -> bool:
    """Whether there is no value: None, NaN, NaT, or what pandas has for it."""
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(value != value)
    return sort_of(type(value)) == "missing"


def number_of(value: Any) -> int | float | bool:
    """Turn a number into a plain one, a duration into days, and a time of day into hours.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from decimal import Decimal
    >>> from polytrain.columns.scalars import number_of
    >>> number_of(Decimal("2.5")), number_of(timedelta(hours=36))
    (2.5, 1.5)
    """
    match sort_of(type(value)):
        case "duration":
            day = np.timedelta64(1, "D") if isinstance(value, np.timedelta64) else datetime.timedelta(days=1)
            return float(value / day)
        case "time":
            return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    return int(value) if isinstance(value, Decimal | Fraction) and _is_whole(value, 10**40) else float(value)


def _is_whole(number: Any, most: int) -> bool:
    """Whether a number is an integer that is not too large to be written down."""
    return bool(-most < number < most) and number == int(number)


def date_of(value: Any) -> np.datetime64:
    """Turn a date, with or without a time, into NumPy's; where a time zone is known, into the local time."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]")
    if getattr(value, "tzinfo", None) is not None:
        value = value.replace(tzinfo=None)
    return np.datetime64(value.isoformat()).astype("datetime64[us]")


def text_of(value: Any) -> str:
    """Turn a value into text; equal numbers, and equal local times, give equal texts.

    Examples
    --------
    >>> import datetime
    >>> from polytrain.columns.scalars import text_of
    >>> text_of(2.0), text_of(2), text_of(True), text_of(datetime.datetime(2024, 5, 1))
    ('2', '2', 'True', '2024-05-01')
    """
    match sort_of(type(value)):
        case "text":
            return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        case "date":
            return str(date_of(value)).removesuffix(".000000").removesuffix("T00:00:00").replace("T", " ")
        case "number" if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return str(int(value))
        case "number" if not isinstance(value, (bool, np.bool_)):
            if _is_whole(value, 2**53):  # larger ones have too many digits
                return str(int(value))
            return str(float(value) if isinstance(value, Decimal | Fraction) else value)
    return str(value)


def level_of(value: Any) -> Level:
    """Turn a value into a level: numbers, durations and times of day are numbers, all others are text.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.columns.scalars import level_of
    >>> level_of(np.int8(3)), level_of(np.datetime64("2024-05-01")), level_of((1, 2))
    (3, '2024-05-01', '(1, 2)')
    """
    return number_of(value) if sort_of(type(value)) in ("number", "duration", "time") else text_of(value)


def sort_levels(levels: set[Level]) -> tuple[Level, ...]:
    """Put numbers first, ascending, and then text by code point.

    Examples
    --------
    >>> from polytrain.columns.scalars import sort_levels
    >>> sort_levels({"b", 10, "B", 2.5})
    (2.5, 10, 'B', 'b')
    """
    numbers = {level for level in levels if not isinstance(level, str)}
    texts: Any = levels - numbers
    return (*sorted(numbers), *sorted(texts))


def check_hashes(values: Iterable[Hashable], what: str) -> None:
    """Refuse values of which many have one hash, as multiples of 2**61 - 1 have: no dict could tell them apart in time.

    Examples
    --------
    >>> from polytrain.columns.scalars import check_hashes
    >>> check_hashes([k * (2**61 - 1) for k in range(1000)], "the list")
    Traceback (most recent call last):
        ...
    ValueError: the list has 1000 values with the same hash; at most 100 are allowed.
    """
    alike = max(Counter(map(hash, values)).values(), default=0)
    if alike > _MOST_ALIKE:
        raise ValueError(f"{what} has {alike} values with the same hash; at most {_MOST_ALIKE} are allowed.")


def show(value: Any) -> str:
    """Write a value for an error message, not too long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
