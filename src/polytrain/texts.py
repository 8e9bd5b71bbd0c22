"""Text of strangers in messages and on pages: harmless, and short."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import islice

__all__ = ["listed", "printable"]

_MOST_LISTED, _MOST_LETTERS = 5, 60


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


def listed(items: Iterable[object], most: int = _MOST_LISTED) -> str:
    """Name a few items for a message, and say how many there are if these are not all.

    Examples
    --------
    >>> from polytrain.texts import listed
    >>> listed(["a", "b"])
    'a, b'
    >>> listed(range(1000))
    '0, 1, 2, 3, 4, ... (1000 in all)'
    """
    every = list(items)
    shown = ", ".join(_short(item) for item in islice(every, most))
    return shown if len(every) <= most else f"{shown}, ... ({len(every)} in all)"


def _short(item: object) -> str:
    text = printable(item)
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
