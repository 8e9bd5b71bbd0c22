"""Writers of ONNX graphs and C files for maps and decisions. Functions import onnx when they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from polytrain.arrays import Array

__all__ = ["CWriter", "GraphWriter", "onnx_type"]


def onnx_type(dtype: DTypeLike) -> int:
    """Return ONNX's number of a NumPy type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class GraphWriter:
    """Collects the nodes and initialisers of an ONNX graph, in which values are known by their names.

    All numbers in it are float64. ``unique`` makes a name unique.
    """

    def __init__(self, unique: Callable[[str], str]) -> None:
        self._unique = unique
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, array: Any, dtype: DTypeLike | None = None) -> str:
        """Store an array and return its name."""
        from onnx import numpy_helper

        name = self._unique("constant")
        values = np.array(array, dtype=dtype, order="C")  # ascontiguousarray would add a dimension
        if values.dtype.kind in "UO":
            values = np.array([str(value) for value in values], dtype=object)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        from onnx import helper

        result = output or self._unique(operator.lower())
        self.nodes.append(helper.make_node(operator, list(inputs), [result], name=self._unique("node"), **attributes))
        return result

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Convert to another type."""
        return self.add("Cast", value, to=onnx_type(dtype))

    def stack(self, values: Sequence[str]) -> str:
        """Join values along a new last axis. Shapes: (d, N) each -> (d, N, number of values)."""
        axis = self.constant([2], np.int64)
        return self.add("Concat", *(self.add("Unsqueeze", value, axis) for value in values), axis=2)

    def log_sigmoid(self, value: str) -> str:
        """Add min(z, 0) - log(1 + exp(-|z|)), which overflows nowhere."""
        zero, one = self.constant(0.0), self.constant(1.0)
        small = self.add("Exp", self.add("Neg", self.add("Abs", value)))
        return self.add("Sub", self.add("Min", value, zero), self.add("Log", self.add("Add", small, one)))


class CWriter:
    """Writes tables in C. In code, REAL stands for the type of numbers and NAME for the name of the model."""

    def __init__(self, dtype: str) -> None:
        self._dtype, single = np.dtype(dtype), dtype == "float32"
        self.real = "float" if single else "double"
        #: Suffix of the functions of the mathematics library.
        self.suffix = "f" if single else ""

    def table(self, name: str, values: Any) -> str:
        """Return the definition of a constant array of REAL."""
        with np.errstate(over="ignore"):
            array = np.ravel(values).astype(self._dtype)
        self._check(np.isfinite(array))
        # The shortest text that becomes the same number.
        return _c_array("REAL", name, [f"{x}{self.suffix}" for x in (array if self.suffix else array.tolist())])

    def integers(self, name: str, values: Any, kind: str = "int") -> str:
        """Return the definition of a constant array of integers."""
        return _c_array(kind, name, list(map(str, np.ravel(values).tolist())))

    def fixed_point(self, values: Array) -> tuple[Array, Array]:
        """Return integers and the exponents of their units, powers of two: one per entry of the second axis.

        They take less text than numbers with all digits. The largest with each unit has 30 bits, or 24 for float.
        """
        other_axes = (0, *range(2, values.ndim))
        exponents, limits = np.frexp(np.abs(values).max(axis=other_axes, keepdims=True))[1], np.finfo(self._dtype)
        self._check(exponents <= limits.maxexp)
        units = np.maximum(exponents - (24 if self.suffix else 30), limits.minexp)
        return np.rint(np.ldexp(values, -units)).astype(np.int64), units.ravel()

    def units(self, name: str, exponents: Array) -> str:
        """Return the definition of powers of two."""
        return _c_array("REAL", name, [f"0x1p{exponent}{self.suffix}" for exponent in exponents.tolist()])

    def _check(self, fits: Array) -> None:
        if not fits.all():
            raise ValueError(f"some numbers of the model do not fit {self.real}; use dtype='float64'.")


def _c_array(kind: str, name: str, items: list[str]) -> str:
    items = items or ["0"]  # C has no empty arrays
    lines = ",\n".join(",".join(items[k : k + 10]) for k in range(0, len(items), 10))
    return f"static const {kind} {name}[{len(items)}] = {{\n{lines}\n}};"
