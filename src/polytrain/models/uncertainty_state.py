"""The uncertainty of a fitted model <-> named arrays of its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.moments import CoreMoments
from polytrain.models.document import Document
from polytrain.uncertainty import LeftOutErrors, TrainUncertainty, Uncertainty

__all__ = ["describe_uncertainty", "read_uncertainty"]

_PREFIX = "uncertainty."


def describe_uncertainty(known: Uncertainty | None) -> dict[str, NDArray]:
    """Return the arrays; none if nothing is known."""
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
    return {_PREFIX + name: array for name, array in found.items()}


def read_uncertainty(document: Document, cores: Sequence[Sequence[NDArray]]) -> Uncertainty | None:
    """Check and undo `describe_uncertainty`, for a model with these trains."""
    kept = document.tensors(_PREFIX)
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
    """Cut the moments, once it is sure that their sizes fit."""
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
