"""Average fitted models into one: their trains are added, and the sum is rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, is_dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from polytrain.estimators._parameters import check_nonnegative
from polytrain.estimators._streaming import Stream
from polytrain.learning.losses import get_loss
from polytrain.models import FittedModel, fitted_model
from polytrain.progress import show
from polytrain.tensor import TensorTrain
from polytrain.texts import shown

__all__ = ["Merge", "average"]

# Smaller relative errors of coefficients are rounding errors.
_ROUNDING = 1e-12
_REMEDY = (
    "Only models of one kind, with the same functions of the same columns, can be averaged: fit one model, and the "
    "others as copies of it, copy.deepcopy(model).set_params(warm_start=True).fit(X, y)."
)


@dataclass(frozen=True)
class Merge:
    """Facts about an average of models.

    Attributes
    ----------
    weights : tuple of float
        Share of every model; they sum to 1.
    added_ranks : tuple of int
        Ranks of the sum before it was rounded, the largest of all trains.
    ranks : tuple of int
        Ranks after it.
    errors : tuple of float
        For every train, the norm of the coefficients that rounding cut off, relative to the norm of the sum.

    Examples
    --------
    >>> from polytrain.estimators.averaging import Merge
    >>> print(Merge((0.5, 0.5), (1, 8, 1), (1, 5, 1), (0.0007,)))
    the average of 2 models, rounded from ranks up to 8 to ranks up to 5, which cut off 0.07 % of the coefficients
    """

    weights: tuple[float, ...]
    added_ranks: tuple[int, ...]
    ranks: tuple[int, ...]
    errors: tuple[float, ...]

    @property
    def error(self) -> float:
        """The largest of ``errors``."""
        return max(self.errors)

    def __str__(self) -> str:
        most = "up to " if len(self.errors) > 1 else ""
        cut = f"{most}{100 * self.error:.2g} %" if self.error > _ROUNDING else "nothing"
        return (
            f"the average of {len(self.weights)} models, rounded from ranks up to {max(self.added_ranks)} to ranks up "
            f"to {max(self.ranks)}, which cut off {cut} of the coefficients"
        )


def average(
    models: Sequence[Any],
    weights: ArrayLike | None = None,
    *,
    tolerance: float = 1e-3,
    max_rank: int | None = None,
    verbose: int = 0,
) -> Any:
    """Merge fitted models into one that predicts their average.

    The scores are averaged: predictions of regressors, log-odds (or plain scores) of every train of classifiers. The
    average of trains is again a train, whose ranks are the sums of theirs; it is rounded to smaller ranks. The result
    is a fitted estimator like any other: it predicts as fast as one model of its ranks, and can be explained, saved
    and exported.

    Parameters
    ----------
    models : sequence of fitted TensorTrainRegressor or TensorTrainClassifier
        All of one class, with the same loss, labels and decision, and with equal maps: the same functions of the same
        columns. Copies of one model that were refitted with ``warm_start=True`` satisfy this.
    weights : array-like of shape (n_models,), optional
        Weights of the models, not negative; only their ratios matter. All are equal by default.
    tolerance : float, default=1e-3
        Allowed norm of the coefficients that rounding cuts off, relative to the norm of all of a train. 0 cuts off
        nothing but what is at the level of rounding errors. Models with ``interaction_cst`` are never rounded.
    max_rank : int, optional
        Largest rank. It takes precedence over ``tolerance``.
    verbose : int, default=0
        1 logs the size of what rounding cut off.

    Returns
    -------
    estimator
        Fitted, of the class and with the parameters of the first model. ``merge_`` is a `Merge`, which records what
        was cut off; ``choice_.reasons`` has this as text, also in model files. ``history_`` is empty; settings in
        ``plan_`` other than the ranks, and ``stop_reason_``, are those of the first model.

    Examples
    --------
    >>> from copy import deepcopy
    >>> import numpy as np
    >>> import polytrain
    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, size=(200, 3))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * generator.normal(size=200)
    >>> first = polytrain.TensorTrainRegressor(clip=False, random_state=0).fit(X, y)
    >>> halves = [deepcopy(first).set_params(warm_start=True).fit(X[half::2], y[half::2]) for half in (0, 1)]
    >>> merged = polytrain.average(halves)
    >>> mean = (halves[0].predict(X) + halves[1].predict(X)) / 2
    >>> bool(np.abs(merged.predict(X) - mean).max() < 0.01)
    True
    >>> merged.merge_.error <= 1e-3
    True
    """
    models = list(models)
    if not models:
        raise ValueError("models is empty; give at least one fitted model.")
    if any(isinstance(model, FittedModel) for model in models):
        raise TypeError("an average needs fitted estimators, not their model_.")
    fitted = [fitted_model(model, "an average") for model in models]
    _check_alike(models, fitted)
    tolerance = check_nonnegative("tolerance", tolerance)
    # Rounding would let columns interact that must not.
    is_constrained = any(model.interaction_cst is not None for model in models)
    averaged, merge = _merged(fitted, _shares(weights, len(fitted)), tolerance, max_rank, is_constrained)
    if int(verbose):
        show(f"merged: {merge}")
    first, weight = models[0], float(sum(model.stream_.seen for model in models))
    return clone(first)._keep(
        getattr(first, "feature_names_in_", None),
        model_=averaged,
        plan_=replace(first.plan_, rank=merge.ranks),
        choice_=replace(first.choice_, rank=max(merge.ranks), reasons=(str(merge),), tried=()),
        left_out_=None,
        stream_=Stream(weight, weight),
        history_=[],
        stop_reason_=first.stop_reason_,
        warnings_=tuple(dict.fromkeys(text for model in models for text in model.warnings_)),
        merge_=merge,
    )


def _shares(weights: ArrayLike | None, n_models: int) -> NDArray:
    """Return weights that sum to 1, (n_models,)."""
    given = np.ones(n_models) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (n_models,) or not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
        raise ValueError(
            f"weights must be {n_models} numbers, one per model: finite, not negative, and not all zero, got "
            f"{shown(weights)}."
        )
    given = given / given.max()  # sums of huge weights must not overflow
    return given / given.sum()


def _facts(model: Any, fitted: FittedModel) -> list[tuple[str, Any]]:
    """Properties that averaged models must share: the meaning of scores, and the functions of their trains."""
    classes, decision = fitted.classes, fitted.decision
    facts = {
        "kind": "regressor" if classes is None else "classifier",
        "loss": None if fitted.calibrated else _loss_name(fitted.loss),  # log-odds, whatever the loss was
        "calibration": fitted.calibrated,
        "number of outputs": None if fitted.one_output else fitted.n_trains,
        "classes": None if classes is None else classes.tolist(),
        "decision": None if decision is None else decision.name,
        "number of columns": fitted.n_columns,
        "names of columns": list(getattr(model, "feature_names_in_", ())) or None,
        "levels or types of columns": fitted.columns,
    }
    names = fitted.feature_names or range(fitted.n_features)
    return [*facts.items(), *zip([f"map of feature {name!r}" for name in names], fitted.maps, strict=True)]


def _check_alike(models: Sequence[Any], fitted: Sequence[FittedModel]) -> None:
    """Refuse models whose scores have different meanings, or whose trains have different functions."""
    for index in range(1, len(fitted)):
        pairs = zip(_facts(models[0], fitted[0]), _facts(models[index], fitted[index]), strict=True)
        for (what, wanted), (_, value) in pairs:
            if value != wanted:
                raise ValueError(
                    f"models[0] and models[{index}] differ in their {what}: {wanted!r:.200} and {value!r:.200}. "
                    f"{_REMEDY}"
                )


def _loss_name(spec: str) -> tuple[Any, ...]:
    """Return the name and the parameters of a loss, without the scale that suits the residuals of one fit."""
    loss = get_loss(spec)
    return loss.name, *(astuple(loss)[:-1] if is_dataclass(loss) else ())


def _merged(
    models: Sequence[FittedModel], shares: NDArray, tolerance: float, max_rank: int | None, exact: bool
) -> tuple[FittedModel, Merge]:
    """Return the weighted mean of all scores as one model, rounded unless it must be exact."""
    # In units of the first model: trains of classifiers that are not calibrated stay in units of 1, to the last bit.
    factors = [share * model.size / models[0].size for share, model in zip(shares.tolist(), models, strict=True)]
    trains, errors, added = [], [], []
    for index in range(models[0].n_trains):
        parts = (TensorTrain(model.cores[index]) * factor[index] for model, factor in zip(models, factors, strict=True))
        total = reduce(add, parts)
        rounded = total if exact else total.round(tolerance, max_rank)
        errors.append((total - rounded).norm() / (total.norm() or 1.0))
        added.append(total.ranks)
        trains.append(rounded)
    shift = shares @ np.array([model.shift for model in models])
    low, high = zip(*(model.limits for model in models), strict=True)
    limits = np.array([np.min(low, axis=0), np.max(high, axis=0)])
    ranks = tuple(np.max([train.ranks for train in trains], axis=0).tolist())
    merge = Merge(tuple(shares.tolist()), tuple(np.max(added, axis=0).tolist()), ranks, tuple(errors))
    return replace(models[0].with_trains([train.cores for train in trains]), shift=shift, limits=limits), merge
