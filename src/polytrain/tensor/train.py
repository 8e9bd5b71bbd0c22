"""The tensor train: a tensor of any order kept as a chain of small cores.

Conventions
-----------
Entry ``(i_1, ..., i_d)`` of the tensor is the matrix product ``G_1[:, i_1, :] @ ... @ G_d[:, i_d, :]``, where core
``G_k`` has shape (r_{k-1}, n_k, r_k) and ``r_0 = r_d = 1``. Seen as a polynomial in d features, ``n_k - 1`` is the
degree in feature ``k`` and the entry is the coefficient of ``phi_{i_1}(x_1) * ... * phi_{i_d}(x_d)``. A train does not
change after it is built: its cores are read-only, and every operation returns a new train.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polytrain.arrays import Array
from polytrain.basis import Basis, get_basis
from polytrain.tensor.checks import check_dims, check_finite, check_real, check_size, check_tensor, check_truncation
from polytrain.tensor.decompose import orthogonalize_cores, round_cores, scale_exponent, split_exponent, tt_svd
from polytrain.tensor.ranks import clip_ranks
from polytrain.tensor.stack import TrainStack


class TensorTrain:
    """A tensor kept as a chain of cores.

    Parameters
    ----------
    cores : sequence of d array-like, core k of shape (r_{k-1}, n_k, r_k)
        The cores. They are copied: to float32 if all of them are float32, to float64 otherwise.

    Examples
    --------
    The polynomial ``1 + 3*x1 - x2 - x1^2 + 7*x1*x2 + 9*x2^2``:

    >>> from polytrain.tensor import TensorTrain
    >>> train = TensorTrain.from_dense([[1, -1, 9], [3, 7, 0], [-1, 0, 0]])
    >>> train
    TensorTrain(dims=(3, 3), ranks=(1, 3, 1), n_parameters=18)
    >>> train.evaluate([[1.0, 1.0], [2.0, 0.0]]).round(6)
    array([18.,  3.])
    >>> round(train[0, -1], 6)  # the coefficient of x2^2
    9.0
    """

    # Lets `numpy_scalar * train` reach __rmul__, instead of NumPy taking the train for an array.
    __array_ufunc__ = None
    # Without it, Python would iterate through __getitem__ and find a train of order 2 or more empty.
    __iter__ = None

    def __init__(self, cores: Sequence[ArrayLike]) -> None:
        arrays = [np.asarray(core) for core in cores]
        _check_cores(arrays)
        dtype = np.float32 if all(array.dtype == np.float32 for array in arrays) else np.float64
        self._cores: tuple[Array, ...] = tuple(np.array(array, dtype=dtype, order="C") for array in arrays)
        for core in self._cores:
            core.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that an unpickled or copied train is read-only as well.
        return type(self), (self._cores,)

    @property
    def cores(self) -> tuple[Array, ...]:
        """The cores, C-contiguous and read-only."""
        return self._cores

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimensions of the tensor: degree + 1 in each feature."""
        return tuple(core.shape[1] for core in self._cores)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the d + 1 bonds; the first and the last are 1."""
        return (1, *(core.shape[2] for core in self._cores))

    @property
    def order(self) -> int:
        """Number ``d`` of dimensions of the tensor."""
        return len(self._cores)

    @property
    def n_parameters(self) -> int:
        """Number of entries of all cores."""
        return sum(core.size for core in self._cores)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries of the cores: float64 or float32."""
        return self._cores[0].dtype

    @classmethod
    def from_dense(cls, tensor: ArrayLike, tol: float = 0.0, max_rank: int | None = None) -> TensorTrain:
        """Decompose a dense tensor (TT-SVD). All cores but the last are left-orthogonal.

        Parameters
        ----------
        tensor : array-like of shape (n_1, ..., n_d)
            The tensor.
        tol : float, default=0.0
            Allowed norm of the error, relative to the norm of the tensor. With 0, only singular values at the level
            of rounding are dropped.
        max_rank : int, optional
            Largest rank. It takes precedence over ``tol``.

        Examples
        --------
        >>> import numpy as np
        >>> TensorTrain.from_dense(np.ones((2, 2, 2)))
        TensorTrain(dims=(2, 2, 2), ranks=(1, 1, 1, 1), n_parameters=6)
        """
        array = check_tensor(tensor)
        check_truncation(tol, max_rank)
        return cls(tt_svd(array, tol, max_rank))

    @classmethod
    def random(
        cls,
        dims: Sequence[int],
        rank: int | Sequence[int],
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> TensorTrain:
        """Draw cores of independent normal numbers, such that the expected squared norm of the tensor is 1.

        Parameters
        ----------
        dims : sequence of d int
            Dimensions of the tensor.
        rank : int or sequence of d - 1 int
            Ranks of the inner bonds, cut by ``clip_ranks`` where they are too large.
        random_state : int, Generator, RandomState or None, default=None
            Seed or source of the numbers.

        Examples
        --------
        >>> TensorTrain.random((2, 3, 2), rank=5, random_state=0)
        TensorTrain(dims=(2, 3, 2), ranks=(1, 2, 2, 1), n_parameters=20)
        """
        rng = random_state
        if not isinstance(rng, np.random.RandomState):
            rng = np.random.default_rng(rng)
        ranks = clip_ranks(dims, rank)
        shapes = zip(ranks[:-1], check_dims(dims), ranks[1:], strict=True)
        return cls([rng.standard_normal(shape) / math.sqrt(shape[1] * shape[2]) for shape in shapes])

    @classmethod
    def zeros(cls, dims: Sequence[int]) -> TensorTrain:
        """Return the zero tensor, with all ranks 1.

        Examples
        --------
        >>> TensorTrain.zeros((2, 3)).norm()
        0.0
        """
        return cls([np.zeros((1, n, 1)) for n in check_dims(dims)])

    @classmethod
    def rank_one(cls, vectors: Sequence[ArrayLike]) -> TensorTrain:
        """Return the outer product of ``d`` vectors, with all ranks 1.

        Examples
        --------
        >>> TensorTrain.rank_one([[1, 2], [1, 10]]).to_dense()
        array([[ 1., 10.],
               [ 2., 20.]])
        """
        arrays = [np.asarray(vector) for vector in vectors]
        for k, array in enumerate(arrays):
            if array.ndim != 1:
                raise ValueError(f"vector {k} must be one-dimensional, got shape {array.shape}.")
        return cls([array[None, :, None] for array in arrays])

    def __getitem__(self, index: int | tuple[int, ...]) -> float:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != self.order:
            raise ValueError(f"index must have {self.order} integers, one per dimension, got {len(index)}.")
        row: Array = np.ones((1, 1))
        for k, (core, i) in enumerate(zip(self._cores, index, strict=True)):
            try:
                position = operator.index(i)
            except TypeError:
                raise TypeError(f"index {k} must be an integer, got {i!r}; use to_dense() for slices.") from None
            n = core.shape[1]
            if not -n <= position < n:
                raise IndexError(f"index {k} is {position}, out of range for dimension {n}.")
            row = row @ core[:, position, :]
        return float(row[0, 0])

    def to_dense(self, max_size: int = 10**7) -> Array:
        """Form the tensor, of shape (n_1, ..., n_d), unless it has more than ``max_size`` entries.

        Examples
        --------
        >>> TensorTrain.zeros((10,) * 20).to_dense()
        Traceback (most recent call last):
            ...
        ValueError: the dense tensor has 1e+20 entries, more than max_size=10000000. ...
        """
        check_size(self.dims, max_size)
        dense = np.ones((1, 1), dtype=self.dtype)
        for core in self._cores:
            dense = (dense @ core.reshape(core.shape[0], -1)).reshape(-1, core.shape[2])
        return dense.reshape(self.dims)

    def contract(self, vectors: Sequence[ArrayLike]) -> float | Array:
        """Contract every dimension with a vector (Algorithm 1 of the paper).

        Parameters
        ----------
        vectors : sequence of d array-like, each of shape (n_k,) or each of shape (n_k, N)
            One vector per dimension, or ``N`` of them with the rows of data along the last axis.

        Returns
        -------
        float or ndarray of shape (N,)
            The sum over all ``i_1, ..., i_d`` of the entry times ``v_1[i_1] * ... * v_d[i_d]``.

        Examples
        --------
        >>> train = TensorTrain.rank_one([[1, 2], [1, 10]])
        >>> train.contract([[1, 1], [0, 1]])
        30.0
        """
        if len(vectors) != self.order:
            raise ValueError(f"vectors must hold {self.order} arrays, one per dimension, got {len(vectors)}.")
        arrays = [np.asarray(vector) for vector in vectors]
        left = np.ones((1, *arrays[0].shape[1:]), dtype=self.dtype)
        for k, (core, array) in enumerate(zip(self._cores, arrays, strict=True)):
            n = core.shape[1]
            expected = (n, *arrays[0].shape[1:])
            if array.ndim not in (1, 2) or array.shape != expected:
                wanted = f"({n},) or ({n}, N)" if k == 0 else f"{expected}, to go with vector 0"
                raise ValueError(f"vector {k} must have shape {wanted}, got {array.shape}.")
            left = np.tensordot(core, left[:, None] * array, axes=((0, 1), (0, 1)))
        return float(left[0]) if left.ndim == 1 else left[0]

    def evaluate(self, X: ArrayLike, basis: str | Basis = "power") -> Array:
        """Evaluate the polynomial whose coefficients are this tensor.

        Parameters
        ----------
        X : array-like of shape (N, d)
            Rows of features. They are processed in blocks, so the memory needed on top of ``X`` does not grow with N.
        basis : str or Basis, default="power"
            Functions of each feature that the coefficients belong to, see `polytrain.basis.get_basis`.

        Returns
        -------
        ndarray of shape (N,)

        Examples
        --------
        >>> TensorTrain.rank_one([[1, 2], [0, 0, 1]]).evaluate([[3.0, 2.0]])  # (1 + 2*x1) * x2^2
        array([28.])
        """
        family = get_basis(basis)
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.order:
            raise ValueError(
                f"X must have shape (N, {self.order}), one column per feature, got {rows.shape}. A single row is "
                "X.reshape(1, -1)."
            )
        rows = check_real(rows, "X")
        stack = TrainStack([self._cores], [partial(family.values, n=n) for n in self.dims])
        return stack.evaluate(rows, dtype=np.result_type(rows, self.dtype)).ravel()

    def __add__(self, other: object) -> TensorTrain:
        if not isinstance(other, TensorTrain):
            return NotImplemented
        self._check_same_dims(other)
        # The cores side by side, so that the ranks add; at the two ends they share the rank 1.
        cores = [
            np.pad(core, [(0, other_core.shape[0]), (0, 0), (0, other_core.shape[2])])
            + np.pad(other_core, [(core.shape[0], 0), (0, 0), (core.shape[2], 0)])
            for core, other_core in zip(self._cores, other._cores, strict=True)
        ]
        cores[0] = cores[0].sum(axis=0, keepdims=True)
        cores[-1] = cores[-1].sum(axis=2, keepdims=True)
        return TensorTrain(cores)

    def __mul__(self, scalar: object) -> TensorTrain:
        if not isinstance(scalar, Real):
            return NotImplemented
        return TensorTrain([self._cores[0] * float(scalar), *self._cores[1:]])

    __rmul__ = __mul__

    def __truediv__(self, scalar: object) -> TensorTrain:
        if not isinstance(scalar, Real):
            return NotImplemented
        return TensorTrain([self._cores[0] / float(scalar), *self._cores[1:]])

    def __neg__(self) -> TensorTrain:
        return self * -1.0

    def __sub__(self, other: object) -> TensorTrain:
        if not isinstance(other, TensorTrain):
            return NotImplemented
        return self + (-other)

    def inner(self, other: TensorTrain) -> float:
        """Return the inner product with a train of the same dimensions: the sum of the products of their entries.

        It is summed in float64. For the norm of a train use ``norm``, which does not lose half of the digits.

        Examples
        --------
        >>> train = TensorTrain.rank_one([[1, 2], [1, 10]])
        >>> train.inner(train)
        505.0
        """
        self._check_same_dims(other)
        environment: Array = np.ones((1, 1))
        exponent = 0
        for core, other_core in zip(self._cores, other._cores, strict=True):
            half = np.tensordot(environment, core, axes=(0, 0))
            environment, step = split_exponent(np.tensordot(half, other_core, axes=((0, 1), (0, 1))))
            exponent += step
        return float(scale_exponent(environment, exponent)[0, 0])

    def norm(self) -> float:
        """Return the Frobenius norm, the square root of the sum of the squared entries.

        It is the norm of one core of the orthogonalised train, in float64: neither cancellation between large cores
        nor the length of the train affects it.

        Examples
        --------
        >>> TensorTrain.rank_one([[3, 4], [0, 2]]).norm()
        10.0
        """
        cores = [core.astype(np.float64, copy=False) for core in self._cores]
        cores, exponent = orthogonalize_cores(cores, 0)
        return float(scale_exponent(np.asarray(np.linalg.norm(cores[0])), exponent))

    def orthogonalize(self, position: int) -> TensorTrain:
        """Return the same tensor with all cores orthogonal but the one at ``position``.

        Cores before it become left-orthogonal and cores after it right-orthogonal, so that the norm of the tensor is
        the norm of this core. A bond that is wider than its neighbours allow becomes narrower; other ranks stay.

        Examples
        --------
        >>> train = TensorTrain.random((2, 3, 2), rank=2, random_state=0).orthogonalize(1)
        >>> train.is_left_orthogonal(0), train.is_right_orthogonal(2)
        (True, True)
        """
        position = self._check_position(position)
        cores, exponent = orthogonalize_cores(self._cores, position)
        cores[position] = scale_exponent(cores[position], exponent)
        return TensorTrain(cores)

    def is_left_orthogonal(self, position: int) -> bool:
        """Return whether core ``position`` has orthonormal columns as an (r_{k-1} n_k, r_k) matrix."""
        core = self._cores[self._check_position(position)]
        return _has_orthonormal_columns(core.reshape(-1, core.shape[2]))

    def is_right_orthogonal(self, position: int) -> bool:
        """Return whether core ``position`` has orthonormal rows as an (r_{k-1}, n_k r_k) matrix."""
        core = self._cores[self._check_position(position)]
        return _has_orthonormal_columns(core.reshape(core.shape[0], -1).T)

    def round(self, tol: float = 1e-10, max_rank: int | None = None) -> TensorTrain:
        """Cut the ranks to those that the tensor needs. All cores but the last are left-orthogonal after it.

        Parameters
        ----------
        tol : float, default=1e-10
            Allowed norm of the error, relative to the norm of the tensor.
        max_rank : int, optional
            Largest rank. It takes precedence over ``tol``; the error is then at most ``sqrt(d - 1)`` times the least.

        Examples
        --------
        >>> train = TensorTrain.random((3, 3, 3), rank=2, random_state=0)
        >>> (train + train).ranks, (train + train).round().ranks
        ((1, 4, 4, 1), (1, 2, 2, 1))
        """
        check_truncation(tol, max_rank)
        for k, core in enumerate(self._cores):
            check_finite(core, f"core {k}")
        return TensorTrain(round_cores(self._cores, tol, max_rank))

    def allclose(self, other: TensorTrain, rtol: float = 1e-8, atol: float = 0.0) -> bool:
        """Return whether two trains of the same dimensions represent the same tensor, even with different cores.

        The norm of the difference may be ``atol`` plus ``rtol`` times the larger of the two norms.

        Examples
        --------
        >>> train = TensorTrain.random((3, 3, 3), rank=2, random_state=0)
        >>> train.allclose(train.orthogonalize(0)), train.allclose(2 * train)
        (True, False)
        """
        return (self - other).norm() <= atol + rtol * max(self.norm(), other.norm())

    def __repr__(self) -> str:
        dims, ranks = _shorten(self.dims), _shorten(self.ranks)
        return f"TensorTrain(dims={dims}, ranks={ranks}, n_parameters={self.n_parameters})"

    def _check_same_dims(self, other: TensorTrain) -> None:
        if self.dims != other.dims:
            both = f"{_shorten(self.dims)} and {_shorten(other.dims)}"
            raise ValueError(f"the trains must have the same dims, got {both}.")

    def _check_position(self, position: int) -> int:
        if not 0 <= operator.index(position) < self.order:
            raise ValueError(f"position must be between 0 and {self.order - 1}, got {position}.")
        return operator.index(position)


def _check_cores(arrays: Sequence[Array]) -> None:
    """Raise if these are not the cores of a train."""
    if not arrays:
        raise ValueError("cores must hold at least one core, got none.")
    for k, array in enumerate(arrays):
        if array.ndim != 3 or array.size == 0:
            raise ValueError(
                f"core {k} must have shape (left rank, dimension, right rank) with no empty axis, got {array.shape}."
            )
        check_real(array, f"core {k}")
    for k, (core, following) in enumerate(pairwise(arrays)):
        ranks = core.shape[2], following.shape[0]
        if ranks[0] != ranks[1]:
            raise ValueError(
                f"cores {k} and {k + 1} must share a rank, got right rank {ranks[0]} and left rank {ranks[1]}."
            )
    first, last = arrays[0].shape[0], arrays[-1].shape[2]
    if first != 1 or last != 1:
        raise ValueError(
            f"the left rank of the first core and the right rank of the last must be 1, got {first} and {last}."
        )


def _has_orthonormal_columns(matrix: Array) -> bool:
    """Whether matrix' matrix is the identity, to half of the digits of its type."""
    gram = matrix.T @ matrix
    return bool(np.abs(gram - np.eye(len(gram))).max() <= np.finfo(matrix.dtype).eps ** 0.5)


def _shorten(values: tuple[int, ...]) -> str:
    """Print a tuple, the middle of a long one left out."""
    if len(values) <= 8:
        return str(values)
    return f"({', '.join(map(str, values[:3]))}, ..., {values[-1]})"
