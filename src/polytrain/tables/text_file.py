"""Tables in text files: a sample shows encoding, delimiter and header, and pandas reads the rows as text."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from polytrain.columns.forms import DEFAULT_MISSING, find_form, is_number
from polytrain.tables.options import Option, TableError
from polytrain.texts import listed

__all__ = ["TextFile", "check_width", "clean_names", "looks_like_header", "open_text"]

_MAX_COLUMNS = 100_000
# What of the sample is parsed.
_SNIFF_ROWS, _SNIFF_LINES = 100, 1000
_READ = "Supported are CSV, TSV, JSON lines, Parquet, Feather, Excel, .npy and .npz"
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # after UTF-32, which begins alike
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_INDEX = re.compile(r"|Unnamed: 0(_level_0)?|__index_level_[0-9]+__")
_DECIMAL_COMMA = re.compile(r"[^0-9]*[0-9.]*,[0-9]+[^0-9]*")


@dataclass(eq=False)
class TextFile:
    """The rows of a text file: ``width`` cells each, after ``n_skipped`` lines.

    ``stream`` is read once; ``reopen`` opens the file again to find the lines of rows.
    """

    stream: Any
    label: str
    encoding: str
    delimiter: str
    n_skipped: int
    width: int
    reopen: Callable[[ExitStack], Any]

    def frames(self, n_rows: int | None) -> Iterator[Any]:
        """Yield frames of text, of at most ``n_rows`` rows each."""
        import pandas

        again, n_seen, start = self._rows_again(), 0, 0
        text = io.TextIOWrapper(io.BufferedReader(self.stream), self.encoding, newline="")
        try:
            for _ in range(self.n_skipped):
                text.readline()
            reader = pandas.read_csv(
                text, sep=self.delimiter, header=None, dtype=str, na_filter=False, skipinitialspace=True,
                chunksize=n_rows or sys.maxsize, index_col=False,
            )  # fmt: skip
            for frame in reader:
                # pandas fills short rows: those that end with an empty cell are looked at once more.
                for row in (np.flatnonzero(frame.iloc[:, -1] == "") + start).tolist():
                    line, cells = next(itertools.islice(again, row - n_seen, None), (0, None))
                    n_seen = row + 1
                    if cells is not None and len(cells) < self.width:
                        raise self.wrong_width(line, cells)
                start += len(frame)
                yield frame
        except pandas.errors.EmptyDataError:
            return
        except (pandas.errors.ParserError, UnicodeError) as error:
            raise self._explain(error) from None

    def line_of(self, row: int) -> int | None:
        """Return the line on which a row ends."""
        return next((line for line, _ in itertools.islice(self._rows_again(), row, None)), None)

    def wrong_width(self, line: int, row: list[str]) -> TableError:
        """Return the error about a row with too many or too few cells."""
        return TableError(
            f"{self.label}, line {line}: {len(row)} cells, but {self.width} in the first row. Fix the line, or name "
            "what separates the cells (",
            Option("delimiter"),
            ").",
        )

    def _rows_again(self) -> Iterator[tuple[int, list[str]]]:
        """Read the rows once more, slowly, with their lines."""
        with ExitStack() as opened:
            source = io.BufferedReader(self.reopen(opened))
            text = io.TextIOWrapper(source, self.encoding, errors="replace", newline="")
            yield from _read_rows(text, self.delimiter, self.n_skipped)

    def _explain(self, error: Exception) -> TableError:
        """Name the line of what pandas stumbled over."""
        if isinstance(error, UnicodeDecodeError):
            line = self._undecodable_line()
            where = self.label if line is None else f"{self.label}, line {line}"
            return TableError(
                f"{where}: byte 0x{error.object[error.start]:02x} makes no character in the encoding {self.encoding}. "
                "Name another, such as ",
                Option("encoding", "cp1252"),
                ", or fix the line.",
            )
        if "EOF inside string" in str(error):
            lines = [self.n_skipped, *(line for line, _ in self._rows_again())]
            return TableError(
                f"{self.label}, line {lines[-2] + 1}: a quote is opened here and not closed before the end of the file."
                " Close it."
            )
        for line, row in self._rows_again():
            if len(row) != self.width:
                return self.wrong_width(line, row)
        what = " ".join(str(error).split()).rstrip(".")
        return TableError(f"{self.label} cannot be read: {what:.200}. Fix the line, or check that this is a table.")

    def _undecodable_line(self) -> int | None:
        if "16" in self.encoding or "32" in self.encoding:
            return None
        with ExitStack() as opened:
            for number, line in enumerate(io.BufferedReader(self.reopen(opened)), start=1):
                try:
                    line.decode(self.encoding)
                except UnicodeDecodeError:
                    return number
        return None


def open_text(
    stream: Any, label: str, options: Any, reopen: Callable[[ExitStack], Any]
) -> tuple[TextFile, list[str] | None, list[int], list[str]]:
    """Find out how a text file is laid out; return its rows, names or None, the columns that are kept, and notes.

    ``stream.start`` is a sample of the bytes, or all of them if ``stream.is_whole``.
    """
    encoding, notes = _find_encoding(stream, options.encoding, label)
    sample = stream.start.decode(encoding, "replace")
    if not stream.is_whole:  # the last line may be cut
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample
    lines = list(itertools.islice(io.StringIO(sample, newline=""), _SNIFF_LINES))
    delimiter, n_skipped, comment, found = _find_layout(lines, options.delimiter)
    rows = list(itertools.islice(_read_rows(lines, delimiter, n_skipped), _SNIFF_ROWS))
    if 2 < len(rows) < _SNIFF_ROWS and (len(lines) == _SNIFF_LINES or not stream.is_whole):
        rows.pop()  # it may go on behind the sample
    if not rows:
        raise TableError(f"{label} holds no rows. Name a file with rows.")
    notes += found
    names, below = _find_names(rows, comment, delimiter, options.header, notes)
    n_skipped = rows[0][0] if len(below) < len(rows) else n_skipped  # the header may have several lines
    width = len(below[0][1]) if below else len(names or ())
    kept = list(range(width))
    if names is not None:
        extra = len(names) - width
        if extra == -1:  # R leaves out the name of the row names, others that of an empty column at the end
            names = ["", *names] if any(row[-1] for _, row in below) else [*names, ""]
        elif extra == 1 and not names[-1]:
            names = names[:-1]
            notes.append("the delimiter at the end of the header was left out")
        elif extra:
            width = len(names)  # the first row below it is told that it differs
        names, kept, found = clean_names(names, options.keep_index)
        notes += found
    check_width(width, label)
    text = TextFile(stream, label, encoding, delimiter, n_skipped, width, reopen)
    for line, row in below:
        if len(row) != width:
            raise text.wrong_width(line, row)
    return text, names, kept, notes


def _find_encoding(stream: Any, encoding: str | None, label: str) -> tuple[str, list[str]]:
    """Return the encoding of a text file, and what is to be told about it."""
    start = stream.start
    by_mark = next((kind for mark, kind in _BOMS.items() if start.startswith(mark)), None)
    if encoding is not None:
        try:
            is_utf8 = codecs.lookup(encoding).name == "utf-8"
            b"a".decode(encoding, errors="ignore")
        except (LookupError, UnicodeError, TypeError, ValueError):
            known = Option("encoding", "cp1252"), " or ", Option("encoding", "utf-16")
            what = f"there is no encoding {encoding!r:.60}. Name one that Python knows, such as "
            raise TableError(what, *known, ".") from None
        return ("utf-8-sig" if is_utf8 and by_mark == "utf-8-sig" else encoding), []
    if by_mark is not None:
        return by_mark, [] if by_mark == "utf-8-sig" else [f"read as {by_mark.upper()}"]
    if b"\0" in start:
        raise TableError(
            f"{label} is a binary file, not a table. {_READ}; convert others to CSV, for instance with pandas. If it "
            "is text, name its encoding, such as ",
            Option("encoding", "utf-16-le"),
            ".",
        )
    for kind, note in (("utf-8", []), ("cp1252", ["read as Windows-1252 since it is not UTF-8"])):
        try:
            codecs.getincrementaldecoder(kind)().decode(start, final=stream.is_whole)
        except UnicodeDecodeError:
            continue
        return kind, note
    return "latin-1", ["read as Latin-1 since it is not UTF-8"]  # which has a character for every byte


def check_width(n_columns: int, label: str) -> None:
    """Refuse a table that no model is learned from, before its cells take memory."""
    if n_columns > _MAX_COLUMNS:
        raise TableError(
            f"{label} has {n_columns} columns, and at most {_MAX_COLUMNS} are read. Leave some out, or check that rows "
            "and columns are not exchanged."
        )


def _read_rows(lines: Any, delimiter: str, n_skipped: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row ends, and its stripped cells; blank lines are skipped."""
    reader = csv.reader(itertools.islice(lines, n_skipped, None), delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield n_skipped + reader.line_num, [cell.strip() for cell in row]
    except csv.Error:  # a cell of more than 128 KiB: lines of later rows are not told
        return


def _find_layout(lines: list[str], delimiter: str | None) -> tuple[str, int, str | None, list[str]]:
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
        rows = [row for _, row in itertools.islice(_read_rows(lines, delimiter, 0), 30)]
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


def _find_names(
    rows: list[tuple[int, list[str]]], comment: str | None, delimiter: str, header: str, notes: list[str]
) -> tuple[list[str] | None, list[tuple[int, list[str]]]]:
    """Return the names, if there are any, and the rows below them."""
    cells = [row for _, row in rows]
    if header == "no":
        return None, rows
    if comment is not None and len({*map(len, cells)}) == 1 and not looks_like_header(cells):
        hidden = next((row for _, row in _read_rows([comment], delimiter, 0)), [])
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


# --- names of columns ---


def clean_names(cells: Sequence[str], keep_index: bool = False) -> tuple[list[str], list[int], list[str]]:
    """Return names that differ and are not empty, the columns that they belong to, and notes on what was changed.

    A first column without a name is an index; ``keep_index`` keeps it under the name "index".

    Examples
    --------
    >>> from polytrain.tables.text_file import clean_names
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
    """Whether the first row holds names, not values.

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
    steps = {after - before for before, after in itertools.pairwise(values)}
    return all(map(_is_year, numbers)) or (len(values) > 2 and steps == {1})


def _is_year(cell: str) -> bool:
    return len(cell) == 4 and cell.isdecimal() and 1800 <= int(cell) <= 2200
