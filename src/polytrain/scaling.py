"""Bring features into a bounded range. A polynomial in many raw columns would overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FeatureScale"]

_BLOCK_ROWS = 8192


@dataclass(frozen=True)
class FeatureScale:
    """An affine map of each feature from its range in the training rows onto [-1, 1].

    Values outside the range are clipped to it first, so that a prediction far from the training data stays finite. A
    constant feature becomes 0 everywhere.

    Parameters
    ----------
    low, high : ndarray of shape (d,)
        Range of each feature in the training rows.
    """

    low: NDArray
    high: NDArray

    @classmethod
    def fit(cls, X: NDArray) -> FeatureScale:
        """Take the range from the rows of ``X``, shape (N, d)."""
        return cls(X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64))

    def affine(self) -> tuple[NDArray, NDArray]:
        """Return ``centre`` and ``factor`` with scaled = (clipped - centre) * factor, both of shape (d,)."""
        # Halves are taken before differences: the range itself may exceed the largest float.
        half = self.high / 2 - self.low / 2
        centre = self.low / 2 + self.high / 2
        usable = half >= np.finfo(np.float64).tiny
        return centre, np.divide(1.0, half, out=np.zeros_like(half), where=usable)

    def columns(self, X: NDArray) -> NDArray:
        """Scale rows ``X`` (N, d) into columns (d, N) of the same dtype."""
        centre, factor = self.affine()
        out = np.empty(X.shape[::-1], dtype=X.dtype)
        for start in range(0, len(X), _BLOCK_ROWS):
            block = np.clip(X[start : start + _BLOCK_ROWS], self.low, self.high)
            out[:, start : start + _BLOCK_ROWS] = ((block - centre) * factor).T
        return out


def plain_columns(X: NDArray) -> NDArray:
    """Rows (N, d) -> columns (d, N) as they are."""
    return np.ascontiguousarray(X.T)
