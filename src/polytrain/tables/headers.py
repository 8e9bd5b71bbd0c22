"""Names of columns: whether there are any, and what becomes of those that are empty, repeated, or of an index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from polytrain.columns.forms import DEFAULT_MISSING, find_form, is_number
from polytrain.texts import listed

__all__ = ["clean_names", "looks_like_header"]

_INDEX = re.compile(r"|Unnamed: 0(_level_0)?|__index_level_[0-9]+__")


def clean_names(cells: Sequence[str], keep_index: bool = False) -> tuple[list[str], list[int], list[str]]:
    """Return names that differ and are not empty, the columns that they belong to, and notes on what was changed.

    A first column without a name is an index; ``keep_index`` keeps it under the name "index".

    Examples
    --------
    >>> from polytrain.tables.headers import clean_names
    >>> names, kept, notes = clean_names(["", "price", "price", "age"])
    >>> names, kept
    (['price', 'price_2', 'age'], [1, 2, 3])
    >>> print("; ".join(notes))
    the first column has no name and was left out as an index; columns with equal names were numbered: 'price_2'
    """
    kept, notes, names = list(range(len(cells))), [], list(cells)
    counts: dict[str, int] = {}
    index = [k for k in kept if _is_index(cells, k)]
    if index and len(index) < len(cells):
        if keep_index:
            taken = set(names)
            for k in index:
                names[k] = _free("index", taken, counts)
        else:
            kept = sorted(set(kept) - set(index))
            what = "has no name" if not cells[index[0]] else f"is named {cells[index[0]]!r}"
            which = "the first column" if index == [0] else "a column"
            notes.append(f"{which} {what} and was left out as an index")
    empty = [k for k in kept if not names[k]]
    taken = {names[k] for k in kept} - {""}
    for k in empty:
        names[k] = _free(f"column {k}", taken, counts)
    if empty:
        notes.append(f"columns without a name were named by position: {listed(repr(names[k]) for k in empty)}")
    seen: set[str] = set()
    numbered = []
    for k in kept:
        if names[k] in seen:
            names[k] = _free(names[k], taken, counts)
            numbered.append(names[k])
        seen.add(names[k])
    if numbered:
        notes.append(f"columns with equal names were numbered: {listed(map(repr, numbered))}")
    return [names[k] for k in kept], kept, notes


def _is_index(cells: Sequence[str], k: int) -> bool:
    """Whether a column is an index that was written with the table, by its name; only the first may lack one."""
    if cells[k].startswith("__index_level_"):
        return bool(_INDEX.fullmatch(cells[k]))
    return k == 0 and bool(_INDEX.fullmatch(cells[0])) and all(cells[1:]) and len(cells) > 1


def _free(name: str, taken: set[str], counts: dict[str, int]) -> str:
    """Take a name that is free; the last number tried for each name is remembered, as a header may repeat it often."""
    free = name
    while free in taken:
        counts[name] = counts.get(name, 1) + 1
        free = f"{name}_{counts[name]}"
    taken.add(free)
    return free


def looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names rather than values.

    It does if some cell of it is a name above nothing but figures. Other cells may then be numbers, such as years, or
    empty. Without figures below, all of its cells must be names, different ones, and not be repeated below them.
    """
    first, below = rows[0], rows[1:]
    names = [k for k, cell in enumerate(first) if _is_name(cell)]
    marked = any(cell in DEFAULT_MISSING for cell in first)
    if not names or not below or marked:
        return False
    columns = [[row[k] for row in below if row[k] and row[k] not in DEFAULT_MISSING] for k in range(len(first))]
    numbers = [cell for cell in first if is_number(cell)]
    complete = len(names) == len(first) or (not first[0] and len(names) == len(first) - 1)
    distinct = len({first[k] for k in names}) == len(names)
    if any(columns[k] and find_form(columns[k]).kind != "text" for k in names):
        return not numbers or _are_names(numbers) or (distinct and len(names) >= len(numbers))
    if distinct and numbers and len(names) + len(numbers) == len(first):
        # Years above figures that are no years: a row of a table whose columns are years would have years below, too.
        values = [cell for k, column in enumerate(columns) if k not in names for cell in column]
        repeated = any(first[k] in columns[k] for k in names)
        return _are_names(numbers) and bool(values) and not repeated and not any(map(_is_year, values))
    if not complete or not distinct:
        return False
    if any(is_number(cell) for column in columns for cell in column):
        return True
    return not any(cell == name for row in below for cell, name in zip(row, first, strict=True))


def _is_name(cell: str) -> bool:
    return any(map(str.isalpha, cell)) and not is_number(cell) and find_form([cell]).kind == "text"


def _are_names(numbers: Sequence[str]) -> bool:
    """Whether numbers in the first row might be years, or count columns."""
    if len(set(numbers)) < len(numbers) or not all(number.isdecimal() and len(number) < 10 for number in numbers):
        return False
    values = [int(number) for number in numbers]
    steps = {after - before for before, after in pairwise(values)}
    return all(map(_is_year, numbers)) or (len(values) > 2 and steps == {1})


def _is_year(cell: str) -> bool:
    return len(cell) == 4 and cell.isdecimal() and 1800 <= int(cell) <= 2200
