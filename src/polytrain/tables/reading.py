"""Open a file as a table that is read block by block."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from polytrain.tables.cells import Cells
from polytrain.tables.errors import TableError

__all__ = ["BLOCK_ROWS", "Block", "Table", "check_names", "open_table", "position_names"]

#: Rows that are in memory at a time where a table is streamed.
BLOCK_ROWS = 8192
_SNIFF_BYTES = 1 << 16
_MODEL_FILE = b'{"__metadata__":{"format":"polytrain"'
_KINDS = {
    ".csv": "text",
    ".tsv": "text",
    ".tab": "text",
    ".txt": "text",
    ".data": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".npz": "npz",
}
_MAGIC = {b"PAR1": "parquet", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}


@dataclass(frozen=True)
class Block:
    """Some rows of a table, column by column.

    Attributes
    ----------
    columns : sequence of cells
        One list of text or float64 array per column.
    places : sequence of int
        Line or row in the file of each row, for messages.
    unit : str
        What the places count: "line" or "row".
    """

    columns: Sequence[Cells]
    places: Sequence[int]
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.places)

    def place(self, row: int) -> str:
        """Where a row is in the file."""
        return f"{self.unit} {self.places[row]}"


class Table(AbstractContextManager, Protocol):
    """A table that is open for one reading.

    ``label`` names it in messages. ``names`` are the columns' names, or None where the file has none.
    """

    label: str
    names: list[str] | None
    n_columns: int

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, so many at a time; only once."""


def position_names(n_columns: int) -> list[str]:
    """Names of columns that have none."""
    return [f"column {k}" for k in range(n_columns)]


def check_names(names: list[str], label: str, remedy: str) -> list[str]:
    """Refuse columns without a name, and two of the same name."""
    seen: set[str] = set()
    for k, name in enumerate(names):
        if not name:
            raise TableError(f"{label}: column {k} has no name. {remedy}.")
        if name in seen:
            raise TableError(f"{label} has the column {name!r:.60} twice. {remedy}.")
        seen.add(name)
    return names


def open_table(path: str | os.PathLike[str], *, header: str = "auto", delimiter: str | None = None) -> Table:
    r"""Open a table: CSV, TSV, Parquet, .npy or .npz.

    The kind follows from the name's ending, or from the first bytes where the ending is unknown.

    Parameters
    ----------
    path : path-like
        The file; "-" is standard input, as CSV.
    header : {"auto", "yes", "no"}, default="auto"
        Whether the first row of a text file holds the columns' names. "auto": it does if none of its cells is a number
        or empty, and some column has numbers below, or nothing below repeats a cell of it.
    delimiter : str, optional
        What separates the cells of a text file. By default a tab for .tsv, else the most frequent of comma, semicolon,
        tab and bar in the first line.

    Returns
    -------
    Table
        To be used in a ``with`` statement, and read once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain.tables import open_table
    >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
    >>> _ = path.write_text("length,colour\n1.5,red\n2,blue\n")
    >>> with open_table(path) as table:
    ...     print(table.names, [list(block.columns) for block in table.blocks()])
    ['length', 'colour'] [[['1.5', '2'], ['red', 'blue']]]
    """
    from polytrain.tables import array_file, parquet_file, text_file

    label = "standard input" if str(path) == "-" else str(path)
    stream = _open_stream(path, label)
    try:
        start = stream.peek(_SNIFF_BYTES)[:_SNIFF_BYTES]
        kind = _kind(path, start, label)
        if kind == "text":
            tabs = "\t" if Path(path).suffix.lower() in (".tsv", ".tab") else None
            return text_file.TextTable(stream, label, header, delimiter or tabs)
        if str(path) == "-":
            raise TableError("standard input must be text (CSV); give other kinds of tables as files.")
        stream.close()
        if kind == "parquet":
            return parquet_file.ParquetTable(Path(path), label)
        return array_file.ArrayTable(Path(path), label)
    except BaseException:
        if str(path) != "-":
            stream.close()
        raise


def _open_stream(path: str | os.PathLike[str], label: str) -> io.BufferedReader:
    if str(path) == "-":
        return sys.stdin.buffer  # type: ignore[return-value]
    if stat.S_ISDIR(os.stat(path).st_mode):
        raise TableError(f"{label} is a folder. Name a file in it.")
    stream: BinaryIO = open(path, "rb", buffering=_SNIFF_BYTES)  # noqa: SIM115 - the table closes it
    return stream  # type: ignore[return-value]


def _kind(path: str | os.PathLike[str], start: bytes, label: str) -> str:
    """Tell what a file is from its name and its first bytes."""
    if not start:
        raise TableError(f"{label} is empty. Name a file with rows.")
    if start.startswith(_MODEL_FILE, 8):
        raise TableError(f"{label} is a polytrain model file, not a table. Put MODEL before DATA, and a table as DATA.")
    by_content = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "text")
    kind = _KINDS.get(Path(path).suffix.lower(), by_content)
    if kind != by_content:
        raise TableError(
            f"{label} is no {kind} file, as its name says: its content is {_describe(by_content, start)}. Rename it."
        )
    if kind == "text" and b"\0" in start:
        raise TableError(f"{label} is a binary file, not a table. Known are CSV, TSV, Parquet, .npy and .npz.")
    return kind


def _describe(kind: str, start: bytes) -> str:
    return ("binary" if b"\0" in start else "text") if kind == "text" else f"that of a {kind} file"
