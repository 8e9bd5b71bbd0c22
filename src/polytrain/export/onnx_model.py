"""Export fitted models to ONNX: alone, or as a step of a pipeline that skl2onnx converts.

Conventions of the graph
------------------------
Rows are the first axis (``N``), ``m`` trains are batched, ``R`` is the largest rank and ``n`` the largest dimension;
cores are padded with zeros to (m, n * R, R) and stacked along the features, so that one Scan runs over all of them.
Maps and decisions add their own operators. All arithmetic is float64, also for float32 rows: a product over a hundred
features in float32 would lose half of its digits. onnx is an extra, so functions import it when they run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polytrain.checks import need
from polytrain.columns.scalars import text_of
from polytrain.estimators import TensorTrainClassifier, TensorTrainRegressor
from polytrain.export_writers import GraphWriter, onnx_type
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.version import __version__

#: The oldest operator set that the graph can be written in: Softmax has its present meaning since then.
OLDEST_OPSET = 13
_DTYPES = ("float32", "float64")


def to_onnx(model: Any, *, dtype: str = "float32", opset: int = 17) -> Any:
    """Return a fitted model, or a fitted pipeline that ends with one, as an ONNX model.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor, FittedModel or Pipeline
        The fitted model. A pipeline is converted by skl2onnx, which must support its other steps.
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

        If the model was fitted from a frame with columns that are not numbers, ``X`` is
        ``model.model_.columns.encode(frame)``: categories by the number of their level, dates by their parts. The
        metadata has, as JSON, the names of features as "polytrain.features", and the levels of categories by the name
        of the feature as "polytrain.categories".

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
    need("the ONNX export", "onnx", "onnx")
    fitted = getattr(model, "model_", model)
    if not isinstance(fitted, FittedModel):
        return _convert_pipeline(model, dtype, opset)
    return _convert_model(fitted, np.dtype(dtype), opset)


def _check_opset(opset: Any) -> None:
    if not isinstance(opset, int) or opset < OLDEST_OPSET:
        raise ValueError(f"opset must be an integer of at least {OLDEST_OPSET}, got {opset!r}.")


def _numbered(prefix: str = "") -> Callable[[str], str]:
    """Return a function that adds a different number to every name."""
    numbers = count(1)
    return lambda name: f"{prefix}{name}_{next(numbers)}"


def _convert_model(model: FittedModel, dtype: np.dtype, opset: int) -> Any:
    from onnx import checker, helper

    graph, kind = GraphWriter(_numbered()), onnx_type(dtype)
    inputs = [helper.make_tensor_value_info("X", kind, [None, model.n_features])]
    names, outputs, labels, width = ["variable"], [], None, model.n_trains
    if model.decision is not None and model.classes is not None:
        labels = _label_array(model.classes)
        names = ["label", "probabilities" if model.has_probabilities else "scores"]
        width = len(labels) if model.has_probabilities or len(labels) > 2 or not model.one_output else 1
        label_kind = onnx_type(object if labels.dtype.kind in "UO" else labels.dtype)
        shape = [None] if model.one_output else [None, width]
        outputs.append(helper.make_tensor_value_info("label", label_kind, shape))
    outputs.append(helper.make_tensor_value_info(names[-1], kind, [None, width]))
    _add_outputs(graph, model, "X", dtype, names, labels)
    operators = [helper.make_opsetid("", opset)]
    result = helper.make_model(
        helper.make_graph(graph.nodes, model.estimator_name, inputs, outputs, graph.initializers),
        opset_imports=operators,
        # The oldest version of the container that may hold these operators: old runtimes refuse newer ones.
        ir_version=helper.find_min_ir_version_for(operators),
        producer_name="polytrain",
        producer_version=__version__,
    )
    if model.feature_names is not None:
        levels = zip(model.feature_names, [] if model.columns is None else model.columns.levels, strict=False)
        categories = {name: list(map(text_of, known)) for name, known in levels if known is not None}
        facts = {"polytrain.features": list(model.feature_names), "polytrain.categories": categories}
        helper.set_model_props(result, {name: json.dumps(value) for name, value in facts.items()})
    checker.check_model(result, full_check=True)
    return result


def _add_outputs(
    graph: GraphWriter, model: FittedModel, rows: str, dtype: Any, outputs: Sequence[str], labels: Any = None
) -> None:
    """Add the numbers that a regressor predicts; or the labels, and probabilities or scores, of a classifier."""
    numbers = scores = _add_scores(graph, model, rows)
    if model.link == "log":
        numbers = graph.add("Exp", scores)
    if model.is_limited:
        low, high = map(graph.constant, model.limits)
        numbers = graph.add("Max", graph.add("Min", numbers, high), low)
    if model.decision is not None:
        numbers = model.decision.add_decision(graph, scores, len(labels))
        choice = model.decision.add_choice(graph, numbers)
        graph.add("Gather", graph.constant(labels), choice, output=outputs[0])
        if model.has_probabilities:
            numbers = model.decision.add_probabilities(graph, scores, len(labels))
    graph.add("Cast", numbers, to=onnx_type(dtype), output=outputs[-1])


def _add_scores(graph: GraphWriter, model: FittedModel, rows: str) -> str:
    """Scores of all trains. Shapes: rows (N, d) of any type -> (N, m)."""
    trains, dims = model.cores, model.maps.dims
    n_trains, rank, n = len(trains), max(core.shape[2] for cores in trains for core in cores), max(*dims, 2)
    stacked = np.zeros((len(dims), n_trains, n, rank, rank))
    for t, cores in enumerate(trains):
        for k, core in enumerate(cores):
            stacked[k, t, : core.shape[1], : core.shape[0], : core.shape[2]] = core.transpose(1, 0, 2)
    columns = graph.add("Transpose", graph.cast(rows, np.float64), perm=[1, 0])
    values = _add_values(graph, model.maps, columns, n)
    n_rows = graph.add("Gather", graph.add("Shape", rows), graph.constant([0], np.int64))
    shape = graph.add("Concat", graph.constant([n_trains], np.int64), n_rows, graph.constant([rank], np.int64), axis=0)
    # The chain starts with 1 in the first of R slots, for every train and row.
    start = graph.add("Expand", graph.constant(np.eye(1, rank)), shape)
    cores_in_order = graph.constant(stacked.reshape(len(dims), n_trains, n * rank, rank))
    body = _chain_step(n, n_trains, rank)
    chain = graph.add("Scan", start, values, cores_in_order, num_scan_inputs=2, body=body)
    last = graph.add("Gather", chain, graph.constant([0], np.int64), axis=2)  # (m, N, 1)
    # The axis goes last: runtimes up to 1.24 fuse a transposition and the product after it, which fails for float64.
    upright = graph.add("Transpose", last, perm=[1, 0, 2])
    scores = graph.add("Squeeze", upright, graph.constant([2], np.int64))
    if model.rescales:
        scores = graph.add("Add", graph.add("Mul", scores, graph.constant(model.size)), graph.constant(model.shift))
    return scores


def _add_values(graph: GraphWriter, maps: MapList, columns: str, n: int) -> str:
    """Functions of all columns but the constant. Shapes: raw columns (d, N) -> (d, N, n - 1)."""
    parts, order = [], []
    for kind, indices in maps.groups:
        members, some = maps.members(indices), columns
        if len(maps.groups) > 1:
            some = graph.add("Gather", columns, graph.constant(indices, np.int64), axis=0)
        values = kind.add_to_graph(members, graph, some)
        if n_absent := n - max(m.n for m in members):  # they are zero
            values = graph.add("Pad", values, graph.constant([0, 0, 0, 0, 0, n_absent], np.int64))
        parts.append(values)
        order += indices
    if len(parts) == 1:
        return parts[0]
    together = graph.add("Concat", *parts, axis=0)
    return graph.add("Gather", together, graph.constant(np.argsort(order), np.int64), axis=0)


def _chain_step(n: int, n_trains: int, rank: int) -> Any:
    """Absorb one column, the body of the Scan.

    Shapes: state (m, N, R), values (N, n - 1), core (m, n * R, R) -> (m, N, R).
    """
    from onnx import TensorProto, helper

    graph, kind = GraphWriter(_numbered("chain_")), TensorProto.DOUBLE
    state, values, core, axis = "chain_state", "chain_values", "chain_core", graph.constant([2], np.int64)
    products = graph.add("Mul", graph.add("Unsqueeze", state, axis), graph.add("Unsqueeze", values, axis))
    flat = graph.add("Reshape", products, graph.constant([n_trains, -1, (n - 1) * rank], np.int64))
    graph.add("MatMul", graph.add("Concat", state, flat, axis=2), core, output="chain_next")
    inputs = [
        helper.make_tensor_value_info(state, kind, [n_trains, None, rank]),
        helper.make_tensor_value_info(values, kind, [None, n - 1]),
        helper.make_tensor_value_info(core, kind, [n_trains, n * rank, rank]),
    ]
    outputs = [helper.make_tensor_value_info("chain_next", kind, [n_trains, None, rank])]
    return helper.make_graph(graph.nodes, "chain", inputs, outputs, graph.initializers)


def _label_array(classes: NDArray) -> NDArray:
    """Classes in a type that ONNX's label outputs have: int64, string, or a float or bool type of their own."""
    if classes.dtype.kind in "iu":
        if classes.dtype == np.uint64 and classes.max() > np.iinfo(np.int64).max:
            raise ValueError(f"the label {classes.max()} does not fit int64, the type of labels in ONNX.")
        return classes.astype(np.int64)
    if classes.dtype.kind not in "UObf":
        raise ValueError(f"labels of type {classes.dtype} have no counterpart in ONNX; use numbers or strings.")
    return classes


def _convert_pipeline(pipeline: Any, dtype: str, opset: int) -> Any:
    """Let skl2onnx convert a pipeline whose input is one matrix."""
    skl2onnx = need("the ONNX export", "onnx", "skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.base import is_classifier

    register_onnx_converters()
    matrix = (FloatTensorType if dtype == "float32" else DoubleTensorType)([None, pipeline.n_features_in_])
    options = {id(pipeline): {"zipmap": False}} if is_classifier(pipeline) else None
    return skl2onnx.convert_sklearn(pipeline, initial_types=[("X", matrix)], target_opset=opset, options=options)


def register_onnx_converters() -> None:
    """Teach skl2onnx to convert polytrain's estimators, also within pipelines.

    After this call ``skl2onnx.convert_sklearn`` and ``skl2onnx.to_onnx`` support them with float32 and float64 inputs
    and the options ``zipmap`` and ``nocl`` of other classifiers. `to_onnx` calls it by itself for a pipeline.
    """
    skl2onnx = need("the ONNX export", "onnx", "skl2onnx")
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    skl2onnx.update_registered_converter(
        TensorTrainClassifier,
        "PolytrainTensorTrainClassifier",
        calculate_linear_classifier_output_shapes,
        _convert_step,
        options={"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]},
    )
    skl2onnx.update_registered_converter(
        TensorTrainRegressor, "PolytrainTensorTrainRegressor", _regressor_shapes, _convert_step
    )


def _regressor_shapes(operator: Any) -> None:
    """Tell skl2onnx how many numbers a regressor predicts per row."""
    from skl2onnx.common.shape_calculator import calculate_linear_regressor_output_shapes

    calculate_linear_regressor_output_shapes(operator)
    operator.outputs[0].type.shape = [None, operator.raw_operator.model_.n_trains]


def _convert_step(scope: Any, operator: Any, container: Any) -> None:
    """Write the model of a step, whose input is the output of the step before, into skl2onnx's container."""
    from onnx import helper
    from skl2onnx.common.data_types import DoubleTensorType

    _check_opset(container.target_opset)
    model: FittedModel = operator.raw_operator.model_
    if model.columns is not None:
        raise ValueError(
            "this model turns columns of a frame, or those named by categorical_features, into features itself, which "
            "a converted pipeline cannot do. Convert the model alone with polytrain.export.to_onnx; its rows are "
            "model.model_.columns.encode(X)."
        )
    if model.classes is not None and not model.one_output:
        raise ValueError(
            f"skl2onnx supports one label per row, and this classifier has {model.n_trains} labels. Convert the "
            "model alone with polytrain.export.to_onnx."
        )
    labels = None
    if model.classes is not None:
        labels = _label_array(model.classes)
        if container.get_options(operator.raw_operator, {"nocl": False})["nocl"]:
            labels = np.arange(len(labels))
        elif labels.dtype.kind in "bf":  # skl2onnx declares all labels that are not strings as int64
            labels = labels.astype(np.int64)
    # skl2onnx expects float64 for float64 inputs, else float32.
    dtype = np.float64 if isinstance(operator.inputs[0].type, DoubleTensorType) else np.float32
    graph, outputs = GraphWriter(scope.get_unique_variable_name), [output.full_name for output in operator.outputs]
    _add_outputs(graph, model, operator.inputs[0].full_name, dtype, outputs, labels)
    container.initializers.extend(graph.initializers)
    for node in graph.nodes:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        container.add_node(node.op_type, list(node.input), list(node.output), name=node.name, **attributes)
