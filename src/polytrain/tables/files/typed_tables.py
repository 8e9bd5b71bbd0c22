"""Tables in Parquet and Arrow files, whose columns have types. Needs pyarrow, the extra ``parquet``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polytrain.columns.forms import Form
from polytrain.tables.errors import TableError, reading
from polytrain.tables.files.cells import CellColumn, DateColumn, NumberColumn, TextColumn, TruthColumn
from polytrain.tables.files.headers import clean_names
from polytrain.tables.files.table import BLOCK_ROWS, Block, ReadOptions, Table, check_width

__all__ = ["ArrowTable", "ParquetTable"]

_REMEDY = "Write the file anew"
# Tables are rarely packed by more than a factor of ten. Beyond both of these a file is taken for a trap.
_MAX_PACKING, _MAX_UNPACKED_BYTES = 100, 1 << 28
# Cells that are read at once of files with many columns.
_BATCH_CELLS = 1 << 24


class _TypedTable(Table):
    """A file whose batches come from pyarrow."""

    def __init__(self, path: Path, label: str, options: ReadOptions) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise TableError(f"{label}: Parquet and Arrow need pyarrow; pip install 'polytrain[parquet]'.") from error
        self.label, self._n_bytes = label, path.stat().st_size
        self._coded: set[int] = set()  # columns of text that `_batches` hands out as codes of distinct text
        with reading(label, _REMEDY):
            self._open(path)
        try:
            with reading(label, _REMEDY):
                names, is_empty = self._names(), self._is_empty()
            if is_empty or not names:
                raise TableError(f"{label} holds no rows. Name a file with rows.")
            check_width(len(names), label)
            header = clean_names(names, options.keep_index)
        except BaseException:
            self.close()
            raise
        self.names, self._kept, self.notes = header.names, header.kept, header.notes
        self.n_columns = len(self._kept)

    @abstractmethod
    def _open(self, path: Path) -> None:
        """Open the file."""

    @abstractmethod
    def _names(self) -> list[str]:
        """Names of all columns."""

    @abstractmethod
    def _is_empty(self) -> bool:
        """Whether there are no rows."""

    @abstractmethod
    def _batches(self, n_rows: int) -> Iterator[Any]:
        """Record batches, in order."""

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """Read the rows, at most so many at a time."""
        first = n_unpacked = 0
        with reading(self.label, _REMEDY):
            for batch in self._batches(n_rows):
                batch.validate(full=True)  # what a damaged file says of its memory is not checked otherwise
                n_unpacked += sum(map(_unpacked_bytes, batch.columns))
                if n_unpacked > max(_MAX_UNPACKED_BYTES, _MAX_PACKING * self._n_bytes):
                    raise TableError(
                        f"{self.label} has {self._n_bytes} bytes and unpacks to more than {n_unpacked}. Write it "
                        "without compression and without dictionaries if you trust it."
                    )
                for start in range(0, batch.num_rows, n_rows):
                    part = batch.slice(start, n_rows)
                    places = range(first, first + part.num_rows)
                    columns = [
                        typed_column(part.column(k).dictionary_decode() if k in self._coded else part.column(k))
                        for k in self._kept
                    ]
                    yield Block(columns, places, "row")
                    first += part.num_rows


class ParquetTable(_TypedTable):
    """A Parquet file, read batch by batch.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Name for messages.
    options : ReadOptions
        What the user says about it.
    """

    def _open(self, path: Path) -> None:
        import pyarrow
        from pyarrow import parquet

        self._file = parquet.ParquetFile(path)
        types = self._file.schema_arrow.types
        # Codes, so that a long text that stands in all rows is not in memory for each of them.
        texts = (pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.large_binary())
        self._coded = {k for k, kind in enumerate(types) if kind in texts}
        if self._coded:
            names = [self._file.schema_arrow.names[k] for k in self._coded]
            self._file.close()
            self._file = parquet.ParquetFile(path, read_dictionary=names)

    def _names(self) -> list[str]:
        return list(self._file.schema_arrow.names)

    def _is_empty(self) -> bool:
        return not self._file.metadata.num_rows

    def _batches(self, n_rows: int) -> Iterator[Any]:
        return self._file.iter_batches(max(1, min(n_rows, _BATCH_CELLS // len(self._names()))))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ArrowTable(_TypedTable):
    """An Arrow file or stream, Feather included, read batch by batch.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Name for messages.
    options : ReadOptions
        What the user says about it.
    """

    def _open(self, path: Path) -> None:
        from pyarrow import OSFile, ipc

        self._source = OSFile(str(path))
        try:
            is_file = self._source.read(6) == b"ARROW1"
            self._source.seek(0)
            self._file = ipc.open_file(self._source) if is_file else ipc.open_stream(self._source)
        except BaseException:
            self._source.close()
            raise
        self._is_file = is_file

    def _names(self) -> list[str]:
        return list(self._file.schema.names)

    def _is_empty(self) -> bool:
        return self._is_file and not self._file.num_record_batches

    def _batches(self, n_rows: int) -> Iterator[Any]:
        if not self._is_file:
            yield from self._file
            return
        for number in range(self._file.num_record_batches):
            yield self._file.get_batch(number)

    def close(self) -> None:
        """Close the file."""
        self._source.close()


def _unpacked_bytes(column: Any) -> int:
    """Bytes of a column in which a text that is stored once, and meant by many rows, is written out for each."""
    from pyarrow import compute, types

    size = max(column.nbytes, 8 * len(column))
    if types.is_string_view(column.type) or types.is_binary_view(column.type):
        views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)[column.offset : column.offset + len(column)]
        size += int(views[:, 0].astype(np.int64).clip(0).sum())  # each view begins with the length of its text
    elif types.is_dictionary(column.type) and not types.is_primitive(column.type.value_type):
        lengths = compute.binary_length(column.dictionary).take(column.indices)
        size += compute.sum(lengths, min_count=0).cast("int64").as_py()
    return size


def typed_column(column: Any) -> CellColumn:
    """Return an Arrow array as cells of its type; types that tables rarely have become text."""
    import pyarrow
    import pyarrow.compute
    from pyarrow import types

    kind = column.type
    is_category = types.is_dictionary(kind)
    if is_category:
        column = column.dictionary_decode()
        kind = column.type
    if types.is_null(kind):
        return NumberColumn(np.full(len(column), np.nan))
    gone = np.asarray(column.is_null())
    if is_category:
        return _text_column(column, Form("text"))
    if types.is_boolean(kind):
        return TruthColumn(np.asarray(column.fill_null(False)), gone)
    if types.is_integer(kind):
        return NumberColumn(np.asarray(column.fill_null(0)), gone)
    if types.is_timestamp(kind) or types.is_date(kind):
        if types.is_timestamp(kind) and kind.tz is not None:
            column = pyarrow.compute.local_timestamp(column)
        return DateColumn(np.asarray(column.cast(pyarrow.timestamp("us"), safe=False)))
    if types.is_duration(kind):  # days, as columns of frames are
        micros = column.cast(pyarrow.duration("us"), safe=False).cast(pyarrow.int64())
        return NumberColumn(np.asarray(micros.fill_null(0)) / 86_400e6, gone)
    if types.is_time(kind):  # hours, likewise
        micros = column.cast(pyarrow.time64("us"), safe=False).cast(pyarrow.int64())
        return NumberColumn(np.asarray(micros.fill_null(0)) / 3600e6, gone)
    if types.is_floating(kind) or types.is_decimal(kind):
        values = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return NumberColumn(np.asarray(values, dtype=np.float64), gone)
    return _text_column(column, None)


def _text_column(column: Any, form: Form | None) -> CellColumn:
    import pyarrow

    from polytrain.tables.files.arrow_cells import ArrowTextColumn, trim

    types = pyarrow.types
    if types.is_string(column.type) or types.is_large_string(column.type):
        return ArrowTextColumn(trim(column.cast(pyarrow.string()).fill_null("")), form)
    return TextColumn(["" if value is None else str(value).strip() for value in column.to_pylist()], form)
