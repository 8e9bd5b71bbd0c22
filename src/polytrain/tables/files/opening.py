"""Open a file as a table that is read block by block."""

from __future__ import annotations

import os
from pathlib import Path

from polytrain.tables.errors import TableError
from polytrain.tables.files.kinds import kind_of
from polytrain.tables.files.streams import SNIFF_BYTES, TextStream, open_bytes
from polytrain.tables.files.table import BLOCK_ROWS, Block, ReadOptions, Table, position_names

__all__ = ["BLOCK_ROWS", "Block", "ReadOptions", "Table", "open_table", "position_names"]


def open_table(path: str | os.PathLike[str], options: ReadOptions = ReadOptions()) -> Table:  # noqa: B008 - frozen
    r"""Open a table: CSV and its kin, JSON lines, Parquet, Arrow, .npy or .npz.

    What a file is follows from its first bytes. Text may be packed with gzip, bzip2, xz, zstd or zip.

    Parameters
    ----------
    path : path-like
        The file; "-" is standard input, as text.
    options : ReadOptions
        What the user says about it.

    Returns
    -------
    Table
        To be used in a ``with`` statement, and read once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain.tables.files import open_table
    >>> path = Path(tempfile.mkdtemp()) / "tiny.csv"
    >>> _ = path.write_text(";length;colour\n0;1,5;red\n1;2;blue\n")
    >>> with open_table(path) as table:
    ...     (block,) = table.blocks()
    ...     print(table.names, list(block.columns[1]), block.place(1))
    ['length', 'colour'] ['red', 'blue'] line 3
    >>> print("; ".join(table.notes))
    cells are separated by semicolons; the first column has no name and was left out as an index
    """
    from polytrain.tables.files import array_table, json_table, text_table, typed_tables

    label = "standard input" if str(path) == "-" else str(path)
    stream, name, compression = open_bytes(path, label)
    try:
        kind = kind_of(name, stream.look(SNIFF_BYTES), label)
        if kind in ("text", "json"):
            text = TextStream(stream, label, options.encoding)
            if kind == "json":
                table: Table = json_table.JsonTable(text, label, options)
            else:
                table = text_table.TextTable(text, label, name, options)
            packed = [] if compression is None else [f"unpacked with {compression}"]
            table.notes[:0] = [*packed, *([text.note] if text.note else [])]
            return table
        if str(path) == "-":
            raise TableError("standard input must be text (CSV or JSON lines); give other kinds of tables as files.")
        if compression is not None:
            raise TableError(f"{label} is a {kind} file, packed with {compression}. Unpack it.")
        stream.close()
        if kind == "npy" or kind == "npz":
            return array_table.ArrayTable(Path(path), label, options)
        return (typed_tables.ParquetTable if kind == "parquet" else typed_tables.ArrowTable)(Path(path), label, options)
    except BaseException:
        stream.close()
        raise
