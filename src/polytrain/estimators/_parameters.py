"""Check constructor parameters, once, at the edge. Errors name the thing, its value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Wishes
from polytrain.learning.core_solvers import SOLVERS
from polytrain.learning.losses import get_loss, loss_names
from polytrain.maps import basis_names
from polytrain.rows.opening import check_bytes
from polytrain.tensor import TensorTrain

__all__ = [
    "check_between",
    "check_choice",
    "check_count",
    "check_loss",
    "check_map_parameters",
    "check_nonnegative",
    "given_starts",
    "make_wishes",
]

_INITS = ("auto", "linear", "random", "dual")
_WRONG_INIT = f"init must be one of {list(_INITS)}, a TensorTrain or a list of them, got {{!r}}."
_SCALES = ("minmax", None)
_SAMPLINGS = ("auto", None)


def check_count(name: str, value: Any, least: int) -> int:
    """Return ``value`` as an int of at least ``least``."""
    if type(value) is int and value >= least:  # nearly always: the checks below take a while for a million columns
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {kind}, got {value!r}.")
    return int(value)


def check_nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float that is not negative."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number that is not negative, got {value!r}.")
    return float(value)


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return ``value`` as a float between two others."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not low < float(value) < high:
        raise ValueError(f"{name} must be a number between {low:g} and {high:g}, got {value!r}.")
    return float(value)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _per_feature(name: str, given: Any, n_features: int) -> list[Any]:
    """One entry per feature, of a sequence or of a single value for all."""
    if not _is_sequence(given):
        return [given] * n_features
    if len(given) != n_features:
        noun = "integer" if name == "degree" else "name"
        raise ValueError(
            f"{name} has {len(given)} entries but X has {n_features} features; "
            f"give one {name} per feature, or a single {noun} for all."
        )
    return list(given)


def check_map_parameters(
    parameters: dict[str, Any], n_features: int, is_category: NDArray | None = None
) -> tuple[list[int], list[str]]:
    """Return degree and basis of every column; categories have a basis of their own, unless each column is named."""
    check_choice("scale", parameters["scale"], _SCALES)
    degree = parameters["degree"]
    if _is_sequence(degree):
        listed = _per_feature("degree", degree, n_features)
        degrees = [check_count(f"degree[{k}]", entry, 1) for k, entry in enumerate(listed)]
    else:
        degrees = [check_count("degree", degree, 1)] * n_features
    bandwidth = parameters["bandwidth"]
    is_number = isinstance(bandwidth, Real) and not isinstance(bandwidth, bool | np.bool_)
    if not (bandwidth is None or _is_auto(bandwidth) or (is_number and 0 < float(bandwidth) < 1e6)):
        raise ValueError(f"bandwidth must be 'auto', a positive number, no more than 1e6, or None, got {bandwidth!r}.")
    bases = _per_feature("basis", parameters["basis"], n_features)
    several = _is_sequence(parameters["basis"])
    for basis in bases if several else bases[:1]:
        check_choice("basis", basis, ["auto", *basis_names()])
    if is_category is not None and not several:
        bases = ["category" if known else basis for basis, known in zip(bases, is_category, strict=True)]
    return degrees, bases


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _check_ranks(rank: Any, n_features: int) -> Any:
    """Return "auto", or one rank, or those of all bonds."""
    if _is_auto(rank):
        return rank
    if not _is_sequence(rank):
        return check_count("rank", rank, 1)
    if len(rank) != n_features - 1:
        raise ValueError(
            f"rank has {len(rank)} entries but {n_features} features have {n_features - 1} bonds between them; "
            "give one rank per bond, or a single integer for all."
        )
    return [check_count(f"rank[{k}]", value, 1) for k, value in enumerate(rank)]


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a value that is not one of the named choices."""
    if isinstance(value, str | type(None)) and value in choices:
        return
    raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")


def check_loss(loss: Any, task: str, parameters: dict[str, Any] | None = None) -> str:
    """Return the ``spec`` of a loss that is there for this task, with what an estimator's parameters say about it."""
    if not isinstance(loss, str):
        raise ValueError(f"loss must be a name such as {' or '.join(map(repr, loss_names(task)))}, got {loss!r}.")
    if loss not in loss_names(task):
        raise ValueError(f"loss must be one of {sorted(loss_names(task))}, got {loss!r}.")
    return get_loss(loss).tuned(parameters or {}).spec


def make_wishes(
    parameters: dict[str, Any],
    n_features: int,
    loss: str,
    alpha: Any,
    is_category: NDArray | None = None,
    stops_early: bool = False,
    joint: bool = False,
) -> Wishes:
    """Check an estimator's parameters and say what is wanted, and what is left open."""
    degrees, bases = check_map_parameters(parameters, n_features, is_category)
    check_choice("solver", parameters["solver"], SOLVERS)
    check_bytes("max_memory", parameters["max_memory"])
    check_choice("sampling", parameters["sampling"], _SAMPLINGS)
    check_count(
        "verbose", int(parameters["verbose"]) if isinstance(parameters["verbose"], bool) else parameters["verbose"], 0
    )
    if isinstance(parameters["init"], str):
        check_choice("init", parameters["init"], _INITS)
    elif not isinstance(parameters["init"], TensorTrain) and not _is_sequence(parameters["init"]):
        raise ValueError(_WRONG_INIT.format(parameters["init"]))
    sweeps, bandwidth = parameters["max_sweeps"], parameters["bandwidth"]
    patience = check_count("n_iter_no_change", parameters.get("n_iter_no_change", 1), 1)
    return Wishes(
        bases=bases,
        degrees=degrees,
        scale=parameters["scale"],
        bandwidth=bandwidth if bandwidth is None or _is_auto(bandwidth) else float(bandwidth),
        alpha=alpha if _is_auto(alpha) else check_nonnegative("alpha", alpha),
        rank=_check_ranks(parameters["rank"], n_features),
        init=parameters["init"] if isinstance(parameters["init"], str) else "given",
        max_sweeps=sweeps if _is_auto(sweeps) else check_count("max_sweeps", sweeps, 0),
        loss=loss,
        solver=parameters["solver"],
        tol=check_nonnegative("tol", parameters["tol"]),
        sampling=parameters["sampling"],
        patience=patience if stops_early else 0,
        joint=joint,
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
        raise ValueError(_WRONG_INIT.format(init))
    if len(init) != n_trains:
        raise ValueError(f"init has {len(init)} trains but this fit learns {n_trains}; give one train for each.")
    for index, train in enumerate(init):
        if not isinstance(train, TensorTrain) and not _is_sequence(train):
            raise ValueError(f"init[{index}] must be a TensorTrain or a list of cores, got {train!r}.")
        if not isinstance(train, TensorTrain) and len(train) != len(dims):
            raise ValueError(f"init[{index}] has {len(train)} cores but there are {len(dims)} features; give one each.")
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
