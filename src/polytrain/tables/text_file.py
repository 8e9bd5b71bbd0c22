"""Tables in text files: comma-separated values and their kin."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import sys
from collections.abc import Iterator
from typing import Any

from polytrain.tables.cells import DEFAULT_MISSING, is_number
from polytrain.tables.errors import TableError
from polytrain.tables.reading import BLOCK_ROWS, Block, check_names

__all__ = ["TextTable"]

_DELIMITERS = (",", ";", "\t", "|")
# So many rows are looked at before it is decided whether the first one is a header.
_LOOK_AHEAD = 100


class TextTable:
    """A table in UTF-8 text, read row by row.

    Parameters
    ----------
    stream : binary stream
        The file; closed with the table.
    label : str
        Name for messages.
    header : {"auto", "yes", "no"}
        Whether the first row holds names.
    delimiter : str or None
        What separates cells; None finds out.
    """

    def __init__(self, stream: io.BufferedReader, label: str, header: str, delimiter: str | None) -> None:
        self.label, self._stream = label, stream
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        lines = self._lines()
        first = next(lines, "")
        self._reader = csv.reader(
            itertools.chain([first], lines), delimiter=delimiter or _find_delimiter(first), skipinitialspace=True
        )
        self._rows = self._numbered_rows()
        ahead = list(itertools.islice(self._rows, _LOOK_AHEAD))
        if not ahead:
            raise TableError(f"{label} holds no rows. Name a file with rows.")
        self.n_columns = len(ahead[0][1])
        cells = [row for _, row in ahead]
        has_header = header == "yes" or (header == "auto" and looks_like_header(cells))
        remedy = "Mend the header, or say --header no"
        self.names = check_names(ahead.pop(0)[1], label, remedy) if has_header else None
        self._ahead = ahead

    def __enter__(self) -> TextTable:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._stream is sys.stdin.buffer:
            self._text.detach()
        else:
            self._text.close()

    def _lines(self) -> Iterator[str]:
        """Lines of the text; what cannot be decoded is a mistake that can be named."""
        start = True
        while True:
            try:
                line = self._text.readline()
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{self.label} is not UTF-8 text: byte 0x{error.object[error.start]:02x} makes no character. "
                    "Convert it, for example with iconv -f LATIN1 -t UTF-8, or check that it is a table at all."
                ) from None
            if not line:
                return
            if "\0" in line:
                raise TableError(f"{self.label} has a NUL byte, which no text has. Check that it is a table at all.")
            yield line.removeprefix(codecs.BOM_UTF8.decode()) if start else line
            start = False

    def _numbered_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield rows of stripped cells with their line numbers; empty lines are no rows."""
        width = None
        try:
            for row in self._reader:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                width = width or len(row)
                if len(row) != width:
                    raise TableError(
                        f"{self.label}, line {self._reader.line_num}: {len(row)} cells, but {width} in the first row. "
                        "Mend the line, or name what separates the cells with --delimiter."
                    )
                yield self._reader.line_num, [cell.strip() for cell in row]
        except csv.Error as error:
            raise TableError(
                f"{self.label}, line {self._reader.line_num}: {error}. Mend the line, or check that this is a table."
            ) from None

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, so many at a time; only once."""
        rows: Iterator[Any] = itertools.chain(self._ahead, self._rows)
        while part := list(itertools.islice(rows, n_rows)):
            self._ahead = []
            places, cells = zip(*part, strict=True)
            yield Block(list(map(list, zip(*cells, strict=True))), places)


def _find_delimiter(line: str) -> str:
    outside = "".join(line.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)  # the first of equals


def looks_like_header(rows: list[list[str]]) -> bool:
    """Whether the first row holds names rather than values."""
    first, below = rows[0], rows[1:]
    if any(not cell or cell in DEFAULT_MISSING or is_number(cell) for cell in first) or len(set(first)) < len(first):
        return False
    if any(is_number(cell) for row in below for cell in row):
        return True
    return bool(below) and not any(cell == name for row in below for cell, name in zip(row, first, strict=True))
