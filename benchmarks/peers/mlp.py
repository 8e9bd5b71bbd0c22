"""A neural network with one hidden layer."""

from __future__ import annotations

from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


class NeuralNetwork:
    """MLPClassifier on standardised rows, stopped early on a tenth of them."""

    name = "MLP"

    def __init__(self, width: int = 256, alpha: float = 1e-3) -> None:
        network = MLPClassifier((width,), alpha=alpha, early_stopping=True, max_iter=100, random_state=0)
        self._model = make_pipeline(StandardScaler(), network)

    @staticmethod
    def candidates() -> list[dict]:
        return [{"alpha": alpha} for alpha in (1e-3, 1e-1)]

    def fit(self, X: NDArray, y: NDArray) -> NeuralNetwork:
        self._model.fit(X, y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X)
