"""Losses of the difference between score and target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from polytrain.learning.losses.loss import LARGEST_TARGET, NOTHING, Loss

__all__ = ["AbsoluteLoss", "HuberLoss", "QuantileLoss", "SquaredLoss", "spread", "weighted_quantile"]

# Corners are smoothed over this part of the mean cost of a residual, and neither they nor the residuals that Huber's
# loss knows as small ones become smaller than this, for targets that are divided by their size.
_SHARP, _SHARPEST = 0.2, 1e-4


class _OfDifferences(Loss):
    """A loss of the difference between score and target."""

    tasks = frozenset({"regression"})
    link = "identity"
    domain = f"between {-LARGEST_TARGET:g} and {LARGEST_TARGET:g}"
    remedy = " Sums of their squares must be finite: divide the target first."

    def accepts(self, target: NDArray) -> bool:
        """Numbers that can be squared."""
        return bool((np.abs(target) <= LARGEST_TARGET).all())

    def start(self, target: NDArray, weights: NDArray) -> float:
        """The mean."""
        return float(np.average(target, weights=weights))


class SquaredLoss(_OfDifferences):
    """(score - target)^2, the loss of TTLS.

    Examples
    --------
    >>> import numpy as np
    >>> cost, slope, curvature = SquaredLoss().evaluate(np.array([1.0, -1.0]), np.array([0.5, 1.0]))
    >>> cost
    array([0.25, 4.  ])
    """

    name = "squared"
    tasks = frozenset({"classification", "regression"})
    quadratic = True
    degree = 2
    has_noise = True

    def stand_ins(self, score: NDArray) -> list[tuple[NDArray, NDArray]] | None:
        """The scores themselves."""
        return [(score, np.ones(len(score)))]

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Square of the difference, twice the difference, and 2."""
        slope = score - target
        cost = np.square(slope)
        slope *= 2.0
        return cost, slope, np.full_like(score, 2.0)


@dataclass(frozen=True)
class QuantileLoss(_OfDifferences):
    """Loss whose best constant is a quantile: residuals above it cost ``level`` each, those below ``1 - level``.

    The corner at 0 is smoothed over a ``width``: cost = level * r + width * log(1 + exp(-r / width)) for the residual
    r = target - score. It is never below the pinball loss, and falls to it as the width shrinks.

    Examples
    --------
    >>> import numpy as np
    >>> cost, slope, curvature = QuantileLoss(0.9, 0.01).evaluate(np.array([1.0, -1.0]), np.zeros(2))
    >>> cost.round(3)
    array([0.9, 0.1])
    """

    level: float = 0.5
    width: float = 0.1

    name = "quantile"
    degree = 1
    needs_values = True
    _twice = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.level < 1.0 and 0.0 < self.width < np.inf):
            raise ValueError(f"a quantile loss has a level between 0 and 1 and a positive width, got {self!r}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(level={self.level}, width={self.width})"

    def start(self, target: NDArray, weights: NDArray) -> float:
        """The quantile."""
        return weighted_quantile(target, weights, self.level)

    def tuned(self, settings: Mapping[str, Any]) -> Loss:
        """The level is the parameter ``quantile``."""
        level = settings["quantile"]
        if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < level < 1.0:  # type: ignore[operator]
            raise ValueError(f"quantile must be a number between 0 and 1, without these, got {level!r:.60}.")
        return replace(self, level=float(level))

    def alpha_share(self, noise: float, steepness: float) -> float:
        """Rows tell the less about a quantile, the wider the residuals."""
        return self._twice * 0.3 / math.sqrt(max(noise, 1e-12))

    def refined(self, residuals: NDArray, weights: NDArray) -> Self:
        """Smooth over a small part of what the residuals cost, and never over more than before."""
        cost = np.maximum(self.level * residuals, (self.level - 1.0) * residuals)
        return replace(self, width=min(self.width, max(_SHARP * float(np.average(cost, weights=weights)), _SHARPEST)))

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Smoothed pinball loss; its slope is a logistic function of the residual."""
        scaled = (target - score) / self.width
        chance = expit(-scaled)  # how far the residual is on the negative side
        chance[chance < NOTHING] = 0.0
        cost = self.level * (target - score) - self.width * log_expit(scaled)
        curvature = chance * (1.0 - chance) / self.width
        return self._twice * cost, self._twice * (chance - self.level), self._twice * curvature


@dataclass(frozen=True)
class AbsoluteLoss(QuantileLoss):
    """|score - target|, twice the loss of the median: smoothed in the same way.

    Examples
    --------
    >>> import numpy as np
    >>> AbsoluteLoss(width=0.01).evaluate(np.array([1.0, -2.0]), np.zeros(2))[0].round(3)
    array([1., 2.])
    """

    name = "absolute"
    _twice = 2.0

    def tuned(self, settings: Mapping[str, Any]) -> Loss:
        """It is always about the median."""
        return self


@dataclass(frozen=True)
class HuberLoss(_OfDifferences):
    """Squares of small residuals, and multiples of large ones: outliers pull with a limited force.

    A residual is large beyond ``epsilon`` times ``scale``, the standard deviation of those that are not outliers.

    Examples
    --------
    >>> import numpy as np
    >>> HuberLoss(1.0, 1.0).evaluate(np.array([0.5, 3.0]), np.zeros(2))[0]
    array([0.25, 5.  ])
    """

    epsilon: float = 1.35
    scale: float = 1.0

    name = "huber"
    degree = 2
    needs_values = True

    def __post_init__(self) -> None:
        if not (0.0 < self.epsilon < np.inf and 0.0 < self.scale < np.inf):
            raise ValueError(f"a Huber loss has a positive epsilon and scale, got {self!r}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon}, scale={self.scale})"

    def start(self, target: NDArray, weights: NDArray) -> float:
        """The median, which is near."""
        return weighted_quantile(target, weights, 0.5)

    def tuned(self, settings: Mapping[str, Any]) -> Loss:
        """The parameter ``epsilon`` says where residuals begin to be large."""
        epsilon = settings["epsilon"]
        if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not 0.0 < epsilon < 1e30:  # type: ignore[operator]
            raise ValueError(f"epsilon must be a positive number below 1e30, got {epsilon!r:.60}.")
        return replace(self, epsilon=float(epsilon))

    def refined(self, residuals: NDArray, weights: NDArray) -> Self:
        """Take the spread of most residuals as the standard deviation."""
        return replace(self, scale=max(spread(residuals, weights), _SHARPEST))

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Squared loss up to the limit, and its tangents beyond it."""
        limit, residual = self.epsilon * self.scale, score - target
        small = np.clip(residual, -limit, limit)
        cost = small * (2.0 * residual - small)
        return cost, 2.0 * small, np.where(np.abs(residual) <= limit, 2.0, 0.0)


def weighted_quantile(values: NDArray, weights: NDArray, level: float) -> float:
    """Return the least value that has at least this part of the weight at or below it.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
    2.0
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    place = np.searchsorted(below, level * below[-1] * (1.0 - 1e-12))
    return float(values[order[min(place, len(order) - 1)]])


def spread(values: NDArray, weights: NDArray) -> float:
    """Return a standard deviation that outliers do not change, of values around 0."""
    return 1.4826 * weighted_quantile(np.abs(values), weights, 0.5)
