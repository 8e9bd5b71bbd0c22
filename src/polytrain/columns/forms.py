"""How the text of a column becomes values: plain numbers, other numbers, dates, or text as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from functools import cached_property
from typing import Any, Literal, get_args

from polytrain.columns.date_texts import DATE_PATTERNS, parse_date
from polytrain.columns.number_texts import AFFIXES, SPACES, is_number, parse_number, split_affixes

__all__ = ["DEFAULT_MISSING", "Form", "find_form"]

#: Text that stands for a missing value unless others are named. The empty cell always does.
DEFAULT_MISSING = ("?", "NA", "N/A", "NaN", "nan", "NULL", "null")
Kind = Literal["number", "date", "text", "truth"]
_KINDS = get_args(Kind)
_DECIMALS = (".", ",")
_THOUSANDS = {"": "", ",": "commas", ".": "points", " ": "spaces", "'": "apostrophes"}
# Ways to write numbers, in the order in which they are tried. A decimal comma lets points separate thousands, whether
# or not there are any yet.
_PAIRS = ((".", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_TRUTH = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
_TWINS = {"%d/%m/%Y": "%m/%d/%Y", "%d-%m-%Y": "%m-%d-%Y", "%d/%m/%y": "%m/%d/%y"}


@dataclass(frozen=True)
class Form:
    """How the cells of a column are to be understood.

    Attributes
    ----------
    kind : {"number", "date", "text", "truth"}
        "truth" is of files with types only; its values are 0 and 1.
    decimal : {".", ","}
        What stands before the decimals of a number.
    thousands : {"", ",", ".", " ", "'"}
        What may stand between thousands. The space stands for all spaces that are used so, and the apostrophe for the
        curved one, too.
    prefix, suffix : str
        What may stand before and behind a number: a currency, or "%". 12 % is the number 12.
    pattern : str
        How a date is written: "iso", or in the letters of strptime, such as "%d.%m.%Y". A time of day may follow.
    guessed : bool
        Whether another form would have fitted as well.

    Examples
    --------
    >>> from polytrain.columns.forms import Form
    >>> form = Form("number", decimal=",", thousands=".", suffix="€")
    >>> form.parse("-1.234,50 €"), form.parse("nothing")
    (-1234.5, None)
    >>> print(form.describe())
    numbers with a decimal comma, such as '1.234,5 €'
    >>> Form.from_json(form.to_json()) == form
    True
    """

    kind: Kind
    decimal: str = "."
    thousands: str = ""
    prefix: str = ""
    suffix: str = ""
    pattern: str = "iso"
    guessed: bool = False

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is numbers as programs write them."""
        return self.kind == "number" and (self.decimal, self.thousands, self.prefix, self.suffix) == (".", "", "", "")

    def parse(self, text: str) -> float | int | None:
        """Return the value of a cell that is not missing; None if it does not fit.

        Numbers are float; dates are microseconds since the start of 1970, in the local time of the cell.
        """
        if self.kind == "number":
            return parse_number(text, self.decimal, self.thousands, self.prefix, self.suffix)
        if self.kind == "date":
            return parse_date(text, self.pattern)
        if self.kind == "truth":
            return _TRUTH.get(text.lower())
        raise ValueError("text has no values; ask for codes.")

    def describe(self) -> str:
        """Return what is understood, in words, with an example."""
        if self.kind == "number":
            return self._describe_numbers()
        if self.kind == "date":
            return self._describe_dates()
        return {"text": "text", "truth": "true and false"}[self.kind]

    def _describe_numbers(self) -> str:
        if self.is_plain:
            return "numbers"
        between = f"{_THOUSANDS[self.thousands]} between thousands"
        what = "percentages" if "%" in (self.prefix, self.suffix) else "numbers"
        if self.decimal == ",":
            what += " with a decimal comma" + (f" and {between}" if self.thousands in (" ", "'") else "")
        elif self.thousands:
            what += f" with {between}"
        figure = f"12{self.decimal}5" if what.startswith("percentages") else f"1{self.thousands}234{self.decimal}5"
        example = f"{figure}{' ' if self.suffix and self.suffix != '%' else ''}{self.suffix}"
        if not self.suffix:
            example = f"{self.prefix}{' ' if self.prefix.isalpha() else ''}{figure}"
        other = "commas between thousands" if self.decimal == "," else "a decimal comma"
        return f"{what}, such as {example!r}" + (f" ({other} would fit, too)" if self.guessed else "")

    def _describe_dates(self) -> str:
        if self.pattern == "iso":
            return "dates, such as '2024-12-31'"
        day_first = self.pattern.index("%d") < (self.pattern.find("%m") % 99)
        order = "" if "%b" in self.pattern or self.pattern.startswith("%Y") else "day first, "
        if order and not day_first:
            order = "month first, "
        example = date(2024, 12, 31).strftime(self.pattern)
        other = "month first" if day_first else "day first"
        return f"dates, {order}such as {example!r}" + (f" ({other} would fit, too)" if self.guessed else "")

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads: a dictionary of what differs from the defaults."""
        defaults = Form(self.kind)
        return {
            name: value for name, value in asdict(self).items() if name == "kind" or value != getattr(defaults, name)
        }

    @classmethod
    def from_json(cls, content: object) -> Form:
        """Make a form of what `to_json` returned; whatever else comes is a ValueError."""
        if not isinstance(content, dict):
            raise ValueError(f"a column's form must be an object, got {type(content).__name__}.")
        allowed: dict[str, tuple[object, ...]] = {
            "kind": _KINDS,
            "decimal": _DECIMALS,
            "thousands": tuple(_THOUSANDS),
            "prefix": ("", *AFFIXES),
            "suffix": ("", *AFFIXES),
            "pattern": DATE_PATTERNS,
            "guessed": (False, True),
        }
        if "kind" not in content or not content.keys() <= {field.name for field in fields(cls)}:
            raise ValueError(f"a column's form has the entries {', '.join(map(repr, content)):.200}.")
        for name, value in content.items():
            kind = bool if name == "guessed" else str
            if type(value) is not kind or value not in allowed[name]:
                raise ValueError(f"a column's form has the {name} {value!r:.60}.")
        form = cls(**content)
        if form.thousands == form.decimal:
            raise ValueError(f"a column's form has {form.decimal!r} before decimals and between thousands.")
        return form


def find_form(texts: Sequence[str], *, decimal: str | None = None, delimiter: str | None = None) -> Form:
    """Find out how the cells of a column are to be understood.

    Parameters
    ----------
    texts : sequence of str
        Different cells of the column, stripped, without missing ones.
    decimal : {".", ","}, optional
        What stands before decimals, if the user says so or other columns show it.
    delimiter : str, optional
        What separates the cells of the file. A semicolon speaks for decimal commas and days before months.

    Returns
    -------
    Form
        A form that fits all of the texts. Plain numbers come first, then other numbers, then dates; if nothing fits, it
        is text. Where 1,234 might be both, it has a decimal comma if ``decimal`` or a semicolon as ``delimiter`` says
        so, else a comma between thousands. Where 3/4/2024 might be both, the month is first, but the day is if numbers
        have decimal commas by the same signs.

    Examples
    --------
    >>> from polytrain.columns.forms import find_form
    >>> find_form(["1", "2.5"]).describe(), find_form(["1", "two"]).describe()
    ('numbers', 'text')
    >>> find_form(["$1,200", "$900"]).describe()
    "numbers with commas between thousands, such as '$1,234.5'"
    >>> find_form(["24.12.2025", "1.1.2026 14:30"]).describe()
    "dates, day first, such as '31.12.2024'"
    """
    if not texts:
        return Form("text")
    return _find_number(texts, decimal, delimiter) or _find_date(texts, decimal, delimiter) or Form("text")


def _find_number(texts: Sequence[str], decimal: str | None, delimiter: str | None) -> Form | None:
    plain = all(map(is_number, texts))
    if plain and (decimal != "," or not any("." in text for text in texts)):
        return Form("number")
    split = list(split_affixes(texts))
    units = {affix for prefix, suffix, _ in split for affix in (prefix, suffix)} - {""}
    if any(not figure for _, _, figure in split) or len(units) > 1:
        return Form("number") if plain else None
    if "%" in units and not all(prefix or suffix for prefix, suffix, _ in split):
        return None  # 12 % beside 0.12 would be two units
    prefix, suffix = ("".join({part[side] for part in split}) for side in (0, 1))
    fitting = [
        pair
        for pair in _PAIRS
        if all(parse_number(text, *pair, prefix, suffix) is not None for text in texts) and decimal in (None, pair[0])
    ]
    if not fitting:
        return Form("number") if plain else None
    if not any(mark in figure for *_, figure in split for mark in f",.'\u2019{SPACES}"):
        fitting = fitting[:1]
    # Amounts of money have no three decimals.
    is_money = bool(units - {"%"})
    both = {(".", ","), (",", ".")} <= set(fitting) and decimal is None and not is_money
    prefers_comma = decimal == "," or (decimal is None and delimiter == ";" and not plain and not is_money)
    chosen = next((pair for pair in fitting if prefers_comma and pair[0] == ","), fitting[0])
    return Form("number", *chosen, prefix, suffix, guessed=both)


def _find_date(texts: Sequence[str], decimal: str | None, delimiter: str | None) -> Form | None:
    if not all(any(map(str.isdigit, text)) for text in texts[:10]):
        return None
    fitting = [pattern for pattern in DATE_PATTERNS if all(parse_date(text, pattern) is not None for text in texts)]
    if not fitting:
        return None
    day_first = fitting[0]
    month_first = _TWINS.get(day_first)
    if month_first not in fitting:
        return Form("date", pattern=day_first)
    # Slashes with the month first are American, and so are decimal points; hyphens have no such home.
    american = "/" in day_first and decimal != "," and delimiter != ";"
    return Form("date", pattern=month_first if american and month_first else day_first, guessed=True)
