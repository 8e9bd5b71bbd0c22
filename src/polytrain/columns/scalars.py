"""Single values: their sort, and how each becomes a number, a date, a text or a level.

Callers run these functions once per distinct value, never once per row.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

__all__ = [
    *("Level", "check_hashes", "date_of", "is_missing", "level_of", "number_of", "sort_levels", "sort_of", "text_of"),
]

#: A category of a column, as a plain Python value.
Level = str | float | int | bool

# Later sorts are tested first: NumPy's durations are integers, too.
_SORTS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("number", (bool, np.bool_, int, float, np.integer, np.floating, Decimal, Fraction)),
    ("text", (str, bytes)),
    ("date", (datetime.date, np.datetime64)),  # date is the base class of datetime and of pandas' Timestamp
    ("duration", (datetime.timedelta, np.timedelta64)),
    ("time", (datetime.time,)),
    ("complex", (complex, np.complexfloating)),
)
_MOST_EQUAL_HASHES = 100


def _find_sort(kind: type) -> str:
    """Return the sort of a type's values: number, text, date, duration, time, complex, missing or other."""
    if kind is type(None) or (kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas")):
        return "missing"
    return next((sort for sort, bases in reversed(_SORTS) if issubclass(kind, bases)), "other")


#: The sort of a type's values, found once for every type.
sort_of: Callable[[type], str] = cache(_find_sort)


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, NaT, or the missing value of pandas."""
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(value != value)
    return sort_of(type(value)) == "missing"


def number_of(value: Any) -> int | float | bool:
    """Return a number as a plain Python number, a duration in days, and a time of day in hours."""
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
    """Whether a number is an integer between -most and most."""
    return bool(-most < number < most) and number == int(number)


def date_of(value: Any) -> np.datetime64:
    """Return a date, with or without a time, as datetime64[us], in local time if it has a time zone."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]")
    if getattr(value, "tzinfo", None) is not None:
        value = value.replace(tzinfo=None)
    return np.datetime64(value.isoformat()).astype("datetime64[us]")


def text_of(value: Any) -> str:
    """Return a value as text; equal numbers, and equal local times, give equal texts.

    >>> text_of(2.0), text_of(2), text_of(True), text_of(datetime.datetime(2024, 5, 1))
    ('2', '2', 'True', '2024-05-01')
    """
    match sort_of(type(value)):
        case "text":
            return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        case "date":
            return str(date_of(value)).removesuffix(".000000").removesuffix("T00:00:00").replace("T", " ")
        case "number" if not isinstance(value, (bool, np.bool_)):
            # Whole floats above 2**53 would show digits that they do not have.
            if isinstance(value, (int, np.integer)) or _is_whole(value, 2**53):
                return str(int(value))
            return str(float(value) if isinstance(value, Decimal | Fraction) else value)
    return str(value)


def level_of(value: Any) -> Level:
    """Return a value as a level: numbers, durations and times of day as numbers, all others as text."""
    return number_of(value) if sort_of(type(value)) in ("number", "duration", "time") else text_of(value)


def sort_levels(levels: Iterable[Level]) -> tuple[Level, ...]:
    """Return the distinct levels: numbers first, ascending, and then text by code point."""
    distinct: set[Any] = set(levels)
    texts = {level for level in distinct if isinstance(level, str)}
    return (*sorted(distinct - texts), *sorted(texts))


def check_hashes(values: Iterable[Hashable], what: str) -> None:
    """Refuse values of which many have the same hash, such as multiples of 2**61 - 1: a dict of them is too slow.

    >>> check_hashes([k * (2**61 - 1) for k in range(1000)], "the list")
    Traceback (most recent call last):
        ...
    ValueError: the list has 1000 values with the same hash; at most 100 are allowed.
    """
    n_equal = max(Counter(map(hash, values)).values(), default=0)
    if n_equal > _MOST_EQUAL_HASHES:
        raise ValueError(f"{what} has {n_equal} values with the same hash; at most {_MOST_EQUAL_HASHES} are allowed.")
