"""Estimators with scikit-learn's interface: they check their input, train, and store the fitted model."""

from polytrain.estimators.classifier import TensorTrainClassifier
from polytrain.estimators.regressor import TensorTrainRegressor

__all__ = ["TensorTrainClassifier", "TensorTrainRegressor"]
