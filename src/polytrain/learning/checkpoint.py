"""The state of a train after a sweep, in a file, so that an interrupted fit can continue with the same result.

A file is in the safetensors layout: the cores, and in its metadata the rest of the state, a checksum, and a fingerprint
of the fit. Reading trusts nothing, even if the checksum is right.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from polytrain.arrays import Array
from polytrain.atomic_file import write_atomically
from polytrain.learning.settings import Settings, Start
from polytrain.learning.sweep import STOP_REASONS
from polytrain.maps import MapList
from polytrain.tensor_file import pack_tensors, parse_json, read_tensor_file

_FORMAT = "polytrain checkpoint 3"
_MAX_HEADER_BYTES = 1 << 24
_METADATA = {"format", "sha256", "fingerprint", "document"}
_COUNTS, _NUMBERS = ("sweep", "n_rows"), ("loss", "objective", "decrease", "seconds")


@dataclass(frozen=True)
class Progress:
    """State of a train: all of its cores are orthogonal but the one at ``position``.

    ``stop_reason`` is None if there are more sweeps.
    """

    cores: list[Array]
    position: int
    stop_reason: str | None
    history: list[dict[str, Any]]
    random_state: dict[str, Any]


def fingerprint(plan: Settings, maps: MapList, start: Start, rows: str) -> str:
    """Name a fit: two fits with the same name end with the same cores."""
    packed = [(kind.kind, columns, kind.pack(maps.members(columns))) for kind, columns in maps.groups]
    names = [[kind, columns, [maps[k].basis for k in columns]] for kind, columns, _ in packed]
    digest = hashlib.sha256(json.dumps([asdict(plan), names, int(start.seed), rows]).encode())
    arrays = [array for _, _, tensors in packed for array in tensors.values()]
    for array in (*arrays, *(start.cores or ())):
        digest.update(f"{array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _checksum(document: str, tensors: Mapping[str, Array]) -> str:
    digest = hashlib.sha256(document.encode())
    for part in pack_tensors(tensors, {})[1]:
        digest.update(part)
    return digest.hexdigest()


class Checkpoint:
    """The file of one train with these dims and ranks; ``name`` is the fingerprint of the fit."""

    def __init__(self, path: Path, name: str, dims: tuple[int, ...], ranks: tuple[int, ...]) -> None:
        self.path, self._name, self._dims, self._ranks = path, name, dims, ranks

    def save(self, progress: Progress) -> None:
        """Replace the file by this state."""
        entries = asdict(progress)
        cores = {f"core.{k:05d}": core for k, core in enumerate(entries.pop("cores"))}
        document = json.dumps(entries, default=int)
        metadata = {"format": _FORMAT, "fingerprint": self._name, "document": document}
        header, parts = pack_tensors(cores, metadata | {"sha256": _checksum(document, cores)})
        write_atomically(self.path, [header, *parts])

    def load(self) -> Progress | None:
        """Return the last state, or None if there is no file yet."""
        if not self.path.exists():
            return None
        try:
            tensors, metadata = read_tensor_file(self.path, _MAX_HEADER_BYTES)
            _check_metadata(metadata, tensors)
            if metadata["fingerprint"] == self._name:
                return self._read(parse_json(metadata["document"]), tensors)
        except ValueError as error:
            raise self.unusable(error) from error
        raise ValueError(
            f"{self.path} belongs to a fit with other rows, parameters or random_state. Name another folder as "
            "checkpoint, or delete this one to start anew."
        )

    def unusable(self, reason: object) -> ValueError:
        """Return the error that says why a fit cannot continue from this file."""
        return ValueError(
            f"{self.path} is not a usable checkpoint: {str(reason).rstrip('.')}. Delete it to start anew."
        )

    def _read(self, entries: Any, tensors: Mapping[str, Array]) -> Progress:
        """Check the content of the file and return it."""
        if not isinstance(entries, dict) or entries.keys() != {field.name for field in fields(Progress)} - {"cores"}:
            raise ValueError("its document does not have the entries of a checkpoint")
        n_features, history, reason = len(self._dims), entries["history"], entries["stop_reason"]
        if not _is_count(entries["position"], 0) or entries["position"] not in (0, n_features - 1):
            raise ValueError("its position is at no end of the train")
        if not (reason is None or reason in STOP_REASONS):
            raise ValueError("its reason to stop is not plausible")
        if not isinstance(history, list) or not history:
            raise ValueError("it has no history")
        _check_random_state(entries["random_state"])
        records = [self._record(number, record) for number, record in enumerate(history, 1)]
        return Progress(cores=self._cores(tensors), **{**entries, "history": records})

    def _cores(self, tensors: Mapping[str, Array]) -> list[Array]:
        shapes = list(zip(self._ranks, self._dims, self._ranks[1:], strict=False))
        names = [f"core.{k:05d}" for k in range(len(shapes))]
        if sorted(tensors) != names or any(tensors[name].dtype != np.float64 for name in names):
            raise ValueError("it does not have the cores of the train")
        cores = [tensors[name] for name in names]
        if [core.shape for core in cores] != shapes or not all(np.isfinite(core).all() for core in cores):
            raise ValueError("its cores have other shapes than those of the train, or are not finite")
        return cores

    def _record(self, number: int, record: Any) -> dict[str, Any]:
        if not isinstance(record, dict) or record.keys() != {*_COUNTS, *_NUMBERS, "ranks"}:
            raise ValueError(f"sweep {number} of its history does not have the entries of a sweep")
        counts = all(_is_count(record[name], 1) for name in _COUNTS)
        numbers = all(type(record[name]) is float and math.isfinite(record[name]) for name in _NUMBERS)
        if not counts or not numbers or record["sweep"] != number or record["ranks"] != list(self._ranks):
            raise ValueError(f"sweep {number} of its history is not plausible")
        return {**record, "ranks": self._ranks}


def _check_metadata(metadata: Mapping[str, str], tensors: Mapping[str, Array]) -> None:
    if metadata.get("format") != _FORMAT:
        raise ValueError(f"its format is {metadata.get('format')!r:.60}, not {_FORMAT!r}")
    if metadata.keys() != _METADATA:
        raise ValueError("its metadata does not have the entries of a checkpoint")
    if metadata["sha256"] != _checksum(metadata["document"], tensors):
        raise ValueError("its checksum is wrong")


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and least <= value < 1 << 62


def _check_random_state(state: Any) -> None:
    """Refuse what is not the state of NumPy's default generator."""
    generator = np.random.default_rng(0).bit_generator
    with suppress(TypeError, ValueError, KeyError, OverflowError):
        generator.state = state
    if generator.state != state:
        raise ValueError("its random numbers have no plausible state")
