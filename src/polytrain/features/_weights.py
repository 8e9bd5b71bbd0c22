"""Read float32 tensors from a safetensors file with NumPy alone.

The format: 8 bytes little-endian length of the header, the header in JSON (name -> dtype, shape, place of the bytes;
``__metadata__`` -> strings), then the tensors' bytes, C-contiguous and without gaps.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Our headers take about 1 kB; a larger number is a sign of some other file.
MAX_HEADER_BYTES = 100_000


def read_safetensors(path: Path) -> tuple[dict[str, NDArray], dict[str, str]]:
    """Return the tensors and the metadata of a file of float32 tensors, or say what is wrong with it."""
    raw = path.read_bytes()
    header_bytes = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or not 2 <= header_bytes <= min(MAX_HEADER_BYTES, len(raw) - 8):
        raise ValueError(f"{path} is no safetensors file of weights: its header length is not plausible.")
    try:
        header = json.loads(raw[8 : 8 + header_bytes])
        metadata = header.pop("__metadata__", {})
        entries = {
            name: (entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"]) for name, entry in header.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is no safetensors file of weights: its header cannot be read ({error!r}).") from None

    body = raw[8 + header_bytes :]
    tensors: dict[str, NDArray] = {}
    end = 0
    for name, (dtype, shape, start, stop) in sorted(entries.items(), key=lambda item: item[1][2]):
        if dtype != "F32":
            raise ValueError(f"{path}: {name} has dtype {dtype}; weights are F32.")
        if start != end or stop - start != 4 * prod(shape) or stop > len(body):
            raise ValueError(f"{path}: the bytes {start} to {stop} of {name} do not fit its shape {shape} or the file.")
        tensors[name] = np.frombuffer(body, dtype="<f4", count=prod(shape), offset=start).reshape(shape)
        end = stop
    if end != len(body):
        raise ValueError(f"{path}: {len(body) - end} bytes follow the last tensor.")
    return tensors, metadata
