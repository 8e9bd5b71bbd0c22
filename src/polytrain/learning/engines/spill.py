"""Run tasks in this process, one partition at a time; results that do not fit in a memory budget wait on disk."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.engines.arena import Arena, Stretch

__all__ = ["SpillRunner"]

# Results no larger than this are simply kept.
_SMALL = 1 << 16


class _Place(NamedTuple):
    """Where an array stood in a result: its number among the arrays."""

    number: int


class _Group(NamedTuple):
    """A tuple or a dataclass in a result: its kind, and what was in it."""

    kind: type
    entries: list[Any]


class _Stored:
    """Names a result whose arrays may be in memory or on disk; when nobody needs it any more, they are removed."""

    def __init__(self, number: int, form: Any) -> None:
        self.number, self.form = number, form


def _take_apart(value: Any, arrays: list[NDArray]) -> Any:
    """Move the arrays of a result to a list, at any depth, and return its form without them."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        arrays.append(value)
        return _Place(len(arrays) - 1)
    if is_dataclass(value) and not isinstance(value, type):
        inner: Sequence[Any] = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, tuple):
        inner = value
    else:
        return value
    return _Group(type(value), [_take_apart(entry, arrays) for entry in inner])


def _put_together(form: Any, arrays: Sequence[NDArray]) -> Any:
    """Undo `_take_apart`."""
    if isinstance(form, _Place):
        return arrays[form.number]
    if not isinstance(form, _Group):
        return form
    entries = [_put_together(entry, arrays) for entry in form.entries]
    return tuple(entries) if form.kind is tuple else form.kind(*entries)


class SpillRunner:
    """Tasks in this process with a memory budget. Use it as a context manager: the end removes what waits on disk.

    Parameters
    ----------
    max_bytes : int
        Bytes of results that may stay in memory; those not used for longest go to a temporary file first.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._n_bytes = max_bytes, 0
        self._numbers = itertools.count()
        self._in_memory: OrderedDict[int, tuple[list[NDArray], int]] = OrderedDict()
        self._on_disk: dict[int, Stretch] = {}
        self._arena = Arena()

    def __enter__(self) -> SpillRunner:
        return self

    def __exit__(self, *error: object) -> None:
        self._in_memory.clear()
        self._on_disk.clear()
        self._arena.close()

    def map(self, function: Callable, *columns: Sequence[Any]) -> list[Any]:
        return [self.keep(function(*(self._load(entry) for entry in row))) for row in zip(*columns, strict=True)]

    def collect(self, handles: Sequence[Any]) -> Iterator[Any]:
        return (self._load(handle) for handle in handles)

    def keep(self, value: Any) -> Any:
        """Return a handle for a value; a small value is its own handle."""
        arrays: list[NDArray] = []
        form = _take_apart(value, arrays)
        size = sum(array.nbytes for array in arrays)
        if size <= _SMALL:
            return value
        handle = _Stored(next(self._numbers), form)
        weakref.finalize(handle, self._forget, handle.number)
        self._remember(handle.number, arrays, size)
        return handle

    def _load(self, handle: Any) -> Any:
        if not isinstance(handle, _Stored):
            return handle
        if handle.number in self._in_memory:
            self._in_memory.move_to_end(handle.number)
            arrays, _ = self._in_memory[handle.number]
        else:
            arrays = self._on_disk[handle.number].read()
        return _put_together(handle.form, arrays)

    def _remember(self, number: int, arrays: list[NDArray], size: int) -> None:
        self._in_memory[number] = arrays, size
        self._n_bytes += size
        while self._n_bytes > self._max_bytes and len(self._in_memory) > 1:
            oldest, (values, freed) = self._in_memory.popitem(last=False)
            self._n_bytes -= freed
            self._on_disk[oldest] = self._arena.write(values)

    def _forget(self, number: int) -> None:
        if number in self._in_memory:
            self._n_bytes -= self._in_memory.pop(number)[1]
        self._on_disk.pop(number, None)
