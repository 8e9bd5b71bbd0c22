"""The paper's formulas in plain NumPy, as the authors' release solves them.

The matrix C of a core is formed (row-wise Kronecker products), C'C and C'DC are plain products, linear systems are
solved by a pseudo-inverse, and TTLR takes one Newton step per core with backtracking. There is no stopping rule. Two
things of the release are left out, which makes this transcription faster than it: the matrix D_k is the identity in the
orthogonal gauge and is not assembled, and loss and error are not evaluated after every update. Its shifted margin is
left out too: it would be another objective.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from polytrain.learning.start import random_start
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks

# Condition of sufficient decrease of the release's line search; the number of halvings guards against rounding.
_ARMIJO, _MAX_HALVINGS = 0.2, 30


def row_kronecker(*factors: NDArray) -> NDArray:
    """Kronecker product of corresponding rows. Shapes: (N, a), (N, b), ... -> (N, a b ...)."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, None] * factor[:, None, :]).reshape(len(product), -1)
    return product


def vandermonde(column: NDArray, n: int) -> NDArray:
    """1, x, ..., x^(n-1) of every row. Shapes: (N,) -> (N, n)."""
    return column[:, None] ** np.arange(n)


def mean_loss(loss: str, y: NDArray, scores: NDArray) -> float:
    if loss == "squared":
        return float(np.mean((scores - y) ** 2))
    return float(np.mean(np.logaddexp(0.0, -y * scores)))


def solve_ttls(C: NDArray, y: NDArray, alpha: float) -> NDArray:
    """(C'C + N/2 gamma I) g = C'y."""
    matrix = C.T @ C + 0.5 * len(y) * alpha * np.eye(C.shape[1])
    return np.linalg.pinv(matrix) @ (C.T @ y)


def step_ttlr(C: NDArray, y: NDArray, alpha: float, core: NDArray) -> NDArray:
    """One Newton step from the present core, shortened until it decreases the objective."""
    scores = C @ core
    h = expit(scores)
    gradient = C.T @ (h - (1 + y) / 2) / len(y) + alpha * core
    hessian = C.T @ ((h * (1 - h))[:, None] * C) / len(y) + alpha * np.eye(C.shape[1])
    step = -np.linalg.pinv(hessian) @ gradient
    before = mean_loss("logistic", y, scores) + 0.5 * alpha * core @ core
    slope, length = gradient @ step, 1.0
    for _ in range(_MAX_HALVINGS):
        trial = core + length * step
        if mean_loss("logistic", y, C @ trial) + 0.5 * alpha * trial @ trial <= before + _ARMIJO * length * slope:
            return trial
        length *= 0.5
    return core


def learn(X: NDArray, y: NDArray, start: Sequence[NDArray], loss: str, alpha: float, max_sweeps: int) -> list[NDArray]:
    """Learn one train by ``max_sweeps`` one-way sweeps of d - 1 core updates, from right-orthogonal cores."""
    cores = [core.copy() for core in start]
    d = len(cores)
    left, right = [np.ones((len(X), 1))] * d, [np.ones((len(X), 1))] * d
    for k in range(d - 1, 0, -1):
        right[k - 1] = _absorb_right(X[:, k], cores[k], right[k])
    for sweep in range(max_sweeps):
        to_right = sweep % 2 == 0
        for k in range(d - 1) if to_right else range(d - 1, 0, -1):
            a, n, b = cores[k].shape
            C = row_kronecker(left[k], vandermonde(X[:, k], n), right[k])
            flat = solve_ttls(C, y, alpha) if loss == "squared" else step_ttlr(C, y, alpha, cores[k].ravel())
            if to_right:
                Q, R = np.linalg.qr(flat.reshape(a * n, b))
                cores[k] = Q.reshape(a, n, -1)
                cores[k + 1] = np.tensordot(R, cores[k + 1], axes=1)
                left[k + 1] = row_kronecker(left[k], vandermonde(X[:, k], n)) @ Q
            else:
                Q, R = np.linalg.qr(flat.reshape(a, n * b).T)
                cores[k] = Q.T.reshape(-1, n, b)
                cores[k - 1] = np.tensordot(cores[k - 1], R.T, axes=1)
                right[k - 1] = _absorb_right(X[:, k], cores[k], right[k])
    return cores


def _absorb_right(column: NDArray, core: NDArray, right: NDArray) -> NDArray:
    a, n, b = core.shape
    return row_kronecker(vandermonde(column, n), right) @ core.reshape(a, n * b).T


def evaluate(cores: Sequence[NDArray], X: NDArray) -> NDArray:
    """Scores of all rows. Shapes: X (N, d) -> (N,)."""
    state = np.ones((len(X), 1))
    for column, core in zip(X.T, cores, strict=True):
        a, n, b = core.shape
        state = row_kronecker(state, vandermonde(column, n)) @ core.reshape(a * n, b)
    return state[:, 0]


def objective(cores: Sequence[NDArray], X: NDArray, y: NDArray, loss: str, alpha: float) -> float:
    """Mean loss plus gamma / 2 <A, A>, whatever the gauge of the cores."""
    norm = np.ones((1, 1))
    for core in cores:
        norm = np.einsum("ac,aib,cid->bd", norm, core, core, optimize=True)
    return mean_loss(loss, y, evaluate(cores, X)) + 0.5 * alpha * float(norm[0, 0])


class PaperClassifier:
    """TTLS or TTLR, one train per class against the rest, from random cores."""

    def __init__(
        self, loss: str = "squared", degree: int = 1, rank: int = 8, alpha: float = 1e-3, max_sweeps: int = 4
    ) -> None:
        self.name = f"paper {'TTLS' if loss == 'squared' else 'TTLR'}, rank {rank}"
        self.loss, self.degree, self.rank, self.alpha, self.max_sweeps = loss, degree, rank, alpha, max_sweeps

    @staticmethod
    def candidates() -> list[dict]:
        return [{"alpha": alpha} for alpha in (1e-4, 1e-3, 1e-2)]

    def fit(self, X: NDArray, y: NDArray) -> PaperClassifier:
        ranges = zip(X.min(axis=0), X.max(axis=0), strict=True)
        self._maps = MapList(PolynomialMap("power", self.degree + 1, *ends) for ends in ranges)
        self._classes = np.unique(y)
        rows, dims = self._maps.place(X).T, self._maps.dims
        self._trains = []
        for index, label in enumerate(self._classes):
            start = random_start(dims, clip_ranks(dims, self.rank), np.random.default_rng(index))
            target = np.where(y == label, 1.0, -1.0)
            self._trains.append(learn(rows, target, start, self.loss, self.alpha, self.max_sweeps))
        return self

    def predict(self, X: NDArray) -> NDArray:
        rows = self._maps.place(X).T
        return self._classes[np.argmax([evaluate(cores, rows) for cores in self._trains], axis=0)]
