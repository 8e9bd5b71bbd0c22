"""Tensor-train classifier that chooses its regularisation by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from polytrain.estimators._parameters import check_count, check_loss, check_nonnegative
from polytrain.estimators.classifier import TensorTrainClassifier, check_two_classes
from polytrain.rows import Rows, open_fit
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
    loss, degree, rank, basis, scale, bandwidth, init, decision, solver, max_sweeps, tol, sampling
        See `TensorTrainClassifier`.
    max_memory, class_weight
        See `TensorTrainClassifier`.
    warm_start
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
    classes_, trains_, history_, n_iter_, stop_reason_, n_parameters_, maps_, model_, plan_
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
        basis: str | Sequence[str] = "power",
        rank: int | Sequence[int] = 8,
        bandwidth: float | None = None,
        degree: int | Sequence[int] = 2,
        scale: str | None = "minmax",
        categorical_features: Any = "from_dtype",
        init: str | TensorTrain | Sequence[TensorTrain] = "linear",
        decision: str = "one-vs-rest",
        solver: str = "auto",
        max_sweeps: int = 4,
        tol: float = 1e-3,
        sampling: str | None = "auto",
        max_memory: int | str | None = None,
        class_weight: Mapping | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.loss = loss
        self.basis = basis
        self.rank = rank
        self.bandwidth = bandwidth
        self.degree = degree
        self.scale = scale
        self.categorical_features = categorical_features
        self.init = init
        self.decision = decision
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.sampling = sampling
        self.max_memory = max_memory
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> TensorTrainClassifierCV:
        """Choose ``alpha``, then learn from all rows with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection, or source of rows
            Features; see `TensorTrainClassifier.fit`.
        y : array-like of shape (n_samples,)
            Labels of any type; None with a source.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, of rows in training and of errors in validation.

        Returns
        -------
        TensorTrainClassifierCV
            The fitted estimator.
        """
        loss = check_loss(self.loss, "classification")
        with open_fit(self, X, y, sample_weight, loss=None, max_memory=self.max_memory) as rows:
            check_two_classes(rows.summary.labels)
            alphas = self._check_alphas()
            model = self._plain_model()
            # Rows elsewhere are spread over workers for every single fit already.
            folds = Parallel(n_jobs=self.n_jobs if rows.in_memory else 1)(
                delayed(_path_errors)(model, loss, alphas, rows, *fold) for fold in self._folds(rows)
            )
            errors = np.array(folds).T
            alpha = float(alphas[np.argmin(errors.mean(axis=1))])
            self._fit_rows(rows, loss, alpha)
        self.errors_, self.mean_errors_, self.alphas_, self.alpha_ = errors, errors.mean(axis=1), alphas, alpha
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

    def _folds(self, rows: Rows) -> Iterator[tuple[NDArray, NDArray]]:
        """How often every row is learned from and how often it is tested on, fold by fold."""
        codes, cv = rows.label_codes(), self.cv
        n_rows, used = len(codes), np.arange(len(codes))
        if isinstance(cv, int | np.integer):
            used = np.flatnonzero(codes >= 0)  # a weight of zero is the same as leaving the row out
            counts = np.bincount(codes[used])
            if counts.min() < 2:
                raise ValueError(
                    f"class {rows.summary.labels[counts.argmin()]!r} has only one row; cross-validation needs at least "
                    "two rows of every class. Leave the class out, or pass your own splits as cv."
                )
            cv = min(check_count("cv", cv, 2), int(counts.min()))
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            cv = StratifiedKFold(cv, shuffle=True, random_state=seed)
        y = rows.summary.labels[codes[used]]  # what a splitter sees of rows without weight is of no consequence
        # Splitters look at the number of rows only; the rows themselves may be elsewhere.
        for learned, tested in check_cv(cv, y, classifier=True).split(np.zeros((len(y), 1)), y):
            yield _counts(used, learned, n_rows), _counts(used, tested, n_rows)


def _counts(used: NDArray, chosen: NDArray, n_rows: int) -> NDArray:
    """How often each of all rows is named by a list of indices, or by a mask, into the rows that are used."""
    chosen = np.asarray(chosen)
    if chosen.dtype != bool:
        chosen = chosen.astype(np.intp, casting="unsafe" if not chosen.size else "same_kind")
    try:
        named = used[chosen]
    except IndexError as error:
        raise ValueError(f"cv names rows that are not there: {error}.") from None
    return np.bincount(named, minlength=n_rows)


class _Constant:
    """Predicts one label."""

    def __init__(self, label: Any) -> None:
        self._label = label

    def predict(self, X: NDArray) -> NDArray:
        return np.full(len(X), self._label)


def _path_errors(
    model: TensorTrainClassifier, loss: str, alphas: NDArray, rows: Rows, learned: NDArray, tested: NDArray
) -> list[float]:
    """Weighted error of every alpha on one fold."""
    model = clone(model)  # folds must not see each other's trains
    held_out = rows.weighted(tested)
    try:
        fold = rows.weighted(learned)
        seen = fold.summary.labels
    except ValueError:  # no row of the fold has a weight
        seen = rows.summary.labels[:1]
    if len(seen) < 2:  # a fold too small to learn from can only repeat the class it has seen
        return [held_out.error(_Constant(seen[0]))] * len(alphas)
    if isinstance(model.class_weight, Mapping):  # a fold may lack a class
        known = seen.tolist()
        model.set_params(class_weight={label: w for label, w in model.class_weight.items() if label in known})
    errors = []
    for alpha in alphas:
        model._fit_rows(fold, loss, alpha)
        errors.append(held_out.error(model.model_))
    return errors
