"""What a tensor train holds: read-only cores, their shape and the entries of the tensor."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.tensor.checks import check_cores, check_index, check_size
from polytrain.tensor.contract import form_tensor

__all__ = ["CoreChain", "shorten"]


class CoreChain:
    """A tensor that can be read: its cores, its shape and its entries. `TensorTrain` adds how to build and compute."""

    # Without it, Python would iterate through __getitem__ and find a train of order 2 or more empty.
    __iter__ = None

    def __init__(self, cores: Sequence[ArrayLike]) -> None:
        arrays = [np.asarray(core) for core in cores]
        check_cores(arrays)
        single = all(array.dtype == np.float32 for array in arrays)
        self._cores: tuple[NDArray, ...] = tuple(
            np.array(array, dtype=np.float32 if single else np.float64, order="C") for array in arrays
        )
        for core in self._cores:
            core.setflags(write=False)

    @property
    def cores(self) -> tuple[NDArray, ...]:
        """The cores, read-only."""
        return self._cores

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimensions of the tensor."""
        return tuple(core.shape[1] for core in self._cores)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the bonds, boundary ones included."""
        return (1, *(core.shape[2] for core in self._cores))

    @property
    def order(self) -> int:
        """Number of dimensions of the tensor."""
        return len(self._cores)

    @property
    def n_parameters(self) -> int:
        """How many numbers the cores hold."""
        return sum(core.size for core in self._cores)

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers in the cores."""
        return self._cores[0].dtype

    def entry(self, index: Sequence[int]) -> float:
        """Return one entry of the tensor; ``train[i, j, k]`` does the same.

        Parameters
        ----------
        index : sequence of d int
            Position, counted from 0; negative numbers count from the end.

        Returns
        -------
        float

        Examples
        --------
        >>> from polytrain.tensor import TensorTrain
        >>> TensorTrain.rank_one([[1, 2], [1, 10]])[1, -1]
        20.0
        """
        row: NDArray = np.ones((1, 1))
        for core, i in zip(self._cores, check_index(index, self.dims), strict=True):
            row = row @ core[:, i, :]
        return float(row[0, 0])

    def __getitem__(self, index: int | tuple[int, ...]) -> float:
        return self.entry(index if isinstance(index, tuple) else (index,))

    def to_dense(self, max_size: int = 10**7) -> NDArray:
        """Form the tensor.

        Parameters
        ----------
        max_size : int, default=10**7
            Refuse to form a tensor with more entries than this.

        Returns
        -------
        ndarray of shape (n_1, ..., n_d)

        Examples
        --------
        >>> from polytrain.tensor import TensorTrain
        >>> TensorTrain.zeros((10,) * 20).to_dense()
        Traceback (most recent call last):
            ...
        ValueError: the dense tensor has 1e+20 entries, more than max_size=10000000. ...
        """
        check_size(self.dims, max_size)
        return form_tensor(self._cores)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that an unpickled or copied train is read-only as well.
        return type(self), (self._cores,)

    def _check_same_dims(self, other: CoreChain) -> None:
        if self.dims != other.dims:
            raise ValueError(f"the trains must have the same dims, got {shorten(self.dims)} and {shorten(other.dims)}.")

    def _check_position(self, position: int) -> int:
        if not 0 <= operator.index(position) < self.order:
            raise ValueError(f"position must be between 0 and {self.order - 1}, got {position}.")
        return operator.index(position)


def shorten(values: tuple[int, ...]) -> str:
    """Print a tuple, the middle of a long one left out."""
    if len(values) <= 8:
        return str(values)
    return f"({', '.join(map(str, values[:3]))}, ..., {values[-1]})"
