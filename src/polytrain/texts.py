"""Make untrusted text harmless and short, and format numbers, for messages, pictures and pages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

__all__ = [
    "html_table", "listed", "number_format", "number_text", "percent_text", "printable", "short_list", "shortened",
    "shown", "tick_texts", "unit_of",
]  # fmt: skip

_MOST_LISTED, _MOST_LETTERS = 8, 60


def printable(text: object) -> str:
    r"""Escape characters that control a terminal or are invisible: an escape as ``\x1b``, a line break as ``\n``.

    Every name, label and cell goes through here on its way to a terminal or a page.
    """
    line = str(text)
    if line.isprintable():
        return line
    return "".join(
        letter if letter.isprintable() or unicodedata.category(letter) == "Zs" else ascii(letter)[1:-1]
        for letter in line
    )


def listed(items: Iterable[object]) -> str:
    """List the first items for a message, with the total number if these are not all."""
    texts = [printable(item) for item in items]
    more = [f"... ({len(texts)} in all)"] if len(texts) > _MOST_LISTED else []
    return ", ".join([*map(shortened, texts[:_MOST_LISTED]), *more])


def shortened(text: str, most: int = _MOST_LETTERS) -> str:
    """Cut a text to this many characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def html_table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> str:
    """Write a table; without a ``head``, the first cell of each row is one."""

    def line(cells: Sequence[object], n_heads: int) -> str:
        tags = ["th"] * n_heads + ["td"] * (len(cells) - n_heads)
        pairs = zip(tags, cells, strict=True)
        return f"<tr>{''.join(f'<{tag}>{escape(printable(cell))}</{tag}>' for tag, cell in pairs)}</tr>"

    lines = [line(head, len(head))] if head else []
    return f"<table>{''.join([*lines, *(line(cells, 0 if head else 1) for cells in rows)])}</table>"


def shown(value: object) -> str:
    """Return the repr of a value for a message: on one line, and cut to 60 characters."""
    return shortened(" ".join(repr(value).split()))


def short_list(values: Any) -> str:
    """Write a list or an array of labels for a message, as `listed` does."""
    return f"[{listed(map(repr, getattr(values, 'tolist', lambda: values)()))}]"


def number_text(value: Any, digits: int = 3, *, signed: bool = False) -> str:
    """Format a number: integers in full, others with three digits, None and NaN as "-".

    Commas begin at 10,000, so that years have none. Zeros at the end are left out where the number is exact.
    """
    if value is None or value != value:
        return "-"
    number = float(value)
    text = number_format([number], digits)(number)
    if "." in text and "e" not in text and float(text.replace(",", "")) == number:
        text = text.rstrip("0").rstrip(".")
    return f"+{text}" if signed and number > 0 else text


def number_format(numbers: Iterable[float], digits: int = 3) -> Callable[[float], str]:
    """Return the format of numbers of one sum: all have the decimals that give the largest ``digits`` digits."""
    largest = max(map(abs, numbers), default=0.0)
    if largest and not 1e-4 <= largest < 1e15:
        return lambda number: re.sub(r"e([-+])0*", r"e\1", f"{number:.{digits}g}").replace("e+", "e")
    decimals = max(digits - 1 - math.floor(math.log10(largest)), 0) if largest else 0
    return lambda number: _written(number, decimals)


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Format the numbers at an axis with the fewest decimals that distinguish them, and large ones in millions."""
    largest = max(map(abs, ticks), default=0.0)
    if largest and not 1e-4 <= largest < 1e13:
        return [number_text(tick) for tick in ticks]
    scale, unit = (1e6, "M") if largest >= 1e7 else (1.0, "")
    numbers = [tick / scale for tick in ticks]
    close = 1e-4 * (max(numbers, default=0.0) - min(numbers, default=0.0) or largest / scale)
    decimals = next((d for d in range(9) if all(abs(round(number, d) - number) <= close for number in numbers)), 9)
    return [_written(number, decimals) + (unit if number else "") for number in numbers]


def _written(number: float, decimals: int) -> str:
    text = f"{round(number, decimals) + 0.0:,.{decimals}f}"  # never -0.00
    return text if abs(number) >= 9999.5 else text.replace(",", "")


def percent_text(share: float | None, *, signed: bool = False) -> str:
    """Write a share in per cent, with three digits; two decimals at most, whole per cent without."""
    if share is None or share != share:
        return "-"
    value = round(100.0 * share, 9)
    rest = min(abs(value), abs(100.0 - abs(value)))  # 99.95 % must not become 100 %
    if 0 < rest < 0.005:
        return "below 0.01 %" if abs(value) < 50 else "above 99.99 %"
    decimals = 0 if value.is_integer() else 1 if abs(value) >= 10 and rest >= 1 else 2
    return f"{value:{'+' if signed and value else ''}.{decimals}f} %"


def unit_of(name: str) -> str:
    """Return the unit in parentheses or brackets at the end of a name, such as that of "area (m2)", or ""."""
    found = re.search(r"\S\s*[([]([^][()]{1,24})[])]\s*$", name)
    return found[1].strip() if found else ""
