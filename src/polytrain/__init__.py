"""Polynomial classifiers and regressors whose coefficients are kept as a tensor train.

Rows go through feature maps and trains to a decision or a number, and so does the layout of the package. Start with
`TensorTrainClassifier` or `TensorTrainRegressor`; `TensorTrain` and `Polynomial` are the objects behind them. Fitted
models have a method ``save``; `load` reads the file, and ``polytrain.export`` turns models into ONNX and C. `average`
makes one model of several, and `report` a page about one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polytrain.version import __version__

if TYPE_CHECKING:
    from polytrain import export
    from polytrain.estimators import (
        TensorTrainClassifier,
        TensorTrainRegressor,
    )
    from polytrain.estimators.averaging import average
    from polytrain.estimators.saving import load
    from polytrain.models.file import ModelFileError
    from polytrain.reporting import report
    from polytrain.tensor import Polynomial, TensorTrain

__all__ = [
    "ModelFileError",
    "Polynomial",
    "TensorTrain",
    "TensorTrainClassifier",
    "TensorTrainRegressor",
    "__version__",
    "average",
    "export",
    "load",
    "report",
]

# All of these are imported on first use, so that nothing waits for what it does not need: the command line answers
# --help before NumPy is there.
_HOMES = {
    "ModelFileError": "polytrain.models.file",
    "Polynomial": "polytrain.tensor",
    "TensorTrain": "polytrain.tensor",
    "TensorTrainClassifier": "polytrain.estimators",
    "TensorTrainRegressor": "polytrain.estimators",
    "average": "polytrain.estimators.averaging",
    "load": "polytrain.estimators.saving",
    "report": "polytrain.reporting",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    if name == "export":
        return import_module("polytrain.export")
    raise AttributeError(f"module 'polytrain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
