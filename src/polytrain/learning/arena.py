"""Objects as buffers, and buffers in unnamed files, which vanish with the processes that hold them."""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ALIGNMENT = 64

Buffers = Sequence[bytes | memoryview]


def pack(value: Any, pickler: Any = pickle) -> Buffers:
    """Return the pickle of a value, and then the memory of its arrays, which is not copied."""
    arrays: list[pickle.PickleBuffer] = []
    content = pickler.dumps(value, protocol=5, buffer_callback=arrays.append)
    return [content, *(array.raw() for array in arrays)]


def unpack(buffers: Buffers) -> Any:
    """Return the value of `pack`; its arrays use the buffers."""
    return pickle.loads(buffers[0], buffers=buffers[1:])


class _Pages(mmap.mmap):
    """A view of a stretch, which keeps the stretch: nothing else is written there while an array uses the view."""

    stretch: Any


def map_buffers(handle: int, spans: Sequence[slice], start: int = 0, stretch: Any = None) -> list[memoryview]:
    """Return buffers in a file, mapped: only pages that are used are read."""
    pages = _Pages(handle, max(1, spans[-1].stop), access=mmap.ACCESS_READ, offset=start)
    pages.stretch = stretch
    view = memoryview(pages)
    return [view[span] for span in spans]


class _Stretch:
    """Part of an arena's file with some buffers; it is free for others once nobody refers to it."""

    def __init__(self, arena: Arena, start: int, spans: Sequence[slice]) -> None:
        self._arena, self._start, self.spans = arena, start, spans

    def read(self) -> list[memoryview]:
        """Return the buffers."""
        with self._arena.remedied(f"read {self._arena.content}"):
            return map_buffers(self._arena.handle, self.spans, self._start, self)


class Arena:
    """Buffers in one file; errors name its content and the remedy. ``folder`` is that of temporary files if None."""

    def __init__(self, content: str, remedy: str, folder: Path | None = None) -> None:
        self.content, self._remedy = content, remedy
        with self.remedied("make a temporary file"):
            prefix = f"polytrain-{os.getpid()}-"
            self._file = tempfile.TemporaryFile(buffering=0, prefix=prefix, dir=folder)  # noqa: SIM115
        self.handle = self._file.fileno()
        self._end = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)  # places by their size

    @contextmanager
    def remedied(self, action: str) -> Iterator[None]:
        """Add the remedy to an error of the disk."""
        try:
            yield
        except (OSError, ValueError) as error:  # the latter for a file that was truncated
            why = getattr(error, "strerror", None) or str(error)
            folder = tempfile.gettempdir()
            raise OSError(f"cannot {action} in {folder}: {why}. {self._remedy}") from error

    def write(self, buffers: Buffers) -> _Stretch:
        """Write some buffers, at least one."""
        spans, size = [], 0
        for buffer in buffers:
            size += -size % _ALIGNMENT
            spans.append(slice(size, size + len(buffer)))
            size += len(buffer)
        # A power of two: later results often fit where earlier ones were. Unwritten bytes take no space on a disk.
        size = 1 << (max(size, mmap.ALLOCATIONGRANULARITY) - 1).bit_length()
        free = self._free[size]
        start = free.pop() if free else self._end
        self._end = max(self._end, start + size)
        stretch = _Stretch(self, start, spans)
        weakref.finalize(stretch, free.append, start).atexit = False
        with self.remedied(f"write {self.content}"):
            for buffer, span in zip(buffers, spans, strict=True):
                self._file.seek(start + span.start)
                content = memoryview(buffer)
                while content:  # a system may take less at a time
                    content = content[self._file.write(content) :]
            self._file.truncate(self._end)  # empty buffers need a position, too
        return stretch

    def close(self) -> None:
        """Close the file; buffers that are in use stay."""
        self._file.close()
