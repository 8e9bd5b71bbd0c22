"""All monomials of degree 2, then ridge regression on the classes' indicators."""

from __future__ import annotations

from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler


class PolynomialRidge:
    """PolynomialFeatures(2), standardised, with RidgeClassifier."""

    name = "PolynomialFeatures(2) + ridge"

    def __init__(self, alpha: float = 1.0) -> None:
        self._model = make_pipeline(
            PolynomialFeatures(2, include_bias=False), StandardScaler(), RidgeClassifier(alpha, solver="cholesky")
        )

    @staticmethod
    def candidates() -> list[dict]:
        return [{"alpha": alpha} for alpha in (1.0, 10.0, 100.0)]

    def fit(self, X: NDArray, y: NDArray) -> PolynomialRidge:
        self._model.fit(X, y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X)
