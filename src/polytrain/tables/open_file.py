"""Open tables in files of all kinds, which are recognised by their first bytes.

Cells of text files stay text here: 007 may be a category and 1.234 a thousand, which is decided once, from all rows.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from polytrain.checks import need
from polytrain.tables.options import ReadOptions, TableError, reading
from polytrain.tables.table_file import TableFile, check_width, make_table
from polytrain.tables.text_file import open_text
from polytrain.texts import listed

__all__ = ["open_table_file"]

# Bytes of the sample that shows encoding and layout; more of them where lines are very long.
_SNIFF_BYTES, _MAX_SNIFF_BYTES = 1 << 20, 1 << 23
# Files that decompress to more than both of these are refused: a factor, and bytes.
_MAX_PACKING, _MAX_UNPACKED_BYTES = 100, 1 << 30
# Largest number of cells from JSON objects that each lack most keys.
_MAX_SPARSE_CELLS = 1 << 24
_ANEW = "It is damaged or truncated; download or write it again"
_JSON_REMEDY = (
    "Save it as CSV or as JSON lines, one object of plain values in each line, such as with pandas: "
    "frame.to_json('table.jsonl', orient='records', lines=True)"
)
_REMEDIES = {"json": _JSON_REMEDY, **dict.fromkeys(("npy", "npz"), "Save rows and columns of numbers or text again")}
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\3\4": "zip"}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"\x93NUMPY": "npy"}
_MODEL_FILE = b'{"__metadata__":{"format":"polytrain"'
_PAGE = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|table|head|body|\?xml|!--)", re.IGNORECASE)
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(\{|\[\s*[{\]])")
_Path = str | os.PathLike[str]


def open_table_file(path: str | os.PathLike[str], options: ReadOptions = ReadOptions()) -> TableFile:  # noqa: B008
    r"""Open a table: CSV and similar text, JSON, Parquet, Feather, Excel, .npy or .npz.

    The kind of a file follows from its first bytes. Text may be packed with gzip, bzip2, xz, zstd or zip.

    Parameters
    ----------
    path : path-like
        The file; "-" is standard input, as text.
    options : ReadOptions
        How it is to be read; detected by default.

    Returns
    -------
    TableFile

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain.tables.open_file import open_table_file
    >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
    >>> _ = path.write_text(";length;colour\n0;1,5;red\n1;2;blue\n")
    >>> with open_table_file(path) as table:
    ...     (frame,) = table.blocks()
    ...     print(table.names, list(frame["colour"]), table.place(frame.index[1]))
    ['Unnamed: 0', 'length', 'colour'] ['red', 'blue'] line 3
    >>> table.notes
    ['cells are separated by semicolons']
    """
    need("a table in a file", "tables", "pandas", "pyarrow")
    label = "standard input" if str(path) == "-" else str(path)
    with ExitStack() as opened:
        stream, packed = _open_bytes(path, label, opened)
        kind = packed if packed in ("npz", "excel") else _kind_of(stream.start, label)
        if kind == "text":
            table = open_text(stream, label, options)
        elif kind != "json" and (str(path) == "-" or packed not in (None, "npz", "excel")):
            raise TableError(f"{label} holds a {kind} file, which is only read from an uncompressed file.")
        else:
            with reading(label, _REMEDIES.get(kind, _ANEW)):
                table = _open_typed(path, kind, stream, label, options)
        if packed in _PACKED.values():
            table.notes.insert(0, f"unpacked with {packed}")
        table._opened = opened.pop_all()
        return table


# --- bytes ---


class _Bytes(io.RawIOBase):
    """The bytes of a stream, at most ``most`` of them; ``start`` is a sample, read ahead."""

    def __init__(self, stream: Any, label: str, most: float = math.inf) -> None:
        self._stream, self._label, self._most = stream, label, most
        self.start, self.n_read, self.is_whole = b"", 0, False
        while len(self.start) < _SNIFF_BYTES or (self.start.count(b"\n") < 3 and len(self.start) < _MAX_SNIFF_BYTES):
            more = self._more(_SNIFF_BYTES)
            self.start += more
            if not more:
                self.is_whole = True
                break
        self._ahead = io.BytesIO(self.start)

    def _more(self, n_bytes: int) -> bytes:
        with reading(self._label, _ANEW):
            part = self._stream.read(n_bytes)
        self.n_read += len(part)
        _check_unpacked(self._label, self.n_read, self._most)
        return part

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._ahead.read(len(buffer)) or self._more(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def _max_unpacked(path: _Path) -> float:
    """Return the number of bytes that a file may unpack to; the size of a pipe is not known."""
    return max(_MAX_UNPACKED_BYTES, _MAX_PACKING * os.path.getsize(path)) if os.path.isfile(path) else math.inf


def _check_unpacked(label: str, size: int, most: float, remedy: str = "Unpack it yourself") -> None:
    if size > most:
        raise TableError(f"{label} unpacks to more than {most:.0f} bytes. {remedy} if you trust it.")


def _open_bytes(path: _Path, label: str, opened: ExitStack) -> tuple[_Bytes, str | None]:
    """Open a file or standard input; return its bytes, unpacked, and what it was packed with."""
    if str(path) != "-":
        if os.path.isdir(path):
            raise TableError(f"{label} is a folder. Name a file in it.")
        stream = _Bytes(opened.enter_context(open(path, "rb")), label)  # noqa: SIM115 - the table closes it
    elif sys.stdin is None:
        raise TableError("standard input is closed. Name a file, or pipe one in.")
    else:
        stream = _Bytes(sys.stdin.buffer, label)
    packed = next((kind for magic, kind in _PACKED.items() if stream.start.startswith(magic)), None)
    if packed is None:
        return stream, None
    if packed == "zip":
        return _open_zip(path, stream, label, opened)
    below = io.BufferedReader(stream)
    if packed == "zstd":
        import pyarrow

        source: Any = pyarrow.CompressedInputStream(pyarrow.PythonFile(below, mode="r"), "zstd")
    else:
        openers: dict[str, Callable[[Any], Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
        source = openers[packed](below)
    return _Bytes(opened.enter_context(source), label, _max_unpacked(path)), packed


def _open_zip(path: _Path, stream: _Bytes, label: str, opened: ExitStack) -> tuple[_Bytes, str | None]:
    if str(path) == "-":
        raise TableError(f"{label} is a zip archive, which cannot be read from a pipe. Name the file, or unpack it.")
    with reading(label, _ANEW):
        archive = opened.enter_context(zipfile.ZipFile(path))
        members = [info for info in archive.infolist() if not (info.is_dir() or info.filename.startswith("__MACOSX"))]
        names = [info.filename for info in members]
        _check_unpacked(label, sum(info.file_size for info in members), _max_unpacked(path))
        if names and all(name.endswith(".npy") for name in names):
            return stream, "npz"
        if any(name.startswith("xl/") for name in names):
            return stream, "excel"
        if len(members) != 1:
            raise TableError(f"{label} holds {len(names)} files ({listed(names)}). Unpack it, and name one of them.")
        return _Bytes(opened.enter_context(archive.open(members[0])), label), "zip"


def _kind_of(start: bytes, label: str) -> str:
    """Return the kind of a file by its first bytes, or refuse it."""
    if not start:
        raise TableError(f"{label} is empty. Name a file with rows.")
    if start.startswith(_MODEL_FILE, 8):
        raise TableError(f"{label} is a polytrain model file, not a table. Name a table with rows.")
    if start[257:262] == b"ustar":
        raise TableError(f"{label} is an archive (tar). Unpack it, and name a table in it.")
    if _PAGE.match(start):
        raise TableError(f"{label} is a page (HTML or XML), not a table. Open it in a browser and save it as CSV.")
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    return kind or ("json" if _JSON.match(start) else "text")


# --- files whose columns have types ---


def _open_typed(path: _Path, kind: str, stream: _Bytes, label: str, options: ReadOptions) -> TableFile:
    """Open a file whose columns have types: Parquet comes in blocks, all others are read at once."""
    from pyarrow import parquet

    if kind == "parquet":
        with parquet.ParquetFile(path) as file:
            about, columns = file.metadata, list(file.schema_arrow.names)
        n_rows = about.num_rows
        size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
        _check_unpacked(label, size, _max_unpacked(path), "Write it without compression")
    else:
        whole = _read_whole(path, kind, stream, label, options)
        n_rows, columns = len(whole), list(whole.columns)
    if not n_rows or not columns:
        raise TableError(f"{label} holds no rows. Name a file with rows.")

    def frames(block_rows: int | None) -> Iterator[Any]:
        step, start = block_rows or n_rows, 0
        if kind != "parquet":
            yield from (whole.iloc[start : start + step] for start in range(0, n_rows, step))
            return
        with reading(label, _ANEW), parquet.ParquetFile(path) as file:
            for part in [file.read()] if block_rows is None else file.iter_batches(block_rows):
                frame = _to_frame(part)
                yield frame.set_axis(range(start, start + len(frame)))
                start += len(frame)

    # An array without names has columns 0, 1, ...
    names = None if columns[0] == 0 else [str(name).strip() for name in columns]
    return make_table(label, names, len(columns), frames, [], None)


def _to_frame(table: Any) -> Any:
    table.validate(full=True)  # the memory that a damaged file claims is not checked otherwise
    return table.to_pandas(ignore_metadata=True, date_as_object=False)


def _read_whole(path: _Path, kind: str, stream: _Bytes, label: str, options: ReadOptions) -> Any:
    """Read all rows; the columns of a single array are 0, 1, ..."""
    import pandas
    from pyarrow import feather

    if kind == "json":
        return pandas.DataFrame(_read_objects(stream, label, options.encoding or "utf-8-sig"))
    if kind == "feather":
        return _to_frame(feather.read_table(path, memory_map=False))
    if kind == "excel":
        try:
            return pandas.read_excel(path).rename(columns=str)
        except ImportError:
            remedy = "pip install openpyxl, or save the sheet as CSV"
            raise TableError(f"{label} is an Excel workbook, which needs openpyxl: {remedy}.") from None
    loaded = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        arrays = {"": loaded}
    else:
        with loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    if len({len(array) for array in arrays.values() if array.ndim}) > 1:
        raise TableError(f"{label}: its arrays must have the same number of rows. Save them again.")
    frames = [_array_frame(name, array, label) for name, array in arrays.items()]
    return pandas.concat(frames, axis=1, ignore_index=len(frames) == 1)


def _array_frame(name: str, array: Any, label: str) -> Any:
    """An array as a frame; a matrix "X" has the columns "X0", "X1", ..."""
    import pandas

    if array.dtype.kind not in "biufUS" or array.ndim not in (1, 2) or not array.nbytes:
        raise TableError(
            f"{label}: the array {name!r} has dtype {array.dtype} and shape {array.shape}. Save rows and columns of "
            "numbers or text."
        )
    if array.dtype.kind in "US":
        array = np.ascontiguousarray(array.astype(str))
        if (array.view(np.uint32) > 0x10FFFF).any():
            raise ValueError("some text has invalid characters")
    elif not array.dtype.isnative or (array.dtype.kind == "f" and array.itemsize not in (4, 8)):
        with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond float64 are refused as infinite
            array = array.astype(np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("="))
    check_width(array.shape[-1] if array.ndim == 2 else 1, label)
    return pandas.DataFrame(array, columns=[name] if array.ndim == 1 else [f"{name}{k}" for k in range(array.shape[1])])


def _read_objects(stream: _Bytes, label: str, encoding: str) -> list[dict[str, Any]]:
    """Objects of JSON, one in each line or all in one array."""
    text = io.TextIOWrapper(io.BufferedReader(stream), encoding)
    is_array = _JSON.match(stream.start)[1].startswith(b"[")  # type: ignore[index]
    objects: list[Any] = []
    for number, line in enumerate([text.read()] if is_array else text, start=1):
        try:
            content = json.loads(line) if line.strip() else []
        except (ValueError, RecursionError) as error:
            what = str(error).partition(";")[0]  # without Python's advice about long numbers
            where = label if is_array else f"{label}, line {number}"
            raise TableError(f"{where}: this is not valid JSON: {what:.100}. {_JSON_REMEDY}.") from None
        objects += content if isinstance(content, list) else [content]
    for row, item in enumerate(objects):
        if not isinstance(item, dict) or any(isinstance(value, list | dict) for value in item.values()):
            raise TableError(f"{label}, row {row}: {item!r:.60} is not a JSON object of plain values. {_JSON_REMEDY}.")
    n_keys = len(set().union(*objects))
    check_width(n_keys, label)
    if len(objects) * n_keys > max(_MAX_SPARSE_CELLS, 4 * stream.n_read):
        raise TableError(
            f"{label}: its {len(objects)} objects have {n_keys} different keys, few of them in each object; nearly "
            "all cells of such a table are missing. Give the objects the same keys."
        )
    return objects
