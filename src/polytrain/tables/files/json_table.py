"""Tables of JSON objects: one in each line, or all in one array.

The objects are read twice: once for the keys that there are and what kinds of values they have, and once for the rows.
What was read is kept for that, in memory or in a temporary file.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from polytrain.tables.errors import TableError
from polytrain.tables.files.cells import CellColumn, NumberColumn, TextColumn, TruthColumn, shortest_text
from polytrain.tables.files.chunks import Chunks, decode
from polytrain.tables.files.headers import clean_names
from polytrain.tables.files.streams import TextStream, count_lines
from polytrain.tables.files.table import BLOCK_ROWS, Block, ReadOptions, Table

__all__ = ["JsonTable"]

_CHUNK_BYTES = 1 << 18
_MEMORY_BYTES = 1 << 26
_REMEDY = (
    "Save it as CSV or as JSON lines, one object of plain values in each line, such as with pandas: "
    "frame.to_json('table.jsonl', orient='records', lines=True)"
)
_INT64 = range(-(2**63), 2**63)


class JsonTable(Table):
    """JSON objects whose keys are the names of columns.

    Parameters
    ----------
    stream : TextStream
        The file; closed with the table.
    label : str
        Name for messages.
    options : ReadOptions
        What the user says about it.
    """

    def __init__(self, stream: TextStream, label: str, options: ReadOptions) -> None:
        self.label, self._stream = label, stream
        self._kept_text = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 - the table closes it
        try:
            kinds = self._find_kinds()
        except BaseException:
            self._kept_text.close()
            raise
        if not kinds:
            self._kept_text.close()
            raise TableError(f"{label} holds no rows. Name a file with rows.")
        header = clean_names([key.strip() for key in kinds], options.keep_index)
        self.names, self.notes = header.names, header.notes
        self._keys = [list(kinds)[k] for k in header.kept]
        self._kinds = [kinds[key] for key in self._keys]
        self.n_columns = len(self._keys)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        self._kept_text.close()
        self._stream.close()

    def _find_kinds(self) -> dict[str, set[str]]:
        """Keep the text, and return the kinds of values of each key, in the order of their appearance."""
        kinds: dict[str, set[str]] = {}
        for place, item in _items(_Copying(self._stream, self._kept_text), self.label):
            for key, value in item.items():
                kind = _kind(value)
                if kind == "nested":
                    what = "a list" if isinstance(value, list) else "an object"
                    raise TableError(f"{self.label}, {place[0]} {place[1]}: {key!r:.60} holds {what}. {_REMEDY}.")
                known = kinds.setdefault(key, set())
                if kind:
                    known.add(kind)
        return kinds

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, at most so many at a time; only once."""
        self._kept_text.seek(0)
        items = _items(self._kept_text, self.label)
        while part := list(itertools.islice(items, n_rows)):
            columns = [
                _column([item.get(key) for _, item in part], kinds)
                for key, kinds in zip(self._keys, self._kinds, strict=True)
            ]
            yield Block(columns, [number for (_, number), _ in part], part[0][0][0])


class _Copying:
    """A stream that keeps what is read of it."""

    def __init__(self, stream: TextStream, copy: Any) -> None:
        self._stream, self._copy = stream, copy

    def read(self, n_bytes: int) -> bytes:
        content = self._stream.read(n_bytes)
        self._copy.write(content)
        return content


Item = tuple[tuple[str, int], dict[str, Any]]


def _items(stream: Any, label: str) -> Iterator[Item]:
    """Yield the objects with their places: unit and number."""
    chunks = Chunks(stream, label)
    chunk = chunks.next(_CHUNK_BYTES)
    if chunk.lstrip()[:1] == b"[":
        yield from _array_items(chunks, chunk, label)
    else:
        yield from _line_items(chunks, chunk, label)


def _line_items(chunks: Chunks, chunk: bytes, label: str) -> Iterator[Item]:
    line = 0
    while chunk:
        text, error = decode(chunk, label, line)
        for number, content in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=line + 1):
            if content.strip():
                yield ("line", number), _load(content, f"{label}, line {number}", number == 1)
        if error:
            raise error
        line += count_lines(chunk)
        chunk = chunks.next(_CHUNK_BYTES)


def _load(content: str, where: str, is_first: bool) -> dict[str, Any]:
    try:
        item = json.loads(content)
        _check_text(item)
    except (ValueError, RecursionError) as error:
        is_cut = is_first and isinstance(error, json.JSONDecodeError) and error.pos >= len(content.rstrip())
        what = "a single JSON value over several lines" if is_cut else f"no JSON object: {_reason(error)}"
        raise TableError(f"{where}: here is {what}. {_REMEDY}.") from None
    if not isinstance(item, dict):
        raise TableError(f"{where}: here is {content.strip()!r:.60}, which is no JSON object. {_REMEDY}.")
    return item


def _array_items(chunks: Chunks, chunk: bytes, label: str) -> Iterator[Item]:
    decoder = json.JSONDecoder()
    line = number = 0

    def next_text(chunk: bytes) -> str:
        nonlocal line
        text, error = decode(chunk, label, line)
        if error:
            raise error
        line += count_lines(chunk)
        return text

    text = next_text(chunk)
    position = text.index("[") + 1
    while True:
        while position < len(text) and (text[position].isspace() or (text[position] == "," and number)):
            position += 1
        if text[position : position + 1] == "]":
            return
        try:
            item, end = decoder.raw_decode(text, position)
            _check_text(item)
        except (ValueError, RecursionError) as error:
            # What is cut off at the end of the chunk may go on in the next, which is as long as all that is there.
            more = b"" if len(text) - position > _MEMORY_BYTES else chunks.next(max(_CHUNK_BYTES, len(text) - position))
            if not more:
                raise TableError(
                    f"{label}, row {number}: here is no JSON object: {_reason(error)}. {_REMEDY}."
                ) from None
            text, position = text[position:] + next_text(more), 0
            continue
        if not isinstance(item, dict):
            raise TableError(f"{label}, row {number}: {item!r:.60} is no JSON object. {_REMEDY}.")
        yield ("row", number), item
        number, position = number + 1, end


def _reason(error: Exception) -> str:
    """What is wrong, without the place within the text, which is not that in the file."""
    return f"{error.msg if isinstance(error, json.JSONDecodeError) else error!s:.100}"


def _check_text(item: Any) -> None:
    """Refuse half a surrogate pair, which is no text and could not be written again."""
    if isinstance(item, dict):
        "".join([*item, *(value for value in item.values() if isinstance(value, str))]).encode()


def _kind(value: Any) -> str:
    """Return the kind of a value; empty if it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole" if value in _INT64 else "number"
    if isinstance(value, float):
        return "number"
    return "text" if isinstance(value, str) else "nested"


def _column(values: list[Any], kinds: set[str]) -> CellColumn:
    gone = np.array([not _kind(value) for value in values])
    if kinds == {"truth"}:
        return TruthColumn(np.array([bool(value) for value in values]), gone)
    if kinds == {"whole"}:
        return NumberColumn(np.array([0 if value is None else value for value in values], dtype=np.int64), gone)
    if kinds <= {"whole", "number"}:
        return NumberColumn(np.array([_as_float(value) for value in values]), gone)
    return TextColumn([_text(value) for value in values])


def _as_float(value: Any) -> float:
    try:
        return float("nan") if value is None else float(value)
    except OverflowError:
        return float("inf")


def _text(value: Any) -> str:
    if not _kind(value):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | int):
        return str(value)
    return shortest_text(value) if abs(value) < float("inf") else str(value)
