"""The ONNX graph of a fitted model: functions of each column, chain, decide.

Conventions
-----------
Operators and initialisers are collected by `GraphBuilder`, which knows nothing of where they end up: a model of its own
or a pipeline that skl2onnx assembles. Inside, rows are the first axis (``N``), ``m`` trains are batched, ``R`` is the
largest rank and ``n`` the largest dimension; cores are padded with zeros to (m, n * R, R) and stacked along the
features, so that one Scan runs over all of them. How maps and decisions are written is said by themselves. All
arithmetic is float64, also for float32 rows: a product over a hundred features in float32 would lose half of its
digits, and what comes before in a pipeline rounds differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from polytrain.maps import MapList
from polytrain.models import FittedModel

__all__ = ["GraphBuilder", "add_scores", "label_array", "onnx_type"]


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

    def log_sigmoid(self, value: str) -> str:
        """Add min(z, 0) - log(1 + exp(-|z|)), which overflows nowhere."""
        zero, one = self.constant(0.0), self.constant(1.0)
        small = self.add("Exp", self.add("Neg", self.add("Abs", value)))
        return self.add("Sub", self.add("Min", value, zero), self.add("Log", self.add("Add", small, one)))


def add_scores(graph: GraphBuilder, model: FittedModel, rows: str) -> str:
    """Scores of all trains. Shapes: rows (N, d) of any type -> (N, m)."""
    trains, dims = model.cores, model.maps.dims
    n_trains, rank, n = len(trains), max(core.shape[2] for cores in trains for core in cores), max(*dims, 2)
    stacked = np.zeros((len(dims), n_trains, n, rank, rank))
    for t, cores in enumerate(trains):
        for k, core in enumerate(cores):
            stacked[k, t, : core.shape[1], : core.shape[0], : core.shape[2]] = core.transpose(1, 0, 2)
    columns = graph.add("Transpose", graph.cast(rows, np.float64), perm=[1, 0])
    values = _add_values(graph, model.maps, columns, n)
    # The chain starts with 1 in the first of R slots, for every train and row.
    first = graph.constant(np.eye(1, rank).reshape(1, 1, rank).repeat(n_trains, axis=0))
    n_rows = graph.add("Gather", graph.add("Shape", rows), graph.constant([0], np.int64))
    shape = graph.add("Concat", graph.constant([n_trains], np.int64), n_rows, graph.constant([rank], np.int64), axis=0)
    start = graph.add("Expand", first, shape)
    cores_in_order = graph.constant(stacked.reshape(len(dims), n_trains, n * rank, rank))
    body = _chain_step(n, n_trains, rank)
    chain = graph.add("Scan", start, values, cores_in_order, num_scan_inputs=2, body=body)
    last = graph.add("Gather", chain, graph.constant([0], np.int64), axis=2)  # (m, N, 1)
    # The axis goes last: runtimes up to 1.24 join a transposition and the product after it, which float64 has none for.
    upright = graph.add("Transpose", last, perm=[1, 0, 2])
    scores = graph.add("Squeeze", upright, graph.constant([2], np.int64))
    if model.rescales:
        scores = graph.add("Add", graph.add("Mul", scores, graph.constant(model.size)), graph.constant(model.shift))
    return scores


def _add_values(graph: GraphBuilder, maps: MapList, columns: str, n: int) -> str:
    """Functions of all columns but the constant. Shapes: raw columns (d, N) -> (d, n - 1, N)."""
    if len(maps.groups) == 1:
        return _stack_values(graph, maps.groups[0][0].add_to_graph(list(maps), graph, columns), columns, n)
    parts, order = [], []
    for kind, members in maps.groups:
        some = graph.add("Gather", columns, graph.constant(members, np.int64), axis=0)
        parts.append(_stack_values(graph, kind.add_to_graph(maps.members(members), graph, some), some, n))
        order += members
    together = graph.add("Concat", *parts, axis=0)
    return graph.add("Gather", together, graph.constant(np.argsort(order), np.int64), axis=0)


def _stack_values(graph: GraphBuilder, values: list[str], columns: str, n: int) -> str:
    """Functions 1 to n - 1, each (d, N) -> (d, n - 1, N); those that are not there are zero."""
    if len(values) < n - 1:
        nothing = graph.add("Expand", graph.constant(0.0), graph.add("Shape", columns))
        values = [*values, *[nothing] * (n - 1 - len(values))]
    lifted = [graph.add("Unsqueeze", value, graph.constant([1], np.int64)) for value in values]
    return lifted[0] if len(lifted) == 1 else graph.add("Concat", *lifted, axis=1)


def _chain_step(n: int, n_trains: int, rank: int) -> onnx.GraphProto:
    """Absorb one column, the body of the Scan.

    Shapes: state (m, N, R), values (n - 1, N), core (m, n * R, R) -> (m, N, R).
    """
    names: dict[str, int] = {}

    def unique(wish: str) -> str:
        names[wish] = names.get(wish, 0) + 1
        return f"chain_{wish}_{names[wish]}"

    graph = GraphBuilder(unique)
    kind = TensorProto.DOUBLE
    state, values, core = "chain_state", "chain_values", "chain_core"
    upright = graph.add("Transpose", values, perm=[1, 0])
    parts = [state]
    for function in range(n - 1):
        value = graph.add("Gather", upright, graph.constant([function], np.int64), axis=1)  # (N, 1)
        parts.append(graph.add("Mul", state, value))
    spread = graph.add("Concat", *parts, axis=2)
    graph.add("MatMul", spread, core, output="chain_next")
    inputs = [
        helper.make_tensor_value_info(state, kind, [n_trains, None, rank]),
        helper.make_tensor_value_info(values, kind, [n - 1, None]),
        helper.make_tensor_value_info(core, kind, [n_trains, n * rank, rank]),
    ]
    outputs = [helper.make_tensor_value_info("chain_next", kind, [n_trains, None, rank])]
    return helper.make_graph(graph.nodes, "chain", inputs, outputs, graph.initializers)


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
