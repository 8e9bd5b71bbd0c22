"""Which of the errors on left-out rows an interval must hold.

With n rows that were not learned from and one more, all exchangeable, each of the n + 1 errors is as likely as the
others to be the k-th smallest. So the ceil((n + 1) coverage)-th smallest of the n is no smaller than the error of the
new row with a probability of at least ``coverage``, and of at most ``coverage + 1 / (n + 1)`` where no errors tie.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

__all__ = ["LeftOutErrors"]

# No more errors than these are kept, the larger one of each that fall together: intervals become no narrower.
_MOST_KEPT = 1024
# Sums of weights that should be equal differ by no more than this.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Sizes of errors on rows that were not learned from.

    Attributes
    ----------
    errors : ndarray of shape (k,)
        In ascending order.
    heights : ndarray of shape (k,)
        Which part of the weight has errors that are no larger.
    n_rows : int
        Number of different rows.

    Examples
    --------
    >>> import numpy as np
    >>> found = LeftOutErrors.of(np.arange(1.0, 20.0), np.ones(19))
    >>> found.bound(0.9), found.bound(0.95)
    (18.0, 19.0)
    """

    errors: NDArray
    heights: NDArray
    n_rows: int

    @classmethod
    def of(cls, errors: NDArray, weights: NDArray) -> LeftOutErrors:
        """Take errors of different rows, of any sign, with their weights."""
        sizes = np.abs(errors)
        order = np.argsort(sizes, kind="stable")
        heights = np.cumsum(weights[order])
        heights = np.minimum(heights / heights[-1], 1.0)
        kept = np.arange(len(order))
        if len(order) > _MOST_KEPT:
            levels = np.arange(1, _MOST_KEPT + 1) / _MOST_KEPT - _ROUNDING
            kept = np.unique(np.minimum(np.searchsorted(heights, levels), len(order) - 1))
        heights[-1] = 1.0
        return cls(sizes[order][kept], heights[kept], len(order))

    @property
    def largest_coverage(self) -> float:
        """No interval can promise more from so few rows."""
        return self.n_rows / (self.n_rows + 1)

    def bound(self, coverage: float) -> float:
        """The size that the error of a new row does not exceed with this probability.

        It is the smallest error whose height is at least ``coverage * (n + 1) / n``: with equal weights the
        ceil((n + 1) coverage)-th smallest.
        """
        if coverage > self.largest_coverage * (1.0 + _ROUNDING):
            needed = ceil(coverage / (1.0 - coverage) - _ROUNDING)
            raise ValueError(
                f"coverage={coverage} needs at least {needed} different rows that were not learned from, and there are "
                f"{self.n_rows}: an interval would be infinite. Ask for coverage <= {self.largest_coverage:.4g}, or "
                "fit with more rows or a larger calibration_fraction."
            )
        level = coverage * (self.n_rows + 1) / self.n_rows
        place = int(np.searchsorted(self.heights, level * (1.0 - _ROUNDING)))
        return float(self.errors[min(place, len(self.errors) - 1)])
