"""polytrain's own classifier, with the face of a rival."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import POWERS
from polytrain import TensorTrainClassifier


class Train:
    """Squared loss, degree 2, linear start, float32 rows."""

    def __init__(self, rank: int = 16, alpha: float = 1e-4, max_sweeps: int = 4, n_jobs: int | None = None) -> None:
        self.name = f"polytrain, rank {rank}"
        self._model = TensorTrainClassifier(
            loss="squared",
            rank=rank,
            alpha=alpha,
            max_sweeps=max_sweeps,
            tol=0.0,
            random_state=0,
            n_jobs=n_jobs,
            **POWERS,
        )

    @staticmethod
    def candidates() -> list[dict]:
        return [{"alpha": alpha} for alpha in (3e-5, 1e-4, 3e-4, 1e-3)]

    def fit(self, X: NDArray, y: NDArray) -> Train:
        self._model.fit(X.astype(np.float32), y)
        return self

    def predict(self, X: NDArray) -> NDArray:
        return self._model.predict(X.astype(np.float32))
