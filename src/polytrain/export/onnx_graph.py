"""The ONNX graph of a fitted model: scale, chain, decide.

Conventions
-----------
Operators and initialisers are collected by `GraphBuilder`, which knows nothing of where they end up: a model of its own
or a pipeline that skl2onnx assembles. Inside, rows are the first axis (``N``), ``m`` trains are batched, ``R`` is the
largest rank and ``n`` the largest dimension; cores are padded with zeros to (m, n * R, R) and stacked along the
features, so that one Scan runs over all of them. All arithmetic is float64, also for float32 rows: a product over a
hundred features in float32 would lose half of its digits, and what comes before in a pipeline rounds differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from polytrain.basis import Basis, get_basis

__all__ = ["GraphBuilder", "add_decision", "add_label", "add_probabilities", "add_scores", "onnx_type"]


def onnx_type(dtype: DTypeLike) -> int:
    """Return ONNX's number of a NumPy type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class GraphBuilder:
    """Collects nodes and initialisers under fresh names.

    Parameters
    ----------
    unique : callable
        Turns a wish for a name into a name that nothing else has.
    """

    def __init__(self, unique: Callable[[str], str]) -> None:
        self._unique = unique
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, array: Any, dtype: DTypeLike | None = None) -> str:
        """Store an array and return its name."""
        name = self._unique("constant")
        values = np.array(array, dtype=dtype, order="C")  # keeps a number a number, which ascontiguousarray does not
        if values.dtype.kind in "UO":
            words: Any = [str(value).encode() for value in values.ravel()]
            tensor = helper.make_tensor(name, TensorProto.STRING, values.shape, words)
        else:
            tensor = numpy_helper.from_array(values, name)
        self.initializers.append(tensor)
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        result = output or self._unique(operator.lower())
        self.nodes.append(helper.make_node(operator, list(inputs), [result], name=self._unique("node"), **attributes))
        return result

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Convert to another type."""
        return self.add("Cast", value, to=onnx_type(dtype))


def add_scores(graph: GraphBuilder, model: Any, rows: str) -> str:
    """Scores of all trains. Shapes: rows (N, d) of any type -> (N, m)."""
    trains = model._stack.unstack()
    dims = [core.shape[1] for core in trains[0]]
    n_trains, rank, n = len(trains), max(core.shape[2] for cores in trains for core in cores), max(dims)
    stacked = np.zeros((len(dims), n_trains, n, rank, rank))
    for t, cores in enumerate(trains):
        for k, core in enumerate(cores):
            stacked[k, t, : core.shape[1], : core.shape[0], : core.shape[2]] = core.transpose(1, 0, 2)
    features = _add_scaling(graph, model.scale_, graph.cast(rows, np.float64))
    columns = graph.add("Transpose", features, perm=[1, 0])
    # The chain starts with 1 in the first of R slots, for every train and row.
    first = graph.constant(np.eye(1, rank).reshape(1, 1, rank).repeat(n_trains, axis=0))
    n_rows = graph.add("Gather", graph.add("Shape", rows), graph.constant([0], np.int64))
    shape = graph.add("Concat", graph.constant([n_trains], np.int64), n_rows, graph.constant([rank], np.int64), axis=0)
    start = graph.add("Expand", first, shape)
    # Powers that a feature does not have are multiplied by zeros; only unscaled features could make them infinite.
    used = np.arange(n) < np.array(dims)[:, None] if model.scale_ is None and len(set(dims)) > 1 else None
    scanned = [columns, graph.constant(stacked.reshape(len(dims), n_trains, n * rank, rank))]
    if used is not None:
        scanned.append(graph.constant(used))
    body = _chain_step(get_basis(model.plan_.basis), n, (n_trains, rank), used is not None)
    chain = graph.add("Scan", start, *scanned, num_scan_inputs=len(scanned), body=body)
    last = graph.add("Gather", chain, graph.constant(0, np.int64), axis=2)  # (m, N)
    return graph.add("Mul", graph.add("Transpose", last, perm=[1, 0]), graph.constant(model._target_size))


def _add_scaling(graph: GraphBuilder, scale: Any, rows: str) -> str:
    """Clip to the fitted ranges and map them onto [-1, 1]. Shapes: (N, d) -> (N, d)."""
    if scale is None:
        return rows
    centre, factor = scale.centre, scale.factor
    clipped = graph.add("Min", graph.add("Max", rows, graph.constant(scale.low)), graph.constant(scale.high))
    return graph.add("Mul", graph.add("Sub", clipped, graph.constant(centre)), graph.constant(factor))


def _chain_step(basis: Basis, n: int, shape: tuple[int, int], masked: bool) -> onnx.GraphProto:
    """Absorb one feature, the body of the Scan.

    Shapes: state (m, N, R), x (N,), core (m, n * R, R), used (n,) if masked -> (m, N, R).
    """
    names: dict[str, int] = {}

    def unique(wish: str) -> str:
        names[wish] = names.get(wish, 0) + 1
        return f"chain_{wish}_{names[wish]}"

    graph = GraphBuilder(unique)
    kind, (n_trains, rank) = TensorProto.DOUBLE, shape
    state, x, core, used = "chain_state", "chain_x", "chain_core", "chain_used"
    column = graph.add("Reshape", x, graph.constant([-1, 1], np.int64))
    values: list[str] = []
    for degree in range(1, n):
        values.append(column if degree == 1 else _next_value(graph, basis, degree, column, values))
    parts = [state]
    for degree, value in enumerate(values, start=1):
        if masked:
            flag = graph.add("Gather", used, graph.constant(degree, np.int64))
            value = graph.add("Where", flag, value, graph.constant(0.0))
        parts.append(graph.add("Mul", state, value))
    spread = graph.add("Concat", *parts, axis=2)
    graph.add("MatMul", spread, core, output="chain_next")
    inputs = [
        helper.make_tensor_value_info(state, kind, [n_trains, None, rank]),
        helper.make_tensor_value_info(x, kind, [None]),
        helper.make_tensor_value_info(core, kind, [n_trains, n * rank, rank]),
    ]
    if masked:
        inputs.append(helper.make_tensor_value_info(used, TensorProto.BOOL, [n]))
    outputs = [helper.make_tensor_value_info("chain_next", kind, [n_trains, None, rank])]
    return helper.make_graph(graph.nodes, "chain", inputs, outputs, graph.initializers)


def _next_value(graph: GraphBuilder, basis: Basis, degree: int, x: str, values: Sequence[str]) -> str:
    """phi[degree] from the two functions before it; ``values`` begins with phi[1], and phi[0] is 1."""
    a, b = basis.recurrence(degree)
    value = graph.add("Mul", values[-1], x)
    if a != 1:
        value = graph.add("Mul", value, graph.constant(a))
    if b == 0:
        return value
    weight = graph.constant(b)
    return graph.add("Sub", value, weight if degree == 2 else graph.add("Mul", weight, values[-2]))


def add_decision(graph: GraphBuilder, model: Any, scores: str) -> str:
    """What ``decision_function`` returns. Shapes: (N, m) -> (N, n_classes), or (N, 1) for two classes."""
    if len(model.classes_) == 2 or model.decision_.name == "one-vs-rest":
        return scores
    code = model.decision_.code(len(model.classes_))
    positive = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), np.float64)
    if model.decision_.name == "one-vs-one":
        # votes = positive @ (code > 0) + (1 - positive) @ (code < 0)
        won = graph.add("MatMul", positive, graph.constant(code, np.float64))
        votes = graph.add("Add", won, graph.constant((code < 0).sum(axis=0), np.float64))
    elif model.decision_.name == "binary-code":
        # (agreement - n_bits) / 2 with agreement = (2 positive - 1) @ code
        agreement = graph.add("MatMul", positive, graph.constant(code, np.float64))
        votes = graph.add("Sub", agreement, graph.constant((code.sum(axis=0) + len(code)) / 2, np.float64))
    else:
        raise NotImplementedError(f"there is no ONNX graph for the decision {model.decision_.name!r}.")
    sums = graph.add("MatMul", scores, graph.constant(code, np.float64))
    size = graph.add("Add", graph.add("Abs", sums), graph.constant(1.0))
    squashed = graph.add("Div", sums, graph.add("Mul", size, graph.constant(3.0)))
    return graph.add("Add", votes, squashed)


def add_label(graph: GraphBuilder, model: Any, decided: str, labels: Any, output: str) -> None:
    """Label of every row. Shapes: decided as from `add_decision` -> (N,)."""
    if len(model.classes_) == 2:
        positive = graph.add("Greater", decided, graph.constant(0.0))
        index = graph.add("Reshape", graph.cast(positive, np.int64), graph.constant([-1], np.int64))
    else:
        index = graph.add("ArgMax", decided, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(labels), index, output=output)


def _log_sigmoid(graph: GraphBuilder, value: str) -> str:
    """min(z, 0) - log(1 + exp(-|z|)), which overflows nowhere."""
    zero, one = graph.constant(0.0), graph.constant(1.0)
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", value)))
    return graph.add("Sub", graph.add("Min", value, zero), graph.add("Log", graph.add("Add", small, one)))


def add_probabilities(graph: GraphBuilder, model: Any, scores: str) -> str:
    """Shapes: scores (N, m) -> (N, n_classes)."""
    n_classes = len(model.classes_)
    if n_classes == 2:
        both = graph.add("Concat", graph.add("Neg", scores), scores, axis=1)
        return graph.add("Exp", _log_sigmoid(graph, both))
    if model.decision_.name == "one-vs-rest":
        logs = _log_sigmoid(graph, scores)
    elif model.decision_.name == "one-vs-one":
        logs = _pairwise_logs(graph, scores, n_classes)
    elif model.decision_.name == "binary-code":
        code = model.decision_.code(n_classes)
        agree, differ = _log_sigmoid(graph, scores), _log_sigmoid(graph, graph.add("Neg", scores))
        logs = graph.add(
            "Add",
            graph.add("MatMul", agree, graph.constant(code > 0, np.float64)),
            graph.add("MatMul", differ, graph.constant(code < 0, np.float64)),
        )
    else:
        raise NotImplementedError(f"there is no ONNX graph for the decision {model.decision_.name!r}.")
    return graph.add("Softmax", logs, axis=1)


def _pairwise_logs(graph: GraphBuilder, scores: str, n_classes: int) -> str:
    """-log(1 + sum over j of exp(-s_ij)), from the scores of all pairs. Shapes: (N, pairs) -> (N, n_classes)."""
    n_pairs = n_classes * (n_classes - 1) // 2
    against = np.zeros((n_classes, n_classes), dtype=np.int64)  # column 0 stays: it points to the constant 0
    filled = [1] * n_classes
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        against[i, filled[i]], against[j, filled[j]] = 1 + n_pairs + pair, 1 + pair
        filled[i] += 1
        filled[j] += 1
    nothing = graph.add("Mul", graph.add("Gather", scores, graph.constant([0], np.int64), axis=1), graph.constant(0.0))
    signed = graph.add("Concat", nothing, scores, graph.add("Neg", scores), axis=1)
    table = graph.add("Gather", signed, graph.constant(against), axis=1)  # (N, n_classes, n_classes)
    # The log-softmax of the entry that is 0 is minus the log of the sum.
    return graph.add("Gather", graph.add("LogSoftmax", table, axis=2), graph.constant(0, np.int64), axis=2)


def label_array(classes: NDArray) -> NDArray:
    """Classes in a type that ONNX's label outputs have: int64, string, or a float or bool type of their own."""
    if classes.dtype.kind in "UO":
        return classes
    if classes.dtype.kind in "iu":
        if classes.dtype == np.uint64 and classes.max() > np.iinfo(np.int64).max:
            raise ValueError(f"the label {classes.max()} does not fit int64, the type of labels in ONNX.")
        return classes.astype(np.int64)
    if classes.dtype.kind in "bf":
        return classes
    raise ValueError(f"labels of type {classes.dtype} have no counterpart in ONNX; use numbers or strings.")
