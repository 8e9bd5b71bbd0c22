"""Evaluate all trains of a model on many rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import get_basis

__all__ = ["evaluate_trains"]

_BLOCK_ROWS = 1024


def _stack(trains: Sequence[Sequence[NDArray]], k: int) -> NDArray:
    """Core k of every train, zero-padded to common ranks, ready to multiply: (m, n, b, a)."""
    cores = [train[k] for train in trains]
    a, b = max(core.shape[0] for core in cores), max(core.shape[2] for core in cores)
    stacked = np.zeros((len(cores), cores[0].shape[1], b, a))
    for out, core in zip(stacked, cores, strict=True):
        out[:, : core.shape[2], : core.shape[0]] = core.transpose(1, 2, 0)
    return stacked


def evaluate_trains(trains: Sequence[Sequence[NDArray]], columns: NDArray, basis: str) -> NDArray:
    """Return every train's value on every row.

    Shapes: m trains of cores with equal dimensions, columns (d, N) -> (m, N) in float64.
    """
    family = get_basis(basis)
    stacked = [_stack(trains, k).astype(columns.dtype, copy=False) for k in range(len(columns))]
    result = np.empty((len(trains), columns.shape[1]))
    for start in range(0, columns.shape[1], _BLOCK_ROWS):
        block = columns[:, start : start + _BLOCK_ROWS]
        state = np.ones((len(trains), 1, block.shape[1]), dtype=columns.dtype)
        for column, cores in zip(block, stacked, strict=True):
            m, n, b, a = cores.shape
            values = family.values(column, n)
            parts = (cores.reshape(m, n * b, a) @ state).reshape(m, n, b, -1)
            state = parts[:, 0]
            for i in range(1, n):
                parts[:, i] *= values[i]
                state = state + parts[:, i]
        result[:, start : start + _BLOCK_ROWS] = state[:, 0]
    return result
