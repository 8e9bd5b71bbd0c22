"""Errors on rows that a model has not learned from, and which of several models they speak for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Evidence", "simplest", "strongest"]

#: Errors that differ by no more than this part are the same: rounding must not decide.
_SAME = 1e-3


@dataclass(frozen=True, eq=False)
class Evidence:
    """Squared errors, or other losses, of one model on rows that it has not learned from.

    Attributes
    ----------
    squares : ndarray of shape (N,)
        Squared error or loss of every row, summed over the targets.
    weights : ndarray of shape (N,)
        Weights of the rows, which sum to 1.
    """

    squares: NDArray
    weights: NDArray

    @property
    def error(self) -> float:
        """Weighted mean of the squared errors."""
        return float(self.weights @ self.squares)

    def worse_than(self, other: Evidence) -> tuple[float, float]:
        """How much larger the error is than that of another model on the same rows, and the standard error of that."""
        difference = self.squares - other.squares
        mean = float(self.weights @ difference)
        return mean, float(np.linalg.norm(self.weights * (difference - mean)))


def simplest(found: Sequence[Evidence], standard_errors: float = 1.0) -> int:
    """Index of the first of these models, the simplest one first, that is not clearly worse than the best.

    It is clear if the difference is larger than so many of its standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain.choice.evidence import Evidence, simplest
    >>> squares = [[1.0, 1.1, 0.9, 1.0], [0.7, 1.3, 1.2, 0.7], [0.5, 0.6, 0.4, 0.5]]
    >>> found = [Evidence(np.array(row), np.full(4, 0.25)) for row in squares]
    >>> simplest(found[:2]), simplest(found)
    (0, 2)
    """
    best = found[int(np.argmin([evidence.error for evidence in found]))]
    for index, evidence in enumerate(found):
        mean, error = evidence.worse_than(best)
        if mean <= standard_errors * error + _SAME * best.error:
            return index
    raise AssertionError("the best one is never worse than itself")  # pragma: no cover


def strongest(errors: Sequence[float]) -> int:
    """Index of the first error that is as good as the least."""
    return int(np.argmax(np.array(errors) <= (1.0 + _SAME) * min(errors)))
