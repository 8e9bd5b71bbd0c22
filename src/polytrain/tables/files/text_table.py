"""Tables in text files: comma-separated values and their kin.

The file is read in chunks of whole lines. Where pyarrow is installed it parses each chunk that it understands as the
csv module does; all others, and all of them where it is missing, go through the csv module, which also finds the line
of a mistake. So a file is read once, in bounded memory, and can be a pipe.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import PurePath

from polytrain.tables.errors import Option, TableError
from polytrain.tables.files import arrow_text
from polytrain.tables.files.cells import TextColumn
from polytrain.tables.files.chunks import MAX_LINE_BYTES, Chunks, decode, line_is_too_long
from polytrain.tables.files.headers import clean_names, looks_like_header
from polytrain.tables.files.streams import SNIFF_BYTES, TextStream, count_lines
from polytrain.tables.files.table import BLOCK_ROWS, Block, ReadOptions, Table, check_width
from polytrain.tables.files.text_layout import Layout, find_layout, read_cells

__all__ = ["CHUNK_BYTES", "TextTable"]

#: Bytes that are parsed at a time.
CHUNK_BYTES = 1 << 20
# So many rows are looked at before it is decided whether the first one is a header.
_LOOK_AHEAD = 100
# Lines of wide tables may be long, but some of them are needed.
_SNIFF_LINES, _MAX_SNIFF_BYTES = 30, MAX_LINE_BYTES

Row = tuple[int, list[str]]


class TextTable(Table):
    """A table in text.

    Parameters
    ----------
    stream : TextStream
        The file; closed with the table.
    label : str
        Name for messages.
    name : str
        The file's name, whose ending may say that tabs separate cells.
    options : ReadOptions
        What the user says about it.
    fast : bool, default=True
        Whether pyarrow may parse, where it is installed.
    """

    def __init__(self, stream: TextStream, label: str, name: str, options: ReadOptions, *, fast: bool = True) -> None:
        self.label, self.notes = label, []
        self._stream = stream
        self._chunks = Chunks(stream, label)
        self._line = 0
        first = self._first_chunk()
        text, _ = decode(first, label, 0)  # a mistake is told when its line is read
        layout = find_layout(text, options.delimiter, PurePath(name).suffix.lower() in (".tsv", ".tab"))
        self.delimiter = layout.delimiter
        self._rows = self._raw_rows(first, layout.skip)
        ahead = list(itertools.islice(self._rows, _LOOK_AHEAD))
        if not ahead:
            raise TableError(f"{label} holds no rows. Name a file with rows.")
        check_width(len(ahead[0][1]), label)
        self.notes += layout.notes
        self._ahead = self._take_header(ahead, layout, options)
        self.n_columns = len(self._kept)
        self._fast = fast and arrow_text.understands(self.delimiter, self._width)
        for row in self._ahead:
            self._checked(row)

    def _first_chunk(self) -> bytes:
        """Return enough lines to tell how the file is laid out, however long they are."""
        content = self._chunks.next(SNIFF_BYTES)
        while count_lines(content) < _SNIFF_LINES and len(content) < _MAX_SNIFF_BYTES:
            more = self._chunks.next(SNIFF_BYTES)
            if not more:
                break
            content += more
        return content

    def close(self) -> None:
        """Close the file; standard input stays open."""
        self._stream.close()

    def _take_header(self, ahead: list[Row], layout: Layout, options: ReadOptions) -> list[Row]:
        """Settle names, width and the columns that are kept, and return the rows below the header."""
        cells = [row for _, row in ahead]
        names, rows = None, ahead
        if options.header != "no":
            hidden = _hidden_names(cells, layout)
            if hidden is not None:
                names = hidden
                self.notes.append("the names are those of the last comment")
            elif options.header == "yes" or _begins_with_names(cells):
                names, rows = cells[0], ahead[1:]
        below = [row for _, row in rows]
        self._width = len(below[0]) if below else len(cells[0])
        self._empty_end = bool(below) and self._width > 1 and not any(row[-1] for row in below)
        if names is None:
            self.names, self._kept = None, list(range(self._width - self._empty_end))
        else:
            self._use_names(names, options.keep_index)
        if self._empty_end:
            self.notes.append("the empty column at the end of all lines was left out")
        return rows

    def _use_names(self, names: list[str], keep_index: bool) -> None:
        """Settle which column has which name."""
        extra = len(names) - self._width
        self._empty_end &= extra == -1 or (extra == 0 and not names[-1])
        if extra == 1 and not names[-1]:
            names = names[:-1]
            self.notes.append("the delimiter at the end of the header was left out")
        elif extra == -1 and not self._empty_end:
            names = ["", *names]  # R leaves out the name of the row names
        elif extra not in (-1, 0):
            self._width = len(names)  # the first row below it is told that it differs
        names = names[: self._width - self._empty_end]
        header = clean_names(names, keep_index)
        self.names, self._kept = header.names, header.kept
        self.notes += header.notes

    def _raw_rows(self, chunk: bytes, skip: int = 0) -> Iterator[Row]:
        """Yield rows of stripped cells with their lines; a row that goes on in the next chunk takes that, too."""
        row_lines: list[str] = []  # of the row that is being read
        start = self._line + skip
        is_open = False

        def lines(chunk: bytes, n_lines: int, skip: int) -> Iterator[str]:
            nonlocal is_open
            n_characters = 0
            while chunk:
                text, error = decode(chunk, self.label, n_lines)
                for line in itertools.islice(io.StringIO(text, newline=""), skip, None):
                    n_characters = len(line) + (n_characters if row_lines else 0)
                    if n_characters > MAX_LINE_BYTES:
                        raise line_is_too_long(self.label)
                    row_lines.append(line)
                    yield line
                if error:
                    raise error
                if not row_lines:
                    return
                n_lines += count_lines(chunk)
                chunk, skip = self._chunks.next(CHUNK_BYTES), 0
            is_open = True

        reader = csv.reader(lines(chunk, self._line, skip), delimiter=self.delimiter or ",", skipinitialspace=True)
        try:
            for row in reader:
                if is_open:
                    raise self._open_quote(row[-1], start + reader.line_num, "before the end of the file")
                row_lines.clear()
                if len(row) > 1 or (row and row[0].strip()):
                    yield start + reader.line_num, [cell.strip() for cell in row]
        except csv.Error as error:
            line = start + reader.line_num
            if len(row_lines) > 1:
                cell = next(csv.reader(row_lines[:-1], reader.dialect))[-1]
                raise self._open_quote(cell, line - 1, f"within {csv.field_size_limit()} characters") from None
            raise TableError(
                f"{self.label}, line {line}: {error}. Mend the line, or check that this is a table."
            ) from None
        self._line = start + reader.line_num

    def _open_quote(self, cell: str, line: int, where: str) -> TableError:
        """Return the error about a quote whose text so far, up to this line, is ``cell``."""
        line -= count_lines(cell.encode()) - cell.endswith(("\r", "\n"))
        return TableError(
            f"{self.label}, line {line}: a quote is opened here and not closed {where}. Close it, or mend the line."
        )

    def _checked(self, numbered: Row) -> Row:
        """Return a row, unless it has too many or too few cells."""
        line, row = numbered
        if len(row) != self._width:
            raise TableError(
                f"{self.label}, line {line}: {len(row)} cells, but {self._width} in the first row. Mend the line, or "
                "name what separates the cells (",
                Option("delimiter"),
                ").",
            )
        if self._empty_end and row[-1]:
            raise TableError(
                f"{self.label}, line {line}: {row[-1]!r:.60} stands in the last column, which has no name and is empty "
                "above. Name the column in the header, or mend the line."
            )
        return numbered

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, at most so many at a time; only once."""
        yield from self._slow_blocks(itertools.chain(self._ahead, self._rows), n_rows)
        self._ahead = []
        while chunk := self._chunks.next(CHUNK_BYTES):
            parsed = None
            if self._fast:
                parsed = arrow_text.parse(chunk, self.delimiter or ",", self._width, self._line)
            if parsed is None or (self._empty_end and not parsed.is_empty(self._width - 1)):
                yield from self._slow_blocks(self._raw_rows(chunk), n_rows)
                continue
            self._chunks.give_back(chunk[parsed.n_bytes :])
            self._line += parsed.n_lines
            for start in range(0, len(parsed.places), n_rows):
                yield Block(parsed.columns(self._kept, start, n_rows), parsed.places[start : start + n_rows])

    def _slow_blocks(self, rows: Iterator[Row], n_rows: int) -> Iterator[Block]:
        checked = map(self._checked, rows)
        while part := list(itertools.islice(checked, n_rows)):
            columns = [TextColumn([row[k] for _, row in part]) for k in self._kept]
            yield Block(columns, [line for line, _ in part])


def _begins_with_names(cells: list[list[str]]) -> bool:
    """Whether the first row holds names: as many as there are columns, one fewer, or an empty one more."""
    first, below = cells[0], cells[1:]
    widths = {len(row) for row in below}
    if len(widths) != 1:
        # Rows differ. One of them is wrong, which is told when it is read.
        below = [row for row in below if len(row) == len(first)]
        return looks_like_header([first, *below])
    extra = len(first) - widths.pop()
    if extra == -1 and len(first) > 1:  # a single name more likely means that cells are separated by something else
        if not any(row[-1] for row in below):
            return looks_like_header([first, *(row[:-1] for row in below)])
        return looks_like_header([["", *first], *below])
    if extra == 1 and not first[-1]:
        return looks_like_header([first[:-1], *below])
    return extra == 0 and looks_like_header(cells)


def _hidden_names(cells: list[list[str]], layout: Layout) -> list[str] | None:
    """Return the cells of the last comment if they are the names of what follows, as NumPy writes them."""
    if layout.hidden_header is None or len({len(row) for row in cells}) != 1 or looks_like_header(cells):
        return None
    hidden = next(read_cells([layout.hidden_header], layout.delimiter), [])
    fits = len(hidden) == len(cells[0]) > 1 and looks_like_header([hidden, *cells])
    return hidden if fits else None
