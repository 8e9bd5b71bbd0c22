"""Run tasks in this process, one partition at a time; results that do not fit in a memory budget wait on disk."""

from __future__ import annotations

import itertools
import math
import mmap
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SpillRunner"]

# Results no larger than this are simply kept.
_SMALL = 1 << 16
_ALIGNMENT = 64


class _Stored:
    """Names a result that may be in memory or on disk; when nobody needs it any more, it is removed from both."""

    def __init__(self, number: int, kind: Any) -> None:
        self.number, self.kind = number, kind


def _take_apart(value: Any) -> list[Any]:
    """Entries of a result: of a tuple or a dataclass its fields, else the value itself."""
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    return list(value) if isinstance(value, tuple) else [value]


def _put_together(kind: Any, entries: Sequence[Any]) -> Any:
    if issubclass(kind, np.ndarray):
        return entries[0]
    return tuple(entries) if kind is tuple else kind(*entries)


class SpillRunner:
    """Tasks in this process with a memory budget. Use it as a context manager: the end removes its files.

    Parameters
    ----------
    max_bytes : int
        Bytes of results that may stay in memory; those not used for longest go to a temporary folder first.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._n_bytes = max_bytes, 0
        self._numbers = itertools.count()
        self._in_memory: OrderedDict[int, tuple[list[Any], int]] = OrderedDict()
        self._on_disk: dict[int, list[Any]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="polytrain-")

    def __enter__(self) -> SpillRunner:
        return self

    def __exit__(self, *error: object) -> None:
        self._in_memory.clear()
        self._folder.cleanup()

    def map(self, function: Callable, *columns: Sequence[Any]) -> list[Any]:
        return [self.keep(function(*(self._load(entry) for entry in row))) for row in zip(*columns, strict=True)]

    def collect(self, handles: Sequence[Any]) -> Iterator[Any]:
        return (self._load(handle) for handle in handles)

    def keep(self, value: Any) -> Any:
        """Return a handle for a value; a small value is its own handle."""
        entries = _take_apart(value)
        size = sum(entry.nbytes for entry in entries if isinstance(entry, np.ndarray))
        if size <= _SMALL:
            return value
        handle = _Stored(next(self._numbers), type(value))
        weakref.finalize(handle, self._forget, handle.number)
        self._remember(handle.number, entries, size)
        return handle

    def _load(self, handle: Any) -> Any:
        if not isinstance(handle, _Stored):
            return handle
        if handle.number in self._in_memory:
            self._in_memory.move_to_end(handle.number)
            entries, _ = self._in_memory[handle.number]
        else:
            entries = self._read(handle.number)
        return _put_together(handle.kind, entries)

    def _remember(self, number: int, entries: list[Any], size: int) -> None:
        self._in_memory[number] = entries, size
        self._n_bytes += size
        while self._n_bytes > self._max_bytes and len(self._in_memory) > 1:
            oldest, (values, freed) = self._in_memory.popitem(last=False)
            self._n_bytes -= freed
            self._write(oldest, values)

    def _forget(self, number: int) -> None:
        if number in self._in_memory:
            self._n_bytes -= self._in_memory.pop(number)[1]
        if self._on_disk.pop(number, None) is not None:
            self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return Path(self._folder.name) / f"{number}.rows"

    def _write(self, number: int, entries: list[Any]) -> None:
        path, places = self._path(number), []
        try:
            with path.open("wb") as file:
                for entry in entries:
                    if isinstance(entry, np.ndarray):
                        places.append((entry.dtype, entry.shape, file.tell()))
                        np.ascontiguousarray(entry).tofile(file)
                        file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                    else:
                        places.append(entry)
        except OSError as error:
            raise OSError(
                f"cannot write {path}: {error.strerror}. Rows that do not fit in memory wait there; name a folder with "
                "more room in the environment variable TMPDIR, or raise max_memory."
            ) from error
        self._on_disk[number] = places

    def _read(self, number: int) -> list[Any]:
        """Entries of a result on disk. Arrays are mapped: of the features, a task needs no more than one column."""
        with self._path(number).open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

        def entry(place: Any) -> Any:
            if not isinstance(place, tuple):
                return place
            dtype, shape, offset = place
            return np.frombuffer(mapped, dtype, math.prod(shape), offset).reshape(shape)

        return [entry(place) for place in self._on_disk[number]]
