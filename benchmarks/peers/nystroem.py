"""A Gaussian kernel approximated from a sample of the rows, then a linear model."""

from __future__ import annotations

from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline


class NystroemRidge:
    """Nystroem features with RidgeClassifier; ``gamma`` is in units of 1 / (d variance)."""

    name = "Nystroem + ridge"

    def __init__(self, gamma: float = 1.0, n_components: int = 1000, alpha: float = 1e-3) -> None:
        self._gamma, self._n_components, self._alpha = gamma, n_components, alpha

    @staticmethod
    def candidates() -> list[dict]:
        return [{"gamma": gamma} for gamma in (0.25, 0.5, 1.0)]

    def fit(self, X: NDArray, y: NDArray) -> NystroemRidge:
        features = Nystroem(gamma=self._gamma / (X.shape[1] * X.var()), n_components=self._n_components, random_state=0)
        self._model = make_pipeline(features, RidgeClassifier(self._alpha, solver="cholesky")).fit(X, y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X)
