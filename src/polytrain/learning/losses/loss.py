"""What a loss is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import astuple, is_dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_TARGET", "NOTHING", "Loss"]

#: Chances below this are nothing beside 1, in float64 too. Kept, they would make numbers so small that float32 hardly
#: holds them, and processors take twenty times as long for those.
NOTHING = 1e-20
#: Squares of targets, and sums of these over any number of rows, are finite up to this.
LARGEST_TARGET = 1e140


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
