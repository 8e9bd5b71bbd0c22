"""Make untrusted text harmless and short, for messages and pages."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["html_table", "listed", "printable", "short_list", "shortened", "shown"]

_MOST_LISTED, _MOST_LETTERS = 8, 60


def printable(text: object) -> str:
    r"""Write out characters that a terminal or a page obeys or hides: an escape as ``\x1b``, a line break as ``\n``.

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
    """Name the first items for a message, and say how many there are if these are not all."""
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
