"""Text of strangers in messages and on pages: harmless, and short."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["listed", "page_text", "printable", "short_list"]

_MOST_LISTED, _MOST_LETTERS = 8, 60


def printable(text: object) -> str:
    r"""Write out characters that a terminal or a page obeys or hides: an escape as ``\x1b``, a line break as ``\n``.

    Every name, label and cell goes through here on its way to a terminal or a page.

    Examples
    --------
    >>> from polytrain.texts import printable
    >>> print(printable("two\nlines"))
    two\nlines
    """
    line = str(text)
    if line.isprintable():
        return line
    return "".join(
        letter if letter.isprintable() or unicodedata.category(letter) == "Zs" else _escaped(letter) for letter in line
    )


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def page_text(text: object) -> str:
    """Return what stands for a text in HTML and SVG: nothing in it is markup or changes the direction of the line."""
    return escape(printable(text))


def listed(items: Iterable[object]) -> str:
    """Name a few items for a message, and say how many there are if these are not all.

    Examples
    --------
    >>> from polytrain.texts import listed
    >>> listed(["a", "b"])
    'a, b'
    >>> listed(range(1000))
    '0, 1, 2, 3, 4, 5, 6, 7, ... (1000 in all)'
    """
    every = list(items)
    shown = ", ".join(_short(item) for item in every[:_MOST_LISTED])
    return shown if len(every) <= _MOST_LISTED else f"{shown}, ... ({len(every)} in all)"


def short_list(values: Any) -> str:
    """Write a list or an array of labels for a message, as `listed` does.

    Examples
    --------
    >>> from polytrain.texts import short_list
    >>> short_list(["a", 1])
    "['a', 1]"
    """
    return f"[{listed(map(repr, getattr(values, 'tolist', lambda: values)()))}]"


def _short(item: object) -> str:
    text = printable(item)
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
