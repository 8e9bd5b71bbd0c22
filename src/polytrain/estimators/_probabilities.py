"""Weights of classes, and probabilities: where there are any, and how scores become them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.checks import check_weight_range
from polytrain.choice import fit_log_odds, fit_softmax
from polytrain.decisions import Softmax
from polytrain.estimators._parameters import check_between
from polytrain.learning.losses import get_loss, loss_names
from polytrain.rows.targets import Target
from polytrain.texts import short_list

__all__ = ["NeedsLogOdds", "class_weights", "fit_probabilities"]


class NeedsLogOdds:
    """A method that is there only where scores are log-odds; elsewhere the AttributeError says what to do.

    scikit-learn's ``available_if`` would keep the reason in the error's cause, where few look.
    """

    def __init__(self, function: Callable) -> None:
        self._function = function
        update_wrapper(self, function)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self._function
        if not _has_log_odds(model):
            raise AttributeError(
                f"{type(model).__name__} has no {self._function.__name__} with loss={model.loss!r}: its scores are not "
                "log-odds. Use loss='auto', 'logistic' or 'multinomial', or wrap the model in "
                "sklearn.calibration.CalibratedClassifierCV."
            )
        return MethodType(self._function, model)


def _has_log_odds(model: Any) -> bool:
    if hasattr(model, "model_"):
        return model.model_.has_probabilities
    return (
        not isinstance(model.loss, str)
        or model.loss not in loss_names("classification")
        or get_loss(model.loss).link == "logit"
    )


def fit_probabilities(
    scores: NDArray, labels: NDArray, n_rows: int, targets: Sequence[Target], decision: Any
) -> dict[str, Any]:
    """What becomes of the scores (N, n_trains) of rows with these weights at their labels (N, m)."""
    codes, factors = zip(*(target.wanted(np.arange(labels.shape[1])) for target in targets), strict=True)
    weights = labels * np.max(factors, axis=0)  # those of the fit: a class may lack rows that were held out
    weights *= n_rows / weights.sum()
    if isinstance(decision, Softmax):
        size, shift = fit_softmax(scores, weights)
        return {"size": size, "shift": shift, "calibrated": True}
    found = []
    for code, column in zip(codes, scores.T, strict=True):
        sides = [weights[:, code == sign].sum(axis=1) for sign in (1.0, -1.0)]
        used = sides[0] + sides[1] > 0
        found.append(fit_log_odds(column[used], sides[0][used], sides[1][used]))
    size, shift = np.array(found).T
    return {"size": size, "shift": shift, "calibrated": True}


def class_weights(given: Any, classes: NDArray, totals: NDArray) -> NDArray:
    """Weight of every class, shape (m,), given the total weight of its rows."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return totals.sum() / (len(classes) * totals)
    if not isinstance(given, Mapping):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {given!r:.60}.")
    known = dict.fromkeys(classes.tolist())
    missing = [label for label in given if label not in known]
    if missing:
        raise ValueError(
            f"class_weight names classes that y does not have: {short_list(missing)}; y has {short_list(known)}."
        )
    for label, weight in given.items():
        check_between(f"class_weight[{label!r}]", weight, 0.0, np.inf)
    weights = np.array([float(given.get(label, 1.0)) for label in known])
    check_weight_range("class_weight", weights.min(), weights.max())
    return weights / weights.max()  # only ratios matter, and sums of huge weights must not overflow
