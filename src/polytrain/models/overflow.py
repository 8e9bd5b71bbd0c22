"""Whether the scores of trains stay finite: cores may be finite and their product not.

A bound that holds for sure is enough for most trains. For the others a row is looked for whose values overflow on the
way through the train, so that nothing is refused that does not really do so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.maps import MapList
from polytrain.tensor.decompose import split_exponent

__all__ = ["overflows"]

# Powers of two; the largest float is 2**1024. Decisions add up scores of classifiers.
_MOST, _MOST_OF_CLASSIFIERS = 1023.0, 1000.0
# Learned cores do not stretch what they multiply, but for a factor like this one over all columns. The functions of
# thousands of columns may still do it, in corners of their ranges where no row is.
_MOST_STRETCH = 500.0


def overflows(
    maps: MapList, trains: Sequence[Sequence[NDArray]], size: NDArray, shift: NDArray, is_classifier: bool
) -> bool:
    """Whether there is a row within the ranges of the maps whose values or scores exceed all floats."""
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
    """Log2 of what no value on the way through each train exceeds, (n_trains,)."""
    cores = [core for train in trains for core in train]
    starts = np.cumsum([0, *(core.size for core in cores)])[:-1]
    with np.errstate(over="ignore", divide="ignore"):
        sums = np.add.reduceat(np.abs(np.concatenate([core.ravel() for core in cores])), starts)
        logs = np.log2(sums).reshape(len(trains), -1) + np.log2([feature_map.bound for feature_map in maps])
    return np.maximum(logs, 0.0).sum(axis=1)


def _log_largest(train: Sequence[NDArray], extremes: Sequence[NDArray], log_size: float) -> float:
    """Log2 of the largest value on the way through a train, in the row that is worst in one column after the other.

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
