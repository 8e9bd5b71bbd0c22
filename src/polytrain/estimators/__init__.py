"""The scikit-learn face: estimators that check their input, learn trains and keep what came of it."""

from polytrain.estimators.classifier import TensorTrainClassifier
from polytrain.estimators.cross_validation import TensorTrainClassifierCV, TensorTrainRegressorCV
from polytrain.estimators.regressor import TensorTrainRegressor

__all__ = ["TensorTrainClassifier", "TensorTrainClassifierCV", "TensorTrainRegressor", "TensorTrainRegressorCV"]
