"""Tables in NumPy's files: one array of numbers or text, or several with names."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.tables.cells import Cells
from polytrain.tables.errors import TableError
from polytrain.tables.reading import BLOCK_ROWS, Block

__all__ = ["ArrayTable"]


class ArrayTable:
    """An .npy file with rows and columns, or an .npz file whose arrays stand side by side.

    Columns of an .npz file with several arrays have names: that of a one-dimensional array, and "X0", "X1", ... for a
    two-dimensional array "X".

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Name for messages.
    """

    def __init__(self, path: Path, label: str) -> None:
        self.label = label
        try:
            arrays = _load(path)
        except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
            raise TableError(f"{label} cannot be read: {error}. Save plain arrays of numbers or text anew.") from None
        for name, array in arrays.items():
            _check_array(f"{label}: array {name!r}" if name else label, array)
        if not arrays or len({len(array) for array in arrays.values()}) > 1:
            raise TableError(f"{label}: its arrays must have the same number of rows. Save them again.")
        self._columns = [
            column
            for array in arrays.values()
            for column in ([array] if array.ndim == 1 else [array[:, k] for k in range(array.shape[1])])
        ]
        self.n_columns = len(self._columns)
        self.names = None if len(arrays) == 1 else _column_names(arrays)
        if not self._columns or not len(self._columns[0]):
            raise TableError(f"{label} holds no rows. Name a file with rows.")

    def __enter__(self) -> ArrayTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self._columns = []

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, so many at a time."""
        total = len(self._columns[0])
        for start in range(0, total, n_rows):
            columns = [_cells(column[start : start + n_rows]) for column in self._columns]
            yield Block(columns, range(start, min(start + n_rows, total)), "row")


def _load(path: Path) -> dict[str, NDArray]:
    """Arrays by name; a single array is mapped, not read, and has no name."""
    with open(path, "rb") as stream:
        if stream.read(2) != b"PK":
            return {"": np.load(path, mmap_mode="r", allow_pickle=False)}
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}


def _check_array(what: str, array: NDArray) -> None:
    if array.dtype.kind not in "biufUS" or array.ndim not in (1, 2):
        raise TableError(
            f"{what} has dtype {array.dtype} and {array.ndim} dimensions. Save rows and columns of numbers or text."
        )


def _column_names(arrays: dict[str, NDArray]) -> list[str]:
    names = []
    for name, array in arrays.items():
        names += [name] if array.ndim == 1 else [f"{name}{k}" for k in range(array.shape[1])]
    return names


def _cells(part: NDArray) -> Cells:
    if part.dtype.kind in "US":
        texts: Any = part.astype(str).tolist()
        return [cell.strip() for cell in texts]
    return np.array(part, dtype=np.float64)
