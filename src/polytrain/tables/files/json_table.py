"""Tables of JSON objects: one in each line, or all in one array.

The objects are read twice: once for the keys that there are and what kinds of values they have, and once for the rows.
What was read is kept for that, in memory or in a temporary file.
"""

from __future__ import annotations

import codecs
import itertools
import json
import re
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from polytrain.tables.errors import TableError
from polytrain.tables.files.cells import CellColumn, NumberColumn, TextColumn, TruthColumn, shortest_text
from polytrain.tables.files.chunks import MAX_LINE_BYTES, Chunks, decode
from polytrain.tables.files.headers import clean_names
from polytrain.tables.files.streams import TextStream, count_lines
from polytrain.tables.files.table import BLOCK_ROWS, Block, ReadOptions, Table, check_width

__all__ = ["JsonTable"]

_CHUNK_BYTES = 1 << 18
_MEMORY_BYTES = 1 << 26
_REMEDY = (
    "Save it as CSV or as JSON lines, one object of plain values in each line, such as with pandas: "
    "frame.to_json('table.jsonl', orient='records', lines=True)"
)
# A table of more cells than both of these is nearly empty, and far larger in memory than in the file.
_MIN_CELLS, _MAX_CELLS_PER_BYTE = 1 << 24, 4
_SPACES = re.compile(r"[ \t\r\n]*")
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
        n_rows = 0
        for place, item in _items(_Copying(self._stream, self._kept_text), self.label):
            n_rows += 1
            check_width(max(len(kinds), len(item)), self.label)
            for key, value in item.items():
                kind = _kind(value)
                if kind == "nested":
                    what = "a list" if isinstance(value, list) else "an object"
                    raise TableError(f"{self.label}, {place[0]} {place[1]}: {key!r:.60} holds {what}. {_REMEDY}.")
                known = kinds.setdefault(key, set())
                if kind:
                    known.add(kind)
        if n_rows * len(kinds) > max(_MIN_CELLS, _MAX_CELLS_PER_BYTE * self._kept_text.tell()):
            raise TableError(
                f"{self.label}: its {n_rows} objects have {len(kinds)} different keys, of which each object has few; "
                "nearly all cells of such a table are missing. Give the objects the same keys."
            )
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
    start = b""
    while not start.strip() and (more := stream.read(_CHUNK_BYTES)):
        start += more
    if start.lstrip()[:1] == b"[":
        yield from _array_items(stream, start, label)
        return
    chunks = Chunks(stream, label)
    chunks.give_back(start)
    yield from _line_items(chunks, chunks.next(_CHUNK_BYTES), label)


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


def _array_items(stream: Any, start: bytes, label: str) -> Iterator[Item]:
    decoder, characters = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")()
    number = 0

    def mistake(what: str) -> TableError:
        return TableError(f"{label}, row {number}: {what}. {_REMEDY}.")

    def decoded(content: bytes) -> str:
        try:
            return characters.decode(content, final=not content)
        except UnicodeDecodeError as error:
            raise mistake(f"byte 0x{error.object[error.start]:02x} makes no character in UTF-8") from None

    text = decoded(start)
    position = text.index("[") + 1
    expected = "an object or ]"  # then "a comma or ]", "an object" and "the end of the file"
    while True:
        position += len(_SPACES.match(text, position)[0])  # type: ignore[index]
        if position == len(text):
            more = stream.read(_CHUNK_BYTES)
            text, position = decoded(more), 0
            if more or text:
                continue
            if expected == "the end of the file":
                return
            raise mistake(f"the file ends where {expected} is expected")
        character = text[position]
        if character == "]" and expected.endswith("]"):
            expected, position = "the end of the file", position + 1
        elif character == "," and expected.startswith("a comma"):
            expected, position = "an object", position + 1
        elif not expected.startswith("an object"):
            raise mistake(f"here is {text[position : position + 30]!r}, where {expected} is expected")
        else:
            try:
                item, position = decoder.raw_decode(text, position)
                _check_text(item)
            except (ValueError, RecursionError) as error:
                # What is cut off at the end of the text may go on, for as much again as is there.
                rest = text[position:]
                more = b"" if len(rest) > MAX_LINE_BYTES else stream.read(max(_CHUNK_BYTES, len(rest)))
                if not more:
                    raise mistake(f"here is no JSON object: {_reason(error)}") from None
                text, position = rest + decoded(more), 0
                continue
            if not isinstance(item, dict):
                raise mistake(f"{item!r:.60} is no JSON object")
            yield ("row", number), item
            number, expected = number + 1, "a comma or ]"


def _reason(error: Exception) -> str:
    """What is wrong, without the place within the text, which is not that in the file."""
    # Of a number with too many digits, Python would also say how to allow it, which no user of a file can.
    return f"{error.msg if isinstance(error, json.JSONDecodeError) else str(error).partition(';')[0]:.100}"


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
        return TruthColumn(np.array([value is True for value in values]), gone)
    if kinds == {"whole"}:
        return NumberColumn(np.array([value if _kind(value) else 0 for value in values], dtype=np.int64), gone)
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
