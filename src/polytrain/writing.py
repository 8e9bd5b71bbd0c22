"""What feature maps and decisions may ask of an export, so that each of them says in its own file how it is written.

The exports pass themselves in; nothing here knows ONNX, and nothing there knows a map or a decision by name.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import DTypeLike

__all__ = ["CWriter", "GraphWriter"]


class GraphWriter(Protocol):
    """An ONNX graph in the making; values are known by their names. All numbers in it are float64."""

    def constant(self, array: Any, dtype: DTypeLike | None = None) -> str:
        """Store an array and return its name."""

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Convert to another type."""

    def log_sigmoid(self, value: str) -> str:
        """Add nodes for log(1 / (1 + exp(-z))) that overflow nowhere."""


class CWriter(Protocol):
    """A C file in the making. In code, REAL stands for the type of numbers and NAME for the name of the model."""

    #: What the names of functions of the mathematics library end with: "" for double, "f" for float.
    suffix: str

    def table(self, name: str, values: Any) -> str:
        """Return the definition of a constant array of REAL."""

    def integers(self, name: str, values: Any) -> str:
        """Return the definition of a constant array of int."""
