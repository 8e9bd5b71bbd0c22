"""Tables in text files: a sample shows encoding, delimiter and header, and the rows are read as text."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from polytrain.columns.forms import DEFAULT_MISSING, find_form
from polytrain.tables.options import ReadOptions, TableError, option
from polytrain.tables.table_file import TableFile, make_table

__all__ = ["looks_like_header", "open_text"]

# Rows and lines of the sample that are parsed.
_SNIFF_ROWS, _SNIFF_LINES = 100, 1000
_MAX_LINE_CHARACTERS = 1 << 23
# Cells that are Python strings at the same time, before they become a frame.
_PART_CELLS = 1 << 17
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # after UTF-32, which begins alike
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[^0-9]*[0-9.]*,[0-9]+[^0-9]*")

_Row = tuple[int, list[str]]


def open_text(stream: Any, label: str, options: ReadOptions) -> TableFile:
    """Detect the layout of a text file, of which ``stream.start`` is a sample, or all if ``stream.is_whole``."""
    encoding, notes = _find_encoding(stream, options.encoding, label)
    sample = stream.start.decode(encoding, "replace")
    if not stream.is_whole:  # the last line may be cut
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample
    lines = list(itertools.islice(io.StringIO(sample, newline=""), _SNIFF_LINES))
    delimiter, n_skipped = _find_layout(lines, options.delimiter, notes)
    rows = _sample_rows(lines, delimiter, n_skipped, _SNIFF_ROWS)
    if 2 < len(rows) < _SNIFF_ROWS and (len(lines) == _SNIFF_LINES or not stream.is_whole):
        rows.pop()  # it may go on behind the sample
    if not rows:
        raise TableError(f"{label} holds no rows. Name a file with rows.")
    cells, names = [row for _, row in rows], None
    if options.header != "no" and (names := _find_names(cells, options.header == "yes")) is not None:
        n_skipped, rows = rows[0][0], rows[1:]  # the header may have several lines
    width = len(cells[0] if names is None else names)
    text = _TextRows(stream, label, encoding, delimiter, n_skipped, width)
    for row in rows:
        text.check_width(*row)
    return make_table(label, names, width, text.frames, notes, delimiter)


@dataclass(eq=False)
class _TextRows:
    """The rows of a text file after ``n_skipped`` lines, ``width`` cells each; ``stream`` is read once."""

    stream: Any
    label: str
    encoding: str
    delimiter: str
    n_skipped: int
    width: int

    def frames(self, n_rows: int | None) -> Iterator[Any]:
        """Yield frames of text, of at most ``n_rows`` rows each, or one of all rows; their index holds the lines."""
        from pandas import DataFrame, concat

        rows, size = self._rows(), n_rows or 1 + _PART_CELLS // self.width
        parts = iter(lambda: list(itertools.islice(rows, size)), [])
        frames = (DataFrame([row for _, row in part], [line for line, _ in part], dtype="str") for part in parts)
        if n_rows is not None:
            yield from frames
        elif whole := list(frames):
            yield concat(whole)

    def check_width(self, line: int, row: list[str]) -> None:
        """Refuse a row with too many or too few cells, which pandas would fill with gaps."""
        if len(row) != self.width:
            raise TableError(
                f"{self.label}, line {line}: {len(row)} cells, but {self.width} in the first row. Fix the line, or "
                f"name the separator of the cells ({option('delimiter')})."
            )

    def _rows(self) -> Iterator[_Row]:
        end = self.n_skipped
        try:
            for line, row in _read_rows(itertools.islice(self._lines(), end, None), self.delimiter, end, strict=True):
                if row == [""] and self.width > 1:  # a line of spaces
                    continue
                self.check_width(line, row)
                yield line, row
                end = line
        except csv.Error as error:  # a cell of more than 128 KiB, or a quote that is not closed
            raise TableError(
                f"{self.label}, line {end + 1}: a cell begins here that cannot be read: {error}. Close the quote before"
                " it, or shorten the text."
            ) from None

    def _lines(self) -> Iterator[str]:
        text = io.TextIOWrapper(io.BufferedReader(self.stream), self.encoding, newline="")
        number = 0
        try:
            for number, line in enumerate(iter(partial(text.readline, _MAX_LINE_CHARACTERS), ""), start=1):
                if len(line) == _MAX_LINE_CHARACTERS:
                    raise TableError(
                        f"{self.label}, line {number}: the line has more than {_MAX_LINE_CHARACTERS} characters. Check "
                        "that the file is a table."
                    )
                yield line
        except UnicodeDecodeError as error:  # of some lines that were to be decoded at once
            number, byte = number + len(error.object[: error.start + 1].splitlines()), error.object[error.start]
            raise TableError(
                f"{self.label}, line {number}: byte 0x{byte:02x} is not a character in the encoding "
                f"{self.encoding}. Name another encoding, such as {option('encoding', 'cp1252')}, or fix the line."
            ) from None


def _read_rows(lines: Iterable[str], delimiter: str, n_skipped: int, strict: bool = False) -> Iterator[_Row]:
    """Yield the line on which each row ends, and its cells; blank lines are skipped."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)
    return ((n_skipped + reader.line_num, row) for row in reader if row)


def _sample_rows(lines: list[str], delimiter: str, n_skipped: int, n_rows: int) -> list[_Row]:
    """Return the first rows, with stripped cells."""
    rows = []
    with contextlib.suppress(csv.Error):  # a cell of more than 128 KiB, which is reported when it is read
        for line, row in _read_rows(lines[n_skipped:], delimiter, n_skipped):
            if (cells := [cell.strip() for cell in row]) != [""]:
                rows.append((line, cells))
            if len(rows) == n_rows:
                break
    return rows


# --- the layout, from a sample ---


def _find_encoding(stream: Any, encoding: str | None, label: str) -> tuple[str, list[str]]:
    """Return the encoding of a text file, and notes about it."""
    start = stream.start
    by_mark = next((kind for mark, kind in _BOMS.items() if start.startswith(mark)), None)
    if encoding is not None:
        try:
            is_utf8 = codecs.lookup(encoding).name == "utf-8"
            b"a".decode(encoding, errors="ignore")
        except (LookupError, UnicodeError, TypeError, ValueError):
            raise TableError(
                f"there is no encoding {encoding!r:.60}. Name one that Python knows, such as "
                f"{option('encoding', 'cp1252')} or {option('encoding', 'utf-16')}."
            ) from None
        return ("utf-8-sig" if is_utf8 and by_mark == "utf-8-sig" else encoding), []
    if by_mark is not None:
        return by_mark, [] if by_mark == "utf-8-sig" else [f"read as {by_mark.upper()}"]
    if b"\0" in start:
        raise TableError(
            f"{label} is a binary file, not a table. Supported are CSV, TSV, JSON lines, Parquet, Feather, Excel, .npy "
            "and .npz; convert others to CSV, for instance with pandas. If it is text, name its encoding, such as "
            f"{option('encoding', 'utf-16-le')}."
        )
    for kind, note in (("utf-8", []), ("cp1252", ["read as Windows-1252 since it is not UTF-8"])):
        with contextlib.suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder(kind)().decode(start, final=stream.is_whole)
            return kind, note
    return "latin-1", ["read as Latin-1 since it is not UTF-8"]  # which has a character for every byte


def _find_layout(lines: list[str], delimiter: str | None, notes: list[str]) -> tuple[str, int]:
    """Return the delimiter and the number of lines before the table; add notes."""
    n_skipped = n_comments = 0
    if lines and (said := _SEPARATOR.fullmatch(lines[0])):
        n_skipped, delimiter = 1, delimiter or said[1]
        notes.append(f"as the first line says, cells are separated by {_DELIMITERS.get(said[1], repr(said[1]))}")
    for number, line in enumerate(lines[n_skipped:], start=n_skipped):
        if line.lstrip().startswith("#"):
            n_skipped, n_comments = number + 1, n_comments + 1
        elif line.strip():
            break
    if n_comments:
        notes.append(f"comment lines before the table were skipped: {n_comments}")
    if delimiter is None:
        delimiter = _find_delimiter(lines[n_skipped:])
        if delimiter != ",":
            notes.append(f"cells are separated by {_DELIMITERS[delimiter]}")
    return delimiter, n_skipped


def _find_delimiter(lines: list[str]) -> str:
    """Return the delimiter that cuts all rows into the same number of cells without other delimiters in them."""
    scores: dict[str, tuple[float, int]] = {}
    for delimiter in _DELIMITERS:
        if delimiter == " " and scores:
            break
        first, *below = [row for _, row in _sample_rows(lines, delimiter, 0, 30)] or [[]]
        below = below or [first]
        widths = {len(row) for row in below}
        # The first row may lack a name for row names, or have one delimiter more at its end.
        if len(widths) != 1 or min(len(first), *widths) < 2 or abs(len(first) - max(widths)) > 1:
            continue
        cells = [cell for row in below for cell in row]
        whole = sum(not _has_other(cell, delimiter) for cell in cells) / len(cells)
        scores[delimiter] = round(whole, 3), len(first)
    if scores:
        return max(scores, key=lambda delimiter: scores[delimiter])  # the first of equals
    # Rows differ. The first line decides, and the error names the line that differs.
    outside = "".join(next((line for line in lines if line.strip()), "").split('"')[::2])
    return max([*_DELIMITERS][:-1], key=outside.count)  # the first of equals


def _has_other(cell: str, delimiter: str) -> bool:
    if delimiter == " ":
        return False
    others = [other for other in [*_DELIMITERS][:-1] if other != delimiter and other in cell]
    return bool(others) and not (others == [","] and _DECIMAL_COMMA.fullmatch(cell))


def _find_names(cells: list[list[str]], has_header: bool) -> list[str] | None:
    """Return the first row as names of the columns below it, or None if it does not look like names."""
    first, *below = cells
    names = [first[0].removeprefix("\ufeff"), *first[1:]]
    extra = len(first) - len(below[0]) if below else 0
    if not has_header and not looks_like_header(names):
        return None
    if extra == -1 and (len(first) > 1 or has_header):
        # R leaves out the name of the row names, others that of an empty column at the end. A single name more likely
        # means that cells are separated by something else.
        return ["", *names] if any(row[-1] for row in below) else [*names, ""]
    return names[:-1] if extra == 1 and not names[-1] else names


def looks_like_header(first: Sequence[str]) -> bool:
    """Whether a first row holds names: text, and neither numbers nor dates nor missing values.

    >>> looks_like_header(["", "price", "price 2"]), looks_like_header(["red", "2.5"]), looks_like_header(["a", "?"])
    (True, False, False)
    """
    names = [cell for cell in first if cell]
    return bool(names) and all(name not in DEFAULT_MISSING and find_form([name]).kind == "text" for name in names)
