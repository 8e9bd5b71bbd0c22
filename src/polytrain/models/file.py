"""The model file: layout, checksum, atomic writing and careful reading. ``docs/model-files.md`` describes the bytes.

A model file is a safetensors file (see `polytrain.tensor_file`) whose header begins with fixed bytes and a checksum of
all others. This module does not know what the arrays and the JSON document in the metadata mean.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from polytrain.arrays import Array
from polytrain.atomic_file import write_atomically
from polytrain.tensor_file import Header, pack_tensors, parse_json, read_header, read_tensors

#: Number of the format that is written. A reader knows all numbers up to its own.
FORMAT = 1

# The largest header that is parsed: JSON of this size takes less than 150 MB as Python objects, whatever its content.
MAX_HEADER_BYTES = 1 << 22
_OPENING = b'{"__metadata__":{"format":"polytrain","sha256":"'
_DIGEST = slice(8 + len(_OPENING), 8 + len(_OPENING) + 64)
_NO_DIGEST = "0" * 64
_CHUNK = 1 << 20


class ModelFileError(ValueError):
    """A file that is not a valid model file, or a model that cannot be written as one."""


def _checksum(header: bytes, body: Any) -> str:
    """SHA-256 of all bytes of the file, those of the checksum itself taken as zeros."""
    digest = hashlib.sha256(header[: _DIGEST.start] + _NO_DIGEST.encode() + header[_DIGEST.stop :])
    for part in body:
        digest.update(part)
    return digest.hexdigest()


def write_model_file(path: str | os.PathLike[str], document: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Write a document and arrays, atomically."""
    text = json.dumps(document, separators=(",", ":"))
    metadata = {"format": "polytrain", "sha256": _NO_DIGEST, "version": str(FORMAT), "model": text}
    try:
        parse_json(text)  # the reader refuses some texts
        header, body = pack_tensors({name: _narrowed(array) for name, array in tensors.items()}, metadata)
    except ValueError as error:
        raise ModelFileError(f"the model cannot be stored: {error}") from error
    if len(header) - 8 > MAX_HEADER_BYTES:
        raise ModelFileError(
            f"the names, labels, levels and parameters take {len(header)} bytes of text, more than the "
            f"{MAX_HEADER_BYTES} of a model file. Shorten the names, leave out columns, or use pickle."
        )
    digest = _checksum(header, body).encode()
    write_atomically(path, [header[: _DIGEST.start], digest, header[_DIGEST.stop :], *body])


def read_model_file(path: str | os.PathLike[str], max_bytes: int) -> tuple[Any, dict[str, Array]]:
    """Read a file's document and arrays; only their form has been checked."""
    with open(path, "rb", opener=_open_file) as stream:
        n_bytes = os.fstat(stream.fileno()).st_size
        if n_bytes > max_bytes:
            raise ModelFileError(
                f"{path!s} has {n_bytes} bytes, more than max_bytes={max_bytes}. Raise max_bytes if you trust its size."
            )
        with naming(path, "is not a polytrain model file, or a damaged one"):
            header = read_header(stream, n_bytes, MAX_HEADER_BYTES)
        _check_header(path, header)
        checksum = _checksum(header.raw, iter(lambda: stream.read(_CHUNK), b""))
        if header.raw[_DIGEST].decode("ascii", "replace") != checksum:
            raise ModelFileError(f"{path!s} is damaged: its checksum does not match its content. Get a fresh copy.")
        with naming(path, "is damaged"):
            tensors = {name: _widened(array) for name, array in read_tensors(stream, header).items()}
    with naming(path):
        return parse_json(header.metadata["model"]), tensors


def _narrowed(array: Array) -> Array:
    """Return the numbers in 4 bytes each, if that changes none of them."""
    if array.dtype.itemsize != 8:
        return array
    with np.errstate(over="ignore", under="ignore"):
        narrow = array.astype(f"{array.dtype.kind}4")
    return narrow if np.array_equal(narrow, array) else array


def _widened(array: Array) -> Array:
    """Undo `_narrowed`."""
    return array.astype(f"{array.dtype.kind}8") if array.dtype.itemsize == 4 else array


@contextmanager
def naming(path: str | os.PathLike[str], what: str = "is not a valid model file") -> Iterator[None]:
    """Add the name of the file and the kind of problem to errors about its content."""
    try:
        yield
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path!s} {what}: {error}") from error


def _open_file(path: str, flags: int) -> int:
    """Open a regular file; a pipe would block, and a device has no size."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(f"{path} is not a regular file, so it is not a model file.")
    return os.open(path, flags)


def _check_header(path: str | os.PathLike[str], header: Header) -> None:
    """Check that this is a model file, and of a known format."""
    metadata = header.metadata
    if metadata.get("format") != "polytrain":
        raise ModelFileError(f"{path!s} is a safetensors file, but not a polytrain model file.")
    version = metadata.get("version", "")
    if not re.fullmatch("[1-9][0-9]{0,8}", version, re.ASCII):
        raise ModelFileError(f"{path!s} is damaged: {version[:20]!r} is not a format number.")
    if int(version) > FORMAT:
        raise ModelFileError(
            f"{path!s}: this model file uses format {version}; this polytrain reads up to {FORMAT}. Upgrade polytrain."
        )
    if not header.raw.startswith(_OPENING, 8) or metadata.keys() != {"format", "sha256", "version", "model"}:
        raise ModelFileError(f"{path!s} is damaged or was rewritten by another tool: its header has changed.")


class Document:
    """The document and arrays of a file; readers take every entry once, with the type it should have.

    Errors are ``ValueError`` without the name of the file; the caller adds it.
    """

    def __init__(self, content: Any, tensors: dict[str, Array]) -> None:
        if not isinstance(content, dict):
            raise ValueError("the description of the model is not a JSON object.")
        self._content, self._tensors = dict(content), dict(tensors)

    def take(self, name: str, *types: type) -> Any:
        """Return an entry of the document."""
        if name not in self._content:
            raise ValueError(f"the description of the model lacks {name!r}.")
        value = self._content.pop(name)
        if type(value) not in types:
            raise ValueError(f"{name!r} should be {' or '.join(kind.__name__ for kind in types)}, got {value!r:.60}.")
        return value

    def tensor(self, name: str, dtypes: tuple[Any, ...], shape: tuple[int | None, ...]) -> Array:
        """Return an array; None in ``shape`` fits any length."""
        if name not in self._tensors:
            raise ValueError(f"the array {name!r} is missing.")
        array = self._tensors.pop(name)
        fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        if array.dtype not in dtypes or not fits:
            raise ValueError(f"the array {name!r} should not have dtype {array.dtype} and shape {array.shape}.")
        return array

    def tensors(self, prefix: str) -> dict[str, Array]:
        """Return all arrays whose names begin with ``prefix``, by the rest of their names."""
        names = [name for name in self._tensors if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._tensors.pop(name) for name in names}

    def check_empty(self) -> None:
        """Refuse entries that no reader took: a newer writer would have raised the format number."""
        if self._content or self._tensors:
            raise ValueError(f"it holds unknown entries: {str([*self._content, *self._tensors])[:100]}.")
