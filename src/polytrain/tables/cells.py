"""Cells of tables: text, numbers and missing values.

Conventions
-----------
A column of a block is either a list of stripped text or a float64 array in which NaN is missing. Text is missing if it
is empty or among the markers for missing values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEFAULT_MISSING", "Cells", "as_numbers", "as_text", "is_number", "number_text", "truth_as_numbers"]

#: Text that stands for a missing value unless others are named. The empty cell always does.
DEFAULT_MISSING = ("?", "NA", "N/A", "NaN", "nan", "NULL", "null")

#: Cells of one column in one block.
Cells = Sequence[str] | NDArray


def is_number(cell: str) -> bool:
    """Whether text is a finite number, as in 12, -0.5 or 1e-3."""
    if "_" in cell:  # 1_000 is Python, not a number in a table
        return False
    try:
        return abs(float(cell)) < np.inf
    except ValueError:
        return False


def as_numbers(cells: Cells, missing: Collection[str]) -> tuple[NDArray, int | None]:
    """Return cells as float64 with NaN for missing values, and the index of the first cell that is no number."""
    if isinstance(cells, np.ndarray):
        infinite = np.isinf(cells)
        return cells, int(infinite.argmax()) if infinite.any() else None
    absent = [not cell or cell in missing for cell in cells]
    plain = ["nan" if gone else cell for cell, gone in zip(cells, absent, strict=True)]
    try:
        numbers = np.array(plain, dtype=np.float64)
    except ValueError:
        numbers = None
    if numbers is None or (~np.isfinite(numbers) & ~np.array(absent)).any() or "_" in "".join(plain):
        first = next(
            (k for k, (cell, gone) in enumerate(zip(cells, absent, strict=True)) if not gone and not is_number(cell)),
            None,
        )
        return np.zeros(0), first
    return numbers, None


def as_text(cells: Cells, missing: Collection[str]) -> list[str | None]:
    """Return cells as text with None for missing values; whole numbers are written without a point."""
    if isinstance(cells, np.ndarray):
        return [None if value != value else _shortest(value) for value in cells.tolist()]
    return [None if not cell or cell in missing else cell for cell in cells]


def number_text(cell: str) -> str:
    """Return a number in its shortest form, as in 3 for 3.0; other text as it is."""
    return _shortest(float(cell)) if is_number(cell) else cell


def truth_as_numbers(cells: Cells) -> Cells:
    """Replace True and False, in any case, by 1 and 0."""
    if isinstance(cells, np.ndarray):
        return cells
    return [_TRUTH.get(cell.lower(), cell) for cell in cells]


_TRUTH = {"true": "1", "false": "0"}


def _shortest(value: float) -> str:
    return str(int(value)) if abs(value) < 2**53 and value == int(value) else repr(value)
