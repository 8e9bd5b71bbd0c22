"""A block of rows, standing at one core of a train: whatever is summed over rows is summed here.

Engines split the rows into blocks, ask every block the same question and add up the answers. A block keeps everything
that belongs to its rows (environments, scores, the loss and its derivatives), so blocks can live in other processes, on
disk or on other machines. What a block returns is float64 and shaped like a core; what it keeps has the compute dtype.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import Basis
from polytrain.learning import kernels
from polytrain.learning.losses import Loss
from polytrain.tensor.contract import khatri_rao
from polytrain.tensor.thin_products import multiply_rows, sum_over_rows

__all__ = ["LinearBlock", "LossAt", "RowBlock", "Scratch", "TrainBlock"]

# Bytes that one product of many columns or pairs works on: what stays in a core's share of the cache.
_WORK_BYTES = 1 << 22
_MIN_ROWS = 256


@dataclass(frozen=True)
class LossAt:
    """Part of the mean loss at some scores, with the weighted slope and curvature of every row."""

    scores: NDArray
    value: float
    slope: NDArray
    curvature: NDArray

    def of(self, rows: slice) -> LossAt:
        """Return the same for some of the rows; their part of the loss is not known."""
        return LossAt(self.scores[rows], math.nan, self.slope[rows], self.curvature[rows])


class Scratch:
    """Memory for intermediate results, used again and again by the blocks of one process.

    Fresh memory costs as much as the arithmetic done in it.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
        """Return an array of this shape with arbitrary values, valid until the name is taken again."""
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(size, dtype=dtype)
        return buffer[:size].reshape(shape)


class RowBlock:
    """Present scores with their loss, and a ray along which they may move: the part that no core shape enters."""

    def __init__(self, target: NDArray, weights: NDArray, loss: Loss, dtype: np.dtype) -> None:
        self.n_rows = len(target)
        self._target, self._weights, self._loss, self._dtype = target, weights, loss, dtype
        self._ray = np.zeros(self.n_rows)
        self._image = self._ray  # scores of the step that was multiplied last
        self.here: LossAt
        self._probed: tuple[float, LossAt] | None = None

    def forward(self, core: NDArray) -> NDArray:
        """Scores of a core, float64."""
        raise NotImplementedError

    def loss_at(self, scores: NDArray) -> LossAt:
        """Loss and derivatives at these scores."""
        cost, slope, curvature = self._loss.evaluate(self._target, scores)
        slope *= self._weights
        curvature *= self._weights
        value = float(self._weights @ cost)
        return LossAt(scores, value, slope.astype(self._dtype, copy=False), curvature.astype(self._dtype, copy=False))

    def score(self, core: NDArray) -> None:
        self.here = self.loss_at(self.forward(core))
        self._probed = None

    def mean_loss(self) -> float:
        return self.here.value

    def clear_ray(self) -> None:
        self._ray = np.zeros(self.n_rows)
        self._probed = None

    def walk(self, length: float) -> None:
        self._ray += length * self._image
        self._probed = None

    def aim(self, step: NDArray) -> None:
        self._ray = self.forward(step)
        self._probed = None

    def probe(self, length: float) -> float:
        self._probed = length, self.loss_at(self.here.scores + length * self._ray)
        return self._probed[1].value

    def advance(self, length: float) -> None:
        # A line search ends where it probed last: nothing need be computed again.
        probed = self._probed
        if probed is None or probed[0] != length:
            probed = length, self.loss_at(self.here.scores + length * self._ray)
        self.here, self._probed = probed[1], None


class LinearBlock(RowBlock):
    """The linear model as a core problem: one core of shape (1, d + 1, 1) on the values 1, x_1, ..., x_d.

    It is always solved in float64: the start must equal the linear model to rounding.
    """

    def __init__(self, columns: NDArray, target: NDArray, weights: NDArray, loss: Loss) -> None:
        super().__init__(target, weights, loss, np.dtype(np.float64))
        self._columns = columns
        self._size = max(_MIN_ROWS, _WORK_BYTES // (8 * (len(columns) + 1)))
        self._only_values = self._values(slice(None)) if self.n_rows <= self._size else None

    def _values(self, rows: slice) -> NDArray:
        columns = self._columns[:, rows]
        values = np.empty((len(columns) + 1, columns.shape[1]))
        values[0] = 1
        values[1:] = columns
        return values

    def _parts(self) -> Iterator[tuple[slice, NDArray]]:
        """Rows in parts, each with its values (d + 1, rows); those of a single part are kept."""
        if self._only_values is not None:
            yield slice(None), self._only_values
            return
        for start in range(0, self.n_rows, self._size):
            rows = slice(start, start + self._size)
            yield rows, self._values(rows)

    def forward(self, core: NDArray) -> NDArray:
        flat = core.ravel()
        return np.concatenate([flat @ values for _, values in self._parts()])

    def gradient(self) -> NDArray:
        slope = self.here.slope
        return sum(values @ slope[rows] for rows, values in self._parts()).reshape(1, -1, 1)

    def gram(self) -> NDArray:
        curvature = self.here.curvature
        return sum((values * curvature[rows]) @ values.T for rows, values in self._parts())


def turned(site: int, to_right: bool, n_sites: int) -> bool:
    """Whether the next move goes right: at either end of the train it can only go back."""
    return (to_right or site == 0) and site < n_sites - 1


class TrainBlock(RowBlock):
    """Rows of one binary problem, with the environments of the train that is being learned.

    Parameters
    ----------
    columns : ndarray of shape (d, N)
        Features, scaled, one per row of the array. Its dtype is the compute dtype.
    target, weights : ndarray of shape (N,), float64
        Targets, and weights; those of all blocks together sum to 1.
    loss : Loss
    basis : Basis
    dims : sequence of int
        Basis functions per feature.
    scratch : Scratch
        Memory that the blocks of an engine share.
    alone : bool
        Whether no other block uses the scratch: then the spread stays there until the next move.

    Notes
    -----
    ``_bonds[k]`` is the environment between cores k - 1 and k: the left one for bonds up to the present core, the right
    one beyond it. A core never needs both, so each bond is stored once. The environment that the next move will
    extend is the near one, the other the far one; the spread is the near one times all basis values, and it serves
    gradient, products, scores and the move alike.
    """

    def __init__(
        self,
        columns: NDArray,
        target: NDArray,
        weights: NDArray,
        loss: Loss,
        basis: Basis,
        dims: tuple[int, ...],
        scratch: Scratch,
        alone: bool = False,
    ) -> None:
        super().__init__(target, weights, loss, columns.dtype)
        self._columns, self._basis, self._dims = columns, basis, dims
        self._scratch, self._alone = scratch, alone
        self._border = np.ones((1, self.n_rows), dtype=columns.dtype)
        self._bonds: list[NDArray] = [self._border] * (len(dims) + 1)
        # Second moments of the environments: with constant curvature they live as long as the environments.
        self._moments: list[NDArray | None] = [None] * (len(dims) + 1)
        self._spread: NDArray | None = None
        self._site, self._to_right = 0, True

    def linear(self) -> LinearBlock:
        return LinearBlock(self._columns, self._target, self._weights, self._loss)

    def place(self, cores: list[NDArray], position: int) -> None:
        self._stand_at(len(cores) - 1, to_right=False)
        for core in reversed(cores[position + 1 :]):
            self.move_left(core)
        self._stand_at(0, to_right=True)
        for core in cores[:position]:
            self.move_right(core)
        self._stand_at(position, self._to_right)
        self.score(cores[position])

    def stand(self, site: int, left: NDArray | None, right: NDArray | None, to_right: bool) -> None:
        """Stand at a core with environments from elsewhere; None at an end of the train."""
        self._bonds[site] = self._border if left is None else left
        self._bonds[site + 1] = self._border if right is None else right
        self._moments = [None] * len(self._bonds)
        self._site, self._to_right, self._spread = site, to_right, None

    def extended(self, core: NDArray, out: NDArray) -> NDArray:
        """Near environment contracted with the core, (far rank, N), written to ``out``."""
        return multiply_rows(self._unfold(core), self._near_spread(), out)

    def move_right(self, core: NDArray) -> None:
        self._to_right = True
        self._extend(self._site + 1, core)
        self._stand_at(self._site + 1, to_right=True)

    def move_left(self, core: NDArray) -> None:
        self._to_right = False
        self._extend(self._site, core)
        self._stand_at(self._site - 1, to_right=False)

    def _extend(self, bond: int, core: NDArray) -> None:
        """Replace the far environment by the near one contracted with the core."""
        old = self._bonds[bond]
        far_rank = core.shape[2] if self._to_right else core.shape[0]
        if old is self._border or len(old) != far_rank:
            old = np.empty((far_rank, self.n_rows), dtype=self._dtype)
        self._bonds[bond] = self.extended(core, old)
        self._moments[bond] = None

    def _stand_at(self, site: int, to_right: bool) -> None:
        """Stand at a core, about to go on in this direction."""
        self._site, self._spread = site, None
        self._to_right = turned(site, to_right, len(self._dims))

    def _sides(self) -> tuple[NDArray, NDArray]:
        """Near and far environment."""
        left, right = self._bonds[self._site], self._bonds[self._site + 1]
        return (left, right) if self._to_right else (right, left)

    def _values(self, n: int) -> NDArray:
        out = self._scratch.take("values", (n, self.n_rows), self._dtype)
        return self._basis.values(self._columns[self._site], n, out)

    def _near_spread(self) -> NDArray:
        """Near environment times basis values, (n * near rank, N)."""
        if self._spread is None:
            near, _ = self._sides()
            values = self._values(self._dims[self._site])
            out = self._scratch.take("spread", (len(values) * len(near), self.n_rows), self._dtype)
            spread = khatri_rao(near, values, out)
            if not self._alone:
                return spread
            self._spread = spread
        return self._spread

    def _like_far(self) -> NDArray:
        """Scratch of the shape of the far environment."""
        return self._scratch.take("images", self._sides()[1].shape, self._dtype)

    def _unfold(self, core: NDArray) -> NDArray:
        return kernels.unfold(core.astype(self._dtype, copy=False), self._to_right)

    def _adjoint(self, spread: NDArray, weighted: NDArray) -> NDArray:
        return kernels.fold(sum_over_rows(spread, weighted), self._dims[self._site], self._to_right)

    def forward(self, core: NDArray) -> NDArray:
        images = multiply_rows(self._unfold(core), self._near_spread(), self._like_far())
        images *= self._sides()[1]
        return np.add.reduce(images, axis=0).astype(np.float64, copy=False)

    def gradient(self) -> NDArray:
        weighted = np.multiply(self._sides()[1], self.here.slope, out=self._like_far())
        return self._adjoint(self._near_spread(), weighted)

    def product(self, step: NDArray) -> NDArray:
        _, far = self._sides()
        spread = self._near_spread()
        images = multiply_rows(self._unfold(step), spread, self._like_far())
        images *= far
        self._image = np.add.reduce(images, axis=0)
        np.multiply(far, self._image * self.here.curvature, out=images)
        return self._adjoint(spread, images)

    def gram_moments(self) -> NDArray:
        left, right = self._bonds[self._site], self._bonds[self._site + 1]
        n = self._dims[self._site]
        items = kernels.moment_items(len(left), n, len(right))
        size = min(self.n_rows, max(_MIN_ROWS, _WORK_BYTES // (self._dtype.itemsize * items)))
        work = self._scratch.take("moments", (items * size,), self._dtype)
        powers, curvature = self._values(2 * n - 1), self.here.curvature
        n_left, n_right = (len(side) * (len(side) + 1) // 2 for side in (left, right))
        sums = np.zeros((2 * n - 1, n_left, n_right))
        for start in range(0, self.n_rows, size):
            rows = slice(start, start + size)
            sums += kernels.moments(left[:, rows], powers[:, rows], right[:, rows], curvature[rows], work)
        return sums

    def factors(self) -> tuple[NDArray, NDArray, NDArray, float]:
        """Second moments of left environment, basis values and right environment, and the total curvature."""
        middle, mass = self.middle_moment()
        return self.left_moment(), middle, self.right_moment(), mass

    def middle_moment(self) -> tuple[NDArray, float]:
        """Second moment of the basis values, and the total curvature."""
        values = self._values(self._dims[self._site])
        middle = (values * self.here.curvature) @ values.T
        return middle.astype(np.float64), float(middle[0, 0])

    def left_moment(self) -> NDArray:
        return self._second_moment(self._site)

    def right_moment(self) -> NDArray:
        return self._second_moment(self._site + 1)

    def _second_moment(self, index: int) -> NDArray:
        known = self._moments[index]
        if known is None or not self._loss.quadratic:
            side = self._bonds[index]
            weighted = self._scratch.take("images", side.shape, self._dtype)
            known = sum_over_rows(np.multiply(side, self.here.curvature, out=weighted), side)
            self._moments[index] = known
        return known
