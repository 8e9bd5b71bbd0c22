"""Save estimators in model files and load them: the fitted model, the parameters, and facts about the fit.

`_rebuild` raises ``ValueError`` without the name of the file; `load` adds the name.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from polytrain.choice import Chosen
from polytrain.columns.scalars import check_hashes
from polytrain.estimators._parameters import INITS
from polytrain.estimators._streaming import Stream
from polytrain.estimators.classifier import TensorTrainClassifier
from polytrain.estimators.regressor import TensorTrainRegressor
from polytrain.evaluation import LeftOut
from polytrain.learning.core_solvers import SOLVERS
from polytrain.learning.settings import Settings
from polytrain.models.file import Document, ModelFileError, naming, read_model_file, write_model_file
from polytrain.models.fitted_state import describe_fitted, read_fitted
from polytrain.records import read_entries, read_value
from polytrain.version import __version__

__all__ = ["load", "load_with_table", "save"]

_ESTIMATORS: dict[str, Any] = {kind.__name__: kind for kind in (TensorTrainClassifier, TensorTrainRegressor)}
# Longer lists of numbers, such as one per column, are stored as arrays: the text of a file is limited.
_LONGEST_LIST = 1000
# Parameters that are lists of lists are nested twice.
_MAX_DEPTH = 3
# Entries of the plan in a file; the loss is that of the fitted model.
_PLAN = {
    "rank": tuple[int, ...],
    "alpha": float,
    "init": Literal[(*INITS, "given")],
    "solver": Literal[SOLVERS],
    "max_sweeps": int,
    "tol": float,
    "patience": int,
    "joint": bool,
}
# Columns of the history, in order.
_HISTORY = dict.fromkeys(("train", "sweep", "n_rows"), np.int64) | dict.fromkeys(("loss", "objective"), np.float64)
_HISTORY |= {"decrease": np.float64, "ranks": np.int64, "seconds": np.float64, "validation_loss": np.float64}


def save(estimator: Any, path: str | os.PathLike[str], *, table: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator; see ``TrainModel.save``.

    ``table`` is JSON about the tables that the estimator was fitted from; `load_with_table` returns it.
    """
    if _ESTIMATORS.get(type(estimator).__name__) is not type(estimator):
        raise ModelFileError(
            f"a model file holds one of {list(_ESTIMATORS)}, not {type(estimator).__qualname__}. Use pickle."
        )
    tensors: dict[str, NDArray] = {}
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        # Trains given as init, and random states, belong to one fit.
        is_own = (name == "init" and not isinstance(value, str)) or isinstance(value, np.random.RandomState)
        if not is_own:
            parameters[name] = _describe_parameter(name, value, tensors)
    fitted, arrays = describe_fitted(estimator.model_)
    choice, left_out = asdict(estimator.choice_), estimator.left_out_
    # JSON has no NaN.
    tried = [[None if isinstance(v, float) and math.isnan(v) else v for v in line] for line in choice["tried"]]
    document = {
        "writer": f"polytrain {__version__}",
        "parameters": parameters,
        **fitted,
        "has_column_names": hasattr(estimator, "feature_names_in_"),
        "plan": {name: getattr(estimator.plan_, name) for name in _PLAN},
        "choice": {**choice, "tried": tried},
        "left_out": None if left_out is None else left_out._asdict(),
        "seen": [float(weight) for weight in (estimator.stream_.seen, estimator.stream_.first)],
        "stop_reason": estimator.stop_reason_,
        "warnings": estimator.warnings_,
        "table": table,
    }
    for name in estimator.history_[0] if estimator.history_ else ():
        arrays[f"history.{name}"] = np.array([record[name] for record in estimator.history_], dtype=_HISTORY[name])
    write_model_file(path, document, {**arrays, **tensors})


def load(path: str | os.PathLike[str], *, max_bytes: int = 1 << 30) -> Any:
    """Read a model file written by ``model.save(path)``.

    The file may be from an untrusted source: nothing in it is executed or imported, sizes are checked before memory is
    allocated, and everything that a prediction relies on is checked before the model is built. Parameters are checked
    by the next `fit`.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int, default=2**30
        Largest accepted size of a file. The memory needed is a small multiple of the file's size.

    Returns
    -------
    TensorTrainClassifier or TensorTrainRegressor
        The fitted model, which predicts the same to 1e-6 of the range of its predictions. Of a file that ``polytrain
        fit`` wrote, it is the estimator; `polytrain.tables.load_table_model` also returns the layout of its tables.

    Raises
    ------
    ModelFileError
        If the file is damaged, truncated, too large, of another kind, or of an unknown format.

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
    content, tensors = read_model_file(path, max_bytes)
    with naming(path):
        return _rebuild(Document(content, tensors))


def _rebuild(document: Document) -> tuple[Any, dict[str, Any] | None]:
    """Check a document of this format and its arrays; return the fitted estimator, and JSON about its tables."""
    document.take("writer", str)
    fitted = read_fitted(document)
    estimator = _ESTIMATORS[fitted.estimator_name]
    model = estimator(**_read_parameters(document, estimator))
    columns, has_names = fitted.columns, document.take("has_column_names", bool)
    names = fitted.feature_names if columns is None else [column.name for column in columns.columns]
    if has_names and names is None:
        raise ValueError("the names of the columns are missing.")
    plan = Settings(fitted.loss, **read_entries("the plan", document.take("plan", dict), _PLAN))
    if len(plan.ranks) != fitted.n_features + 1 or min(plan.ranks) < 1 or math.isnan(plan.alpha + plan.tol):
        raise ValueError("the plan is not plausible.")
    seen = read_value("the weight of the past", document.take("seen", list), tuple[float, float])
    if math.isnan(sum(seen)):
        raise ValueError("the weight of the past is null.")
    model._keep(
        names if has_names else None,
        model_=fitted,
        plan_=plan,
        choice_=read_value("the choice", document.take("choice", dict), Chosen),
        left_out_=read_value("left_out", document.take("left_out", dict, type(None)), LeftOut | None),
        stream_=Stream(*seen),
        history_=_read_history(document, fitted.n_features + 1, fitted.n_trains),
        stop_reason_=document.take("stop_reason", str),
        warnings_=read_value("the list of warnings", document.take("warnings", list), tuple[str, ...]),
    )
    table = document.take("table", dict, type(None))
    document.check_empty()
    return model, table


def _describe_parameter(name: str, value: Any, tensors: dict[str, NDArray]) -> Any:
    """Return a parameter as JSON; long lists of numbers are added to the arrays."""

    def encode(value: Any, depth: int) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        if isinstance(value, set | frozenset):  # equal sets become equal files
            value = sorted(value, key=lambda item: (type(item).__name__, item))
        if isinstance(value, list | tuple | range) and depth:
            kinds = {type(item) for item in value}
            if len(value) > _LONGEST_LIST and len(kinds) == 1 and kinds <= {bool, int, float}:
                key = f"parameter.{len(tensors)}"
                tensors[key] = np.array(value, dtype=np.int64 if int in kinds else None)
                return {"array": key}
            return [encode(item, depth - 1) for item in value]
        if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
            return value
        raise TypeError(f"{value!r:.200} of type {type(value).__module__}.{type(value).__qualname__}")

    try:
        if name == "class_weight" and isinstance(value, Mapping):
            value = list(value.items())
        return encode(value, _MAX_DEPTH)
    except (TypeError, OverflowError) as error:
        raise ModelFileError(
            f"the parameter {name} holds {error}, which a model file cannot store. Replace it with set_params before "
            "saving, or use pickle."
        ) from None


def _read_parameters(document: Document, estimator: Any) -> dict[str, Any]:
    """Return constructor parameters; missing ones keep their defaults. The next fit checks their values."""
    stored = document.take("parameters", dict)
    unknown = [name for name in stored if name not in estimator._get_param_names()]
    if unknown:
        raise ValueError(f"{estimator.__name__} has no parameters {str(unknown)[:100]}.")

    def decode(value: Any, depth: int) -> Any:
        if isinstance(value, list) and depth:
            return [decode(item, depth - 1) for item in value]
        if isinstance(value, dict) and value.keys() == {"array"} and str(value["array"]).startswith("parameter."):
            return document.tensor(value["array"], (np.bool_, np.int64, np.float64), (None,)).tolist()
        if isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"a parameter holds {value!r:.60}, which is not plausible.")
        return value

    parameters = {name: decode(value, _MAX_DEPTH) for name, value in stored.items()}
    weights = parameters.get("class_weight")
    if isinstance(weights, list):
        if not all(isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], list) for pair in weights):
            raise ValueError("class_weight should hold pairs of a label and a weight.")
        check_hashes((label for label, _ in weights), "class_weight")
        parameters["class_weight"] = dict(weights)
    # A file must not decide how many processes the next fit on this machine starts.
    n_jobs = parameters.get("n_jobs")
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r:.60}.")
    if n_jobs is not None and n_jobs > cpu_count():
        parameters["n_jobs"] = cpu_count()
    return parameters


def _read_history(document: Document, n_bonds: int, n_trains: int) -> list[dict[str, Any]]:
    """Return the records, given an array for each of their entries."""
    stored = document.tensors("history.")
    columns = {name: stored.pop(name) for name in _HISTORY if name in stored} | stored
    if not columns:
        return []
    if not _HISTORY.keys() - {"validation_loss"} <= columns.keys() <= _HISTORY.keys():
        raise ValueError(f"the history should have the columns {list(_HISTORY)}, not {str(list(columns))[:200]}.")
    n_records = columns["train"].size
    for name, column in columns.items():
        shape = (n_records, n_bonds) if name == "ranks" else (n_records,)
        if column.dtype != _HISTORY[name] or column.shape != shape or not n_records:
            raise ValueError(f"the column {name!r} of the history has type {column.dtype} and shape {column.shape}.")
        if not np.isfinite(column).all() or (column.dtype == np.int64 and column.min() < (name == "ranks")):
            raise ValueError(f"history.{name} holds negative counts, or numbers that are not finite.")
    if columns["train"].max() >= n_trains:
        raise ValueError("the history names trains that do not exist.")
    lists = [map(tuple, column.tolist()) if column.ndim == 2 else column.tolist() for column in columns.values()]
    return [dict(zip(columns, record, strict=True)) for record in zip(*lists, strict=True)]
