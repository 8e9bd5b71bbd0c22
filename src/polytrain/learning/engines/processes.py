"""The rows of one train, shared by several processes of this machine.

Threads would wait for each other between the many short calls into NumPy. Here every process owns every n-th block of
rows for the whole fit, and only cores, gradients and the like travel: the features are written to a memory map once,
and each process maps the same pages. This process works on its own share while the others work on theirs.
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

from polytrain.basis import Basis
from polytrain.learning.engines.local import BlockEngine, LinearEngine, hash_rows, make_blocks
from polytrain.learning.losses import Loss
from polytrain.learning.sampling import DistinctRows, choose_rows, row_keys
from polytrain.learning.threads import one_blas_thread

__all__ = ["ProcessEngine"]

#: Loss, basis and dimensions of the train.
Problem = tuple[Loss, Basis, tuple[int, ...]]

# A sleeping process takes a tenth of a millisecond to wake up, and questions come every few milliseconds: look for the
# next one this long before going to sleep.
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
    """The blocks of one process: of the whole problem, of parts of it, and of linear models."""

    def __init__(self, folder: Path, problem: Problem, first: int, step: int) -> None:
        self._columns = np.asarray(np.load(folder / "columns.npy", mmap_mode="r"))  # plain views are much quicker
        self._target, self._weights = np.load(folder / "target.npy"), np.load(folder / "weights.npy")
        self._problem = problem
        self._first, self._step = first, step
        self._groups: dict[int, list[Any]] = {}

    def open(self, group: int, rows: NDArray | None, weights: NDArray | None) -> None:
        columns, target = self._columns, self._target
        if rows is not None:
            columns, target = np.ascontiguousarray(columns[:, rows]), target[rows]
        weights = self._weights if weights is None else weights
        self._groups[group] = make_blocks(columns, target, weights, *self._problem, self._first, self._step)

    def open_linear(self, group: int, source: int) -> None:
        self._groups[group] = [block.linear() for block in self._groups[source]]

    def close(self, group: int) -> None:
        self._groups.pop(group, None)

    def ask(self, group: int, method: str, *arguments: Any) -> list[Any]:
        return [getattr(block, method)(*arguments) for block in self._groups[group]]


def _serve(address: Any, key: bytes, folder: Path, problem: Problem, first: int, step: int) -> None:
    """Answer questions until told to stop: the whole life of a helping process."""
    with Client(address, authkey=key) as connection, one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        connection.send(first)
        share = _Share(folder, problem, first, step)
        failure: Exception | None = None
        while True:
            method, arguments, wanted = _receive(connection)
            if method == "stop":
                return
            answer = None
            if failure is None:
                try:
                    answer = getattr(share, method)(*arguments)
                except Exception as error:  # it belongs to whoever waits for an answer
                    failure = error
            if wanted:
                connection.send((failure, answer))


class _Team:
    """The process of the fit with its own share, and the processes that have the others."""

    def __init__(self, n_processes: int, columns: NDArray, target: NDArray, weights: NDArray, problem: Problem) -> None:
        self._folder = _shared_folder(columns.nbytes + target.nbytes + weights.nbytes)
        folder = Path(self._folder.name)
        for name, array in (("columns", columns), ("target", target), ("weights", weights)):
            np.save(folder / f"{name}.npy", array)
        key = secrets.token_bytes(16)
        self._connections: list[Connection] = []
        with Listener(authkey=key) as listener:
            shares = [(folder, problem, first, n_processes) for first in range(1, n_processes)]
            self._futures = _start([(listener.address, key, *share) for share in shares])
            for future in self._futures:
                # A process that fails to start must not leave this one waiting for it.
                future.add_done_callback(partial(_knock, listener.address, key))
            self._connections = self._meet(listener)
        self._here = _Share(folder, problem, 0, n_processes)
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
        self._n_groups += 1
        return self._n_groups

    def tell(self, method: str, *arguments: Any) -> None:
        for connection in self._connections:
            connection.send((method, arguments, False))
        getattr(self._here, method)(*arguments)

    def ask(self, *arguments: Any) -> list[Any]:
        for connection in self._connections:
            connection.send(("ask", arguments, True))
        shares = [self._here.ask(*arguments)]
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
        for connection in self._connections:
            with suppress(OSError):  # it may be gone already
                connection.send(("stop", (), False))
            connection.close()
        for future in self._futures:
            future.exception(timeout=30)
        self._folder.cleanup()


class _TeamLinear(LinearEngine):
    def __init__(self, team: _Team, group: int, n_rows: int) -> None:
        self._team, self._group, self.n_rows = team, group, n_rows

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        return self._team.ask(self._group, method, *arguments)

    def _tell(self, method: str, *arguments: Any) -> None:
        self._team.tell("ask", self._group, method, *arguments)

    def __exit__(self, *error: object) -> None:
        self._team.tell("close", self._group)


class ProcessEngine(BlockEngine):
    """All rows of one binary problem, shared by several processes. Use it as a context manager.

    Parameters
    ----------
    columns, target, weights, loss, basis, dims
        As for ``LocalEngine``; the answers are the same to the last bit.
    n_processes : int
        Processes that share the work, this one included.
    """

    def __init__(
        self,
        columns: NDArray,
        target: NDArray,
        weights: NDArray,
        loss: Loss,
        basis: Basis,
        dims: tuple[int, ...],
        n_processes: int,
    ) -> None:
        super().__init__(basis, dims)
        self._columns, self._target, self._weights = columns, target, weights
        self.n_rows, self._keys = columns.shape[1], row_keys(columns)
        self._distinct = DistinctRows.of(self._keys, target)
        self.n_distinct = self._distinct.n_rows
        self._team = _Team(n_processes, columns, target, weights, (loss, basis, dims))
        self._group = self._open(None, None)

    def __exit__(self, *error: object) -> None:
        self._team.end()

    def _open(self, rows: NDArray | None, weights: NDArray | None) -> int:
        group = self._team.new_group()
        self._team.tell("open", group, rows, weights)
        return group

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        return self._team.ask(self._group, method, *arguments)

    def _tell(self, method: str, *arguments: Any) -> None:
        self._team.tell("ask", self._group, method, *arguments)

    def fingerprint(self) -> str:
        return hash_rows(self._columns, self._target, self._weights)

    def linear(self) -> LinearEngine:
        group = self._team.new_group()
        self._team.tell("open_linear", group, self._group)
        return _TeamLinear(self._team, group, self.n_rows)

    def part(self, part: float, seed: int) -> BlockEngine:
        return _TeamPart(self, part, seed)


class _TeamPart(ProcessEngine):
    """A random part of the rows, worked on by the same processes."""

    def __init__(self, whole: ProcessEngine, part: float, seed: int) -> None:
        BlockEngine.__init__(self, whole._basis, whole._dims)
        self._team, keys = whole._team, whole._keys
        rows, weights = choose_rows(part, seed, whole._distinct, keys, whole._target, whole._weights)
        self._weights, self._target, self._keys = weights / weights.sum(), whole._target[rows], keys[rows]
        self._distinct = DistinctRows.of(self._keys, self._target)
        self.n_rows, self.n_distinct = len(rows), self._distinct.n_rows
        self._group = self._open(rows, self._weights)

    def __exit__(self, *error: object) -> None:
        self._team.tell("close", self._group)
