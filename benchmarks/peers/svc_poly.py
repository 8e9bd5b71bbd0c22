"""Support vectors with a polynomial kernel, (1 + x . z)^4."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC


class PolynomialSVC:
    """SVC(kernel="poly", degree=4, coef0=1, gamma=1) on rows divided by one number.

    With gamma fixed at 1 the size of the rows is a setting: ``quantile`` is the part of the training rows that get a
    norm of at most 1.
    """

    name = "SVC poly, degree 4"

    def __init__(self, C: float = 10.0, quantile: float = 1.0) -> None:
        self._quantile = quantile
        self._model = SVC(kernel="poly", degree=4, coef0=1, gamma=1, C=C, cache_size=1000)

    @staticmethod
    def candidates() -> list[dict]:
        return [{"C": C, "quantile": quantile} for quantile in (1.0, 0.5) for C in (1.0, 10.0)]

    def fit(self, X: NDArray, y: NDArray) -> PolynomialSVC:
        self._factor = 1 / np.quantile(np.linalg.norm(X, axis=1), self._quantile)
        self._model.fit(X * self._factor, y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X * self._factor)
