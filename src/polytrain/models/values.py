"""Parameters, class labels and the history of a fit <-> JSON and named arrays.

Conventions
-----------
None, bool, int, str, finite float and list are JSON as they are. Everything else is an object with one key that names
its kind: ``{"tuple": [...]}``, ``{"array": "name of a tensor"}`` and so on. The kinds are a closed list: nothing in a
file names something to import or to call. Errors are ``ModelFileError`` when writing and ``ValueError`` when reading.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.scalars import check_hashes
from polytrain.models.file import Document, ModelFileError
from polytrain.tensor import TensorTrain
from polytrain.tensor_file import DTYPES

__all__ = [
    "ValueReader",
    "ValueWriter",
    "describe_history",
    "join_cores",
    "read_history",
    "read_labels",
    "write_labels",
]

_MAX_DEPTH = 8
_MAX_RANGE = 100_000
# bool, int8 ... uint64, float16, float32, float64
_SCALARS: dict[str, Any] = {dtype.name: dtype.newbyteorder("=").type for dtype in DTYPES.values()}
# Class labels.
_LABEL_TYPES = tuple(dtype.name for dtype in DTYPES.values())
_DATES = re.compile(r"datetime64\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]", re.ASCII)
_TEXT = re.compile(r"str([1-9][0-9]{0,5})", re.ASCII)
_MAX_TEXT_BYTES = 1 << 26
_FREE_WIDTH, _LARGEST_PADDING = 4096, 16
# Columns of the history.
_COUNTS = ("train", "sweep", "n_rows")
_NUMBERS = ("loss", "objective", "decrease", "seconds")
_OPTIONAL = "validation_loss"
_KEYS = {*_COUNTS, *_NUMBERS, "ranks"}
_LARGEST = sys.float_info.max


def join_cores(cores: Any) -> NDArray:
    """Put the numbers of all cores one after another, each core in C order."""
    return np.concatenate([core.reshape(-1) for core in cores])


def split_cores(flat: NDArray, dims: list[int], ranks: list[int]) -> list[NDArray]:
    """Undo `join_cores`: cut ``flat`` into cores of shape (left rank, basis, right rank). The sizes must fit."""
    shapes = list(zip(ranks[:-1], dims, ranks[1:], strict=True))
    stops = np.cumsum([math.prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(flat, stops[:-1]), shapes, strict=True)]


class ValueWriter:
    """Turns values into JSON, and keeps the arrays among them in ``tensors``."""

    def __init__(self) -> None:
        self.tensors: dict[str, NDArray] = {}

    def write(self, name: str, value: Any) -> Any:
        """Return the JSON of the parameter ``name``."""
        try:
            return self._encode(value, 0)
        except TypeError as error:
            raise ModelFileError(
                f"the parameter {name} holds {error}, which a model file cannot store. Replace it with "
                "set_params before saving, or use pickle."
            ) from None

    def _keep(self, array: NDArray) -> str:
        name = f"parameter.{len(self.tensors)}"
        self.tensors[name] = array
        return name

    def _encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if depth > _MAX_DEPTH:
            raise TypeError("a value nested too deeply")
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return [self._encode(item, depth + 1) for item in value]
        if kind is tuple:
            return {"tuple": [self._encode(item, depth + 1) for item in value]}
        if kind in (set, frozenset):
            return {kind.__name__: [self._encode(item, depth + 1) for item in sorted(value, key=_order)]}
        if kind is dict:
            return {
                "dict": [[self._encode(key, depth + 1), self._encode(item, depth + 1)] for key, item in value.items()]
            }
        if kind is range and len(value) <= _MAX_RANGE:
            return {"range": [value.start, value.stop, value.step]}
        if kind is np.str_:
            return {"numpy": ["str", str(value)]}
        if isinstance(value, np.generic) and value.dtype.name in _SCALARS:
            return {"numpy": [value.dtype.name, self._encode(value.item(), depth + 1)]}
        if kind is np.ndarray and value.dtype.name in _SCALARS:
            return {"array": self._keep(value)}
        if kind is np.ndarray and value.dtype.kind == "U" and value.ndim == 1:  # names per column
            return value.tolist()
        if kind is TensorTrain:
            return {"train": [list(value.dims), list(value.ranks), self._keep(join_cores(value.cores))]}
        if kind is np.random.RandomState:
            state: Any = value.get_state(legacy=False)
            if state["bit_generator"] == "MT19937":
                inner = state["state"]
                rest = [int(inner["pos"]), int(state["has_gauss"]), self._encode(float(state["gauss"]), depth + 1)]
                return {"random_state": [self._keep(inner["key"]), *rest]}
        raise TypeError(f"{value!r} of type {kind.__module__}.{kind.__qualname__}")


def _order(item: Any) -> tuple[str, Any]:
    """Key for sorting the items of a set, so that equal sets become equal files."""
    return (type(item).__name__, item)


class ValueReader:
    """Turns JSON back into values, with ``take(name)`` for the arrays among them."""

    def __init__(self, take: Callable[[str], NDArray]) -> None:
        self._take_tensor = take
        self._kinds: Mapping[str, Callable[[Any, int], Any]] = {
            "float": self._float,
            "tuple": lambda content, depth: tuple(self._list(content, depth)),
            "dict": self._dict,
            "set": lambda content, depth: set(self._distinct(content, depth)),
            "frozenset": lambda content, depth: frozenset(self._distinct(content, depth)),
            "range": self._range,
            "numpy": self._numpy,
            "array": lambda content, depth: self._take(content),
            "train": self._train,
            "random_state": self._random_state,
        }

    def read(self, content: Any, depth: int = 0) -> Any:
        """Return the value of a piece of JSON."""
        if depth > _MAX_DEPTH:
            raise ValueError("a value is nested too deeply")
        if content is None or isinstance(content, bool | int | str):
            return content
        if isinstance(content, float):
            if not math.isfinite(content):  # the JSON 1e999
                raise ValueError("a number is too large for a float")
            return content
        if isinstance(content, list):
            return self._list(content, depth)
        if isinstance(content, dict) and len(content) == 1:
            kind, inner = next(iter(content.items()))
            if kind in self._kinds:
                return self._kinds[kind](inner, depth)
        raise ValueError(f"a value of unknown kind: {str(content)[:60]}")

    def _list(self, content: Any, depth: int, length: int | None = None) -> list[Any]:
        if not isinstance(content, list) or (length is not None and len(content) != length):
            raise ValueError(f"a list{'' if length is None else f' of {length}'} was expected, not {str(content)[:60]}")
        return [self.read(item, depth + 1) for item in content]

    def _integers(self, content: Any, length: int | None = None) -> list[int]:
        values = self._list(content, 0, length)
        if any(type(value) is not int for value in values):
            raise ValueError(f"integers were expected, not {str(content)[:60]}")
        return values

    def _take(self, name: Any) -> NDArray:
        if not isinstance(name, str) or not name.startswith("parameter."):
            raise ValueError(f"{name!r} does not name an array of a parameter")
        return self._take_tensor(name)

    def _float(self, content: Any, depth: int) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise ValueError(f"{content!r} is no float")
        return float(content)

    def _dict(self, content: Any, depth: int) -> dict:
        pairs = [self._list(item, depth + 1, 2) for item in self._plain_list(content)]
        if any(key is not None and not isinstance(key, bool | int | float | str | np.generic) for key, _ in pairs):
            raise ValueError("a key of a dict is no scalar")
        check_hashes((key for key, _ in pairs), "a dict")
        return dict(pairs)

    def _distinct(self, content: Any, depth: int) -> list[Any]:
        items = self._list(content, depth)
        if any(item is not None and not isinstance(item, bool | int | float | str | np.generic) for item in items):
            raise ValueError("an item of a set is no scalar")
        check_hashes(items, "a set")
        return items

    @staticmethod
    def _plain_list(content: Any) -> list:
        if not isinstance(content, list):
            raise ValueError(f"a list was expected, not {str(content)[:60]}")
        return content

    def _range(self, content: Any, depth: int) -> range:
        start, stop, step = self._integers(content, 3)
        if step == 0 or abs(stop - start) > _MAX_RANGE * abs(step):
            raise ValueError(f"range({start}, {stop}, {step}) is not plausible")
        return range(start, stop, step)

    def _numpy(self, content: Any, depth: int) -> Any:
        name, value = self._list(content, depth, 2)
        if name == "str" and isinstance(value, str):
            return np.str_(value)
        if name not in _SCALARS or not isinstance(value, bool | int | float):
            raise ValueError(f"{str(content)[:60]} is no NumPy scalar")
        try:
            with np.errstate(all="ignore"):
                scalar = _SCALARS[name](value)
        except OverflowError as error:
            raise ValueError(str(error)) from None
        if scalar.item() != value and value == value:
            raise ValueError(f"{value!r} does not fit {name}")
        return scalar

    def _train(self, content: Any, depth: int) -> TensorTrain:
        dims, ranks, name = self._list(content, depth, 3)
        dims, ranks, flat = self._integers(dims), self._integers(ranks), self._take(name)
        if flat.dtype not in (np.float64, np.float32) or flat.ndim != 1:
            raise ValueError(f"the cores {name!r} are not one list of float64 or float32")
        sizes = [*dims, *ranks]
        if len(ranks) != len(dims) + 1 or not dims or min(sizes) < 1 or max(sizes) > flat.size:
            raise ValueError(f"dims and ranks of the train {name!r} are not plausible")
        if sum(math.prod(shape) for shape in zip(ranks[:-1], dims, ranks[1:], strict=True)) != flat.size:
            raise ValueError(f"dims and ranks of the train {name!r} do not fit its {flat.size} numbers")
        return TensorTrain(split_cores(flat, dims, ranks))

    def _random_state(self, content: Any, depth: int) -> np.random.RandomState:
        name, position, has_gauss, gauss = self._list(content, depth, 4)
        keys = self._take(name)
        if keys.dtype != np.uint32 or keys.shape != (624,):
            raise ValueError(f"{name!r} does not hold the 624 words of a RandomState")
        if type(position) is not int or not 0 <= position <= 624 or has_gauss not in (0, 1) or type(gauss) is not float:
            raise ValueError(f"{str(content)[:60]} is no RandomState")
        state = np.random.RandomState(0)
        state.set_state(("MT19937", keys, position, int(has_gauss), gauss))
        return state


# --- class labels -----------------------------------------------------------------------------------------------------


def write_labels(classes: NDArray) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return ``{"dtype": ..., "labels": ...}`` and, where labels are numbers or dates, their array instead."""
    classes = classes.astype(classes.dtype.newbyteorder("="), copy=False)
    kind = classes.dtype.name
    if kind in _LABEL_TYPES:
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
    if kind in _LABEL_TYPES:
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
    most = max(_FREE_WIDTH, _LARGEST_PADDING * longest)  # every predicted label has this width
    if not longest <= width <= most or 4 * width * len(labels) > _MAX_TEXT_BYTES or not match:
        raise ValueError(f"the labels do not fit the type {kind!r:.60}.")
    return np.array(labels, dtype=f"U{width}")


# --- history of the fit -----------------------------------------------------------------------------------------------


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
    if not _KEYS <= set(keys) <= {*_KEYS, _OPTIONAL}:
        raise ValueError(f"the history should have the columns {sorted(_KEYS)}, not {str(keys)[:200]}.")
    n_records: int | None = None
    columns: dict[str, NDArray] = {}
    for key in keys:
        dtype = np.float64 if key in (*_NUMBERS, _OPTIONAL) else np.int64
        columns[key] = document.tensor(f"history.{key}", (dtype,), (n_records, len(ranks))[: 1 + (key == "ranks")])
        n_records = len(columns[key])
    _check_columns(columns, ranks, n_trains)
    # Squared losses of huge targets may exceed the largest float, and JSON has no infinity.
    for key in {"loss", "objective", "decrease", _OPTIONAL} & columns.keys():
        columns[key] = np.clip(columns[key], -_LARGEST, _LARGEST)
    lists = [map(tuple, column.tolist()) if column.ndim == 2 else column.tolist() for column in columns.values()]
    return [dict(zip(keys, record, strict=True)) for record in zip(*lists, strict=True)]


def _check_columns(columns: dict[str, NDArray], ranks: Sequence[int], n_trains: int) -> None:
    if not len(columns["train"]):
        raise ValueError("the history has columns, but no records.")
    if (columns["train"] < 0).any() or (columns["train"] >= n_trains).any():
        raise ValueError("the history speaks of trains that are not there.")
    if any((columns[key] < 0).any() for key in _COUNTS):
        raise ValueError("the history has a negative number of sweeps or rows.")
    seen = columns["ranks"]
    if (seen < 1).any() or (seen > np.array(ranks, dtype=np.int64)).any():
        raise ValueError("the ranks in the history are not those of the plan.")
    if (
        any(np.isnan(columns[key]).any() for key in {*_NUMBERS, _OPTIONAL} & columns.keys())
        or not np.isfinite(columns["seconds"]).all()
    ):
        raise ValueError("the history contains NaN, or infinitely many seconds.")
