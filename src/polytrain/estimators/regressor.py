"""Tensor-train polynomial regressor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from polytrain.checks import check_weights
from polytrain.choice import Choice
from polytrain.estimators._base import TrainModel, learns_in_blocks
from polytrain.estimators._callbacks import with_callbacks
from polytrain.estimators._learning import Goal
from polytrain.estimators._parameters import check_between, check_choice
from polytrain.learning.losses import Loss, get_loss, loss_names, spread
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.rows import NumberTarget, Rows, is_dask
from polytrain.rows.checking import check_offset, to_rates
from polytrain.tensor import TensorTrain

__all__ = ["TensorTrainRegressor"]

# Where outliers must not lead: maps are chosen by targets that are no further from their middle than so many spreads.
_LARGEST_GUIDE = 2.0
# A spread that is less than this part of the largest distance is that of targets most of which are the same.
_LEAST_SPREAD = 1e-6


class TensorTrainRegressor(RegressorMixin, TrainModel):
    """Regressor that predicts polynomials, or richer functions, of all features, kept as a tensor train.

    The prediction is a sum of products of functions of single features, whose exponentially many coefficients are kept
    as a product of small cores. Several targets are learned by one train each, on the same rows and maps. A target's
    weighted mean is subtracted before and added after learning (``intercept_``), so that regularisation pulls
    predictions towards the mean and not towards zero.

    With the defaults, everything is chosen from the training rows: which functions, how much they may vary, the
    regularisation and the ranks, see the guide "How it chooses". Whatever is given is kept.

    Parameters
    ----------
    loss : {"squared", "absolute", "quantile", "huber", "poisson", "gamma"}, default="squared"
        What a wrong prediction costs, and so what is predicted: the mean ("squared"), the median ("absolute"), a
        ``quantile``, a mean that outliers hardly move ("huber"), or the mean of counts ("poisson") and of positive
        numbers ("gamma"), whose logarithm the trains are then.
    quantile : float, default=0.5
        Which quantile is predicted, for ``loss="quantile"``: 0.9 is exceeded by one target in ten.
    epsilon : float, default=1.35
        For ``loss="huber"``: errors larger than so many standard deviations count by their size instead of its square.
    basis : str or sequence of str, default="auto"
        Functions of each feature; a sequence gives one basis per feature. "auto" chooses among those that suit the
        values: "smooth" (polynomials up to degree 8, damped), "gauss" (very smooth) and "spline" (may bend sharply)
        see a value by its place in the range, "smooth-rank", "gauss-rank" and "spline-rank" by its rank, so that
        outliers do not matter, "spline-distinct" by its place among the different values. "power", "chebyshev" and
        "legendre" are the polynomials of ``degree``. "category" takes numbers as names of categories.
    rank : int, sequence of int or "auto", default="auto"
        Size of the bonds between neighbouring cores, cut to what the dimensions allow: how much of one side of the
        features the other side can know. A sequence gives one rank per bond.
    alpha : float or "auto", default="auto"
        Strength of the Tikhonov regularisation: alpha / 2 times the sum of the squares of all coefficients is added to
        the weighted mean of the loss.
    bandwidth : float, "auto" or None, default="auto"
        How much the functions of all columns may vary together, unless they are polynomials of ``degree``: small values
        let few columns act at once, large ones many. None is 1.
    relevance : None, "auto", or array-like of shape (n_features,), default=None
        How much each column may matter, for bases that have a bandwidth: a factor of the bandwidth per column. None
        gives all columns the same. "auto" learns the factors from rows that are left out, and keeps them equal where
        those rows gain nothing; it takes longer, and is worth it where many columns do not matter.
    degree : int or sequence of int, default=2
        Largest power of each feature, for "power", "chebyshev" and "legendre"; a sequence gives one per feature.
    scale : {"minmax"} or None, default="minmax"
        For the same bases: "minmax" maps each feature's range in the training rows onto [-1, 1] and clips to it. None
        leaves features as they are; they should then be of size one at most.
    categorical_features : "from_dtype", None, or array-like of bool, int or str, default="from_dtype"
        Which columns are categories: those of a frame whose type says so, none, or those that are named. Columns of
        text always are, unless all of their values are dates.
    interaction_cst : None, "no_interactions", "pairwise", or sequence of groups of columns, default=None
        Which columns may interact: all, none, any two, or those in a common group of column numbers or names; columns
        in no group are one more. The score is a sum of functions of a group each; ``rank`` is that of a group's train.
    init : {"auto", "linear", "random", "dual"}, TensorTrain, or list of TensorTrain, default="auto"
        Where the sweeps start: where the choice of the other settings has ended ("auto"), at the linear model, at
        random cores, at the exact solution cut to the ranks, for at most 1300 different rows ("dual"), or at given
        trains, one per target.
    solver : {"auto", "exact", "cg", "lbfgs"}, default="auto"
        How a core problem is solved: exactly from moments, by preconditioned conjugate gradients, by L-BFGS, or by the
        cheaper of the first two.
    max_sweeps : int or "auto", default="auto"
        Largest number of one-way sweeps. 0 keeps the start. "auto" is 4, or fewer from a good start.
    tol : float, default=1e-3
        Sweeps stop once the objective changes by at most this part of its value over a sweep.
    early_stopping : bool, default=False
        Hold ``validation_fraction`` of the rows out, stop once sweeps no longer lower their loss, and keep the train
        with the lowest. ``max_sweeps="auto"`` is 20 then.
    validation_fraction : float, default=0.1
        Part of the rows that are held out, one at least; equal rows stay together.
    n_iter_no_change : int, default=2
        How many sweeps must pass without a lower loss of the validation rows.
    sampling : {"auto"} or None, default="auto"
        "auto" lets the first sweeps see samples where there are at least 4096 different rows, unless trains are given
        as ``init``; the last sweep always sees all. None lets every sweep see all rows.
    max_memory : int or str, default=None
        Bytes, or text such as "2 GB", that the rows of a fit may take in memory, with what is computed from them; what
        does not fit waits on disk. For sources of rows and memory maps. None is half of the machine's memory.
    calibration_fraction : float, default=None
        Part of the rows, such as 0.2, that is not learned from but kept for `predict_interval`, which then has a
        guarantee; equal rows stay together. None keeps no rows: intervals come from rows that were left out while the
        settings were chosen.
    checkpoint : path-like, default=None
        Folder that keeps the state of every train after each sweep. A fit with the same rows, parameters and
        ``random_state`` (an integer) goes on from what is there and ends with the same model.
    warm_start : bool, default=False
        Start from the trains and maps of the last fit, with its ranks and alpha where they are left open.
    forgetting : float, default=0.0
        Part of the weight of all earlier rows that `partial_fit` forgets with every block.
    random_state : int, RandomState instance or None, default=None
        Randomness of the start and of the rows that the first sweeps see.
    n_jobs : int or None, default=None
        Number of processes for the trains, or for the rows of a single train; the result does not depend on it. None
        is 1, -1 all cores.
    verbose : int, default=0
        1 says what was chosen and shows a progress bar (log lines without tqdm), 2 shows log lines and the table of
        what was tried.

    Attributes
    ----------
    trains_ : list of TensorTrain
        The learned coefficients, one train per target, in terms of the functions of the maps, without ``intercept_``.
    intercept_ : float or ndarray of shape (n_outputs,)
        Weighted mean of the target, of each of several.
    relevances_ : ndarray of shape (n_features,)
        Factor of the bandwidth of every column, see ``relevance``: 0.05 for columns that were not needed, all 1 where
        they are equal.
    choice_ : Chosen
        What was chosen and why, with the table of what was tried.
    history_ : list of dict
        One record per train and sweep: train, sweep, n_rows, loss, objective, decrease, ranks, seconds, and
        validation_loss where there are validation rows. Losses are means over the ``n_rows`` rows that the sweep saw.
    n_iter_ : int
        Sweeps of the train that took most.
    stop_reason_ : str
        "tolerance" if all trains met ``tol``, "validation" if rows that were held out said so, else "max_sweeps",
        "stopped" if a callback did, or "rounding" if a sweep had to be undone.
    n_parameters_ : int
        Stored coefficients.
    stream_ : Stream
        What `partial_fit` knows of the past besides the model: how much it weighs, and a memory of some rows.
    maps_ : MapList
        The map of every feature: its functions, and its range in the training rows.
    model_ : FittedModel
        All that predictions, explanations, exports and model files read; it does not change.
    plan_ : Settings
        What was learned: checked sizes, ranks and settings.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where ``X`` had string column names.

    See Also
    --------
    TensorTrainClassifier : The same model for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    >>> y = 1 + X[:, 0] * X[:, 1] ** 2 - X[:, 2]
    >>> model = TensorTrainRegressor(random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 1e-2)
    True
    """

    def __init__(
        self,
        *,
        loss: str = "squared",
        quantile: float = 0.5,
        epsilon: float = 1.35,
        basis: str | Sequence[str] = "auto",
        rank: str | int | Sequence[int] = "auto",
        alpha: str | float = "auto",
        bandwidth: str | float | None = "auto",
        relevance: Any = None,
        degree: int | Sequence[int] = 2,
        scale: str | None = "minmax",
        categorical_features: Any = "from_dtype",
        interaction_cst: Any = None,
        init: str | TensorTrain | Sequence[TensorTrain] | Sequence[NDArray] = "auto",
        solver: str = "auto",
        max_sweeps: str | int = "auto",
        tol: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        sampling: str | None = "auto",
        max_memory: int | str | None = None,
        calibration_fraction: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        warm_start: bool = False,
        forgetting: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.epsilon = epsilon
        self.basis = basis
        self.rank = rank
        self.alpha = alpha
        self.bandwidth = bandwidth
        self.relevance = relevance
        self.degree = degree
        self.scale = scale
        self.categorical_features = categorical_features
        self.interaction_cst = interaction_cst
        self.init = init
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.sampling = sampling
        self.max_memory = max_memory
        self.calibration_fraction = calibration_fraction
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.forgetting = forgetting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        offset_val: ArrayLike | None = None,
    ) -> TensorTrainRegressor:
        """Learn from rows and targets.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), Dask collection, or source of rows
            Features. Frames may hold numbers, categories, text, truth values and dates; NaN and None are missing
            values. Dask collections are fitted on the current Dask client; for sources see `polytrain.sources`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets, of size 1e140 at most; None with a source.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of zero is the same as leaving the row out.
        offset : array-like of shape (n_samples,), optional
            Logarithm of the exposure of every row, for "poisson" and "gamma": it is added to the score. A source gives
            rates as targets instead and, for "poisson", exposures as weights, which is the same.
        X_val, y_val, sample_weight_val, offset_val : array-like, optional
            Rows that are not learned from and say when to stop, whether ``early_stopping`` is set or not.

        Returns
        -------
        TensorTrainRegressor
            The fitted estimator.
        """
        loss = self._learning_loss()
        y, sample_weight = self._with_offset(loss, X, y, sample_weight, offset)
        y_val, sample_weight_val = self._with_offset(loss, X_val, y_val, sample_weight_val, offset_val)
        with self._open(X, y, sample_weight, loss) as rows:
            learned, validation = self._split(rows, loss, X_val, y_val, sample_weight_val)
            self._fit_rows(learned, loss, validation)
        return self

    @learns_in_blocks
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        maps: MapList | None = None,
    ) -> TensorTrainRegressor:
        """Learn from one more block of rows.

        The first block is learned from as by `fit`, which also settles everything that is left open: maps with their
        ranges, ranks and regularisation. Let it be typical, or call `fit` with typical rows first. For every later
        block the past is a quadratic around the last model, see the guide "Streams".

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; unlike those of `fit`, all of them count in units of a row.
        offset : array-like of shape (n_samples,), optional
            Logarithm of the exposure of every row, for "poisson" and "gamma".
        maps : MapList, optional
            Maps for the first block, such as ``maps_`` of another model, instead of those that it would settle.

        Returns
        -------
        TensorTrainRegressor
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polytrain import TensorTrainRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
        >>> model = TensorTrainRegressor(random_state=0)
        >>> for rows in np.split(np.arange(1000), 10):
        ...     model = model.partial_fit(X[rows], X[rows, 0] * X[rows, 1])
        >>> model.stream_.n_blocks, bool(model.score(X, X[:, 0] * X[:, 1]) > 0.99)
        (10, True)
        """
        loss = self._learning_loss()
        y, weights = self._with_offset(loss, X, y, sample_weight, offset)
        self._check_one_block(X)
        first = not hasattr(self, "model_")
        if first:
            with self._open(X, y, weights, loss) as opened:
                self._fit_rows(opened, loss, maps=maps)
        model = self.model_
        if get_loss(loss).degree:
            scales = zip(model.shift.tolist(), model.size.tolist(), strict=True)
            targets = [NumberTarget(output, 1.0, *scale) for output, scale in enumerate(scales)]
        else:
            targets = [NumberTarget(output, offset=shift) for output, shift in enumerate(model.shift.tolist())]
        self._learn_block(X, y, weights, loss, targets, first)
        return self

    def _learning_loss(self) -> str:
        """Return the loss with its settings, as text."""
        check_choice("loss", self.loss, loss_names("regression"))
        return get_loss(self.loss).tuned(self.get_params(deep=False)).spec

    @staticmethod
    def _with_offset(loss: str, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any]:
        """Targets and weights that mean the same without an offset."""
        if offset is None:
            return y, sample_weight
        if y is None:
            raise ValueError(
                f"X is a {type(X).__name__} that yields its targets, so offset cannot be given beside it. Divide the "
                "targets by the exposure, and for loss='poisson' give exposures as weights."
            )
        return to_rates(get_loss(loss), y, sample_weight, offset)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        known = isinstance(self.loss, str) and self.loss in loss_names("regression")
        tags.target_tags.positive_only = known and get_loss(self.loss).link == "log"
        return tags

    @property
    def intercept_(self) -> float | NDArray:
        """Where scores begin: the weighted mean of the target, for the squared loss."""
        shift = self.model_.shift
        return float(shift[0]) if self.model_.one_output else shift

    def _goal(self, rows: Rows, loss: str) -> Goal:
        """Let every output begin at the best constant, and give it size one where the loss allows it."""
        target = rows.summary.target
        if target is None:  # pragma: no cover  # regressions always summarise their targets
            raise ValueError("y has no targets.")
        kind, largest = get_loss(loss), target.largest
        ends: dict[str, Any] = {"one_output": target.one_output}
        mean, spread = target.mean, target.spread
        if kind.needs_values:
            mean, spread = self._middle(rows, kind)
        scales = zip(largest.tolist(), mean.tolist(), spread.tolist(), strict=True)
        targets = [NumberTarget(output, *scale) for output, scale in enumerate(scales)]
        if kind.degree:
            # The problem is homogeneous in the target: dividing by its size changes nothing but the risk of overflow.
            guides = [replace(one, limit=_LARGEST_GUIDE) for one in targets] if kind.needs_values else targets
            return Goal(targets, guides, {**ends, "shift": mean * largest, "size": spread * largest})
        starts = [kind.start(np.array([value]), np.ones(1)) for value in (mean * largest).tolist()]
        if not np.isfinite(starts).all():
            raise ValueError(f"y is {target.low[0]:g} in every row of positive weight, where loss={kind.name!r} ends.")
        learned = [NumberTarget(output, offset=start) for output, start in enumerate(starts)]
        return Goal(learned, targets, {**ends, "shift": np.array(starts)})

    def _middle(self, rows: Rows, kind: Loss) -> tuple[NDArray, NDArray]:
        """Where a constant model begins, and a spread that outliers do not change, of targets divided by the largest.

        Both are those of a sample of the rows, and of its different rows only.
        """
        sketch, most = rows.sketch, rows.summary.target.spread  # type: ignore[union-attr]
        values = sketch.sums / sketch.weights[:, None]
        mean = np.array([kind.start(column, sketch.weights) for column in values.T])
        found = [spread(column - centre, sketch.weights) for column, centre in zip(values.T, mean, strict=True)]
        return mean, np.where(np.array(found) > _LEAST_SPREAD * most, found, most)

    def _set_apart(self, rows: Rows) -> tuple[Rows, Rows | None]:
        fraction = self.calibration_fraction
        if fraction is None:
            return rows, None
        learned, apart = rows.set_apart(float(fraction))
        for side, use in ((learned, "to learn from"), (apart, "for calibration")):
            try:
                _ = side.summary
            except ValueError:
                if rows.summary.n_rows:  # it raises what is wrong with all of them
                    raise ValueError(
                        f"calibration_fraction={fraction} leaves no row {use}, of {rows.summary.n_rows}. Change it, or "
                        "fit with more rows."
                    ) from None
        return learned, apart

    def _measures(self, choice: Choice) -> bool:
        if not get_loss(choice.plan.loss).has_noise:
            return False
        if self.calibration_fraction is not None or choice.held_out is not None:
            return True
        return self._is_warm and self.model_.uncertainty is not None

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False, offset: ArrayLike | None = None) -> NDArray: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], offset: ArrayLike | None = None
    ) -> tuple[NDArray, NDArray]: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: bool, offset: ArrayLike | None = None
    ) -> NDArray | tuple[NDArray, NDArray]: ...
    def predict(
        self, X: ArrayLike, return_std: bool = False, offset: ArrayLike | None = None
    ) -> NDArray | tuple[NDArray, NDArray]:
        """Return the prediction for every row, and how far targets are off it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; values outside the training range are clipped to it, unless ``scale=None``.
        return_std : bool, default=False
            Whether standard deviations are returned, too.
        offset : array-like of shape (n_samples,), optional
            Logarithm of the exposure of every row, for "poisson" and "gamma".

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray of the same shape
            If ``return_std`` is True: standard deviations of the targets around the predictions. Noise, which is the
            same everywhere and estimated on rows that were not learned from, and what the cores do not know (a Laplace
            approximation), which is more where there were few rows.

        Examples
        --------
        >>> import numpy as np
        >>> from polytrain import TensorTrainRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, size=(200, 1))
        >>> y = np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=200)
        >>> model = TensorTrainRegressor(random_state=0).fit(x, y)
        >>> mean, std = model.predict([[0.0]], return_std=True)
        >>> bool(0.08 < std[0] < 0.12)
        True
        """
        predicted = self._ask(FittedModel.predict, X)
        if offset is not None:
            known = None if is_dask(predicted) else len(predicted)
            factors = np.exp(check_offset(offset, get_loss(self.model_.loss), known))
            predicted = predicted * (factors if predicted.ndim == 1 else factors[:, None])
        if not return_std:
            return predicted
        self._check_noise("standard deviations")
        return predicted, self._ask(FittedModel.deviations, X)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> NDArray:
        """Return an interval around every prediction that holds the target with a given probability.

        An interval is the prediction plus and minus a multiple of its standard deviation. The multiple is such that
        enough rows that were *not learned from* have targets within their interval: with n of them, the
        ceil((n + 1) coverage)-th smallest multiple that a row needs.

        With ``calibration_fraction`` this is split conformal prediction, and has a guarantee. If training rows and a
        new row are exchangeable, for example drawn independently from one distribution, of equal weight, and no two of
        them equal, then the target of the new row is in its interval with a probability of at least ``coverage``, and,
        if no two multiples are equal, of at most ``coverage + 1 / (n + 1)``. The probability is over training rows and
        new row together: it is an average over fits, not a promise for one fit or for one place. For several outputs it
        holds for each of them.

        Without it, the rows were left out one by one or in one part while settings were chosen. All rows are learned
        from and the intervals are as a rule narrower, but there is no such guarantee: the settings were chosen by the
        same rows, and the final model has learned from them. See the guide "How sure is it?" for measurements.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        coverage : float, default=0.9
            Probability, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends.

        Examples
        --------
        >>> import numpy as np
        >>> from polytrain import TensorTrainRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, size=(1000, 1))
        >>> y = np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=1000)
        >>> model = TensorTrainRegressor(calibration_fraction=0.4, random_state=0).fit(x[:500], y[:500])
        >>> low, high = model.predict_interval(x[500:], coverage=0.8).T
        >>> bool(0.7 < ((low <= y[500:]) & (y[500:] <= high)).mean() < 0.9)
        True
        """
        level = check_between("coverage", coverage, 0.0, 1.0)
        check_is_fitted(self, "model_")
        self._check_noise("intervals")
        return self._ask(partial(FittedModel.intervals, coverage=level), X)

    def _check_noise(self, what: str) -> None:
        """Refuse what the loss has no answer to."""
        loss = get_loss(self.model_.loss)
        if not loss.has_noise:
            raise ValueError(
                f"loss={loss.name!r} gives no {what}: errors differ in kind. Use loss='squared', or one model with "
                "loss='quantile' for each end of an interval."
            )

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return how much of the targets' variance is explained, or of their deviance for "poisson" and "gamma".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        offset : array-like of shape (n_samples,), optional
            Logarithm of the exposure of every row, for "poisson" and "gamma".

        Returns
        -------
        float
            1 for perfect predictions, 0 for the mean of the targets: R^2, or D^2 as scikit-learn's generalised linear
            models have it.
        """
        check_is_fitted(self, "model_")
        loss = get_loss(self.model_.loss)
        if offset is not None:
            y, sample_weight = to_rates(loss, y, sample_weight, offset)
        if loss.link != "log":
            return super().score(X, y, sample_weight)
        targets = np.asarray(y, dtype=np.float64)
        loss.check_target(targets)
        predicted = np.asarray(self.predict(X)).reshape(len(targets), -1)
        pairs = zip(targets.reshape(predicted.shape).T, predicted.T, strict=True)
        weights, power = check_weights(sample_weight, len(targets)), 1 if loss.name == "poisson" else 2
        return float(np.mean([d2_tweedie_score(*pair, sample_weight=weights, power=power) for pair in pairs]))
