"""Columns of numbers that only tell rows from each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_ROWS", "is_identifier"]

#: A table with fewer rows says nothing about identifiers.
LEAST_ROWS = 20
# Pieces of names of identifiers; those that are such at the end of a name only; running numbers that say when.
_IDENTIFIERS = frozenset({"id", "ids", "uuid", "guid"})
_LAST_PIECES = frozenset({"index", "idx", "key", "nr", "no", "num", "number", "rownum", "row"})
_TIMES = frozenset(
    {"t", "time", "timestamp", "date", "step", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}
    | {"period", "age"}
)


def is_identifier(name: str, values: NDArray) -> bool:
    """Whether the numbers of a column, NaN where one is missing, are names of the rows rather than measurements.

    They are whole and all different, and either the column is called so, or they are the numbers from 0 or 1 on, or a
    random part of these. Independent measurements would repeat some number when they are so many among so few: either
    half of all numbers up to the largest occur, or some twenty pairs of equal numbers were to be expected. Numbers that
    begin elsewhere, as years do, numbers at equal steps, and running times are measurements.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.columns.identifiers import is_identifier
    >>> rows = np.arange(1000.0)
    >>> is_identifier("x", rows), is_identifier("x", rows[::-7]), is_identifier("customerId", 8 * rows + 5000)
    (True, False, True)
    >>> part = np.random.default_rng(0).choice(rows, 300, replace=False)
    >>> is_identifier("x", part), is_identifier("x", part**2), is_identifier("day", part)
    (True, False, False)
    """
    there = values[~np.isnan(values)]
    n = len(there)
    if n < max(LEAST_ROWS, 0.9 * len(values)) or not (there == np.round(there)).all():
        return False
    pieces = "".join(letter if letter.isalnum() else " " for letter in _split_case(name)).lower().split()
    last = pieces[-1] if pieces else ""
    if not _IDENTIFIERS & set(pieces) and last not in _LAST_PIECES:
        first, span = there.min(), there.max() + 1
        is_dense = span <= max(2 * n, n * (n - 1) / 40)
        # The first of a random part comes after more than ten times the mean distance once in 20,000 parts.
        if last.removesuffix("s") in _TIMES or not is_dense or not 0 <= first <= 1 + 10 * span / n:
            return False
        if np.gcd.reduce((there - first).astype(np.int64)) > 1:
            return False
    return len(np.unique(there)) == n


def _split_case(name: str) -> str:
    """Put a space between a small and a capital letter: customerId has two pieces."""
    return "".join(f" {b}" if b.isupper() and a.islower() else b for a, b in zip(" " + name, name, strict=False))
