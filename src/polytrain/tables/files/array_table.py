"""Tables in NumPy's files: one array of numbers or text, or several with names.

The file may be damaged, or come from a stranger: what its headers say is compared with its size before memory is taken,
and nothing in it is ever unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from polytrain.tables.errors import TableError, reading
from polytrain.tables.files.cells import CellColumn, NumberColumn, TextColumn
from polytrain.tables.files.headers import clean_names
from polytrain.tables.files.table import BLOCK_ROWS, Block, ReadOptions, Table, check_width

__all__ = ["ArrayTable"]

_REMEDY = "Save plain arrays of numbers or text anew"
# What NumPy writes is rarely packed by more than a factor of ten. Beyond both of these an archive is taken for a trap.
_MAX_PACKING, _MAX_UNPACKED_BYTES = 100, 1 << 30


class ArrayTable(Table):
    """An .npy file with rows and columns, or an .npz file whose arrays stand side by side.

    Columns of an .npz file with several arrays have names: that of a one-dimensional array, and "X0", "X1", ... for a
    two-dimensional array "X".

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Name for messages.
    options : ReadOptions
        What the user says about it.
    """

    def __init__(self, path: Path, label: str, options: ReadOptions) -> None:
        self.label, self.notes = label, []
        with reading(label, _REMEDY):
            arrays = _load(path, label)
        if not arrays or len({len(array) for array in arrays.values()}) > 1:
            raise TableError(f"{label}: its arrays must have the same number of rows. Save them again.")
        check_width(sum(1 if array.ndim == 1 else array.shape[1] for array in arrays.values()), label)
        self._columns = [
            column
            for array in arrays.values()
            for column in ([array] if array.ndim == 1 else [array[:, k] for k in range(array.shape[1])])
        ]
        if not self._columns:
            raise TableError(f"{label} holds no rows. Name a file with rows.")
        self.names = None
        if len(arrays) > 1:
            header = clean_names(_column_names(arrays), options.keep_index)
            self.names, self.notes = header.names, header.notes
            self._columns = [self._columns[k] for k in header.kept]
        self.n_columns = len(self._columns)

    def close(self) -> None:
        """Let go of the arrays."""
        self._columns = []

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, at most so many at a time."""
        total = len(self._columns[0])
        for start in range(0, total, n_rows):
            with reading(self.label, _REMEDY):
                columns = [_cells(column[start : start + n_rows]) for column in self._columns]
            yield Block(columns, range(start, min(start + n_rows, total)), "row")


def _load(path: Path, label: str) -> dict[str, NDArray]:
    """Arrays by name; a single array is mapped, not read, and has no name."""
    with open(path, "rb") as stream:
        if stream.read(2) == b"PK":
            return _load_archive(stream, path.stat().st_size, label)
        stream.seek(0)
        shape, by_columns, dtype = _read_header(stream, path.stat().st_size, label)
        order: Any = "F" if by_columns else "C"
        return {"": np.memmap(path, dtype, "r", stream.tell(), shape, order)}


def _load_archive(stream: BinaryIO, n_bytes: int, label: str) -> dict[str, NDArray]:
    arrays: dict[str, NDArray] = {}
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > max(_MAX_UNPACKED_BYTES, _MAX_PACKING * n_bytes):
            raise TableError(
                f"{label} has {n_bytes} bytes and would unpack to {unpacked}. Save it with numpy.savez, not packed, if "
                "you trust it."
            )
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise TableError(f"{label} holds the array {name!r} twice. Save it again.")
            with archive.open(member) as part:
                what = f"{label}: array {name!r}"
                shape, by_columns, dtype = _read_header(part, member.file_size, what)
                flat = np.frombuffer(part.read(prod(shape) * dtype.itemsize), dtype)
                arrays[name] = flat.reshape(shape, order="F" if by_columns else "C")
    return arrays


def _read_header(stream: Any, n_bytes: int, what: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and dtype of an array in ``n_bytes`` bytes, which must be enough for it."""
    version = npy_format.read_magic(stream)
    if version == (1, 0):
        shape, by_columns, dtype = npy_format.read_array_header_1_0(stream)
    else:  # 3.0 differs from 2.0 in names of fields, which no table has
        shape, by_columns, dtype = npy_format.read_array_header_2_0(stream)
    if dtype.kind not in "biufUS" or len(shape) not in (1, 2):
        raise TableError(
            f"{what} has dtype {dtype} and {len(shape)} dimensions. Save rows and columns of numbers or text."
        )
    size = prod(shape) * dtype.itemsize
    if min(shape) < 0 or size > n_bytes - stream.tell():
        raise TableError(f"{what} says that it has the shape {shape}, but its file is too short for it. {_REMEDY}.")
    if not size:
        raise TableError(f"{what} holds no rows. Name a file with rows.")
    return shape, by_columns, dtype


def _column_names(arrays: dict[str, NDArray]) -> list[str]:
    names = []
    for name, array in arrays.items():
        names += [name] if array.ndim == 1 else [f"{name}{k}" for k in range(array.shape[1])]
    return names


def _cells(part: NDArray) -> CellColumn:
    if part.dtype.kind in "US":
        if part.dtype.kind == "U":
            codes = np.array(part, dtype=part.dtype.newbyteorder("=")).view(np.uint32)
            # Half a surrogate pair is no text, either, and could not be written again.
            if codes.max(initial=0) > 0x10FFFF or ((codes >= 0xD800) & (codes < 0xE000)).any():
                raise ValueError("some text has characters that there are not")
        return TextColumn([cell.strip() for cell in part.astype(str).tolist()])
    if part.dtype.kind in "iu":
        return NumberColumn(np.array(part, dtype=part.dtype.newbyteorder("=")))
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large for float64 is infinite, and refused as such
        return NumberColumn(np.array(part, dtype=np.float64))
