"""Losses of the targets -1 and 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from polytrain.learning.losses.loss import NOTHING, Loss

__all__ = ["LogisticLoss", "SquaredHingeLoss"]


class LogisticLoss(Loss):
    """log(1 + exp(-target * score)) with targets -1 and 1, the loss of TTLR.

    Examples
    --------
    >>> import numpy as np
    >>> cost, slope, curvature = LogisticLoss().evaluate(np.array([1.0, -1.0]), np.array([0.0, 1000.0]))
    >>> cost.round(4)
    array([6.931e-01, 1.000e+03])
    """

    name = "logistic"
    tasks = frozenset({"classification"})
    link = "logit"
    domain = "-1 or 1"

    def accepts(self, target: NDArray) -> bool:
        """Two labels."""
        return bool((np.abs(target) == 1.0).all())

    def start(self, target: NDArray, weights: NDArray) -> float:
        """Log-odds of the target 1."""
        mean = np.average(target, weights=weights)
        with np.errstate(divide="ignore"):
            return float(np.log1p(mean) - np.log1p(-mean))

    def stand_ins(self, score: NDArray) -> list[tuple[NDArray, NDArray]] | None:
        """Both labels, with their probabilities."""
        ones = np.ones(len(score))
        return [(ones, expit(score)), (-ones, expit(-score))]

    def alpha_share(self, noise: float, steepness: float) -> float:
        """The curvature at a score of 0 beside that of the squared loss."""
        return 0.125

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Negative log-likelihood; with h = sigmoid(score) h - (target + 1) / 2 and h (1 - h). Safe for any score."""
        # All of it from one exponential that cannot overflow: with e = exp(-|margin|) the chance of the less likely
        # label is e / (1 + e), and the cost is max(-margin, 0) + log(1 + e).
        margin = target * score
        small = np.abs(margin)
        np.negative(small, out=small)
        np.exp(small, out=small)
        small[small < NOTHING] = 0.0
        cost = np.log1p(small)
        cost -= np.minimum(margin, 0.0)
        likely = 1.0 / (1.0 + small)
        small *= likely
        wrong = np.where(margin < 0.0, likely, small)  # the chance of the label that is not the target
        small *= likely
        wrong *= target
        return cost, np.negative(wrong, out=wrong), small


class SquaredHingeLoss(Loss):
    """max(0, 1 - target * score)^2 with targets -1 and 1: rows that are clearly right cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredHingeLoss().evaluate(np.array([1.0, -1.0]), np.array([2.0, 0.5]))[0]
    array([0.  , 2.25])
    """

    name = "squared_hinge"
    tasks = frozenset({"classification"})
    link = "identity"
    domain = "-1 or 1"

    def accepts(self, target: NDArray) -> bool:
        """Two labels."""
        return bool((np.abs(target) == 1.0).all())

    def start(self, target: NDArray, weights: NDArray) -> float:
        """The mean, as for the squared loss: no score lies beyond 1."""
        return float(np.average(target, weights=weights))

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Square of what is missing to 1."""
        missing = np.maximum(1.0 - target * score, 0.0)
        return np.square(missing), -2.0 * target * missing, np.where(missing > 0.0, 2.0, 0.0)
