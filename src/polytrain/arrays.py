"""The type of arrays in annotations: shapes and dtypes stand in the docstrings."""

from typing import Any

from numpy.typing import NDArray

__all__ = ["Array"]

Array = NDArray[Any]
