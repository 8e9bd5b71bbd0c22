"""The slow, obvious way to compute what the learning code computes without forming it.

Conventions
-----------
Everything follows the paper's definitions with loops and Kronecker products. ``columns`` is (d, N), ``weights`` sum to
1. vec(core) is C order over (a, i, b), so a row of C_k is kron(left, kron(values, right)); the paper writes vec in
Fortran order with the three factors the other way round.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev, legendre

from polytrain.learning.engines import LocalEngine, open_engine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks


@cache
def basis_vector(basis, x, n):
    """Values of the first n functions at one number. Remembered, because the same rows come again and again."""
    if basis == "power":
        return np.array([x**i for i in range(n)])
    family = {"chebyshev": chebyshev.chebval, "legendre": legendre.legval}[basis]
    return np.array([family(x, unit) for unit in np.eye(n)])


def feature_matrix(core, values):
    """The matrix that one feature contributes to the chain: sum over i of values[i] G(i)."""
    return sum(value * core[:, i, :] for i, value in enumerate(values))


def left_vector(cores, k, row, basis):
    """p_k: the chain of everything left of core k, for one row."""
    vector = np.ones(1)
    for core, x in zip(cores[:k], row[:k], strict=True):
        vector = vector @ feature_matrix(core, basis_vector(basis, x, core.shape[1]))
    return vector


def right_vector(cores, k, row, basis):
    """q_k: the chain of everything right of core k, for one row."""
    vector = np.ones(1)
    for core, x in zip(reversed(cores[k + 1 :]), reversed(row[k + 1 :]), strict=True):
        vector = feature_matrix(core, basis_vector(basis, x, core.shape[1])) @ vector
    return vector


def c_matrix(cores, k, columns, basis):
    """C_k of Lemma 1, shape (N, a n b)."""
    columns = columns.astype(np.float64)
    return np.array(
        [
            np.kron(
                left_vector(cores, k, row, basis),
                np.kron(basis_vector(basis, row[k], cores[k].shape[1]), right_vector(cores, k, row, basis)),
            )
            for row in columns.T
        ]
    )


def dense_tensor(cores):
    """All coefficients, entry by entry."""
    tensor = np.empty([core.shape[1] for core in cores])
    for index in product(*(range(n) for n in tensor.shape)):
        chain = np.eye(1)
        for core, i in zip(cores, index, strict=True):
            chain = chain @ core[:, i, :]
        tensor[index] = chain[0, 0]
    return tensor


def dense_scores(cores, columns, basis):
    """<T(x), A> of every row, from the dense tensor."""
    tensor = dense_tensor(cores)
    columns = columns.astype(np.float64)
    scores = []
    for row in columns.T:
        rest = tensor
        for x in row:
            rest = np.tensordot(basis_vector(basis, x, rest.shape[0]), rest, axes=1)
        scores.append(float(rest))
    return np.array(scores)


def loss_values(loss, target, scores):
    return (scores - target) ** 2 if loss == "squared" else np.logaddexp(0.0, -target * scores)


def loss_slopes(loss, target, scores):
    if loss == "squared":
        return 2.0 * (scores - target)
    return 1.0 / (1.0 + np.exp(-scores)) - (target + 1.0) / 2.0


def loss_curvatures(loss, target, scores):
    if loss == "squared":
        return np.full(len(scores), 2.0)
    probability = 1.0 / (1.0 + np.exp(-scores))
    return probability * (1.0 - probability)


def objective(cores, problem, alpha):
    """Weighted mean loss + alpha / 2 <A, A>, by the dense tensor."""
    scores = dense_scores(cores, problem.columns, problem.basis) + (0.0 if problem.offset is None else problem.offset)
    tensor = dense_tensor(cores)
    return problem.weights @ loss_values(problem.loss, problem.target, scores) + 0.5 * alpha * np.sum(tensor**2)


def general_d(cores, k):
    """D_k of the paper's appendix, literally, then reordered from the paper's Fortran-order vec to C order."""
    a, n, b = cores[k].shape

    def squared(core):
        return sum(np.kron(core[:, i, :], core[:, i, :]) for i in range(core.shape[1]))

    left, right = np.eye(1), np.eye(1)
    for core in cores[:k]:
        left = left @ squared(core)
    for core in reversed(cores[k + 1 :]):
        right = squared(core) @ right
    left_parts, right_parts = left.reshape(a, a), right.reshape(b, b)
    rows = [
        np.kron(right_parts[beta], np.kron(np.eye(n)[i], left_parts[alpha]))
        for beta in range(b)
        for i in range(n)
        for alpha in range(a)
    ]
    matrix = np.array(rows)
    order = np.arange(a * n * b).reshape((a, n, b), order="F").ravel()
    return matrix[np.ix_(order, order)]


def is_left_orthogonal(core, tol=1e-12):
    matrix = core.reshape(-1, core.shape[2])
    return np.allclose(matrix.T @ matrix, np.eye(core.shape[2]), rtol=0, atol=tol)


def is_right_orthogonal(core, tol=1e-12):
    matrix = core.reshape(core.shape[0], -1)
    return np.allclose(matrix @ matrix.T, np.eye(core.shape[0]), rtol=0, atol=tol)


@dataclass(frozen=True)
class Problem:
    """Random rows with a train of the right shape."""

    columns: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    loss: str
    basis: str
    dims: tuple
    cores: list
    offset: np.ndarray | None = None

    @property
    def maps(self):
        """The columns as they are."""
        return MapList([PolynomialMap(self.basis, n) for n in self.dims])

    @property
    def rows(self):
        return ProblemRows.make(self.columns, self.target, self.weights, self.offset)

    def engine(self, n_processes=1):
        arguments = self.rows, get_loss(self.loss), self.maps
        return LocalEngine(*arguments) if n_processes == 1 else open_engine(*arguments, n_processes)

    def with_dtype(self, dtype):
        return replace(self, columns=self.columns.astype(dtype))


def make_problem(seed, dims=(3, 2, 4), rank=3, n_rows=40, loss="squared", basis="power", weighted=True):
    """Rows uniform in [-1, 1], targets from a random polynomial with noise, cores random and in no particular gauge."""
    rng = np.random.default_rng(seed)
    ranks = clip_ranks(dims, rank)
    columns = rng.uniform(-1, 1, (len(dims), n_rows))
    signal = rng.standard_normal(len(dims)) @ columns + np.prod(columns[:2], axis=0) * 2
    target = signal + 0.3 * rng.standard_normal(n_rows)
    if loss == "logistic":
        target = np.where(target > 0, 1.0, -1.0)
    weights = rng.uniform(0.1, 2.0, n_rows) if weighted else np.ones(n_rows)
    cores = [rng.standard_normal((ranks[k], n, ranks[k + 1])) / np.sqrt(n * ranks[k]) for k, n in enumerate(dims)]
    return Problem(columns, target, weights / weights.sum(), loss, basis, tuple(dims), cores)
