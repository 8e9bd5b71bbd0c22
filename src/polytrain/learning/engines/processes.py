"""The rows of one train, shared by several processes of this machine.

Threads would wait for each other between the many short calls into NumPy. Here every process owns every n-th block of
rows for the whole fit, and only cores, gradients and the like travel: the features are written once to pages that all
processes map. The pure tasks of ``tasks.py`` take 1.25 to 1.35 times as long: they score anew what a block remembers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from operator import methodcaller
from typing import Any

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.engines.engine import CoreRows, LinearRows
from polytrain.learning.engines.local import BlockEngine, LocalEngine, make_blocks, row_ranges
from polytrain.learning.helpers import Answer, Helper, Shared, borrow_helpers, receive_shared
from polytrain.learning.losses import Loss
from polytrain.learning.problem import ProblemRows
from polytrain.maps import MapList

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

    def open(self, group: int, chosen: tuple[Array, Array] | None) -> None:
        """Make a group of blocks: of all rows, or of some with other weights."""
        rows = self._rows if chosen is None else self._rows.take(*chosen)
        self._groups[group] = make_blocks(rows, self._loss, self._maps, self._first, self._step)

    def open_linear(self, group: int, source: int) -> None:
        """Make a group for the linear model on the rows of another one."""
        self._groups[group] = [block.linear() for block in self._groups[source]]

    def close(self, group: int) -> None:
        """Release a group."""
        self._groups.pop(group, None)

    def ask(self, group: int, question: str, *arguments: Any) -> list[Any]:
        """Answers of the blocks of a group."""
        return list(map(methodcaller(question, *arguments), self._groups[group]))


def _serve(connection: Connection, first: int, step: int) -> None:
    """Run in a helper: follow orders until told to stop. An error is reported with the next answer."""
    share: _Share | None = None
    failure: Answer | None = None
    try:
        rows, loss, maps = receive_shared(connection)
        share = _Share(rows, loss, maps, first, step)
    except Exception as error:
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
                    value = getattr(share, order)(*arguments)
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

    def tell(self, order: str, *arguments: Any) -> None:
        """Give an order, a method of `_Share`, to all shares without waiting for the others."""
        for helper in self._helpers:
            helper.send((order, arguments, False))
        getattr(self._here, order)(*arguments)

    def ask(self, *arguments: Any) -> list[Any]:
        """Answers of all blocks of a group, in their order; see `_Share.ask`."""
        for helper in self._helpers:
            helper.send(("ask", arguments, True))
        shares = [self._here.ask(*arguments)]
        for helper in self._helpers:
            _watch(helper.connection)
            shares.append(helper.receive().get())
        n_blocks = sum(len(share) for share in shares)
        return [shares[index % len(shares)][index // len(shares)] for index in range(n_blocks)]

    def end(self) -> None:
        """Return the helpers."""
        for helper in self._helpers:
            with suppress(RuntimeError):  # all answers are here: one that is gone is not missed
                helper.send(None)


class _TeamRows(CoreRows):
    """Asks the blocks of one group of a team's shares."""

    _team: _Team
    _group: int

    def _open(self, team: _Team, order: str, argument: Any) -> None:
        self._team, self._group = team, team.new_group()
        team.tell(order, self._group, argument)

    def __exit__(self, *error: object) -> None:
        self._team.tell("close", self._group)

    def _ask(self, question: str, *arguments: Any) -> list[Any]:
        return self._team.ask(self._group, question, *arguments)

    def _tell(self, question: str, *arguments: Any) -> None:
        self._team.tell("ask", self._group, question, *arguments)


class _TeamLinearRows(_TeamRows, LinearRows):
    def __init__(self, team: _Team, source: int, n_rows: int, gram: Array | None) -> None:
        super().__init__(gram)
        self.n_rows = n_rows
        self._open(team, "open_linear", source)


class _TeamEngine(_TeamRows, BlockEngine):
    """Rows of a team: all of them, or ``chosen`` ones with other weights."""

    def __init__(
        self, rows: ProblemRows, loss: Loss, maps: MapList, team: _Team, chosen: tuple[Array, Array] | None = None
    ) -> None:
        super().__init__(rows, loss, maps)
        self._open(team, "open", chosen)

    def linear(self, gram: Array | None = None) -> LinearRows:
        return _TeamLinearRows(self._team, self._group, self.n_rows, gram)

    def sample(self, fraction: float, seed: int) -> BlockEngine:
        chosen = self._chosen(fraction, seed)
        return _TeamEngine(self._rows.take(*chosen), self._loss, self._maps, self._team, chosen)


@contextmanager
def open_engine(rows: ProblemRows, loss: Loss, maps: MapList, n_processes: int = 1) -> Iterator[BlockEngine]:
    """Enter a context with an engine on rows that at most ``n_processes`` processes share, this one included.

    Answers are the same to the last bit for any number of processes.
    """
    with borrow_helpers(min(n_processes, len(row_ranges(rows.n_rows))) - 1) as helpers:
        if not helpers:
            yield LocalEngine(rows, loss, maps)
            return
        team = _Team(helpers, rows, loss, maps)
        yield _TeamEngine(rows, loss, maps, team)
        team.end()
