"""Check the rows, weights and offsets of a fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets, is_multilabel

from polytrain.checks import COMPUTE_DTYPES, check_numbers, check_weights, dense, is_sparse
from polytrain.columns import Columns
from polytrain.learning.losses import Loss, get_loss
from polytrain.rows.dask_blocks import is_dask
from polytrain.rows.rows import Arrays
from polytrain.texts import short_list

_check_pair = partial(check_X_y, dtype=COMPUTE_DTYPES)


def check_arrays(
    X: Any, y: Any, sample_weight: Any, loss: str | None, validate: Callable[..., Any] = _check_pair
) -> Arrays:
    """Check encoded rows in memory; ``loss`` is that of a regression, ``validate`` checks X and y together."""
    if loss is not None and is_sparse(y):
        raise ValueError(f"y is a sparse {type(y).__name__}; make it dense with y.toarray().")
    has_labels = loss is None and is_multilabel(y)
    kind = {"y_numeric": loss is not None, "multi_output": has_labels or loss is not None}
    with np.errstate(over="ignore", invalid="ignore"):  # sums over finite numbers may overflow
        X, y = validate(X, y, ensure_all_finite="allow-nan", **kind)
    if has_labels:
        y = dense(y).astype(np.float64)
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError(
                f"y of shape {y.shape} must hold 0 and 1, a column per label, got {short_list(np.unique(y))}."
            )
    elif loss is None:
        check_classification_targets(y)
    else:
        y = y.astype(np.float64, copy=False)
        get_loss(loss).check_target(y)
    return X, y, check_weights(sample_weight, len(X))


def check_more(
    X: Any,
    y: Any,
    sample_weight: Any,
    loss: str | None,
    columns: Columns | None,
    n_features: int,
    known: NDArray | int,
    names: tuple[str, str] = ("X", "y"),
) -> Arrays:
    """Check rows in memory that come after others; ``known`` are the labels or the number of outputs of those."""
    X, y, weights = check_arrays(X if columns is None else columns.encode(X), y, sample_weight, loss)
    if X.shape[1] != n_features:
        raise ValueError(f"{names[0]} has {X.shape[1]} features, but the first rows had {n_features}.")
    if isinstance(known, int):
        if (1 if y.ndim == 1 else y.shape[1]) != known:
            raise ValueError(f"{names[1]} has shape {y.shape}, but there should be {known} outputs.")
        return X, y, weights
    labels = set(known.tolist())
    unknown = [label for label in np.unique(y).tolist() if label not in labels]
    if unknown:
        raise ValueError(
            f"{names[1]} has labels that are not known: {short_list(unknown)}; the classes are {short_list(known)}."
        )
    return X, y, weights


def check_block(raw: Any, loss: str | None, columns: Columns | None = None) -> Arrays:
    """Check one block, X, y and perhaps weights; it may have no rows, and rows whose weights are all zero."""
    X, y = raw[0], np.asarray(raw[1])
    if loss is None and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if columns is not None:
        X, given = columns.encode(X), X
        for feature in np.flatnonzero(columns.is_category & (X < 0).any(axis=0)).tolist():
            column = int(columns.sources[feature])
            value = np.asarray(given, dtype=object)[(X[:, feature] < 0).argmax(), column]
            raise ValueError(
                f"column {columns.columns[column].name!r} holds {value!r}, which was missing when its levels were "
                "read first. Rows must be the same each time they are read."
            )
    if not len(X):
        return np.asarray(X, dtype=np.float32), y if loss is None else y.astype(np.float64), np.zeros(0)
    X, y, weights = check_arrays(X, y, None, loss)
    if len(raw) > 2:
        weights = np.asarray(raw[2], dtype=np.float64)
        if weights.any():
            check_weights(weights, len(X))
    return X, y, weights


# exp(700) is nearly the largest number there is.
_LARGEST_OFFSET = 700.0


def check_offset(offset: Any, loss: Loss, n_rows: int | None = None) -> NDArray:
    """Return an offset as numbers, (N,); refuse it where scores are not logarithms."""
    if loss.link != "log":
        raise ValueError(
            f"offset is the logarithm of an exposure, and loss={loss.name!r} has none. Leave offset out, or use "
            "loss='poisson' or 'gamma'."
        )
    if is_dask(offset):
        return offset
    numbers = check_numbers("offset", offset, n_rows)
    outside = numbers[~(np.abs(numbers) <= _LARGEST_OFFSET)]
    if len(outside):
        raise ValueError(
            f"offset must be between {-_LARGEST_OFFSET:g} and {_LARGEST_OFFSET:g}, got {float(outside[0])!r}. It is "
            "the logarithm of the exposure, not the exposure itself."
        )
    return numbers


def to_rates(loss: Loss, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any]:
    """Return targets and weights that give the same loss as an offset of the scores, up to a factor.

    A Poisson deviance of y counts in exposure t = exp(offset) is t times that of the rate y / t; a gamma deviance is
    that of y / t itself.

    >>> to_rates(get_loss("poisson"), np.array([2.0, 3.0]), None, np.log([1.0, 2.0]))
    (array([2. , 1.5]), array([0.5, 1. ]))
    """
    offset = check_offset(offset, loss, None if is_dask(offset) else len(y))
    power = float(loss.exposure_power)
    if is_dask(offset):
        weights = np.exp(power * offset)
        return y * np.exp(-offset), weights if sample_weight is None else weights * sample_weight
    targets = np.asarray(y, dtype=np.float64)
    rates = targets * np.exp(-offset) if targets.ndim < 2 else targets * np.exp(-offset)[:, None]
    weights = np.exp(power * (offset - offset.max(initial=-_LARGEST_OFFSET)))  # only ratios matter
    return rates, weights if sample_weight is None else weights * np.asarray(sample_weight, dtype=np.float64)


def with_exposure(loss: Loss, rates: Any, offset: Any) -> Any:
    """Return predictions of rates, (N,) or (N, outputs), times the exposures, if there are any."""
    if offset is None:
        return rates
    exposure = np.exp(check_offset(offset, loss, None if is_dask(rates) else len(rates)))
    return rates * (exposure if rates.ndim == 1 else exposure[:, None])
