"""Losses: the cost of a score. A new loss is one class and one entry in the tuple ``_KINDS``, at the end.

Conventions
-----------
``target`` and ``score`` have shape (N,). The curvature must never be negative: that makes every core problem convex,
which the solvers rely on. Nothing here knows about weights, regularisation or trains. A loss with parameters is a
frozen dataclass; its ``spec``, such as "quantile(0.9, 0.1)", names it in settings, model files and other processes.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, xlogy

from polytrain.arrays import Array

#: Cost, slope and curvature of every row.
Derivatives = tuple[Array, Array, Array]

# Smaller probabilities do not change a sum with 1, and would become denormal numbers in float32, which are 20 times
# slower.
_NEGLIGIBLE = 1e-20
# Sums of the squares of targets up to this size are finite for any number of rows.
_LARGEST_TARGET = 1e140
# Corners are smoothed over this part of the mean cost of a residual. Neither the smoothing nor the scale of Huber's
# loss becomes smaller than the second number, for targets that are divided by their size.
_SHARP, _SHARPEST = 0.2, 1e-4


class Loss(ABC):
    """Cost of a score, with the properties that estimators need."""

    name: str
    #: "classification" (targets -1 and 1), "regression", or both.
    tasks: frozenset[str] = frozenset({"regression"})
    #: Meaning of a score: "identity" for a number like the target, "log" for the logarithm of its mean, "logit" for
    #: log-odds of the target 1.
    link: str = "identity"
    #: Least and largest target, the same in words, and a sentence that follows the error about other targets.
    limits: tuple[float, float] = (-_LARGEST_TARGET, _LARGEST_TARGET)
    domain: str = f"between {-_LARGEST_TARGET:g} and {_LARGEST_TARGET:g}"
    remedy: str = ""
    #: Function of `sklearn.metrics` that measures predictions.
    metric: str = "mean_squared_error"
    #: Whether the curvature is constant, so that one Newton step of length 1 solves a core problem.
    quadratic: bool = False
    #: If targets and scores grow by a factor, the loss grows by this power of it. 0 if there is no such power; then
    #: targets are neither shifted nor divided.
    degree: int = 0
    #: Whether the best constant, or the loss itself, depends on more than the mean of the targets.
    needs_values: bool = False
    #: With an exposure, a count of y in time t costs as much as a rate of y / t with this power of t as its weight.
    exposure_power: int = 0
    #: Whether residuals have the same distribution everywhere, so that predictions have a standard deviation.
    has_noise: bool = False

    @abstractmethod
    def evaluate(self, target: Array, score: Array) -> Derivatives:
        """Cost of each row, and its slope and curvature with respect to the score, in fresh arrays."""

    def accepts(self, target: Array) -> bool:
        """Whether all targets are in the domain."""
        return bool(((target >= self.limits[0]) & (target <= self.limits[1])).all())

    def start(self, target: Array, weights: Array) -> float:
        """Constant score with the least cost, at least nearly."""
        mean = np.average(target, weights=weights)
        with np.errstate(divide="ignore"):
            if self.link == "logit":
                return float(np.log1p(mean) - np.log1p(-mean))
            return float(np.log(mean) if self.link == "log" else mean)

    def tuned(self, settings: Mapping[str, Any]) -> Loss:
        """The same loss with parameters taken from those of an estimator, which has checked them."""
        return self

    def alpha_share(self, noise: float, steepness: float) -> float:
        """Approximate ratio of the best alpha to that of the squared loss.

        ``noise`` is the mean squared error of left-out rows, for targets that are divided by their size, and
        ``steepness`` that size divided by the mean target.
        """
        return 1.0

    def refined(self, residuals: Array, weights: Array) -> Self:
        """The loss with a scale that suits these residuals, target minus score."""
        return self

    def stand_ins(self, score: Array) -> list[tuple[Array, Array]] | None:
        """Targets, each with its share of a row's weight, for which these scores are optimal; None if unknown.

        Together they have the expected curvature of the loss at these scores.
        """
        return None

    def mean(self, score: Array) -> Array:
        """Prediction for a score: the inverse of the link."""
        return np.exp(score) if self.link == "log" else score

    @property
    def metric_options(self) -> dict[str, float]:
        """Parameters of the function ``metric``."""
        return {}

    @property
    def spec(self) -> str:
        """Text that `get_loss` turns back into this loss."""
        return f"{self.name}({', '.join(map(repr, astuple(self)))})" if is_dataclass(self) else self.name

    def check_target(self, target: Array) -> None:
        """Refuse targets outside of the domain."""
        if not self.accepts(target):
            outside = next(value for value in np.ravel(target).tolist() if not self.accepts(np.array([value])))
            raise ValueError(
                f"loss={self.name!r} is defined for targets that are {self.domain}, got {outside!r}.{self.remedy}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


# --- losses of the difference between score and target ----------------------------------------------------------------


class SquaredLoss(Loss):
    """(score - target)^2, the loss of TTLS."""

    name = "squared"
    tasks = frozenset({"classification", "regression"})
    remedy = " Sums of their squares must be finite: divide the target first."
    quadratic = True
    degree = 2
    has_noise = True

    def stand_ins(self, score: Array) -> list[tuple[Array, Array]]:
        return [(score, np.ones(len(score)))]

    def evaluate(self, target: Array, score: Array) -> Derivatives:
        slope = score - target
        cost = np.square(slope)
        slope *= 2.0
        return cost, slope, np.full_like(score, 2.0)


@dataclass(frozen=True)
class QuantileLoss(Loss):
    """Loss whose best constant is a quantile: residuals above it cost ``level`` each, those below ``1 - level``.

    The corner at 0 is smoothed over a ``width``: cost = level * r + width * log(1 + exp(-r / width)) for the residual
    r = target - score. It is never below the pinball loss, and falls to it as the width shrinks.
    """

    level: float = 0.5
    width: float = 0.1

    name = "quantile"
    metric = "mean_pinball_loss"
    remedy = SquaredLoss.remedy
    degree = 1
    needs_values = True
    _factor = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.level < 1.0 and 0.0 < self.width < np.inf):
            raise ValueError(f"a quantile loss has a level between 0 and 1 and a positive width, got {self!r}.")

    def start(self, target: Array, weights: Array) -> float:
        return _weighted_quantile(target, weights, self.level)

    def tuned(self, settings: Mapping[str, Any]) -> Loss:
        return replace(self, level=float(settings["quantile"]))

    def alpha_share(self, noise: float, steepness: float) -> float:
        return self._factor * 0.3 / math.sqrt(max(noise, 1e-12))

    def refined(self, residuals: Array, weights: Array) -> Self:
        cost = np.maximum(self.level * residuals, (self.level - 1.0) * residuals)
        return replace(self, width=min(self.width, max(_SHARP * float(np.average(cost, weights=weights)), _SHARPEST)))

    @property
    def metric_options(self) -> dict[str, float]:
        return {"alpha": self.level}

    def evaluate(self, target: Array, score: Array) -> Derivatives:
        scaled = (target - score) / self.width
        below = expit(-scaled)  # 1 for negative residuals, 0 for positive ones, smoothed
        below[below < _NEGLIGIBLE] = 0.0
        cost = self.level * (target - score) - self.width * log_expit(scaled)
        curvature = below * (1.0 - below) / self.width
        return self._factor * cost, self._factor * (below - self.level), self._factor * curvature


@dataclass(frozen=True)
class AbsoluteLoss(QuantileLoss):
    """|score - target|, twice the loss of the median: smoothed in the same way."""

    name = "absolute"
    _factor = 2.0
    metric, metric_options = Loss.metric, Loss.metric_options
    tuned = Loss.tuned


@dataclass(frozen=True)
class HuberLoss(Loss):
    """Squares of small residuals, and multiples of large ones: outliers have limited influence.

    A residual is large beyond ``epsilon`` times ``scale``, the standard deviation of those that are not outliers.
    """

    epsilon: float = 1.35
    scale: float = 1.0

    name = "huber"
    remedy = SquaredLoss.remedy
    degree = 2
    needs_values = True

    def __post_init__(self) -> None:
        if not (0.0 < self.epsilon < np.inf and 0.0 < self.scale < np.inf):
            raise ValueError(f"a Huber loss has a positive epsilon and scale, got {self!r}.")

    def start(self, target: Array, weights: Array) -> float:
        return _weighted_quantile(target, weights, 0.5)

    def tuned(self, settings: Mapping[str, Any]) -> Loss:
        return replace(self, epsilon=float(settings["epsilon"]))

    def refined(self, residuals: Array, weights: Array) -> Self:
        return replace(self, scale=max(spread(residuals, weights), _SHARPEST))

    def evaluate(self, target: Array, score: Array) -> Derivatives:
        limit, residual = self.epsilon * self.scale, score - target
        small = np.clip(residual, -limit, limit)
        cost = small * (2.0 * residual - small)
        return cost, 2.0 * small, np.where(np.abs(residual) <= limit, 2.0, 0.0)


def _weighted_quantile(values: Array, weights: Array, level: float) -> float:
    """Smallest value with at least this fraction of the weight at or below it."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    place = np.searchsorted(below, level * below[-1] * (1.0 - 1e-12))
    return float(values[order[min(place, len(order) - 1)]])


def spread(values: Array, weights: Array) -> float:
    """Standard deviation of values around 0, robust to outliers."""
    return 1.4826 * _weighted_quantile(np.abs(values), weights, 0.5)


# --- losses of the targets -1 and 1 -----------------------------------------------------------------------------------


class _LabelLoss(Loss):
    """Loss of the targets -1 and 1."""

    tasks = frozenset({"classification"})
    domain = "-1 or 1"

    def accepts(self, target: Array) -> bool:
        return bool((np.abs(target) == 1.0).all())


class LogisticLoss(_LabelLoss):
    """log(1 + exp(-target * score)) with targets -1 and 1, the loss of TTLR."""

    name = "logistic"
    link = "logit"

    def stand_ins(self, score: Array) -> list[tuple[Array, Array]]:
        ones = np.ones(len(score))
        return [(ones, expit(score)), (-ones, expit(-score))]

    def alpha_share(self, noise: float, steepness: float) -> float:
        return 0.125  # its curvature at 0 relative to that of the squared loss

    def evaluate(self, target: Array, score: Array) -> Derivatives:
        # All of it from one exponential that cannot overflow: with e = exp(-|margin|) the probability of the less
        # likely label is e / (1 + e), and the cost is max(-margin, 0) + log(1 + e).
        margin = target * score
        small = np.abs(margin)
        np.negative(small, out=small)
        np.exp(small, out=small)
        small[small < _NEGLIGIBLE] = 0.0
        cost = np.log1p(small)
        cost -= np.minimum(margin, 0.0)
        likely = 1.0 / (1.0 + small)
        small *= likely
        wrong = np.where(margin < 0.0, likely, small)  # the probability of the label that is not the target
        small *= likely
        wrong *= target
        return cost, np.negative(wrong, out=wrong), small


class SquaredHingeLoss(_LabelLoss):
    """max(0, 1 - target * score)^2 with targets -1 and 1: rows that are correct by a margin cost nothing."""

    name = "squared_hinge"

    def evaluate(self, target: Array, score: Array) -> Derivatives:
        missing = np.maximum(1.0 - target * score, 0.0)
        return np.square(missing), -2.0 * target * missing, np.where(missing > 0.0, 2.0, 0.0)


# --- losses whose scores are logarithms of the mean target ------------------------------------------------------------


class PoissonLoss(Loss):
    """Half of the deviance of counts, exp(score) - target * score plus a constant: 0 for the best score."""

    name = "poisson"
    link = "log"
    metric = "mean_poisson_deviance"
    limits = 0.0, _LARGEST_TARGET
    domain = "not negative and not all zero"
    remedy = " Counts and rates are not negative."
    exposure_power = 1

    def stand_ins(self, score: Array) -> list[tuple[Array, Array]]:
        return [(np.exp(score), np.ones(len(score)))]

    def alpha_share(self, noise: float, steepness: float) -> float:
        return float(0.5 / (max(noise, 1e-12) * steepness * steepness))

    def evaluate(self, target: Array, score: Array) -> Derivatives:
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.exp(score)
            cost = mean - target + xlogy(target, target) - target * score
            return cost, mean - target, mean


class GammaLoss(Loss):
    """Half of the deviance of positive numbers with a constant coefficient of variation."""

    name = "gamma"
    link = "log"
    metric = "mean_gamma_deviance"
    limits = 1.0 / _LARGEST_TARGET, _LARGEST_TARGET
    domain = "positive"
    remedy = " Leave out zeros, or use loss='poisson'."
    stand_ins = PoissonLoss.stand_ins

    def alpha_share(self, noise: float, steepness: float) -> float:
        return 0.5

    def evaluate(self, target: Array, score: Array) -> Derivatives:
        with np.errstate(over="ignore", invalid="ignore"):
            distance = score - np.log(target)
            ratio = np.exp(-distance)
            return ratio - 1.0 + distance, 1.0 - ratio, ratio.copy()


# --- losses by name ---------------------------------------------------------------------------------------------------

_KINDS: tuple[type[Loss], ...] = (
    *(SquaredLoss, LogisticLoss, SquaredHingeLoss, AbsoluteLoss, QuantileLoss, HuberLoss, PoissonLoss, GammaLoss),
)
_LOSSES: dict[str, Loss] = {kind.name: kind() for kind in _KINDS}
_SPEC = re.compile(r"([a-z_]+)\(((?:[0-9.e+-]+)(?:, [0-9.e+-]+)*)\)")


def loss_names(task: str) -> list[str]:
    """Names of the losses for a task, "classification" or "regression"."""
    return [name for name, loss in _LOSSES.items() if task in loss.tasks]


def get_loss(name: str | Loss) -> Loss:
    """Return the loss of that name or ``spec``; a ``Loss`` is passed through.

    >>> get_loss("quantile(0.9, 0.1)")
    QuantileLoss(level=0.9, width=0.1)
    """
    if isinstance(name, Loss):
        return name
    if name in _LOSSES:
        return _LOSSES[name]
    spec = _SPEC.fullmatch(name)
    default = None if spec is None else _LOSSES.get(spec[1])
    if spec is None or default is None or not is_dataclass(default):
        raise ValueError(f"loss must be one of {sorted(_LOSSES)}, got {name!r}.")
    settings = [float(part) for part in spec[2].split(", ")]
    if len(settings) != len(fields(default)):
        raise ValueError(f"loss={name!r} should have {len(fields(default))} settings.")
    return type(default)(*settings)
