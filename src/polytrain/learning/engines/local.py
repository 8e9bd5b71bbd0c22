"""Rows in the memory of this process, in blocks, on one thread or several."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import Basis
from polytrain.learning import kernels
from polytrain.learning.losses import Loss
from polytrain.learning.rows import Scratch, TrainBlock
from polytrain.learning.sampling import count_distinct, inclusion_chances, row_keys, row_positions

__all__ = ["LinearEngine", "LocalEngine"]

# Rows per block: few enough for a block's arrays to stay in cache, enough to make the overhead of a call small beside
# its work. The blocks never depend on the number of threads, and answers are added in the order of the blocks: results
# are the same to the last bit however many threads work.
_BLOCK_ROWS = 8192


def row_ranges(n_rows: int) -> list[slice]:
    """Split the rows evenly into blocks."""
    n_blocks = -(-n_rows // _BLOCK_ROWS)
    bounds = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [slice(start, stop) for start, stop in zip(bounds[:-1], bounds[1:], strict=True)]


class _BlockSum:
    """Asks all blocks the same question and adds up the answers."""

    def __init__(self, blocks: Sequence[Any], pool: ThreadPoolExecutor | None, n_threads: int) -> None:
        self._blocks, self._pool, self._n_threads = blocks, pool, n_threads
        self.n_rows = sum(block.n_rows for block in blocks)

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        """Answers in the order of the blocks. Handing over work takes time: one share per thread, the first one here."""

        def ask_share(first: int) -> list[Any]:
            return [getattr(block, method)(*arguments) for block in self._blocks[first :: self._n_threads]]

        if self._pool is None:
            return ask_share(0)
        others = [self._pool.submit(ask_share, first) for first in range(1, self._n_threads)]
        shares = [ask_share(0), *(other.result() for other in others)]
        return [shares[index % self._n_threads][index // self._n_threads] for index in range(len(self._blocks))]

    def _sum(self, method: str, *arguments: Any) -> Any:
        answers = self._ask(method, *arguments)
        total = answers[0]
        for answer in answers[1:]:
            total = total + answer
        return total

    def score(self, core: NDArray) -> None:
        self._ask("score", core)

    def mean_loss(self) -> float:
        return self._sum("mean_loss")

    def gradient(self) -> NDArray:
        return self._sum("gradient")

    def clear_ray(self) -> None:
        self._ask("clear_ray")

    def aim(self, step: NDArray) -> None:
        self._ask("aim", step)

    def probe(self, length: float) -> float:
        return self._sum("probe", length)

    def advance(self, length: float) -> None:
        self._ask("advance", length)


class LinearEngine(_BlockSum):
    """All rows of the linear model."""

    def gram(self) -> NDArray:
        return self._sum("gram")


class LocalEngine(_BlockSum):
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
    n_threads : int, default=1
        Threads that work on blocks. Use the engine as a context manager to end them.
    """

    def __init__(
        self,
        columns: NDArray,
        target: NDArray,
        weights: NDArray,
        loss: Loss,
        basis: Basis,
        dims: tuple[int, ...],
        n_threads: int = 1,
    ) -> None:
        scratch, ranges = Scratch(), row_ranges(columns.shape[1])
        blocks = [
            TrainBlock(columns[:, rows], target[rows], weights[rows], loss, basis, dims, scratch, len(ranges) == 1)
            for rows in ranges
        ]
        n_threads = min(n_threads, len(blocks))
        super().__init__(blocks, ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None, n_threads)
        self._columns, self._target, self._weights = columns, target, weights
        self._loss, self._basis, self._dims = loss, basis, dims
        self._keys = row_keys(columns)
        self.n_distinct = count_distinct(self._keys)

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def part(self, part: float, seed: int) -> LocalEngine:
        chances = inclusion_chances(part, self._keys, self._target)
        rows = np.flatnonzero(row_positions(self._keys, seed) < chances)
        weights = (self._weights / chances)[rows]
        chosen = LocalEngine(
            np.ascontiguousarray(self._columns[:, rows]),
            self._target[rows],
            weights / weights.sum(),
            self._loss,
            self._basis,
            self._dims,
        )
        if self._pool is not None:  # one pool serves them all, and ends with the first engine
            chosen._pool, chosen._n_threads = self._pool, min(self._n_threads, len(chosen._blocks))
        return chosen

    def linear(self) -> LinearEngine:
        return LinearEngine(self._ask("linear"), self._pool, self._n_threads)

    def place(self, cores: list[NDArray]) -> None:
        self._ask("place", cores)

    def move_right(self, core: NDArray) -> None:
        self._ask("move_right", core)

    def move_left(self, core: NDArray) -> None:
        self._ask("move_left", core)

    def product(self, step: NDArray) -> NDArray:
        return self._sum("product", step)

    def walk(self, length: float) -> None:
        self._ask("walk", length)

    def gram(self) -> NDArray:
        return kernels.gram_from_moments(self._sum("gram_moments"), self._blocks[0].shape, self._basis)

    def factors(self) -> tuple[NDArray, NDArray, NDArray]:
        left, middle, right, mass = (sum(parts) for parts in zip(*self._ask("factors"), strict=True))
        if mass > 0:  # the Kronecker product of three means, times the total curvature
            middle, right = middle / mass, right / mass
        return left, middle, right
