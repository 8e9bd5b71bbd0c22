"""Check constructor parameters, once, at the edge. Errors name the thing, its value and the remedy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Settings
from polytrain.learning.core_solvers import SOLVERS
from polytrain.learning.losses import get_loss
from polytrain.maps import basis_names
from polytrain.rows.checking import check_bytes
from polytrain.tensor import TensorTrain
from polytrain.texts import shown

__all__ = [
    "INITS",
    "check_between",
    "check_choice",
    "check_count",
    "check_nonnegative",
    "check_parameters",
    "given_starts",
    "is_sequence",
    "make_settings",
]

INITS = ("auto", "linear", "random", "dual")
# Polynomials of a higher degree are rounding errors, and their values would fill the memory.
_MOST_DEGREE = 1000


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


def is_sequence(value: Any) -> bool:
    """Tell whether a parameter has several entries."""
    is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    return is_list and getattr(value, "ndim", 1) > 0


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _per_feature(name: str, given: Any, n_features: int) -> list[Any]:
    """One entry per feature, of a sequence or of a single value for all."""
    if not is_sequence(given):
        return [given] * n_features
    if len(given) != n_features:
        noun = "integer" if name == "degree" else "name"
        raise ValueError(
            f"{name} has {len(given)} entries but X has {n_features} features; "
            f"give one {name} per feature, or a single {noun} for all."
        )
    return list(given)


def _check_map_parameters(
    parameters: dict[str, Any], n_features: int, is_category: NDArray | None
) -> tuple[list[int], list[str]]:
    """Return degree and basis of every column; categories have a basis of their own, unless each column is named."""
    check_choice("scale", parameters["scale"], ["minmax", None])
    degree = parameters["degree"]
    if is_sequence(degree):
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
    several = is_sequence(parameters["basis"])
    for basis in bases if several else bases[:1]:
        check_choice("basis", basis, ["auto", *basis_names()])
    if is_category is not None and not several:
        bases = ["category" if known else basis for basis, known in zip(bases, is_category, strict=True)]
    return degrees, bases


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _check_relevance(relevance: Any, n_features: int) -> Any:
    """Return "auto", None, or a factor per feature."""
    if relevance is None or _is_auto(relevance):
        return relevance
    factors = relevance.tolist() if isinstance(relevance, np.ndarray) else relevance
    if not is_sequence(factors):
        raise ValueError(f"relevance must be 'auto', None or one number per feature, got {shown(relevance)}.")
    if len(factors) != n_features:
        raise ValueError(f"relevance has {len(factors)} entries but X has {n_features} features; give one for each.")
    for k, factor in enumerate(factors):
        check_between(f"relevance[{k}]", factor, 0.0, 1e6)
    return tuple(map(float, factors))


def _check_ranks(rank: Any, n_features: int) -> Any:
    """Return "auto", or one rank, or those of all bonds."""
    if _is_auto(rank):
        return rank
    if not is_sequence(rank):
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


def make_settings(
    parameters: dict[str, Any],
    n_features: int,
    loss: str,
    is_category: NDArray | None,
    stops_early: bool,
    joint: bool,
) -> Settings:
    """Check an estimator's parameters and return what they settle and what they leave open."""
    degrees, bases = _check_map_parameters(parameters, n_features, is_category)
    check_choice("solver", parameters["solver"], SOLVERS)
    check_bytes("max_memory", parameters["max_memory"])
    check_choice("sampling", parameters["sampling"], ["auto", None])
    init, alpha = parameters["init"], parameters["alpha"]
    has_trains = is_sequence(init) and all(isinstance(train, TensorTrain) or is_sequence(train) for train in init)
    is_known = init in INITS if isinstance(init, str) else isinstance(init, TensorTrain) or (has_trains and len(init))
    if not is_known:
        raise ValueError(f"init must be one of {list(INITS)}, a TensorTrain or a list of them, got {shown(init)}.")
    sweeps, bandwidth = parameters["max_sweeps"], parameters["bandwidth"]
    relevance = _check_relevance(parameters["relevance"], n_features)
    patience = check_count("n_iter_no_change", parameters["n_iter_no_change"], 1)
    return Settings(
        bases=bases,
        degrees=degrees,
        scale=parameters["scale"],
        bandwidth=bandwidth if bandwidth is None or _is_auto(bandwidth) else float(bandwidth),
        alpha=alpha if _is_auto(alpha) else check_nonnegative("alpha", alpha, "'auto' or "),
        rank=_check_ranks(parameters["rank"], n_features),
        init=init if isinstance(init, str) else "given",
        max_sweeps=sweeps if _is_auto(sweeps) else check_count("max_sweeps", sweeps, 0, "'auto' or "),
        loss=loss,
        solver=parameters["solver"],
        tol=check_nonnegative("tol", parameters["tol"]),
        sampling=parameters["sampling"],
        patience=patience if stops_early else 0,
        joint=joint,
        relevance=relevance,
    )


def given_starts(init: Any, n_trains: int, dims: tuple[int, ...]) -> list[Sequence[NDArray]]:
    """Turn ``init`` into one list of cores per train.

    For one train, a TensorTrain or its list of cores will do; for several, a list with one of these per train.
    """
    if isinstance(init, TensorTrain) or all(isinstance(core, np.ndarray) and core.ndim == 3 for core in init):
        init = [init]
    if len(init) != n_trains:
        raise ValueError(f"init has {len(init)} trains but this fit learns {n_trains}; give one train for each.")
    trains: list[Sequence[NDArray]] = []
    for index, train in enumerate(init):
        if not isinstance(train, TensorTrain):
            if len(train) != len(dims):
                raise ValueError(
                    f"init[{index}] has {len(train)} cores but there are {len(dims)} features; give one each."
                )
            train = TensorTrain(train)
        if train.dims != dims:
            raise ValueError(
                f"init[{index}] has dimensions {train.dims} but degree asks for {dims}; "
                "a start needs degree + 1 basis functions for every feature."
            )
        if not all(np.isfinite(core).all() for core in train.cores):
            raise ValueError(f"init[{index}] contains NaN or infinity; a start needs finite cores.")
        trains.append(train.cores)
    return trains


def check_parameters(parameters: dict[str, Any]) -> None:
    """Check the parameters that are not about rows, whether they matter for this fit or not."""
    for name in ("warm_start", "early_stopping"):
        if not isinstance(parameters[name], np.bool_ | Integral) or parameters[name] not in (0, 1):
            raise ValueError(f"{name} must be True or False, got {shown(parameters[name])}.")
    verbose, n_jobs, seed = parameters["verbose"], parameters["n_jobs"], parameters["random_state"]
    check_count("verbose", int(verbose) if isinstance(verbose, bool) else verbose, 0, "True, False or ")
    if n_jobs is not None and (not _is_integer(n_jobs) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {shown(n_jobs)}.")
    is_state = seed is None or isinstance(seed, np.random.RandomState)
    if not is_state and not (_is_integer(seed) and 0 <= seed < 1 << 32):
        raise ValueError(
            f"random_state must be None, a RandomState or an integer from 0 to 2**32 - 1, got {shown(seed)}."
        )
    folder = parameters["checkpoint"]
    if folder is not None and (not isinstance(folder, str | os.PathLike) or not os.fspath(folder)):
        raise ValueError(f"checkpoint must be None or the path of a folder, got {shown(folder)}.")
    check_between("validation_fraction", parameters["validation_fraction"], 0.0, 1.0)
    if parameters.get("calibration_fraction") is not None:
        check_between("calibration_fraction", parameters["calibration_fraction"], 0.0, 1.0, "None or ")
    if check_nonnegative("forgetting", parameters["forgetting"]) >= 1.0:
        raise ValueError(f"forgetting must be less than 1, got {shown(parameters['forgetting'])}.")
    for name, loss in (("quantile", "quantile"), ("epsilon", "huber")):
        if name in parameters:
            get_loss(loss).tuned(parameters)
