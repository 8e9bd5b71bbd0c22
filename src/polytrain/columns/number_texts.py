"""Numbers as people and programs write them: decimal commas, separated thousands, currencies, percents, parentheses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

__all__ = ["AFFIXES", "SPACES", "is_number", "parse_number", "split_affixes"]

#: The space, no-break, thin and narrow no-break space: each may separate thousands, or stand beside a currency.
SPACES = " \u00a0\u2009\u202f"
#: What may stand before or behind a figure, the longer ones first where one begins like another.
AFFIXES = (
    *("US$", "R$", "A$", "C$", "HK$", "NZ$", "S$", "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₫", "₪", "₴", "₦", "%"),
    *("CHF", "EUR", "USD", "GBP", "JPY", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF"),
    *("BRL", "MXN", "ZAR", "RUB", "TRY", "KRW", "SGD", "HKD", "ILS", "RON", "BGN", "UAH", "THB"),
    *("zł", "Kč", "kr.", "kr", "Ft", "Fr.", "Rs.", "Rs", "euro", "Euro"),
)
_PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MINUS, _CURVED = "\u2212", "\u2019"
_AFFIX = "|".join(map(re.escape, AFFIXES))
_FIGURE = rf"[0-9.,'{_CURVED}{SPACES}]*[0-9](?:[eE][+-]?[0-9]+)?"
_LOOSE = re.compile(
    rf"[(+{_MINUS}-]?[{SPACES}]?(?P<prefix>{_AFFIX})?[{SPACES}]?[(+{_MINUS}-]?(?P<figure>{_FIGURE})\)?"
    rf"[{SPACES}]?(?P<suffix>{_AFFIX})?\)?[{_MINUS}-]?"
)
_IS_PLAIN = re.compile(_PLAIN)


@lru_cache(maxsize=256)
def _compiled(decimal: str, thousands: str, prefix: str, suffix: str) -> re.Pattern[str]:
    if (decimal, thousands, prefix, suffix) == (".", "", "", ""):
        return _IS_PLAIN
    point, gap = re.escape(decimal), f"[{SPACES}]?"
    whole = "[0-9]+"
    if thousands:
        between = {" ": f"[{SPACES}]", "'": f"['{_CURVED}]"}.get(thousands, re.escape(thousands))
        # Groups of two are Indian; a first group that begins with zero is the whole part of a decimal number.
        whole = rf"(?:[1-9][0-9]{{0,2}}(?:{between}[0-9]{{2,3}})*{between}[0-9]{{3}}|[0-9]+)"
    figure = rf"(?:{whole}(?:{point}[0-9]+)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    before = f"(?:{re.escape(prefix)}{gap})?" if prefix else ""
    after = f"(?:{gap}{re.escape(suffix)})?" if suffix else ""
    sign = f"[+{_MINUS}-]"
    signed = f"(?:{sign}{gap}{before}|{before}{sign}?){figure}{after}"
    debit = f"{before}{figure}{after}[{_MINUS}-]"
    parentheses = rf"\({before}{figure}{after}\)|{before}\({figure}\){after}"
    return re.compile(f"(?:{signed}|{debit}|{parentheses})")


@lru_cache(maxsize=256)
def _plain_steps(decimal: str, thousands: str, prefix: str, suffix: str) -> tuple[tuple[str, str], ...]:
    """Return the replacements, one after the other, that leave a plain number, but for a minus at its end."""
    if (decimal, thousands, prefix, suffix) == (".", "", "", ""):
        return ()
    gone = [prefix, suffix, *SPACES, "(", ")", *(f"'{_CURVED}" if thousands == "'" else thousands)]
    steps = [(text, "") for text in dict.fromkeys(gone) if text]
    return (*steps, (_MINUS, "-"), *([(decimal, ".")] if decimal != "." else []))


def parse_number(
    text: str, decimal: str = ".", thousands: str = "", prefix: str = "", suffix: str = ""
) -> float | None:
    """Return the number that a cell holds, or None if it holds none, or one that is not finite.

    Examples
    --------
    >>> from polytrain.columns.number_texts import parse_number
    >>> parse_number("-1.234,50 €", ",", ".", suffix="€"), parse_number("(1,234)", ".", ","), parse_number("1,5")
    (-1234.5, -1234.0, None)
    """
    if not _compiled(decimal, thousands, prefix, suffix).fullmatch(text):
        return None
    negative = "(" in text or text[-1] in f"{_MINUS}-"
    for old, new in _plain_steps(decimal, thousands, prefix, suffix):
        text = text.replace(old, new)
    value = float(text.removesuffix("-"))
    if not abs(value) < float("inf"):
        return None
    return -value if negative else value


def is_number(text: str) -> bool:
    """Whether text is a finite plain number, as in 12, -0.5 or 1e-3.

    Examples
    --------
    >>> from polytrain.columns.number_texts import is_number
    >>> [is_number(text) for text in ("12", "-.5", "1e-3", "1,5", "1_000", "inf", "")]
    [True, True, True, False, False, False, False]
    """
    return bool(_IS_PLAIN.fullmatch(text)) and abs(float(text)) < float("inf")


def split_affixes(texts: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield prefix, suffix and figure of every cell; stop at the first that cannot be a number."""
    for text in texts:
        found = _LOOSE.fullmatch(text)
        if found is None:
            yield "", "", ""
            return
        yield found["prefix"] or "", found["suffix"] or "", found["figure"]
