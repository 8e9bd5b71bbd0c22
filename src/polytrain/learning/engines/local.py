"""Rows in the memory of this process, in blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from operator import methodcaller
from typing import Any

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.blocks import LinearBlock, Scratch, TrainBlock
from polytrain.learning.engines.engine import CoreRows, Engine, LinearRows
from polytrain.learning.kronecker import KroneckerHessian
from polytrain.learning.losses import Loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.sampling import DistinctRows, choose_rows
from polytrain.maps import MapList

# Rows per block: few enough for a block's arrays to stay in cache, enough to make the overhead of a call small beside
# its work; not a power of two, which would map the rows of an array onto each other in the cache. Blocks never depend
# on who works on them, and answers are added in the order of the blocks: results are the same to the last bit for any
# number of processes.
_BLOCK_ROWS = 8000


def row_ranges(n_rows: int) -> list[slice]:
    """Split the rows evenly into blocks."""
    n_blocks = -(-n_rows // _BLOCK_ROWS)
    bounds = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def hash_rows(rows: ProblemRows) -> str:
    """Digest of columns, targets, weights and offset, with their types and shapes."""
    digest = hashlib.sha256()
    for array in (rows.columns, rows.target, rows.weights, rows.offset):
        if array is not None:
            digest.update(f"{array.dtype.str} {array.shape}".encode())
            for line in np.atleast_2d(array):
                digest.update(np.ascontiguousarray(line).data)
    return digest.hexdigest()


def make_blocks(rows: ProblemRows, loss: Loss, maps: MapList, first: int = 0, step: int = 1) -> list[TrainBlock]:
    """Make the blocks of these rows, or every ``step``-th of them beginning with ``first``."""
    ranges = row_ranges(rows.n_rows)[first::step]
    scratch, alone = Scratch(), len(ranges) == 1
    return [TrainBlock(rows.block(some), loss, maps, scratch, alone) for some in ranges]


class BlockEngine(Engine):
    """A train on rows that live in blocks of this machine. The weights of all ``rows`` sum to 1."""

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList) -> None:
        super().__init__(loss, maps)
        self._rows, self.n_rows = rows, rows.n_rows
        self._distinct = DistinctRows.of(rows.keys, rows.target)
        self.n_distinct = self._distinct.n_rows

    def fingerprint(self) -> str:
        return hash_rows(self._rows)

    def gather(self, fraction: float, seed: int) -> ProblemRows:
        return self._rows if fraction >= 1.0 else self._rows.take(*self._chosen(fraction, seed))

    def _chosen(self, fraction: float, seed: int) -> tuple[Array, Array]:
        """Indices and weights of the rows of a sample."""
        rows = self._rows
        chosen, weights = choose_rows(fraction, seed, self._distinct, rows.keys, rows.target, rows.weights)
        return chosen, weights / weights.sum()


class _LocalRows(CoreRows):
    """Asks blocks of this process."""

    _blocks: Sequence[Any]

    def _ask(self, question: str, *arguments: Any) -> list[Any]:
        return list(map(methodcaller(question, *arguments), self._blocks))

    _tell = _ask  # type: ignore[assignment]


class _LocalLinearRows(_LocalRows, LinearRows):
    def __init__(self, blocks: Sequence[LinearBlock], gram: Array | None) -> None:
        super().__init__(gram)
        self._blocks, self.n_rows = blocks, sum(block.n_rows for block in blocks)


class LocalEngine(_LocalRows, BlockEngine):
    """All rows of one problem in this process; see `BlockEngine`."""

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList) -> None:
        super().__init__(rows, loss, maps)
        self._blocks = make_blocks(rows, loss, maps)

    def descend(self, nearly: KroneckerHessian, gradient: Array, *limits: float) -> Array | None:
        self._tried = None
        return self._blocks[0].descend(nearly, gradient, *limits) if len(self._blocks) == 1 else None

    def linear(self, gram: Array | None = None) -> LinearRows:
        return _LocalLinearRows(self._ask("linear"), gram)

    def sample(self, fraction: float, seed: int) -> LocalEngine:
        return LocalEngine(self._rows.take(*self._chosen(fraction, seed)), self._loss, self._maps)
