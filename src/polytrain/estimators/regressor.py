"""Tensor-train polynomial regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from polytrain.checks import check_bounds, check_weights
from polytrain.estimators._base import TrainModel, learns_in_blocks
from polytrain.estimators._callbacks import with_callbacks
from polytrain.estimators._learning import Goal
from polytrain.estimators._parameters import check_between, check_choice
from polytrain.learning.losses import Loss, get_loss, loss_names, spread
from polytrain.maps import MapList
from polytrain.models import FittedModel, fitted_model, prediction_limits
from polytrain.rows import NumberTarget, Rows
from polytrain.rows.checking import to_rates, with_exposure
from polytrain.tensor import TensorTrain

__all__ = ["TensorTrainRegressor"]

# For the choice of maps, targets are clipped at this many spreads from their middle, because of outliers.
_LARGEST_GUIDE = 2.0
# A spread below this fraction of the largest distance means that most targets are equal.
_LEAST_SPREAD = 1e-6


class TensorTrainRegressor(RegressorMixin, TrainModel):
    """Regressor that predicts polynomials, or richer functions, of all features, kept as a tensor train.

    The prediction is a sum of products of functions of single features, whose exponentially many coefficients are kept
    as a product of small cores. Several targets are learned by one train each, on the same rows and maps. A target's
    weighted mean is subtracted before and added after learning (``intercept_``), so that regularisation pulls
    predictions towards the mean and not towards zero.

    With the defaults, everything is chosen from the training rows: which functions, how much they may vary, the
    regularisation and the ranks, see the page "Choosing settings". Parameters that you set are kept.

    Parameters
    ----------
    loss : {"squared", "absolute", "quantile", "huber", "poisson", "gamma"}, default="squared"
        The loss, which determines what is predicted: the mean ("squared"), the median ("absolute"), a ``quantile``, a
        mean that is robust to outliers ("huber"), or the mean of counts ("poisson") and of positive numbers
        ("gamma"); the trains then represent its logarithm.
    quantile : float, default=0.5
        Which quantile is predicted, for ``loss="quantile"``: 0.9 is exceeded by one target in ten.
    epsilon : float, default=1.35
        For ``loss="huber"``: errors above this many standard deviations count by their size instead of its square.
    calibration_fraction : float or None, default=None
        Fraction of the rows, such as 0.2, that is held out for `predict_interval`, whose coverage is then guaranteed;
        equal rows stay together. With None, intervals come from rows that were left out while the settings were
        chosen.
    clip : bool, default=True
        Whether to limit predictions to the range of the training targets, extended by a tenth at both ends. A warning
        is issued for rows whose predictions would be far outside.
    <parameters>

    Attributes
    ----------
    trains_ : list of TensorTrain
        The learned coefficients, one train per target, in terms of the functions of the maps, without ``intercept_``.
    intercept_ : float or ndarray of shape (n_outputs,)
        Weighted mean of each target.
    <attributes>

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
        calibration_fraction: float | None = None,
        clip: bool = True,
        basis: str | Sequence[str] = "auto",
        rank: str | int | Sequence[int] = "auto",
        alpha: str | float = "auto",
        bandwidth: str | float | None = "auto",
        relevance: Any = "auto",
        degree: int | Sequence[int] = 2,
        categorical_features: Any = "from_dtype",
        interaction_cst: Any = None,
        init: str | TensorTrain | Sequence[TensorTrain] | Sequence[NDArray] = "auto",
        solver: str = "auto",
        max_sweeps: str | int = "auto",
        tol: float = 1e-3,
        early_stopping: bool | float = False,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

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
            Validation rows that decide when to stop, whether ``early_stopping`` is set or not.

        Returns
        -------
        TensorTrainRegressor
            The fitted estimator.
        """
        y, sample_weight = self._with_offset(X, y, sample_weight, offset)
        y_val, sample_weight_val = self._with_offset(X_val, y_val, sample_weight_val, offset_val)
        self._fit(X, y, sample_weight, (X_val, y_val, sample_weight_val))
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
        forgetting: float = 0.0,
    ) -> TensorTrainRegressor:
        """Learn from one more block of rows.

        The first block is learned as by `fit`, which also chooses everything that is left open: maps with their
        ranges, ranks and regularisation. It should be typical; otherwise call `fit` with typical rows first. For every
        later block, the past is a quadratic around the last model.

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
            Maps for the first block, such as ``maps_`` of another model, instead of those that would be chosen.
        forgetting : float, default=0.0
            Fraction of the weight of all earlier rows, at least 0 and below 1, that is forgotten before this block.

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
        y, sample_weight = self._with_offset(X, y, sample_weight, offset)
        self._learn_block(X, y, sample_weight, maps, forgetting)
        return self

    def _block_targets(self) -> Sequence[NumberTarget]:
        shifts, sizes = self.model_.shift.tolist(), self.model_.size.tolist()
        if get_loss(self.loss).degree:
            return [NumberTarget(output, 1.0, *scale) for output, scale in enumerate(zip(shifts, sizes, strict=True))]
        return [NumberTarget(output, offset=shift) for output, shift in enumerate(shifts)]

    def _learning_loss(self) -> str:
        """Return the loss with its settings, as text."""
        check_choice("loss", self.loss, loss_names("regression"))
        check_between("quantile", self.quantile, 0.0, 1.0)
        check_between("epsilon", self.epsilon, 0.0, 1e30)
        return get_loss(self.loss).tuned(self.get_params(deep=False)).spec

    def _with_offset(self, X: Any, y: Any, sample_weight: Any, offset: Any, loss: str | None = None) -> tuple[Any, Any]:
        """Return targets and weights that have the same loss without an offset."""
        if offset is None:
            return y, sample_weight
        if y is None:
            raise ValueError(
                f"X is a {type(X).__name__} that yields its targets, so offset cannot be passed. Divide the "
                "targets by the exposure, and for loss='poisson' give exposures as weights."
            )
        return to_rates(get_loss(loss or self._learning_loss()), y, sample_weight, offset)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        known = isinstance(self.loss, str) and self.loss in loss_names("regression")
        tags.target_tags.positive_only = known and get_loss(self.loss).link == "log"
        return tags

    @property
    def intercept_(self) -> float | NDArray:
        """Best constant score: the weighted mean of the target, for the squared loss."""
        shift = self.model_.shift
        return float(shift[0]) if self.model_.one_output else shift

    def _goal(self, rows: Rows, loss: str) -> Goal:
        """Start every output at the best constant, and scale it to size one where the loss allows it."""
        target: Any = rows.summary.target  # never None for numbers
        kind, largest = get_loss(loss), target.largest
        ends: dict[str, Any] = {"one_output": target.one_output}
        if self.clip:
            ends["limits"] = prediction_limits(target.low, target.high)
        mean, spread = self._middle(rows, kind) if kind.needs_values else (target.mean, target.spread)
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
        """Return the best constant, and a spread that outliers do not change, of targets divided by the largest.

        Both are computed on the different rows of a sample.
        """
        sketch, most = rows.sketch, rows.summary.target.spread  # type: ignore[union-attr]
        values = sketch.sums / sketch.weights[:, None]
        mean = np.array([kind.start(column, sketch.weights) for column in values.T])
        spreads = [spread(column - centre, sketch.weights) for column, centre in zip(values.T, mean, strict=True)]
        return mean, np.where(np.array(spreads) > _LEAST_SPREAD * most, spreads, most)

    def predict(
        self, X: ArrayLike, return_std: bool = False, offset: ArrayLike | None = None
    ) -> NDArray | tuple[NDArray, NDArray]:
        """Return the prediction for every row, and its standard deviation if asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; values outside the training range are clipped to it, unless ``basis="power-unscaled"``.
        return_std : bool, default=False
            Whether to also return standard deviations.
        offset : array-like of shape (n_samples,), optional
            Logarithm of the exposure of every row, for "poisson" and "gamma".

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray of the same shape
            If ``return_std`` is True: standard deviations of the targets around the predictions. They combine noise,
            whose size is estimated on left-out rows and may depend on the row, with the uncertainty of the cores (a
            Laplace approximation), which is larger where there were few training rows.

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
        rates = self._ask(FittedModel.predict, X)
        predicted: NDArray = with_exposure(get_loss(self.model_.loss), rates, offset)
        return (predicted, self._ask(FittedModel.deviations, X)) if return_std else predicted

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.9, bounds: tuple[float | None, float | None] | None = None
    ) -> NDArray:
        """Return an interval around every prediction that holds the target with a given probability.

        An interval is the prediction plus and minus a multiple of its standard deviation, which depends on the
        prediction and on the row where errors of left-out rows do. The multiple is chosen so that enough *left-out*
        rows have their targets within their intervals: of n such rows, it is the ceil((n + 1) coverage)-th smallest
        multiple that a row needs.

        With ``calibration_fraction`` this is split conformal prediction: if training rows and a new row are
        exchangeable, of equal weight, and no two of them equal, then the target of the new row is in its interval with
        a probability of at least ``coverage``, on average over fits. For several outputs this holds for each.

        Without it, the rows were left out one by one or in one part while settings were chosen, and the final model has
        learned from them. These intervals are usually narrower, but without that guarantee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        coverage : float, default=0.9
            Probability, between 0 and 1.
        bounds : tuple of float or None, default=None
            Smallest and largest possible target, at which intervals are cut: (0, None) for prices. None means no bound.

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
        return self._ask(partial(FittedModel.intervals, coverage=level, bounds=check_bounds(bounds)), X)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> float:
        """Return the explained fraction of the targets' variance, or of their deviance for "poisson" and "gamma".

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
            1 for perfect predictions, 0 for the mean of the targets: R^2, or D^2 as for scikit-learn's generalised
            linear models.
        """
        loss = get_loss(fitted_model(self).loss)
        y, sample_weight = self._with_offset(X, y, sample_weight, offset, loss.spec)
        if loss.link != "log":
            return super().score(X, y, sample_weight)
        targets = np.asarray(y, dtype=np.float64)
        loss.check_target(targets)
        predicted = np.asarray(self.predict(X)).reshape(len(targets), -1)
        pairs = zip(targets.reshape(predicted.shape).T, predicted.T, strict=True)
        weights, power = check_weights(sample_weight, len(targets)), 1 if loss.name == "poisson" else 2
        return float(np.mean([d2_tweedie_score(*pair, sample_weight=weights, power=power) for pair in pairs]))
