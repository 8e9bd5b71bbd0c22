"""The rows of one train, shared by several processes of this machine.

Threads would wait for each other between the many short calls into NumPy. Here every process owns every n-th block of
rows for the whole fit, and only cores, gradients and the like travel: the features are written once to pages that all
processes map. This process works on its own share while the others work on theirs.

Blocks that keep their state pay: the pure tasks of ``tasks.py``, run at once in one process, take 1.25 to 1.35 times as
long, because they score anew what a block remembers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.blocks import TrainBlock
from polytrain.learning.engines.local import BlockEngine, BlockLinearRows, LocalEngine, P, Question, T, make_blocks
from polytrain.learning.helpers import Answer, Helper, Shared, borrow_helpers, receive_shared
from polytrain.learning.losses import Loss
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList

__all__ = ["shared_engine"]

# A sleeping process takes a tenth of a millisecond to wake up, and questions come every few milliseconds: look for the
# next one this long before going to sleep. Without it, a fit took 4 to 13 % longer on two.
_WATCH_SECONDS = 0.003


def _watch(connection: Connection) -> None:
    """Look for a message for a while without going to sleep."""
    deadline = time.perf_counter() + _WATCH_SECONDS
    while time.perf_counter() < deadline and not connection.poll(0):
        pass


class _Share:
    """The blocks of one process, in groups: of the whole problem, of samples of it, and of linear models."""

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList, first: int, step: int) -> None:
        self._rows, self._loss, self._maps, self._first, self._step = rows, loss, maps, first, step
        self._groups: dict[int, list[Any]] = {}

    def open(self, group: int, chosen: tuple[NDArray, NDArray] | None) -> None:
        """Make a group of blocks: of all rows, or of some with other weights."""
        rows = self._rows if chosen is None else self._rows.take(*chosen)
        self._groups[group] = make_blocks(rows, self._loss, self._maps, self._first, self._step)

    def open_linear(self, group: int, source: int) -> None:
        """Make a group for the linear model on the rows of another one."""
        self._groups[group] = [TrainBlock.linear(block) for block in self._groups[source]]

    def close(self, group: int) -> None:
        """Let go of a group."""
        self._groups.pop(group, None)

    def ask(self, group: int, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        """Answers of the blocks of a group."""
        return list(map(methodcaller(question.__name__, *arguments, **nothing), self._groups[group]))


def _serve(connection: Connection, first: int, step: int) -> None:
    """Do as told until told to stop: the part of a helping process."""
    share: _Share | None = None
    failure: Answer | None = None
    try:
        rows, loss, maps = receive_shared(connection)
        share = _Share(rows, loss, maps, first, step)
    except Exception as error:  # it belongs to whoever waits for an answer
        failure = Answer(error=error)
    with np.errstate(over="ignore", invalid="ignore"):
        while True:
            _watch(connection)
            message = connection.recv()
            if message is None:
                return
            order, arguments, wanted = message
            value = None
            if failure is None:
                try:
                    value = order(share, *arguments)
                except Exception as error:
                    failure = Answer(error=error)
            if wanted:
                connection.send(failure or Answer(value))


class _Team:
    """The process of the fit with its own share, and the helpers that have the others."""

    def __init__(self, helpers: Sequence[Helper], rows: ProblemRows, loss: Loss, maps: MapList) -> None:
        self._helpers, n_shares, self._n_groups = helpers, len(helpers) + 1, 0
        with Shared((rows, loss, maps)) as common:
            for first, helper in enumerate(helpers, 1):
                helper.begin(_serve, first, n_shares)
                common.send(helper)
        self._here = _Share(rows, loss, maps, 0, n_shares)

    def new_group(self) -> int:
        """Return a number that no group has had."""
        self._n_groups += 1
        return self._n_groups

    def tell(self, order: Question[P, Any], *arguments: P.args, **nothing: P.kwargs) -> None:
        """Give an order to all shares, without waiting for the others."""
        for helper in self._helpers:
            helper.send((order, arguments, False))
        order(self._here, *arguments, **nothing)

    def ask(self, group: int, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        """Answers of all blocks of a group, in their order."""
        for helper in self._helpers:
            helper.send((_Share.ask, (group, question, *arguments), True))
        shares = [self._here.ask(group, question, *arguments, **nothing)]
        for helper in self._helpers:
            _watch(helper.connection)
            shares.append(helper.receive().get())
        n_blocks = sum(len(share) for share in shares)
        return [shares[index % len(shares)][index // len(shares)] for index in range(n_blocks)]

    def end(self) -> None:
        """Let the helpers go."""
        for helper in self._helpers:
            with suppress(RuntimeError):  # all answers are here: one that is gone is not missed
                helper.send(None)


class _Group:
    """Some blocks of a team's shares, as an engine speaks to them."""

    def __init__(self, team: _Team) -> None:
        self.team, self.number = team, team.new_group()

    def ask(self, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        """Answers of all blocks, in their order."""
        return self.team.ask(self.number, question, *arguments, **nothing)

    def tell(self, question: Question[P, None], *arguments: P.args, **nothing: P.kwargs) -> None:
        """Ask without waiting for the other processes."""
        self.team.tell(_Share.ask, self.number, question, *arguments, **nothing)

    def close(self) -> None:
        """Let go of the blocks."""
        self.team.tell(_Share.close, self.number)


class _TeamLinearRows(BlockLinearRows):
    def __init__(self, source: _Group, n_rows: int, gram: NDArray | None) -> None:
        super().__init__(gram)
        self._group, self.n_rows = _Group(source.team), n_rows
        source.team.tell(_Share.open_linear, self._group.number, source.number)

    def _ask(self, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        return self._group.ask(question, *arguments, **nothing)

    def _tell(self, question: Question[P, None], *arguments: P.args, **nothing: P.kwargs) -> None:
        self._group.tell(question, *arguments, **nothing)

    def __exit__(self, *error: object) -> None:
        self._group.close()


class _TeamEngine(BlockEngine):
    """Rows that a team works on: all of them, or a sample.

    Parameters
    ----------
    rows, loss, maps
        As for ``BlockEngine``.
    team : _Team
        It has all rows already.
    chosen : (ndarray, ndarray) or None
        Which of its rows are meant, and their weights.
    """

    def __init__(
        self, rows: ProblemRows, loss: Loss, maps: MapList, team: _Team, chosen: tuple[NDArray, NDArray] | None
    ) -> None:
        super().__init__(rows, loss, maps)
        self._group = _Group(team)
        team.tell(_Share.open, self._group.number, chosen)

    def __exit__(self, *error: object) -> None:
        self._group.close()

    def _ask(self, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        return self._group.ask(question, *arguments, **nothing)

    def _tell(self, question: Question[P, None], *arguments: P.args, **nothing: P.kwargs) -> None:
        self._group.tell(question, *arguments, **nothing)

    def linear(self, gram: NDArray | None = None) -> BlockLinearRows:
        return _TeamLinearRows(self._group, self.n_rows, gram)

    def sample(self, fraction: float, seed: int) -> BlockEngine:
        chosen = self._chosen(fraction, seed)
        return _TeamEngine(self._rows.take(*chosen), self._loss, self._maps, self._group.team, chosen)


@contextmanager
def shared_engine(rows: ProblemRows, loss: Loss, maps: MapList, n_processes: int) -> Iterator[BlockEngine]:
    """Enter a context with an engine on rows that several processes share.

    Parameters
    ----------
    rows, loss, maps
        As for ``LocalEngine``; the answers are the same to the last bit.
    n_processes : int
        Processes that share the work, this one included. They are fewer if no more are to be had.
    """
    with borrow_helpers(n_processes - 1) as helpers:
        if not helpers:
            yield LocalEngine(rows, loss, maps)
            return
        team = _Team(helpers, rows, loss, maps)
        yield _TeamEngine(rows, loss, maps, team, None)
        team.end()
