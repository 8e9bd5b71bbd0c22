"""The model file: layout, checksum, atomic writing and careful reading. ``docs/model-files.md`` describes the bytes.

A model file is a safetensors file (see `polytrain.tensor_file`) whose header begins with fixed bytes and a checksum of
all others. What the arrays and the JSON document in the metadata mean is not the business of this module.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from typing import Any, BinaryIO

from numpy.typing import NDArray

from polytrain.atomic_file import write_atomically
from polytrain.models.errors import ModelFileError
from polytrain.tensor_file import Header, pack_tensors, parse_json, read_header, read_tensors

__all__ = ["FORMAT", "read_model_file", "write_model_file"]

#: Number of the format that is written. A reader knows all numbers up to its own.
FORMAT = 1

# The largest header that is parsed: JSON of this size takes less than 150 MB as Python objects, whatever it says.
MAX_HEADER_BYTES = 1 << 22
_OPENING = b'{"__metadata__":{"format":"polytrain","sha256":"'
_DIGEST = slice(8 + len(_OPENING), 8 + len(_OPENING) + 64)
_NO_DIGEST = "0" * 64
_CHUNK = 1 << 20


def _checksum(header: bytes, body: Any) -> str:
    """SHA-256 of all bytes of the file, those of the checksum itself taken as zeros."""
    digest = hashlib.sha256(header[: _DIGEST.start] + _NO_DIGEST.encode() + header[_DIGEST.stop :])
    for part in body:
        digest.update(part)
    return digest.hexdigest()


def write_model_file(path: str | os.PathLike[str], document: dict[str, Any], tensors: dict[str, NDArray]) -> None:
    """Write a document and arrays, atomically."""
    text = json.dumps(document, separators=(",", ":"))
    metadata = {"format": "polytrain", "sha256": _NO_DIGEST, "version": str(FORMAT), "model": text}
    try:
        header, body = pack_tensors(tensors, metadata)
    except ValueError as error:
        raise ModelFileError(f"the model cannot be stored: {error}") from error
    if len(header) - 8 > MAX_HEADER_BYTES:
        raise ModelFileError(
            f"names, labels and parameters of the model take {len(header)} bytes of text, more than the "
            f"{MAX_HEADER_BYTES} that a model file may hold. Shorten the names, or use pickle."
        )
    digest = _checksum(header, body).encode()
    write_atomically(path, [header[: _DIGEST.start], digest, header[_DIGEST.stop :], *body])


def read_model_file(path: str | os.PathLike[str], max_bytes: int) -> tuple[Any, dict[str, NDArray]]:
    """Read a file's document and arrays. Nothing in them has been checked but their form."""
    with open(path, "rb", opener=_open_file) as stream:
        n_bytes = os.fstat(stream.fileno()).st_size
        if n_bytes > max_bytes:
            raise ModelFileError(
                f"{path!s} has {n_bytes} bytes, more than max_bytes={max_bytes}. Raise max_bytes if you trust its size."
            )
        try:
            header = read_header(stream, n_bytes, MAX_HEADER_BYTES)
        except ValueError as error:
            raise ModelFileError(f"{path!s} is no polytrain model file, or a damaged one: {error}") from None
        _check_header(path, header)
        if header.raw[_DIGEST].decode("ascii", "replace") != _checksum(header.raw, _chunks(stream)):
            raise ModelFileError(f"{path!s} is damaged: its checksum does not match its content. Get a fresh copy.")
        try:
            tensors = read_tensors(stream, header)
        except ValueError as error:
            raise ModelFileError(f"{path!s} is damaged: {error}") from None
    try:
        content = parse_json(header.metadata["model"])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path!s} is no valid model file: {error}") from error
    return content, tensors


def _open_file(path: str, flags: int) -> int:
    """Open a regular file; a pipe would block, and a device has no size."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError(f"{path} is not a regular file, so it is no model file.")
    return os.open(path, flags)


def _chunks(stream: BinaryIO) -> Any:
    return iter(lambda: stream.read(_CHUNK), b"")


def _check_header(path: str | os.PathLike[str], header: Header) -> None:
    """Check that this is a model file, and of a known format."""
    metadata = header.metadata
    if metadata.get("format") != "polytrain":
        raise ModelFileError(f"{path!s} is a safetensors file, but no polytrain model file.")
    version = metadata.get("version", "")
    if not re.fullmatch("[1-9][0-9]{0,8}", version, re.ASCII):
        raise ModelFileError(f"{path!s} is damaged: {version[:20]!r} is no format number.")
    if int(version) > FORMAT:
        raise ModelFileError(
            f"{path!s}: this model file uses format {version}; this polytrain reads up to {FORMAT}. Upgrade polytrain."
        )
    if not header.raw.startswith(_OPENING, 8) or metadata.keys() != {"format", "sha256", "version", "model"}:
        raise ModelFileError(f"{path!s} is damaged or was rewritten by another tool: its header is not as saved.")
