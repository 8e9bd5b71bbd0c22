"""Rows in the memory of this process, in blocks."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import methodcaller
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.blocks import LinearBlock, RowBlock, Scratch, TrainBlock
from polytrain.learning.engines.engine import CoreRows, Engine, LinearRows, Position
from polytrain.learning.kronecker import KroneckerHessian
from polytrain.learning.losses import Loss
from polytrain.learning.problem import Facts, LocalFactors, Need, ProblemRows, add_up
from polytrain.learning.sampling import DistinctRows, choose_rows
from polytrain.maps import MapList

__all__ = ["BlockEngine", "BlockLinearRows", "LocalEngine", "hash_rows", "make_blocks", "row_ranges"]

# Rows per block: few enough for a block's arrays to stay in cache, enough to make the overhead of a call small beside
# its work; no power of two, which would map the rows of an array onto each other in the cache. Blocks never depend on
# who works on them, and answers are added in the order of the blocks: results are the same to the last bit however many
# processes share the work.
_BLOCK_ROWS = 8000

P = ParamSpec("P")
T = TypeVar("T")
#: A question to a block: a method that is called by its name, see `polytrain.learning.blocks`.
Question = Callable[Concatenate[Any, P], T]


def row_ranges(n_rows: int) -> list[slice]:
    """Split the rows evenly into blocks."""
    n_blocks = -(-n_rows // _BLOCK_ROWS)
    bounds = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def hash_rows(rows: ProblemRows) -> str:
    """Digest of columns, targets, weights and offset, with their types and shapes."""
    digest = hashlib.sha256()
    for array in (rows.columns, rows.target, rows.weights, rows.offset):
        if array is None:
            continue
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        for line in np.atleast_2d(array):
            digest.update(np.ascontiguousarray(line).data)
    return digest.hexdigest()


def make_blocks(rows: ProblemRows, loss: Loss, maps: MapList, first: int = 0, step: int = 1) -> list[TrainBlock]:
    """Make the blocks of these rows, or every ``step``-th of them beginning with ``first``."""
    ranges = row_ranges(rows.n_rows)[first::step]
    scratch, alone = Scratch(), len(ranges) == 1
    return [TrainBlock(rows.block(some), loss, maps, scratch, alone) for some in ranges]


class _BlockRows(CoreRows):
    """Asks all blocks the same question and adds up the answers."""

    @abstractmethod
    def _ask(self, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        """Answers of all blocks, in their order."""

    def _tell(self, question: Question[P, None], *arguments: P.args, **nothing: P.kwargs) -> None:
        """Ask without waiting for an answer."""
        self._ask(question, *arguments, **nothing)

    def _score(self, core: NDArray) -> None:
        self._tell(RowBlock.score, core)

    def _answer(self, need: Need) -> Facts:
        return add_up(self._ask(RowBlock.facts, need))

    def _aim(self, step: NDArray) -> None:
        self._tell(RowBlock.set_direction, step)

    def _probe(self, length: float, core: NDArray) -> float:
        return add_up(self._ask(RowBlock.try_step, length))

    def _accept(self) -> None:
        self._tell(RowBlock.accept)


class BlockLinearRows(LinearRows, _BlockRows):
    """The linear model on rows that live in blocks somewhere."""


class BlockEngine(_BlockRows, Engine):
    """A train on rows that live in blocks somewhere.

    Parameters
    ----------
    rows : ProblemRows
        All of them; their weights sum to 1.
    loss : Loss
    maps : MapList
    """

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList) -> None:
        super().__init__(loss, maps)
        self._rows, self.n_rows = rows, rows.n_rows
        self._distinct = DistinctRows.of(rows.keys, rows.target)
        self.n_distinct = self._distinct.n_rows

    def _stand(self, at: Position) -> None:
        self._tell(TrainBlock.stand, *at)

    def _extend(self, core: NDArray, following: Position) -> None:
        self._tell(TrainBlock.move, core, *following)

    def local_factors(self) -> LocalFactors:
        return LocalFactors.join(self._ask(TrainBlock.local_factors))

    def product(self, step: NDArray) -> NDArray:
        return add_up(self._ask(TrainBlock.product, step))

    def _clear_ray(self) -> None:
        self._tell(RowBlock.clear_ray)

    def _walk(self, length: float) -> None:
        self._tell(RowBlock.walk, length)

    def fingerprint(self) -> str:
        return hash_rows(self._rows)

    def gather(self, fraction: float, seed: int) -> ProblemRows:
        return self._rows if fraction >= 1.0 else self._rows.take(*self._chosen(fraction, seed))

    def _chosen(self, fraction: float, seed: int) -> tuple[NDArray, NDArray]:
        """Indices and weights of the rows of a sample."""
        rows = self._rows
        chosen, weights = choose_rows(fraction, seed, self._distinct, rows.keys, rows.target, rows.weights)
        return chosen, weights / weights.sum()


class _LocalRows(_BlockRows):
    """Asks blocks of this process, which takes no more calls than it must."""

    _blocks: Sequence[Any]

    def _ask(self, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        return list(map(methodcaller(question.__name__, *arguments, **nothing), self._blocks))

    _tell = _ask  # type: ignore[assignment]

    def _score(self, core: NDArray) -> None:
        for block in self._blocks:
            block.score(core)

    def _answer(self, need: Need) -> Facts:
        answers = list(map(methodcaller("facts", need), self._blocks))
        return add_up(answers)


class _LocalLinearRows(_LocalRows, BlockLinearRows):
    def __init__(self, blocks: Sequence[LinearBlock], gram: NDArray | None) -> None:
        super().__init__(gram)
        self._blocks, self.n_rows = blocks, sum(block.n_rows for block in blocks)


class LocalEngine(_LocalRows, BlockEngine):
    """All rows of one problem in this process; see `BlockEngine`."""

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList) -> None:
        super().__init__(rows, loss, maps)
        self._blocks = make_blocks(rows, loss, maps)

    def descend(self, nearly: KroneckerHessian, gradient: NDArray, *limits: float) -> NDArray | None:
        self._tried = None
        return self._blocks[0].descend(nearly, gradient, *limits) if len(self._blocks) == 1 else None

    def linear(self, gram: NDArray | None = None) -> BlockLinearRows:
        return _LocalLinearRows(self._ask(TrainBlock.linear), gram)

    def sample(self, fraction: float, seed: int) -> LocalEngine:
        return LocalEngine(self._rows.take(*self._chosen(fraction, seed)), self._loss, self._maps)
