"""The state of a train after a sweep, in a file, so that an interrupted fit can go on with the same result.

A file is in the safetensors layout (``polytrain.tensor_file``): the cores, and in its metadata a document with the
place in the schedule, the history and the state of the random numbers. It is written atomically, carries a checksum,
and names the fit that it belongs to by a fingerprint of the plan, the seed and the rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.atomic_file import write_atomically
from polytrain.maps import MapList
from polytrain.tensor_file import pack_tensors, parse_json, read_tensor_file

__all__ = ["Checkpoint", "Progress", "fingerprint"]

_FORMAT = "polytrain checkpoint 3"
_MAX_HEADER_BYTES = 1 << 24


@dataclass(frozen=True)
class Progress:
    """How far a train has come.

    Attributes
    ----------
    cores : list of ndarray
    position : int
        The core that is not orthogonal.
    sampled : bool
        Whether the first sweeps see samples of the rows.
    stage : int
        Index of the sample of the rows that the last sweep saw.
    n_sweeps : int
        Sweeps over that sample.
    stop_reason : str or None
        Why the sweeps over that sample ended; None if they go on.
    history : list of dict
    random_state : dict
        State of the random numbers.
    """

    cores: list[NDArray]
    position: int
    sampled: bool
    stage: int
    n_sweeps: int
    stop_reason: str | None
    history: list[dict]
    random_state: dict


def fingerprint(plan: Any, maps: MapList, job: Any, rows: str) -> str:
    """Name a fit: two fits with the same name end with the same cores."""
    packed = [(kind.kind, columns, kind.pack(maps.members(columns))) for kind, columns in maps.groups]
    names = [[kind, columns, entries] for kind, columns, (entries, _) in packed]
    digest = hashlib.sha256(json.dumps([asdict(plan), names, int(job.seed), rows]).encode())
    arrays = [array for _, _, (_, tensors) in packed for array in tensors.values()]
    for array in (*arrays, *(job.start or ())):
        digest.update(f"{array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _checksum(document: str, parts: Sequence[bytes]) -> str:
    digest = hashlib.sha256(document.encode())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class Checkpoint:
    """One train's file.

    Parameters
    ----------
    path : Path
    name : str
        Fingerprint of the fit.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self._name = path, name

    def save(self, progress: Progress) -> None:
        """Replace the file by this state."""
        entries = asdict(progress)
        cores = {f"core.{k:05d}": np.ascontiguousarray(core) for k, core in enumerate(entries.pop("cores"))}
        document = json.dumps(entries, default=int)
        _, parts = pack_tensors(cores, {})
        metadata = {
            "format": _FORMAT,
            "sha256": _checksum(document, parts),
            "fingerprint": self._name,
            "document": document,
        }
        header, parts = pack_tensors(cores, metadata)
        write_atomically(self.path, [header, *parts])

    def load(self) -> Progress | None:
        """Return the last state, or None if there is no file yet."""
        if not self.path.exists():
            return None
        try:
            tensors, metadata = read_tensor_file(self.path, _MAX_HEADER_BYTES)
            if metadata.get("format") != _FORMAT:
                raise ValueError(f"its format is {metadata.get('format')!r}, not {_FORMAT!r}")
            cores = [tensors[name] for name in sorted(tensors)]
            _, parts = pack_tensors(tensors, {})
            if metadata["sha256"] != _checksum(metadata["document"], parts):
                raise ValueError("its checksum is wrong")
            entries = parse_json(metadata["document"])
        except (ValueError, KeyError) as error:
            raise ValueError(f"{self.path} is no usable checkpoint: {error}. Delete it to start anew.") from error
        if metadata["fingerprint"] != self._name:
            raise ValueError(
                f"{self.path} belongs to a fit with other rows, parameters or random_state. Name another folder as "
                "checkpoint, or delete this one to start anew."
            )
        history = [{**record, "ranks": tuple(record["ranks"])} for record in entries.pop("history")]
        return Progress(cores=cores, history=history, **entries)
