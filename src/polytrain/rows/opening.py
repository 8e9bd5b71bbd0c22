"""Open whatever is given to ``fit`` as rows, and check it."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from polytrain.checks import COMPUTE_DTYPES, check_columns, check_weights, validate_rows
from polytrain.columns import Columns, NumberColumn, is_frame, needs_encoding
from polytrain.columns.column_list import is_identifier
from polytrain.columns.scalars import show
from polytrain.learning.engines.runners import ClusterRunner, SpillRunner
from polytrain.learning.losses import get_loss
from polytrain.learning.threads import one_blas_thread
from polytrain.rows.dask_blocks import FEW_BYTES, aligned_blocks, block_bytes, is_dask, join_blocks
from polytrain.rows.rows import ArrayRows, PartitionedRows, Rows
from polytrain.rows.summary import RawRows
from polytrain.sources import MappedRows, SamePasses, is_source, recut

__all__ = ["check_bytes", "open_fit"]


@contextmanager
def open_fit(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    loss: str | None,
    max_memory: Any,
    categorical_features: Any = "from_dtype",
) -> Iterator[Rows]:
    """Open the rows of a fit, and check those that are in memory. If the fit fails, the estimator is as it was.

    Parameters
    ----------
    estimator : estimator
        It is told the number and the names of features, as scikit-learn does.
    X, y, sample_weight
        What was given to ``fit``.
    loss : str or None
        The loss of a regression; None for classification.
    max_memory : int, str or None
        Bytes that rows may take in memory.
    categorical_features : "from_dtype", None or array-like
        Which columns are categories, see `polytrain.columns.Columns.fit`.
    """
    told = ("n_features_in_", "feature_names_in_")
    before = {name: value for name, value in vars(estimator).items() if name in told}
    try:
        # Even a sum has other last digits on several threads, and how many there are depends on other fits, too.
        with one_blas_thread(), _open(estimator, X, y, sample_weight, loss, max_memory, categorical_features) as rows:
            yield rows
    except BaseException:
        for name in told:
            vars(estimator).pop(name, None)
        vars(estimator).update(before)
        raise


@contextmanager
def _open(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    loss: str | None,
    max_memory: Any,
    categorical_features: Any,
) -> Iterator[Rows]:
    if is_dask(X):
        cluster, raw = _start_blocks(aligned_blocks(X, y, sample_weight))
        if sum(cluster.collect(cluster.map(block_bytes, raw))) > FEW_BYTES:
            yield _DaskRows(cluster, raw, X, loss, categorical_features)
            return
        X, y, *weights = join_blocks(cluster.collect(raw))
        sample_weight = weights[0] if weights else None
    max_bytes = check_bytes("max_memory", max_memory)
    if isinstance(X, np.memmap) and X.ndim == 2 and y is not None and X.nbytes > max_bytes:
        arrays = [X, y] if sample_weight is None else [X, y, sample_weight]
        check_consistent_length(*arrays)
        source: Any = MappedRows(*arrays)
    elif is_source(X):
        if y is not None or sample_weight is not None:
            raise ValueError("X yields blocks of rows with their targets; leave y and sample_weight out.")
        source = X
    else:
        columns = _kept_columns(estimator, X)
        if columns is None and needs_encoding(X, categorical_features):
            columns = Columns.fit(X, categorical_features)
        rows = _check_arrays(estimator, X, y, sample_weight, loss, columns)
        if is_frame(X):
            _warn_of_identifiers(rows.X, getattr(estimator, "feature_names_in_", ()), columns)
        yield ArrayRows(rows, loss is None, getattr(estimator, "feature_names_in_", None), columns)
        return
    with SpillRunner(max_bytes) as runner:
        yield _SourceRows(source, runner, max_bytes, loss, categorical_features)


def _kept_columns(estimator: BaseEstimator, X: Any) -> Columns | None:
    """Columns of the last fit, for a warm start: its maps know levels by their numbers."""
    if not getattr(estimator, "warm_start", False) or not hasattr(estimator, "model_"):
        return None
    columns = estimator.model_.columns
    # Another number of columns is refused later, with all that differs.
    return columns if columns is not None and np.shape(X)[1:] == (columns.n_columns,) else None


def _check_arrays(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, loss: str | None, columns: Columns | None
) -> RawRows:
    if loss is not None and issparse(y):
        raise ValueError(f"y is a sparse {type(y).__name__}; make it dense with y.toarray().")
    checks: dict[str, Any] = {} if loss is None else {"y_numeric": True, "multi_output": True}
    if columns is not None:
        check_columns(estimator, X, reset=True)
        X = columns.encode(X)
        X, y = check_X_y(X, y, dtype=COMPUTE_DTYPES, ensure_all_finite="allow-nan", **checks)
    else:
        X, y = validate_rows(estimator, X, y, ensure_all_finite="allow-nan", **checks)
    if loss is None:
        check_classification_targets(y)
    else:
        y = y.astype(np.float64, copy=False)
        get_loss(loss).check_target(y)
    return RawRows(X, y, check_weights(sample_weight, len(X)))


def _warn_of_identifiers(X: NDArray, names: Sequence[str], columns: Columns | None) -> None:
    """Warn of columns that the command line would leave out; somebody who gives a single column means it."""
    sources = range(X.shape[1]) if columns is None else columns.sources.tolist()
    for feature, k in enumerate(sources if len(names) > 1 else ()):
        is_number = columns is None or isinstance(columns.columns[k], NumberColumn)
        if is_number and is_identifier(names[k], X[:, feature]):
            warnings.warn(
                f"column {names[k]!r} holds a different whole number in every row, which looks like an identifier and "
                "is learned from like others. Leave it out if it says nothing about new rows.",
                UserWarning,
                stacklevel=2,
            )


def _check_block(raw: Any, loss: str | None, columns: Columns | None = None) -> RawRows:
    """Check one block as an estimator checks an array, without a warning where sums over finite numbers overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _checked_block(raw, loss, columns)


def _checked_block(raw: Any, loss: str | None, columns: Columns | None) -> RawRows:
    X = raw[0]
    if columns is not None:
        X = columns.encode(raw[0])
        _check_levels(X, raw[0], columns)
    X = check_array(X, dtype=COMPUTE_DTYPES, ensure_min_samples=0, input_name="X", ensure_all_finite="allow-nan")
    y = np.asarray(raw[1])
    if loss is None and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 and (loss is None or y.ndim != 2):
        kind = "one label" if loss is None else "one number or one row of numbers"
        raise ValueError(f"y must be {kind} per row, got a block of shape {y.shape}.")
    check_consistent_length(X, y)
    if loss is None:
        if len(y):
            check_classification_targets(y)
    else:
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_min_samples=0, input_name="y")
        get_loss(loss).check_target(y)
    return RawRows(X, y, _block_weights(raw[2] if len(raw) > 2 else None, len(X)))


def _check_levels(encoded: NDArray, X: Any, columns: Columns) -> None:
    """Refuse levels that were not there when the columns were read: the rows have changed since."""
    for feature in np.flatnonzero(columns.is_category).tolist():
        unknown = encoded[:, feature] < 0
        if unknown.any():
            k = int(columns.sources[feature])
            value = np.asarray(X, dtype=object)[unknown.argmax(), k]
            raise ValueError(
                f"column {columns.columns[k].name!r} holds {value!r}, which was not there when its levels were read "
                "first. Rows must be the same each time they are read."
            )


def _block_weights(given: Any, n_rows: int) -> NDArray:
    """Weights of one block; unlike those of a whole array, they may all be zero."""
    if given is None or not n_rows:
        return np.ones(n_rows)
    weights = np.asarray(given, dtype=np.float64)
    if weights.any():
        check_weights(weights, n_rows)
    return weights


def check_bytes(name: str, value: Any) -> int:
    """Return a number of bytes, given as one or as a text such as "2 GB"; None is half of the machine's memory."""
    if value is None:
        return _half_of_memory()
    if isinstance(value, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)i?B\s*", value)
        if parts and math.isfinite(size := float(parts[1]) * 1024.0 ** " kMGT".index(parts[2] or " ")):
            return max(1, int(size))
    elif not isinstance(value, bool) and isinstance(value, Integral) and int(value) > 0:
        return int(value)
    raise ValueError(f"{name} must be a positive number of bytes or a text such as '2 GB', got {show(value)}.")


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 4 << 30


def _start_blocks(blocks: Sequence[tuple[Any, ...]]) -> tuple[ClusterRunner, list[Any]]:
    """Compute lazy blocks on the workers of the current client, where they stay."""
    from dask import delayed

    runner = ClusterRunner()
    return runner, runner.start([delayed(tuple)(list(block)) for block in blocks])


class _DaskRows(PartitionedRows):
    """Blocks of a Dask collection on the workers of a cluster."""

    def __init__(
        self, runner: ClusterRunner, raw: list[Any], X: Any, loss: str | None, categorical_features: Any
    ) -> None:
        names = list(getattr(X, "columns", ()))
        # As scikit-learn does: names are remembered where all of them are text.
        named = names if names and all(isinstance(name, str) for name in names) else None
        super().__init__(runner, partial(_check_block, loss=loss), loss is None, named)
        self._raw = raw
        if needs_encoding(getattr(X, "_meta", None), categorical_features):
            self._read_columns(categorical_features, partial(_check_block, loss=loss))

    def _map_raw(self, function: Callable[[Any], Any]) -> list[Any]:
        return self._runner.map(function, self._raw)


class _SourceRows(PartitionedRows):
    """Blocks that are read again for every pass; what is made of them stays in memory or waits on disk."""

    def __init__(
        self, source: Any, runner: SpillRunner, max_bytes: int, loss: str | None, categorical_features: Any
    ) -> None:
        names = getattr(source, "feature_names", None)
        super().__init__(runner, partial(_check_block, loss=loss), loss is None, names, max_bytes)
        self._source, self._keep, self._passes = source, runner.keep, SamePasses()
        self._partition_rows = _partition_rows(_first_block(source), max_bytes)
        if needs_encoding(None, categorical_features):
            self._read_columns(categorical_features, partial(_check_block, loss=loss))

    def _map_raw(self, function: Callable[[Any], Any]) -> list[Any]:
        # Read one block at a time; only what the function makes of it is kept.
        blocks = self._passes.watch(recut(_alike(self._source), self._partition_rows))
        handles = [self._keep(function(block)) for block in blocks]
        if not handles:
            raise ValueError("X yielded no rows; at least one is needed.")
        return handles


def _first_block(source: Any) -> Any:
    """Look at the first block of a source, if there is one, and refuse a source that does not begin anew."""
    iterator = iter(source)
    if iterator is iter(source):
        raise ValueError(
            f"X is a {type(source).__name__}, which can be read only once, and a fit reads its rows twice. "
            "Pass an object whose __iter__ begins anew, such as polytrain.sources.open_rows(folder)."
        )
    return next(iterator, None)


def _partition_rows(block: Any, max_bytes: int) -> int:
    """How many rows like those of a block a partition has."""
    row_bytes = 8 if block is None else 8 * max(1, _as_block(block)[0].shape[1])
    return max(1024, min(1 << 25, max_bytes // 8) // row_bytes)


def _alike(source: Any) -> Iterator[tuple[NDArray, ...]]:
    """Blocks of a source as arrays, all of them with the same columns, outputs and perhaps weights."""
    first: list[tuple[int, ...]] = []
    for block in map(_as_block, source):
        shapes = [array.shape[1:] for array in block]
        first = first or shapes
        for name, one, other in zip(("X", "y", "weights"), first, shapes, strict=False):
            if one != other:
                raise ValueError(f"blocks of {name} differ in the shape of a row: {one} and {other}.")
        if len(shapes) != len(first):
            raise ValueError("some blocks of X come with weights and some without; give weights with all of them.")
        yield block


def _as_block(block: Any) -> tuple[NDArray, ...]:
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise ValueError(f"a source of rows must yield (X, y) or (X, y, weights), got {type(block).__name__}.")
    arrays = tuple(np.asarray(entry) for entry in block)
    if arrays[0].ndim != 2:
        raise ValueError(f"a source of rows must yield two-dimensional blocks of X, got shape {arrays[0].shape}.")
    if len({len(array) for array in arrays}) > 1:
        raise ValueError(f"blocks of X, y and weights differ in their rows: {[len(array) for array in arrays]}.")
    return arrays
