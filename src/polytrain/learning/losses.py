"""What a wrong score costs. A new loss is one class here and one line in the table at the end.

A loss says what it is for (``tasks``), what a score means (``link``), which targets it takes (``domain``) and where a
constant model begins (``start``); estimators ask it and know no loss by name.

Conventions
-----------
``target`` and ``score`` have shape (N,). ``evaluate`` gives the cost of each row and its first and second derivative
with respect to the score. The curvature must never be negative: that makes every core problem convex, which the
solvers rely on. Nothing here knows about weights, regularisation or trains.

A loss with settings of its own is a frozen dataclass. Its ``spec`` is text that `get_loss` turns back into it, such as
"quantile(0.9, 0.1)": plans, model files and other processes know losses by that.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, is_dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, xlogy

__all__ = [
    "AbsoluteLoss",
    "GammaLoss",
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "PoissonLoss",
    "QuantileLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
    "get_loss",
    "loss_names",
    "spread",
]

# Chances below this are nothing beside 1, in float64 too. Kept, they would make numbers so small that float32 hardly
# holds them, and processors take twenty times as long for those.
_NOTHING = 1e-20
# Squares of targets, and sums of these over any number of rows, are finite up to this.
_LARGEST_TARGET = 1e140
# Corners are smoothed over this part of the mean cost of a residual, and neither they nor the residuals that Huber's
# loss knows as small ones become smaller than this, for targets that are divided by their size.
_SHARP, _SHARPEST = 0.2, 1e-4
_SPEC = re.compile(r"([a-z_]+)\(((?:[0-9.e+-]+)(?:, [0-9.e+-]+)*)\)")


class Loss(ABC):
    """Cost of a score, and what it is for. Subclasses give ``evaluate`` and all that is declared here."""

    name: str
    #: What it can be used for: "classification" (targets -1 and 1), "regression", or both.
    tasks: frozenset[str]
    #: What a score is: "identity" for a number like the target, "log" for the logarithm of its mean, "logit" for
    #: log-odds of the target 1.
    link: str
    #: Which targets it is defined for, in words.
    domain: str
    #: What to do about other targets, a sentence that follows the error; it may be empty.
    remedy: str = ""
    #: A quadratic loss has constant curvature, so one Newton step of length 1 solves a core problem.
    quadratic: bool = False
    #: What a loss is multiplied by when targets and scores grow by a factor: this power of it. 0 for losses of which
    #: that is not true; targets are shifted and divided only for the others.
    degree: int = 0
    #: Whether a constant model, and the loss itself, depend on more than the mean of the targets.
    needs_values: bool = False
    #: With an exposure, a count of y in time t costs as much as a rate of y / t with this power of t as its weight.
    exposure_power: int = 0
    #: Whether what is left of a target is noise of the same kind everywhere, so that predictions have a standard
    #: deviation and an interval: asked of losses whose scores are numbers like the target.
    has_noise: bool = False

    @abstractmethod
    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Cost of each row, and its slope and curvature with respect to the score, in fresh arrays."""

    @abstractmethod
    def accepts(self, target: NDArray) -> bool:
        """Whether all targets are in the domain."""

    @abstractmethod
    def start(self, target: NDArray, weights: NDArray) -> float:
        """Return the constant score that costs least, or nearly; unless ``needs_values``, the mean says it all."""

    def tuned(self, settings: Mapping[str, Any]) -> Loss:
        """Return the same loss with what an estimator's parameters say about it."""
        return self

    def alpha_share(self, noise: float, steepness: float) -> float:
        """Return about how much alpha this loss takes where the squared loss takes 1.

        Parameters
        ----------
        noise : float
            Mean squared error of left-out rows, for targets that are divided by their size.
        steepness : float
            That size in units of the mean target.
        """
        return 1.0

    def refined(self, residuals: NDArray, weights: NDArray) -> Self:
        """Return the loss that suits targets minus scores of these sizes: itself, unless it depends on them."""
        return self

    def stand_ins(self, score: NDArray) -> list[tuple[NDArray, NDArray]] | None:
        """Return targets, each with its share of a row's weight, for which these scores cost least.

        Together they have the curvature that the loss is expected to have there. None if there are none.
        """
        return None

    @property
    def spec(self) -> str:
        """Text that `get_loss` turns back into this loss."""
        if not is_dataclass(self):
            return self.name
        return f"{self.name}({', '.join(map(repr, astuple(self)))})"

    def mean(self, score: NDArray) -> NDArray:
        """Return what a score predicts: the inverse of the link."""
        return np.exp(score) if self.link == "log" else score

    def check_target(self, target: NDArray) -> None:
        """Refuse targets outside of the domain."""
        if not self.accepts(target):
            outside = next(value for value in np.ravel(target).tolist() if not self.accepts(np.array([value])))
            raise ValueError(
                f"loss={self.name!r} is defined for targets that are {self.domain}, got {outside!r}.{self.remedy}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _OfDifferences(Loss):
    """A loss of the difference between score and target."""

    tasks = frozenset({"regression"})
    link = "identity"
    domain = f"between {-_LARGEST_TARGET:g} and {_LARGEST_TARGET:g}"
    remedy = " Sums of their squares must be finite: divide the target first."

    def accepts(self, target: NDArray) -> bool:
        """Numbers that can be squared."""
        return bool((np.abs(target) <= _LARGEST_TARGET).all())

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
        small[small < _NOTHING] = 0.0
        cost = np.log1p(small)
        cost -= np.minimum(margin, 0.0)
        likely = 1.0 / (1.0 + small)
        small *= likely
        wrong = np.where(margin < 0.0, likely, small)  # the chance of the label that is not the target
        small *= likely
        wrong *= target
        return cost, np.negative(wrong, out=wrong), small


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
        if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
            raise ValueError(f"quantile must be a number between 0 and 1, without these, got {level!r}.")
        return replace(self, level=float(level))

    def alpha_share(self, noise: float, steepness: float) -> float:
        """Rows tell the less about a quantile, the wider the residuals."""
        return self._twice * 0.3 / np.sqrt(max(noise, 1e-12))

    def refined(self, residuals: NDArray, weights: NDArray) -> Self:
        """Smooth over a small part of what the residuals cost, and never over more than before."""
        cost = np.maximum(self.level * residuals, (self.level - 1.0) * residuals)
        return replace(self, width=min(self.width, max(_SHARP * float(np.average(cost, weights=weights)), _SHARPEST)))

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Smoothed pinball loss; its slope is a logistic function of the residual."""
        scaled = (target - score) / self.width
        chance = expit(-scaled)  # how far the residual is on the negative side
        chance[chance < _NOTHING] = 0.0
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
        if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not 0.0 < float(epsilon) < np.inf:
            raise ValueError(f"epsilon must be a positive number, got {epsilon!r}.")
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
        return bool(((target >= 0.0) & (target <= _LARGEST_TARGET)).all())

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
        return bool(((target >= 1.0 / _LARGEST_TARGET) & (target <= _LARGEST_TARGET)).all())

    def alpha_share(self, noise: float, steepness: float) -> float:
        """Noise is a part of the mean."""
        return 0.5

    def evaluate(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Half of the deviance; its curvature is target / mean."""
        with np.errstate(over="ignore", invalid="ignore"):
            distance = score - np.log(target)
            ratio = np.exp(-distance)
            return ratio - 1.0 + distance, 1.0 - ratio, ratio.copy()


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


_LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        SquaredLoss(),
        LogisticLoss(),
        SquaredHingeLoss(),
        AbsoluteLoss(),
        QuantileLoss(),
        HuberLoss(),
        PoissonLoss(),
        GammaLoss(),
    )
}


def loss_names(task: str) -> list[str]:
    """Names of the losses for a task, "classification" or "regression".

    Examples
    --------
    >>> loss_names("classification")
    ['squared', 'logistic', 'squared_hinge']
    """
    return [name for name, loss in _LOSSES.items() if task in loss.tasks]


def get_loss(name: str | Loss) -> Loss:
    """Return the loss of that name or ``spec``; a ``Loss`` is passed through.

    Examples
    --------
    >>> get_loss("logistic")
    LogisticLoss()
    >>> get_loss("quantile(0.9, 0.1)")
    QuantileLoss(level=0.9, width=0.1)
    """
    if isinstance(name, Loss):
        return name
    if name in _LOSSES:
        return _LOSSES[name]
    found = _SPEC.fullmatch(name)
    known = None if found is None else _LOSSES.get(found[1])
    if found is None or known is None or not is_dataclass(known):
        raise ValueError(f"loss must be one of {sorted(_LOSSES)}, got {name!r}.")
    settings = [float(part) for part in found[2].split(", ")]
    if len(settings) != len(fields(known)):
        raise ValueError(f"loss={name!r} should have {len(fields(known))} settings.")
    return type(known)(*settings)
