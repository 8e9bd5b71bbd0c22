"""The content of a model file: a JSON document and named arrays, read with care.

What is wrong is a ``ValueError`` without the file's name; whoever opened the file adds it.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

__all__ = ["Document"]


class Document:
    """The document and arrays of a file; everything must be asked for once, with the type it should have."""

    def __init__(self, content: Any, tensors: dict[str, NDArray]) -> None:
        if not isinstance(content, dict):
            raise ValueError("the description of the model is no JSON object.")
        self._content, self._tensors = dict(content), dict(tensors)

    def take(self, name: str, *types: type) -> Any:
        """Return an entry of the document."""
        if name not in self._content:
            raise ValueError(f"the description of the model lacks {name!r}.")
        value = self._content.pop(name)
        if type(value) not in types:
            raise ValueError(f"{name!r} should be {' or '.join(kind.__name__ for kind in types)}, got {value!r:.60}.")
        return value

    def take_float(self, name: str) -> float:
        """Return a finite number."""
        value = self.take(name, float, int)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"{name!r} is not a finite number.")
        return number

    def tensor(self, name: str, dtypes: tuple[Any, ...] | None = None, shape: tuple[int | None, ...] = ()) -> NDArray:
        """Return an array; None in ``shape`` fits any length, and without ``dtypes`` anything goes."""
        if name not in self._tensors:
            raise ValueError(f"the array {name!r} is missing.")
        array = self._tensors.pop(name)
        if dtypes is None:
            return array
        fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        if array.dtype not in dtypes or not fits:
            raise ValueError(f"the array {name!r} should not have dtype {array.dtype} and shape {array.shape}.")
        return array

    def tensors(self, prefix: str) -> dict[str, NDArray]:
        """Return all arrays whose names begin so, without that beginning."""
        names = [name for name in self._tensors if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._tensors.pop(name) for name in names}

    def check_empty(self) -> None:
        """Refuse what nobody asked for: a newer writer would have raised the format number."""
        if self._content or self._tensors:
            raise ValueError(f"it holds unknown entries: {str([*self._content, *self._tensors])[:100]}.")
