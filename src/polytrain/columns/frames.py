"""Open frames of pandas and polars, and arrays, column by column. No other module knows these libraries.

Frames are recognised by the names of their types, so that neither library is imported here, or needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polytrain.columns.cells import Cells, used_codes

__all__ = ["Table", "is_frame", "is_plain_frame", "open_table"]


@dataclass(frozen=True)
class Table:
    """A frame or an array; ``read(k)`` returns the cells of column k.

    Names are "x0", "x1", ... and ``has_names`` is False if the columns have no names, or names that are not text.
    """

    names: tuple[str, ...]
    has_names: bool
    n_rows: int
    read: Callable[[int], Cells]


def is_frame(X: Any) -> bool:
    """Whether X is a DataFrame of pandas or of polars."""
    return _library(X) is not None


def _library(X: Any) -> str | None:
    libraries = [kind.__module__.partition(".")[0] for kind in type(X).__mro__ if kind.__name__ == "DataFrame"]
    return next((library for library in libraries if library in ("pandas", "polars")), None)


def is_plain_frame(frame: Any) -> bool:
    """Whether all columns of a frame have number types that NumPy has, too, and no missing values other than NaN."""
    if _library(frame) == "polars":
        return all(s.dtype.base_type().__name__ in _POLARS_NUMBERS and not s.null_count() for s in frame.get_columns())
    for k, dtype in enumerate(frame.dtypes):
        has_numpy_values = isinstance(dtype, np.dtype) or type(dtype).__name__ == "SparseDtype"
        if dtype.kind not in "iufc" or not (has_numpy_values or not frame.iloc[:, k].isna().any()):
            return False
    return True


def open_table(X: Any) -> Table:
    """Open a frame, an array or a list of rows.

    A table that is already open is returned unchanged.
    """
    if isinstance(X, Table):
        return X
    library = _library(X)
    if library is None:
        # A column of a list may hold numbers and text; without dtype=object NumPy would turn both into text.
        array = np.asarray(X) if hasattr(X, "__array__") else np.asarray(X, dtype=object)
        if array.ndim != 2:
            raise ValueError(
                "X must be a frame of pandas or polars, or an array with two dimensions, got "
                f"{type(X).__name__} of shape {array.shape}. Reshape an array with X.reshape(-1, 1) if it is one "
                "column, convert a sparse matrix with X.toarray(), and a lazy frame with X.collect()."
            )
        X = array
    labels = getattr(X, "columns", [None] * X.shape[1])
    has_names = all(isinstance(label, str) for label in labels) and library is not None
    names = tuple(labels) if has_names else tuple(f"x{k}" for k in range(X.shape[1]))

    def read(k: int) -> Cells:
        if library == "pandas":
            return _read_pandas(names[k], X.iloc[:, k])
        return Cells.of_array(names[k], X[:, k]) if library is None else _read_polars(names[k], X.to_series(k))

    return Table(names, has_names, len(X), read)


# --- pandas -----------------------------------------------------------------------------------------------------------


def _read_pandas(name: str, series: Any) -> Cells:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return Cells.of_array(name, series.to_numpy())
    match type(dtype).__name__, dtype.kind:
        case "CategoricalDtype", _:
            used, codes = used_codes(series.cat.codes.to_numpy())  # not all categories occur
            return replace(_read_pandas(name, series.cat.categories[used].to_series()).take(codes), is_category=True)
        case "DatetimeTZDtype", _:
            return Cells.of_array(name, series.dt.tz_localize(None).to_numpy())
        case "PeriodDtype", _:
            return Cells.of_array(name, series.dt.to_timestamp().to_numpy())
        case "SparseDtype", _:
            return Cells.of_array(name, np.asarray(series))
        case _, "f":
            return Cells.of_array(name, series.to_numpy(dtype=dtype.numpy_dtype, na_value=np.nan))
        case _, "b" | "i" | "u":
            values = series.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
            return Cells.of_array(name, values, series.isna().to_numpy(dtype=bool))
    try:
        codes, values = series.factorize()
    except (NotImplementedError, TypeError, ValueError):  # lists and the like
        return Cells.of_objects(name, series.to_numpy(dtype=object))
    return Cells.of_objects(name, values.to_numpy(dtype=object)).take(codes)


# --- polars -----------------------------------------------------------------------------------------------------------

_POLARS_INTEGERS = frozenset({"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"})
_POLARS_NUMBERS = _POLARS_INTEGERS | {"Float16", "Float32", "Float64"}


def _read_polars(name: str, series: Any) -> Cells:
    kind = series.dtype.base_type().__name__
    if kind in _POLARS_INTEGERS or kind == "Boolean":
        values = series.fill_null(False if kind == "Boolean" else 0).to_numpy()
        return Cells.of_array(name, values, series.is_null().to_numpy())
    if kind == "Datetime":
        series = series.dt.replace_time_zone(None)  # the local time
    if kind in _POLARS_NUMBERS or kind in ("Date", "Datetime", "Duration"):
        return Cells.of_array(name, series.to_numpy())
    return replace(Cells.of_objects(name, series.to_list()), is_category=kind in ("Categorical", "Enum"))
