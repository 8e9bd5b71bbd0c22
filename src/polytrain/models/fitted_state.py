"""A fitted model <-> a JSON document and named arrays.

`read_fitted` checks everything that a prediction relies on, and compares sizes with the arrays before it takes memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from math import prod
from typing import Any

import numpy as np

from polytrain.arrays import Array
from polytrain.columns import Columns
from polytrain.decisions import EachLabel, get_decision
from polytrain.learning.losses import get_loss
from polytrain.learning.moments import CoreMoments
from polytrain.maps import KINDS, CategoryMap, FeatureMap, MapList
from polytrain.models.file import Document, ModelFileError
from polytrain.models.fitted import FittedModel
from polytrain.tensor.decompose import split_exponent
from polytrain.tensor_file import DTYPES
from polytrain.uncertainty import ErrorScale, LeftOutErrors, TrainUncertainty, Uncertainty

# A file holds numbers of float32 if the values of all trains change by at most this part of their range on rows that
# are drawn, and the widths of intervals by at most the second part of themselves.
_ROUNDING, _ROUNDING_OF_WIDTHS, _DRAWN_ROWS = 1e-6, 1e-5, 500
# Trains of unequal ranks are padded to the largest when they are stacked: up to this many numbers in all, or up to this
# many times the numbers in the file.
_FREE_PADDING, _LARGEST_PADDING = 1 << 22, 16
# Types of labels. Every predicted label is as wide as the type of the classes says.
_NUMBERS = {dtype.name for dtype in DTYPES.values()}
_DATES = re.compile(r"datetime64\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]", re.ASCII)
_TEXT = re.compile(r"str([1-9][0-9]{0,5})", re.ASCII)
_MAX_TEXT_BYTES, _FREE_WIDTH = 1 << 26, 4096
# Powers of two; the largest float is 2**1024. Decisions add up scores of classifiers.
_MOST, _MOST_OF_CLASSIFIERS = 1023.0, 1000.0
# Learned cores do not stretch what they multiply, but for a factor like this one over all columns. The functions of
# thousands of columns may still do it, in corners of their ranges where no row is.
_MOST_STRETCH = 500.0
# Logarithm of the scale of errors.
_LARGEST_SCALE = 100.0


def describe_fitted(model: FittedModel) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the document and the arrays of a fitted model, rounded to float32 if its predictions stay the same."""
    if overflows(model.maps, model.cores, model.size, model.shift, model.classes is not None):
        raise ModelFileError("the model cannot be stored: its scores are too large for floats in some rows.")
    rounded = _describe(model, exact=False)
    try:
        is_close = _agree(model, read_fitted(Document(*rounded)))
    except ValueError:  # numbers beyond the range of float32
        is_close = False
    return rounded if is_close else _describe(model, exact=True)


def _agree(model: FittedModel, other: FittedModel) -> bool:
    """Whether two models agree, up to `_ROUNDING`, on rows whose columns are drawn independently."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore", invalid="ignore"):  # such rows need not exist
        X = np.column_stack([feature_map.draw(rng, _DRAWN_ROWS) for feature_map in model.maps])
        one, two = model.values(X), other.values(X)
        agree = (np.abs(two - one).max(axis=1) <= _ROUNDING * np.ptp(one, axis=1)).all()
        if model.uncertainty is not None and other.uncertainty is not None:
            one = model.uncertainty.widths(one, model.cores, model.maps, X)
            two = other.uncertainty.widths(two, other.cores, other.maps, X)
            agree &= (np.abs(two - one) <= _ROUNDING_OF_WIDTHS * one).all()
    return bool(agree)


def _describe(model: FittedModel, exact: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    maps, map_tensors = _describe_maps(model.maps, exact)
    labels, label_tensors = _describe_labels(model.classes)
    columns, names = model.columns, model.feature_names
    document = {
        "loss": model.loss,
        "maps": maps,
        "one_output": model.one_output,
        "calibrated": model.calibrated,
        "columns": None if columns is None else columns.to_json(),
        "feature_names": None if names is None or columns is not None else list(names),
        "decision": None if model.decision is None else model.decision.name,
        "classes": labels,
    }
    tensors = {
        "cores": _rounded([core for train in model.cores for core in train], exact),
        "ranks": np.array([(1, *(core.shape[2] for core in train)) for train in model.cores], dtype=np.int64),
        "shift": model.shift,
        "size": model.size,
        **map_tensors,
        **label_tensors,
        **_describe_uncertainty(model.uncertainty, exact),
        **({"limits": model.limits} if model.classes is None else {}),
    }
    return document, tensors


def _rounded(arrays: Iterable[Array], exact: bool) -> Array:
    """Return the numbers of some arrays one after another, unless they are to be exact as those of float32."""
    numbers = np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)])
    with np.errstate(over="ignore", under="ignore"):
        return numbers if exact else numbers.astype(np.float32).astype(np.float64)


def _describe_maps(maps: MapList, exact: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return one entry per kind of map, and its arrays with the columns of each."""
    described: dict[str, Any] = {}
    tensors: dict[str, Array] = {}
    for kind, columns in maps.groups:
        members = maps.members(columns)
        described[kind.kind] = [feature_map.basis for feature_map in members]
        tensors |= {f"map.{kind.kind}.{name}": array for name, array in kind.pack(members, exact).items()}
        tensors[f"columns.{kind.kind}"] = np.array(columns, dtype=np.int64)
    return described, tensors


def _describe_labels(classes: Array | None) -> tuple[dict[str, Any] | None, dict[str, Array]]:
    """Return ``{"dtype": ..., "labels": ...}`` and, where labels are numbers or dates, their array instead."""
    if classes is None:
        return None, {}
    classes = classes.astype(classes.dtype.newbyteorder("="), copy=False)
    kind = f"str{classes.dtype.itemsize // 4}" if classes.dtype.kind == "U" else classes.dtype.name
    if kind in _NUMBERS or _DATES.fullmatch(kind):
        numbers = classes if kind in _NUMBERS else classes.view(np.int64)
        return {"dtype": kind, "labels": None}, {"classes": numbers}
    if all(type(label) is str for label in classes.tolist()):
        return {"dtype": kind, "labels": classes.tolist()}, {}
    raise ModelFileError(f"labels of type {kind} cannot be stored in a model file. Use numbers or strings, or pickle.")


def read_fitted(document: Document) -> FittedModel:
    """Check and build a model."""
    cores = document.tensor("cores", (np.float64,), (None,))
    if not np.isfinite(cores).all():
        raise ValueError("the cores contain NaN or infinity.")
    ranks = document.tensor("ranks", (np.int64,), (None, None))
    maps = _read_maps(document, ranks.shape[1] - 1)
    trains = _read_trains(cores, maps.dims, ranks)
    columns, names = _read_columns(document, maps)
    ends = _read_ends(document, len(trains))
    is_classifier = "classes" in ends
    loss = document.take("loss", str)
    task = "classification" if is_classifier else "regression"
    if task not in get_loss(loss).tasks:
        raise ValueError(f"the loss {loss!r:.60} does not apply to {task}.")
    if overflows(maps, trains, ends["size"], ends["shift"], is_classifier):
        raise ValueError("the scores of the model are too large for floats in some rows.")
    uncertainty = None if is_classifier else _read_uncertainty(document, trains)
    return FittedModel(loss, maps, trains, feature_names=names, columns=columns, uncertainty=uncertainty, **ends)


def _read_columns(document: Document, maps: MapList) -> tuple[Columns | None, Sequence[str] | None]:
    """Return the columns of any type, if there are any, and the names of the features."""
    described, names = document.take("columns", list, type(None)), document.take("feature_names", list, type(None))
    if described is None:
        if names is not None and (len(names) != len(maps) or not all(isinstance(name, str) for name in names)):
            raise ValueError(f"there should be {len(maps)} feature names.")
        return None, names
    columns = Columns.from_json(described)
    if columns.n_features != len(maps) or names is not None:
        raise ValueError("the columns do not match the features of the model.")
    for levels, feature_map in zip(columns.levels, maps, strict=True):
        if isinstance(feature_map, CategoryMap) and levels is not None and not feature_map.range[1] < len(levels):
            raise ValueError("a column has other levels than its map.")
    return columns, columns.feature_names


def _read_trains(cores: Array, dims: tuple[int, ...], ranks: Array) -> tuple[tuple[Array, ...], ...]:
    """Check that sizes fit and that stacking takes little more memory, then cut the cores."""
    if not len(ranks) or ranks.min() < 1 or ranks.max() > cores.size or (ranks[:, [0, -1]] != 1).any():
        raise ValueError("the ranks are not plausible.")
    sizes = ranks[:, :-1].astype(np.float64) * np.array(dims, dtype=np.float64) * ranks[:, 1:]  # ints might overflow
    if sizes.sum() != cores.size:
        raise ValueError(f"maps and ranks ask for {sizes.sum():.0f} numbers, but there are {cores.size}.")
    widest = ranks.max(axis=0).astype(np.float64)
    padded = len(ranks) * float(np.sum(widest[:-1] * np.array(dims) * widest[1:]))
    if padded > max(_FREE_PADDING, _LARGEST_PADDING * cores.size):
        raise ValueError(f"the ranks of the trains differ so much that stacking them takes {padded:.3g} numbers.")
    shapes = zip(ranks[:, :-1].ravel().tolist(), cycle(dims), ranks[:, 1:].ravel().tolist(), strict=False)
    # Parts of one array that nobody can write to: a copy of each would take more time and memory than its numbers.
    cores.setflags(write=False)
    parts = tuple(_cut(cores, list(shapes)))
    return tuple(parts[first : first + len(dims)] for first in range(0, len(parts), len(dims)))


def _cut(numbers: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return the arrays of these shapes that lie one after another."""
    stops = np.cumsum([prod(shape) for shape in shapes], dtype=np.int64).tolist()
    return [numbers[a:b].reshape(shape) for a, b, shape in zip([0, *stops], stops, shapes, strict=False)]


def _read_maps(document: Document, n_features: int) -> MapList:
    maps: list[FeatureMap] = []
    columns: list[int] = []
    for kind, bases in document.take("maps", dict).items():
        if kind not in KINDS:
            raise ValueError(f"there are no maps of the kind {kind!r:.60}; there are {list(KINDS)}.")
        if not isinstance(bases, list) or not bases or not all(basis in KINDS[kind].bases for basis in bases):
            raise ValueError(f"the bases of the {kind} maps should be among {list(KINDS[kind].bases)}.")
        columns += document.tensor(f"columns.{kind}", (np.int64,), (len(bases),)).tolist()
        arrays = document.tensors(f"map.{kind}.")
        maps += KINDS[kind].unpack(bases, arrays)
        if arrays:
            raise ValueError(f"the {kind} maps have unknown arrays: {list(arrays)}.")
    if n_features < 1 or sorted(columns) != list(range(n_features)):
        raise ValueError("every column should have one map.")
    return MapList([maps[k] for k in np.argsort(columns)])


def _read_ends(document: Document, n_trains: int) -> dict[str, Any]:
    """Return the fields of a model that turn scores into predictions."""
    shift, size = (document.tensor(name, (np.float64,), (n_trains,)) for name in ("shift", "size"))
    one_output, calibrated = document.take("one_output", bool), document.take("calibrated", bool)
    name, labels = document.take("decision", str, type(None)), document.take("classes", dict, type(None))
    if not (np.isfinite(shift).all() and np.isfinite(size).all() and (size > 0).all()):
        raise ValueError("shift and size of the target should be finite, and the size positive.")
    ends: dict[str, Any] = {"shift": shift, "size": size, "one_output": one_output}
    if (name is None) != (labels is None):
        raise ValueError("a classifier has both a decision and classes.")
    if labels is None:
        if calibrated:
            raise ValueError("a regressor is not calibrated.")
        if one_output and n_trains != 1:
            raise ValueError(f"a regressor of one output has one train, not {n_trains}.")
        low, high = ends["limits"] = document.tensor("limits", (np.float64,), (2, n_trains))
        if not (low <= high).all():
            raise ValueError("the limits of predictions are not plausible.")
        return ends
    if not calibrated and (shift.any() or (size != 1.0).any()):
        raise ValueError("a classifier's scores are neither shifted nor scaled, unless it is calibrated.")
    classes = _read_labels(labels, document)
    decision = get_decision(name, len(classes))
    if one_output == isinstance(decision, EachLabel):
        raise ValueError("a classifier has one output, unless rows have any number of labels.")
    needed = decision.n_trains(len(classes))
    if n_trains != needed:
        raise ValueError(f"{len(classes)} classes need {needed} trains with {name}, not {n_trains}.")
    return {**ends, "decision": decision, "classes": classes, "calibrated": calibrated}


def _read_labels(entry: dict[str, Any], document: Document) -> Array:
    """Return the classes: at least two, in order, each once."""
    if entry.keys() != {"dtype", "labels"} or not isinstance(entry["dtype"], str):
        raise ValueError("the classes should have a dtype and labels.")
    kind, labels = entry["dtype"], entry["labels"]
    if labels is not None:
        classes = _read_text(kind, labels)
    elif kind in _NUMBERS:
        dtype = np.dtype(kind)
        stored = document.tensor("classes", (np.dtype(f"{dtype.kind}8") if dtype.itemsize == 4 else dtype,), (None,))
        with np.errstate(over="ignore", under="ignore"):
            classes = stored.astype(dtype)
        if not np.array_equal(classes, stored):
            raise ValueError(f"the classes do not fit the type {kind}.")
    elif _DATES.fullmatch(kind):
        classes = document.tensor("classes", (np.int64,), (None,)).view(np.dtype(kind))
    else:
        raise ValueError(f"there are no classes of type {kind!r:.60}.")
    if len(classes) < 2 or not (classes[:-1] < classes[1:]).all():
        raise ValueError("the classes should be at least two, in order and different.")
    return classes


def _read_text(kind: str, labels: Any) -> Array:
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError("the labels should be strings.")
    if kind == "object":
        return np.array(labels, dtype=object)
    match, longest = _TEXT.fullmatch(kind), max(map(len, labels), default=0)
    width, most = int(match[1]) if match else 0, max(_FREE_WIDTH, _LARGEST_PADDING * longest)
    if not max(longest, 1) <= width <= most or 4 * width * len(labels) > _MAX_TEXT_BYTES:
        raise ValueError(f"the labels do not fit the type {kind!r:.60}.")
    return np.array(labels, dtype=f"U{width}")


# --- overflow ---------------------------------------------------------------------------------------------------------


def overflows(maps: MapList, trains: Sequence[Sequence[Array]], size: Array, shift: Array, is_classifier: bool) -> bool:
    """Whether a row within the ranges of the maps has values or scores that exceed the largest float.

    Cores may be finite and their product not. A safe bound is enough for most trains. For the others this searches a
    row whose values overflow on the way through the train, so that it refuses no model that works.
    """
    most = _MOST_OF_CLASSIFIERS if is_classifier else _MOST
    if (np.abs(shift) > 2.0**most).any():
        return True
    factors, extremes = np.log2(np.maximum(size, 1.0)), [feature_map.extremes() for feature_map in maps]
    suspects = np.flatnonzero(factors + _log_bounds(trains, extremes) > _MOST_OF_CLASSIFIERS).tolist()
    most = max(most, _MOST_STRETCH + float(np.log2(maps.dims).sum()) / 2)
    return any(_log_largest(trains[t], extremes, float(factors[t])) > most for t in suspects)


def _log_bounds(trains: Sequence[Sequence[Array]], extremes: Sequence[Array]) -> Array:
    """Return log2 of a bound on all values on the way through each train, (n_trains,)."""
    cores = [core for train in trains for core in train]
    starts = np.cumsum([0, *(core.size for core in cores)])[:-1]
    with np.errstate(over="ignore", divide="ignore"):
        sums = np.add.reduceat(np.abs(np.concatenate([core.ravel() for core in cores])), starts)
        logs: Array = np.log2(sums).reshape(len(trains), -1) + np.log2([np.abs(values).max() for values in extremes])
    bounds: Array = np.maximum(logs, 0.0).sum(axis=1)
    return bounds


def _log_largest(train: Sequence[Array], extremes: Sequence[Array], log_size: float) -> float:
    """Return log2 of the largest value on the way through a train, in the row that is greedily worst by column.

    Shapes: extremes (n, P), one per column.
    """
    left, exponent, largest = np.ones(1), 0, 0
    for core, values in zip(train, extremes, strict=True):
        (core, of_core), (values, of_values) = split_exponent(core), split_exponent(values)
        choices = values.T @ np.tensordot(left, core, axes=1)  # (P, right rank)
        left, step = split_exponent(choices[np.abs(choices).max(axis=1).argmax()])
        if not left.any():
            return largest
        largest = max(largest, exponent + of_values)  # functions are multiplied before the core is
        exponent += of_core + of_values + step
        largest = max(largest, exponent)
    return max(largest, exponent + log_size)


# --- uncertainty ------------------------------------------------------------------------------------------------------


def _describe_uncertainty(uncertainty: Uncertainty | None, exact: bool) -> dict[str, Array]:
    """Return the arrays; none if the uncertainty is not known."""
    if uncertainty is None:
        return {}
    trains, errors = uncertainty.trains, [train.left_out for train in uncertainty.trains]
    cores = [core for train in trains for core in train.moments]
    scales = [train.scale for train in trains]
    knots = [0 if scale is None else scale.curve.shape[1] for scale in scales]
    arrays: dict[str, Array] = {
        "guaranteed": np.array([uncertainty.guaranteed]),
        "numbers": np.array([(t.alpha, t.reach, t.noise, t.scale.limit if t.scale else 0.0) for t in trains]),
        "counts": np.array(
            [(len(t.moments), len(t.left_out.errors), t.left_out.n_rows, n) for t, n in zip(trains, knots, strict=True)]
        ),
        "errors": _rounded([own.errors for own in errors], exact),
        "heights": np.concatenate([_as_counts(own) for own in errors]),
        "ranks": np.array([(len(core.left), len(core.right)) for core in cores], dtype=np.int64).reshape(-1, 2),
        "moments": _rounded([array for core in cores for array in core], exact),
        "curves": np.concatenate([np.zeros((0, 2)), *(scale.curve.T for scale in scales if scale)]),
        "effects": _rounded([effect for scale in scales if scale for effect in scale.effects], exact),
    }
    return {"uncertainty." + name: array for name, array in arrays.items()}


def _as_counts(errors: LeftOutErrors) -> Array:
    """Return the heights as numbers of rows, which take less space, if rows weigh the same."""
    counts = np.round(errors.heights * errors.n_rows)
    return counts if np.array_equal(counts / errors.n_rows, errors.heights) else errors.heights


def _read_uncertainty(document: Document, trains: Sequence[Sequence[Array]]) -> Uncertainty | None:
    """Check and undo `_describe_uncertainty`, for a model with these trains."""
    tensors = document.tensors("uncertainty.")
    if not tensors:
        return None
    arrays, n_trains, n_cores = Document({}, tensors), len(trains), len(trains[0])
    guaranteed = arrays.tensor("guaranteed", (np.bool_,), (1,))
    numbers = arrays.tensor("numbers", (np.float64,), (n_trains, 4))
    counts = arrays.tensor("counts", (np.int64,), (n_trains, 4))
    errors, heights = (arrays.tensor(name, (np.float64,), (None,)) for name in ("errors", "heights"))
    ranks = arrays.tensor("ranks", (np.int64,), (None, 2))
    moments = arrays.tensor("moments", (np.float64,), (None,))
    curves = arrays.tensor("curves", (np.float64,), (None, 2))
    effects = arrays.tensor("effects", (np.float64,), (None,))
    arrays.check_empty()
    n_moments, n_errors, n_rows, n_knots = counts.T
    for array in (numbers, errors, heights, moments, curves, effects):
        if not np.isfinite(array).all() or (
            any(array is own for own in (numbers, errors, heights)) and (array < 0).any()
        ):
            raise ValueError("the uncertainty holds numbers that are not finite, or negative ones.")
    if (n_errors < 1).any() or (n_rows < n_errors).any() or not n_errors.sum() == len(errors) == len(heights):
        raise ValueError("the errors of the uncertainty are not plausible.")
    if not np.isin(n_moments, (0, n_cores)).all() or n_moments.sum() != len(ranks):
        raise ValueError("the moments of the uncertainty are not those of the trains.")
    shapes = [(core.shape[1] - 1,) for core in trains[0]] * int(np.count_nonzero(n_knots))
    if (n_knots < 0).any() or n_knots.sum() != len(curves) or len(effects) != sum(map(prod, shapes)):
        raise ValueError("the scales of the uncertainty do not fit the trains.")
    measured = iter(_read_moments(moments, ranks, [t for t, n in zip(trains, n_moments, strict=True) if n]))
    own_effects, uncertainties = iter(_cut(effects, shapes)), []
    pairs = (errors, n_errors), (heights, n_errors), (curves, n_knots)
    columns = zip(numbers.tolist(), counts.tolist(), *(np.split(a, np.cumsum(n)[:-1]) for a, n in pairs), strict=True)
    for (alpha, reach, noise, limit), (n, _, n_seen, n_own), sizes, shares, curve in columns:
        if (np.diff(sizes) < 0).any() or (np.diff(shares) < 0).any() or shares[-1] not in (1.0, float(n_seen)):
            raise ValueError("the errors of the uncertainty are not in order.")
        if (np.diff(curve[:, 0]) < 0).any() or limit > _LARGEST_SCALE:
            raise ValueError("a scale of the uncertainty is not plausible.")
        own, known = tuple(islice(measured, n)), LeftOutErrors(sizes.copy(), shares / shares[-1], n_seen)
        scale = ErrorScale(curve.T.copy(), tuple(islice(own_effects, n_cores)), limit) if n_own else None
        uncertainties.append(TrainUncertainty(own, alpha, reach, scale, noise, known))
    return Uncertainty(tuple(uncertainties), bool(guaranteed[0]))


def _read_moments(moments: Array, ranks: Array, trains: Sequence[Sequence[Array]]) -> list[CoreMoments]:
    """Check that sizes fit, then cut the moments of all cores of these trains."""
    shapes: list[tuple[int, ...]] = []
    for (left, right), core in zip(ranks.tolist(), (core for train in trains for core in train), strict=True):
        a, n, b = core.shape
        if not (1 <= left <= a and 1 <= right <= b):
            raise ValueError("the ranks of the moments are not plausible.")
        shapes += [(left, a), (n, n), (right, b), (left,), (n,), (right,)]
    if len(moments) != sum(map(prod, shapes)):
        raise ValueError(f"the uncertainty has {len(moments)} moments, which do not fit the trains.")
    parts = _cut(moments, shapes)
    if any(part.ndim == 1 and (part < 0).any() for part in parts):
        raise ValueError("a second moment is negative.")
    return [CoreMoments(*parts[first : first + 6]) for first in range(0, len(parts), 6)]
