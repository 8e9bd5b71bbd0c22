"""Check constructor parameters and weights, once, at the edge. Errors name the thing, its value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import BASES
from polytrain.learning.core_solvers import SOLVERS
from polytrain.learning.losses import get_loss
from polytrain.learning.trainer import TrainPlan
from polytrain.tensor import TensorTrain, clip_ranks

__all__ = ["check_choice", "check_count", "check_nonnegative", "check_weights", "given_starts", "make_plan"]

_INITS = ("linear", "random")
_SCALES = ("minmax", None)
_SAMPLINGS = ("auto", None)


def check_count(name: str, value: Any, least: int) -> int:
    """Return ``value`` as an int of at least ``least``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {kind}, got {value!r}.")
    return int(value)


def check_nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float that is not negative."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number that is not negative, got {value!r}.")
    return float(value)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _check_degrees(degree: Any, n_features: int) -> tuple[int, ...]:
    """Basis functions per feature, degree + 1."""
    if not _is_sequence(degree):
        return (check_count("degree", degree, 1) + 1,) * n_features
    if len(degree) != n_features:
        raise ValueError(
            f"degree has {len(degree)} entries but X has {n_features} features; "
            "give one degree per feature, or a single integer for all."
        )
    return tuple(check_count(f"degree[{k}]", value, 1) + 1 for k, value in enumerate(degree))


def _check_ranks(rank: Any, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Ranks of all bonds, cut to what the dimensions allow."""
    if not _is_sequence(rank):
        return clip_ranks(dims, check_count("rank", rank, 1))
    if len(rank) != len(dims) - 1:
        raise ValueError(
            f"rank has {len(rank)} entries but {len(dims)} features have {len(dims) - 1} bonds between them; "
            "give one rank per bond, or a single integer for all."
        )
    return clip_ranks(dims, [check_count(f"rank[{k}]", value, 1) for k, value in enumerate(rank)])


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a value that is not one of the named choices."""
    if isinstance(value, str | type(None)) and value in choices:
        return
    raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")


def make_plan(parameters: dict[str, Any], loss: str, alpha: Any, n_features: int) -> TrainPlan:
    """Check an estimator's parameters against the data's width and say what is to be learned."""
    dims = _check_degrees(parameters["degree"], n_features)
    check_choice("solver", parameters["solver"], SOLVERS)
    check_choice("scale", parameters["scale"], _SCALES)
    check_choice("sampling", parameters["sampling"], _SAMPLINGS)
    check_choice("basis", parameters["basis"], BASES)
    check_count(
        "verbose", int(parameters["verbose"]) if isinstance(parameters["verbose"], bool) else parameters["verbose"], 0
    )
    if isinstance(parameters["init"], str):
        check_choice("init", parameters["init"], _INITS)
    if not isinstance(loss, str):
        raise ValueError(f"loss must be a name such as 'logistic' or 'squared', got {loss!r}.")
    return TrainPlan(
        loss=get_loss(loss).name,
        basis=parameters["basis"],
        dims=dims,
        ranks=_check_ranks(parameters["rank"], dims),
        alpha=check_nonnegative("alpha", alpha),
        init=parameters["init"] if isinstance(parameters["init"], str) else "given",
        solver=parameters["solver"],
        max_sweeps=check_count("max_sweeps", parameters["max_sweeps"], 0),
        tol=check_nonnegative("tol", parameters["tol"]),
        sampling=parameters["sampling"],
    )


def given_starts(init: Any, n_trains: int, dims: tuple[int, ...]) -> list[Sequence[NDArray]]:
    """Turn ``init`` into one list of cores per train.

    For one train, a TensorTrain or its list of cores will do; for several, a list with one of these per train.
    """
    if isinstance(init, TensorTrain) or (
        _is_sequence(init) and len(init) and all(isinstance(core, np.ndarray) and core.ndim == 3 for core in init)
    ):
        init = [init]
    if not _is_sequence(init):
        raise ValueError(f"init must be one of {list(_INITS)}, a TensorTrain or a list of them, got {init!r}.")
    if len(init) != n_trains:
        raise ValueError(f"init has {len(init)} trains but this fit learns {n_trains}; give one train for each.")
    for index, train in enumerate(init):
        if not isinstance(train, TensorTrain) and not _is_sequence(train):
            raise ValueError(f"init[{index}] must be a TensorTrain or a list of cores, got {train!r}.")
    trains = [train if isinstance(train, TensorTrain) else TensorTrain(train) for train in init]
    for index, train in enumerate(trains):
        if train.dims != dims:
            raise ValueError(
                f"init[{index}] has dimensions {train.dims} but degree asks for {dims}; "
                "a start needs degree + 1 basis functions for every feature."
            )
        if not all(np.isfinite(core).all() for core in train.cores):
            raise ValueError(f"init[{index}] contains NaN or infinity; a start needs finite cores.")
    return [train.cores for train in trains]


def check_weights(sample_weight: Any, n_rows: int) -> NDArray:
    """Return weights as float64 of shape (N,): finite, not negative, not all zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be numbers, one per row: {error}.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one weight for each of the {n_rows} rows."
        )
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity; every weight must be a finite number.")
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative, got a least weight of {weights.min()}.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one row needs a positive weight.")
    return weights / weights.max()  # only ratios matter, and sums of huge weights must not overflow
