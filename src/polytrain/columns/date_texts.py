"""Dates as people and programs write them, with or without a time of day."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

__all__ = ["DATE_PATTERNS", "parse_date"]

#: Ways to write a date, by the names of strptime; "iso" is that of ISO 8601. Earlier ones are preferred.
DATE_PATTERNS = (
    *("iso", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y"),
)
_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november")
# Numbers of months by their English names, in lower case.
_MONTHS = {
    text: number
    for number, name in enumerate((*_NAMES, "december"), start=1)
    for text in (name[:3], f"{name[:3]}.", name, *(["sept", "sept."] if number == 9 else []))
}
_DIRECTIVES = {
    "%Y": "(?P<year>[1-9][0-9]{3})",
    "%y": "(?P<year>[0-9]{2})",
    "%m": "(?P<month>0?[1-9]|1[0-2])",
    "%d": "(?P<day>0?[1-9]|[12][0-9]|3[01])",
    "%b": r"(?P<month>[A-Za-z]{3,9}\.?)",
}
_STRICT = {"%m": "(?P<month>0[1-9]|1[0-2])", "%d": "(?P<day>0[1-9]|[12][0-9]|3[01])"}
_CLOCK = (
    "(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
)
_TIME = rf"(?:[T ]{_CLOCK}(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?(?: ?(?P<zone>Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}}))?)?"
_EPOCH = datetime(1970, 1, 1)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    shape = "%Y-%m-%d" if pattern == "iso" else pattern
    # Version numbers look like dates with two digits for the year, but have no leading zeros.
    strict = pattern == "iso" or pattern == "%d.%m.%y"
    directives = {**_DIRECTIVES, **(_STRICT if strict else {})}
    parts = re.split("(%.)", shape)
    return re.compile("".join(directives.get(part) or re.escape(part) for part in parts) + _TIME)


def parse_date(text: str, pattern: str = "iso") -> int | None:
    """Return the microseconds since the start of 1970, None if it is no such date.

    A time is taken as it is written: the zone that may follow it does not move it, so that the hour and the weekday are
    those of the place where it was written down.

    Examples
    --------
    >>> from polytrain.columns.date_texts import parse_date
    >>> parse_date("1970-01-01 00:00:01"), parse_date("02.01.1970", "%d.%m.%Y"), parse_date("31.02.1970", "%d.%m.%Y")
    (1000000, 86400000000, None)
    """
    found = _compiled(pattern).fullmatch(text)
    if found is None:
        return None
    month = found["month"]
    number = int(month) if month.isdigit() else _MONTHS.get(month.lower(), 0)
    hour = int(found["hour"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] in "pP" else 0)
    try:
        moment = datetime(
            _year(found["year"]), number, int(found["day"]), hour, int(found["minute"] or 0), int(found["second"] or 0)
        )
    except ValueError:  # 31 February, or a month of no such name
        return None
    microseconds = int((found["fraction"] or "0").ljust(6, "0")[:6])
    return (moment - _EPOCH) // timedelta(microseconds=1) + microseconds


def _year(text: str) -> int:
    if len(text) == 4:
        return int(text)
    return int(text) + (1900 if int(text) >= 69 else 2000)  # as POSIX has it
