"""The rows of one train, shared by several processes of this machine.

Threads would wait for each other between the many short calls into NumPy. Here every process owns every n-th block of
rows for the whole fit, and only cores, gradients and the like travel: the features are written to a memory map once,
and each process maps the same pages. This process works on its own share while the others work on theirs.

Blocks that keep their state pay: the pure tasks of ``tasks.py``, run at once in one process, take 1.25 to 1.35 times as
long (``python -m benchmarks.engines``), because they score anew what a block remembers.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from functools import cache, partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import NDArray

from polytrain.learning.blocks import TrainBlock
from polytrain.learning.engines.local import BlockEngine, BlockLinearRows, P, Question, T, make_blocks
from polytrain.learning.losses import Loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import MapList

__all__ = ["ProcessEngine"]

# A sleeping process takes a tenth of a millisecond to wake up, and questions come every few milliseconds: look for the
# next one this long before going to sleep. Without it, the fit of benchmarks/engines.py took 4 to 13 % longer on two.
_WATCH_SECONDS = 0.003


def _receive(connection: Connection) -> Any:
    deadline = time.perf_counter() + _WATCH_SECONDS
    while time.perf_counter() < deadline:
        if connection.poll(0):
            break
    return connection.recv()


@cache
def _helpers(n_processes: int) -> ProcessPoolExecutor:
    """Processes that wait a minute for the next fit before they end: starting them takes longer than many a fit."""
    return ProcessPoolExecutor(max_workers=n_processes, timeout=60)


def _start(calls: list[tuple]) -> list[Any]:
    """Let one process serve with each of these arguments."""
    try:
        return [_helpers(len(calls)).submit(_serve, *arguments) for arguments in calls]
    except BrokenExecutor:  # a process was killed during an earlier fit
        _helpers.cache_clear()
        return [_helpers(len(calls)).submit(_serve, *arguments) for arguments in calls]


def _knock(address: Any, key: bytes, ended: Any) -> None:
    """Connect and go away if a process ended at once, so that whoever waits for its connection wakes up."""
    if ended.exception() is None:
        return
    with suppress(OSError), Client(address, authkey=key):
        pass


def _shared_folder(n_bytes: int) -> tempfile.TemporaryDirectory:
    """Make a folder for that much: in memory where it can be used as a disk, else on a real one."""
    memory = Path("/dev/shm")
    fits = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 * n_bytes
    return tempfile.TemporaryDirectory(prefix="polytrain-", dir=memory if fits else None)


class _Share:
    """The blocks of one process, in groups: of the whole problem, of samples of it, and of linear models."""

    def __init__(self, folder: Path, loss: Loss, maps: MapList, first: int, step: int) -> None:
        # Plain views are much quicker than memory maps.
        self._rows = ProblemRows(*(_load(folder / f"{name}.npy") for name in ProblemRows._fields))
        self._loss, self._maps, self._first, self._step = loss, maps, first, step
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
        return [question(block, *arguments, **nothing) for block in self._groups[group]]


def _load(path: Path) -> Any:
    """Array in a file, or None: there need not be an offset."""
    return np.asarray(np.load(path, mmap_mode="r")) if path.exists() else None


def _serve(address: Any, key: bytes, folder: Path, loss: Loss, maps: MapList, first: int, step: int) -> None:
    """Do as told until told to stop: the whole life of a helping process."""
    with Client(address, authkey=key) as connection, one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        connection.send(first)
        share = _Share(folder, loss, maps, first, step)
        failure: Exception | None = None
        while True:
            message = _receive(connection)
            if message is None:
                return
            order, arguments, wanted = message
            answer = None
            if failure is None:
                try:
                    answer = order(share, *arguments)
                except Exception as error:  # it belongs to whoever waits for an answer
                    failure = error
            if wanted:
                connection.send((failure, answer))


class _Team:
    """The process of the fit with its own share, and the processes that have the others."""

    def __init__(self, n_processes: int, rows: ProblemRows, loss: Loss, maps: MapList) -> None:
        arrays = {name: array for name, array in rows._asdict().items() if array is not None}
        self._folder = _shared_folder(sum(array.nbytes for array in arrays.values()))
        folder = Path(self._folder.name)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        key = secrets.token_bytes(16)
        self._connections: list[Connection] = []
        with Listener(authkey=key) as listener:
            shares = [(folder, loss, maps, first, n_processes) for first in range(1, n_processes)]
            self._futures = _start([(listener.address, key, *share) for share in shares])
            for future in self._futures:
                # A process that fails to start must not leave this one waiting for it.
                future.add_done_callback(partial(_knock, listener.address, key))
            self._connections = self._meet(listener)
        self._here = _Share(folder, loss, maps, 0, n_processes)
        self._n_groups = 0

    def _meet(self, listener: Listener) -> list[Connection]:
        """Connections to the other processes in the order of their shares."""
        met: dict[int, Connection] = {}
        for _ in self._futures:
            connection = listener.accept()
            try:
                met[connection.recv()] = connection
            except EOFError:
                raise next(
                    error for future in self._futures if future.done() and (error := future.exception())
                ) from None
        return [met[first] for first in sorted(met)]

    def new_group(self) -> int:
        """Return a number that no group has had."""
        self._n_groups += 1
        return self._n_groups

    def tell(self, order: Question[P, Any], *arguments: P.args, **nothing: P.kwargs) -> None:
        """Give an order to all shares, without waiting for the others."""
        for connection in self._connections:
            connection.send((order, arguments, False))
        order(self._here, *arguments, **nothing)

    def ask(self, group: int, question: Question[P, T], *arguments: P.args, **nothing: P.kwargs) -> list[T]:
        """Answers of all blocks of a group, in their order."""
        for connection in self._connections:
            connection.send((_Share.ask, (group, question, *arguments), True))
        shares = [self._here.ask(group, question, *arguments, **nothing)]
        for connection in self._connections:
            try:
                failure, answer = _receive(connection)
            except (EOFError, OSError) as error:
                raise RuntimeError(
                    "a process that shared the rows of this fit ended unexpectedly; it may have been stopped for lack "
                    "of memory. Fit with a smaller n_jobs."
                ) from error
            if failure is not None:
                raise failure
            shares.append(answer)
        n_blocks = sum(len(share) for share in shares)
        return [shares[index % len(shares)][index // len(shares)] for index in range(n_blocks)]

    def end(self) -> None:
        """Let the other processes go."""
        for connection in self._connections:
            with suppress(OSError):  # it may be gone already
                connection.send(None)
            connection.close()
        for future in self._futures:
            future.exception(timeout=30)
        self._folder.cleanup()


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


class ProcessEngine(_TeamEngine):
    """All rows of one problem, shared by several processes. Use it as a context manager.

    Parameters
    ----------
    rows, loss, maps
        As for ``LocalEngine``; the answers are the same to the last bit.
    n_processes : int
        Processes that share the work, this one included.
    """

    def __init__(self, rows: ProblemRows, loss: Loss, maps: MapList, n_processes: int) -> None:
        super().__init__(rows, loss, maps, _Team(n_processes, rows, loss, maps), None)

    def __exit__(self, *error: object) -> None:
        self._group.team.end()
