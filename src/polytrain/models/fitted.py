"""The fitted model: one immutable object that predictions, explanations, exports and model files read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from polytrain.arrays import Array
from polytrain.checks import COMPUTE_DTYPES, check_columns, dense, validate_rows, warn_of_data
from polytrain.columns import Columns
from polytrain.decisions import Decision, Softmax
from polytrain.learning.losses import get_loss
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import CategoryMap, MapList
from polytrain.tensor import TensorTrain
from polytrain.tensor.stack import TrainStack
from polytrain.uncertainty import Uncertainty

# Scores that are turned into predictions at once: pairs of classes need ten times their memory temporarily.
_MOST_SCORES = 1 << 18
# Predictions go beyond the range of the training targets by at most this part of it.
_BEYOND = 0.1
# A warning is issued for predictions farther beyond the limits than this fraction of the distance between these.
_FAR = 0.5
# Rows outside of the training range are warned of if in some column more than this part of them are farther beyond it
# than `_FAR` of its width, or this part and number of them are beyond it at all. Float32 is no reason for a warning.
_FAR_SHARE, _OUTSIDE_SHARE, _LEAST_OUTSIDE, _ROUNDING = 0.05, 0.25, 20, 1e-6
# At most this many rows decide about it.
_RANGE_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Maps, trains, and the rules that turn scores into predictions. Immutable.

    Attributes
    ----------
    loss : str
        Name of the loss that the trains were learned with.
    maps : MapList
        One per column.
    cores : tuple of tuples of ndarray
        Every train as it was learned, for targets without ``shift`` and divided by ``size``. All arrays are read-only:
        given arrays are copied unless they are read-only.
    shift, size : ndarray of shape (n_trains,)
        A score is ``size * value of the train + shift``: zeros and ones for classifiers that are not calibrated.
    decision, classes : Decision and ndarray, or None
        The rule that turns scores into classes, and their labels; None for regressors.
    feature_names : tuple of str, or None
        Names of the columns, where they had any.
    one_output : bool
        Whether there is one number or label per row rather than a row of them.
    calibrated : bool
        Whether ``shift`` and ``size`` make log-odds of the scores of a classifier, whatever its loss.
    columns : Columns or None
        The encoding of the columns of a table as features, if these are not the columns themselves.
    uncertainty : Uncertainty or None
        Uncertainty of the predictions of a regressor, if known.
    limits : ndarray of shape (2, n_trains)
        Smallest and largest prediction of each output of a regressor; infinite for no limits.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> X = np.linspace(-1, 1, 50).reshape(-1, 1)
    >>> model = TensorTrainRegressor(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X, X[:, 0] ** 2).model_
    >>> model.maps
    MapList([PolynomialMap(basis='power', n=3, low=-1.0, high=1.0)])
    >>> model.scores(X).shape
    (1, 50)
    """

    loss: str
    maps: MapList
    cores: Sequence[Sequence[Array]]
    shift: Array = field(default_factory=lambda: np.zeros(1))
    size: Array = field(default_factory=lambda: np.ones(1))
    decision: Decision | None = None
    classes: Array | None = None
    feature_names: Sequence[str] | None = None
    one_output: bool = True
    calibrated: bool = False
    columns: Columns | None = None
    uncertainty: Uncertainty | None = None
    limits: Array = field(default_factory=lambda: np.array([[-np.inf], [np.inf]]))

    def __post_init__(self) -> None:
        cores = tuple(tuple(_frozen(core, np.float64) for core in train) for train in self.cores)
        classes = None if self.classes is None else _frozen(self.classes, self.classes.dtype)
        names = None if self.feature_names is None else tuple(map(str, self.feature_names))
        vars(self).update(cores=cores, classes=classes, feature_names=names)
        for name, shape in (("shift", len(cores)), ("size", len(cores)), ("limits", (2, len(cores)))):
            vars(self)[name] = _frozen(np.broadcast_to(getattr(self, name), shape).copy(), np.float64)

    def with_trains(self, trains: Sequence[Sequence[Array]]) -> FittedModel:
        """Return the same model with other trains, given by their cores, for targets divided by ``size``."""
        return replace(self, cores=trains, uncertainty=None)

    def with_targets(self, y: Array) -> FittedModel:
        """Return the same model with limits that also suit these training targets, (N,) or (N, outputs)."""
        low, high = prediction_limits(y.min(axis=0), y.max(axis=0))
        return replace(self, limits=np.array([np.minimum(self.limits[0], low), np.maximum(self.limits[1], high)]))

    def widened(self) -> FittedModel:
        """Return the same model with cores for the columns that its trains have left out."""
        if self.maps.whole is self.maps:
            return self
        cores = [self.maps.widened(train, pass_by) for train in self.cores]
        uncertainty = None if self.uncertainty is None else self.uncertainty.widened(self.maps)
        return replace(self, maps=self.maps.whole, cores=cores, uncertainty=uncertainty)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickles do not keep arrays read-only, and need not keep the caches.
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    @property
    def estimator_name(self) -> str:
        """Name of the estimator class that has such a model."""
        return "TensorTrainRegressor" if self.classes is None else "TensorTrainClassifier"

    @property
    def n_features(self) -> int:
        """Number of features: one per map."""
        return len(self.maps)

    @property
    def n_trains(self) -> int:
        """Number of trains."""
        return len(self.cores)

    @property
    def n_parameters(self) -> int:
        """Numbers in all cores."""
        return sum(core.size for train in self.cores for core in train)

    @cached_property
    def trains(self) -> tuple[TensorTrain, ...]:
        """The trains in the units of the target, without ``shift``."""
        with np.errstate(over="ignore"):
            trains = zip(self.size.tolist(), self.cores, strict=True)
            return tuple(TensorTrain([size * first, *others]) for size, (first, *others) in trains)

    @cached_property
    def train_names(self) -> tuple[str, ...]:
        """Meaning of a high score of each train."""
        if self.classes is not None and self.decision is not None:
            return self.decision.train_names([str(label) for label in self.classes])
        if self.one_output:
            return ("prediction",)
        return tuple(f"output {index}" for index in range(self.n_trains))

    @property
    def link(self) -> str:
        """Link of the scores: "identity", "log", "logit" or "softmax"."""
        if self.classes is not None and isinstance(self.decision, Softmax) and self.has_probabilities:
            return "softmax"
        return "logit" if self.has_probabilities else get_loss(self.loss).link

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores are log-odds of classes."""
        return self.classes is not None and (self.calibrated or get_loss(self.loss).link == "logit")

    @property
    def rescales(self) -> bool:
        """Whether ``size`` and ``shift`` change the values of trains."""
        return self.classes is None or self.calibrated

    @property
    def is_limited(self) -> bool:
        """Whether predictions have limits."""
        return bool(np.isfinite(self.limits).all())

    @property
    def n_columns(self) -> int:
        """Number of columns of raw rows."""
        return self.n_features if self.columns is None else self.columns.n_columns

    @property
    def takes_missing(self) -> bool:
        """Whether some map takes missing values."""
        return any(feature_map.takes_missing for feature_map in self.maps)

    def encode(self, X: Any, estimator: Any) -> Array:
        """Check raw rows (N, n_columns) for ``estimator`` and return their features (N, n_features), float64 or 32.

        This is the only way from raw rows to the checked rows that all other methods take. Their numbers and names of
        columns are compared with those of the estimator. NaN is only in columns whose maps take missing values.
        """
        rows: Array
        X = dense(X)
        if self.columns is None:
            accepted = "allow-nan" if self.takes_missing else True
            rows = validate_rows(estimator, X, reset=False, ensure_all_finite=accepted)
        else:
            check_columns(estimator, X)
            rows = check_array(self.columns.encode(X), dtype=COMPUTE_DTYPES, ensure_all_finite="allow-nan")
        for k in np.flatnonzero(np.isnan(rows.min(axis=0))).tolist():
            if not self.maps[k].takes_missing:
                name = k if self.feature_names is None else repr(self.feature_names[k])
                raise ValueError(f"X contains NaN in feature {name}, which had none in training. Impute.")
        return rows

    def warn_of_range(self, X: Array) -> bool:
        """Warn if many checked rows (N, d) lie outside the training range, or some far outside; return whether."""
        some = X[:: 1 + len(X) // _RANGE_ROWS]
        with np.errstate(over="ignore"):
            low, high = self._ranges.astype(X.dtype)
            reach = _FAR * high - _FAR * low
            beyond, far = (np.count_nonzero((some < low - r) | (some > high + r), axis=0) for r in (0.0, reach))
        n_rows, k = len(some), int(np.argmax(beyond + far))
        if far.max() <= _FAR_SHARE * n_rows and beyond.max() <= max(_OUTSIDE_SHARE * n_rows, _LEAST_OUTSIDE):
            return False
        outside, values = (low > X) | (high < X), X[:, k]
        name = k if self.feature_names is None else repr(self.feature_names[k])
        warn_of_data(
            f"{outside.any(axis=1).sum()} of {len(X)} rows lie outside the range of the training rows, most often "
            f"in column {name}: {outside[:, k].sum()} rows, with values from {np.nanmin(values):.4g} to "
            f"{np.nanmax(values):.4g}, in training {low[k]:.4g} to {high[k]:.4g}. Such values are clipped to that "
            "range. Check units, or train on rows like these."
        )
        return True

    @cached_property
    def _ranges(self) -> Array:
        """Range of every column of numbers that the model depends on, (2, d), a little wider; infinite for others."""
        ranges = [m.range if m.n > 1 and not isinstance(m, CategoryMap) else None for m in self.maps]
        low, high = np.array([one if one and one[0] < one[1] else (-np.inf, np.inf) for one in ranges]).T
        slack = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
        with np.errstate(over="ignore"):
            return np.array([low - slack, high + slack])

    @cached_property
    def _stack(self) -> TrainStack:
        # The trains as they were learned: in the units of the target they might overflow float32.
        functions, knots = ([getattr(one, name) for one in self.maps] for name in ("values", "knots"))
        return TrainStack(self.cores, functions, knots)

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values of all trains, as they were learned, on checked rows X (N, d), shape (n_trains, N), float64."""
        with one_blas_thread():
            values = self._stack.evaluate(X, self.maps.place, n_threads)
        return values.astype(np.float64, copy=False)

    def scores(self, X: Array, n_threads: int = 1) -> Array:
        """Scores of all trains on checked rows X (N, d), shape (n_trains, N), float64."""
        return self.scaled(self.values(X, n_threads))

    def scaled(self, values: Array) -> Array:
        """Turn values of all trains into scores, (n_trains, N), in place."""
        if self.rescales:
            values *= self.size[:, None]
            values += self.shift[:, None]
        return values

    def decide(self, X: Array, n_threads: int = 1) -> Array:
        """Results of ``decision_function`` for checked rows."""
        return self._answer(lambda scores: self._decision.decide(scores, self._n_classes), X, n_threads)

    def predict(self, X: Array, n_threads: int = 1) -> Array:
        """Labels (N,), numbers (N,), or numbers or indicators of labels (N, n_outputs) of checked rows."""
        n_far: list[int] = []
        answer = self._answer(partial(self._limited, n_far) if self.is_limited else self._predicted, X, n_threads)
        if n_far:
            warn_of_data(
                f"{sum(n_far)} predictions were far beyond the training targets and are clipped: these rows differ "
                "from the training rows. Check them; clip=False does not limit predictions."
            )
        return answer

    def _limited(self, n_far: list[int], scores: Array) -> Array:
        low, high = self.limits
        predicted = self._predicted(scores)
        if ((predicted >= low) & (predicted <= high)).all():
            return predicted
        limited: Array = np.clip(predicted, low, high)
        with np.errstate(over="ignore", invalid="ignore"):
            is_far = np.abs(predicted - limited) > _FAR * (high - low)
        if (is_far & (low < high)).any():
            n_far.append(int(np.count_nonzero(is_far)))
        return limited

    def _predicted(self, scores: Array) -> Array:
        if self.classes is not None:
            labels: Array = self.classes[self._decision.choose(self._decision.decide(scores, self._n_classes))]
            return labels
        with np.errstate(over="ignore"):
            numbers = get_loss(self.loss).mean(scores)
        return numbers[0] if self.one_output else np.ascontiguousarray(numbers.T)

    def numbers(self, scores: Array) -> Array:
        """Numbers (N,) or (N, n_outputs) for the scores (n_trains, N) of a regressor, within its limits."""
        limited: Array = np.clip(self._predicted(scores), *self.limits)
        return limited

    def deviations(self, X: Array, n_threads: int = 1) -> Array:
        """Standard deviations of checked rows, shaped like predictions."""
        uncertainty = self._uncertainty
        noise = np.sqrt([train.noise for train in uncertainty.trains])
        widths = uncertainty.widths(self.values(X, n_threads), self.cores, self.maps, X)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._predicted((self.size * noise)[:, None] * widths)

    def intervals(
        self, X: Array, n_threads: int = 1, *, coverage: float, bounds: tuple[float, float] = (-np.inf, np.inf)
    ) -> Array:
        """Intervals within bounds with this share of the targets of similar rows: (N, 2), or (N, outputs, 2)."""
        (reach,) = self.half_widths(X, [coverage])
        with np.errstate(over="ignore", invalid="ignore"):
            centre = self.predict(X, n_threads)
            ends: Array = np.clip(np.stack([centre - reach, centre + reach], axis=-1), *bounds)
        return ends

    def half_widths(self, X: Array, coverages: Sequence[float]) -> Iterator[Array]:
        """Yield half of the widths of intervals for checked rows, shaped like predictions, for each coverage."""
        uncertainty = self._uncertainty
        widths = uncertainty.widths(self.values(X), self.cores, self.maps, X)
        for coverage in coverages:
            bounds = np.array([train.left_out.bound(coverage) for train in uncertainty.trains])
            with np.errstate(over="ignore", invalid="ignore"):
                yield self._predicted((self.size * bounds)[:, None] * widths)

    @property
    def _uncertainty(self) -> Uncertainty:
        loss = get_loss(self.loss)
        if not loss.has_noise:
            raise ValueError(
                f"loss={loss.name!r} gives no standard deviations or intervals: errors differ in kind. Use "
                "loss='squared', or one model with loss='quantile' for each end of an interval."
            )
        if self.uncertainty is None:
            raise ValueError(
                "the uncertainty of this model is not known: it is an average, has learned by partial_fit, or had all "
                "settings given. Fit TensorTrainRegressor with calibration_fraction=0.2, or leave alpha at 'auto'."
            )
        return self.uncertainty

    def probabilities(self, X: Array, n_threads: int = 1) -> Array:
        """Probabilities (N, m) of checked rows."""
        return self._answer(lambda scores: self._decision.probabilities(scores, self._n_classes), X, n_threads)

    def log_probabilities(self, X: Array, n_threads: int = 1) -> Array:
        """Log-probabilities (N, m) of checked rows."""
        return self._answer(lambda scores: self._decision.log_probabilities(scores, self._n_classes), X, n_threads)

    def _answer(self, function: Callable[[Array], Array], X: Array, n_threads: int) -> Array:
        """Apply a function, scores (n_trains, rows) -> one entry or line per row, to pieces of the rows in turn.

        The scores of many trains, and what decisions make of them, take much more memory than the answer.
        """
        block = self._stack.block_rows()  # pieces of whole blocks: what is computed does not depend on the cuts
        size = block * max(n_threads, _MOST_SCORES // (block * max(self.n_trains, self._n_classes)), 1)
        with one_blas_thread():
            first = function(self.scores(X[:size], n_threads))
            if len(X) <= size:
                return first
            answer = np.empty((len(X), *first.shape[1:]), dtype=first.dtype)
            answer[:size] = first
            for start in range(size, len(X), size):
                rows = slice(start, start + size)
                answer[rows] = function(self.scores(X[rows], n_threads))
        return answer

    @property
    def _decision(self) -> Decision:
        if self.decision is None:
            raise TypeError("a regressor has no decision.")
        return self.decision

    @property
    def _n_classes(self) -> int:
        return 0 if self.classes is None else len(self.classes)


def prediction_limits(low: Array, high: Array) -> Array:
    """Limits of predictions, (2, outputs), for training targets in this range."""
    beyond, most = _BEYOND * high - _BEYOND * low, np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        limits: Array = np.clip([low - beyond, high + beyond], -most, most)
    return limits


def pass_by(before: Array | None) -> Array:
    """Return the core of a column that is not needed, given the core before it."""
    rank = 1 if before is None else before.shape[2]
    return np.eye(rank)[:, None]


def _frozen(array: Array, dtype: Any) -> Array:
    """Return a contiguous read-only array: a copy, unless it is one already."""
    if not array.flags.writeable and array.flags.c_contiguous and array.dtype == dtype:
        return array
    copy = np.array(array, dtype=dtype, order="C")
    copy.setflags(write=False)
    return copy


def fitted_model(estimator: Any, what: str = "this") -> FittedModel:
    """Return the fitted model of an estimator, or raise an error if there is none."""
    if isinstance(estimator, FittedModel):
        return estimator
    if not hasattr(type(estimator), "trains_"):
        raise TypeError(
            f"{what} needs a fitted TensorTrainClassifier or TensorTrainRegressor, got {type(estimator).__name__}. "
            "Of a pipeline, pass the last step, such as model[-1]."
        )
    check_is_fitted(estimator, "model_")
    model: FittedModel = estimator.model_
    return model
