"""Tensor-train polynomial regressor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from polytrain.estimators._base import TrainModel, validate_rows
from polytrain.estimators._elsewhere import RowsElsewhere, open_elsewhere
from polytrain.estimators._lazy import lazy_on_dask
from polytrain.estimators._parameters import check_weights, make_plan
from polytrain.scaling import FeatureScale
from polytrain.tensor import TensorTrain

__all__ = ["TensorTrainRegressor"]


class TensorTrainRegressor(RegressorMixin, TrainModel):
    """Polynomial regressor whose coefficients are kept as a tensor train, with the squared loss.

    The target's weighted mean is subtracted before and added after learning (``intercept_``), so that regularisation
    pulls predictions towards the mean and not towards zero.

    Parameters
    ----------
    degree : int or sequence of int, default=2
        Largest power of each feature; a sequence gives one degree per feature.
    rank : int or sequence of int, default=8
        Size of the bonds between neighbouring cores. A sequence gives one rank per bond. Ranks are cut to what the
        dimensions allow.
    alpha : float, default=1e-2
        Strength of the Tikhonov regularisation: alpha / 2 times the sum of the squares of all coefficients is added to
        the weighted mean of the squared error.
    basis : {"power", "chebyshev", "legendre"}, default="power"
        Functions of each feature.
    scale : {"minmax"} or None, default="minmax"
        "minmax" maps each feature's range in the training rows onto [-1, 1] and clips to it when predicting.
    init : {"linear", "random"} or TensorTrain, default="linear"
        Where the sweeps start.
    solver : {"auto", "exact", "cg", "lbfgs"}, default="auto"
        How a core problem is solved.
    max_sweeps : int, default=4
        Largest number of one-way sweeps. 0 keeps the start.
    tol : float, default=1e-3
        Sweeps stop once the objective changes by at most this part of its value over a sweep.
    sampling : {"auto"} or None, default="auto"
        "auto" lets the first sweeps see part of the rows where there are at least 4096 different ones: an eighth, a
        quarter, a half, but always enough for the size of the cores. The last sweep always sees all. None shows all
        rows to every sweep. Fits that start from given trains always see all.
    max_memory : int or str, default=None
        Bytes, or a text such as "2 GB", that the rows of a fit and what is computed from them may take in memory; what
        does not fit waits on disk. It matters for sources of rows and for memory maps larger than it. None is half of
        the machine's memory.
    checkpoint : path-like, default=None
        Folder that keeps the state of every train after each sweep. A fit with the same rows, parameters and
        ``random_state`` (an integer) goes on from what is there and ends with the same model.
    warm_start : bool, default=False
        Start from the train of the last fit.
    random_state : int, RandomState instance or None, default=None
        Randomness of the start and of the rows that the first sweeps see.
    n_jobs : int or None, default=None
        Number of processes over which the rows are spread. The result does not depend on it. None is 1, -1 all cores.
    verbose : int, default=0
        1 shows a progress bar (tqdm, or one log line per sweep where it is not installed), 2 log lines.

    Attributes
    ----------
    trains_ : list of TensorTrain
        The learned polynomial, one entry, in terms of scaled features and ``basis``, without ``intercept_``.
    intercept_ : float
        Weighted mean of the target.
    history_ : list of dict
        One record per sweep: train, sweep, n_rows, loss, objective, decrease, ranks, seconds. Loss and objective are
        means over the ``n_rows`` rows that the sweep saw.
    n_iter_ : int
        Number of sweeps.
    stop_reason_ : str
        "tolerance" or "max_sweeps".
    n_parameters_ : int
        Stored coefficients.
    scale_ : FeatureScale or None
        Range of the features in the training rows.
    plan_ : TrainPlan
        What was learned: checked degrees, ranks and settings.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where ``X`` had string column names.

    See Also
    --------
    TensorTrainClassifier : The same model for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    >>> y = 1 + X[:, 0] * X[:, 1] ** 2 - X[:, 2]
    >>> model = TensorTrainRegressor(degree=2, rank=3, alpha=1e-8, random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 1e-4)
    True
    """

    def __init__(
        self,
        *,
        degree: int | Sequence[int] = 2,
        rank: int | Sequence[int] = 8,
        alpha: float = 1e-2,
        basis: str = "power",
        scale: str | None = "minmax",
        init: str | TensorTrain | Sequence[NDArray] = "linear",
        solver: str = "auto",
        max_sweeps: int = 4,
        tol: float = 1e-3,
        sampling: str | None = "auto",
        max_memory: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.rank = rank
        self.alpha = alpha
        self.basis = basis
        self.scale = scale
        self.init = init
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.sampling = sampling
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> TensorTrainRegressor:
        """Learn from rows and targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection, or source of rows
            Features. float32 computes in float32 and accumulates in float64. Dask arrays and data frames are fitted on
            the current Dask client. A source yields blocks ``(X, y)`` again and again, see `polytrain.sources`.
        y : array-like of shape (n_samples,)
            Targets; None with a source.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of zero is the same as leaving the row out.

        Returns
        -------
        TensorTrainRegressor
            The fitted estimator.
        """
        with open_elsewhere(X, y, sample_weight, self.max_memory) as elsewhere:
            if elsewhere is not None:
                return self._fit_elsewhere(elsewhere)
        rows, target = validate_rows(self, X, y, y_numeric=True)
        target = target.astype(np.float64, copy=False)
        weights = check_weights(sample_weight, len(rows))
        if not weights.all():
            rows, target, weights = rows[weights > 0], target[weights > 0], weights[weights > 0]
        plan = make_plan(self.get_params(deep=False), "squared", self.alpha, rows.shape[1])
        # The problem is homogeneous in the target: dividing it by its size changes nothing but the risk of overflow.
        largest = float(np.abs(target).max()) or 1.0
        mean = float(np.average(target / largest, weights=weights))
        centred = target / largest - mean
        spread = float(np.abs(centred).max()) or 1.0
        self._learn(plan, rows, [(None, centred / spread, weights)], target_size=spread * largest)
        self.intercept_ = mean * largest
        return self

    def _fit_elsewhere(self, rows: RowsElsewhere) -> TensorTrainRegressor:
        """Fit rows that are not an array in memory."""
        summary = rows.summary(classify=False)
        plan = make_plan(self.get_params(deep=False), "squared", self.alpha, len(summary.low))
        scale = FeatureScale(summary.low, summary.high) if self.scale == "minmax" else None
        rows.scale(summary, scale, classify=False)
        low, high, total, mass = summary.target
        largest = max(abs(low), abs(high)) or 1.0
        mean = total / mass / largest
        spread = max(high / largest - mean, mean - low / largest) or 1.0
        problem = partial(rows.centred, largest, mean, spread)
        self._learn_elsewhere(plan, scale, rows, [problem], target_size=spread * largest)
        self.intercept_ = mean * largest
        return self

    @lazy_on_dask
    def predict(self, X: ArrayLike) -> NDArray:
        """Return the polynomial's value on every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; values outside the training range are clipped to it (with ``scale="minmax"``).

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        return self._scores(X)[0] + self.intercept_
