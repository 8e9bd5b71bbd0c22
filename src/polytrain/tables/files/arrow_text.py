"""Chunks of text, parsed by pyarrow where it does what the csv module would do."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.tables.files.cells import CellColumn

__all__ = ["ParsedChunk", "parse", "understands"]

_QUOTE, _LF, _CR = 0x22, 0x0A, 0x0D
# The csv module refuses longer cells, so that longer lines are left to it.
_MAX_LINE_BYTES = 1 << 17


@cache
def _is_installed() -> bool:
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


def understands(delimiter: str | None, width: int) -> bool:
    """Whether pyarrow is there and may parse such a text.

    A line of spaces is no row, which it does not know in tables of one column; and several spaces may be one delimiter.
    """
    return _is_installed() and width > 1 and delimiter is not None and delimiter.isascii() and delimiter != " "


@dataclass(frozen=True)
class ParsedChunk:
    """Rows of a chunk.

    Attributes
    ----------
    places : sequence of int
        Lines on which the rows end.
    n_bytes : int
        Bytes of the chunk that they take; the rest is a row that goes on.
    n_lines : int
        Lines that they take.
    """

    places: Sequence[int]
    n_bytes: int
    n_lines: int
    _batch: Any

    def columns(self, kept: Sequence[int], start: int, n_rows: int) -> list[CellColumn]:
        """Return some rows of some columns."""
        from polytrain.tables.files.arrow_cells import ArrowTextColumn

        return [ArrowTextColumn(self._batch[k].slice(start, n_rows)) for k in kept]

    def is_empty(self, column: int) -> bool:
        """Whether all cells of a column are empty."""
        import pyarrow.compute as pc

        return not pc.any(pc.not_equal(self._batch[column], "")).as_py()


def parse(chunk: bytes, delimiter: str, width: int, n_lines: int) -> ParsedChunk | None:
    """Parse the rows of a chunk.

    Parameters
    ----------
    chunk : bytes
        Whole lines of UTF-8.
    delimiter : str
        What separates cells.
    width : int
        Cells of each row.
    n_lines : int
        Lines before the chunk.

    Returns
    -------
    ParsedChunk or None
        None where the csv module might see other cells, or a mistake.
    """
    if b"\0" in chunk or (b"\r" in chunk and chunk.count(b"\r") != chunk.count(b"\r\n")):
        return None
    if chunk.startswith(codecs.BOM_UTF8):  # pyarrow would take it away, wherever the chunk begins
        return None
    ends = None
    if b'"' in chunk:
        ends = _row_ends(chunk, delimiter)
        if ends is None:
            return None
        chunk = chunk[: ends.n_bytes]
    columns = _read(chunk, delimiter, width, ends is not None)
    if columns is None:
        return None
    n_rows = len(columns[0])
    count = int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == _LF)) + (not chunk.endswith(b"\n"))
    places: Sequence[int] = range(n_lines + 1, n_lines + count + 1)
    if n_rows != count or ends is not None or _has_long_line(chunk):
        ends = ends or _row_ends(chunk, delimiter)
        if ends is None or len(ends.lines) != n_rows or ends.longest >= _MAX_LINE_BYTES:
            return None
        if n_rows != count:
            places = (ends.lines + n_lines).tolist()
    return ParsedChunk(places, len(chunk), count, columns)


def _has_long_line(chunk: bytes) -> bool:
    """Whether a line may be too long: every one that is leaves half of its length without an end."""
    half = _MAX_LINE_BYTES // 2
    return any(chunk.find(b"\n", start, start + half) < 0 for start in range(0, len(chunk) - half, half))


def _read(chunk: bytes, delimiter: str, width: int, has_quotes: bool) -> list[Any] | None:
    """Return stripped columns, None where pyarrow refuses."""
    import pyarrow as pa
    from pyarrow import csv

    from polytrain.tables.files.arrow_cells import trim

    names = [str(k) for k in range(width)]
    try:
        table = csv.read_csv(
            pa.BufferReader(chunk),
            csv.ReadOptions(use_threads=False, block_size=len(chunk) + 1, column_names=names),
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=has_quotes),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, null_values=[]
            ),
        )
    except pa.ArrowInvalid:
        return None
    if not table.num_rows:
        return None
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns]
    return columns if not has_quotes and _is_tidy(chunk, delimiter) else [trim(column) for column in columns]


def _is_tidy(chunk: bytes, delimiter: str) -> bool:
    """Whether surely no cell begins or ends with a space of any kind, in a chunk without quotes."""
    if not chunk.isascii():
        return False
    content = np.frombuffer(chunk, dtype=np.uint8)
    ends = (content == ord(delimiter)) | (content == _LF) | (content == _CR)
    spaces = (content <= 0x20) & ~ends
    if not spaces.any():
        return True
    beside = bool((spaces[1:] & ends[:-1]).any() or (spaces[:-1] & ends[1:]).any())
    return not (beside or spaces[0] or spaces[-1])


@dataclass(frozen=True)
class _RowEnds:
    """The line, from 1, on which each row ends; the length of the longest; and the bytes of all whole rows."""

    lines: NDArray
    longest: int
    n_bytes: int


def _row_ends(chunk: bytes, delimiter: str) -> _RowEnds | None:
    """Find the ends of rows; None if quotes stand where the csv module takes them as they are, or reads on behind."""
    content = np.frombuffer(chunk, dtype=np.uint8)
    quotes = np.flatnonzero(content == _QUOTE)
    feeds = np.flatnonzero(content == _LF)
    if not chunk.endswith(b"\n"):
        feeds = np.append(feeds, len(content))
    within = np.searchsorted(quotes, feeds) % 2 == 1
    outside = np.flatnonzero(~within)
    if not len(outside):
        return None
    n_bytes = min(int(feeds[outside[-1]]) + 1, len(content))
    if not _are_simple(content, quotes[quotes < n_bytes], ord(delimiter)):
        return None
    ends = feeds[outside]
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    lengths -= content[np.maximum(ends - 1, 0)] == _CR  # of an empty line, too
    filled = lengths > 0
    if not filled.any():
        return None
    return _RowEnds(outside[filled] + 1, int(lengths.max()), n_bytes)


def _are_simple(content: NDArray, quotes: NDArray, delimiter: int) -> bool:
    """Whether quotes open at the start of a cell, close at its end, or are doubled within."""
    opening, closing = quotes[0::2], quotes[1::2]
    if len(opening) != len(closing):
        return False
    framed = np.concatenate([[_LF], content, [_LF]])
    before, after = framed[opening], framed[closing + 2]
    doubled = np.zeros(len(opening) + 1, dtype=bool)
    doubled[1:-1] = opening[1:] == closing[:-1] + 1
    opens = (before == delimiter) | (before == _LF) | doubled[:-1]
    closes = (after == delimiter) | (after == _LF) | (after == _CR) | doubled[1:]
    return bool(opens.all() and closes.all())
