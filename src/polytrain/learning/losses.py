"""What a wrong score costs. A new loss is one class here and one line in the table at the end.

Conventions
-----------
``target`` and ``score`` have shape (N,). ``value`` is the cost of each row; ``derivatives`` are the first and second
derivative of the cost with respect to the score. The curvature must never be negative: that makes every core problem
convex, which the solvers rely on. Nothing here knows about weights, regularisation or trains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["LogisticLoss", "Loss", "SquaredLoss", "get_loss"]


class Loss:
    """Cost of a score. Subclasses give ``name``, ``value`` and ``derivatives``."""

    name: str
    #: A quadratic loss has constant curvature, so one Newton step of length 1 solves a core problem.
    quadratic: bool = False

    def value(self, target: NDArray, score: NDArray) -> NDArray:
        """Cost of each row."""
        raise NotImplementedError

    def derivatives(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray]:
        """Slope and curvature of each row's cost with respect to its score."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class SquaredLoss(Loss):
    """(score - target)^2, the loss of TTLS.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredLoss().value(np.array([1.0, -1.0]), np.array([0.5, 1.0]))
    array([0.25, 4.  ])
    """

    name = "squared"
    quadratic = True

    def value(self, target: NDArray, score: NDArray) -> NDArray:
        """Square of the difference."""
        return np.square(score - target)

    def derivatives(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray]:
        """Twice the difference, and 2."""
        return 2.0 * (score - target), np.full_like(score, 2.0)


class LogisticLoss(Loss):
    """log(1 + exp(-target * score)) with targets -1 and 1, the loss of TTLR.

    Examples
    --------
    >>> import numpy as np
    >>> LogisticLoss().value(np.array([1.0, -1.0]), np.array([0.0, 1000.0])).round(4)
    array([6.931e-01, 1.000e+03])
    """

    name = "logistic"

    def value(self, target: NDArray, score: NDArray) -> NDArray:
        """Negative log-likelihood, safe for scores of any size."""
        # max(-m, 0) + log1p(exp(-|m|)) is np.logaddexp(0, -m) at a third of its time.
        margin = target * score
        small = np.abs(margin)
        np.negative(small, out=small)
        np.exp(small, out=small)
        np.log1p(small, out=small)
        return np.subtract(small, np.minimum(margin, 0.0, out=margin), out=small)

    def derivatives(self, target: NDArray, score: NDArray) -> tuple[NDArray, NDArray]:
        """With h = sigmoid(score): h - (target + 1) / 2, and h (1 - h)."""
        wrong = expit(-target * score)
        return -target * wrong, wrong * (1.0 - wrong)


_LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredLoss(), LogisticLoss())}


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
