"""Polynomial classifiers and regressors whose coefficients are kept as a tensor train.

The pipeline of the paper, features -> tensor-train classifier -> decision, is the layout of the package. Start with
`TensorTrainClassifier` or `TensorTrainRegressor`; `TensorTrain` and `Polynomial` are the objects behind them.
"""

from polytrain.estimators import TensorTrainClassifier, TensorTrainClassifierCV, TensorTrainRegressor
from polytrain.tensor import Polynomial, TensorTrain

__version__ = "0.1.0"

__all__ = [
    "Polynomial",
    "TensorTrain",
    "TensorTrainClassifier",
    "TensorTrainClassifierCV",
    "TensorTrainRegressor",
    "__version__",
]
