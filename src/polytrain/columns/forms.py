"""The form of a column's text: plain numbers, other numbers, dates, or text as it stands.

Numbers may have decimal commas, separators of thousands, currencies, percent signs and parentheses; dates may have the
day, the month or the year first, and a time of day.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Literal

__all__ = ["DATE_PATTERNS", "DEFAULT_MISSING", "Form", "Kind", "find_form", "is_number"]

#: Text that stands for a missing value unless others are named. The empty cell always does.
DEFAULT_MISSING = ("?", "NA", "N/A", "NaN", "nan", "NULL", "null")
#: The kinds of content of a column's cells.
Kind = Literal["number", "date", "text", "truth"]

# --- numbers ----------------------------------------------------------------------------------------------------------

# The space, no-break, thin and narrow no-break space: each may separate thousands, or stand beside a currency.
_SPACES = " \u00a0\u2009\u202f"
# Currencies and other units beside a number; a longer one comes before those that it begins with.
_UNITS = (
    *("US$", "R$", "A$", "C$", "HK$", "NZ$", "S$", "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₫", "₪", "₴", "₦", "%"),
    *("CHF", "EUR", "USD", "GBP", "JPY", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF"),
    *("BRL", "MXN", "ZAR", "RUB", "TRY", "KRW", "SGD", "HKD", "ILS", "RON", "BGN", "UAH", "THB"),
    *("zł", "Kč", "kr.", "kr", "Ft", "Fr.", "Rs.", "Rs", "euro", "Euro", ""),
)
_THOUSANDS = ("", ",", ".", " ", "'")
# Decimal mark and separator of thousands, in the order in which they are tried. A decimal comma allows points between
# thousands, whether or not the column has any.
_MARKS = ((".", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MINUS, _CURVED = "\u2212", "\u2019"
_ALIKE = {" ": _SPACES, "'": f"'{_CURVED}"}
_UNIT = "|".join(map(re.escape, _UNITS[:-1]))
_FIGURE = rf"[0-9.,'{_CURVED}{_SPACES}]*[0-9](?:[eE][+-]?[0-9]+)?"
# A sign stands beside a currency in front, or is a minus at the end; parentheses enclose the figure or everything.
_LOOSE = re.compile(
    rf"([(+{_MINUS}-]?)[{_SPACES}]?(?:(?P<prefix>{_UNIT})[{_SPACES}]?)?([(+{_MINUS}-]?)(?P<figure>{_FIGURE})(\)?)"
    rf"(?:[{_SPACES}]?(?P<suffix>{_UNIT}))?([){_MINUS}-]?)"
)
_SIGNS = {"": 1, "+": 1, "-": -1, _MINUS: -1, "()": -1}


def is_number(text: str) -> bool:
    """Whether text is a finite plain number, such as 12, -0.5 or 1e-3.

    >>> [is_number(text) for text in ("12", "-.5", "1e-3", "1,5", "1_000", "inf", "")]
    [True, True, True, False, False, False, False]
    """
    return bool(_PLAIN.fullmatch(text)) and abs(float(text)) < float("inf")


# --- dates ------------------------------------------------------------------------------------------------------------

#: Ways to write a date, in the letters of strptime; "iso" is that of ISO 8601. Earlier ones are preferred.
DATE_PATTERNS = (
    *("iso", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y"),
)
_MONTH_FIRST = {"%d/%m/%Y": "%m/%d/%Y", "%d-%m-%Y": "%m-%d-%Y", "%d/%m/%y": "%m/%d/%y"}
# English, whatever the locale: calendar.month_name would follow it.
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_DIRECTIVES = {
    "%Y": "(?P<year>[1-9][0-9]{3})",
    "%y": "(?P<year>[0-9]{2})",
    "%m": "(?P<month>0?[1-9]|1[0-2])",
    "%d": "(?P<day>0?[1-9]|[12][0-9]|3[01])",
    "%b": r"(?P<month>[A-Za-z]{3,4}\.?|[A-Za-z]{5,9})",
}
_TWO_DIGITS = {"%m": "(?P<month>0[1-9]|1[0-2])", "%d": "(?P<day>0[1-9]|[12][0-9]|3[01])"}
_CLOCK = (
    "(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
)
_TIME = rf"(?:[T ]{_CLOCK}(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?(?: ?(?P<zone>Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}}))?)?"
_EPOCH = datetime(1970, 1, 1)


# --- forms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A format of the cells of a column.

    Attributes
    ----------
    kind : {"number", "date", "text", "truth"}
        "truth" occurs only in files with types; its values are 0 and 1.
    decimal : {".", ","}
        The decimal mark of a number.
    thousands : {"", ",", ".", " ", "'"}
        Separator of thousands. The space stands for all kinds of spaces, the apostrophe also for the curved one.
    unit : str
        Unit before or after numbers: a currency, or "%". 12 % is the number 12.
    pattern : str
        How a date is written: "iso", or in the letters of strptime, such as "%d.%m.%Y". A time of day may follow.
    guessed : bool
        Whether another form would have fitted as well.

    Examples
    --------
    >>> form = Form("number", decimal=",", thousands=".", unit="€")
    >>> form.parse("-1.234,50 €"), form.parse("(1.234)"), form.parse("nothing")
    (-1234.5, -1234.0, None)
    >>> Form("date").parse("1970-01-01 00:00:01"), Form("date", pattern="%d.%m.%Y").parse("31.02.1970")
    (1000000, None)
    >>> print(form.describe())
    numbers, such as '1.234,5 €'
    """

    kind: Kind
    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    pattern: str = "iso"
    guessed: bool = False

    def __post_init__(self) -> None:
        marks_are_right = self.decimal in (".", ",") and self.thousands in _THOUSANDS and self.thousands != self.decimal
        if not marks_are_right or self.unit not in _UNITS or self.pattern not in DATE_PATTERNS:
            raise ValueError(f"{self} is not the form of a column.")

    @cached_property
    def is_plain(self) -> bool:
        """Whether cells are numbers as programs write them."""
        return self.kind == "number" and (self.decimal, self.thousands, self.unit) == (".", "", "")

    def parse(self, text: str) -> float | int | None:
        """Return the value of a cell that is not missing; None if it does not fit.

        Numbers are finite floats; dates are microseconds since the start of 1970, in the local time of the cell.
        """
        match self.kind:
            case "number":
                return self._parse_number(text)
            case "date":
                return self._parse_date(text)
            case "truth":
                return {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}.get(text.lower())
        raise ValueError("text has no values; use codes.")

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        """Pattern of a date, or of a number without sign and unit."""
        if self.kind == "date":
            # Version numbers look like dates with two digits for the year, but have no leading zeros.
            directives = {**_DIRECTIVES, **(_TWO_DIGITS if self.pattern in ("iso", "%d.%m.%y") else {})}
            pieces = re.split("(%.)", "%Y-%m-%d" if self.pattern == "iso" else self.pattern)
            return re.compile("".join(directives.get(piece) or re.escape(piece) for piece in pieces) + _TIME)
        point, whole = re.escape(self.decimal), "[0-9]+"
        if self.thousands:
            gap = f"[{_ALIKE.get(self.thousands, self.thousands)}]"
            # Groups of two are Indian; a first group that begins with zero is the whole part of a decimal number.
            whole = rf"(?:[1-9][0-9]{{0,2}}(?:{gap}[0-9]{{2,3}})*{gap}[0-9]{{3}}|[0-9]+)"
        return re.compile(rf"(?:{whole}(?:{point}[0-9]+)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")

    def _parse_number(self, text: str) -> float | None:
        if self.is_plain:
            value = float(text) if _PLAIN.fullmatch(text) else math.inf
        else:
            match = _LOOSE.fullmatch(text)
            if match is None or not {match["prefix"], match["suffix"]} <= {None, self.unit}:
                return None
            figure, sign = match["figure"], _SIGNS.get("".join(match.group(1, 3, 5, 7)))
            if sign is None or not self._regex.fullmatch(figure):
                return None
            removed = _ALIKE.get(self.thousands, self.thousands)
            value = sign * float(figure.translate(str.maketrans(self.decimal, ".", removed)))
        return value if math.isfinite(value) else None

    def _parse_date(self, text: str) -> int | None:
        """Ignore a time zone, so that the hour and the weekday are those where the date was written down."""
        match = self._regex.fullmatch(text)
        if match is None:
            return None
        year, month, hour = int(match["year"]), match["month"], int(match["hour"] or 0)
        if len(match["year"]) == 2:
            year += 1900 if year >= 69 else 2000  # the rule of POSIX
        if match["half"]:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if match["half"] in "pP" else 0)
        begun = (number for number, name in enumerate(_MONTH_NAMES, 1) if name.startswith(month.lower().rstrip(".")))
        month_number = int(month) if month.isdigit() else next(begun, 0)
        minute, second = (int(match[unit] or 0) for unit in ("minute", "second"))
        microsecond = int((match["fraction"] or "0").ljust(6, "0")[:6])
        try:
            moment = datetime(year, month_number, int(match["day"]), hour, minute, second, microsecond)
        except ValueError:  # 31 February, or an unknown name of a month
            return None
        return (moment - _EPOCH) // timedelta(microseconds=1)

    def fits(self, texts: Sequence[str]) -> bool:
        """Whether all texts have this form."""
        return all(self.parse(text) is not None for text in texts)

    def describe(self) -> str:
        """Return the form in words, with an example."""
        if self.is_plain or self.kind in ("text", "truth"):
            return {"number": "numbers", "text": "text", "truth": "true and false"}[self.kind]
        if self.kind == "date":
            example = date(2024, 12, 31).strftime("%Y-%m-%d" if self.pattern == "iso" else self.pattern)
        else:
            example = f"1{self.thousands}234{self.decimal}5 {self.unit}".strip()
        return f"{self.kind}s, such as {example!r}" + (" (another form would fit, too)" if self.guessed else "")


_DATE_FORMS = tuple(Form("date", pattern=pattern) for pattern in DATE_PATTERNS)


def find_form(texts: Sequence[str], *, decimal: str | None = None, delimiter: str | None = None) -> Form:
    """Find the form that fits all distinct cells of a column, given stripped and without missing ones.

    Plain numbers come first, then other numbers, then dates; if nothing fits, the column is text. A known ``decimal``
    mark, or the semicolon as ``delimiter`` of the file, resolves what is ambiguous: 1,234 then has a decimal comma,
    else a comma between thousands, and 3/4/2024 then has the day first, else the month.

    >>> find_form(["1", "2.5"]).describe(), find_form(["1", "two"]).describe()
    ('numbers', 'text')
    >>> find_form(["$1,200", "$900"]).describe()
    "numbers, such as '1,234.5 $'"
    >>> find_form(["24.12.2025", "1.1.2026 14:30"]).describe()
    "dates, such as '31.12.2024'"
    """
    if not texts:
        return Form("text")
    return _find_number(texts, decimal, delimiter) or _find_date(texts, decimal, delimiter) or Form("text")


def _find_number(texts: Sequence[str], decimal: str | None, delimiter: str | None) -> Form | None:
    plain = all(map(is_number, texts))
    if plain and (decimal != "," or not any("." in text for text in texts)):
        return Form("number")
    fallback = Form("number") if plain else None
    matches = [match for match in takewhile(bool, map(_LOOSE.fullmatch, texts)) if match]
    units = [match["prefix"] or match["suffix"] or "" for match in matches]
    unit = max(units, default="")
    if len(matches) < len(texts) or not set(units) <= {"", unit}:
        return fallback
    if unit == "%" and not all(units):
        return None  # 12 % beside 0.12 would be two units
    forms = [Form("number", *marks, unit) for marks in _MARKS if decimal in (None, marks[0])]
    fitting = [form for form in forms if form.fits(texts)]
    if not fitting:
        return fallback
    if not any(mark in match["figure"] for match in matches for mark in f",.'{_CURVED}{_SPACES}"):
        fitting = fitting[:1]
    is_money = unit not in ("", "%")  # amounts of money do not have three decimals
    marks = {(form.decimal, form.thousands) for form in fitting}
    ambiguous = {(".", ","), (",", ".")} <= marks and decimal is None and not is_money
    prefers_comma = decimal == "," or (decimal is None and delimiter == ";" and not plain and not is_money)
    chosen = next((form for form in fitting if prefers_comma and form.decimal == ","), fitting[0])
    return replace(chosen, guessed=ambiguous)


def _find_date(texts: Sequence[str], decimal: str | None, delimiter: str | None) -> Form | None:
    if not all(any(map(str.isdigit, text)) for text in texts[:10]):
        return None
    fitting = [form.pattern for form in _DATE_FORMS if form.fits(texts)]
    if not fitting:
        return None
    pattern, month_first = fitting[0], _MONTH_FIRST.get(fitting[0])
    if month_first not in fitting:
        return Form("date", pattern=pattern)
    # With slashes and decimal points, the month first is the American custom; hyphens have no such custom.
    american = "/" in pattern and decimal != "," and delimiter != ";"
    return Form("date", pattern=month_first if american and month_first else pattern, guessed=True)
