"""Tensor-train classifier that chooses its regularisation by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from polytrain.estimators._parameters import check_count, check_nonnegative
from polytrain.estimators.classifier import TensorTrainClassifier, check_two_classes
from polytrain.tensor import TensorTrain

__all__ = ["TensorTrainClassifierCV"]


class TensorTrainClassifierCV(TensorTrainClassifier):
    """Tensor-train polynomial classifier with ``alpha`` chosen by k-fold cross-validation.

    Every fold walks from the strongest to the weakest regularisation, each fit starting from the trains of the one
    before. The alpha with the least mean error over the folds wins (the strongest one among equals), and the model is
    learned anew with it on all rows.

    Parameters
    ----------
    alphas : sequence of float, default=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
        Regularisations to try.
    cv : int, cross-validation generator or iterable of splits, default=10
        Number of stratified folds (no more than the smallest class has rows, two at least), or how to split.
    loss, degree, rank, basis, scale, init, decision, solver, max_sweeps, tol, sampling, class_weight, warm_start
        See `TensorTrainClassifier`.
    random_state : int, RandomState instance or None, default=None
        Randomness of the folds and of the starts.
    n_jobs : int or None, default=None
        Number of processes over which the folds, and then the trains, are spread.
    verbose : int, default=0
        See `TensorTrainClassifier`.

    Attributes
    ----------
    alpha_ : float
        The chosen regularisation.
    alphas_ : ndarray of shape (n_alphas,)
        Regularisations tried, strongest first.
    errors_ : ndarray of shape (n_alphas, n_folds)
        Weighted error of every alpha on every fold.
    mean_errors_ : ndarray of shape (n_alphas,)
        Mean over the folds.
    classes_, trains_, history_, n_iter_, stop_reason_, n_parameters_, scale_, plan_
        See `TensorTrainClassifier`; they belong to the final fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifierCV(alphas=[1e-4, 1e-1], cv=3, rank=3, random_state=0).fit(X, y)
    >>> model.alphas_
    array([0.1   , 0.0001])
    >>> model.errors_.shape
    (2, 3)
    """

    def __init__(
        self,
        *,
        alphas: Sequence[float] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        cv: Any = 10,
        loss: str = "logistic",
        degree: int | Sequence[int] = 2,
        rank: int | Sequence[int] = 8,
        basis: str = "power",
        scale: str | None = "minmax",
        init: str | TensorTrain | Sequence[TensorTrain] = "linear",
        decision: str = "one-vs-rest",
        solver: str = "auto",
        max_sweeps: int = 4,
        tol: float = 1e-3,
        sampling: str | None = "auto",
        class_weight: Mapping | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.loss = loss
        self.degree = degree
        self.rank = rank
        self.basis = basis
        self.scale = scale
        self.init = init
        self.decision = decision
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.sampling = sampling
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TensorTrainClassifierCV:
        """Choose ``alpha``, then learn from all rows with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, of rows in training and of errors in validation.

        Returns
        -------
        TensorTrainClassifierCV
            The fitted estimator.
        """
        X, y, weights = self._validate(X, y, sample_weight)
        check_two_classes(np.unique(y[weights > 0]))
        alphas = self._check_alphas()
        model = self._plain_model()
        folds = Parallel(n_jobs=self.n_jobs)(
            delayed(_path_errors)(model, alphas, X, y, weights, train, test) for train, test in self._splits(X, y)
        )
        self.errors_ = np.array(folds).T
        self.mean_errors_ = self.errors_.mean(axis=1)
        self.alphas_ = alphas
        self.alpha_ = float(alphas[np.argmin(self.mean_errors_)])
        self._fit(X, y, weights, self.alpha_)
        return self

    def _check_alphas(self) -> NDArray:
        """Regularisations, strongest first: warm starts go from smooth to detailed, and ties to the smoother model."""
        if isinstance(self.alphas, str) or not isinstance(self.alphas, Iterable):
            raise ValueError(f"alphas must be a sequence of numbers, got {self.alphas!r}.")
        alphas = [check_nonnegative(f"alphas[{k}]", alpha) for k, alpha in enumerate(self.alphas)]
        if not alphas:
            raise ValueError("alphas is empty; give at least one regularisation to try.")
        return np.array(sorted(set(alphas), reverse=True))

    def _plain_model(self) -> TensorTrainClassifier:
        """Return the classifier that walks along the alphas within one fold."""
        parameters = self.get_params(deep=False)
        for own in ("alphas", "cv"):
            del parameters[own]
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        parameters.update(warm_start=True, n_jobs=None, verbose=0, random_state=seed)
        return TensorTrainClassifier(**parameters)

    def _splits(self, X: NDArray, y: NDArray) -> list[tuple[NDArray, NDArray]]:
        cv = self.cv
        if isinstance(cv, int | np.integer):
            classes, counts = np.unique(y, return_counts=True)
            if counts.min() < 2:
                raise ValueError(
                    f"class {classes[counts.argmin()]!r} has only one row; cross-validation needs at least two rows of "
                    "every class. Leave the class out, or pass your own splits as cv."
                )
            cv = min(check_count("cv", cv, 2), int(counts.min()))
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            cv = StratifiedKFold(cv, shuffle=True, random_state=seed)
        return list(check_cv(cv, y, classifier=True).split(X, y))


def _path_errors(
    model: TensorTrainClassifier,
    alphas: NDArray,
    X: NDArray,
    y: NDArray,
    weights: NDArray,
    train: NDArray,
    test: NDArray,
) -> list[float]:
    """Weighted error of every alpha on one fold."""
    model = clone(model)  # folds must not see each other's trains
    seen = np.unique(y[train][weights[train] > 0])
    if isinstance(model.class_weight, Mapping):  # a fold may lack a class
        known = seen.tolist()
        model.set_params(class_weight={label: w for label, w in model.class_weight.items() if label in known})
    total = weights[test].sum()
    errors = []
    for alpha in alphas:
        if len(seen) < 2:  # a fold too small to learn from can only repeat the class it has seen
            predicted = np.full(len(test), seen[0]) if len(seen) else np.full(len(test), y[0])
        else:
            model.set_params(alpha=alpha)
            predicted = model.fit(X[train], y[train], weights[train]).predict(X[test])
        errors.append(float(weights[test] @ (predicted != y[test]) / total) if total > 0 else 0.0)
    return errors
