"""Rows in the memory of this process, in blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import Basis
from polytrain.learning import kernels
from polytrain.learning.losses import Loss
from polytrain.learning.rows import Scratch, TrainBlock
from polytrain.learning.sampling import DistinctRows, choose_rows, row_keys

__all__ = ["BlockEngine", "LinearEngine", "LocalEngine", "row_ranges"]

# Rows per block: few enough for a block's arrays to stay in cache, enough to make the overhead of a call small beside
# its work; no power of two, which would map the rows of an array onto each other in the cache. Blocks never depend on
# who works on them, and answers are added in the order of the blocks: results are the same to the last bit however many
# processes share the work.
_BLOCK_ROWS = 8000


def row_ranges(n_rows: int) -> list[slice]:
    """Split the rows evenly into blocks."""
    n_blocks = -(-n_rows // _BLOCK_ROWS)
    bounds = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [slice(start, stop) for start, stop in pairwise(bounds)]


class _BlockSum:
    """Asks all blocks the same question and adds up the answers."""

    n_rows: int
    # What is known without asking: the loss at the present scores, and the length that was probed last with its loss.
    _loss_here: float | None = None
    _probed: tuple[float, float] | None = None

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Answers of all blocks, in their order."""
        raise NotImplementedError

    def _tell(self, method: str, *arguments: Any) -> None:
        """Ask without waiting for an answer."""
        self._ask(method, *arguments)

    def _sum(self, method: str, *arguments: Any) -> Any:
        answers = self._ask(method, *arguments)
        total = answers[0]
        for answer in answers[1:]:
            total = total + answer
        return total

    def score(self, core: NDArray) -> None:
        self._tell("score", core)
        self._loss_here = self._probed = None

    def mean_loss(self) -> float:
        if self._loss_here is None:
            self._loss_here = self._sum("mean_loss")
        return self._loss_here

    def gradient(self) -> NDArray:
        return self._sum("gradient")

    def aim(self, step: NDArray) -> None:
        self._tell("aim", step)
        self._probed = None

    def probe(self, length: float, core: NDArray) -> float:
        loss = self._sum("probe", length)
        self._probed = length, loss
        return loss

    def advance(self, length: float, core: NDArray) -> None:
        self._tell("advance", length)
        self._loss_here = self._probed[1] if self._probed is not None and self._probed[0] == length else None
        self._probed = None


def hash_rows(*arrays: NDArray) -> str:
    """Digest of arrays with their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        for line in np.atleast_2d(array):
            digest.update(np.ascontiguousarray(line).data)
    return digest.hexdigest()


class LinearEngine(_BlockSum):
    """The linear model on the rows of some blocks. Use it as a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of what was kept for it; nothing by default."""

    def gram(self) -> NDArray:
        return self._sum("gram")


class BlockEngine(_BlockSum):
    """A train on rows that live in blocks somewhere."""

    n_distinct: int

    def __init__(self, basis: Basis, dims: tuple[int, ...]) -> None:
        self._basis, self._dims = basis, dims

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of processes and files; there are none by default."""

    def fingerprint(self) -> str:
        raise NotImplementedError

    def linear(self) -> LinearEngine:
        raise NotImplementedError

    def part(self, part: float, seed: int) -> BlockEngine:
        raise NotImplementedError

    def place(self, cores: list[NDArray], position: int = 0) -> None:
        self._ranks = [core.shape[0] for core in cores] + [1]
        self._site = position
        self._tell("place", cores, position)
        self._loss_here = self._probed = None

    def move_right(self, core: NDArray) -> None:
        self._tell("move_right", core)
        self._site += 1
        self._ranks[self._site] = core.shape[2]

    def move_left(self, core: NDArray) -> None:
        self._tell("move_left", core)
        self._ranks[self._site] = core.shape[0]
        self._site -= 1

    def product(self, step: NDArray) -> NDArray:
        return self._sum("product", step)

    def clear_ray(self) -> None:
        self._tell("clear_ray")
        self._probed = None

    def walk(self, length: float) -> None:
        self._tell("walk", length)
        self._probed = None

    def gram(self) -> NDArray:
        shape = self._ranks[self._site], self._dims[self._site], self._ranks[self._site + 1]
        return kernels.gram_from_moments(self._sum("gram_moments"), shape, self._basis)

    def factors(self) -> tuple[NDArray, NDArray, NDArray]:
        return kernels.mean_factors(*(sum(parts) for parts in zip(*self._ask("factors"), strict=True)))


class _HereLinear(LinearEngine):
    def __init__(self, blocks: Sequence[Any]) -> None:
        self._blocks = blocks
        self.n_rows = sum(block.n_rows for block in blocks)

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(block, method)(*arguments) for block in self._blocks]


class LocalEngine(BlockEngine):
    """All rows of one binary problem in this process.

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
    """

    def __init__(
        self, columns: NDArray, target: NDArray, weights: NDArray, loss: Loss, basis: Basis, dims: tuple[int, ...]
    ) -> None:
        super().__init__(basis, dims)
        self._columns, self._target, self._weights, self._loss = columns, target, weights, loss
        self._blocks = make_blocks(columns, target, weights, loss, basis, dims)
        self.n_rows = columns.shape[1]
        self._keys = row_keys(columns)
        self._distinct = DistinctRows.of(self._keys, target)
        self.n_distinct = self._distinct.n_rows

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(block, method)(*arguments) for block in self._blocks]

    def fingerprint(self) -> str:
        return hash_rows(self._columns, self._target, self._weights)

    def linear(self) -> LinearEngine:
        return _HereLinear(self._ask("linear"))

    def part(self, part: float, seed: int) -> LocalEngine:
        rows, weights = choose_rows(part, seed, self._distinct, self._keys, self._target, self._weights)
        columns, weights = np.ascontiguousarray(self._columns[:, rows]), weights / weights.sum()
        return LocalEngine(columns, self._target[rows], weights, self._loss, self._basis, self._dims)


def make_blocks(
    columns: NDArray,
    target: NDArray,
    weights: NDArray,
    loss: Loss,
    basis: Basis,
    dims: tuple[int, ...],
    first: int = 0,
    step: int = 1,
) -> list[TrainBlock]:
    """Make the blocks of these rows, or every ``step``-th of them beginning with ``first``."""
    ranges = row_ranges(columns.shape[1])[first::step]
    scratch, alone = Scratch(), len(ranges) == 1
    return [
        TrainBlock(columns[:, rows], target[rows], weights[rows], loss, basis, dims, scratch, alone) for rows in ranges
    ]
