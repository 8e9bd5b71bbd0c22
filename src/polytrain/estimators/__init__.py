"""The scikit-learn face: estimators that check their input, learn trains and keep what came of it."""

from polytrain.estimators.classifier import TensorTrainClassifier
from polytrain.estimators.regressor import TensorTrainRegressor

__all__ = ["TensorTrainClassifier", "TensorTrainRegressor"]
