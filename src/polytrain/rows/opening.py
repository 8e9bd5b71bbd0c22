"""Open the data of a fit as rows: arrays, frames, sources of blocks, Dask collections; and rows to validate with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from polytrain.checks import check_columns, validate_rows
from polytrain.columns import Columns, NumberColumn, is_frame, needs_encoding
from polytrain.columns.column_list import is_identifier
from polytrain.learning.engines.runners import ClusterRunner, SpillRunner
from polytrain.learning.engines.tasks import Runner
from polytrain.learning.threads import one_blas_thread
from polytrain.rows.checking import Known, check_arrays, check_block, check_bytes
from polytrain.rows.dask_blocks import FEW_BYTES, aligned_blocks, block_bytes, is_dask, join_blocks
from polytrain.rows.rows import Rows
from polytrain.sources import MappedRows, SamePasses, is_source, recut

__all__ = ["given_validation", "hold_out", "open_fit"]


@contextmanager
def open_fit(estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Iterator[Rows]:
    """Open the rows of a fit, and check those that are in memory. If the fit fails, the estimator is as it was.

    The estimator gets the number and the names of features, as scikit-learn does; its parameters say how much memory
    rows may take and which columns are categories. ``loss`` is that of a regression, None for classification.
    """
    told = ("n_features_in_", "feature_names_in_")
    before = {name: value for name, value in vars(estimator).items() if name in told}
    try:
        # Even a sum has other last digits on several threads, and how many there are depends on other fits, too.
        with one_blas_thread(), _open(estimator, X, y, sample_weight, loss) as rows:
            yield rows
    except BaseException:
        for name in told:
            vars(estimator).pop(name, None)
        vars(estimator).update(before)
        raise


@contextmanager
def _open(estimator: Any, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Iterator[Rows]:
    categories = estimator.categorical_features
    if is_dask(X):
        cluster = ClusterRunner()
        raw = cluster.start(aligned_blocks(X, y, sample_weight))  # on the workers of the current client
        if sum(cluster.collect(cluster.map(block_bytes, raw))) > FEW_BYTES:
            yield _open_dask(cluster, raw, X, loss, categories)
            return
        X, y, *weights = join_blocks(cluster.collect(raw))
        sample_weight = weights[0] if weights else None
    max_bytes = check_bytes("max_memory", estimator.max_memory)
    if isinstance(X, np.memmap) and X.ndim == 2 and y is not None and X.nbytes > max_bytes:
        arrays = [X, y] if sample_weight is None else [X, y, sample_weight]
        check_consistent_length(*arrays)
        source: Any = MappedRows(*arrays)
    elif is_source(X):
        if y is not None or sample_weight is not None:
            raise ValueError("X yields blocks of rows with their targets; leave y and sample_weight out.")
        source = X
    else:
        yield _open_arrays(estimator, X, y, sample_weight, loss)
        return
    with SpillRunner(max_bytes) as runner:
        yield _open_source(source, runner, max_bytes, loss, categories)


# --- rows in memory ---------------------------------------------------------------------------------------------------


def _open_arrays(estimator: Any, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Rows:
    columns = _kept_columns(estimator, X)
    if columns is None and not needs_encoding(X, estimator.categorical_features):
        arrays = check_arrays(X, y, sample_weight, loss, partial(validate_rows, estimator))
    else:
        if columns is None:
            columns, encoded = Columns.fit_encode(X, estimator.categorical_features)
        else:
            encoded = columns.encode(X)
        check_columns(estimator, X, reset=True)
        arrays = check_arrays(encoded, y, sample_weight, loss)
    names = getattr(estimator, "feature_names_in_", None)
    if is_frame(X) and names is not None:
        _warn_of_identifiers(arrays[0], names, columns)
    return Rows.of_arrays(arrays, loss is None, names, columns)


def _kept_columns(estimator: Any, X: Any) -> Columns | None:
    """Columns of the last fit, for a warm start: its maps know levels by their numbers."""
    if not estimator.warm_start or not hasattr(estimator, "model_"):
        return None
    columns = estimator.model_.columns
    # Another number of columns is refused later, with all that differs.
    return columns if columns is not None and np.shape(X)[1:] == (columns.n_columns,) else None


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


# --- rows in partitions -----------------------------------------------------------------------------------------------


def _open_partitions(
    map_raw: Callable[[Callable[[Any], Any]], list[Any]],
    runner: Runner,
    like: Any,
    names: Sequence[str] | None,
    loss: str | None,
    categorical_features: Any,
    max_bytes: int = 0,
) -> Rows:
    """Open rows in partitions that look like this; one more pass reads columns that are more than numbers."""
    columns = None
    if needs_encoding(like, categorical_features):
        found = runner.collect(map_raw(partial(_read_columns, categorical_features=categorical_features)))
        columns = Columns.merge([part for part in found if part is not None])
    check = partial(check_block, loss=loss, columns=columns)
    return Rows(map_raw, check, loss is None, names, columns, runner, max_bytes)


def _read_columns(raw: Any, categorical_features: Any) -> Columns | None:
    return Columns.fit_part(raw[0], categorical_features) if len(raw[0]) else None


def _open_dask(runner: ClusterRunner, raw: list[Any], X: Any, loss: str | None, categorical_features: Any) -> Rows:
    """Open blocks of a Dask collection on the workers of a cluster."""
    names = list(getattr(X, "columns", ()))
    # As scikit-learn does: names are remembered where all of them are text.
    named = names if names and all(isinstance(name, str) for name in names) else None
    like = getattr(X, "_meta", None)
    return _open_partitions(lambda function: runner.map(function, raw), runner, like, named, loss, categorical_features)


def _open_source(source: Any, runner: SpillRunner, max_bytes: int, loss: str | None, categorical_features: Any) -> Rows:
    """Open blocks that are read again for every pass; results stay in memory or wait on disk."""
    passes, partition_rows = SamePasses(), _partition_rows(_first_block(source), max_bytes)

    def map_raw(function: Callable[[Any], Any]) -> list[Any]:
        # Read one block at a time; only the result of the function is kept.
        blocks = passes.watch(recut(_alike(source), partition_rows))
        handles = [runner.keep(function(block)) for block in blocks]
        if not handles:
            raise ValueError("X yielded no rows; at least one is needed.")
        return handles

    names = getattr(source, "feature_names", None)
    return _open_partitions(map_raw, runner, None, names, loss, categorical_features, max_bytes)


def _first_block(source: Any) -> Any:
    """Return the first block of a source, if there is one, and refuse a source that does not begin anew."""
    iterator = iter(source)
    if iterator is iter(source):
        raise ValueError(
            f"X is a {type(source).__name__}, which can be read only once, and a fit reads its rows twice. "
            "Pass an object whose __iter__ begins anew, such as polytrain.sources.open_rows(folder)."
        )
    return next(iterator, None)


def _partition_rows(block: Any, max_bytes: int) -> int:
    """Number of rows of a partition, given a block."""
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


# --- rows to validate with --------------------------------------------------------------------------------------------

# Number of parts into which rows are cut by their hashes.
_N_PARTS = 1000


def hold_out(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Return the rows to learn from, and about this fraction of them to hold out; equal rows stay together.

    Where a side would be empty, the nearest fraction is taken that leaves both sides rows.
    """
    low, stop, high = 0, min(max(1, round(fraction * _N_PARTS)), _N_PARTS - 1), _N_PARTS
    while low < stop < high:
        learned, held_out = (rows.part(0, stop, _N_PARTS, inside=inside) for inside in (False, True))
        if not len(held_out.present_labels()):
            low = stop
        elif not len(learned.present_labels()):
            high = stop
        else:
            return learned, held_out
        stop = (low + high) // 2
    raise ValueError(
        "early_stopping=True needs rows to learn from and other rows to validate with, which must differ, got "
        f"n_samples={rows.summary.n_rows}. Give more rows, or set early_stopping=False."
    )


def given_validation(rows: Rows, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Rows:
    """Open rows that were given to validate with; ``loss`` is that of a regression."""
    if y is None:
        raise ValueError("X_val needs its targets, y_val.")
    summary = rows.summary
    n_outputs = None if summary.target is None else len(summary.target.low)
    known = Known(rows.columns_of_any_type, summary.n_features, summary.labels, n_outputs)
    arrays = known.check(X, y, sample_weight, loss, ("X_val", "y_val"))
    return Rows.of_arrays(arrays, rows.classify, summary=summary)
