"""Least-squares support vector machine: the paper's baseline."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["LSSVMClassifier"]

KERNELS = ("poly", "rbf")
# Bytes of the kernel between a block of rows and the training rows when predicting.
BLOCK_BYTES = 64 * 2**20


class LSSVMClassifier(ClassifierMixin, BaseEstimator):
    """Least-squares support vector machine, solved exactly.

    Every class against the rest (or one of two classes) is a ridge regression on labels -1 and 1 in the kernel's
    feature space with a bias that is not penalised. Its dual is the linear system

        [ 0  1'                    ] [ bias ]   [ 0 ]
        [ 1  K + I / regularization ] [ dual ] = [ y ]

    in which only ``y`` differs between classes, so one Cholesky factorisation serves all. It holds the N x N kernel
    matrix, takes O(N^3) time, and refuses data for which that matrix exceeds ``max_bytes``.

    Parameters
    ----------
    kernel : {"poly", "rbf"}, default="poly"
        ``(gamma <x, z> + coef0) ** degree`` or ``exp(-gamma |x - z|^2)``.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : float, optional
        Scale of the kernel. By default 1 / number of features.
    coef0 : float, default=1.0
        Constant of the polynomial kernel; not negative, as the kernel would not be positive.
    regularization : float, default=1.0
        Weight of the squared errors against the squared norm (LS-SVM's gamma); larger fits closer.
    max_bytes : int, default=4 * 2**30
        Largest kernel matrix to hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    dual_coef_ : ndarray of shape (N, n_outputs)
        Weights of the training rows; one column for two classes, else one per class.
    intercept_ : ndarray of shape (n_outputs,)
        Biases.
    X_fit_ : ndarray of shape (N, d)
        The training rows, needed for predicting.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain_paper.experiments.lssvm import LSSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> LSSVMClassifier(degree=2, regularization=10).fit(X, y).score(X, y) > 0.96
    True
    """

    def __init__(
        self,
        kernel: str = "poly",
        *,
        degree: int = 3,
        gamma: float | None = None,
        coef0: float = 1.0,
        regularization: float = 1.0,
        max_bytes: int = 4 * 2**30,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.regularization = regularization
        self.max_bytes = max_bytes

    def fit(self, X: Any, y: Any) -> Self:
        """Solve the dual system.

        Parameters
        ----------
        X : array of shape (N, d)
            Training rows.
        y : array of shape (N,)
            Labels.

        Returns
        -------
        LSSVMClassifier
            The fitted classifier.

        Raises
        ------
        MemoryError
            If the kernel matrix exceeds ``max_bytes``.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_[0]!r}; a classifier needs at least two classes.")
        self._check_memory(len(X))
        columns = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        targets = np.stack([np.where(codes == code, 1.0, -1.0) for code in columns], axis=1)

        self.X_fit_ = X
        matrix = self._kernel_matrix(X)
        matrix[np.diag_indices_from(matrix)] += 1 / self.regularization
        self.dual_coef_, self.intercept_ = solve_dual(matrix, targets)
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Scores of the rows (N,), positive for the second of two classes; else one per class (N, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        scores = np.empty((len(X), len(self.intercept_)))
        size = max(1, BLOCK_BYTES // (8 * len(self.X_fit_)))
        for start in range(0, len(X), size):
            rows = slice(start, start + size)
            scores[rows] = self._kernel_matrix(X[rows]) @ self.dual_coef_ + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """Labels of the rows (N,): the class with the largest score."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _kernel_matrix(self, X: NDArray) -> NDArray:
        """Kernel between rows and training rows, built in place: one array of that size is all that it holds."""
        gamma = 1 / self.n_features_in_ if self.gamma is None else self.gamma
        if self.kernel == "rbf":
            matrix = euclidean_distances(X, self.X_fit_, squared=True)
            matrix *= -gamma
            return np.exp(matrix, out=matrix)
        matrix = X @ self.X_fit_.T
        matrix *= gamma
        matrix += self.coef0
        # float_power would go through logarithms; integer powers of negative numbers must stay exact.
        return np.power(matrix, int(self.degree), out=matrix)

    def _check_parameters(self) -> None:
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {KERNELS}, got {self.kernel!r}.")
        if not isinstance(self.degree, Integral) or isinstance(self.degree, bool) or self.degree < 1:
            raise ValueError(f"degree must be a positive integer, got {self.degree!r}.")
        for name, value in (("gamma", self.gamma), ("regularization", self.regularization)):
            if name == "gamma" and value is None:
                continue
            if not isinstance(value, Real) or not 0 < value < np.inf:
                raise ValueError(f"{name} must be a positive number, got {value!r}.")
        if not isinstance(self.coef0, Real) or not 0 <= self.coef0 < np.inf:
            raise ValueError(f"coef0 must be a number of at least 0, got {self.coef0!r}.")

    def _check_memory(self, n_rows: int) -> None:
        needed = 8 * n_rows * n_rows
        if needed > self.max_bytes:
            raise MemoryError(
                f"LS-SVM on N={n_rows:,} rows needs a kernel matrix of {needed:,} bytes ({needed / 2**30:.1f} GiB), "
                f"but max_bytes={self.max_bytes:,}. Train on at most {int((self.max_bytes / 8) ** 0.5):,} rows, raise "
                "max_bytes if the machine has the memory, or use TensorTrainClassifier, which needs no such matrix."
            )


def solve_dual(matrix: NDArray, targets: NDArray) -> tuple[NDArray, NDArray]:
    """Solve the bordered system by eliminating the bias; ``matrix`` is overwritten.

    With ``H = matrix``: solve H [eta, nu] = [1, targets]; then bias = (1' nu) / (1' eta) and dual = nu - eta bias'.

    Shapes: matrix (N, N), targets (N, m) -> dual (N, m), bias (m,).
    """
    try:
        # The transpose of the symmetric matrix is itself, but in LAPACK's order: it is factorised in place.
        factor = cho_factor(matrix.T, lower=True, overwrite_a=True)
    except (LinAlgError, ValueError) as error:
        raise ValueError(
            f"the kernel matrix plus I / regularization has no Cholesky factor ({error}); "
            "scale the features or lower regularization, degree or gamma."
        ) from None
    solution = cho_solve(factor, np.column_stack([np.ones(len(targets)), targets]), overwrite_b=True)
    eta, nu = solution[:, 0], solution[:, 1:]
    bias = nu.sum(axis=0) / eta.sum()
    return nu - np.outer(eta, bias), bias
