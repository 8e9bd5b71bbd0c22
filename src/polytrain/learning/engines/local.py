"""Rows in the memory of this machine, in blocks, which several processes may share.

Threads would wait for each other between the many short calls into NumPy. Here every process owns every n-th block of
rows for the whole fit, and only cores, gradients and the like travel: the features are written once to pages that all
processes map. The pure tasks of ``tasks.py`` take 1.25 to 1.35 times as long: they recompute scores that a block keeps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import methodcaller
from typing import Any

import joblib
import numpy as np

from polytrain.arrays import Array
from polytrain.learning.blocks import Scratch, TrainBlock
from polytrain.learning.engines.engine import Engine
from polytrain.learning.helpers import Helper, borrow_helpers, share
from polytrain.learning.kronecker import KroneckerHessian
from polytrain.learning.losses import Loss
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList

# Rows per block: few enough for a block's arrays to stay in cache, enough to make the overhead of a call small beside
# its work; not a power of two, which would map the rows of an array onto each other in the cache. Blocks never depend
# on who works on them, and answers are added in the order of the blocks: results are the same to the last bit for any
# number of processes.
_BLOCK_ROWS = 16_000


def row_ranges(n_rows: int) -> list[slice]:
    """Split the rows evenly into blocks."""
    n_blocks = -(-n_rows // _BLOCK_ROWS)
    bounds = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def make_blocks(rows: ProblemRows, loss: Loss, maps: MapList, first: int = 0, step: int = 1) -> list[TrainBlock]:
    """Make the blocks of these rows, or every ``step``-th of them beginning with ``first``."""
    ranges = row_ranges(rows.n_rows)[first::step]
    scratch, alone = Scratch(), len(ranges) == 1
    return [TrainBlock(rows.block(some), loss, maps, scratch, alone) for some in ranges]


class LocalEngine(Engine):
    """A train on rows whose weights sum to 1; each of the ``helpers`` has every n-th block of them."""

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList, helpers: Sequence[Helper] = ()) -> None:
        super().__init__(loss, maps)
        self._rows, self.n_rows = rows, rows.n_rows
        self._distinct = rows.distinct()
        self.n_distinct = self._distinct.n_rows
        self._helpers = helpers
        self._blocks = make_blocks(rows, loss, maps, 0, len(helpers) + 1)

    def _ask(self, question: str, *arguments: Any) -> list[Any]:
        for helper in self._helpers:
            helper.send((True, (question, *arguments)))
        own = list(map(methodcaller(question, *arguments), self._blocks))
        shares = [own, *(helper.answer() for helper in self._helpers)]
        return [answer for answers in itertools.zip_longest(*shares) for answer in answers][: sum(map(len, shares))]

    def _tell(self, question: str, *arguments: Any) -> None:
        for helper in self._helpers:
            helper.send((False, (question, *arguments)))
        for block in self._blocks:
            getattr(block, question)(*arguments)

    def descend(self, preconditioner: KroneckerHessian, gradient: Array, *limits: float) -> Array | None:
        alone = len(self._blocks) == 1 and not self._helpers
        return self._blocks[0].descend(preconditioner, gradient, *limits) if alone else None

    def fingerprint(self) -> str:
        return str(joblib.hash(self._rows))

    def gather(self, fraction: float, seed: int) -> ProblemRows:
        return self._rows if fraction >= 1.0 else self._rows.sample(fraction, seed, self._distinct).normalised()


@contextmanager
def open_engine(rows: ProblemRows | Engine, loss: Loss, maps: MapList, n_processes: int = 1) -> Iterator[Engine]:
    """Enter a context with an engine on rows that at most ``n_processes`` processes share, this one included.

    An engine is passed through. Answers are the same to the last bit for any number of processes.
    """
    if isinstance(rows, Engine):
        yield rows
        return
    with borrow_helpers(min(n_processes, len(row_ranges(rows.n_rows))) - 1) as helpers:
        if helpers:
            step = len(helpers) + 1
            share((rows, loss, maps), {helper: partial(_share, first, step) for first, helper in enumerate(helpers, 1)})
        yield LocalEngine(rows, loss, maps, helpers)
        for helper in helpers:
            with suppress(RuntimeError):  # all answers have arrived: helpers that ended are not needed
                helper.send(None)


def _share(first: int, step: int, rows: ProblemRows, loss: Loss, maps: MapList) -> Callable[..., list[Any]]:
    """Return the function that answers an engine's questions about every ``step``-th block, in a helper."""
    blocks = make_blocks(rows, loss, maps, first, step)

    def answer(question: str, *arguments: Any) -> list[Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            return list(map(methodcaller(question, *arguments), blocks))

    return answer
