"""Losses whose scores are logarithms of the mean target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from polytrain.learning.losses.loss import LARGEST_TARGET, Loss

__all__ = ["GammaLoss", "PoissonLoss"]


class _OfMeans(Loss):
    """A loss whose scores are logarithms of the mean target."""

    tasks = frozenset({"regression"})
    link = "log"

    def stand_ins(self, score: NDArray) -> list[tuple[NDArray, NDArray]] | None:
        """The means."""
        return [(np.exp(score), np.ones(len(score)))]

    def start(self, target: NDArray, weights: NDArray) -> float:
        """Logarithm of the mean."""
        with np.errstate(divide="ignore"):
            return float(np.log(np.average(target, weights=weights)))


class PoissonLoss(_OfMeans):
    """Half of the deviance of counts, exp(score) - target * score and what makes it 0 for the best score.

    Examples
    --------
    >>> import numpy as np
    >>> PoissonLoss().evaluate(np.array([0.0, 2.0]), np.log([1.0, 2.0]))[0].round(6)
    array([1., 0.])
    """

    name = "poisson"
    domain = "not negative and not all zero"
    remedy = " Counts and rates are not negative."
    exposure_power = 1

    def accepts(self, target: NDArray) -> bool:
        """Counts, or any other numbers that are not negative."""
        return bool(((target >= 0.0) & (target <= LARGEST_TARGET)).all())

    def alpha_share(self, noise: float, steepness: float) -> float:
        """A step of the score is a step of the mean in units of the mean."""
        return float(0.5 / (max(noise, 1e-12) * steepness * steepness))

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Half of the deviance; its curvature is the mean."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.exp(score)
            cost = mean - target + xlogy(target, target) - target * score
            return cost, mean - target, mean


class GammaLoss(_OfMeans):
    """Half of the deviance of positive numbers with a constant coefficient of variation.

    Examples
    --------
    >>> import numpy as np
    >>> GammaLoss().evaluate(np.array([1.0, 2.0]), np.log([1.0, 2.0]))[0].round(6)
    array([0., 0.])
    """

    name = "gamma"
    domain = "positive"
    remedy = " Leave out zeros, or use loss='poisson'."

    def accepts(self, target: NDArray) -> bool:
        """Positive numbers."""
        return bool(((target >= 1.0 / LARGEST_TARGET) & (target <= LARGEST_TARGET)).all())

    def alpha_share(self, noise: float, steepness: float) -> float:
        """Noise is a part of the mean."""
        return 0.5

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Half of the deviance; its curvature is target / mean."""
        with np.errstate(over="ignore", invalid="ignore"):
            distance = score - np.log(target)
            ratio = np.exp(-distance)
            return ratio - 1.0 + distance, 1.0 - ratio, ratio.copy()
