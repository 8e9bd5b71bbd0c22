"""Check rows and weights that users pass, and issue data warnings. Messages name the value and the remedy."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

__all__ = [
    *("COMPUTE_DTYPES", "DataWarning", "check_bounds", "check_columns", "check_mass", "check_numbers"),
    *("check_weight_range", "check_weights", "dense", "gathered_warnings", "is_sparse", "need", "validate_rows"),
    "warn_of_data",
]

#: Types in which trains are learned and evaluated; other types are converted to the first.
COMPUTE_DTYPES = (np.float64, np.float32)

# Weights that differ by a larger factor underflow once the largest is 1.
_WIDEST_RANGE = 1e300
# Tables that are neither arrays nor frames, and how to convert them to frames.
_REMEDIES = {("polars", "LazyFrame"): "X.collect()", ("pyarrow", "Table"): "X.to_pandas()"}


class DataWarning(UserWarning):
    """A fit or a prediction works, but something about its data or parameters is probably not as intended.

    Examples
    --------
    >>> import warnings
    >>> import polytrain
    >>> warnings.filterwarnings("ignore", category=polytrain.DataWarning)  # silence them
    """


# Warnings of the current fit; None outside of fits.
_GATHERED: ContextVar[list[str] | None] = ContextVar("warnings of a fit", default=None)


@contextmanager
def gathered_warnings() -> Iterator[list[str]]:
    """Collect the messages of `warn_of_data` in a list, which a fit stores."""
    gathered: list[str] = []
    token = _GATHERED.set(gathered)
    try:
        yield gathered
    finally:
        _GATHERED.reset(token)


def warn_of_data(message: str) -> None:
    """Issue a `DataWarning` at the line that called this package; within a fit, each message once."""
    gathered = _GATHERED.get()
    if gathered is not None:
        if message in gathered:
            return
        gathered.append(message)
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("polytrain.", "sklearn.")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DataWarning, stacklevel=level)


def need(purpose: str, extra: str, *modules: str) -> Any:
    """Import modules and return the last; an error names the extra of polytrain that installs them."""
    try:
        return [import_module(name) for name in modules][-1]
    except ImportError as error:
        message = f"{purpose} needs {error.name}, which is not installed: pip install 'polytrain[{extra}]'."
        raise ImportError(message) from error


def validate_rows(model: BaseEstimator, *data: Any, **checks: Any) -> Any:
    """Run scikit-learn's checks without warnings about sums of a finite column that overflow."""
    kind = type(data[0])
    library = kind.__module__.partition(".")[0]
    if (library, kind.__name__) in _REMEDIES:
        remedy = _REMEDIES[library, kind.__name__]
        raise ValueError(f"X is a {kind.__name__} of {library}. Pass {remedy} instead.")
    with np.errstate(over="ignore", invalid="ignore"):
        return validate_data(model, *data, dtype=COMPUTE_DTYPES, **checks)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return issparse(X)


def dense(X: Any) -> Any:
    """Return a sparse matrix as an array, and anything else as it is."""
    return X.toarray() if is_sparse(X) else X


def check_columns(model: BaseEstimator, X: Any, *, reset: bool = False) -> None:
    """Store the number and the names of columns, or compare them with those of the fit; values are not checked."""
    if (isinstance(X, np.ndarray) and X.ndim == 1) or (isinstance(X, list | tuple) and X and np.ndim(X[0]) == 0):
        raise ValueError(
            f"X must have two dimensions, got one of {len(X)} entries. Reshape your data with X.reshape(-1, 1) if it "
            "is one column, or with X.reshape(1, -1) if it is one row."
        )
    validate_data(model, X, reset=reset, skip_check_array=True)


def check_numbers(name: str, value: Any, n_rows: int | None) -> NDArray:
    """Return one number per row, float64 of shape (N,), given these or one for all; N may be unknown."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, one per row: {error}.") from error
    if numbers.ndim == 0 and n_rows is not None:
        numbers = np.full(n_rows, float(numbers))
    if numbers.ndim != 1 or n_rows not in (None, len(numbers)):
        rows = "row" if n_rows is None else f"of the {n_rows} rows"
        raise ValueError(f"{name}.shape == {numbers.shape}, expected one number for each {rows}.")
    return numbers


def check_weights(sample_weight: Any, n_rows: int) -> NDArray:
    """Return weights as float64 of shape (N,), the largest 1: finite, not negative, not all zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = check_numbers("sample_weight", sample_weight, n_rows)
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity; every weight must be a finite number.")
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got a smallest weight of {weights.min()}.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one row needs a positive weight.")
    largest = weights.max()
    check_weight_range("sample_weight", weights.min(initial=largest, where=weights > 0), largest)
    return weights / largest  # only ratios matter, and sums of huge weights must not overflow


def check_mass(sample_weight: Any, n_rows: int) -> float:
    """Return the sum of checked weights in units of a row."""
    return float(n_rows) if sample_weight is None else float(np.sum(np.broadcast_to(sample_weight, n_rows)))


def check_weight_range(name: str, least: float, largest: float) -> None:
    """Raise ``ValueError`` if the smallest positive weight would underflow relative to the largest."""
    if least < largest / _WIDEST_RANGE:
        raise ValueError(
            f"{name} has positive weights from {least:g} to {largest:g}; the largest may be {_WIDEST_RANGE:g} times "
            "the smallest. Leave out the rows with negligible weights."
        )


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return the smallest and the largest possible target, given None or a pair in which None is no bound."""
    try:
        low, high = (None, None) if bounds is None else bounds
        ends = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    except (TypeError, ValueError):
        ends = np.nan, np.nan
    if not ends[0] < ends[1]:
        raise ValueError(
            "bounds must be None or a pair of numbers (low, high) with low < high, each of which may be None, such as "
            f"(0, None), got {bounds!r}."
        )
    return ends
