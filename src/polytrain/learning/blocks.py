"""A block of rows at one core of a train: all sums over rows are computed here.

Engines split the rows into blocks, ask all blocks the same question, a method of `RowBlock` or `TrainBlock`, and add up
the answers. A block keeps everything that belongs to its rows (environments, scores, the loss and its derivatives), so
blocks can live in other processes. Answers are float64 and shaped like a core; the rest has the compute dtype.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from polytrain import native
from polytrain.arrays import Array
from polytrain.learning import contractions
from polytrain.learning.contractions import Contraction, make_contraction, moment_between_knots, second_moment
from polytrain.learning.kronecker import KroneckerHessian
from polytrain.learning.losses import Loss
from polytrain.learning.problem import Facts, LocalFactors, Need, ProblemRows
from polytrain.maps import MapList

# Bytes of a product of many columns or pairs, which should fit in a processor core's share of the cache.
_WORK_BYTES = 1 << 22
_MIN_ROWS = 256


class LossAt(NamedTuple):
    """These rows' share of the mean loss at some scores, with the weighted slope and curvature of every row."""

    scores: Array
    value: float
    slope: Array
    curvature: Array

    def of(self, rows: slice) -> LossAt:
        """Return the same for some of the rows; the first of them count for the loss of all."""
        value = 0.0 if rows.start else self.value
        return LossAt(self.scores[rows], value, self.slope[rows], self.curvature[rows])


class Scratch:
    """Memory for intermediate results of the blocks of one process: fresh memory costs as much as the arithmetic."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Return an array of this shape with arbitrary values, valid until the name is taken again."""
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(size, dtype=dtype)
        return buffer[:size].reshape(shape)


class RowBlock(ABC):
    """Present scores with their loss, and a search direction along which they may move."""

    def __init__(self, rows: ProblemRows, loss: Loss, dtype: np.dtype) -> None:
        self.n_rows = rows.n_rows
        self._target, self._weights, self._offset = rows.target, rows.weights, rows.offset
        self._loss, self._dtype = loss, dtype
        self._direction = np.zeros(self.n_rows)
        self._image = self._direction  # scores of the step that was multiplied last
        self.here: LossAt
        self._trial: LossAt

    @abstractmethod
    def forward(self, core: Array) -> Array:
        """Scores of a core without the offset, float64."""

    @abstractmethod
    def facts(self, need: Need) -> Facts:
        """Return the requested facts about the present scores."""

    def loss_at(self, scores: Array) -> LossAt:
        """Loss and derivatives at these scores."""
        cost, slope, curvature = self._loss.evaluate(self._target, scores)
        slope *= self._weights
        curvature *= self._weights
        value = float(self._weights @ cost)
        return LossAt(scores, value, slope.astype(self._dtype, copy=False), curvature.astype(self._dtype, copy=False))

    def score(self, core: Array) -> None:
        """Make the scores of this core the present ones."""
        scores = self.forward(core)
        if self._offset is not None:
            scores += self._offset
        self.here = self.loss_at(scores)

    def clear_direction(self) -> None:
        """Set the search direction to zero."""
        self._direction = np.zeros(self.n_rows)

    def extend_direction(self, length: float) -> None:
        """Add ``length`` times the step that was multiplied last to the search direction."""
        self._direction += length * self._image

    def set_direction(self, step: Array) -> None:
        """Search along a step."""
        self._direction = self.forward(step)

    def try_step(self, length: float, core: Array) -> float:
        """Return the loss at ``length`` along the search direction, where the scores are those of this core."""
        self._trial = self.loss_at(self.here.scores + length * self._direction)
        return self._trial.value

    def accept(self) -> None:
        """Take the scores that were tried last."""
        self.here = self._trial


class LinearBlock(RowBlock):
    """The linear model as a core problem: one core of shape (1, 1 + L, 1) on the constant and all linear functions.

    It is always solved in float64: the start must equal the linear model to rounding.
    """

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList) -> None:
        super().__init__(rows, loss, np.dtype(np.float64))
        self._columns, self._maps = rows.columns, maps
        self._n_values = 1 + sum(maps.linear_sizes())
        self._size = max(_MIN_ROWS, _WORK_BYTES // (8 * self._n_values))
        self._only_values = self._values(slice(None)) if self.n_rows <= self._size else None

    def _values(self, rows: slice) -> Array:
        columns = self._columns[:, rows]
        own = zip(self._maps, self._maps.linear_sizes(), columns, strict=True)
        parts = [feature_map.values(column)[1 : 1 + size] for feature_map, size, column in own]
        return np.concatenate([np.ones((1, columns.shape[1])), *parts])

    def _pieces(self) -> Iterator[tuple[slice, Array]]:
        """Rows in pieces, each with its values (1 + L, rows); those of a single piece are kept."""
        if self._only_values is not None:
            yield slice(None), self._only_values
            return
        for start in range(0, self.n_rows, self._size):
            rows = slice(start, start + self._size)
            yield rows, self._values(rows)

    def forward(self, core: Array) -> Array:
        """Scores of the linear model, (N,)."""
        flat = core.ravel()
        if not flat.any():  # the start: values would be evaluated for nothing
            return np.zeros(self.n_rows)
        return np.concatenate([flat @ values for _, values in self._pieces()])

    def facts(self, need: Need) -> Facts:
        """Values times slopes, and the Gram matrix itself, in one pass over the values."""
        gradient = np.zeros(self._n_values) if need.gradient else None
        gram = np.zeros((self._n_values, self._n_values)) if need.gram else None
        for rows, values in self._pieces() if any(need) else ():
            if gradient is not None:
                gradient += values @ self.here.slope[rows]
            if gram is not None:
                values = values * np.sqrt(self.here.curvature[rows])
                gram += values @ values.T  # a product with itself: BLAS computes half of it
        return Facts(self.here.value, None if gradient is None else gradient.reshape(1, -1, 1), gram)


class TrainBlock(RowBlock):
    """Rows of one problem, with the environments of the train that is being learned.

    The weights of all blocks together sum to 1. The blocks of an engine share a ``scratch``; if a block is ``alone``,
    its content stays valid until the next move. ``_bonds[k]`` is the environment between cores k - 1 and k: the left
    one for bonds up to the present core, the right one beyond it. The environment that the next move will extend is the
    near one, the other the far one.
    """

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList, scratch: Scratch, alone: bool = False) -> None:
        super().__init__(rows, loss, rows.columns.dtype)
        self._rows, self._columns, self._maps, self._dims = rows, rows.columns, maps, maps.dims
        self._scratch, self._alone = scratch, alone
        self._border = np.ones((1, self.n_rows), dtype=self._dtype)
        self._bonds: list[Array] = [self._border] * (len(maps) + 1)
        self._kept: Contraction | None
        self._linear: LinearBlock | None
        self.set_position(0, True)

    def linear(self, question: str, *arguments: Any) -> Any:
        """Answer a question about the linear model, a method of `LinearBlock`, which is kept until a core is chosen."""
        if self._linear is None:
            self._linear = LinearBlock(self._rows, self._loss, self._maps)
        return getattr(self._linear, question)(*arguments)

    def set_position(self, site: int, to_right: bool) -> None:
        """Make this core the present one; the next move goes in this direction."""
        self._site, self._to_right, self._kept, self._linear = site, to_right, None, None

    def set_environments(self, left: Array | None, right: Array | None) -> None:
        """Set the environments of the present core; None at an end of the train."""
        self._bonds[self._site] = self._border if left is None else left
        self._bonds[self._site + 1] = self._border if right is None else right

    def extended(self, core: Array, out: Array) -> Array:
        """Near environment contracted with the core, (far rank, N), written to ``out``."""
        return self._contraction().images(core, out)

    def move(self, core: Array, site: int, to_right: bool) -> None:
        """Replace the far environment by the near one contracted with the core, and go to the next core."""
        bond = self._site + 1 if self._to_right else self._site
        old = self._bonds[bond]
        far_rank = core.shape[2] if self._to_right else core.shape[0]
        if old is self._border or len(old) != far_rank:
            old = np.empty((far_rank, self.n_rows), dtype=self._dtype)
        self._bonds[bond] = self._contraction().images(core, old)
        self.set_position(site, to_right)

    def _take(self, name: str, shape: tuple[int, ...]) -> Array:
        return self._scratch.take(name, shape, self._dtype)

    def _values(self) -> Array:
        out = self._take("values", (self._dims[self._site], self.n_rows))
        return self._maps[self._site].values(self._columns[self._site], out)

    def _contraction(self) -> Contraction:
        """The present core against the rows; kept until the next move if the block is alone."""
        if self._kept is not None:
            return self._kept
        site = self._site
        near, far = self._bonds[site : site + 2] if self._to_right else self._bonds[site : site + 2][::-1]
        made = make_contraction(self._maps[site], self._columns[site], near, far, self._to_right, self._take)
        self._kept = made if self._alone else None
        return made

    def forward(self, core: Array) -> Array:
        """Scores of the core in all rows."""
        return self._contraction().scores(core).astype(np.float64, copy=False)

    def local_factors(self) -> LocalFactors:
        """Environments, function values and curvatures of all rows, in fresh memory where they share it."""
        left, right = self._bonds[self._site], self._bonds[self._site + 1]
        return LocalFactors(left, self._values().copy(), right, self.here.curvature)

    def product(self, step: Array) -> Array:
        """Multiply a step by the Gram matrix, and remember the scores of the step."""
        self._image, sums = self._contraction().product(step, self.here.curvature)
        return sums

    def descend(self, preconditioner: KroneckerHessian, gradient: Array, *limits: float) -> Array | None:
        """Solve a Newton system of these rows alone, and search along the step; None if the rows cannot."""
        solved = self._contraction().descend(preconditioner, gradient, self.here.curvature, *limits)
        if solved is None:
            return None
        step, self._direction = solved
        return step

    def gram_moments(self) -> Array:
        """The few sums that hold the whole Gram matrix, see `contractions.moments`."""
        left, right = self._bonds[self._site], self._bonds[self._site + 1]
        rule = self._maps[self._site].products
        products = self._take("products", (rule.size, self.n_rows))
        rule.values(self._columns[self._site], products)
        if native.is_here():
            return native.dense_moments(left, products, right, self.here.curvature)
        n_left, n_right = (len(side) * (len(side) + 1) // 2 for side in (left, right))
        sums, curvature = np.zeros((rule.size, n_left, n_right)), self.here.curvature
        size = max(_MIN_ROWS, _WORK_BYTES // (self._dtype.itemsize * rule.size * min(n_left, n_right)))
        for start in range(0, self.n_rows, size):
            rows = slice(start, start + size)
            sums += contractions.moments(left[:, rows], products[:, rows], right[:, rows], curvature[rows])
        return sums

    def facts(self, need: Need) -> Facts:
        """Return what is needed; moments are those of both environments and the functions."""
        return Facts(
            self.here.value,
            self._contraction().sums(self.here.slope) if need.gradient else None,
            self.gram_moments() if need.gram else None,
            second_moment(self._bonds[self._site], self.here.curvature, self._take) if need.left else None,
            self._middle_moment() if need.middle else None,
            second_moment(self._bonds[self._site + 1], self.here.curvature, self._take) if need.right else None,
        )

    def _middle_moment(self) -> Array:
        """Second moment of the function values."""
        knots = self._maps[self._site].knots(self._dtype)
        if knots is not None:
            return moment_between_knots(self._columns[self._site], knots, self.here.curvature)
        values = self._values()
        return ((values * self.here.curvature) @ values.T).astype(np.float64)
