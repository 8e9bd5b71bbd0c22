"""Class labels <-> JSON and an array, with their types."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.models.errors import ModelFileError
from polytrain.tensor_file import DTYPES

__all__ = ["read_labels", "write_labels"]

_NUMBERS = tuple(dtype.name for dtype in DTYPES.values())
_DATES = re.compile(r"datetime64\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]", re.ASCII)
_TEXT = re.compile(r"str([1-9][0-9]{0,5})", re.ASCII)
_MAX_TEXT_BYTES = 1 << 26
_FREE_WIDTH, _LARGEST_PADDING = 4096, 16


def write_labels(classes: NDArray) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return ``{"dtype": ..., "labels": ...}`` and, where labels are numbers or dates, their array instead."""
    classes = classes.astype(classes.dtype.newbyteorder("="), copy=False)
    kind = classes.dtype.name
    if kind in _NUMBERS:
        return {"dtype": kind, "labels": None}, {"classes": classes}
    if _DATES.fullmatch(kind):
        return {"dtype": kind, "labels": None}, {"classes": classes.view(np.int64)}
    if classes.dtype.kind == "U":
        return {"dtype": f"str{classes.dtype.itemsize // 4}", "labels": classes.tolist()}, {}
    if kind == "object" and all(type(label) is str for label in classes):
        return {"dtype": "object", "labels": list(classes)}, {}
    raise ModelFileError(f"labels of type {kind} cannot be stored in a model file. Use numbers or strings, or pickle.")


def read_labels(entry: dict[str, Any], take: Callable[..., NDArray]) -> NDArray:
    """Return the classes: at least two, in order, each once."""
    if entry.keys() != {"dtype", "labels"} or not isinstance(entry["dtype"], str):
        raise ValueError("the classes should have a dtype and labels.")
    kind, labels = entry["dtype"], entry["labels"]
    classes = _read_array(kind, take) if labels is None else _read_text(kind, labels)
    if len(classes) < 2 or not (classes[:-1] < classes[1:]).all():
        raise ValueError("the classes should be at least two, in order and different.")
    return classes


def _read_array(kind: str, take: Callable[..., NDArray]) -> NDArray:
    if kind in _NUMBERS:
        return take("classes", (np.dtype(kind),), (None,))
    if _DATES.fullmatch(kind):
        return take("classes", (np.int64,), (None,)).view(np.dtype(kind))
    raise ValueError(f"there are no classes of type {kind!r:.60}.")


def _read_text(kind: str, labels: Any) -> NDArray:
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError("the labels should be strings.")
    if kind == "object":
        classes = np.empty(len(labels), dtype=object)
        classes[:] = labels
        return classes
    match = _TEXT.fullmatch(kind)
    width, longest = int(match[1]) if match else 0, max(map(len, labels), default=0)
    most = max(_FREE_WIDTH, _LARGEST_PADDING * longest)  # every prediction of a label is so wide
    if not longest <= width <= most or 4 * width * len(labels) > _MAX_TEXT_BYTES or not match:
        raise ValueError(f"the labels do not fit the type {kind!r:.60}.")
    return np.array(labels, dtype=f"U{width}")
