"""Support vectors with a Gaussian kernel."""

from __future__ import annotations

from numpy.typing import NDArray
from sklearn.svm import SVC


class GaussianSVC:
    """SVC(kernel="rbf"); ``gamma`` is in units of scikit-learn's "scale", 1 / (d variance)."""

    name = "SVC rbf"

    def __init__(self, C: float = 10.0, gamma: float = 1.0) -> None:
        self._C, self._gamma = C, gamma

    @staticmethod
    def candidates() -> list[dict]:
        return [{"C": 10.0, "gamma": gamma} for gamma in (0.5, 1.0, 2.0)]

    def fit(self, X: NDArray, y: NDArray) -> GaussianSVC:
        gamma = self._gamma / (X.shape[1] * X.var())
        self._model = SVC(kernel="rbf", C=self._C, gamma=gamma, cache_size=1000).fit(X, y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X)
