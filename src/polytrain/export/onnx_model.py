"""Fitted models as ONNX: alone, or as a step of a pipeline that skl2onnx converts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polytrain.estimators import (
    TensorTrainClassifier,
    TensorTrainRegressor,
)
from polytrain.models import FittedModel
from polytrain.version import __version__

__all__ = ["register_onnx_converters", "to_onnx"]

#: The oldest operator set that the graph can be written in: Softmax means what it says since then.
OLDEST_OPSET = 13
_DTYPES = ("float32", "float64")


def _need(extra_module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(extra_module)
    except ImportError as error:
        raise ImportError(
            f"the ONNX export needs {extra_module}, which is not installed: pip install 'polytrain[onnx]'."
        ) from error


def to_onnx(model: Any, *, dtype: str = "float32", opset: int = 17) -> Any:
    """Return a fitted model, or a fitted pipeline that ends with one, as an ONNX model.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor, FittedModel or Pipeline
        The fitted model. A pipeline is converted by skl2onnx, which must know its other steps.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input rows and of the numbers that come out. The arithmetic of the model is float64 in any case.
    opset : int, default=17
        Version of ONNX's operators, at least 13. ``SerializeToString`` of the result is the content of an .onnx file.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` of shape (N, n_features). A classifier has the outputs ``label`` and ``probabilities``, or
        ``scores`` (the decision function) instead of the latter where it has no probabilities. A regressor has the
        output ``variable`` of shape (N, number of targets). These are skl2onnx's names.

        Of a model that was fitted from a frame with other columns than numbers, ``X`` is
        ``model.model_.columns.encode(frame)``: categories by the number of their level, dates by their parts. The
        entry "columns" of the metadata describes them, as ``columns.to_json()`` does.

    See Also
    --------
    register_onnx_converters : Lets skl2onnx convert pipelines with these models itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = to_onnx(TensorTrainClassifier(rank=2, random_state=0).fit(X, y))
    >>> [output.name for output in model.graph.output]
    ['label', 'probabilities']
    >>> sum(node.op_type == "Scan" for node in model.graph.node)
    1
    """
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {list(_DTYPES)}, got {dtype!r}.")
    _check_opset(opset)
    if not isinstance(model, FittedModel):
        check_is_fitted(model)
    _need("onnx")
    fitted = getattr(model, "model_", model)
    if not isinstance(fitted, FittedModel):
        return _convert_pipeline(model, dtype, opset)
    return _convert_model(fitted, np.dtype(dtype), opset)


def _check_opset(opset: Any) -> None:
    if not isinstance(opset, int) or opset < OLDEST_OPSET:
        raise ValueError(f"opset must be an integer of at least {OLDEST_OPSET}, got {opset!r}.")


def _numbered() -> Callable[[str], str]:
    """Return a source of fresh names."""
    counts: dict[str, int] = {}

    def unique(wish: str) -> str:
        counts[wish] = counts.get(wish, 0) + 1
        return f"{wish}_{counts[wish]}"

    return unique


def _convert_model(model: FittedModel, dtype: np.dtype, opset: int) -> Any:
    from onnx import checker, helper

    from polytrain.export.onnx_graph import GraphBuilder, label_array, onnx_type

    graph = GraphBuilder(_numbered())
    kind = onnx_type(dtype)
    inputs = [helper.make_tensor_value_info("X", kind, [None, model.n_features])]
    if model.decision is None or model.classes is None:
        _add_regressor(graph, model, "X", dtype, "variable")
        outputs = [helper.make_tensor_value_info("variable", kind, [None, model.n_trains])]
    else:
        labels = label_array(model.classes)
        second = "probabilities" if model.has_probabilities else "scores"
        width = len(labels) if model.has_probabilities else model.decision.n_decided(len(labels))
        _add_classifier(graph, model, "X", dtype, labels, ("label", second))
        label_kind = onnx_type(object if labels.dtype.kind in "UO" else labels.dtype)
        outputs = [
            helper.make_tensor_value_info("label", label_kind, [None]),
            helper.make_tensor_value_info(second, kind, [None, width]),
        ]
    operators = [helper.make_opsetid("", opset)]
    result = helper.make_model(
        helper.make_graph(graph.nodes, model.estimator_name, inputs, outputs, graph.initializers),
        opset_imports=operators,
        # The oldest version of the container that may hold these operators: old runtimes refuse newer ones.
        ir_version=helper.find_min_ir_version_for(operators),
        producer_name="polytrain",
        producer_version=__version__,
    )
    if model.columns is not None:
        helper.set_model_props(result, {"columns": json.dumps(model.columns.to_json())})
    checker.check_model(result, full_check=True)
    return result


def _add_regressor(graph: Any, model: FittedModel, rows: str, dtype: Any, output: str) -> None:
    from polytrain.export.onnx_graph import add_scores, onnx_type

    numbers = add_scores(graph, model, rows)
    if model.link == "log":
        numbers = graph.add("Exp", numbers)
    graph.add("Cast", numbers, to=onnx_type(dtype), output=output)


def _add_classifier(
    graph: Any, model: FittedModel, rows: str, dtype: Any, labels: Any, outputs: tuple[str, str]
) -> None:
    from polytrain.export.onnx_graph import add_scores, onnx_type

    decision, n_classes = model.decision, len(labels)
    if decision is None:
        raise TypeError("a classifier has a decision.")
    scores = add_scores(graph, model, rows)
    second = decided = decision.add_decision(graph, scores, n_classes)
    graph.add("Gather", graph.constant(labels), decision.add_choice(graph, decided), output=outputs[0])
    if model.has_probabilities:
        second = decision.add_probabilities(graph, scores, n_classes)
    graph.add("Cast", second, to=onnx_type(dtype), output=outputs[1])


def _convert_pipeline(pipeline: Any, dtype: str, opset: int) -> Any:
    """Let skl2onnx convert a pipeline whose input is one matrix."""
    skl2onnx = _need("skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.base import is_classifier

    register_onnx_converters()
    matrix = (FloatTensorType if dtype == "float32" else DoubleTensorType)([None, pipeline.n_features_in_])
    options = {id(pipeline): {"zipmap": False}} if is_classifier(pipeline) else None
    return skl2onnx.convert_sklearn(pipeline, initial_types=[("X", matrix)], target_opset=opset, options=options)


def register_onnx_converters() -> None:
    """Teach skl2onnx to convert polytrain's estimators, also within pipelines.

    After this call ``skl2onnx.convert_sklearn`` and ``skl2onnx.to_onnx`` know them, with float32 and float64 inputs and
    the options ``zipmap`` and ``nocl`` of other classifiers. `to_onnx` calls it by itself for a pipeline.

    Examples
    --------
    >>> from polytrain.export import register_onnx_converters
    >>> register_onnx_converters()
    """
    skl2onnx = _need("skl2onnx")
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    skl2onnx.update_registered_converter(
        TensorTrainClassifier,
        "PolytrainTensorTrainClassifier",
        calculate_linear_classifier_output_shapes,
        _classifier_converter,
        options={"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]},
    )
    skl2onnx.update_registered_converter(
        TensorTrainRegressor, "PolytrainTensorTrainRegressor", _regressor_shapes, _regressor_converter
    )


def _regressor_shapes(operator: Any) -> None:
    """Tell skl2onnx how many numbers a regressor predicts per row."""
    from skl2onnx.common.shape_calculator import calculate_linear_regressor_output_shapes

    calculate_linear_regressor_output_shapes(operator)
    operator.outputs[0].type.shape = [None, operator.raw_operator.model_.n_trains]


def _output_dtype(operator: Any) -> Any:
    """Return the type that skl2onnx expects of a step's numbers: float64 for float64 inputs, else float32."""
    from skl2onnx.common.data_types import DoubleTensorType

    return np.dtype(np.float64 if isinstance(operator.inputs[0].type, DoubleTensorType) else np.float32)


def _step_model(operator: Any) -> FittedModel:
    """The model of a step, whose input is the output of the step before."""
    model = operator.raw_operator.model_
    if model.columns is not None:
        raise ValueError(
            "this model turns columns of a frame, or those named by categorical_features, into features itself, which "
            "a converted pipeline cannot do. Convert the model alone with polytrain.export.to_onnx; its rows are "
            "model.model_.columns.encode(X)."
        )
    return model


def _hand_over(graph: Any, container: Any) -> None:
    """Put the collected nodes into skl2onnx's container."""
    from onnx import helper

    if container.target_opset < OLDEST_OPSET:
        _check_opset(container.target_opset)
    container.initializers.extend(graph.initializers)
    for node in graph.nodes:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        container.add_node(node.op_type, list(node.input), list(node.output), name=node.name, **attributes)


def _classifier_converter(scope: Any, operator: Any, container: Any) -> None:
    from polytrain.export.onnx_graph import GraphBuilder, label_array

    estimator = operator.raw_operator
    graph = GraphBuilder(scope.get_unique_variable_name)
    labels = label_array(estimator.classes_)
    if container.get_options(estimator, {"nocl": False})["nocl"]:
        labels = np.arange(len(labels))
    elif labels.dtype.kind in "bf":  # skl2onnx declares all labels that are no strings as int64
        labels = labels.astype(np.int64)
    outputs = operator.outputs[0].full_name, operator.outputs[1].full_name
    rows, model = operator.inputs[0].full_name, _step_model(operator)
    _add_classifier(graph, model, rows, _output_dtype(operator), labels, outputs)
    _hand_over(graph, container)


def _regressor_converter(scope: Any, operator: Any, container: Any) -> None:
    from polytrain.export.onnx_graph import GraphBuilder

    graph = GraphBuilder(scope.get_unique_variable_name)
    rows, output = operator.inputs[0].full_name, operator.outputs[0].full_name
    _add_regressor(graph, _step_model(operator), rows, _output_dtype(operator), output)
    _hand_over(graph, container)
