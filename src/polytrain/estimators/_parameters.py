"""The parameters of the estimators, documented and checked in one place. Errors name the value and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from inspect import cleandoc
from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Settings
from polytrain.columns.column_list import column_number
from polytrain.learning.core_solvers import SOLVERS
from polytrain.maps import basis_names
from polytrain.rows import Rows
from polytrain.tensor import TensorTrain
from polytrain.texts import shown

_REMEDY = (
    "Give None, 'no_interactions', 'pairwise', or a list of groups, each a list, tuple or set of one or more numbers "
    "or names of columns."
)
# Every group is learned in turn, in several rounds.
_MOST_GROUPS = 1000

INITS = ("auto", "linear", "random", "dual")
# Polynomials of a higher degree are rounding errors, and their values would fill the memory.
_MOST_DEGREE = 1000
# Rows that ``early_stopping=True`` holds out, and sweeps that may fail to lower their loss.
_HELD_OUT, _PATIENCE = 0.1, 2


class SharedParameters:
    """The parameters and attributes that all estimators have, for their docstrings.

    The docstrings contain them where they say ``<parameters>`` and ``<attributes>``.

    Parameters
    ----------
    basis : str or sequence of str, default="auto"
        Functions of each feature; a sequence gives one basis per feature. "auto" chooses among those that suit the
        values: "smooth" (polynomials up to degree 8, damped), "gauss" (very smooth) and "spline" (may bend sharply)
        use a value's position in the range, "smooth-rank", "gauss-rank" and "spline-rank" its rank, so that
        outliers do not matter, "spline-distinct" its position among the different values.

        "power", "chebyshev" and "legendre" are polynomials up to ``degree`` of the feature, whose range in the training
        rows is mapped onto [-1, 1]; values beyond it count as its ends. "power-unscaled" are powers of the values as
        they are, which should be of size one at most. "category" takes numbers as names of categories.
    rank : int, sequence of int or "auto", default="auto"
        How rich interactions may be: wherever the columns are cut into first and last ones, the model is a sum of at
        most ``rank`` products of a function of the first and one of the last. A sequence gives one rank per cut.
    alpha : float or "auto", default="auto"
        Strength of the regularisation, 0 or larger: alpha / 2 times the sum of the squares of all coefficients is added
        to the weighted mean of the loss.
    bandwidth : float, "auto" or None, default="auto"
        How much the functions of all columns may vary together, unless they are polynomials of ``degree``: with small
        values few columns interact at once, with large ones many. None is 1.
    relevance : "auto", None, or array-like of shape (n_features,), default="auto"
        How much each column may matter, for bases that have a bandwidth: a factor of the bandwidth per column, 0
        for columns that are not used. "auto" learns the factors from rows that are left out, and keeps them equal where
        those rows gain nothing. None keeps them equal, as `partial_fit` does for "auto".
    degree : int or sequence of int, default=2
        Largest power of each feature, for "power", "power-unscaled", "chebyshev" and "legendre"; a sequence gives one
        per feature.
    categorical_features : "from_dtype", None, or array-like of bool, int or str, default="from_dtype"
        Which columns are categories: those of a frame whose type says so, none, or those that are named. Columns of
        text always are, unless all of their values are dates.
    interaction_cst : None, "no_interactions", "pairwise", or sequence of groups of columns, default=None
        Which columns may interact: all, none, any two, or those in a common group of column numbers or names; columns
        in no group form one more. The score is a sum of one function per group; ``rank`` is that of a group's train.
    init : {"auto", "linear", "random", "dual"}, TensorTrain, or list of TensorTrain, default="auto"
        Start of the sweeps: the trains that the choice of the other settings ended with ("auto"), the linear model,
        random cores, or the exact solution cut to the ranks ("dual", for the squared loss and at most 1300 different
        rows). Given trains, one per train to be learned, are coefficients of the functions of the maps.
    solver : {"auto", "exact", "cg", "lbfgs"}, default="auto"
        How the problem of one core is solved: exactly, by preconditioned conjugate gradients, by L-BFGS, or by the
        cheaper of the first two ("auto").
    max_sweeps : int or "auto", default="auto"
        Largest number of sweeps: a sweep updates every core once, from one end of the columns to the other. 0 keeps the
        start. "auto" is 4, fewer from a good start, and 20 with validation rows. With at least 4096 distinct rows, the
        first two of four or more sweeps see a sample of them.
    tol : float, default=1e-3
        Sweeps stop once the objective changes by at most this part of its value over a sweep.
    early_stopping : bool or float, default=False
        True holds out a tenth of the rows, a number between 0 and 1 that fraction; equal rows stay together. Sweeps
        stop once two of them have not lowered the loss of these rows, and the train with the lowest loss is kept.
    warm_start : bool, default=False
        Start from the trains and maps of the last fit, with its ranks and alpha where they are left open. A classifier
        with ``loss="auto"`` chooses an open alpha anew, and calibrates its probabilities anew.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the random start.
    n_jobs : int or None, default=None
        Number of processes for the trains, or for the rows of a single train; the result does not depend on it. None
        is 1, -1 all cores.
    verbose : int, default=0
        1 shows the chosen settings and a progress bar (log lines without tqdm), 2 shows log lines and the table of
        trials.

    Attributes
    ----------
    relevances_ : ndarray of shape (n_features,)
        Factor of the bandwidth of every column, see ``relevance``: 0 for columns that were not needed, all 1 where they
        are equal.
    choice_ : Chosen
        The chosen settings, the reasons, and the table of trials.
    left_out_ : LeftOut or None
        Figures on rows that were not learned from, which `summary` shows; None where there are none.
    history_ : list of dict
        One record per train and sweep: train, sweep, n_rows, loss, objective, decrease, ranks, seconds, and
        validation_loss where there are validation rows. Losses are means over the ``n_rows`` rows of the sweep.
    n_iter_ : int
        Number of sweeps of the train that needed the most.
    stop_reason_ : str
        "tolerance" if all trains met ``tol``, "validation" if the loss of held-out rows did not fall, "stopped" if a
        callback asked for it, "rounding" if a sweep had to be undone, else "max_sweeps".
    warnings_ : tuple of str
        Texts of the fit's warnings, see `polytrain.DataWarning`; empty if there were none.
    n_parameters_ : int
        Number of stored coefficients.
    stream_ : Stream
        State of `partial_fit` besides the model: the weight of past rows, and a sample of them.
    maps_ : MapList
        The map of every feature: its functions, and its range in the training rows.
    model_ : FittedModel
        The immutable model that predictions, explanations, exports and model files read.
    plan_ : Settings
        The checked settings of the fit, with ranks and numbers of sweeps.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where ``X`` had string column names.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__doc__ and SharedParameters.__doc__:  # python -OO leaves docstrings out
            _, parameters, attributes = re.split(r"\w+\n-+\n", cleandoc(SharedParameters.__doc__))
            text = cleandoc(cls.__doc__).replace("<parameters>", parameters.strip())
            cls.__doc__ = text.replace("<attributes>", attributes.strip())

    def _store(self, variables: dict[str, Any]) -> None:
        """Store the parameters of a constructor, given its local variables."""
        vars(self).update({name: value for name, value in variables.items() if name != "self"})


def _number(value: Any) -> float:
    """Return the value as a float: NaN if it is not a number, infinity if it is too large for a float."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    except OverflowError:
        return np.inf


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _require(is_valid: Any, name: str, value: Any, wanted: str) -> None:
    if not is_valid:
        raise ValueError(f"{name} must be {wanted}, got {shown(value)}.")


def check_count(name: str, value: Any, least: int, also: str = "") -> int:
    """Return ``value`` as an int of at least ``least``; ``also`` names other accepted values."""
    kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
    _require(_is_integer(value) and value >= least, name, value, also + kind)
    return int(value)


def check_nonnegative(name: str, value: Any, also: str = "") -> float:
    """Return ``value`` as a finite float that is not negative; ``also`` names other accepted values."""
    _require(0 <= _number(value) < np.inf, name, value, f"{also}a finite number that is not negative")
    return float(value)


def check_between(name: str, value: Any, low: float, high: float, also: str = "") -> float:
    """Return ``value`` as a float between two others; ``also`` names other accepted values."""
    _require(low < _number(value) < high, name, value, f"{also}a number between {low:g} and {high:g}")
    return float(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return ``value``, which must be one of the named choices."""
    _require(isinstance(value, str | type(None)) and value in choices, name, value, f"one of {list(choices)}")
    return value


def is_sequence(value: Any) -> bool:
    """Return whether a parameter has several entries."""
    is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    return is_list and getattr(value, "ndim", 1) > 0


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _per_feature(
    name: str, given: Any, count: int, check: Callable[[str, Any], Any], things: str = "features"
) -> list[Any]:
    """Return one checked entry per feature, or other things of X, given a sequence or a single value for all."""
    if not is_sequence(given):
        return [check(name, given)] * count
    if len(given) != count:
        raise ValueError(f"{name} has {len(given)} entries, but X has {count} {things}; give one each.")
    return [check(f"{name}[{k}]", entry) for k, entry in enumerate(given)]


def _check_relevance(relevance: Any, n_features: int) -> Any:
    """Return "auto", None, or a factor per feature."""
    if relevance is None or _is_auto(relevance):
        return relevance
    _require(is_sequence(relevance), "relevance", relevance, "'auto', None or one number per feature")
    factors = tuple(_per_feature("relevance", relevance, n_features, check_factor))
    if not any(factors):
        raise ValueError("relevance must have at least one factor above 0, got only zeros.")
    return factors


def check_factor(name: str, value: Any, most: float = 1e6) -> float:
    """Return ``value`` as a float of at least 0 and less than ``most``."""
    return 0.0 if _number(value) == 0 else check_between(name, value, 0.0, most, "0 or ")


def _check_ranks(rank: Any, n_features: int) -> Any:
    """Return "auto", one rank, or the ranks of all bonds."""
    if _is_auto(rank):
        return rank
    if not is_sequence(rank):
        return check_count("rank", rank, 1, "'auto', a list with one rank per bond, or ")
    return _per_feature("rank", rank, n_features - 1, partial(check_count, least=1), "bonds between features")


def make_settings(estimator: Any, rows: Rows, loss: str, stops_early: bool, joint: bool) -> Settings:
    """Check the parameters that depend on the rows, and return them as settings."""
    n_features, columns = rows.summary.n_features, rows.columns_of_any_type
    degree, basis, init = estimator.degree, estimator.basis, estimator.init
    alpha, bandwidth, sweeps = estimator.alpha, estimator.bandwidth, estimator.max_sweeps
    also = "" if is_sequence(degree) else "a list with one degree per feature, or "
    degrees = _per_feature("degree", degree, n_features, partial(check_count, least=1, also=also))
    _require(max(degrees) <= _MOST_DEGREE, "degree", degree, f"at most {_MOST_DEGREE}")
    if not (bandwidth is None or _is_auto(bandwidth)):
        bandwidth = check_between("bandwidth", bandwidth, 0.0, 1e6, "'auto', None or ")
    bases = _per_feature("basis", basis, n_features, partial(check_choice, choices=["auto", *basis_names()]))
    if rows.is_category is not None and not is_sequence(basis):  # categories have a basis of their own
        bases = ["category" if known else basis for basis, known in zip(bases, rows.is_category, strict=True)]
    check_choice("solver", estimator.solver, SOLVERS)
    is_known = init in INITS if isinstance(init, str) else isinstance(init, TensorTrain)
    if is_sequence(init) and len(init):
        is_known = all(isinstance(train, TensorTrain) or (is_sequence(train) and len(train)) for train in init)
    _require(is_known, "init", init, f"one of {list(INITS)}, a TensorTrain or a list of them")
    sources = range(n_features) if columns is None else columns.sources.tolist()
    n_columns = n_features if columns is None else columns.n_columns
    groups = allowed_groups(estimator.interaction_cst, n_columns, rows.column_names, sources)
    settings = Settings(
        bases=bases,
        degrees=degrees,
        bandwidth=bandwidth,
        alpha=alpha if _is_auto(alpha) else check_nonnegative("alpha", alpha, "'auto' or "),
        rank=_check_ranks(estimator.rank, n_features),
        init=init if isinstance(init, str) else "given",
        max_sweeps=sweeps if _is_auto(sweeps) else check_count("max_sweeps", sweeps, 0, "'auto' or "),
        loss=loss,
        solver=estimator.solver,
        tol=check_nonnegative("tol", estimator.tol),
        patience=_PATIENCE if stops_early else 0,
        joint=joint,
        relevance=_check_relevance(estimator.relevance, n_features),
        groups=groups,
    )
    if groups is not None:
        _check_no_conflict(settings, estimator)
    return settings


def given_starts(init: Any, n_trains: int, dims: tuple[int, ...]) -> list[Sequence[NDArray]]:
    """Turn ``init`` into one list of cores per train.

    For one train, a TensorTrain or its list of cores will do; for several, a list with one of these per train.
    """
    if isinstance(init, TensorTrain) or all(isinstance(core, np.ndarray) and core.ndim == 3 for core in init):
        init = [init]
    if len(init) != n_trains:
        raise ValueError(f"init has {len(init)} trains but this fit learns {n_trains}; give one train for each.")
    trains = [train if isinstance(train, TensorTrain) else TensorTrain(train) for train in init]
    for index, train in enumerate(trains):
        if train.dims != dims:
            raise ValueError(f"init[{index}] has dimensions {train.dims}, but the functions of the maps are {dims}.")
        if not all(np.isfinite(core).all() for core in train.cores):
            raise ValueError(f"init[{index}] contains NaN or infinity; a start needs finite cores.")
    return [train.cores for train in trains]


def check_parameters(estimator: Any) -> None:
    """Check the parameters that do not depend on the rows, whether this fit needs them or not."""
    for name in ("warm_start", "clip"):
        value = getattr(estimator, name, True)
        _require(isinstance(value, np.bool_ | Integral) and value in (0, 1), name, value, "True or False")
    verbose, n_jobs, seed = estimator.verbose, estimator.n_jobs, estimator.random_state
    check_count("verbose", int(verbose) if isinstance(verbose, bool) else verbose, 0, "True, False or ")
    is_count = n_jobs is None or (_is_integer(n_jobs) and n_jobs != 0)
    _require(is_count, "n_jobs", n_jobs, "None or an integer other than 0")
    is_seed = seed is None or isinstance(seed, np.random.RandomState) or (_is_integer(seed) and 0 <= seed < 1 << 32)
    _require(is_seed, "random_state", seed, "None, a RandomState or an integer from 0 to 2**32 - 1")
    held_out_part(estimator.early_stopping)
    if getattr(estimator, "calibration_fraction", None) is not None:
        check_between("calibration_fraction", estimator.calibration_fraction, 0.0, 1.0, "None or ")


def held_out_part(early_stopping: Any) -> float:
    """Return the part of the rows that ``early_stopping`` holds out; 0 for none."""
    if isinstance(early_stopping, bool | np.bool_):
        return _HELD_OUT if early_stopping else 0.0
    return check_between("early_stopping", early_stopping, 0.0, 1.0, "True, False or ")


# --- interaction_cst --------------------------------------------------------------------------------------------------


def allowed_groups(
    interaction_cst: Any, n_columns: int, names: Sequence[str] | None, sources: Sequence[int]
) -> tuple[tuple[int, ...], ...] | None:
    """Return the groups of features that may interact; None if all may.

    ``sources`` is the column that each feature comes from: features of one column may always interact.
    """
    if interaction_cst is None:
        return None
    groups = _column_groups(interaction_cst, n_columns, names)
    if rest := set(range(n_columns)).difference(*groups):
        groups.append(rest)
    if any(len(group) == n_columns for group in groups):
        return None
    _check_number(interaction_cst, sum(len(group) > 1 for group in groups), n_columns)
    features: dict[int, list[int]] = {}
    for feature, column in enumerate(sources):
        features.setdefault(column, []).append(feature)
    return tuple(tuple(feature for column in sorted(group) for feature in features[column]) for group in groups)


def _check_number(interaction_cst: Any, n_groups: int, n_columns: int) -> None:
    if n_groups > _MOST_GROUPS:
        raise ValueError(
            f"interaction_cst={shown(interaction_cst)} makes {n_groups} groups of {n_columns} columns, more than the "
            f"{_MOST_GROUPS} that can be learned in reasonable time. Name fewer groups, or leave out columns."
        )


def _column_groups(interaction_cst: Any, n_columns: int, names: Sequence[str] | None) -> list[set[int]]:
    if isinstance(interaction_cst, str) and interaction_cst == "no_interactions":
        return [{k} for k in range(n_columns)]
    if isinstance(interaction_cst, str) and interaction_cst == "pairwise":
        _check_number(interaction_cst, n_columns * (n_columns - 1) // 2, n_columns)
        return [set(pair) for pair in combinations(range(n_columns), min(2, n_columns))]
    if not _is_group(interaction_cst):
        raise ValueError(f"interaction_cst must not be {shown(interaction_cst)}. {_REMEDY}")
    groups = []
    for number, group in enumerate(interaction_cst):
        where = f"interaction_cst[{number}]"
        if not _is_group(group):
            raise ValueError(f"{where} is {shown(group)}, which is not a group of columns. {_REMEDY}")
        groups.append({column_number(where, entry, names, n_columns) for entry in group})
    return groups


def _is_group(value: Any) -> bool:
    is_collection = isinstance(value, Collection) and not isinstance(value, str | bytes | dict)
    return is_collection and getattr(value, "ndim", 1) > 0 and len(value) > 0


def _check_no_conflict(settings: Settings, estimator: Any) -> None:
    """Refuse parameters for single trains where a fit learns a sum of trains over groups of columns."""
    rank, init = estimator.rank, estimator.init
    conflicts = {
        f"rank gives one number per bond, got {shown(rank)}, but with interaction_cst every group of columns has "
        "a train of its own. Give a single integer, the largest rank of all groups, or 'auto'.": is_sequence(rank),
        f"init must be 'auto' or 'linear' with interaction_cst, got {shown(init)}: a given train may have "
        "interactions that are not allowed.": settings.init in ("given", "random", "dual"),
        "loss='multinomial' learns the trains of all classes together, which interaction_cst does not support. Use "
        "loss='auto' or 'logistic'.": settings.joint,
        "interaction_cst does not support validation rows: groups are learned in rounds until tol or max_sweeps. Set "
        "early_stopping=False, and leave X_val out.": settings.patience,
        "warm_start=True cannot continue from the last fit with interaction_cst: the functions of the groups are "
        "no longer separate. Set warm_start=False.": estimator.warm_start and hasattr(estimator, "model_"),
    }
    for message, is_there in conflicts.items():
        if is_there:
            raise ValueError(message)
