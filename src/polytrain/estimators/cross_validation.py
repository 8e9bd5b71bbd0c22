"""Tensor trains that choose their regularisation by cross-validation, as the paper does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from polytrain.estimators._base import TrainModel
from polytrain.estimators._parameters import check_count, check_loss, check_nonnegative, shown
from polytrain.estimators.classifier import TensorTrainClassifier, check_two_classes, learning_loss
from polytrain.estimators.regressor import TensorTrainRegressor
from polytrain.learning.helpers import spread
from polytrain.rows import Rows
from polytrain.tensor import TensorTrain

__all__ = ["TensorTrainClassifierCV", "TensorTrainRegressorCV"]


class _AlphaSearch(TrainModel):
    """What the two estimators share: folds, a path of alphas in each of them, and the last fit."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose ``alpha``, then learn from all rows with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection, or source of rows
            Features; see `TensorTrainClassifier.fit`.
        y : array-like of shape (n_samples,)
            Labels of any type, or numbers; None with a source.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, of rows in training and of errors in validation.
        groups : array-like of shape (n_samples,), optional
            Groups of rows that are never split: the splitter gets them, and a number of folds becomes folds of groups.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        loss = self._loss()
        with self._open(X, y, sample_weight, None if self._classifies else loss) as rows:
            if self._classifies:
                check_two_classes(rows.summary.labels)
            alphas = self._check_alphas()
            model = self._plain_model()
            # Rows elsewhere are spread over workers for every single fit already.
            n_jobs = self.n_jobs if rows.in_memory else 1
            folds = spread(_path_errors, (model, loss, alphas, rows), list(self._folds(rows, groups)), n_jobs)
            errors = np.array(list(folds)).T
            alpha = float(alphas[np.argmin(errors.mean(axis=1))])
            self._fit_rows(rows, loss, alpha)
        self.errors_, self.mean_errors_, self.alphas_, self.alpha_ = errors, errors.mean(axis=1), alphas, alpha
        return self

    @property
    def partial_fit(self) -> Any:
        """Not there: folds need all rows at once."""
        raise AttributeError(
            f"{type(self).__name__} has no partial_fit: it chooses alpha on folds of all rows. Use "
            f"{'TensorTrainClassifier' if self._classifies else 'TensorTrainRegressor'}."
        )

    @abstractmethod
    def _loss(self) -> str:
        """Return the loss that trains are learned with."""

    @property
    def _classifies(self) -> bool:
        return isinstance(self, TensorTrainClassifier)

    def _check_alphas(self) -> NDArray:
        """Regularisations, strongest first: warm starts go from smooth to detailed, and ties to the smoother model."""
        is_list = isinstance(self.alphas, Iterable) and not isinstance(self.alphas, str | bytes | Mapping)
        if not is_list or getattr(self.alphas, "ndim", 1) == 0:
            raise ValueError(f"alphas must be a sequence of numbers, got {shown(self.alphas)}.")
        alphas = [check_nonnegative(f"alphas[{k}]", alpha) for k, alpha in enumerate(self.alphas)]
        if not alphas:
            raise ValueError("alphas is empty; give at least one regularisation to try.")
        return np.array(sorted(set(alphas), reverse=True))

    def _plain_model(self) -> Any:
        """Return the estimator that walks along the alphas within one fold."""
        parameters = self.get_params(deep=False)
        for own in ("alphas", "cv"):
            del parameters[own]
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        warm = self.interaction_cst is None  # sums of trains over groups of columns begin anew for every alpha
        parameters.update(warm_start=warm, n_jobs=None, verbose=0, random_state=seed)
        return (TensorTrainClassifier if self._classifies else TensorTrainRegressor)(**parameters)

    def _folds(self, rows: Rows, groups: ArrayLike | None) -> Iterator[tuple[NDArray, NDArray]]:
        """How often every row is learned from and how often it is tested on, fold by fold."""
        codes, cv = rows.label_codes(), 5 if self.cv is None else self.cv
        n_rows, used = len(codes), np.arange(len(codes))
        if groups is not None:
            groups = np.asarray(groups)
            check_consistent_length(codes, groups)
        if isinstance(cv, int | np.integer):
            used = np.flatnonzero(codes >= 0)  # a weight of zero is the same as leaving the row out
            groups = None if groups is None else groups[used]
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            cv = self._splitter(check_count("cv", cv, 2), codes[used], groups, seed)
        # What a splitter sees of rows without weight is of no consequence, and of numbers it sees nothing.
        y = rows.summary.labels[codes[used]] if self._classifies else codes[used]
        # Splitters look at the number of rows only; the rows themselves may be elsewhere.
        for learned, tested in check_cv(cv, y, classifier=self._classifies).split(np.zeros((len(y), 1)), y, groups):
            yield _counts(used, learned, n_rows), _counts(used, tested, n_rows)

    def _splitter(self, n_folds: int, codes: NDArray, groups: NDArray | None, seed: int) -> Any:
        """Folds of rows or of groups, with all classes in each of them as far as they have rows for it."""
        most = len(codes) if groups is None else len(np.unique(groups))
        if most < 2:
            what = "rows, got n_samples=1" if groups is None else "groups, got 1"
            raise ValueError(f"cross-validation needs at least two {what}.")
        if not self._classifies:
            n_folds = min(n_folds, most)
            return KFold(n_folds, shuffle=True, random_state=seed) if groups is None else GroupKFold(n_folds)
        rarest = int(np.bincount(codes).min())
        n_folds = min(n_folds, max(rarest, 2), most)
        if groups is not None:
            return StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        if rarest < 2:  # a class with one row is in one fold only
            return KFold(n_folds, shuffle=True, random_state=seed)
        return StratifiedKFold(n_folds, shuffle=True, random_state=seed)


class TensorTrainClassifierCV(_AlphaSearch, TensorTrainClassifier):
    """Tensor-train polynomial classifier with ``alpha`` chosen by k-fold cross-validation.

    Every fold walks from the strongest to the weakest regularisation, each fit starting from the trains of the one
    before. The alpha with the least mean error over the folds wins (the strongest one among equals), and the model is
    learned anew with it on all rows. This is the paper's way, with the paper's powers as defaults;
    `TensorTrainClassifier` chooses alpha, and much more, without folds.

    Parameters
    ----------
    alphas : sequence of float, default=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
        Regularisations to try.
    cv : int, splitter of scikit-learn, list of splits or None, default=10
        Number of stratified folds (no more than the smallest class has rows, two at least), or how to split; None is 5
        folds.
    loss, basis, rank, bandwidth, degree, scale, categorical_features, init, decision, solver, max_sweeps, tol
        See `TensorTrainClassifier`.
    sampling, max_memory, class_weight, warm_start, interaction_cst
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
    classes_, trains_, history_, n_iter_, stop_reason_, n_parameters_, maps_, model_, plan_, choice_
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
        rank: str | int | Sequence[int] = 8,
        bandwidth: str | float | None = None,
        degree: int | Sequence[int] = 2,
        scale: str | None = "minmax",
        categorical_features: Any = "from_dtype",
        interaction_cst: Any = None,
        init: str | TensorTrain | Sequence[TensorTrain] = "linear",
        decision: str = "one-vs-rest",
        solver: str = "auto",
        max_sweeps: str | int = 4,
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
        self.interaction_cst = interaction_cst
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

    def _loss(self) -> str:
        return learning_loss(self.loss)


class TensorTrainRegressorCV(_AlphaSearch, TensorTrainRegressor):
    """Tensor-train polynomial regressor with ``alpha`` chosen by k-fold cross-validation.

    It walks along the regularisations as `TensorTrainClassifierCV` does; the mean squared error on the folds decides.
    `TensorTrainRegressor` chooses alpha, and much more, without folds.

    Parameters
    ----------
    alphas : sequence of float, default=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
        Regularisations to try.
    cv : int, splitter of scikit-learn, list of splits or None, default=10
        Number of folds (no more than there are rows), or how to split; None is 5 folds.
    loss, quantile, epsilon, basis, rank, bandwidth, degree, scale, categorical_features, init
        See `TensorTrainRegressor`.
    solver, max_sweeps, tol, sampling
        See `TensorTrainRegressor`.
    max_memory, warm_start, interaction_cst
        See `TensorTrainRegressor`.
    random_state : int, RandomState instance or None, default=None
        Randomness of the folds and of the starts.
    n_jobs : int or None, default=None
        Number of processes over which the folds, and then the outputs, are spread.
    verbose : int, default=0
        See `TensorTrainRegressor`.

    Attributes
    ----------
    alpha_, alphas_, errors_, mean_errors_
        See `TensorTrainClassifierCV`; errors are mean squared errors.
    trains_, history_, n_iter_, stop_reason_, n_parameters_, maps_, model_, plan_, choice_
        See `TensorTrainRegressor`; they belong to the final fit.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressorCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(90, 3))
    >>> model = TensorTrainRegressorCV(cv=3, rank=2, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> model.alpha_
    1e-05
    """

    def __init__(
        self,
        *,
        alphas: Sequence[float] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        cv: Any = 10,
        loss: str = "squared",
        quantile: float = 0.5,
        epsilon: float = 1.35,
        basis: str | Sequence[str] = "power",
        rank: str | int | Sequence[int] = 8,
        bandwidth: str | float | None = None,
        degree: int | Sequence[int] = 2,
        scale: str | None = "minmax",
        categorical_features: Any = "from_dtype",
        interaction_cst: Any = None,
        init: str | TensorTrain | Sequence[TensorTrain] | Sequence[NDArray] = "linear",
        solver: str = "auto",
        max_sweeps: str | int = 4,
        tol: float = 1e-3,
        sampling: str | None = "auto",
        max_memory: int | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.loss = loss
        self.quantile = quantile
        self.epsilon = epsilon
        self.basis = basis
        self.rank = rank
        self.bandwidth = bandwidth
        self.degree = degree
        self.scale = scale
        self.categorical_features = categorical_features
        self.interaction_cst = interaction_cst
        self.init = init
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.sampling = sampling
        self.max_memory = max_memory
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss(self) -> str:
        return check_loss(self.loss, "regression", self.get_params(deep=False))


def _counts(used: NDArray, chosen: NDArray, n_rows: int) -> NDArray:
    """How often each of all rows is named by a list of indices, or by a mask, into the rows that are used."""
    try:
        chosen = np.asarray(chosen)
        if chosen.dtype != bool:
            chosen = chosen.astype(np.intp, casting="unsafe" if not chosen.size else "same_kind")
        named = used[chosen]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"cv names rows that are not there: {error}.") from None
    return np.bincount(named, minlength=n_rows)


class _Constant:
    """Predicts one label."""

    def __init__(self, label: Any) -> None:
        self._label = label

    def predict(self, X: NDArray) -> NDArray:
        return np.full(len(X), self._label)


def _path_errors(model: Any, loss: str, alphas: NDArray, rows: Rows, learned: NDArray, tested: NDArray) -> list[float]:
    """Weighted error of every alpha on one fold."""
    model = clone(model)  # folds must not see each other's trains
    held_out = rows.weighted(tested)
    fold = rows.weighted(learned)
    if rows.classify:
        try:
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
