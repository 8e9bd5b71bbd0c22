"""Let a method that predicts rows stay lazy on Dask collections: one task per block of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polytrain.rows import is_dask, lazy_blocks

__all__ = ["lazy_on_dask"]

Method = TypeVar("Method", bound=Callable[..., Any])


def lazy_on_dask(method: Method) -> Method:
    """Wrap a method of one argument, rows, whose result has one entry or line per row."""

    @wraps(method)
    def predict(model: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(model, X)
        check_is_fitted(model, "model_")
        return _map_rows(partial(method, model), X, _probe(method, model, X))

    return predict  # type: ignore[return-value]


def _probe(method: Callable, model: Any, X: Any) -> np.ndarray:
    """Result for one row, of zeros or of what Dask makes up: its type and width are those of all results."""
    row: Any = np.zeros((1, model.n_features_in_))
    if model.model_.columns is not None and hasattr(X, "_meta_nonempty"):
        row = X._meta_nonempty.iloc[:1]
    elif hasattr(model, "feature_names_in_"):
        import pandas as pd

        row = pd.DataFrame(row, columns=model.feature_names_in_)
    return method(model, row)


def _map_rows(function: Callable, X: Any, probe: np.ndarray) -> Any:
    import dask.array as da
    from dask import delayed

    blocks = lazy_blocks(X, "X", sizes_needed=False)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    lazy = delayed(partial(_of_block, function, probe[:0]), pure=True)
    results = [
        da.from_delayed(lazy(block), shape=(size, *probe.shape[1:]), dtype=probe.dtype)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(results)


def _of_block(function: Callable, nothing: np.ndarray, rows: Any) -> np.ndarray:
    """Results of a block, which may have no rows at all."""
    return function(rows) if len(rows) else nothing
