"""Runners: tasks on the workers of a Dask cluster, or in this process with results kept on disk."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

from polytrain.learning.arena import Arena, Buffers, pack, unpack

# Results of at most this many bytes stay in memory.
_SMALL = 1 << 16
_REMEDY = (
    "Rows that do not fit in memory wait there during a fit; name a folder with room for them in the environment "
    "variable TMPDIR, or raise max_memory of polytrain.config_context."
)


class ClusterRunner:
    """Tasks on the current Dask client; handles are its futures. No other module uses Dask's client.

    Tasks are ordinary ones, without actors: results of a lost worker are computed again elsewhere.
    """

    def __init__(self) -> None:
        from distributed import get_client

        try:
            self._client = get_client()
        except ValueError:
            raise ValueError(
                "X is a Dask collection, which is fitted on the current Dask client, but there is none. Start one "
                "first: from dask.distributed import Client; client = Client()"
            ) from None

    def start(self, delayed: Sequence[Any]) -> list[Any]:
        """Start to compute Dask's own lazy objects; the results stay on the workers."""
        return list(self._client.compute(list(delayed)))  # type: ignore[no-untyped-call]

    def map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Start ``function(*row)`` for every row of these columns; handles among them stand for their results."""
        return self._client.map(function, *columns, pure=False)

    def collect(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results, in order."""
        return list(self._client.gather(list(handles)))  # type: ignore[no-untyped-call]


class _Stored:
    """Handle of a result: ``read`` returns its buffers from memory or from a disk; ``used`` grows from use to use."""

    def __init__(self, read: Callable[[], Buffers], size: int, used: int) -> None:
        self.read, self.size, self.used = read, size, used


class SpillRunner(AbstractContextManager["SpillRunner"]):
    """Tasks in this process; the least recently used results beyond ``max_bytes`` of memory go to a temporary file.

    Use it as a context manager: the exit removes the results on disk. A result is deleted with its handle.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._numbers = max_bytes, itertools.count()
        self._in_memory: weakref.WeakSet[_Stored] = weakref.WeakSet()
        self._arena = Arena("waiting rows", _REMEDY)

    def __exit__(self, *error: object) -> None:
        self._arena.close()

    def map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        return [self.keep(function(*(self._load(entry) for entry in row))) for row in zip(*columns, strict=True)]

    def collect(self, handles: Sequence[Any]) -> Iterator[Any]:
        return (self._load(handle) for handle in handles)

    def keep(self, value: Any) -> Any:
        """Return a handle for a value; a small value is its own handle."""
        buffers = pack(value)
        size = sum(map(len, buffers))
        if size <= _SMALL:
            return value
        handle = _Stored(lambda: buffers, size, next(self._numbers))
        self._in_memory.add(handle)
        while sum(stored.size for stored in self._in_memory) > self._max_bytes and len(self._in_memory) > 1:
            oldest = min(self._in_memory, key=attrgetter("used"))
            self._in_memory.remove(oldest)
            oldest.read = self._arena.write(oldest.read()).read
        return handle

    def _load(self, handle: Any) -> Any:
        if not isinstance(handle, _Stored):
            return handle
        handle.used = next(self._numbers)
        return unpack(handle.read())
