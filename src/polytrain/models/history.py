"""The history of a fit <-> arrays of a model file, one per key of its records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.models.document import Document
from polytrain.models.errors import ModelFileError

__all__ = ["describe_history", "read_history"]

_COUNTS = ("train", "sweep", "n_rows")
_NUMBERS = ("loss", "objective", "decrease", "seconds")
_OPTIONAL = "validation_loss"
_KEYS = {*_COUNTS, *_NUMBERS, "ranks"}
_LARGEST = sys.float_info.max


def describe_history(history: list[dict[str, Any]]) -> tuple[list[str], dict[str, NDArray]]:
    """Return the keys of the records, and one array for each of them: integers, floats or tuples of integers."""
    keys = list(history[0]) if history else []
    columns = {}
    for key in keys:
        column = [record[key] if record.keys() == history[0].keys() else None for record in history]
        # By kind and not by type: numbers of NumPy are numbers, too.
        values = np.array(column)
        if values.dtype.kind not in "iuf":
            raise ModelFileError(f"history_ holds values of {key!r} that a model file cannot store. Use pickle.")
        columns[f"history.{key}"] = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    return keys, columns


def read_history(document: Document, ranks: Sequence[int], n_trains: int) -> list[dict[str, Any]]:
    """Check and undo `describe_history` for ``n_trains`` trains with no more than these ranks."""
    keys = document.take("history", list)
    if not keys:
        return []
    if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
        raise ValueError("the history has a column twice, or one without a name.")
    # Models that were once in format 1 do not know their rows.
    if not _KEYS - {"n_rows"} <= set(keys) <= {*_KEYS, _OPTIONAL}:
        raise ValueError(f"the history should have the columns {sorted(_KEYS)}, not {str(keys)[:200]}.")
    n_records: int | None = None
    columns: dict[str, NDArray] = {}
    for key in keys:
        dtype = np.float64 if key in (*_NUMBERS, _OPTIONAL) else np.int64
        columns[key] = document.tensor(f"history.{key}", (dtype,), (n_records, len(ranks))[: 1 + (key == "ranks")])
        n_records = len(columns[key])
    _check_columns(columns, ranks, n_trains)
    # Squared losses of targets beyond 1e154 exceed the largest float. Older files have them as infinity.
    for key in {"loss", "objective", "decrease", _OPTIONAL} & columns.keys():
        columns[key] = np.clip(columns[key], -_LARGEST, _LARGEST)
    lists = [map(tuple, column.tolist()) if column.ndim == 2 else column.tolist() for column in columns.values()]
    return [dict(zip(keys, record, strict=True)) for record in zip(*lists, strict=True)]


def _check_columns(columns: dict[str, NDArray], ranks: Sequence[int], n_trains: int) -> None:
    if not len(columns["train"]):
        raise ValueError("the history has columns, but no records.")
    if (columns["train"] < 0).any() or (columns["train"] >= n_trains).any():
        raise ValueError("the history speaks of trains that are not there.")
    if any((columns[key] < 0).any() for key in _COUNTS if key in columns):
        raise ValueError("the history has a negative number of sweeps or rows.")
    seen = columns["ranks"]
    if (seen < 1).any() or (seen > np.array(ranks, dtype=np.int64)).any():
        raise ValueError("the ranks in the history are not those of the plan.")
    if (
        any(np.isnan(columns[key]).any() for key in {*_NUMBERS, _OPTIONAL} & columns.keys())
        or not np.isfinite(columns["seconds"]).all()
    ):
        raise ValueError("the history contains NaN, or infinitely many seconds.")
