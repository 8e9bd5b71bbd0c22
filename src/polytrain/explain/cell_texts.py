"""The values of given rows as short text, for people to read beside a column's name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from polytrain.columns.cells import Cells
from polytrain.columns.scalars import is_missing, sort_of, text_of
from polytrain.columns.table import open_table

__all__ = ["MISSING", "cell_texts", "row_labels"]

#: What stands for a missing value.
MISSING = "missing"

# Whole numbers below are written with all of their digits.
_LARGEST_WHOLE = 1e15


def cell_texts(X: Any, columns: Iterable[int] | None = None) -> tuple[tuple[str, ...], ...]:
    """Cells of a frame or an array as text: one tuple per row, for some of the columns or all.

    Examples
    --------
    >>> import pandas as pd
    >>> from polytrain.explain.cell_texts import cell_texts
    >>> cell_texts(pd.DataFrame({"age": [39.0, None], "job": ["cook", "smith"], "size": [1 / 3, 1e6]}))
    (('39', 'cook', '0.333333'), ('missing', 'smith', '1000000'))
    """
    table = open_table(X)
    chosen = range(len(table.names)) if columns is None else columns
    return tuple(zip(*(_column_texts(table.read(k)) for k in chosen), strict=True))


def _column_texts(cells: Cells) -> list[str]:
    texts = [_text(value) for value in cells.values]
    return texts if cells.codes is None else [texts[code] if code >= 0 else MISSING for code in cells.codes]


def _text(value: Any) -> str:
    if is_missing(value):
        return MISSING
    if sort_of(type(value)) != "number" or isinstance(value, (bool, np.bool_)):
        return text_of(value)
    number = float(value)
    return str(int(number)) if abs(number) < _LARGEST_WHOLE and number == int(number) else f"{number:.6g}"


def row_labels(X: Any, count: int) -> tuple[Any, ...]:
    """What rows are called: by the index of a frame of pandas, else by their numbers from 0."""
    return tuple(X.index) if hasattr(X, "iloc") else tuple(range(count))
