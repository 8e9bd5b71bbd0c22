"""Gradient boosted trees on histograms."""

from __future__ import annotations

from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier


class Boosting:
    """HistGradientBoostingClassifier."""

    name = "HistGradientBoosting"

    def __init__(self, learning_rate: float = 0.1, max_iter: int = 200) -> None:
        self._model = HistGradientBoostingClassifier(learning_rate=learning_rate, max_iter=max_iter, random_state=0)

    @staticmethod
    def candidates() -> list[dict]:
        return [{"learning_rate": rate} for rate in (0.1, 0.2)]

    def fit(self, X: NDArray, y: NDArray) -> Boosting:
        self._model.fit(X, y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X)
