"""Check constructor parameters, once, at the edge. Errors name the thing, its value and the remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Settings
from polytrain.learning.core_solvers import SOLVERS
from polytrain.learning.losses import get_loss, loss_names
from polytrain.maps import basis_names
from polytrain.rows.checking import check_bytes
from polytrain.tensor import TensorTrain

__all__ = [
    "check_between",
    "check_choice",
    "check_count",
    "check_loss",
    "check_map_parameters",
    "check_nonnegative",
    "check_parameters",
    "given_starts",
    "make_settings",
    "shown",
]

_INITS = ("auto", "linear", "random", "dual")
_WRONG_INIT = f"init must be one of {list(_INITS)}, a TensorTrain or a list of them, got {{}}."
_SCALES = ("minmax", None)
_SAMPLINGS = ("auto", None)
# Polynomials of a higher degree are rounding errors, and their values would fill the memory.
_MOST_DEGREE = 1000


def shown(value: Any) -> str:
    """A value as it stands in a message: on one line, and not at full length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _number(value: Any) -> float:
    """The value as a float; NaN for what is not a number, and infinity for what is too large for a float."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def check_count(name: str, value: Any, least: int, also: str = "") -> int:
    """Return ``value`` as an int of at least ``least``; ``also`` says what else would do."""
    if type(value) is int and value >= least:  # nearly always: the checks below take a while for a million columns
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {also}{kind}, got {shown(value)}.")
    return int(value)


def check_nonnegative(name: str, value: Any, also: str = "") -> float:
    """Return ``value`` as a finite float that is not negative; ``also`` says what else would do."""
    if not 0 <= _number(value) < np.inf:
        raise ValueError(f"{name} must be {also}a finite number that is not negative, got {shown(value)}.")
    return float(value)


def check_between(name: str, value: Any, low: float, high: float, also: str = "") -> float:
    """Return ``value`` as a float between two others; ``also`` says what else would do."""
    if not low < _number(value) < high:
        raise ValueError(f"{name} must be {also}a number between {low:g} and {high:g}, got {shown(value)}.")
    return float(value)


def _is_sequence(value: Any) -> bool:
    return (
        isinstance(value, Sequence | np.ndarray)
        and not isinstance(value, str | bytes)
        and getattr(value, "ndim", 1) > 0
    )


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
        degrees = [check_count("degree", degree, 1, "a list with one degree per feature, or ")] * n_features
    if max(degrees) > _MOST_DEGREE:
        raise ValueError(f"degree must be at most {_MOST_DEGREE}, got {shown(degree)}.")
    bandwidth = parameters["bandwidth"]
    if not (bandwidth is None or _is_auto(bandwidth)):
        check_between("bandwidth", bandwidth, 0.0, 1e6, "'auto', None or ")
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
        return check_count("rank", rank, 1, "'auto', a list with one rank per bond, or ")
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
    raise ValueError(f"{name} must be one of {list(choices)}, got {shown(value)}.")


def check_loss(loss: Any, task: str, parameters: dict[str, Any] | None = None) -> str:
    """Return the ``spec`` of a loss that is there for this task, with what an estimator's parameters say about it."""
    check_choice("loss", loss, loss_names(task))
    return get_loss(loss).tuned(parameters or {}).spec


def make_settings(
    parameters: dict[str, Any],
    n_features: int,
    loss: str,
    alpha: Any,
    is_category: NDArray | None = None,
    stops_early: bool = False,
    joint: bool = False,
) -> Settings:
    """Check an estimator's parameters and say what is wanted, and what is left open."""
    degrees, bases = check_map_parameters(parameters, n_features, is_category)
    check_choice("solver", parameters["solver"], SOLVERS)
    check_bytes("max_memory", parameters["max_memory"])
    check_choice("sampling", parameters["sampling"], _SAMPLINGS)
    if isinstance(parameters["init"], str):
        check_choice("init", parameters["init"], _INITS)
    elif not isinstance(parameters["init"], TensorTrain) and not (
        _is_sequence(parameters["init"])
        and len(parameters["init"])
        and all(isinstance(train, TensorTrain) or _is_sequence(train) for train in parameters["init"])
    ):
        raise ValueError(_WRONG_INIT.format(shown(parameters["init"])))
    sweeps, bandwidth = parameters["max_sweeps"], parameters["bandwidth"]
    patience = check_count("n_iter_no_change", parameters.get("n_iter_no_change", 1), 1)
    return Settings(
        bases=bases,
        degrees=degrees,
        scale=parameters["scale"],
        bandwidth=bandwidth if bandwidth is None or _is_auto(bandwidth) else float(bandwidth),
        alpha=alpha if _is_auto(alpha) else check_nonnegative("alpha", alpha, "'auto' or "),
        rank=_check_ranks(parameters["rank"], n_features),
        init=parameters["init"] if isinstance(parameters["init"], str) else "given",
        max_sweeps=sweeps if _is_auto(sweeps) else check_count("max_sweeps", sweeps, 0, "'auto' or "),
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
        raise ValueError(_WRONG_INIT.format(shown(init)))
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


def check_parameters(parameters: dict[str, Any]) -> None:
    """Check the parameters that are not about rows, whether they matter for this fit or not."""
    for name, check in _CHECKS.items():
        if name in parameters:
            check(name, parameters[name])


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, np.bool_ | Integral) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")


def _check_verbose(name: str, value: Any) -> None:
    check_count(name, int(value) if isinstance(value, bool) else value, 0, "True, False or ")


def _check_n_jobs(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value == 0):
        raise ValueError(f"{name} must be None or an integer other than 0, got {shown(value)}.")


def _check_seed(name: str, value: Any) -> None:
    if value is None or isinstance(value, np.random.RandomState):
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 1 << 32:
        raise ValueError(f"{name} must be None, a RandomState or an integer from 0 to 2**32 - 1, got {shown(value)}.")


def _check_folder(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, str | os.PathLike) or not os.fspath(value)):
        raise ValueError(f"{name} must be None or the path of a folder, got {shown(value)}.")


def _check_fraction(name: str, value: Any) -> None:
    check_between(name, value, 0.0, 1.0)


def _check_optional_fraction(name: str, value: Any) -> None:
    if value is not None:
        check_between(name, value, 0.0, 1.0, "None or ")


def _check_share(name: str, value: Any) -> None:
    if check_nonnegative(name, value) >= 1.0:
        raise ValueError(f"{name} must be less than 1, got {shown(value)}.")


def _check_level(name: str, value: Any) -> None:
    get_loss("quantile").tuned({name: value})


def _check_epsilon(name: str, value: Any) -> None:
    get_loss("huber").tuned({name: value})


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "warm_start": _check_flag,
    "n_jobs": _check_n_jobs,
    "verbose": _check_verbose,
    "random_state": _check_seed,
    "checkpoint": _check_folder,
    "calibration_fraction": _check_optional_fraction,
    "validation_fraction": _check_fraction,
    "early_stopping": _check_flag,
    "forgetting": _check_share,
    "quantile": _check_level,
    "epsilon": _check_epsilon,
}
