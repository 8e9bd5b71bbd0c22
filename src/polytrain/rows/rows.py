"""Checked rows in one or more partitions: summarised in a first pass, placed by maps in a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import Columns
from polytrain.learning.distinct import row_keys
from polytrain.learning.engines.tasks import Runner
from polytrain.learning.placed import PlacedRows
from polytrain.learning.targets import PlacedBlock
from polytrain.maps import ColumnSummary, MapList
from polytrain.rows.summary import (
    RowSketch,
    Summary,
    column_summaries,
    row_hashes,
    sketch_rows,
    summarise,
    target_hashes,
)

#: Checked features (N, d), labels (N,) or targets (N,) or (N, outputs), and weights (N,).
Arrays = tuple[NDArray, NDArray, NDArray]
Check = Callable[[Any], Arrays]
#: Applies a function to every partition as it came, and returns handles.
MapRaw = Callable[[Callable[[Any], Any]], list[Any]]


class Scored(NamedTuple):
    """Scores (N, n_trains) of rows with their targets or indices of labels, weights and hashes."""

    scores: NDArray
    y: NDArray
    weights: NDArray
    hashes: NDArray

    @classmethod
    def merge(cls, parts: Iterable[Scored]) -> Scored:
        """Join the rows of all partitions."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def positive_rows(X: NDArray, y: NDArray, weights: NDArray) -> Arrays:
    """Return the rows of positive weight."""
    kept = weights > 0
    return (X, y, weights) if kept.all() else (X[kept], y[kept], weights[kept])


def _apply(raw: Any, check: Check, function: Callable, arguments: Sequence[Any]) -> Any:
    """Apply a function to the arrays of the rows of positive weight in a partition."""
    return function(*positive_rows(*check(raw)), *arguments)


def _chosen(raw: Any, check: Check, is_inside: Callable[[NDArray, NDArray], NDArray], wanted: bool) -> Arrays:
    """Check a partition, and leave weight only to rows that are chosen by their hashes and targets."""
    X, y, weights = check(raw)
    return X, y, weights * (is_inside(row_hashes(X), y) == wanted)


def _place(X: NDArray, y: NDArray, weights: NDArray, maps: MapList, summary: Summary) -> PlacedBlock:
    columns = maps.place(X.astype(summary.dtype, copy=False))
    return PlacedBlock(columns, _targets(y, summary), weights / summary.largest_weight, row_keys(columns))


def _score(X: NDArray, y: NDArray, weights: NDArray, scores: Callable[[NDArray], NDArray], summary: Summary) -> Scored:
    values = scores(X.astype(summary.dtype, copy=False)).T
    return Scored(values, _targets(y, summary), weights / summary.largest_weight, row_hashes(X))


def _targets(y: NDArray, summary: Summary) -> NDArray:
    return summary.label_index(y) if summary.target is None else y


@dataclass(eq=False)
class Rows:
    """Rows with targets (labels if ``classify``) and weights, in one or more partitions.

    ``map_raw`` applies a function to every partition as it came and returns handles; ``check`` is picklable and turns
    such a partition into arrays. Without a ``runner``, the only partition is in the memory of this process, and is its
    own handle. Placed rows of a runner are brought to this process if learning from them takes at most ``max_bytes``.
    """

    map_raw: MapRaw
    check: Check
    classify: bool
    column_names: Sequence[str] | None = None
    columns_of_any_type: Columns | None = None
    runner: Runner | None = None
    max_bytes: int = 0

    @classmethod
    def of_arrays(cls, arrays: Arrays, classify: bool, names: Any = None, columns: Columns | None = None) -> Rows:
        """Rows whose checked arrays X, y and weights are in the memory of this process."""
        return cls(lambda function: [function(arrays)], tuple, classify, names, columns)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if there are any: those of the columns or of their encodings."""
        columns = self.columns_of_any_type
        names = self.column_names if columns is None else columns.feature_names
        return None if names is None else [str(name) for name in names]

    @property
    def is_category(self) -> NDArray | None:
        """Which features are categories; None where all are numbers."""
        return None if self.columns_of_any_type is None else self.columns_of_any_type.is_category

    def _map(self, function: Callable, *arguments: Any) -> list[Any]:
        return self.map_raw(partial(_apply, check=self.check, function=function, arguments=arguments))

    def _collect(self, function: Callable, *arguments: Any) -> list[Any]:
        handles = self._map(function, *arguments)
        return handles if self.runner is None else list(self.runner.collect(handles))

    @cached_property
    def summary(self) -> Summary:
        """Summary of all rows, made by the first pass over them."""
        return Summary.merge(self._collect(summarise, self.classify))

    @cached_property
    def sketch(self) -> RowSketch:
        """A sample of distinct rows."""
        return RowSketch.merge(self._collect(sketch_rows, self.summary))

    def columns(self, with_values: bool, weights: NDArray | None = None) -> list[ColumnSummary]:
        """Return the range of every column, and on request its values in the sketch, perhaps with other weights."""
        return column_summaries(self.summary, self.sketch if with_values else None, weights)

    def _with_summary(self, summary: Summary | None, check: Check | None = None) -> Rows:
        """Copy without a sketch, with this summary or a later one, and perhaps other checks."""
        other = replace(self, check=check or self.check)
        if summary is not None:
            other.summary = summary
        return other

    def with_labels(self, labels: NDArray, weights: NDArray) -> Rows:
        """Return the same rows with other known labels, some of which may have no rows, and their total weights."""
        return self._with_summary(replace(self.summary, labels=labels, label_weights=weights))

    def part(self, start: int, stop: int, n_parts: int, inside: bool = True) -> Rows:
        """Return some of several parts of the rows, or all others, with the summary of all.

        The hash of a row determines its part, so equal rows stay together.
        """

        def is_inside(hashes: NDArray, y: NDArray) -> NDArray:
            number = hashes % np.uint64(n_parts)
            return (number >= start) & (number < stop)

        return self._with_summary(self.summary, partial(_chosen, check=self.check, is_inside=is_inside, wanted=inside))

    def part_numbers(self, n_parts: int) -> list[int]:
        """Return the numbers of the parts that have any rows, ascending."""
        numbers = self._collect(lambda X, y, weights: np.unique(row_hashes(X) % np.uint64(n_parts)))
        return np.unique(np.concatenate(numbers)).tolist()

    def set_apart(self, fraction: float) -> tuple[Rows, Rows]:
        """Return all rows but about this fraction of them, and that fraction, with summaries of their own.

        The hash of a row and its numeric targets determines its side.
        """

        def is_inside(hashes: NDArray, y: NDArray) -> NDArray:
            return target_hashes(hashes, y) / 2.0**64 < fraction

        chosen = partial(_chosen, check=self.check, is_inside=is_inside)
        outside, inside = (self._with_summary(None, partial(chosen, wanted=wanted)) for wanted in (False, True))
        return outside, inside

    def scored(self, scores: Callable[[NDArray], NDArray]) -> Scored:
        """Apply a function, rows X (N, d) -> scores (n_trains, N), to all rows, and bring its results here."""
        return Scored.merge(self._collect(_score, scores, self.summary))

    def present_labels(self) -> NDArray:
        """Return the indices of the labels that any rows have; for numbers, 0 if there are any rows."""
        summary = self.summary

        def present(X: NDArray, y: NDArray, weights: NDArray) -> NDArray:
            return np.unique(_targets(y, summary)) if summary.target is None else np.zeros(min(len(y), 1), dtype=int)

        return np.unique(np.concatenate(self._collect(present)))

    def place(self, maps: MapList) -> PlacedRows:
        """Place the columns of all rows where they are: the second pass over them."""
        partitions = self._map(_place, maps, self.summary)
        if self.runner is None:
            return PlacedRows(partitions[0])
        summary = self.summary
        return PlacedRows(None, self.runner, partitions, self.max_bytes / summary.n_rows, summary.dtype.itemsize)
