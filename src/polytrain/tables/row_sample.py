"""An even sample of rows that come in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowSample"]


class RowSample:
    """Keeps an even sample of a stream of rows: every row at first, every second one when there are many, ..."""

    def __init__(self, max_rows: int = 20_000) -> None:
        self._parts: list[NDArray] = []
        self._max_rows, self._n, self._step, self._offset = max_rows, 0, 1, 0

    def __call__(self, X: NDArray) -> None:
        """Take note of a block."""
        part = X[self._offset :: self._step]
        self._offset = (self._offset - len(X)) % self._step
        self._parts.append(part)
        self._n += len(part)
        while self._n > self._max_rows:
            rows = np.concatenate(self._parts)
            self._offset = (self._offset + self._step * (len(rows) % 2)) % (2 * self._step)
            self._parts, self._step = [rows[::2]], 2 * self._step
            self._n = len(self._parts[0])

    def __len__(self) -> int:
        return self._n

    @property
    def rows(self) -> NDArray:
        """The sample."""
        return np.concatenate(self._parts)
