"""Offsets of scores that are logarithms: the same as other targets with other weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.losses import Loss
from polytrain.rows.dask_blocks import is_dask

__all__ = ["check_offset", "to_rates"]

# exp(700) is nearly the largest number there is.
_LARGEST = 700.0


def check_offset(offset: Any, loss: Loss, n_rows: int | None = None) -> NDArray:
    """Return an offset as numbers, (N,); refuse it where scores are not logarithms."""
    if loss.link != "log":
        raise ValueError(
            f"offset is the logarithm of an exposure, and loss={loss.name!r} has none. Leave offset out, or use "
            "loss='poisson' or 'gamma'."
        )
    if is_dask(offset):
        return offset
    try:
        numbers = np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"offset must be numbers, one per row: {error}.") from error
    if numbers.ndim == 0 and n_rows is not None:
        numbers = np.full(n_rows, float(numbers))
    if numbers.ndim != 1 or (n_rows is not None and len(numbers) != n_rows):
        wanted = "one number per row" if n_rows is None else f"one number for each of the {n_rows} rows"
        raise ValueError(f"offset.shape == {numbers.shape}, expected {wanted}.")
    if not (np.abs(numbers) <= _LARGEST).all():
        outside = next(value for value in numbers.tolist() if not abs(value) <= _LARGEST)
        raise ValueError(
            f"offset must be between {-_LARGEST:g} and {_LARGEST:g}, got {outside!r}. It is the logarithm of the "
            "exposure, not the exposure itself."
        )
    return numbers


def to_rates(loss: Loss, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any]:
    """Return targets and weights with which the loss is the same, to a factor, as with an offset of the scores.

    A Poisson deviance of y counts in exposure t = exp(offset) is t times that of the rate y / t; a gamma deviance is
    that of y / t itself.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.learning.losses import get_loss
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
    weights = np.exp(power * (offset - offset.max(initial=-_LARGEST)))  # only ratios matter
    return rates, weights if sample_weight is None else weights * np.asarray(sample_weight, dtype=np.float64)
