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
from collections.abc import Sequence
from functools import partial
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.basis import Basis, get_basis
from polytrain.tensor.chain import CoreChain, shorten
from polytrain.tensor.checks import (
    check_dims,
    check_finite,
    check_rows,
    check_tensor,
    check_truncation,
    check_vectors,
)
from polytrain.tensor.contract import add_cores, contract_cores, inner_product
from polytrain.tensor.decompose import has_orthonormal_columns, orthogonalize_cores, round_cores, scale_exponent, tt_svd
from polytrain.tensor.ranks import clip_ranks
from polytrain.tensor.stack import TrainStack

__all__ = ["TensorTrain"]


class TensorTrain(CoreChain):
    """A tensor kept as a chain of cores.

    Parameters
    ----------
    cores : sequence of d array-like, core k of shape (r_{k-1}, n_k, r_k)
        The cores. They are copied: to float32 if all of them are float32, to float64 otherwise.

    Attributes
    ----------
    cores : tuple of d ndarray
        The cores, C-contiguous and read-only.
    dims : tuple of d int
        Dimensions of the tensor, degree + 1 in each feature.
    ranks : tuple of d + 1 int
        Ranks of the bonds; the first and the last are 1.
    order : int
        Number of dimensions ``d``.
    n_parameters : int
        How many numbers the cores hold.
    dtype : dtype
        float64 or float32.

    Examples
    --------
    The polynomial ``1 + 3*x1 - x2 - x1^2 + 7*x1*x2 + 9*x2^2``:

    >>> from polytrain.tensor import TensorTrain
    >>> train = TensorTrain.from_dense([[1, -1, 9], [3, 7, 0], [-1, 0, 0]])
    >>> train
    TensorTrain(dims=(3, 3), ranks=(1, 3, 1), n_parameters=18)
    >>> train.evaluate([[1.0, 1.0], [2.0, 0.0]]).round(6)
    array([18.,  3.])
    """

    # Lets `numpy_scalar * train` reach __rmul__, instead of NumPy taking the train for an array.
    __array_ufunc__ = None

    @classmethod
    def from_dense(cls, tensor: ArrayLike, tol: float = 0.0, max_rank: int | None = None) -> TensorTrain:
        """Decompose a dense tensor (TT-SVD).

        Parameters
        ----------
        tensor : array-like of shape (n_1, ..., n_d)
            The tensor.
        tol : float, default=0.0
            Allowed norm of the error, relative to the norm of the tensor. With 0, only singular values at the level
            of rounding are dropped.
        max_rank : int, optional
            Largest rank. It wins over ``tol``.

        Returns
        -------
        TensorTrain
            All cores but the last are left-orthogonal.

        Examples
        --------
        >>> import numpy as np
        >>> TensorTrain.from_dense(np.ones((2, 2, 2)))
        TensorTrain(dims=(2, 2, 2), ranks=(1, 1, 1, 1), n_parameters=6)
        """
        array = check_tensor(tensor)
        if array.dtype != np.float32:
            array = array.astype(np.float64)
        check_finite(array, "tensor", "; remove them before decomposing it.")
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

        Returns
        -------
        TensorTrain

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

    def contract(self, vectors: Sequence[ArrayLike]) -> float | NDArray:
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
        arrays = check_vectors(vectors, self.dims)
        if arrays[0].ndim == 1:
            return float(contract_cores(self._cores, [array[:, None] for array in arrays])[0])
        return contract_cores(self._cores, arrays)

    def evaluate(self, X: ArrayLike, basis: str | Basis = "power") -> NDArray:
        """Evaluate the polynomial whose coefficients are this tensor.

        Parameters
        ----------
        X : array-like of shape (N, d)
            Rows of features. They are processed in blocks, so the memory needed on top of ``X`` does not grow with N.
        basis : str or Basis, default="power"
            Which functions of each feature the coefficients belong to, see `polytrain.basis.get_basis`.

        Returns
        -------
        ndarray of shape (N,)

        Examples
        --------
        >>> TensorTrain.rank_one([[1, 2], [0, 0, 1]]).evaluate([[3.0, 2.0]])  # (1 + 2*x1) * x2^2
        array([28.])
        """
        family = get_basis(basis)
        rows = check_rows(X, self.order)
        functions = [partial(family.values, n=n) for n in self.dims]
        return TrainStack([self._cores], functions, np.result_type(rows.dtype, self.dtype)).evaluate(rows)[0]

    def __add__(self, other: object) -> TensorTrain:
        if not isinstance(other, TensorTrain):
            return NotImplemented
        self._check_same_dims(other)
        return TensorTrain(add_cores(self._cores, other._cores))

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
        """Return the inner product with another train: the sum of the products of their entries.

        Parameters
        ----------
        other : TensorTrain
            A train of the same dimensions.

        Returns
        -------
        float
            Summed in float64. For the norm of a train use ``norm``, which does not lose half of the digits.

        Examples
        --------
        >>> train = TensorTrain.rank_one([[1, 2], [1, 10]])
        >>> train.inner(train)
        505.0
        """
        self._check_same_dims(other)
        return inner_product(self._cores, other._cores)

    def norm(self) -> float:
        """Return the Frobenius norm, the square root of the sum of the squared entries.

        It is read off an orthogonalised train in float64, so that neither cancellation between large cores nor the
        length of the train spoils it.

        Examples
        --------
        >>> TensorTrain.rank_one([[3, 4], [0, 2]]).norm()
        10.0
        """
        cores = [core.astype(np.float64, copy=False) for core in self._cores]
        cores, exponent = orthogonalize_cores(cores, 0)
        return float(scale_exponent(np.asarray(np.linalg.norm(cores[0])), exponent))

    def orthogonalize(self, position: int) -> TensorTrain:
        """Return the same tensor with all cores orthogonal but one.

        Parameters
        ----------
        position : int
            Core that takes what is not orthogonal. Cores before it become left-orthogonal and cores after it
            right-orthogonal, so that the norm of the tensor is the norm of this core.

        Returns
        -------
        TensorTrain
            A bond that is wider than its neighbours allow becomes narrower; other ranks stay.

        Examples
        --------
        >>> import numpy as np
        >>> train = TensorTrain.random((2, 3, 2), rank=2, random_state=0).orthogonalize(1)
        >>> train.is_left_orthogonal(0), train.is_right_orthogonal(2)
        (True, True)
        >>> bool(np.isclose(train.norm(), np.linalg.norm(train.cores[1])))
        True
        """
        position = self._check_position(position)
        cores, exponent = orthogonalize_cores(self._cores, position)
        cores[position] = scale_exponent(cores[position], exponent)
        return TensorTrain(cores)

    def is_left_orthogonal(self, position: int) -> bool:
        """Tell whether core ``position`` has orthonormal columns as an (r_{k-1} n_k, r_k) matrix."""
        core = self._cores[self._check_position(position)]
        return has_orthonormal_columns(core.reshape(-1, core.shape[2]))

    def is_right_orthogonal(self, position: int) -> bool:
        """Tell whether core ``position`` has orthonormal rows as an (r_{k-1}, n_k r_k) matrix."""
        core = self._cores[self._check_position(position)]
        return has_orthonormal_columns(core.reshape(core.shape[0], -1).T)

    def round(self, tol: float = 1e-10, max_rank: int | None = None) -> TensorTrain:
        """Cut the ranks to what the tensor needs.

        Parameters
        ----------
        tol : float, default=1e-10
            Allowed norm of the error, relative to the norm of the tensor.
        max_rank : int, optional
            Largest rank. It wins over ``tol``; the error is then at most ``sqrt(d - 1)`` times the best possible.

        Returns
        -------
        TensorTrain
            All cores but the last are left-orthogonal.

        Examples
        --------
        >>> train = TensorTrain.random((3, 3, 3), rank=2, random_state=0)
        >>> (train + train).ranks, (train + train).round().ranks
        ((1, 4, 4, 1), (1, 2, 2, 1))
        """
        check_truncation(tol, max_rank)
        for k, core in enumerate(self._cores):
            check_finite(core, f"core {k}", ", so the train cannot be rounded.")
        return TensorTrain(round_cores(self._cores, tol, max_rank))

    def allclose(self, other: TensorTrain, rtol: float = 1e-8, atol: float = 0.0) -> bool:
        """Tell whether two trains hold the same tensor, whatever their cores.

        Parameters
        ----------
        other : TensorTrain
            A train of the same dimensions.
        rtol : float, default=1e-8
            Allowed norm of the difference, relative to the larger of the two norms.
        atol : float, default=0.0
            Allowed norm of the difference, added to the former.

        Returns
        -------
        bool

        Examples
        --------
        >>> train = TensorTrain.random((3, 3, 3), rank=2, random_state=0)
        >>> train.allclose(train.orthogonalize(0)), train.allclose(2 * train)
        (True, False)
        """
        return (self - other).norm() <= atol + rtol * max(self.norm(), other.norm())

    def __repr__(self) -> str:
        return f"TensorTrain(dims={shorten(self.dims)}, ranks={shorten(self.ranks)}, n_parameters={self.n_parameters})"
