"""Tables in text files: encoding, delimiter and header are found from a sample, and pandas reads the rows as text."""

from __future__ import annotations

import codecs
import io
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from polytrain.tables.errors import Option, TableError
from polytrain.tables.headers import clean_names
from polytrain.tables.text_layout import find_layout, find_names, read_rows

__all__ = ["TextFile", "check_width", "open_text"]

_MAX_COLUMNS = 100_000
# What of the sample is parsed.
_SNIFF_ROWS, _SNIFF_LINES = 100, 1000
_READ = "Supported are CSV, TSV, JSON lines, Parquet, Feather, Excel, .npy and .npz"
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # after UTF-32, which begins alike


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
            yield from read_rows(text, self.delimiter, self.n_skipped)

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
    delimiter, n_skipped, comment, found = find_layout(lines, options.delimiter)
    rows = list(itertools.islice(read_rows(lines, delimiter, n_skipped), _SNIFF_ROWS))
    if 2 < len(rows) < _SNIFF_ROWS and (len(lines) == _SNIFF_LINES or not stream.is_whole):
        rows.pop()  # it may go on behind the sample
    if not rows:
        raise TableError(f"{label} holds no rows. Name a file with rows.")
    notes += found
    names, below = find_names(rows, comment, delimiter, options.header, notes)
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
