"""Rows that are not an array in memory: Dask collections, sources of blocks, memory maps.

They are looked at twice. The first pass finds the width, the range of the features and the labels; the second scales
the features. After that, only the tasks of ``polytrain.learning.engines.tasks`` see rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from polytrain.estimators._parameters import check_bytes, check_weights
from polytrain.learning.engines.spill import SpillRunner
from polytrain.learning.engines.tasks import PartRows
from polytrain.scaling import FeatureScale, plain_columns
from polytrain.sources import ArrayRows, is_source, recut

__all__ = ["RowsElsewhere", "Summary", "dask_parts", "is_dask", "open_elsewhere"]

COMPUTE_DTYPES = (np.float64, np.float32)


class RawRows(NamedTuple):
    """One part as it came: features (N, d), targets and weights."""

    X: NDArray
    y: NDArray
    weights: NDArray


class ScaledRows(NamedTuple):
    """One part without rows of weight zero: scaled features (d, N), targets or indices of labels, weights."""

    columns: NDArray
    y: NDArray
    weights: NDArray


@dataclass(frozen=True)
class Summary:
    """What the first pass learned about rows of positive weight.

    Attributes
    ----------
    n_rows : int
    low, high : ndarray of shape (d,)
        Range of the features.
    dtype : numpy dtype
        Compute dtype: float32 if all parts are.
    labels, label_weights : ndarray
        Different targets in order and their total weights, for classification.
    target : (float, float, float, float)
        Smallest and largest target, weighted sum of targets and sum of weights, for regression.
    largest_weight : float
    """

    n_rows: int
    low: NDArray
    high: NDArray
    dtype: np.dtype
    labels: NDArray
    label_weights: NDArray
    target: tuple[float, float, float, float]
    largest_weight: float

    @classmethod
    def merge(cls, parts: Sequence[Summary]) -> Summary:
        """Bring together the summaries of all parts."""
        widths = {len(part.low) for part in parts}
        if len(widths) > 1:
            raise ValueError(f"blocks of X differ in their number of features: {sorted(widths)}.")
        filled = [part for part in parts if part.n_rows]
        if not filled:
            raise ValueError("X has no rows of positive weight; at least one row is needed.")
        labels = np.unique(np.concatenate([part.labels for part in filled]))
        weights = np.zeros(len(labels))
        for part in filled:
            weights[np.searchsorted(labels, part.labels)] += part.label_weights
        lows, highs, sums, masses = zip(*(part.target for part in filled), strict=True)
        return cls(
            sum(part.n_rows for part in filled),
            np.min([part.low for part in filled], axis=0),
            np.max([part.high for part in filled], axis=0),
            np.result_type(*(part.dtype for part in filled)),
            labels,
            weights,
            (min(lows), max(highs), sum(sums), sum(masses)),
            max(part.largest_weight for part in filled),
        )


def _check(raw: Any, classify: bool) -> RawRows:
    """Check one block as an estimator checks an array."""
    X = check_array(raw[0], dtype=COMPUTE_DTYPES, ensure_min_samples=0, input_name="X")
    y = np.asarray(raw[1])
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y must be one number or label per row, got a block of shape {y.shape}.")
    check_consistent_length(X, y)
    if classify and len(y):
        check_classification_targets(y)
    elif not classify:
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_min_samples=0, input_name="y")
    given = raw[2] if len(raw) > 2 else None
    return RawRows(X, y, _block_weights(given, len(X)))


def _block_weights(given: Any, n_rows: int) -> NDArray:
    """Weights of one block; unlike those of a whole array, they may all be zero."""
    if given is None or not n_rows:
        return np.ones(n_rows)
    weights = np.asarray(given, dtype=np.float64)
    if weights.any():
        check_weights(weights, n_rows)
    return weights


def _summarise(raw: Any, classify: bool) -> Summary:
    X, y, weights = _check(raw, classify)
    kept = weights > 0
    X, y, weights = X[kept], y[kept], weights[kept]
    d = X.shape[1]
    if not len(X):
        empty = np.zeros(0)
        return Summary(0, np.zeros(d), np.zeros(d), X.dtype, empty, empty, (0.0, 0.0, 0.0, 0.0), 0.0)
    scale = FeatureScale.fit(X)
    labels: NDArray = np.zeros(0)
    totals: NDArray = np.zeros(0)
    target = (0.0, 0.0, 0.0, 0.0)
    if classify:
        labels, index = np.unique(y, return_inverse=True)
        totals = np.bincount(index, weights)
    else:
        target = float(y.min()), float(y.max()), float(weights @ y), float(weights.sum())
    return Summary(len(X), scale.low, scale.high, X.dtype, labels, totals, target, float(weights.max()))


def _scaled(raw: Any, classify: bool, scale: FeatureScale | None, summary: Summary) -> ScaledRows:
    X, y, weights = _check(raw, classify)
    kept = weights > 0
    X, y, weights = X[kept].astype(summary.dtype, copy=False), y[kept], weights[kept] / summary.largest_weight
    if classify:
        y = np.searchsorted(summary.labels, y)
    return ScaledRows(plain_columns(X) if scale is None else scale.columns(X), y, weights)


def _labelled(rows: ScaledRows, factors: NDArray, codes: NDArray) -> PartRows:
    """Rows of one binary problem: the codes of the labels are the targets, rows with code 0 are left out."""
    target, weights = codes[rows.y].astype(np.float64), rows.weights * factors[rows.y]
    if codes.all():
        return PartRows(rows.columns, target, weights)
    kept = np.flatnonzero(target)
    return PartRows(np.ascontiguousarray(rows.columns[:, kept]), target[kept], weights[kept])


def _centred(rows: ScaledRows, largest: float, mean: float, spread: float) -> PartRows:
    """Rows of a regression, in the units that the train is learned in."""
    return PartRows(rows.columns, (rows.y / largest - mean) / spread, rows.weights)


class _Shared:
    """A picklable function with some of its arguments, which follow the part."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._function, self._arguments = function, arguments

    def __call__(self, part: Any) -> Any:
        return self._function(part, *self._arguments)


class RowsElsewhere:
    """Parts of rows with a runner of tasks.

    Attributes
    ----------
    runner : Runner
    feature_names : list of str or None
    """

    def __init__(self, runner: Any, feature_names: Sequence[str] | None) -> None:
        self.runner = runner
        self.feature_names = None if feature_names is None else list(feature_names)

    def _map_raw(self, function: Any) -> list[Any]:
        """Apply a function to every part as it came."""
        raise NotImplementedError

    def summary(self, classify: bool) -> Summary:
        """Take the first pass over the rows."""
        return Summary.merge(list(self.runner.collect(self._map_raw(_Shared(_summarise, classify)))))

    def scale(self, summary: Summary, scale: FeatureScale | None, classify: bool) -> None:
        """Take the second pass over the rows."""
        self._scaled = self._map_raw(_Shared(_scaled, classify, scale, summary))

    def labelled(self, factors: NDArray, codes: NDArray) -> list[Any]:
        """Parts of one binary problem."""
        return self.runner.map(_Shared(_labelled, factors, codes), self._scaled)

    def centred(self, largest: float, mean: float, spread: float) -> list[Any]:
        """Parts of a regression."""
        return self.runner.map(_Shared(_centred, largest, mean, spread), self._scaled)


class _DaskRows(RowsElsewhere):
    def __init__(self, X: Any, y: Any, sample_weight: Any) -> None:
        from dask import delayed

        from polytrain.learning.engines.cluster import ClusterRunner

        pieces = [dask_parts(X, "X"), dask_parts(y, "y")]
        if sample_weight is not None:
            pieces.append(dask_parts(sample_weight, "sample_weight"))
        _check_aligned(X, y, sample_weight, pieces)
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        super().__init__(ClusterRunner(), names)
        self._raw = self.runner.start([delayed(tuple)(list(parts)) for parts in zip(*pieces, strict=True)])

    def _map_raw(self, function: Any) -> list[Any]:
        return self.runner.map(function, self._raw)


def dask_parts(collection: Any, name: str, sizes_needed: bool = True) -> list[Any]:
    """Lazy blocks of rows of a Dask array, data frame or series."""
    if not is_dask(collection):
        raise ValueError(
            f"X is a Dask collection but {name} is {type(collection).__name__}; make it one with the same chunks of "
            f"rows, for example dask.array.from_array({name}, chunks=X.chunks[0])."
        )
    if hasattr(collection, "divisions"):
        return list(collection.to_delayed())
    if collection.ndim > 1 and collection.numblocks[1] > 1:
        raise ValueError(
            f"{name} has {collection.numblocks[1]} column chunks; rechunk to one with {name}.rechunk({{1: -1}})."
        )
    if sizes_needed and any(np.isnan(size) for size in collection.chunks[0]):
        raise ValueError(f"the chunk sizes of {name} are unknown; find them with {name}.compute_chunk_sizes().")
    return list(collection.to_delayed().ravel())


def _check_aligned(X: Any, y: Any, sample_weight: Any, pieces: list[list[Any]]) -> None:
    """Refuse chunks of rows that do not belong together."""
    for name, other in (("y", y), ("sample_weight", sample_weight)):
        if other is None:
            continue
        both_arrays = hasattr(X, "chunks") and hasattr(other, "chunks")
        if both_arrays and X.chunks[0] != other.chunks[0]:
            raise ValueError(
                f"{name} has row chunks {other.chunks[0]} but X has {X.chunks[0]}; "
                f"match them with {name}.rechunk(X.chunks[0])."
            )
    counts = [len(parts) for parts in pieces]
    if len(set(counts)) > 1:
        raise ValueError(
            f"X, y (and sample_weight) have {counts} partitions of rows; repartition them alike, for example with "
            "y.repartition(npartitions=X.npartitions)."
        )


class _BlockRows(RowsElsewhere):
    def __init__(self, source: Any, runner: SpillRunner, max_bytes: int) -> None:
        super().__init__(runner, getattr(source, "feature_names", None))
        self._source, self._max_bytes = source, max_bytes

    def _map_raw(self, function: Any) -> list[Any]:
        # Read one block at a time; only what the function makes of it is kept.
        return [self.runner.keep(function(block)) for block in self._blocks()]

    def _blocks(self) -> Iterator[tuple[NDArray, ...]]:
        iterator = iter(self._source)
        if iterator is self._source:
            raise ValueError(
                f"X is a {type(self._source).__name__}, which can be read only once, and a fit reads its rows twice. "
                "Pass an object whose __iter__ begins anew, such as polytrain.sources.open_rows(folder)."
            )
        n_rows = 0
        for block in recut((_as_block(block) for block in iterator), self._rows_per_part()):
            n_rows += len(block[0])
            yield block
        if not n_rows:
            raise ValueError("X yielded no rows; at least one is needed.")

    def _rows_per_part(self) -> int:
        first = _as_block(next(iter(self._source), (np.zeros((1, 1)), np.zeros(1))))
        row_bytes = 8 * max(1, first[0].shape[1])
        return max(1024, min(1 << 25, self._max_bytes // 8) // row_bytes)


def _as_block(block: Any) -> tuple[NDArray, ...]:
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise ValueError(f"a source of rows must yield (X, y) or (X, y, weights), got {type(block).__name__}.")
    arrays = tuple(np.asarray(entry) for entry in block)
    if arrays[0].ndim != 2:
        raise ValueError(f"a source of rows must yield two-dimensional blocks of X, got shape {arrays[0].shape}.")
    if len({len(array) for array in arrays}) > 1:
        raise ValueError(f"blocks of X, y and weights differ in their rows: {[len(array) for array in arrays]}.")
    return arrays


def is_dask(X: Any) -> bool:
    """Whether this is a Dask array or data frame. Dask is not imported for it."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


@contextmanager
def open_elsewhere(X: Any, y: Any, sample_weight: Any, max_memory: Any) -> Iterator[RowsElsewhere | None]:
    """Open rows that are not an array in memory; None for all others."""
    if is_dask(X):
        yield _DaskRows(X, y, sample_weight)
        return
    max_bytes = check_bytes("max_memory", max_memory)
    if isinstance(X, np.memmap) and X.ndim == 2 and y is not None and X.nbytes > max_bytes:
        arrays = [X, y] if sample_weight is None else [X, y, sample_weight]
        check_consistent_length(*arrays)
        source: Any = ArrayRows(*arrays)
    elif is_source(X):
        if y is not None or sample_weight is not None:
            raise ValueError("X yields blocks of rows with their targets; leave y and sample_weight out.")
        source = X
    else:
        yield None
        return
    with SpillRunner(max_bytes) as runner:
        yield _BlockRows(source, runner, max_bytes)
