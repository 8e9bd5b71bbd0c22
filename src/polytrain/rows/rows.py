"""Checked rows in one or more partitions, wherever these are, from the first look at them to placed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.columns import Columns
from polytrain.learning.engines.tasks import Runner
from polytrain.learning.placed import Budget, PlacedRows
from polytrain.learning.sampling import row_keys
from polytrain.learning.targets import PlacedBlock
from polytrain.maps import ColumnSummary, MapList
from polytrain.rows.sketch import RowSketch, column_summaries, row_hashes, sketch_rows, target_hashes
from polytrain.rows.summary import Summary, summarise

__all__ = ["Rows", "Scored", "positive_rows"]


class Scored(NamedTuple):
    """Scores (N, n_trains) of rows beside their targets or indices of labels, weights and hashes."""

    scores: NDArray
    y: NDArray
    weights: NDArray
    hashes: NDArray

    @classmethod
    def merge(cls, found: Iterable[Scored]) -> Scored:
        """Join the rows of all partitions."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def positive_rows(X: NDArray, y: NDArray, weights: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return the rows of positive weight."""
    kept = weights > 0
    return (X, y, weights) if kept.all() else (X[kept], y[kept], weights[kept])


@dataclass(frozen=True)
class _Task:
    """A picklable function of the arrays X, y and weights of the chosen rows, applied to a partition as it came."""

    check: Callable[[Any], tuple[NDArray, NDArray, NDArray]]
    parts: tuple[tuple[int, int, int, bool], ...]
    apart: tuple[float, bool] | None
    function: Callable
    arguments: tuple[Any, ...]

    def __call__(self, raw: Any) -> Any:
        X, y, weights = self.check(raw)
        if self.parts or self.apart is not None:
            hashes = row_hashes(X)
        for start, stop, n_parts, inside in self.parts:
            number = hashes % np.uint64(n_parts)
            weights = weights * (((number >= start) & (number < stop)) == inside)
        if self.apart is not None:
            fraction, inside = self.apart
            weights = weights * ((target_hashes(hashes, y) / 2.0**64 < fraction) == inside)
        return self.function(*positive_rows(X, y, weights), *self.arguments)


def _place(X: NDArray, y: NDArray, weights: NDArray, maps: MapList, summary: Summary) -> PlacedBlock:
    columns = maps.place(X.astype(summary.dtype, copy=False))
    return PlacedBlock(columns, _targets(y, summary), weights / summary.largest_weight, row_keys(columns))


def _score(X: NDArray, y: NDArray, weights: NDArray, scores: Callable[[NDArray], NDArray], summary: Summary) -> Scored:
    found = scores(X.astype(summary.dtype, copy=False)).T
    return Scored(found, _targets(y, summary), weights / summary.largest_weight, row_hashes(X))


def _present_labels(X: NDArray, y: NDArray, weights: NDArray, summary: Summary) -> NDArray:
    return np.unique(_targets(y, summary)) if summary.target is None else np.zeros(min(len(y), 1), dtype=int)


def _targets(y: NDArray, summary: Summary) -> NDArray:
    return summary.label_index(y) if summary.target is None else y


class Rows:
    """Rows with targets and weights, in one or more partitions.

    Parameters
    ----------
    map_raw : callable
        Applies a function to every partition as it came, and returns handles.
    check : callable
        Picklable: turns a partition as it came into the arrays X (N, d), y and weights.
    classify : bool
        Whether targets are labels.
    column_names, columns : optional
        Names of the columns, and how the columns become features if they are more than numbers.
    runner : Runner, optional
        Where the partitions are; without it, there is one, in the memory of this process, and it is its own handle.
    max_bytes : int, default=0
        Placed rows of a runner are brought to this process if learning from them takes no more memory than this.
    """

    def __init__(
        self,
        map_raw: Callable[[Callable[[Any], Any]], list[Any]],
        check: Callable[[Any], tuple[NDArray, NDArray, NDArray]],
        classify: bool,
        column_names: Sequence[str] | None = None,
        columns: Columns | None = None,
        runner: Runner | None = None,
        max_bytes: int = 0,
    ) -> None:
        self._map_raw, self._check, self.classify = map_raw, check, classify
        self.column_names = None if column_names is None else [str(name) for name in column_names]
        self.columns_of_any_type = columns
        self._runner, self._max_bytes = runner, max_bytes
        self._parts: tuple[tuple[int, int, int, bool], ...] = ()
        self._apart: tuple[float, bool] | None = None

    @classmethod
    def of_arrays(
        cls,
        arrays: tuple[NDArray, NDArray, NDArray],
        classify: bool,
        column_names: Sequence[str] | None = None,
        columns: Columns | None = None,
        summary: Summary | None = None,
    ) -> Rows:
        """Rows whose checked arrays X, y and weights are in the memory of this process."""
        return cls(lambda function: [function(arrays)], tuple, classify, column_names, columns)._with_summary(summary)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if there are any: those of the columns, or of what they became."""
        columns = self.columns_of_any_type
        return self.column_names if columns is None else list(columns.feature_names)

    @property
    def is_category(self) -> NDArray | None:
        """Which features are categories; None where all are numbers."""
        return None if self.columns_of_any_type is None else self.columns_of_any_type.is_category

    def _map(self, function: Callable, *arguments: Any) -> list[Any]:
        return self._map_raw(_Task(self._check, self._parts, self._apart, function, arguments))

    def _collect(self, function: Callable, *arguments: Any) -> list[Any]:
        handles = self._map(function, *arguments)
        return handles if self._runner is None else list(self._runner.collect(handles))

    @cached_property
    def summary(self) -> Summary:
        """Summary of all rows, made by the first pass over them."""
        return Summary.merge(self._collect(summarise, self.classify))

    @cached_property
    def sketch(self) -> RowSketch:
        """A sample of different rows."""
        return RowSketch.merge(self._collect(sketch_rows, self.summary))

    def columns(self, with_values: bool, weights: NDArray | None = None) -> list[ColumnSummary]:
        """Return the range of every column, and on request its values, those of the sketch.

        The rows of the sketch may have other weights than their own, (k,).
        """
        if not with_values:
            return column_summaries(self.summary, None)
        return column_summaries(self.summary, self.sketch if weights is None else self.sketch._replace(weights=weights))

    def _with_summary(self, summary: Summary | None) -> Rows:
        """Return a copy with this summary, or one that is yet to be made, and without a sketch."""
        other = copy(self)
        for name in ("summary", "sketch"):
            vars(other).pop(name, None)
        if summary is not None:
            other.summary = summary
        return other

    def with_labels(self, labels: NDArray, weights: NDArray) -> Rows:
        """Return the same rows with other known labels, some of which may have no rows, and their total weights."""
        return self._with_summary(replace(self.summary, labels=labels, label_weights=weights))

    def part(self, start: int, stop: int, n_parts: int, inside: bool = True) -> Rows:
        """Return some of several parts of the rows, or all others, with the summary of all.

        The hash of a row says to which part it belongs: equal rows are together, wherever they are.
        """
        other = self._with_summary(self.summary)
        other._parts = (*self._parts, (start, stop, n_parts, inside))
        return other

    def set_apart(self, fraction: float) -> tuple[Rows, Rows]:
        """Return all rows but about this fraction of them, and that fraction, with summaries of their own.

        The hash of a row and its targets, which are numbers, says to which side it belongs.
        """
        learned, apart = self._with_summary(None), self._with_summary(None)
        learned._apart, apart._apart = (fraction, False), (fraction, True)
        return learned, apart

    def scored(self, scores: Callable[[NDArray], NDArray]) -> Scored:
        """Apply a function, rows X (N, d) -> scores (n_trains, N), to all rows, and bring its results here."""
        return Scored.merge(self._collect(_score, scores, self.summary))

    def present_labels(self) -> NDArray:
        """Return the indices of the labels that any rows have; for numbers, 0 if there are any rows."""
        return np.unique(np.concatenate(self._collect(_present_labels, self.summary)))

    def place(self, maps: MapList) -> PlacedRows:
        """Place the columns of all rows where they are: the second pass over them."""
        partitions = self._map(_place, maps, self.summary)
        if self._runner is None:
            return PlacedRows(partitions[0])
        budget = Budget(self._max_bytes, self.summary.n_rows, self.summary.dtype.itemsize)
        return PlacedRows(runner=self._runner, partitions=partitions, budget=budget)
