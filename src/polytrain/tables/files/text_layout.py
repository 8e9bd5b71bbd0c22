"""How a text file is laid out: what separates the cells, and which lines come before the table."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Layout", "find_layout", "read_cells"]

_DELIMITERS = (",", ";", "\t", "|")
_SPOKEN = {";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces", ",": "commas"}
# So many rows tell what separates their cells.
_LOOK_AHEAD = 30
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[^0-9]*[0-9.]*,[0-9]+[^0-9]*")


@dataclass(frozen=True)
class Layout:
    """What was found out about a text file.

    Attributes
    ----------
    delimiter : str
        What separates its cells.
    skip : int
        Lines before the table.
    hidden_header : str or None
        The last comment before the table, without its mark: it may hold the names.
    notes : tuple of str
        What is to be told about it.
    """

    delimiter: str
    skip: int = 0
    hidden_header: str | None = None
    notes: tuple[str, ...] = ()


def find_layout(text: str, delimiter: str | None = None, tabs: bool = False) -> Layout:
    r"""Find out how a text file is laid out.

    Parameters
    ----------
    text : str
        Its first lines.
    delimiter : str, optional
        What separates the cells, if the user says so.
    tabs : bool, default=False
        Whether the file's name says that tabs do.

    Examples
    --------
    >>> from polytrain.tables.files.text_layout import find_layout
    >>> layout = find_layout("# measured today\nlength;weight\n1,5;2\n")
    >>> layout.delimiter, layout.skip, layout.notes
    (';', 1, ('1 comment line before the table was skipped', 'cells are separated by semicolons'))
    """
    lines = list(itertools.islice(io.StringIO(text, newline=""), 1000))
    notes: list[str] = []
    skip = 0
    said = _SEPARATOR.fullmatch(lines[0]) if lines else None
    if said:
        skip = 1
        delimiter = delimiter or said[1]
        notes.append(f"the first line says that cells are separated by {_SPOKEN.get(said[1], repr(said[1]))}")
    comments = []
    for number, line in enumerate(lines[skip:], start=skip):
        if line.lstrip().startswith("#"):
            comments.append(line.strip().removeprefix("#").strip())
            skip = number + 1
        elif line.strip():
            break
    if comments:
        lines_were = (
            "comment line before the table was" if len(comments) == 1 else "comment lines before the table were"
        )
        notes.append(f"{len(comments)} {lines_were} skipped")
    found = delimiter or ("\t" if tabs else _find_delimiter(lines[skip:]))
    if delimiter is None and not tabs and found != ",":
        notes.append(f"cells are separated by {_SPOKEN[found]}")
    return Layout(found, skip, comments[-1] if comments else None, tuple(notes))


def read_cells(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield rows of stripped cells; empty lines are no rows."""
    for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True):
        if any(cell.strip() for cell in row) or len(row) > 1:
            yield [cell.strip() for cell in row]


def _find_delimiter(lines: list[str]) -> str:
    """Whatever cuts all rows into the same number of cells, and leaves cells that hold no other delimiter."""
    best, best_score = None, (0.0, 0)
    for delimiter in (*_DELIMITERS, " "):
        if delimiter == " " and best is not None:
            break
        rows = _first_rows(lines, delimiter)
        below = rows[1:] or rows
        widths = {len(row) for row in below}
        # The first row may lack a name for row names, or have one delimiter more at its end.
        if len(widths) != 1 or min(len(rows[0]), *widths) < 2 or abs(len(rows[0]) - max(widths)) > 1:
            continue
        cells = [cell for row in below for cell in row]
        whole = sum(not _has_other(cell, delimiter) for cell in cells) / len(cells)
        score = (round(whole, 3), len(rows[0]))
        if score > best_score:
            best, best_score = delimiter, score
    if best is not None:
        return best
    # Rows differ. The first line tells what was meant, and the message which line is wrong.
    outside = "".join(next((line for line in lines if line.strip()), "").split('"')[::2])
    return max(_DELIMITERS, key=outside.count)  # the first of equals


def _first_rows(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        return list(itertools.islice(read_cells(lines, delimiter), _LOOK_AHEAD))
    except csv.Error:
        return []


def _has_other(cell: str, delimiter: str) -> bool:
    if delimiter == " ":
        return False
    others = [other for other in _DELIMITERS if other != delimiter and other in cell]
    return bool(others) and not (others == [","] and _DECIMAL_COMMA.fullmatch(cell))
