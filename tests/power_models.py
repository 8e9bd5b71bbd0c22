"""Models of the paper's kind, powers of scaled features, with all settings given: nothing is left to the choice."""

from __future__ import annotations

from typing import Any

from polytrain import TensorTrainClassifier, TensorTrainRegressor

_POWERS: dict[str, Any] = {"basis": "power", "rank": 8, "bandwidth": None, "init": "linear", "max_sweeps": 4}
CLASSIFIER_POWERS = {"loss": "logistic", "alpha": 1e-4, **_POWERS}
REGRESSOR_POWERS = {"alpha": 1e-2, "clip": False, **_POWERS}


def power_classifier(**parameters: Any) -> TensorTrainClassifier:
    """A classifier with the logistic loss, unless said otherwise."""
    return TensorTrainClassifier(**{**CLASSIFIER_POWERS, **parameters})


def power_regressor(**parameters: Any) -> TensorTrainRegressor:
    """A regressor."""
    return TensorTrainRegressor(**{**REGRESSOR_POWERS, **parameters})
