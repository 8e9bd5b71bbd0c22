"""Rows in the memory of this process, worked through in blocks that stay in cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import Basis
from polytrain.learning import kernels
from polytrain.learning.losses import Loss

__all__ = ["LinearRows", "LocalEngine"]

Kernel = Callable[[NDArray, NDArray, NDArray], NDArray]

# Rows per block: few enough for the arrays of one block to stay in a core's share of the cache, enough to make the
# overhead of a call small beside its work (measured by ``python -m benchmarks.core_update``).
_BLOCK_BYTES = 1 << 22
_MIN_BLOCK, _MAX_BLOCK = 256, 8192


class _Scores:
    """Present scores with their loss, derivatives and line search: the part that no core shape enters."""

    def __init__(self, target: NDArray, weights: NDArray, loss: Loss, dtype: np.dtype) -> None:
        self.n_rows = len(target)
        self._target, self._weights, self._loss, self._dtype = target, weights, loss, dtype
        self._scores = np.zeros(self.n_rows)
        self._ray = np.zeros(self.n_rows)
        self._derivatives: tuple[NDArray, NDArray] | None = None
        self._mean_loss: float | None = None
        self._probed: tuple[float, float] | None = None  # length and loss of the last probe

    def _forward(self, core: NDArray) -> NDArray:
        raise NotImplementedError

    def score(self, core: NDArray) -> None:
        self._scores = self._forward(core)
        self._derivatives = self._mean_loss = self._probed = None

    def mean_loss(self) -> float:
        if self._mean_loss is None:
            self._mean_loss = float(self._weights @ self._loss.value(self._target, self._scores))
        return self._mean_loss

    def aim(self, step: NDArray) -> None:
        self._ray = self._forward(step)
        self._probed = None

    def probe(self, length: float) -> float:
        loss = float(self._weights @ self._loss.value(self._target, self._scores + length * self._ray))
        self._probed = length, loss
        return loss

    def advance(self, length: float) -> None:
        self._scores += length * self._ray
        # A line search ends where it probed last: that loss need not be computed again.
        self._mean_loss = self._probed[1] if self._probed and self._probed[0] == length else None
        self._derivatives = self._probed = None

    def _weighted(self) -> tuple[NDArray, NDArray]:
        """Weighted slope and curvature at the present scores, in the compute dtype."""
        if self._derivatives is None:
            slope, curvature = self._loss.derivatives(self._target, self._scores)
            slope *= self._weights
            curvature *= self._weights
            self._derivatives = slope.astype(self._dtype, copy=False), curvature.astype(self._dtype, copy=False)
        return self._derivatives


def count_distinct(columns: NDArray) -> int:
    """Number of different rows among columns (d, N), counted by one random combination of the features."""
    keys = np.zeros(columns.shape[1])
    for column, factor in zip(columns, np.random.default_rng(0).standard_normal(len(columns)), strict=True):
        keys += factor * column.astype(
            np.float64, copy=False
        )  # the same operations for every row: equal rows stay equal
    return len(np.unique(keys))


class LinearRows(_Scores):
    """The linear model as a core problem: one core of shape (1, d + 1, 1) on the values 1, x_1, ..., x_d.

    It is always solved in float64: the start must equal the linear model to rounding.
    """

    def __init__(self, columns: NDArray, target: NDArray, weights: NDArray, loss: Loss) -> None:
        super().__init__(target, weights, loss, np.dtype(np.float64))
        self._columns = columns
        self.n_distinct = self.n_rows  # the linear model is always solved exactly

    def _blocks(self) -> Iterator[tuple[slice, NDArray]]:
        """Rows in blocks, each with its values (d + 1, rows)."""
        n_features, n_rows = self._columns.shape
        size = max(_MIN_BLOCK, min(_MAX_BLOCK, _BLOCK_BYTES // (8 * (n_features + 1))))
        for start in range(0, n_rows, size):
            rows = slice(start, min(start + size, n_rows))
            values = np.empty((n_features + 1, rows.stop - rows.start))
            values[0] = 1
            values[1:] = self._columns[:, rows]
            yield rows, values

    def _forward(self, core: NDArray) -> NDArray:
        flat = core.ravel()
        return flat[0] + np.concatenate([flat[1:] @ values[1:] for _, values in self._blocks()])

    def gradient(self) -> NDArray:
        slope, _ = self._weighted()
        return sum(values @ slope[rows] for rows, values in self._blocks()).reshape(1, -1, 1)

    def gram(self) -> NDArray:
        _, curvature = self._weighted()
        return sum((values * curvature[rows]) @ values.T for rows, values in self._blocks())

    def product(self, step: NDArray) -> NDArray:
        _, curvature = self._weighted()
        flat = step.ravel()
        return sum(values @ (curvature[rows] * (flat @ values)) for rows, values in self._blocks()).reshape(1, -1, 1)

    def factors(self) -> tuple[NDArray, NDArray, NDArray]:
        return np.eye(1), self.gram(), np.eye(1)


class LocalEngine(_Scores):
    """All rows of one binary problem, with the environments of the train that is being learned.

    Parameters
    ----------
    columns : ndarray of shape (d, N)
        Features, scaled, one per row of the array. Its dtype is the compute dtype.
    target, weights : ndarray of shape (N,), float64
        Targets, and weights that sum to 1.
    loss : Loss
    basis : Basis
    dims : sequence of int
        Basis functions per feature.

    Notes
    -----
    ``_bonds[k]`` is the environment between cores k - 1 and k: the left one for bonds up to the present core, the right
    one beyond it. A core never needs both, so each bond is stored once.
    """

    def __init__(
        self, columns: NDArray, target: NDArray, weights: NDArray, loss: Loss, basis: Basis, dims: tuple[int, ...]
    ) -> None:
        super().__init__(target, weights, loss, columns.dtype)
        self._columns, self._basis, self._dims = columns, basis, dims
        self.n_distinct = count_distinct(columns)
        border = np.ones((1, self.n_rows), dtype=columns.dtype)
        self._bonds: list[NDArray] = [border] * (len(dims) + 1)
        self._site = 0

    def linear(self) -> LinearRows:
        return LinearRows(self._columns, self._target, self._weights, self._loss)

    def place(self, cores: list[NDArray]) -> None:
        self._site = len(cores) - 1
        for core in reversed(cores[1:]):
            self.move_left(core)
        self.score(cores[0])

    def move_right(self, core: NDArray) -> None:
        self._bonds[self._site + 1] = self._extend(core, kernels.extend_left, self._bonds[self._site], core.shape[2])
        self._site += 1

    def move_left(self, core: NDArray) -> None:
        right = self._bonds[self._site + 1]
        self._bonds[self._site] = self._extend(core, kernels.extend_right, right, core.shape[0])
        self._site -= 1

    def _extend(self, core: NDArray, kernel: Kernel, environment: NDArray, rank: int) -> NDArray:
        core = core.astype(self._dtype, copy=False)
        extended = np.empty((rank, self.n_rows), dtype=self._dtype)
        for rows, values in self._blocks(self._row_items(), self._dims[self._site]):
            extended[:, rows] = kernel(environment[:, rows], values, core)
        return extended

    def _block_size(self, row_items: int) -> int:
        size = _BLOCK_BYTES // (self._dtype.itemsize * row_items)
        return min(self.n_rows, max(_MIN_BLOCK, min(_MAX_BLOCK, size)))

    def _blocks(self, row_items: int, n_values: int) -> Iterator[tuple[slice, NDArray]]:
        """Rows in blocks, each with its first ``n_values`` basis values; ``row_items`` numbers are handled per row."""
        size = self._block_size(row_items)
        column = self._columns[self._site]
        for start in range(0, self.n_rows, size):
            rows = slice(start, min(start + size, self.n_rows))
            yield rows, self._basis.values(column[rows], n_values)

    def _around(self) -> tuple[NDArray, int, NDArray]:
        """Left environment, basis size and right environment of the present core."""
        return self._bonds[self._site], self._dims[self._site], self._bonds[self._site + 1]

    def _row_items(self) -> int:
        """Numbers that a contraction with the present core handles per row."""
        left, n, right = self._around()
        return (n + 1) * (len(left) + len(right))

    def _forward(self, core: NDArray) -> NDArray:
        left, n, right = self._around()
        core = core.astype(self._dtype, copy=False)
        scores = np.empty(self.n_rows)
        for rows, values in self._blocks(self._row_items(), n):
            scores[rows] = kernels.scores(left[:, rows], values, right[:, rows], core)
        return scores

    def gradient(self) -> NDArray:
        slope, _ = self._weighted()
        left, n, right = self._around()
        total = np.zeros((len(left), n, len(right)))
        for rows, values in self._blocks(self._row_items(), n):
            total += kernels.adjoint(left[:, rows], values, right[:, rows], slope[rows])
        return total

    def product(self, step: NDArray) -> NDArray:
        _, curvature = self._weighted()
        left, n, right = self._around()
        step = step.astype(self._dtype, copy=False)
        total = np.zeros(step.shape)
        for rows, values in self._blocks(self._row_items(), n):
            total += kernels.normal_product(left[:, rows], values, right[:, rows], curvature[rows], step)
        return total

    def gram(self) -> NDArray:
        _, curvature = self._weighted()
        left, n, right = self._around()
        n_left, n_right = (len(side) * (len(side) + 1) // 2 for side in (left, right))
        sums = np.zeros((2 * n - 1, n_left, n_right))
        items = kernels.moment_items(len(left), n, len(right))
        work = np.empty(items * self._block_size(items), dtype=self._dtype)
        for rows, powers in self._blocks(items, 2 * n - 1):
            sums += kernels.moments(left[:, rows], powers, right[:, rows], curvature[rows], work)
        return kernels.gram_from_moments(sums, (len(left), n, len(right)), self._basis)

    def factors(self) -> tuple[NDArray, NDArray, NDArray]:
        _, curvature = self._weighted()
        left, n, right = self._around()
        sides = [np.zeros((size, size)) for size in (len(left), n, len(right))]
        mass = float(curvature.sum(dtype=np.float64))
        for rows, values in self._blocks(len(left) + n + len(right), n):
            for side, total in zip((left[:, rows], values, right[:, rows]), sides, strict=True):
                total += (side * curvature[rows]) @ side.T
        if mass > 0:  # the Kronecker product of three means, times the total curvature
            sides[1] /= mass
            sides[2] /= mass
        return sides[0], sides[1], sides[2]
