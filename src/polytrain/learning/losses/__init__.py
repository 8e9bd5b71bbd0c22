"""What a wrong score costs. A new loss is one class in a file beside this one, and one line in the table below.

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
from dataclasses import fields, is_dataclass

from polytrain.learning.losses.differences import AbsoluteLoss, HuberLoss, QuantileLoss, SquaredLoss, spread
from polytrain.learning.losses.labels import LogisticLoss, SquaredHingeLoss
from polytrain.learning.losses.loss import Loss
from polytrain.learning.losses.means import GammaLoss, PoissonLoss

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

_SPEC = re.compile(r"([a-z_]+)\(((?:[0-9.e+-]+)(?:, [0-9.e+-]+)*)\)")

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
