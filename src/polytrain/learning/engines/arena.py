"""Arrays that wait on a disk, in one file without a name: it is gone with its process, however that ends."""

from __future__ import annotations

import math
import mmap
import tempfile
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arena", "Stretch"]

_ALIGNMENT = 64


@contextmanager
def _remedy(action: str) -> Iterator[None]:
    """Say what helps where a disk refuses."""
    try:
        yield
    except (OSError, ValueError) as error:  # the latter from a file that somebody cut
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(
            f"cannot {action} in {tempfile.gettempdir()}: {why}. Rows that do not fit in memory wait there during a "
            "fit; name a folder with room for them in the environment variable TMPDIR, or raise max_memory."
        ) from error


class _Pages(mmap.mmap):
    """A view of a stretch, which keeps it: nothing else is written there as long as an array looks at it."""

    stretch: Stretch


class Stretch:
    """A place in an arena with some arrays. When nobody needs it any more, it is free for others."""

    def __init__(self, file_number: int, start: int, places: Sequence[tuple[np.dtype, tuple[int, ...], int]]) -> None:
        self._file_number, self._start, self._places = file_number, start, places

    def read(self) -> list[NDArray]:
        """Return the arrays. They are mapped: of what nobody looks at, nothing is read."""
        dtype, shape, offset = self._places[-1]
        size = max(1, offset + dtype.itemsize * math.prod(shape))
        with _remedy("read waiting rows"):
            pages = _Pages(self._file_number, size, access=mmap.ACCESS_READ, offset=self._start)
        pages.stretch = self
        return [np.frombuffer(pages, kind, math.prod(n), at).reshape(n) for kind, n, at in self._places]


class Arena:
    """The file, and which parts of it are free."""

    def __init__(self) -> None:
        with _remedy("make a temporary file"):
            self._file = tempfile.TemporaryFile(buffering=0, prefix="polytrain-")  # noqa: SIM115
        self._end = 0
        self._free: list[tuple[int, int]] = []
        self._released: deque[tuple[int, int]] = deque()  # by finalizers, which may run at any moment

    def write(self, arrays: Sequence[NDArray]) -> Stretch:
        """Write some arrays, at least one."""
        places, size = [], 0
        for array in arrays:
            size += -size % _ALIGNMENT
            places.append((array.dtype, array.shape, size))
            size += array.nbytes
        start, stop = self._take(size)
        stretch = Stretch(self._file.fileno(), start, places)
        weakref.finalize(stretch, self._released.append, (start, stop)).atexit = False
        with _remedy("write waiting rows"):
            for array, (_, _, offset) in zip(arrays, places, strict=True):
                self._write_at(start + offset, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            self._file.truncate(self._end)  # arrays without entries have a place, too
        return stretch

    def _write_at(self, position: int, content: memoryview) -> None:
        self._file.seek(position)
        while content:  # a system may take less at a time
            content = content[self._file.write(content) :]

    def _take(self, size: int) -> tuple[int, int]:
        """Find a free part, a whole number of pages long: the first that is large enough, or one at the end."""
        size = max(1, size)
        size += -size % mmap.ALLOCATIONGRANULARITY
        self._collect()
        for index, (start, stop) in enumerate(self._free):
            if stop - start >= size:
                self._free[index] = start + size, stop
                return start, start + size
        self._end += size
        return self._end - size, self._end

    def _collect(self) -> None:
        """Join what was released with what is free."""
        if not self._released:
            return
        while self._released:
            self._free.append(self._released.popleft())
        joined: list[tuple[int, int]] = []
        for start, stop in sorted(part for part in self._free if part[0] < part[1]):
            if joined and joined[-1][1] == start:
                joined[-1] = joined[-1][0], stop
            else:
                joined.append((start, stop))
        self._free = joined

    def close(self) -> None:
        """Let go of the file; arrays that somebody looks at stay."""
        self._file.close()
