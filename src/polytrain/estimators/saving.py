"""Fitted estimators in model files, and back.

`describe` writes format 6, `rebuild` reads formats 1 to 6. Reading goes through the estimators' own checks of
parameters. What is wrong is a ``ValueError`` without the file's name; `load` adds it.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from polytrain.choice import Chosen, Tried
from polytrain.columns.column_list import chosen_columns
from polytrain.decisions import decision_names
from polytrain.estimators._constraints import allowed_groups
from polytrain.estimators._parameters import (
    check_choice,
    check_count,
    check_loss,
    check_parameters,
    given_starts,
    make_settings,
)
from polytrain.estimators._probabilities import class_weights
from polytrain.estimators._streaming import Stream
from polytrain.estimators.classifier import TensorTrainClassifier, learning_loss
from polytrain.estimators.regressor import TensorTrainRegressor
from polytrain.learning.losses import get_loss
from polytrain.learning.trainer import TrainPlan
from polytrain.maps import basis_names, map_kind
from polytrain.models import FittedModel
from polytrain.models.file import Document, ModelFileError, read_model_file, write_model_file
from polytrain.models.fitted_state import describe_fitted, read_fitted
from polytrain.models.values import ValueReader, ValueWriter, describe_history, read_history
from polytrain.tensor_file import parse_json
from polytrain.version import __version__

__all__ = ["load", "load_with_table", "save"]

_ESTIMATORS: dict[str, Any] = {
    estimator.__name__: estimator for estimator in (TensorTrainClassifier, TensorTrainRegressor)
}


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    table: dict[str, Any] | None = None,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write a fitted estimator; see ``TrainModel.save``.

    Parameters
    ----------
    estimator : estimator
    path : path-like
    table : dict, optional
        JSON about the tables that the estimator was fitted from; `load_with_table` gives it back.
    feature_names : sequence of str, optional
        Names of the features, if the estimator does not know them.
    """
    document, tensors = describe(estimator, table, feature_names)
    # What would not load must not be written. Refuse it here, where the model is still at hand.
    what = "the model cannot be stored"
    try:
        content = parse_json(json.dumps(document))
    except ValueError as error:
        raise ModelFileError(f"{what}: {error}") from error
    _rebuild(what, content, dict(tensors))
    write_model_file(path, document, tensors)


def load(path: str | os.PathLike[str], *, max_bytes: int = 1 << 30) -> Any:
    """Read a model file written by ``model.save(path)``.

    The file may come from a stranger: nothing in it is executed or imported, sizes are checked before memory is taken,
    and every number and name is checked before the model is built.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int, default=2**30
        Refuse a larger file. The memory needed is a small multiple of the file's size.

    Returns
    -------
    TensorTrainClassifier or TensorTrainRegressor
        The fitted model, equal to the saved one to the last bit. Of a file that ``polytrain fit`` wrote, it is the
        estimator; `polytrain.tables.load_table_model` also returns the layout of its tables.

    Raises
    ------
    ModelFileError
        If the file is damaged, cut off, too large, of another kind, or of a format that this version does not know.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import polytrain
    >>> X = np.linspace(-1, 1, 20).reshape(-1, 1)
    >>> model = polytrain.TensorTrainRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "parabola.polytrain"))
    ...     polytrain.load(os.path.join(folder, "parabola.polytrain"))
    TensorTrainRegressor(random_state=0)
    """
    return load_with_table(path, max_bytes=max_bytes)[0]


def load_with_table(path: str | os.PathLike[str], *, max_bytes: int = 1 << 30) -> tuple[Any, dict[str, Any] | None]:
    """Read a model file; return the estimator, and the unchecked JSON about tables, if there is any."""
    return _rebuild(f"{path!s} is not a valid model file", *read_model_file(path, max_bytes))


def _rebuild(what: str, content: Any, tensors: dict[str, NDArray]) -> tuple[Any, dict[str, Any] | None]:
    """Build the estimator; whatever the checks on the way refuse becomes a `ModelFileError`."""
    try:
        return rebuild(content, tensors)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{what}: {error}") from error


def describe(
    estimator: Any, table: dict[str, Any] | None = None, feature_names: Sequence[str] | None = None
) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return the document and the arrays of a fitted estimator."""
    if _ESTIMATORS.get(type(estimator).__name__) is not type(estimator):
        raise ModelFileError(
            f"{type(estimator).__qualname__} is none of {list(_ESTIMATORS)}; a model file cannot hold it. Use pickle."
        )
    values = ValueWriter()
    parameters = estimator.get_params(deep=False)
    parameters.pop("checkpoint", None)  # a folder of this machine is nothing that the next fit elsewhere should use
    names = getattr(estimator, "feature_names_in_", None) if feature_names is None else feature_names
    column_names = None if names is None else list(map(str, names))
    fitted = estimator.model_
    if fitted.columns is None:
        fitted = replace(fitted, feature_names=None if column_names is None else tuple(column_names))
    described, tensors = describe_fitted(fitted)
    keys, records = describe_history(estimator.history_)
    document = {
        "writer": f"polytrain {__version__}",
        "estimator": type(estimator).__name__,
        "parameters": {name: values.write(name, value) for name, value in parameters.items()},
        "plan": asdict(estimator.plan_),
        "choice": _describe_choice(estimator.choice_),
        "column_names": column_names,
        **described,
        "history": keys,
        "seen": [float(weight) for weight in (estimator.stream_.seen, estimator.stream_.first)],
        "n_iter": estimator.n_iter_,
        "stop_reason": estimator.stop_reason_,
        "table": table,
    }
    tensors |= {**records, **values.tensors}
    return document, tensors


def _describe_choice(choice: Chosen) -> dict[str, Any]:
    """What was chosen; numbers that JSON does not know are None."""
    tried = [[None if isinstance(v, float) and not math.isfinite(v) else v for v in line] for line in choice.tried]
    return {"basis": choice.basis, "bandwidth": choice.bandwidth, "reasons": list(choice.reasons), "tried": tried}


def _read_choice(document: Document, plan: TrainPlan) -> Chosen:
    """Check and undo `_describe_choice`."""
    entries = document.take("choice", dict)
    if entries.keys() != {"basis", "bandwidth", "reasons", "tried"}:
        raise ValueError(f"the choice has the entries {str(list(entries))[:200]}.")
    basis, bandwidth, reasons = entries["basis"], entries["bandwidth"], entries["reasons"]
    if not (basis is None or basis in basis_names()) or not (bandwidth is None or _is_positive(bandwidth)):
        raise ValueError("the basis or the bandwidth of the choice is not plausible.")
    if not isinstance(reasons, list) or not all(isinstance(reason, str) for reason in reasons):
        raise ValueError("the reasons of the choice should be text.")
    if not isinstance(entries["tried"], list):
        raise ValueError("what was tried should be a list.")
    tried = tuple(_read_tried(line) for line in entries["tried"])
    width = None if bandwidth is None else float(bandwidth)
    return Chosen(basis, width, plan.alpha, max(plan.ranks), tuple(reasons), tried)


def _read_tried(line: Any) -> Tried:
    if not isinstance(line, list) or len(line) != len(Tried._fields):
        raise ValueError(f"what was tried should have {len(Tried._fields)} entries, not {line!r:.60}.")
    step, basis, bandwidth, alpha, rank, n_rows, error = line
    texts = all(isinstance(text, str) for text in (step, basis))
    counts = all(type(count) is int and 0 <= count < 1 << 62 for count in (rank, n_rows))
    if not (texts and counts and (bandwidth is None or _is_finite(bandwidth)) and _is_finite(alpha)):
        raise ValueError(f"what was tried is not plausible: {line!r:.60}.")
    if not (error is None or _is_finite(error)):
        raise ValueError(f"what was tried is not plausible: {line!r:.60}.")
    numbers = (float("nan") if value is None else float(value) for value in (bandwidth, error))
    return Tried(step, basis, next(numbers), float(alpha), rank, n_rows, next(numbers))


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # an integer may be too large for a float


def _is_positive(value: Any) -> bool:
    return _is_finite(value) and value > 0


def rebuild(content: Any, tensors: dict[str, NDArray]) -> tuple[Any, dict[str, Any] | None]:
    """Check a document of this format and its arrays; return the fitted estimator, and JSON about its tables."""
    document = Document(content, tensors)
    document.take("writer", str)
    name = document.take("estimator", str)
    if name not in _ESTIMATORS:
        raise ValueError(f"the estimator {name!r:.60} is none of {list(_ESTIMATORS)}.")
    model = _ESTIMATORS[name](**_read_parameters(document, _ESTIMATORS[name]))
    is_classifier = isinstance(model, TensorTrainClassifier)
    plan = _read_plan(document)
    task = "classification" if is_classifier else "regression"
    if not isinstance(plan.loss, str) or task not in get_loss(plan.loss).tasks:
        raise ValueError(f"the loss {plan.loss!r:.60} is none for {task}.")
    model.plan_, model.choice_ = plan, _read_choice(document, plan)
    model.model_ = read_fitted(document, plan.loss, plan.dims)
    if (model.model_.classes is not None) != is_classifier:
        raise ValueError(f"{name} {'needs' if is_classifier else 'has no'} classes.")
    model.n_features_in_ = model.model_.n_columns
    names = _read_column_names(document, model.model_)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    n_trains = model.model_.n_trains
    model.history_ = read_history(document, plan.ranks, n_trains)
    model.n_iter_ = check_count("n_iter", document.take("n_iter", int), 0)
    if model.n_iter_ != max(Counter(record["train"] for record in model.history_).values(), default=0):
        raise ValueError(f"n_iter is {model.n_iter_}, which is not how many sweeps the history has.")
    model.stop_reason_ = document.take("stop_reason", str)
    model.stream_ = _read_stream(document)
    table = document.take("table", dict, type(None))
    document.check_empty()
    _check_parameters(model, n_trains)
    _disarm(model)
    return model, table


def _read_stream(document: Document) -> Stream:
    """How much the past weighs; its rows are not in a file."""
    weights = document.take("seen", list)
    if len(weights) != 2 or not all(_is_finite(weight) and weight >= 0 for weight in weights):
        raise ValueError(f"the weight of the past is {str(weights)[:60]}.")
    return Stream(float(weights[0]), float(weights[1]))


def _read_column_names(document: Document, fitted: FittedModel) -> Sequence[str] | None:
    """Names of the columns, where they have any: those of the features, unless columns of other types became these."""
    names = document.take("column_names", list, type(None))
    known = fitted.feature_names
    if fitted.columns is not None:
        known = None if names is None else tuple(column.name for column in fitted.columns.columns)
    if names != (None if known is None else list(known)):
        raise ValueError("the names of the columns contradict those of the features.")
    return known


def _read_parameters(document: Document, estimator: Any) -> dict[str, Any]:
    """Constructor parameters; those that the file lacks keep their defaults."""
    known = estimator._get_param_names()
    stored = document.take("parameters", dict)
    unknown = [name for name in stored if name not in known]
    if unknown:
        raise ValueError(f"{estimator.__name__} has no parameters {str(unknown)[:100]}.")
    reader = ValueReader(document.tensor)
    return {name: reader.read(value) for name, value in stored.items()}


def _read_plan(document: Document) -> TrainPlan:
    """What was learned, through the same checks as the parameters of a fit."""
    entries = document.take("plan", dict)
    if entries.keys() != {field.name for field in fields(TrainPlan)}:
        raise ValueError(f"the plan has the entries {str(list(entries))[:200]}.")
    for name in ("dims", "ranks"):
        sizes = entries[name]
        if not isinstance(sizes, list) or not all(type(size) is int and 1 <= size < 1 << 62 for size in sizes):
            raise ValueError(f"the {name} of the plan are not plausible.")
        entries[name] = tuple(sizes)
    plan = TrainPlan(**entries)
    if not plan.dims:
        raise ValueError("the plan has no features.")
    parameters = {
        "rank": list(plan.ranks[1:-1]),
        "init": plan.init if isinstance(plan.init, str) and plan.init != "given" else [()],
        "max_memory": None,
        "degree": 1,
        "basis": "power",
        "scale": None,
        "bandwidth": None,  # of no interest here
        "n_iter_no_change": max(1, plan.patience) if type(plan.patience) is int else plan.patience,
        **{name: getattr(plan, name) for name in ("solver", "max_sweeps", "tol", "sampling")},
    }
    settings = make_settings(
        parameters, len(plan.dims), plan.loss, plan.alpha, stops_early=bool(plan.patience), joint=plan.joint is True
    )
    if settings.plan(plan.dims) != plan:
        raise ValueError("the plan contradicts itself.")
    return plan


def _check_parameters(model: Any, n_trains: int) -> None:
    """Run the checks of a fit, and those of what a fit does not look at."""
    is_classifier = isinstance(model, TensorTrainClassifier)
    parameters = model.get_params(deep=False)
    loss = learning_loss(model.loss) if is_classifier else check_loss(model.loss, "regression", parameters)
    columns = model.model_.columns
    is_category = None if columns is None else columns.is_category
    settings = make_settings(parameters, model.model_.n_features, loss, model.alpha, is_category)
    if settings.init == "given":
        # How many functions maps of other bases would have is known from the rows only.
        known = not any(basis == "auto" or map_kind(basis).needs_values for basis in set(settings.bases))
        dims = tuple(degree + 1 for degree in settings.degrees) if known else model.plan_.dims
        given_starts(model.init, n_trains, dims)
    names = getattr(model, "feature_names_in_", None)
    numbered = tuple(f"x{k}" for k in range(model.n_features_in_))
    chosen_columns(model.categorical_features, numbered if names is None else tuple(names), names is not None)
    allowed_groups(model.interaction_cst, model.n_features_in_, None if names is None else list(names))
    check_parameters(parameters)
    if is_classifier:
        check_choice("decision", model.decision, decision_names())
        class_weights(model.class_weight, model.classes_, np.ones(len(model.classes_)))


def _disarm(model: Any) -> None:
    """Take from the parameters what a stranger's file must not decide for the next fit on this machine."""
    if hasattr(model, "checkpoint"):
        model.checkpoint = None  # where to write
    if model.n_jobs is not None and model.n_jobs > cpu_count():
        model.n_jobs = cpu_count()
