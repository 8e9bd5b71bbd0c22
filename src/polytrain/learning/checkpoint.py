"""The state of a train after a sweep, in a file, so that an interrupted fit can continue with the same result.

A file is in the safetensors layout: the cores, and in its metadata the rest of the state, a fingerprint of the fit, and
a checksum of all of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib

from polytrain.arrays import Array
from polytrain.atomic_file import write_atomically
from polytrain.learning.settings import Settings, Start
from polytrain.maps import MapList
from polytrain.tensor_file import pack_tensors, parse_json, read_tensor_file

_FORMAT = "polytrain checkpoint 4"
_MAX_HEADER_BYTES = 1 << 24


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
    packed = [
        (kind.kind, columns, [maps[k].basis for k in columns], kind.pack(maps.members(columns), exact=True))
        for kind, columns in maps.groups
    ]
    return str(joblib.hash((asdict(plan), packed, int(start.seed), start.cores, rows)))


def _checksum(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    header, parts = pack_tensors(tensors, metadata)
    return hashlib.sha256(b"".join([header, *parts])).hexdigest()


class Checkpoint:
    """The file of one train; ``name`` is the fingerprint of the fit."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    def save(self, progress: Progress) -> None:
        """Replace the file by this state."""
        entries = asdict(progress)
        cores = {f"core.{k:05d}": core for k, core in enumerate(entries.pop("cores"))}
        metadata = {"format": _FORMAT, "fingerprint": self._name, "document": json.dumps(entries, default=int)}
        header, parts = pack_tensors(cores, metadata | {"sha256": _checksum(cores, metadata)})
        write_atomically(self._path, [header, *parts])

    def load(self) -> Progress | None:
        """Return the last state, or None if there is no file yet."""
        if not self._path.exists():
            return None
        try:
            tensors, metadata = read_tensor_file(self._path, _MAX_HEADER_BYTES)
            if metadata.get("format") != _FORMAT:
                raise ValueError(f"its format is {metadata.get('format')!r:.60}, not {_FORMAT!r}")
            if metadata.pop("sha256", None) != _checksum(tensors, metadata):
                raise ValueError("its checksum is wrong")
        except ValueError as error:
            reason = str(error).rstrip(".")
            raise ValueError(f"{self._path} is not a usable checkpoint: {reason}. Delete it to start anew.") from error
        if metadata["fingerprint"] != self._name:
            raise ValueError(
                f"{self._path} belongs to a fit with other rows, parameters or random_state. Name another folder as "
                "checkpoint, or delete this one to start anew."
            )
        entries = parse_json(metadata["document"])
        history = [{**record, "ranks": tuple(record["ranks"])} for record in entries.pop("history")]
        return Progress([tensors[name] for name in sorted(tensors)], history=history, **entries)
