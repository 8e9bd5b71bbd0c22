"""Open the data of a fit as rows: arrays, frames, sources of blocks, Dask collections; and rows to validate with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from polytrain.checks import check_columns, dense, is_sparse, validate_rows
from polytrain.columns import Columns, needs_encoding
from polytrain.config import current_config
from polytrain.learning.engines.runners import ClusterRunner, SpillRunner
from polytrain.learning.engines.tasks import Runner
from polytrain.learning.threads import one_blas_thread
from polytrain.rows.checking import check_arrays, check_block, check_more
from polytrain.rows.dask_blocks import FEW_BYTES, aligned_blocks, block_bytes, is_dask, join_blocks
from polytrain.rows.rows import MapRaw, Rows
from polytrain.sources import SourcePartitions, SparseRows, is_source

# Sparse matrices are read in blocks if they would take more than this part of the memory for rows.
_DENSE_PART = 1 / 4


@contextmanager
def open_fit(estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Iterator[Rows]:
    """Open the rows of a fit, and check those that are in memory. If the fit fails, the estimator is as it was.

    The estimator gets the number and the names of features, as scikit-learn does; its parameters say which columns are
    categories. ``loss`` is that of a regression, None for classification.
    """
    told = ("n_features_in_", "feature_names_in_")
    before = {name: value for name, value in vars(estimator).items() if name in told}
    try:
        # The last digits of a sum depend on the number of threads, which depends on other fits.
        with one_blas_thread(), _open(estimator, X, y, sample_weight, loss) as rows:
            yield rows
    except BaseException:
        for name in told:
            vars(estimator).pop(name, None)
        vars(estimator).update(before)
        raise


@contextmanager
def _open(estimator: Any, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Iterator[Rows]:
    categories, max_bytes = estimator.categorical_features, current_config().max_bytes
    if is_dask(X):
        blocks = aligned_blocks(X, y, sample_weight)
        cluster = ClusterRunner()
        raw = cluster.start(blocks)  # on the workers of the current client
        if sum(cluster.collect(cluster.map(block_bytes, raw))) > FEW_BYTES:
            labels = list(getattr(X, "columns", ()))
            # As scikit-learn does: names are remembered where all of them are text.
            names = labels if labels and all(isinstance(label, str) for label in labels) else None
            like = getattr(X, "_meta", None)
            yield _open_partitions(lambda function: cluster.map(function, raw), cluster, like, names, loss, categories)
            return
        X, y, *weights = join_blocks(cluster.collect(raw))
        sample_weight = weights[0] if weights else None
    size = X.nbytes if isinstance(X, np.memmap) else 8 * math.prod(X.shape) / _DENSE_PART if is_sparse(X) else 0
    if size > max_bytes and X.ndim == 2 and y is not None:
        arrays = [X, y] if sample_weight is None else [X, y, sample_weight]
        check_consistent_length(*arrays)
        source: Any = SparseRows(*arrays) if is_sparse(X) else [arrays]
    elif is_source(X):
        if y is not None or sample_weight is not None:
            raise ValueError("X yields blocks of rows with their targets; leave y and sample_weight out.")
        source = X
    else:
        yield _open_arrays(estimator, dense(X), y, sample_weight, loss)
        return
    with SpillRunner(max_bytes) as runner:
        partitions = SourcePartitions(source, max_bytes)

        def map_raw(function: Callable[[Any], Any]) -> list[Any]:
            # Read one partition at a time; only the result of the function is kept.
            return [runner.keep(function(block)) for block in partitions]

        names = getattr(source, "feature_names", None)
        yield _open_partitions(map_raw, runner, None, names, loss, categories, max_bytes)


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
    return Rows.of_arrays(arrays, loss is None, getattr(estimator, "feature_names_in_", None), columns)


def _kept_columns(estimator: Any, X: Any) -> Columns | None:
    """Columns of the last fit, for a warm start: its maps refer to levels by number."""
    if not estimator.warm_start or not hasattr(estimator, "model_"):
        return None
    columns = estimator.model_.columns
    # Another number of columns is refused later, with all differences.
    return columns if columns is not None and np.shape(X)[1:] == (columns.n_columns,) else None


# --- rows in partitions -----------------------------------------------------------------------------------------------


def _open_partitions(
    map_raw: MapRaw, runner: Runner, like: Any, names: Any, loss: str | None, categories: Any, max_bytes: int = 0
) -> Rows:
    """Open rows in partitions that look like this; one more pass reads columns that are more than numbers."""
    columns = None
    if needs_encoding(like, categories):
        read = map_raw(lambda raw: Columns.fit_part(raw[0], categories) if len(raw[0]) else None)
        columns = Columns.merge([part for part in runner.collect(read) if part is not None])
    check = partial(check_block, loss=loss, columns=columns)
    return Rows(map_raw, check, loss is None, names, columns, runner, max_bytes)


# --- rows to validate with --------------------------------------------------------------------------------------------

# Number of parts into which rows are cut by their hashes.
_N_PARTS = 1000


def hold_out(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Return the rows to learn from, and about this fraction of them to hold out; equal rows stay together.

    If a side would be empty, the nearest fraction is used for which both sides have rows.
    """
    numbers = rows.part_numbers(_N_PARTS)
    if len(numbers) < 2:
        raise ValueError(
            "early_stopping needs different rows to learn from and to validate with, got "
            f"n_samples={rows.summary.n_rows}. Give more rows, or set early_stopping=False."
        )
    stop = min(max(round(fraction * _N_PARTS), numbers[0] + 1), numbers[-1])
    return rows.part(0, stop, _N_PARTS, inside=False), rows.part(0, stop, _N_PARTS)


def given_validation(rows: Rows, X: Any, y: Any, sample_weight: Any, loss: str | None) -> Rows:
    """Open rows that were given to validate with; ``loss`` is that of a regression."""
    if y is None:
        raise ValueError("X_val needs its targets, y_val.")
    summary = rows.summary
    known = summary.labels if summary.target is None else len(summary.target.low)
    columns, names = rows.columns_of_any_type, ("X_val", "y_val")
    arrays = check_more(dense(X), y, sample_weight, loss, columns, summary.n_features, known, names)
    validation = Rows.of_arrays(arrays, rows.classify)
    validation.summary = summary
    return validation
