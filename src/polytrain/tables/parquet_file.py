"""Tables in Parquet files. Needs pyarrow, the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polytrain.tables.cells import Cells
from polytrain.tables.errors import TableError
from polytrain.tables.reading import BLOCK_ROWS, Block

__all__ = ["ParquetTable"]


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
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise TableError(f"{label}: Parquet needs pyarrow; pip install 'polytrain[parquet]'.") from error
        self.label, self._errors = label, (pyarrow.ArrowException, OSError)
        try:
            self._file = parquet.ParquetFile(path)
        except self._errors as error:
            raise TableError(f"{label} cannot be read as Parquet: {error}. Write it anew.") from None
        self.names: list[str] | None = list(self._file.schema_arrow.names)
        self.n_columns = len(self.names)
        if not self._file.metadata.num_rows or not self.n_columns:
            self._file.close()
            raise TableError(f"{label} holds no rows. Name a file with rows.")

    def __enter__(self) -> ParquetTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, so many at a time."""
        start = 0
        try:
            for batch in self._file.iter_batches(n_rows):
                yield Block([_cells(column) for column in batch.columns], range(start, start + len(batch)), "row")
                start += len(batch)
        except self._errors as error:
            raise TableError(f"{self.label} cannot be read as Parquet: {error}. Write it anew.") from None


def _cells(column: Any) -> Cells:
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind):
        return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    return ["" if value is None else str(value).strip() for value in column.to_pylist()]
