"""A fitted model <-> a JSON document and named arrays.

`read_fitted` checks all that a prediction relies on.
Numbers that decide about memory are compared with what is there before they are used.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import Columns
from polytrain.decisions import Decision, get_decision
from polytrain.maps import KINDS, CategoryMap, FeatureMap, MapList
from polytrain.models.document import Document
from polytrain.models.errors import ModelFileError
from polytrain.models.fitted import FittedModel
from polytrain.models.labels import read_labels, write_labels
from polytrain.models.overflow import overflows
from polytrain.models.uncertainty_state import describe_uncertainty, read_uncertainty
from polytrain.models.values import join_cores

__all__ = ["describe_fitted", "read_fitted"]

# Trains of unequal ranks are padded to the largest when they are stacked. A file may ask for padding to so many
# numbers, or to so many times what it stores, and not for more.
_FREE_PADDING, _LARGEST_PADDING = 1 << 22, 16


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
        **describe_uncertainty(model.uncertainty),
    }
    if model.classes is not None:
        document["classes"], labels = write_labels(model.classes)
        tensors |= labels
    return document, tensors


def _describe_maps(maps: MapList) -> tuple[list[dict[str, Any]], dict[str, NDArray]]:
    """Kinds with what they say about their maps; the columns of a kind are listed where there are several."""
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
        model = replace(model, uncertainty=read_uncertainty(document, model.cores))
    return model if columns is None else replace(model, columns=_read_columns(columns, model))


def _read_columns(described: dict[str, Any], model: FittedModel) -> Columns:
    """How columns of any type become the features."""
    columns = Columns.from_json(described)
    if columns.n_features != model.n_features or model.feature_names != columns.feature_names:
        raise ValueError("the columns become other features than those of the model.")
    for levels, feature_map in zip(columns.levels, model.maps, strict=True):
        if isinstance(feature_map, CategoryMap) and levels is not None and not feature_map.range[1] < len(levels):
            raise ValueError("a column has other levels than its map.")
    return columns


def _read_trains(cores: NDArray, dims: tuple[int, ...], ranks: NDArray) -> list[list[NDArray]]:
    """Cut the cores, once it is sure that sizes fit and that stacking will not blow them up."""
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
    """What becomes of the scores: arguments of ``FittedModel.make``."""
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
