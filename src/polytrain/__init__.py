"""Polynomial classifiers and regressors whose coefficients are kept as a tensor train.

Start with `TensorTrainClassifier` or `TensorTrainRegressor`. Fitted models are saved with ``save``; `load` reads the
file, and ``polytrain.export`` turns models into ONNX and C. `average` combines several models into one, and `report`
writes a page about one. `config_context` limits memory and keeps interrupted fits. `TensorTrain` and `Polynomial` are
the objects behind the models.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polytrain.version import __version__

if TYPE_CHECKING:
    from polytrain import export
    from polytrain.checks import DataWarning
    from polytrain.config import config_context
    from polytrain.estimators import TensorTrainClassifier, TensorTrainRegressor
    from polytrain.estimators.averaging import average
    from polytrain.estimators.saving import load
    from polytrain.models.file import ModelFileError
    from polytrain.reporting import report
    from polytrain.tensor import Polynomial, TensorTrain

__all__ = [
    "DataWarning",
    "ModelFileError",
    "Polynomial",
    "TensorTrain",
    "TensorTrainClassifier",
    "TensorTrainRegressor",
    "__version__",
    "average",
    "config_context",
    "export",
    "load",
    "report",
]

# These are imported on first use: the command line answers --help without importing NumPy.
_HOMES = {
    "DataWarning": "polytrain.checks",
    "ModelFileError": "polytrain.models.file",
    "Polynomial": "polytrain.tensor",
    "TensorTrain": "polytrain.tensor",
    "TensorTrainClassifier": "polytrain.estimators",
    "TensorTrainRegressor": "polytrain.estimators",
    "average": "polytrain.estimators.averaging",
    "config_context": "polytrain.config",
    "load": "polytrain.estimators.saving",
    "report": "polytrain.reporting",
}


def __getattr__(name: str) -> Any:
    if name == "export":
        return import_module("polytrain.export")
    if name not in _HOMES:
        raise AttributeError(f"module 'polytrain' has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
