"""A fitted estimator <-> a JSON document and named arrays, in formats 1 and 2.

`describe` writes, `rebuild` reads and checks. Reading goes through the estimators' own checks of parameters, and checks
all that `predict` relies on. Numbers that decide about memory are compared with what is there before they are used.
What is wrong is a ``ValueError`` without the file's name; `polytrain.models.file` adds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polytrain
from polytrain.decision import DECISIONS, get_decision
from polytrain.estimators import TensorTrainClassifier, TensorTrainClassifierCV, TensorTrainRegressor
from polytrain.estimators._parameters import check_choice, check_count, check_nonnegative, given_starts, make_plan
from polytrain.learning.trainer import TrainPlan
from polytrain.models.errors import ModelFileError
from polytrain.models.labels import read_labels, write_labels
from polytrain.models.values import ValueReader, ValueWriter, join_cores, split_cores
from polytrain.scaling import FeatureScale
from polytrain.tables.section import TableSection

__all__ = ["describe", "rebuild"]

_ESTIMATORS: dict[str, Any] = {
    estimator.__name__: estimator
    for estimator in (TensorTrainClassifier, TensorTrainClassifierCV, TensorTrainRegressor)
}
# Trains of unequal ranks are padded to the largest when they are stacked. A file may ask for padding to so many
# numbers, or to so many times what it stores, and not for more.
_FREE_PADDING, _LARGEST_PADDING = 1 << 22, 16


def describe(model: Any, table: TableSection | None = None) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return the document and the arrays of a fitted model, perhaps with its table."""
    if _ESTIMATORS.get(type(model).__name__) is not type(model):
        raise ModelFileError(
            f"{type(model).__qualname__} is none of {list(_ESTIMATORS)}, so a model file cannot hold it. Use pickle."
        )
    values = ValueWriter()
    parameters = model.get_params(deep=False)
    learned = [
        [core.astype(train.dtype) for core in cores]
        for cores, train in zip(model._stack.unstack(), model.trains_, strict=True)
    ]
    names = getattr(model, "feature_names_in_", None) if table is None else table.preparation.feature_names
    document = {
        "writer": f"polytrain {polytrain.__version__}",
        "estimator": type(model).__name__,
        "parameters": {name: values.write(name, value) for name, value in parameters.items()},
        "plan": asdict(model.plan_),
        "target_size": model._target_size,
        "feature_names": None if names is None else [str(name) for name in names],
        "scaled": model.scale_ is not None,
        "history": list(model.history_[0]) if model.history_ else [],
        "n_iter": model.n_iter_,
        "stop_reason": model.stop_reason_,
    }
    tensors = {
        "cores": np.concatenate([join_cores(cores) for cores in learned]),
        "ranks": np.array([train.ranks for train in model.trains_], dtype=np.int64),
        **_history_columns(model.history_),
        **values.tensors,
    }
    if model.scale_ is not None:
        tensors.update({"scale.low": model.scale_.low, "scale.high": model.scale_.high})
    if isinstance(model, TensorTrainRegressor):
        document["intercept"] = model.intercept_
    else:
        document["decision"] = model.decision_.name
        document["classes"], labels = write_labels(model.classes_)
        tensors.update(labels)
    if isinstance(model, TensorTrainClassifierCV):
        document["alpha"] = model.alpha_
        tensors.update({"cv.alphas": model.alphas_, "cv.errors": model.errors_, "cv.mean_errors": model.mean_errors_})
    if table is not None:
        document["table"] = table.write()
    return document, tensors


def _history_columns(history: list[dict]) -> dict[str, NDArray]:
    """Records -> one array for each of their keys: integers, floats or tuples of integers."""
    columns = {}
    for key in history[0] if history else ():
        column = [record[key] if record.keys() == history[0].keys() else None for record in history]
        kinds = {type(value) for value in column}
        if kinds in ({int}, {tuple}):
            columns[f"history.{key}"] = np.array(column, dtype=np.int64)
        elif kinds == {float}:
            columns[f"history.{key}"] = np.array(column, dtype=np.float64)
        else:
            raise ModelFileError(f"history_ holds values of {key!r} that a model file cannot store. Use pickle.")
    return columns


class _Document:
    """The document and arrays of a file; everything must be asked for once, with the type it should have."""

    def __init__(self, content: Any, tensors: dict[str, NDArray]) -> None:
        if not isinstance(content, dict):
            raise ValueError("the description of the model is no JSON object.")
        self._content, self._tensors = dict(content), dict(tensors)

    def take(self, name: str, *types: type) -> Any:
        """Return an entry of the document."""
        if name not in self._content:
            raise ValueError(f"the description of the model lacks {name!r}.")
        value = self._content.pop(name)
        if type(value) not in types:
            raise ValueError(f"{name!r} should be {' or '.join(kind.__name__ for kind in types)}, got {value!r:.60}.")
        return value

    def take_float(self, name: str) -> float:
        """Return a finite number."""
        value = self.take(name, float, int)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"{name!r} is not a finite number.")
        return number

    def tensor(self, name: str, dtypes: tuple[Any, ...] | None = None, shape: tuple[int | None, ...] = ()) -> NDArray:
        """Return an array; None in ``shape`` fits any length, and without ``dtypes`` anything goes."""
        if name not in self._tensors:
            raise ValueError(f"the array {name!r} is missing.")
        array = self._tensors.pop(name)
        if dtypes is None:
            return array
        fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        if array.dtype not in dtypes or not fits:
            raise ValueError(f"the array {name!r} should not have dtype {array.dtype} and shape {array.shape}.")
        return array

    def check_empty(self) -> None:
        """Refuse what nobody asked for: a newer writer would have raised the format number."""
        if self._content or self._tensors:
            raise ValueError(f"it holds unknown entries: {str([*self._content, *self._tensors])[:100]}.")


def rebuild(content: Any, tensors: dict[str, NDArray], version: int) -> tuple[Any, TableSection | None]:
    """Check a document of this format and its arrays; return the fitted model and its table."""
    document = _Document(content, tensors)
    document.take("writer", str)
    name = document.take("estimator", str)
    if name not in _ESTIMATORS:
        raise ValueError(f"the estimator {name!r:.60} is none of {list(_ESTIMATORS)}.")
    model = _ESTIMATORS[name](**_read_parameters(document, _ESTIMATORS[name]))
    cores = document.tensor("cores", (np.float64, np.float32), (None,))
    if not np.isfinite(cores).all():
        raise ValueError("the cores contain NaN or infinity.")
    model.plan_ = _read_plan(document, cores.size)
    n_features = len(model.plan_.dims)
    ranks = document.tensor("ranks", (np.int64,), (None, n_features + 1))
    learned = _read_trains(cores, model.plan_.dims, ranks)
    target_size = document.take_float("target_size")
    model.n_features_in_ = n_features
    model.scale_ = _read_scale(document, n_features) if document.take("scaled", bool) else None
    _read_feature_names(document, model)
    _read_history(document, model, len(ranks))
    if isinstance(model, TensorTrainRegressor):
        _read_regressor(document, model, len(ranks), target_size)
    else:
        _read_classifier(document, model, len(ranks), target_size)
    if isinstance(model, TensorTrainClassifierCV):
        _read_cross_validation(document, model)
    table = _read_table(document, model) if version >= 2 else None
    document.check_empty()
    _check_parameters(model, len(ranks))
    model._keep_trains(learned, target_size)
    return model, table


def _read_parameters(document: _Document, estimator: Any) -> dict[str, Any]:
    """Constructor parameters; those of a later version that the file lacks keep their defaults."""
    known = estimator._get_param_names()
    stored = document.take("parameters", dict)
    unknown = [name for name in stored if name not in known]
    if unknown:
        raise ValueError(f"{estimator.__name__} has no parameters {str(unknown)[:100]}.")
    reader = ValueReader(document.tensor)
    return {name: reader.read(value) for name, value in stored.items()}


def _read_plan(document: _Document, n_numbers: int) -> TrainPlan:
    """What was learned, through the same checks as the parameters of a fit."""
    entries = document.take("plan", dict)
    known = {field.name for field in fields(TrainPlan)}
    needed = {field.name for field in fields(TrainPlan) if field.default is MISSING}  # older files lack newer settings
    if not needed <= entries.keys() <= known:
        raise ValueError(f"the plan has the entries {str(list(entries))[:200]}.")
    for name in ("dims", "ranks"):
        sizes = entries[name]
        if not isinstance(sizes, list) or not all(type(size) is int and 1 <= size <= n_numbers for size in sizes):
            raise ValueError(f"the {name} of the plan are not plausible.")
        entries[name] = tuple(sizes)
    plan = TrainPlan(**entries)
    checked = make_plan(
        {
            "degree": [n - 1 for n in plan.dims],
            "rank": list(plan.ranks[1:-1]),
            "init": None if plan.init == "given" else plan.init,
            "scale": None,
            "verbose": 0,
            "max_memory": None,
            **{name: getattr(plan, name) for name in ("basis", "solver", "max_sweeps", "tol", "sampling")},
        },
        plan.loss,
        plan.alpha,
        len(plan.dims),
    )
    if not plan.dims or checked != plan:
        raise ValueError("the plan contradicts itself.")
    return plan


def _read_trains(cores: NDArray, dims: tuple[int, ...], ranks: NDArray) -> list[list[NDArray]]:
    """Cut the cores, once it is sure that sizes fit and that stacking will not blow them up."""
    ends = ranks[:, [0, -1]]
    if not len(ranks) or ranks.min() < 1 or ranks.max() > cores.size or (ends != 1).any():
        raise ValueError("the ranks are not plausible.")
    sizes = ranks[:, :-1].astype(np.float64) * np.array(dims, dtype=np.float64) * ranks[:, 1:]  # ints might overflow
    if sizes.sum() != cores.size:
        raise ValueError(f"dims and ranks ask for {sizes.sum():.0f} numbers, but there are {cores.size}.")
    widest = ranks.max(axis=0).astype(np.float64)
    padded = len(ranks) * float(np.sum(widest[:-1] * np.array(dims) * widest[1:]))
    if padded > max(_FREE_PADDING, _LARGEST_PADDING * cores.size):
        raise ValueError(f"the ranks of the trains differ so much that stacking them takes {padded:.3g} numbers.")
    parts = np.split(cores, np.cumsum(sizes.sum(axis=1)).astype(np.int64)[:-1])
    return [split_cores(part, list(dims), row.tolist()) for part, row in zip(parts, ranks, strict=True)]


def _read_scale(document: _Document, n_features: int) -> FeatureScale:
    low, high = (document.tensor(f"scale.{side}", (np.float64,), (n_features,)) for side in ("low", "high"))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError("the ranges of the features are not finite or upside down.")
    return FeatureScale(low, high)


def _read_feature_names(document: _Document, model: Any) -> None:
    names = document.take("feature_names", list, type(None))
    if names is None:
        return
    if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
        raise ValueError(f"there should be {model.n_features_in_} feature names.")
    model.feature_names_in_ = np.array(names, dtype=object)


def _read_history(document: _Document, model: Any, n_trains: int) -> None:
    columns = {}
    for key in document.take("history", list):
        if not isinstance(key, str) or key in columns:
            raise ValueError(f"the history has no column {key!r:.60}.")
        columns[key] = document.tensor(f"history.{key}")
    lengths = {len(column) if column.ndim else -1 for column in columns.values()}
    if len(lengths) > 1 or any(
        column.dtype not in (np.float64, np.int64) or not 1 <= column.ndim <= 2 for column in columns.values()
    ):
        raise ValueError("the columns of the history do not fit together.")
    if "train" in columns and ((columns["train"] < 0).any() or (columns["train"] >= n_trains).any()):
        raise ValueError("the history speaks of trains that are not there.")
    lists = [map(tuple, column.tolist()) if column.ndim == 2 else column.tolist() for column in columns.values()]
    model.history_ = [dict(zip(columns, record, strict=True)) for record in zip(*lists, strict=True)]
    model.n_iter_ = check_count("n_iter", document.take("n_iter", int), 0)
    model.stop_reason_ = document.take("stop_reason", str)


def _read_regressor(document: _Document, model: Any, n_trains: int, target_size: float) -> None:
    if n_trains != 1 or target_size <= 0:
        raise ValueError(f"a regressor has one train and a positive target_size, not {n_trains} and {target_size}.")
    model.intercept_ = document.take_float("intercept")


def _read_classifier(document: _Document, model: Any, n_trains: int, target_size: float) -> None:
    if target_size != 1.0:
        raise ValueError(f"a classifier has the target_size 1, not {target_size}.")
    decision = document.take("decision", str)
    check_choice("decision", decision, DECISIONS)
    model.decision_ = get_decision(decision)
    model.classes_ = read_labels(document.take("classes", dict), document.tensor)
    needed = model.decision_.n_trains(len(model.classes_))
    if n_trains != needed:
        raise ValueError(f"{len(model.classes_)} classes need {needed} trains with {decision}, not {n_trains}.")


def _read_cross_validation(document: _Document, model: Any) -> None:
    model.alpha_ = check_nonnegative("alpha", document.take_float("alpha"))
    model.alphas_ = document.tensor("cv.alphas", (np.float64,), (None,))
    model.errors_ = document.tensor("cv.errors", (np.float64,), (len(model.alphas_), None))
    model.mean_errors_ = document.tensor("cv.mean_errors", (np.float64,), (len(model.alphas_),))


def _read_table(document: _Document, model: Any) -> TableSection:
    table = TableSection.read(document.take("table", dict))
    names = getattr(model, "feature_names_in_", None)
    classes = getattr(model, "classes_", None)
    is_text = None if classes is None else classes.dtype.kind in "UO"
    table.check_fits(model.n_features_in_, None if names is None else list(names), is_text)
    return table


def _check_parameters(model: Any, n_trains: int) -> None:
    """Run the checks of a fit, and those of what a fit does not look at."""
    is_regressor = isinstance(model, TensorTrainRegressor)
    alpha = model._check_alphas()[0] if isinstance(model, TensorTrainClassifierCV) else model.alpha
    plan = make_plan(
        model.get_params(deep=False), "squared" if is_regressor else model.loss, alpha, model.n_features_in_
    )
    if plan.init == "given":
        given_starts(model.init, n_trains, plan.dims)
    for name, check in _OTHER_CHECKS.items():
        if hasattr(model, name):
            check(name, getattr(model, name))
    if not is_regressor:
        check_choice("decision", model.decision, DECISIONS)
        model._class_weights(model.classes_, np.ones(len(model.classes_)))


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | int | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r:.60}.")


def _check_n_jobs(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value == 0):
        raise ValueError(f"{name} must be None or an integer other than 0, got {value!r:.60}.")


def _check_seed(name: str, value: Any) -> None:
    if value is None or isinstance(value, np.random.RandomState):
        return
    if not isinstance(value, int | np.integer) or not 0 <= value < 1 << 32:
        raise ValueError(f"{name} must be None, a RandomState or an integer from 0 to 2**32 - 1, got {value!r:.60}.")


def _check_cv(name: str, value: Any) -> None:
    if isinstance(value, int | np.integer):
        check_count(name, value, 2)
    elif isinstance(value, list | tuple):
        if not all(isinstance(split, list | tuple) and len(split) == 2 for split in value):
            raise ValueError(f"{name} must list pairs of training and test rows.")
    elif value is not None and (isinstance(value, str) or not hasattr(value, "split")):
        raise ValueError(f"{name} must be a number of folds, splits or a splitter, got {value!r:.60}.")


_OTHER_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "warm_start": _check_flag,
    "n_jobs": _check_n_jobs,
    "random_state": _check_seed,
    "cv": _check_cv,
}
