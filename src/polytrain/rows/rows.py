"""Rows in partitions somewhere, from the first look at them to learned trains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
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
from polytrain.rows.summary import RawRows, Summary, summarise

__all__ = ["ArrayRows", "PartitionedRows", "Rows", "Scored"]


class _Checked:
    """A picklable function of checked rows, applied to raw rows; those outside of the chosen parts weigh nothing."""

    def __init__(
        self,
        check: Callable[[Any], RawRows],
        parts: Sequence[tuple[int, int, int, bool]],
        apart: tuple[float, bool] | None,
        function: Callable,
        *arguments: Any,
    ) -> None:
        self._check, self._parts, self._apart = check, parts, apart
        self._function, self._arguments = function, arguments

    def __call__(self, raw: Any) -> Any:
        rows = self._check(raw)
        for start, stop, n_parts, inside in self._parts:
            number = row_hashes(rows.X) % np.uint64(n_parts)
            chosen = ((number >= start) & (number < stop)) == inside
            rows = RawRows(rows.X, rows.y, rows.weights * chosen)
        if self._apart is not None:
            fraction, inside = self._apart
            position = target_hashes(row_hashes(rows.X), rows.y) / 2.0**64
            rows = RawRows(rows.X, rows.y, rows.weights * ((position < fraction) == inside))
        return self._function(rows, *self._arguments)


class _ColumnReader:
    """A picklable function of raw rows: what their columns are, or None if there are no rows."""

    def __init__(self, categorical_features: Any) -> None:
        self._categorical_features = categorical_features

    def __call__(self, raw: Any) -> Columns | None:
        return Columns.fit_part(raw[0], self._categorical_features) if len(raw[0]) else None


def _place(rows: RawRows, maps: MapList, summary: Summary, classify: bool) -> PlacedBlock:
    rows = rows.filled()
    columns = maps.place(rows.X.astype(summary.dtype, copy=False))
    y = summary.label_index(rows.y) if classify else rows.y
    return PlacedBlock(columns, y, rows.weights / summary.largest_weight, row_keys(columns))


def _scored(rows: RawRows, scores: Callable[[NDArray], NDArray], summary: Summary, classify: bool) -> Scored:
    rows = rows.filled()
    y = summary.label_index(rows.y) if classify else rows.y
    found = scores(rows.X.astype(summary.dtype, copy=False)).T
    return Scored(found, y, rows.weights / summary.largest_weight, row_hashes(rows.X))


class Scored(NamedTuple):
    """Scores (N, n_trains) of rows beside their targets, weights and hashes; labels are given by their index."""

    scores: NDArray
    y: NDArray
    weights: NDArray
    hashes: NDArray


def _codes(rows: RawRows, summary: Summary, classify: bool) -> NDArray:
    kept = rows.weights > 0
    codes = np.full(len(rows.y), -1)
    codes[kept] = summary.label_index(rows.y[kept]) if classify else 0
    return codes


class Rows(ABC):
    """Rows with targets and weights, in one or more partitions.

    Parameters
    ----------
    check : callable
        Picklable: turns a partition as it comes into `RawRows`.
    classify : bool
        Whether targets are labels.
    column_names : sequence of str, optional
    columns : Columns, optional
        How the columns become features, if they are more than numbers.

    Attributes
    ----------
    in_memory : bool
        Whether the rows are arrays of this process, so that other processes can be given copies.
    """

    in_memory: bool

    def __init__(
        self,
        check: Callable[[Any], RawRows],
        classify: bool,
        column_names: Sequence[str] | None = None,
        columns: Columns | None = None,
    ) -> None:
        self._check, self.classify = check, classify
        self.column_names = None if column_names is None else [str(name) for name in column_names]
        self.columns_of_any_type = columns
        self._parts: tuple[tuple[int, int, int, bool], ...] = ()
        self._apart: tuple[float, bool] | None = None
        self._summary: Summary | None = None
        self._sketch: RowSketch | None = None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if there are any: those of the columns, or of what they became."""
        columns = self.columns_of_any_type
        return self.column_names if columns is None else list(columns.feature_names)

    @property
    def is_category(self) -> NDArray | None:
        """Which features are categories; None where all are numbers."""
        return None if self.columns_of_any_type is None else self.columns_of_any_type.is_category

    @abstractmethod
    def _map_raw(self, function: Callable[[Any], Any]) -> list[Any]:
        """Apply a function to every partition as it came, and return handles."""

    @abstractmethod
    def _collect(self, handles: list[Any]) -> list[Any]:
        """Return what handles stand for."""

    @abstractmethod
    def place(self, maps: MapList) -> PlacedRows:
        """Place the columns of all rows: the second pass over them."""

    def _map(self, function: Callable, *arguments: Any) -> list[Any]:
        return self._map_raw(_Checked(self._check, self._parts, self._apart, function, *arguments))

    @property
    def summary(self) -> Summary:
        """Summary of all rows, made by the first pass over them."""
        if self._summary is None:
            self._summary = Summary.merge(self._collect(self._map(summarise, self.classify)))
        return self._summary

    @property
    def sketch(self) -> RowSketch:
        """A few different rows that stand for all."""
        if self._sketch is None:
            self._sketch = RowSketch.merge(self._collect(self._map(sketch_rows, self.summary)))
        return self._sketch

    def columns(self, with_values: bool, weights: NDArray | None = None) -> list[ColumnSummary]:
        """What the maps may know about every column: its range, and its values if they are asked for.

        The rows of the sketch may have other weights than their own, (k,).
        """
        if not with_values:
            return column_summaries(self.summary, None)
        return column_summaries(self.summary, self.sketch if weights is None else replace(self.sketch, weights=weights))

    def with_labels(self, labels: NDArray, weights: NDArray) -> Rows:
        """Return the same rows with other known labels, some of which may have no rows, and their total weights."""
        other = copy(self)
        other._summary, other._sketch = replace(self.summary, labels=labels, label_weights=weights), None
        return other

    def part(self, start: int, stop: int, n_parts: int, inside: bool = True) -> Rows:
        """Return some of several parts of the rows, or all others, with the summary of all.

        Rows belong to a part by what they hold: equal rows are together, wherever they are.
        """
        other = copy(self)
        other._summary, other._sketch = self.summary, None
        other._parts = (*self._parts, (start, stop, n_parts, inside))
        return other

    def set_apart(self, fraction: float) -> tuple[Rows, Rows]:
        """Return all rows but about this part of them, and that part; neither knows anything of the other.

        Rows belong to a side by what they and their targets, which are numbers, hold: equal rows are together, and
        where no two rows are equal, it is as if somebody had tossed a coin.
        """
        sides = []
        for inside in (False, True):
            other = copy(self)
            other._summary = other._sketch = None
            other._apart = fraction, inside
            sides.append(other)
        return sides[0], sides[1]

    def scored(self, scores: Callable[[NDArray], NDArray]) -> Scored:
        """Apply a function, rows X (N, d) -> scores (n_trains, N), to all rows, and bring what it gives here."""
        found = self._collect(self._map(_scored, scores, self.summary, self.classify))
        return Scored(*(np.concatenate(pieces) for pieces in zip(*found, strict=True)))

    def label_codes(self) -> NDArray:
        """Index of every row's label in the summary, in this process's memory; 0 for numbers, -1 without weight."""
        return np.concatenate(self._collect(self._map(_codes, self.summary, self.classify)))


class ArrayRows(Rows):
    """Checked arrays in the memory of this process."""

    in_memory = True

    def __init__(
        self,
        rows: RawRows,
        classify: bool,
        column_names: Sequence[str] | None = None,
        columns: Columns | None = None,
        summary: Summary | None = None,
    ) -> None:
        super().__init__(_as_is, classify, column_names, columns)
        self._raw, self._summary = rows, summary

    def _map_raw(self, function: Callable[[Any], Any]) -> list[Any]:
        return [function(self._raw)]

    def _collect(self, handles: list[Any]) -> list[Any]:
        return handles

    def place(self, maps: MapList) -> PlacedRows:
        """Place all columns at once."""
        return PlacedRows(self._map(_place, maps, self.summary, self.classify)[0])


def _as_is(rows: RawRows) -> RawRows:
    return rows


class PartitionedRows(Rows):
    """Rows in partitions that only tasks see.

    Parameters
    ----------
    runner : Runner
        Where the tasks run.
    check, classify, column_names
        See `Rows`.
    max_bytes : int, default=0
        Placed rows are brought to this process if all that is learned from them takes no more memory than this.
    """

    in_memory = False

    def __init__(
        self,
        runner: Runner,
        check: Callable[[Any], RawRows],
        classify: bool,
        column_names: Sequence[str] | None = None,
        max_bytes: int = 0,
    ) -> None:
        super().__init__(check, classify, column_names)
        self._runner, self._max_bytes = runner, max_bytes

    def _read_columns(self, categorical_features: Any, check: Callable[..., RawRows]) -> None:
        """Find out what the columns are, where they are more than numbers: one more pass over the rows."""
        found = self._collect(self._map_raw(_ColumnReader(categorical_features)))
        self.columns_of_any_type = Columns.merge([columns for columns in found if columns is not None])
        self._check = partial(check, columns=self.columns_of_any_type)

    def _collect(self, handles: list[Any]) -> list[Any]:
        return list(self._runner.collect(handles))

    def place(self, maps: MapList) -> PlacedRows:
        """Place the columns where they are."""
        partitions = self._map(_place, maps, self.summary, self.classify)
        budget = Budget(self._max_bytes, self.summary.n_rows, self.summary.dtype.itemsize)
        return PlacedRows(runner=self._runner, partitions=partitions, budget=budget)
