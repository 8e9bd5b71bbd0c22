"""Model files that are right in form, with a right checksum, and hostile in content."""

import copy
import json
from contextlib import suppress

import numpy as np
from comparison import OPENING, seal

from polytrain.tensor_file import DTYPES

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 255, 1000, 65536, 200_000, 2**31, 2**53, 2**61 - 1, 2**63 - 1, 2**64, 10**40, 10**400),
    *(0.5, -0.0, 1.5, -2.5, 1e-320, 1e-5, 1e6, 1e154, 1e300, 1.7e308, -1.7e308, float("inf")),  # the last is 1e999
)
TEXTS = (
    *("", " ", "a", "b", "\0", "a\0", "\ud800", "\udfff x", "\N{GRINNING FACE}", "e\u0301", "\u202e", "\x1b[2J", "\n"),
    *("*/", "%s", "</script>", "=1+1", "nan", "inf", "None", "1e999", "x0", "x" * 3000, "power", "spline", "category"),
    *("chebyshev", "auto", "given", "dual", "random", "squared", "logistic", "one-vs-one", "binary-code", "number"),
    *("date", "time", "month", "int64", "float32", "str1", "str999999", "object", "datetime64[D]", "polynomial"),
    *("table", "max_sweeps", "cores", "parameter.0", "TensorTrainRegressor", "TensorTrainClassifier"),
)
ODD = (
    *(None, True, False, [], {}, [[]], [None], [0], ["a", "a"], {"a": 1}, [1, "a"], [[[[[[[[[[[[1]]]]]]]]]]]]),
    *([["a", 1]], [[1, 1]], [[1, [1]]], [1, 2, 3], [[0, 1], [2]], {"array": "parameter.0"}, {"array": "cores"}),
    *({"number": "inf"}, {"kind": "number", "name": "a"}),
)
FILLS = (
    *(0, 1, -1, 2, 255, 2**31, 2**62, -(2**62)),
    *(0.5, -1.0, np.nan, np.inf, -np.inf, 1e-320, 1e100, 1e154, 1e300, 1.7e308, -1.7e308),
)


class ModelParts:
    """The document and the arrays of a model file."""

    def __init__(self, raw):
        start = 8 + int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:start])
        metadata = header.pop("__metadata__")
        self.version, self.document, self.arrays = metadata["version"], json.loads(metadata["model"]), {}
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            flat = np.frombuffer(raw[start + first : start + last], DTYPES[entry["dtype"]])
            self.arrays[name] = flat.reshape(entry["shape"]).copy()

    def copy(self):
        return copy.deepcopy(self)

    def assemble(self):
        """Return the bytes, with a right checksum."""
        text = json.dumps(self.document).replace("Infinity", "1e999")
        parts, header, end = [], {}, 0
        for name, array in self.arrays.items():
            parts.append(array.tobytes())
            place, end = [end, end + len(parts[-1])], end + len(parts[-1])
            header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": place}
        metadata = json.dumps({"version": self.version, "model": text})
        entries = f", {json.dumps(header)[1:-1]}" if header else ""
        raw = OPENING + b"0" * 64 + f'", {metadata[1:]}{entries}}}'.encode()
        return seal(len(raw).to_bytes(8, "little") + raw + b"".join(parts))


def places(content, found=None):
    """Every value in JSON, as the container and its key or index."""
    found = [] if found is None else found
    for key in list(content) if isinstance(content, dict) else range(len(content)):
        found.append((content, key))
        if isinstance(content[key], dict | list):
            places(content[key], found)
    return found


def pick(rng, items):
    return items[rng.integers(len(items))]


def pick_place(rng, parts):
    """Some value of the document; entries at its top as often as all that lies below."""
    found = places(parts.document)
    if rng.random() < 0.3:
        found = [place for place in found if place[0] is parts.document] or found
    return pick(rng, found) if found else None


def replace_value(rng, parts):
    """Put anything where something was."""
    if place := pick_place(rng, parts):
        place[0][place[1]] = copy.deepcopy(pick(rng, pick(rng, (NUMBERS, TEXTS, ODD))))


def replace_alike(rng, parts):
    """Put another value of the same type where one was."""
    if not (place := pick_place(rng, parts)):
        return
    content, key = place
    old = content[key]
    if isinstance(old, bool):
        content[key] = not old
    elif isinstance(old, int):
        new = pick(rng, (old + 1, old - 1, 2 * old, -old, pick(rng, NUMBERS)))
        content[key] = new if isinstance(new, int) else old + 1
    elif isinstance(old, float):
        content[key] = pick(
            rng, (old * 2, -old, old / 3, float(pick(rng, FILLS[8:11])), float(pick(rng, NUMBERS[17:])))
        )
    elif isinstance(old, str):
        content[key] = pick(rng, (*TEXTS, old + "x", old[::-1], old.upper()))
    else:
        content[key] = copy.deepcopy(pick(rng, ODD))


def change_list(rng, parts):
    """Shorten, lengthen, repeat, turn round or mix a list, or add and remove entries of an object."""
    if not (place := pick_place(rng, parts)):
        return
    content, key = place
    value = content[key]
    if isinstance(value, list) and value:
        n = len(value)
        content[key] = pick(
            rng,
            (value[:-1], value[1:], value + value[:1], value[::-1], value * int(rng.integers(2, 300)), value[:1] * n),
        )
    elif isinstance(content, dict):
        if rng.random() < 0.5:
            del content[key]
        else:
            content[pick(rng, TEXTS)] = copy.deepcopy(value)


def swap_values(rng, parts):
    """Exchange two values of the document."""
    if (one := pick_place(rng, parts)) and (two := pick_place(rng, parts)):
        kept = copy.deepcopy(one[0][one[1]])
        one[0][one[1]] = copy.deepcopy(two[0][two[1]])
        two[0][two[1]] = kept


def pick_array(rng, parts):
    return pick(rng, sorted(parts.arrays)) if parts.arrays else None


def change_numbers(rng, parts):
    """Overwrite some or all numbers of an array, or nudge or scale them."""
    name = pick_array(rng, parts)
    if name is None or not (array := parts.arrays[name]).size:
        return
    with np.errstate(all="ignore"):
        new = array.astype(np.float64) if array.dtype.kind == "f" else array.astype(object)
        flat = new.reshape(-1)
        some = slice(None) if rng.random() < 0.4 else rng.integers(len(flat), size=rng.integers(1, 4))
        kind, fill = rng.integers(4), pick(rng, FILLS)
        if array.dtype.kind != "f" and fill != fill // 1:
            fill = 1
        if kind == 0:
            flat[some] = fill
        elif kind == 1:
            flat[some] = flat[some] + int(rng.integers(-2, 3))
        elif kind == 2:
            flat[some] = flat[some] * fill
        else:
            flat[some] = flat[some][::-1]
        if array.dtype.kind != "f":
            info = np.iinfo(np.uint8 if array.dtype.kind == "b" else array.dtype)
            new = np.array([min(max(int(v), info.min), info.max) for v in flat], dtype=object).reshape(new.shape)
        parts.arrays[name] = new.astype(array.dtype)


def change_shape(rng, parts):
    """Give an array another shape, length or type."""
    if (name := pick_array(rng, parts)) is None:
        return
    array = parts.arrays[name]
    lines = array.reshape(1) if array.ndim == 0 else array
    empty = tuple(0 if k == rng.integers(lines.ndim) else n for k, n in enumerate(lines.shape))
    with np.errstate(all="ignore"):
        parts.arrays[name] = pick(
            rng,
            (
                lines[:-1], lines[1:], np.concatenate([lines, lines[:1]]), lines[::-1].copy(), lines.ravel(),
                lines[:1].reshape(-1)[:1].reshape(()) if lines.size else lines,
                lines[None], np.ascontiguousarray(lines.T), np.zeros(empty, lines.dtype),
                np.zeros((len(lines) * 50, 0), lines.dtype), np.zeros((0, 10**4), lines.dtype),
                np.repeat(lines, int(rng.integers(2, 200)), axis=0),
                lines.astype(np.float64), lines.astype(np.int64), lines.astype("<f4"), lines.astype("u1"),
            ),
        )  # fmt: skip


def change_arrays(rng, parts):
    """Remove, rename, add or exchange arrays."""
    if (name := pick_array(rng, parts)) is None:
        return
    other, kind = pick_array(rng, parts), rng.integers(4)
    if kind == 0:
        del parts.arrays[name]
    elif kind == 1:
        parts.arrays[name], parts.arrays[other] = parts.arrays[other], parts.arrays[name]
    else:
        new = pick(rng, ("parameter.0", "map.table.n", "columns.table", "classes", "history.loss", *TEXTS))
        parts.arrays[new] = parts.arrays[name].copy()


# What agrees with itself gets further.


def rename(rng, parts):
    """Call a column, a class or a category otherwise wherever it is named."""
    texts = {content[key] for content, key in places(parts.document) if isinstance(content[key], str)}
    old, new = pick(rng, sorted(texts)), pick(rng, TEXTS)
    for content, key in places(parts.document):
        if content[key] == old:
            content[key] = new


def relabel(rng, parts):
    """Give the classes texts in order."""
    classes = parts.document.get("classes")
    if isinstance(classes, dict):
        count = len(classes["labels"] or parts.arrays.get("classes", ()))
        parts.arrays.pop("classes", None)
        labels = sorted({*rng.choice(TEXTS, min(count, len(TEXTS)), replace=False).tolist()})
        parts.document["classes"] = {"dtype": "object", "labels": labels}


def stretch_cores(rng, parts):
    """Let cores grow, or shrink and grow, so that only their product overflows."""
    if "cores" in parts.arrays and parts.arrays["cores"].dtype.kind == "f":
        with np.errstate(all="ignore"):
            cores = parts.arrays["cores"] * np.array(10.0 ** rng.integers(-100, 300)).astype(np.float64)
            parts.arrays["cores"] = np.nan_to_num(cores)


def stretch_targets(rng, parts):
    """Let the scores have another unit and origin."""
    for name in ("size", "shift"):
        if name in parts.arrays and rng.random() < 0.7:
            parts.arrays[name] = np.full_like(parts.arrays[name], 10.0 ** rng.integers(-300, 309))


def prolong_history(rng, parts):
    """Repeat the records."""
    times = int(rng.integers(2, 50))
    for name in [name for name in parts.arrays if name.startswith("history.")]:
        if parts.arrays[name].ndim:
            parts.arrays[name] = np.concatenate([parts.arrays[name]] * times)


def prolong_texts(rng, parts):
    """Many missing texts, categories, reasons or facts."""
    many = [f"{k}" for k in range(int(rng.integers(1, 5000)))]
    table, choice = parts.document.get("table"), parts.document.get("choice")
    if isinstance(choice, dict):
        choice["reasons"] = many
    if isinstance(table, dict):
        table["missing"] = many
        table["training"] = dict.fromkeys(many, pick(rng, (*NUMBERS, *TEXTS, None, True)))


MUTATIONS = (
    *(replace_value, replace_alike, replace_alike, change_list, swap_values, change_numbers, change_numbers),
    *(change_shape, change_arrays, rename, relabel, stretch_cores, stretch_targets, prolong_history, prolong_texts),
)


def hostile_file(rng, models):
    """One of the models with one to four changes, as bytes."""
    parts = pick(rng, models).copy()
    for _ in range(1 + rng.geometric(0.6)) if rng.random() < 0.5 else range(1):
        with suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):  # an earlier one was in the way
            pick(rng, MUTATIONS)(rng, parts)
        if rng.random() < 0.02:
            parts.version = pick(rng, ("1", "2", "3", "4"))
    return parts.assemble()
