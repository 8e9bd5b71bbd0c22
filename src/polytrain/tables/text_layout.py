"""How a text file is laid out: what separates its cells, which lines come before the table, and where its names are."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from typing import Any

from polytrain.tables.headers import looks_like_header

__all__ = ["find_layout", "find_names", "read_rows"]

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[^0-9]*[0-9.]*,[0-9]+[^0-9]*")


def read_rows(lines: Any, delimiter: str, n_skipped: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row ends, and its stripped cells; blank lines are skipped."""
    reader = csv.reader(itertools.islice(lines, n_skipped, None), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield n_skipped + reader.line_num, [cell.strip() for cell in row]
    except csv.Error:  # a cell of more than 128 KiB: lines of later rows are not told
        return


def find_layout(lines: list[str], delimiter: str | None) -> tuple[str, int, str | None, list[str]]:
    """Return delimiter, lines before the table, the last comment among these, and what is to be told."""
    notes, n_skipped, comments = [], 0, []
    said = _SEPARATOR.fullmatch(lines[0]) if lines else None
    if said:
        n_skipped, delimiter = 1, delimiter or said[1]
        notes.append(f"the first line says that cells are separated by {_DELIMITERS.get(said[1], repr(said[1]))}")
    for number, line in enumerate(lines[n_skipped:], start=n_skipped):
        if line.lstrip().startswith("#"):
            comments.append(line.strip().removeprefix("#").strip())
            n_skipped = number + 1
        elif line.strip():
            break
    if comments:
        notes.append(f"comment lines before the table were skipped: {len(comments)}")
    if delimiter is None:
        delimiter = _find_delimiter(lines[n_skipped:])
        if delimiter != ",":
            notes.append(f"cells are separated by {_DELIMITERS[delimiter]}")
    return delimiter, n_skipped, comments[-1] if comments else None, notes


def _find_delimiter(lines: list[str]) -> str:
    """Whatever cuts all rows into the same number of cells, and leaves cells that hold no other delimiter."""
    best, best_score = None, (0.0, 0)
    for delimiter in _DELIMITERS:
        if delimiter == " " and best is not None:
            break
        rows = [row for _, row in itertools.islice(read_rows(lines, delimiter, 0), 30)]
        below = rows[1:] or rows
        widths = {len(row) for row in below}
        # The first row may lack a name for row names, or have one delimiter more at its end.
        if len(widths) != 1 or min(len(rows[0]), *widths) < 2 or abs(len(rows[0]) - max(widths)) > 1:
            continue
        cells = [cell for row in below for cell in row]
        whole = sum(not _has_other(cell, delimiter) for cell in cells) / len(cells)
        if (score := (round(whole, 3), len(rows[0]))) > best_score:
            best, best_score = delimiter, score
    if best is not None:
        return best
    # Rows differ. The first line tells what was meant, and the message which line is wrong.
    outside = "".join(next((line for line in lines if line.strip()), "").split('"')[::2])
    return max([*_DELIMITERS][:-1], key=outside.count)  # the first of equals


def _has_other(cell: str, delimiter: str) -> bool:
    if delimiter == " ":
        return False
    others = [other for other in [*_DELIMITERS][:-1] if other != delimiter and other in cell]
    return bool(others) and not (others == [","] and _DECIMAL_COMMA.fullmatch(cell))


def find_names(
    rows: list[tuple[int, list[str]]], comment: str | None, delimiter: str, header: str, notes: list[str]
) -> tuple[list[str] | None, list[tuple[int, list[str]]]]:
    """Return the names, if there are any, and the rows below them."""
    cells = [row for _, row in rows]
    if header == "no":
        return None, rows
    if comment is not None and len({*map(len, cells)}) == 1 and not looks_like_header(cells):
        hidden = next((row for _, row in read_rows([comment], delimiter, 0)), [])
        if len(hidden) == len(cells[0]) > 1 and looks_like_header([hidden, *cells]):  # as NumPy writes them
            notes.append("the names are those of the last comment")
            return hidden, rows
    first, below = cells[0], cells[1:]
    widths = {*map(len, below)}
    extra = len(first) - widths.pop() if len(widths) == 1 else 0
    if extra == -1 and len(first) > 1:  # a single name more likely means that cells are separated by something else
        is_empty = not any(row[-1] for row in below)
        compared = [first, *(row[:-1] for row in below)] if is_empty else [["", *first], *below]
    else:
        first = first[:-1] if extra == 1 and not first[-1] else first
        # Rows differ. One of them is wrong, which is told when it is read.
        compared = [first, *(row for row in below if len(row) == len(first))]
    names = [cells[0][0].removeprefix("\ufeff"), *cells[0][1:]]
    return (names, rows[1:]) if header == "yes" or looks_like_header(compared) else (None, rows)
