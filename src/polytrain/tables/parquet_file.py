"""Tables in Parquet files. Needs pyarrow, the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polytrain.tables.cells import Cells
from polytrain.tables.errors import TableError, reading
from polytrain.tables.reading import BLOCK_ROWS, Block, check_names

__all__ = ["ParquetTable"]

_REMEDY = "Write the Parquet file anew"


class ParquetTable:
    """A Parquet file, read batch by batch. Numbers are numbers; text, truth values and dates become text.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Name for messages.
    """

    def __init__(self, path: Path, label: str) -> None:
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise TableError(f"{label}: Parquet needs pyarrow; pip install 'polytrain[parquet]'.") from error
        self.label = label
        with reading(label, _REMEDY):
            self._file = parquet.ParquetFile(path)
        try:
            with reading(label, _REMEDY):
                names = list(self._file.schema_arrow.names)
                n_rows = self._file.metadata.num_rows
            if not n_rows or not names:
                raise TableError(f"{label} holds no rows. Name a file with rows.")
            self.names: list[str] | None = check_names(names, label, "Rename a column")
        except TableError:
            self._file.close()
            raise
        self.n_columns = len(names)

    def __enter__(self) -> ParquetTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, so many at a time."""
        start = 0
        with reading(self.label, _REMEDY):
            for batch in self._file.iter_batches(n_rows):
                yield Block([_cells(column) for column in batch.columns], range(start, start + len(batch)), "row")
                start += len(batch)


def _cells(column: Any) -> Cells:
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind):
        return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    return ["" if value is None else str(value).strip() for value in column.to_pylist()]
