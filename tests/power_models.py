"""Models whose settings are all given: powers up to two at rank 8, four sweeps from the linear model."""

from polytrain import TensorTrainClassifier, TensorTrainRegressor

POWERS = {
    "degree": 2,
    "rank": 8,
    "basis": "power",
    "scale": "minmax",
    "bandwidth": None,
    "init": "linear",
    "max_sweeps": 4,
}
CLASSIFIER_POWERS = {"loss": "logistic", "alpha": 1e-4, **POWERS}
REGRESSOR_POWERS = {"loss": "squared", "alpha": 1e-2, **POWERS}


def power_classifier(**parameters):
    """A classifier with these settings, but for what is given."""
    return TensorTrainClassifier(**{**CLASSIFIER_POWERS, **parameters})


def power_regressor(**parameters):
    """A regressor with these settings, but for what is given."""
    return TensorTrainRegressor(**{**REGRESSOR_POWERS, **parameters})
