"""All monomials of degree 2, then logistic regression."""

from __future__ import annotations

from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler


class PolynomialLogistic:
    """PolynomialFeatures(2), standardised, with multinomial logistic regression."""

    name = "PolynomialFeatures(2) + logistic"

    def __init__(self, C: float = 0.1) -> None:
        self._model = make_pipeline(
            PolynomialFeatures(2, include_bias=False), StandardScaler(), LogisticRegression(C=C, tol=1e-3, max_iter=300)
        )

    @staticmethod
    def candidates() -> list[dict]:
        return [{"C": C} for C in (0.01, 0.1)]

    def fit(self, X: NDArray, y: NDArray) -> PolynomialLogistic:
        self._model.fit(X, y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X)
