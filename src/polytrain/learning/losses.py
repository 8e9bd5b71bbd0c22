"""What a wrong score costs. A new loss is one class here and one line in the table at the end.

A loss says what it is for (``tasks``), what a score means (``link``), which targets it takes (``domain``) and where a
constant model begins (``start``); estimators ask it and know no loss by name.

Conventions
-----------
``target`` and ``score`` have shape (N,). ``evaluate`` gives the cost of each row and its first and second derivative
with respect to the score. The curvature must never be negative: that makes every core problem convex, which the
solvers rely on. Nothing here knows about weights, regularisation or trains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

__all__ = ["LogisticLoss", "Loss", "SquaredLoss", "get_loss", "loss_names"]

# Chances below this are nothing beside 1, in float64 too. Kept, they would make numbers so small that float32 hardly
# holds them, and processors take twenty times as long for those.
_NOTHING = 1e-20
# Squares of targets, and sums of these over any number of rows, are finite up to this.
_LARGEST_TARGET = 1e140


class Loss(ABC):
    """Cost of a score, and what it is for. Subclasses give ``evaluate`` and all that is declared here."""

    name: str
    #: What it can be used for: "classification" (targets -1 and 1), "regression", or both.
    tasks: frozenset[str]
    #: What a score is: "identity" for a number like the target, "logit" for log-odds of the target 1.
    link: str
    #: Which targets it is defined for, in words.
    domain: str
    #: What to do about other targets, a sentence that follows the error; it may be empty.
    remedy: str = ""
    #: A quadratic loss has constant curvature, so one Newton step of length 1 solves a core problem.
    quadratic: bool = False
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
    def start(self, mean: float) -> float:
        """Return the constant score that costs least, for targets with this weighted mean."""

    def check_target(self, target: NDArray) -> None:
        """Refuse targets outside of the domain."""
        if not self.accepts(target):
            outside = next(value for value in np.ravel(target).tolist() if not self.accepts(np.array([value])))
            raise ValueError(
                f"loss={self.name!r} is defined for targets that are {self.domain}, got {outside!r}.{self.remedy}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class SquaredLoss(Loss):
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
    link = "identity"
    domain = f"between {-_LARGEST_TARGET:g} and {_LARGEST_TARGET:g}"
    remedy = " Sums of their squares must be finite: divide the target first."
    quadratic = True
    has_noise = True

    def accepts(self, target: NDArray) -> bool:
        """Numbers that can be squared."""
        return bool((np.abs(target) <= _LARGEST_TARGET).all())

    def start(self, mean: float) -> float:
        """The mean itself."""
        return mean

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

    def start(self, mean: float) -> float:
        """Log-odds of the target 1."""
        with np.errstate(divide="ignore"):
            return float(np.log1p(mean) - np.log1p(-mean))

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


_LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredLoss(), LogisticLoss())}


def loss_names(task: str) -> list[str]:
    """Names of the losses for a task, "classification" or "regression".

    Examples
    --------
    >>> loss_names("classification")
    ['squared', 'logistic']
    """
    return [name for name, loss in _LOSSES.items() if task in loss.tasks]


def get_loss(name: str | Loss) -> Loss:
    """Return the loss of that name; a ``Loss`` is passed through.

    Examples
    --------
    >>> get_loss("logistic")
    LogisticLoss()
    """
    if isinstance(name, Loss):
        return name
    if name not in _LOSSES:
        raise ValueError(f"loss must be one of {sorted(_LOSSES)}, got {name!r}.")
    return _LOSSES[name]
