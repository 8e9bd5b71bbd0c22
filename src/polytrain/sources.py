"""Rows that do not fit in memory, read block by block.

A source of rows is any object that yields ``(X block, y block)`` or ``(X block, y block, weights)`` each time it is
iterated over, beginning anew every time with the same rows in the same order. `open_rows` makes one from a folder of
files; ``fit(source)`` trains on it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NpyFolder", "ParquetFolder", "open_rows"]

# A block takes about this many bytes.
_BLOCK_BYTES = 8 << 20
# Predictions do not depend on cuts between blocks that are multiples of this many rows.
_EVALUATED = 4000


def _rows_per_block(n_features: int) -> int:
    return max(1, _BLOCK_BYTES // (8 * max(1, n_features)))


class NpyFolder:
    """Rows in pairs of files, ``X*.npy`` with features and ``y*.npy`` with targets, in the order of their names.

    Files are mapped and read in blocks; ``w*.npy`` files with weights are used if there are any.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._names = [file.name[1:] for file in sorted(self.path.glob("X*.npy"))]
        self._letters = "Xyw" if any(self.path.glob("w*.npy")) else "Xy"
        for name, letter in product(self._names, self._letters[1:]):
            if not (self.path / f"{letter}{name}").exists():
                what = "targets" if letter == "y" else "weights, as others have,"
                raise FileNotFoundError(f"{self.path / f'X{name}'} has no {what} beside it: {letter}{name} is missing.")

    def __iter__(self) -> Iterator[tuple[NDArray, ...]]:
        for name in self._names:
            arrays = {f"{x}{name}": np.load(self.path / f"{x}{name}", mmap_mode="r") for x in self._letters}
            if len({len(array) for array in arrays.values()}) > 1:
                counts = ", ".join(f"{file} {len(array)}" for file, array in arrays.items())
                raise ValueError(f"files of one block in {self.path} differ in their number of rows: {counts}.")
            size = _rows_per_block(arrays[f"X{name}"][:1].size)
            for start in range(0, len(arrays[f"X{name}"]), size):
                yield tuple(np.array(array[start : start + size]) for array in arrays.values())


class SparseRows:
    """Rows of a sparse matrix of SciPy, with their targets and weights, in dense blocks."""

    def __init__(self, X: Any, *others: Any) -> None:
        self._X, self._others = X.tocsr(), [np.asarray(other) for other in others]

    def __iter__(self) -> Iterator[tuple[NDArray, ...]]:
        size = _rows_per_block(self._X.shape[1])
        size -= size % _EVALUATED if size > _EVALUATED else 0
        for start in range(0, max(self._X.shape[0], 1), size):
            rows = slice(start, start + size)
            yield self._X[rows].toarray(), *(other[rows] for other in self._others)


class ParquetFolder:
    """Rows in Parquet files, in the order of their names; the column ``target`` holds targets. Needs pyarrow."""

    def __init__(self, path: str | os.PathLike[str], target: str) -> None:
        from pyarrow import parquet

        self.path, self.target = Path(path), target
        self._files = sorted(self.path.glob("*.parquet"))
        names = [parquet.read_schema(file).names for file in self._files]
        for file, columns in zip(self._files, names, strict=True):
            if target not in columns:
                raise ValueError(f"{file} has no column {target!r}; its columns are {columns}.")
            if columns != names[0]:
                raise ValueError(f"{file} has columns {columns}, but the files before it have {names[0]}.")
        self.feature_names = [name for name in names[0] if name != target]

    def __iter__(self) -> Iterator[tuple[NDArray, NDArray]]:
        from pyarrow import parquet

        for file in self._files:
            with parquet.ParquetFile(file) as table:
                for batch in table.iter_batches(_rows_per_block(len(self.feature_names))):
                    columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.feature_names]
                    yield np.column_stack(columns), batch.column(self.target).to_numpy(zero_copy_only=False)


def open_rows(path: str | os.PathLike[str], *, target: str | None = None) -> NpyFolder | ParquetFolder:
    """Open a folder of files as a source of rows for ``fit``.

    Parameters
    ----------
    path : path-like
        A folder with Parquet files, or with pairs ``X*.npy`` and ``y*.npy`` (and ``w*.npy`` for weights).
    target : str, optional
        Name of the column of targets in Parquet files.

    Returns
    -------
    NpyFolder or ParquetFolder
        A source that can be read again and again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.sources import open_rows
    >>> folder = Path(tempfile.mkdtemp())
    >>> rng = np.random.default_rng(0)
    >>> for name in ("0", "1"):
    ...     X = rng.uniform(-1, 1, (500, 3))
    ...     np.save(folder / f"X{name}.npy", X)
    ...     np.save(folder / f"y{name}.npy", X[:, 0] * X[:, 1])
    >>> model = TensorTrainRegressor(rank=2, alpha=1e-6, random_state=0).fit(open_rows(folder))
    >>> bool(abs(model.predict([[0.5, 0.5, 0.0]]).item() - 0.25) < 0.02)
    True
    """
    folder = Path(path)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; open_rows reads a folder of .parquet or .npy files.")
    if any(folder.glob("*.parquet")):
        if target is None:
            raise ValueError(f"{folder} holds Parquet files: name the column of targets, open_rows(path, target=...).")
        return ParquetFolder(folder, target)
    if any(folder.glob("X*.npy")):
        return NpyFolder(folder)
    raise FileNotFoundError(f"{folder} holds neither *.parquet files nor pairs of X*.npy and y*.npy files.")


def is_source(X: Any) -> bool:
    """Whether ``X`` yields blocks of rows rather than holding rows itself."""
    if isinstance(X, str | bytes | list | tuple | dict) or hasattr(X, "shape") or hasattr(X, "__array__"):
        return False
    return isinstance(X, Iterable) and not hasattr(X, "__len__")


class SourcePartitions:
    """The rows of a source in partitions whose size suits the memory; each pass must yield the rows of the first one.

    A fit uses facts from one pass in later ones: labels, levels, ranges and numbers of rows. Passes are
    compared by checksums, which take a small part of the time of a pass.
    """

    def __init__(self, source: Any, max_bytes: int) -> None:
        self._source = source
        self._first: list[tuple[int, ...]] | None = None
        iterator = iter(source)
        if iterator is iter(source):
            raise ValueError(
                f"X is a {type(source).__name__}, which can be read only once, and a fit reads its rows twice. "
                "Pass an object whose __iter__ begins anew, such as polytrain.sources.open_rows(folder)."
            )
        block = next(_checked_blocks(iterator), None)
        row_bytes = 8 if block is None else 8 * max(1, block[0].shape[1])
        self._n_rows = max(1024, min(1 << 25, max_bytes // 8) // row_bytes)

    def __iter__(self) -> Iterator[tuple[NDArray, ...]]:
        marks: list[tuple[int, ...]] = []  # number of rows and checksums of each partition; 0 rows at the end
        for block in recut(_checked_blocks(self._source), self._n_rows):
            marks.append((len(block[0]), *map(_checksum, block)))
            self._compare(marks)
            yield block
        marks.append((0,))
        if len(marks) == 1 and self._first is None:
            raise ValueError("X yielded no rows; at least one is needed.")
        self._compare(marks)
        self._first = marks

    def _compare(self, marks: list[tuple[int, ...]]) -> None:
        """Compare the last of these partitions with that of the first pass. All but the last one have the same size."""
        if self._first is None or marks[-1] == self._first[len(marks) - 1]:
            return
        mark, first = marks[-1], self._first[len(marks) - 1]
        if mark[0] != first[0]:
            n_first = sum(n_rows for n_rows, *_ in self._first)
            what = f"{n_first} rows when it was first read, and {'more' if mark[0] > first[0] else 'fewer'}"
        else:
            checksums = zip_longest(("features", "targets", "weights"), first[1:], mark[1:])
            name = next(name for name, before, now in checksums if before != now)
            stop = sum(n_rows for n_rows, *_ in marks)
            what = f"other {name} in rows {stop - mark[0]} to {stop - 1}"
        raise ValueError(
            f"X yielded {what} when it was read again. A source must yield the same rows in the same order each time: "
            "do not shuffle rows or draw them at random in __iter__, and do not change its files during a fit."
        )


def _checked_blocks(blocks: Iterable[Any]) -> Iterator[tuple[NDArray, ...]]:
    """Yield blocks as arrays, all of them with the same columns, outputs and perhaps weights."""
    first: list[tuple[int, ...]] = []
    for block in blocks:
        arrays = tuple(map(np.asarray, block)) if isinstance(block, tuple | list) else ()
        if len(arrays) not in (2, 3) or arrays[0].ndim != 2:
            what = [array.shape for array in arrays] or type(block).__name__
            raise ValueError(f"a source of rows must yield (X, y) or (X, y, weights), X two-dimensional, got {what}.")
        if len({len(array) for array in arrays}) > 1:
            raise ValueError(f"blocks of X, y and weights differ in their rows: {[len(array) for array in arrays]}.")
        shapes = [array.shape[1:] for array in arrays]
        first = first or shapes
        if shapes != first:
            raise ValueError(
                f"rows of X, y and weights have the shapes {first} in one block and {shapes} in another; give all "
                "blocks the same columns, outputs and perhaps weights."
            )
        yield arrays


def recut(blocks: Iterable[tuple[NDArray, ...]], n_rows: int) -> Iterator[tuple[NDArray, ...]]:
    """Join small blocks and cut large ones, so that all but the last have ``n_rows`` rows."""
    pieces: list[list[NDArray]] = []
    count = 0
    for block in blocks:
        start = 0
        while start < len(block[0]):
            stop = start + n_rows - count
            # Copies: a piece does not keep all of its block, which may be mapped from disk.
            pieces.append([array[start:stop].copy() for array in block])
            count, start = count + len(pieces[-1][0]), stop
            if count == n_rows:
                yield tuple(map(np.concatenate, zip(*pieces, strict=True)))
                pieces, count = [], 0
    if count:
        yield tuple(map(np.concatenate, zip(*pieces, strict=True)))


def _checksum(array: NDArray) -> int:
    return zlib.crc32(repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes())
