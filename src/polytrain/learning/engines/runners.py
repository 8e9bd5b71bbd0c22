"""Runners: tasks on the workers of a Dask cluster, or in this process with results that wait on disk."""

from __future__ import annotations

import itertools
import mmap
import pickle
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

# Results of at most this many bytes stay in memory.
_SMALL = 1 << 16
_ALIGNMENT = 64

Buffers = Sequence[bytes | memoryview]


class ClusterRunner:
    """Tasks on the current Dask client; handles are its futures. Nothing else in the package knows Dask's client.

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
        futures: list[Any] = self._client.compute(list(delayed))  # type: ignore[no-untyped-call]
        return futures

    def map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Start ``function(*row)`` for every row of these columns; handles among them stand for their results."""
        return self._client.map(function, *columns, pure=False)

    def collect(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results, in order."""
        results: list[Any] = self._client.gather(list(handles))  # type: ignore[no-untyped-call]
        return results


class _Stored:
    """Handle of a result: its pickle, and then the memory of its arrays; or where these are on disk."""

    def __init__(self, buffers: Buffers, size: int, used: int) -> None:
        self.buffers, self.size = buffers, size
        self.used = used  # grows from use to use
        self.stretch: _Stretch | None = None


class SpillRunner:
    """Tasks in this process; the least recently used results beyond ``max_bytes`` of memory go to a temporary file.

    Use it as a context manager: the end removes what waits on disk. A result is deleted with its handle.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._numbers = max_bytes, itertools.count()
        self._in_memory: weakref.WeakSet[_Stored] = weakref.WeakSet()
        self._arena = Arena()

    def __enter__(self) -> SpillRunner:
        return self

    def __exit__(self, *error: object) -> None:
        self._arena.close()

    def map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        return [self.keep(function(*(self._load(entry) for entry in row))) for row in zip(*columns, strict=True)]

    def collect(self, handles: Sequence[Any]) -> Iterator[Any]:
        return (self._load(handle) for handle in handles)

    def keep(self, value: Any) -> Any:
        """Return a handle for a value; a small value is its own handle."""
        arrays: list[pickle.PickleBuffer] = []
        content = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        buffers: Buffers = [content, *(array.raw() for array in arrays)]  # not copied
        size = sum(map(len, buffers))
        if size <= _SMALL:
            return value
        handle = _Stored(buffers, size, next(self._numbers))
        self._in_memory.add(handle)
        while sum(stored.size for stored in self._in_memory) > self._max_bytes and len(self._in_memory) > 1:
            oldest = min(self._in_memory, key=attrgetter("used"))
            self._in_memory.remove(oldest)
            oldest.stretch, oldest.buffers = self._arena.write(oldest.buffers), ()
        return handle

    def _load(self, handle: Any) -> Any:
        if not isinstance(handle, _Stored):
            return handle
        handle.used = next(self._numbers)
        buffers = handle.buffers if handle.stretch is None else handle.stretch.read()
        return pickle.loads(buffers[0], buffers=buffers[1:])


@contextmanager
def _remedy(action: str) -> Iterator[None]:
    """Add the remedy to an error of the disk."""
    try:
        yield
    except (OSError, ValueError) as error:  # the latter for a file that was truncated
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(
            f"cannot {action} in {tempfile.gettempdir()}: {why}. Rows that do not fit in memory wait there during a "
            "fit; name a folder with room for them in the environment variable TMPDIR, or raise max_memory."
        ) from error


class _Pages(mmap.mmap):
    """A view of a stretch, which keeps the stretch: nothing else is written there while an array uses the view."""

    stretch: _Stretch


class _Stretch:
    """Part of an arena's file with some buffers; it is free for others once nobody refers to it."""

    def __init__(self, file_number: int, start: int, spans: Sequence[slice]) -> None:
        self._file_number, self._start, self._spans = file_number, start, spans

    def read(self) -> list[memoryview]:
        """Return the buffers, mapped: only pages that are used are read."""
        with _remedy("read waiting rows"):
            size = max(1, self._spans[-1].stop)
            pages = _Pages(self._file_number, size, access=mmap.ACCESS_READ, offset=self._start)
        pages.stretch = self
        view = memoryview(pages)
        return [view[span] for span in self._spans]


class Arena:
    """Buffers that wait on a disk, in one file without a name: it is gone with its process, however that ends."""

    def __init__(self) -> None:
        with _remedy("make a temporary file"):
            self._file = tempfile.TemporaryFile(buffering=0, prefix="polytrain-")  # noqa: SIM115
        self._end = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)  # places by their size

    def write(self, buffers: Buffers) -> _Stretch:
        """Write some buffers, at least one."""
        spans, size = [], 0
        for buffer in buffers:
            size += -size % _ALIGNMENT
            spans.append(slice(size, size + len(buffer)))
            size += len(buffer)
        # A power of two: later results often fit where earlier ones were. What is not written takes no room on a disk.
        size = 1 << (max(size, mmap.ALLOCATIONGRANULARITY) - 1).bit_length()
        free = self._free[size]
        start = free.pop() if free else self._end
        self._end = max(self._end, start + size)
        stretch = _Stretch(self._file.fileno(), start, spans)
        weakref.finalize(stretch, free.append, start).atexit = False
        with _remedy("write waiting rows"):
            for buffer, span in zip(buffers, spans, strict=True):
                self._file.seek(start + span.start)
                content = memoryview(buffer)
                while content:  # a system may take less at a time
                    content = content[self._file.write(content) :]
            self._file.truncate(self._end)  # empty buffers have a place, too
        return stretch

    def close(self) -> None:
        """Close the file; buffers that are in use stay."""
        self._file.close()
