"""A fitted model <-> a JSON document and named arrays.

`read_fitted` checks all that a prediction relies on.
Numbers that decide about memory are compared with what is there before they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import Columns
from polytrain.decisions import Decision, get_decision
from polytrain.learning.moments import CoreMoments
from polytrain.maps import KINDS, CategoryMap, FeatureMap, MapList
from polytrain.models.file import Document, ModelFileError
from polytrain.models.fitted import FittedModel
from polytrain.models.values import join_cores, read_labels, write_labels
from polytrain.tensor.decompose import split_exponent
from polytrain.uncertainty import LeftOutErrors, TrainUncertainty, Uncertainty

__all__ = ["describe_fitted", "overflows", "read_fitted"]

# Trains of unequal ranks are padded to the largest when they are stacked: up to this many numbers in all, or up to this
# many times the numbers in the file.
_FREE_PADDING, _LARGEST_PADDING = 1 << 22, 16
# Powers of two; the largest float is 2**1024. Decisions add up scores of classifiers.
_MOST, _MOST_OF_CLASSIFIERS = 1023.0, 1000.0
# Learned cores do not stretch what they multiply, but for a factor like this one over all columns. The functions of
# thousands of columns may still do it, in corners of their ranges where no row is.
_MOST_STRETCH = 500.0


def describe_fitted(model: FittedModel) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return the document and the arrays of a fitted model."""
    maps, map_tensors = _describe_maps(model.maps)
    names = model.feature_names
    document: dict[str, Any] = {
        "maps": maps,
        "one_output": model.one_output,
        "calibrated": model.calibrated,
        "columns": None if model.columns is None else model.columns.to_json(),
        "feature_names": None if names is None else list(names),
        "decision": None if model.decision is None else model.decision.name,
        "classes": None,
    }
    tensors: dict[str, NDArray] = {
        "cores": np.concatenate([join_cores(train) for train in model.cores]),
        "ranks": np.array([(1, *(core.shape[2] for core in train)) for train in model.cores], dtype=np.int64),
        "shift": model.shift,
        "size": model.size,
        **map_tensors,
        **_describe_uncertainty(model.uncertainty),
    }
    if model.classes is not None:
        document["classes"], labels = write_labels(model.classes)
        tensors |= labels
    return document, tensors


def _describe_maps(maps: MapList) -> tuple[list[dict[str, Any]], dict[str, NDArray]]:
    """Return one entry per kind of map, and its arrays; with several kinds, also the columns of each."""
    groups: list[dict[str, Any]] = []
    tensors: dict[str, NDArray] = {}
    for index, (kind, columns) in enumerate(maps.groups):
        if KINDS.get(kind.kind) is not kind:
            raise ModelFileError(
                f"maps of the kind {kind.kind!r} are not in the table of kinds, so a file cannot hold them."
            )
        entries, arrays = kind.pack(maps.members(columns))
        groups.append({"kind": kind.kind, "count": len(columns), **({"entries": entries} if entries else {})})
        tensors |= {f"map.{index}.{name}": array for name, array in arrays.items()}
        if len(maps.groups) > 1:
            tensors[f"columns.{index}"] = np.array(columns, dtype=np.int64)
    return groups, tensors


def read_fitted(document: Document, loss: str, dims: tuple[int, ...]) -> FittedModel:
    """Check and build a model with this loss and these sizes of maps."""
    cores = document.tensor("cores", (np.float64, np.float32), (None,))
    if not np.isfinite(cores).all():
        raise ValueError("the cores contain NaN or infinity.")
    if not all(1 <= n <= cores.size for n in dims):
        raise ValueError("the dims of the plan are not plausible.")
    ranks = document.tensor("ranks", (np.int64,), (None, len(dims) + 1))
    trains = _read_trains(cores, dims, ranks)
    maps = _read_maps(document, len(dims))
    if maps.dims != dims:
        raise ValueError("the maps have other sizes than the plan.")
    names = document.take("feature_names", list, type(None))
    if names is not None and (len(names) != len(dims) or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"there should be {len(dims)} feature names.")
    columns = document.take("columns", dict, type(None))
    ends = _read_ends(document, len(trains))
    if overflows(maps, trains, ends["size"], ends["shift"], "classes" in ends):
        raise ValueError("the scores of the trains are too large for floats in some rows.")
    model = FittedModel.make(loss, maps, trains, feature_names=names, **ends)
    if model.classes is None:
        model = replace(model, uncertainty=_read_uncertainty(document, model.cores))
    return model if columns is None else replace(model, columns=_read_columns(columns, model))


def _read_columns(described: dict[str, Any], model: FittedModel) -> Columns:
    """Check and return how columns of any type become the features."""
    columns = Columns.from_json(described)
    if columns.n_features != model.n_features or model.feature_names != columns.feature_names:
        raise ValueError("the columns become other features than those of the model.")
    for levels, feature_map in zip(columns.levels, model.maps, strict=True):
        if isinstance(feature_map, CategoryMap) and levels is not None and not feature_map.range[1] < len(levels):
            raise ValueError("a column has other levels than its map.")
    return columns


def _read_trains(cores: NDArray, dims: tuple[int, ...], ranks: NDArray) -> list[list[NDArray]]:
    """Check that sizes fit and that stacking does not blow them up, then cut the cores."""
    ends = ranks[:, [0, -1]]
    if not len(ranks) or ranks.min() < 1 or ranks.max() > cores.size or (ends != 1).any():
        raise ValueError("the ranks are not plausible.")
    sizes = ranks[:, :-1].astype(np.float64) * np.array(dims, dtype=np.float64) * ranks[:, 1:]  # ints might overflow
    if sizes.sum() != cores.size:
        raise ValueError(f"dims and ranks ask for {sizes.sum():.0f} numbers, but there are {cores.size}.")
    widest = ranks.max(axis=0).astype(np.float64)
    padded = len(ranks) * float(np.sum(widest[:-1] * np.array(dims) * widest[1:]))
    if padded > max(_FREE_PADDING, _LARGEST_PADDING * cores.size):
        raise ValueError(f"the ranks of the trains differ so much that stacking them takes {padded:.3g} numbers.")
    stops = np.cumsum(sizes.ravel()).astype(np.int64).tolist()
    shapes = zip(ranks[:, :-1].ravel().tolist(), cycle(dims), ranks[:, 1:].ravel().tolist(), strict=False)
    # Parts of one array that nobody can write to: a copy of each would take more time and memory than its numbers.
    frozen = np.array(cores, dtype=np.float64)
    frozen.setflags(write=False)
    parts = [frozen[a:b].reshape(shape) for a, b, shape in zip([0, *stops], stops, shapes, strict=False)]
    return [parts[first : first + len(dims)] for first in range(0, len(parts), len(dims))]


def _read_maps(document: Document, n_features: int) -> MapList:
    groups = document.take("maps", list)
    maps: list[FeatureMap | None] = [None] * n_features
    seen: set[str] = set()
    for index, group in enumerate(groups):
        if not isinstance(group, dict) or not {"kind", "count"} <= group.keys() <= {"kind", "count", "entries"}:
            raise ValueError(f"the maps should be described by kind, count and entries, not by {group!r:.60}.")
        kind, count, entries = group["kind"], group["count"], group.get("entries", {})
        if not isinstance(kind, str) or kind not in KINDS or not isinstance(entries, dict):
            raise ValueError(f"there are no maps of the kind {kind!r:.60}; there are {list(KINDS)}.")
        if kind in seen:
            raise ValueError(f"the maps of the kind {kind!r} are in two groups; one is for all of them.")
        seen.add(kind)
        if type(count) is not int or not 1 <= count <= n_features:
            raise ValueError(f"there cannot be {count!r:.60} maps of the kind {kind!r}.")
        columns = np.arange(n_features)
        if len(groups) > 1:
            columns = document.tensor(f"columns.{index}", (np.int64,), (count,))
        if count != len(columns) or (columns < 0).any() or (columns >= n_features).any():
            raise ValueError("the columns of the maps are not plausible.")
        for k, feature_map in zip(
            columns, KINDS[kind].unpack(entries, document.tensors(f"map.{index}."), count), strict=True
        ):
            maps[k] = feature_map
    found = [feature_map for feature_map in maps if feature_map is not None]
    if len(found) < n_features:
        raise ValueError("some columns have no map.")
    return MapList(found)


def _read_ends(document: Document, n_trains: int) -> dict[str, Any]:
    """Return the arguments of ``FittedModel.make`` that turn scores into answers."""
    shift, size = (document.tensor(name, (np.float64,), (n_trains,)) for name in ("shift", "size"))
    one_output, calibrated = document.take("one_output", bool), document.take("calibrated", bool)
    decision, labels = document.take("decision", str, type(None)), document.take("classes", dict, type(None))
    if not (np.isfinite(shift).all() and np.isfinite(size).all() and (size > 0).all()):
        raise ValueError("shift and size of the target should be finite, and the size positive.")
    ends: dict[str, Any] = {"shift": shift, "size": size, "one_output": one_output}
    if (decision is None) != (labels is None):
        raise ValueError("a classifier has both a decision and classes.")
    if labels is None or decision is None:
        if calibrated:
            raise ValueError("a regressor is not calibrated.")
        if one_output and n_trains != 1:
            raise ValueError(f"a regressor of one output has one train, not {n_trains}.")
        return ends
    if not calibrated and (shift.any() or (size != 1.0).any()):
        raise ValueError("a classifier's scores are neither shifted nor scaled, unless it is calibrated.")
    if not one_output:
        raise ValueError("a classifier has one output.")
    classes = read_labels(labels, document.tensor)
    decided = _read_decision(decision, len(classes), n_trains)
    return {**ends, "decision": decided, "classes": classes, "calibrated": calibrated}


def _read_decision(name: str, n_classes: int, n_trains: int) -> Decision:
    decision = get_decision(name, n_classes)
    needed = decision.n_trains(n_classes)
    if n_trains != needed:
        raise ValueError(f"{n_classes} classes need {needed} trains with {name}, not {n_trains}.")
    return decision


# --- overflow ---------------------------------------------------------------------------------------------------------


def overflows(
    maps: MapList, trains: Sequence[Sequence[NDArray]], size: NDArray, shift: NDArray, is_classifier: bool
) -> bool:
    """Tell whether a row within the ranges of the maps has values or scores that exceed the largest float.

    Cores may be finite and their product not. A safe bound is enough for most trains. For the others this searches a
    row whose values overflow on the way through the train, so that it refuses no model that works.
    """
    most = _MOST_OF_CLASSIFIERS if is_classifier else _MOST
    if (np.abs(shift) > 2.0**most).any():
        return True
    factors = np.log2(np.maximum(size, 1.0))
    suspects = np.flatnonzero(factors + _log_bounds(maps, trains) > _MOST_OF_CLASSIFIERS).tolist()
    if not suspects:
        return False
    extremes = [feature_map.extremes() for feature_map in maps]
    most = max(most, _MOST_STRETCH + float(np.log2(maps.dims).sum()) / 2)
    return any(_log_largest(trains[t], extremes, float(factors[t])) > most for t in suspects)


def _log_bounds(maps: MapList, trains: Sequence[Sequence[NDArray]]) -> NDArray:
    """Return log2 of a bound on all values on the way through each train, (n_trains,)."""
    cores = [core for train in trains for core in train]
    starts = np.cumsum([0, *(core.size for core in cores)])[:-1]
    with np.errstate(over="ignore", divide="ignore"):
        sums = np.add.reduceat(np.abs(np.concatenate([core.ravel() for core in cores])), starts)
        logs = np.log2(sums).reshape(len(trains), -1) + np.log2([feature_map.bound for feature_map in maps])
    return np.maximum(logs, 0.0).sum(axis=1)


def _log_largest(train: Sequence[NDArray], extremes: Sequence[NDArray], log_size: float) -> float:
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


def _describe_uncertainty(known: Uncertainty | None) -> dict[str, NDArray]:
    """Return the arrays; none if the uncertainty is not known."""
    if known is None:
        return {}
    trains = known.trains
    cores = [core for train in trains for core in train.moments]
    errors = [train.left_out for train in trains]
    found: dict[str, NDArray] = {
        "guaranteed": np.array([known.guaranteed]),
        "numbers": np.array([(train.alpha, train.reach, train.noise) for train in trains]),
        "counts": np.array([(len(t.moments), len(t.left_out.errors), t.left_out.n_rows) for t in trains]),
        "errors": np.concatenate([np.stack([own.errors, own.heights]) for own in errors], axis=1),
        "ranks": np.array([(len(core.left), len(core.right)) for core in cores], dtype=np.int64).reshape(-1, 2),
        "moments": np.concatenate([np.zeros(0), *(array.ravel() for core in cores for array in core)]),
    }
    return {"uncertainty." + name: array for name, array in found.items()}


def _read_uncertainty(document: Document, cores: Sequence[Sequence[NDArray]]) -> Uncertainty | None:
    """Check and undo `_describe_uncertainty`, for a model with these trains."""
    kept = document.tensors("uncertainty.")
    if not kept:
        return None
    arrays = Document({}, kept)
    n_trains, n_cores = len(cores), len(cores[0])
    floats, ints = (np.float64,), (np.int64,)
    guaranteed = arrays.tensor("guaranteed", (np.bool_,), (1,))
    numbers = arrays.tensor("numbers", floats, (n_trains, 3))
    counts = arrays.tensor("counts", ints, (n_trains, 3))
    errors = arrays.tensor("errors", floats, (2, None))
    ranks = arrays.tensor("ranks", ints, (None, 2))
    moments = arrays.tensor("moments", floats, (None,))
    arrays.check_empty()
    for array in (numbers, errors, moments):
        if not np.isfinite(array).all() or (array is not moments and (array < 0).any()):
            raise ValueError("the uncertainty holds numbers that are not finite, or negative ones.")
    n_moments, n_errors, n_rows = counts.T
    if (n_errors < 1).any() or (n_rows < n_errors).any() or n_errors.sum() != errors.shape[1]:
        raise ValueError("the errors of the uncertainty are not plausible.")
    if not np.isin(n_moments, (0, n_cores)).all() or n_moments.sum() != len(ranks):
        raise ValueError("the moments of the uncertainty are not those of the trains.")
    measured = _read_moments(moments, ranks, [train for train, n in zip(cores, n_moments, strict=True) if n])
    left_outs = np.split(errors, np.cumsum(n_errors)[:-1], axis=1)
    trains = []
    for (alpha, reach, noise), n, left_out, count in zip(
        numbers.tolist(), n_moments.tolist(), left_outs, n_rows.tolist(), strict=True
    ):
        if (np.diff(left_out) < 0).any() or left_out[1, -1] != 1.0:
            raise ValueError("the errors of the uncertainty are not in order.")
        own = measured.pop(0) if n else ()
        errors, heights = left_out.copy()
        trains.append(TrainUncertainty(own, alpha, reach, noise, LeftOutErrors(errors, heights, count)))
    return Uncertainty(tuple(trains), bool(guaranteed[0]))


def _read_moments(
    moments: NDArray, ranks: NDArray, cores: Sequence[Sequence[NDArray]]
) -> list[tuple[CoreMoments, ...]]:
    """Check that sizes fit, then cut the moments."""
    shapes = []
    for (left, right), core in zip(ranks.tolist(), (core for train in cores for core in train), strict=True):
        a, n, b = core.shape
        if not (1 <= left <= a and 1 <= right <= b):
            raise ValueError("the ranks of the moments are not plausible.")
        shapes.append([(left, a), (n, n), (right, b), (left,), (n,), (right,)])
    sizes = [int(np.prod(shape)) for shape in (shape for core in shapes for shape in core)]
    if sum(sizes) != len(moments):
        raise ValueError(f"the moments should be {sum(sizes)} numbers, but there are {len(moments)}.")
    parts = iter(np.split(moments, np.cumsum(sizes)[:-1]) if sizes else [])
    found = []
    for of_core in shapes:
        arrays = [next(parts).reshape(shape).copy() for shape in of_core]
        if any((array < 0).any() for array in arrays[3:]):
            raise ValueError("a second moment is negative.")
        found.append(CoreMoments(*arrays))
    n_cores = len(cores[0]) if cores else 1
    return [tuple(found[first : first + n_cores]) for first in range(0, len(found), n_cores)]
