"""Read and write files of named arrays in the safetensors layout, with NumPy alone.

The layout: 8 bytes little-endian length of the header, the header in JSON (name -> dtype, shape, place of the bytes;
``__metadata__`` -> strings), then the arrays' bytes, little-endian, C-contiguous and without gaps. The reader checks
the header against the size of the file before it reads or allocates anything. Errors are ``ValueError`` and do not name
the file; the caller does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from polytrain.records import read_value

__all__ = ["Header", "Place", "pack_tensors", "parse_json", "read_header", "read_tensor_file", "read_tensors"]

DTYPES = {"BOOL": np.dtype("?")} | {
    f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
    for size in (1, 2, 4, 8)
    for kind in "UIF"
    if (kind, size) != ("F", 1)
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_MAX_DIMENSIONS = 8
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Place:
    """Position of an array: ``data_offsets`` are its first byte after the header, and the one behind its last."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


@dataclass(frozen=True)
class Header:
    """The content of a file; ``raw`` are its first bytes, up to the first array, and places are in order."""

    raw: bytes
    metadata: dict[str, str]
    places: dict[str, Place]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, or raise ``ValueError``: also for NaN, Infinity, and text that UTF-8 cannot hold."""
    text = text if isinstance(text, str) else text.decode()
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
        if not text.isascii() or _SURROGATE.search(text):
            # Half of a pair of surrogates can be neither printed nor stored. Pairs are one character by now.
            json.dumps(content, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ValueError(f"a text holds {half!r}, which is half of a character; rename it") from None
    return content


def _as_place(name: str, entry: Any, n_bytes: int) -> Place:
    place: Place = read_value(repr(name), entry, Place)
    if place.dtype not in DTYPES:
        raise ValueError(f"{name!r} has dtype {place.dtype}; supported are {', '.join(DTYPES)}")
    # No size in the file can exceed the file.
    if len(place.shape) > _MAX_DIMENSIONS or max(place.shape + place.data_offsets) > n_bytes:
        raise ValueError(f"the shape or the offsets of {name!r} are not plausible")
    _check_shape(name, place.shape)
    return place


def _check_shape(name: str, shape: Sequence[int]) -> None:
    """Refuse rows without numbers: a file of any size could claim any number of them."""
    if 0 in shape[1:] and shape[0]:
        raise ValueError(f"{name!r} has the shape {tuple(shape)}: {shape[0]} lines without a number")


def read_header(stream: BinaryIO, n_bytes: int, max_header_bytes: int) -> Header:
    """Read and check the header of a file of ``n_bytes`` bytes."""
    opening = stream.read(8)
    length = int.from_bytes(opening, "little")
    if len(opening) < 8 or not 2 <= length <= min(max_header_bytes, n_bytes - 8):
        raise ValueError("its header length is not plausible.")
    raw = stream.read(length)
    if len(raw) < length:
        raise ValueError("it ends within its header.")
    try:
        content = parse_json(raw)
        if not isinstance(content, dict):
            raise ValueError("the header is not a JSON object")
        metadata = read_value("__metadata__", content.pop("__metadata__", {}), dict[str, str])
        places = [(name, _as_place(name, entry, n_bytes)) for name, entry in content.items()]
    except ValueError as error:
        raise ValueError(f"its header cannot be read ({error}).") from None
    places.sort(key=lambda item: item[1].data_offsets)
    end, n_left = 0, n_bytes - 8 - length
    for name, place in places:
        start, stop = place.data_offsets
        if start != end or stop != end + DTYPES[place.dtype].itemsize * prod(place.shape) or stop > n_left:
            raise ValueError(f"the bytes {start} to {stop} of {name} do not fit its shape or the file.")
        end = stop
    if end != n_left:
        raise ValueError(f"{n_left - end} bytes follow the last tensor.")
    return Header(opening + raw, metadata, dict(places))


def read_tensors(stream: BinaryIO, header: Header) -> dict[str, NDArray]:
    """Read all arrays of a checked header; they are writable and in the machine's byte order."""
    stream.seek(len(header.raw))
    tensors = {}
    for name, place in header.places.items():
        dtype, (start, stop) = DTYPES[place.dtype], place.data_offsets
        raw = bytearray(stream.read(stop - start))
        if len(raw) != stop - start:
            raise ValueError("the file became shorter while it was read.")
        if dtype.kind == "b" and raw and max(raw) > 1:
            raise ValueError(f"{name} holds bytes other than 0 and 1, but its dtype is BOOL.")
        tensors[name] = np.frombuffer(raw, dtype).reshape(place.shape).astype(dtype.newbyteorder("="), copy=False)
    return tensors


def read_tensor_file(path: Path, max_header_bytes: int) -> tuple[dict[str, NDArray], dict[str, str]]:
    """Return the arrays and the metadata of a file."""
    with path.open("rb") as stream:
        header = read_header(stream, path.stat().st_size, max_header_bytes)
        return read_tensors(stream, header), header.metadata


def pack_tensors(tensors: Mapping[str, NDArray], metadata: Mapping[str, str]) -> tuple[bytes, list[bytes]]:
    """Return the header and the arrays' bytes of a file, metadata first and in the given order."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts: list[bytes] = []
    end = 0
    # Wide numbers first: then every array is aligned if the first one is.
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].itemsize):
        little = tensor.astype(tensor.dtype.newbyteorder("<"), copy=False)
        if little.dtype not in _NAMES:
            raise ValueError(f"{name} has the dtype {tensor.dtype}, which the file format does not support.")
        _check_shape(name, tensor.shape)
        parts.append(little.tobytes(order="C"))
        start, end = end, end + len(parts[-1])
        header[name] = {"dtype": _NAMES[little.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    raw = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw, parts
