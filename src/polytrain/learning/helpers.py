"""Worker processes of a fit on this machine. Only this module knows how they start, work and end.

A helper belongs to the process that started it, and to one fit at a time: `borrow_helpers` hands out idle ones and
starts new ones, so no fit ever waits for another. A helper whose work ended without an error stays idle for a minute;
any other is ended. Helpers leave within a second when their parent is gone, and Ctrl-C reaches the parent alone. The
data that they share is in a file without a name, which is removed when the last process closes it.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from multiprocessing import Pipe, reduction
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from joblib import cpu_count
from joblib.parallel import BACKENDS, get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from polytrain.learning.arena import Arena, map_buffers, pack, unpack
from polytrain.learning.threads import one_blas_thread

try:  # it also pickles functions defined in a script or a notebook
    import cloudpickle
except ImportError:  # older versions of joblib have a copy
    from joblib.externals import cloudpickle

# Seconds that a helper stays idle, and that an idle one may take to answer.
_IDLE_SECONDS, _REPLY_SECONDS = 60, 60
# A sleeping process takes a tenth of a millisecond to wake up, and questions of engines come every few milliseconds:
# poll for the next one this long before going to sleep. Without it, a fit on two processes took 4 to 13 % longer.
_WATCH_SECONDS = 0.003
_REMEDY = "Name a folder with more room in the environment variable TMPDIR, or use n_jobs=1."
# Code of a helper. From the start, also while it imports or computes, it leaves when its parent is gone.
_COMMAND = """
import json, os, sys, threading, time
handle, parent = int(sys.argv[1]), int(sys.argv[2])
def leave_with_parent():
    while os.getppid() == parent:
        time.sleep(0.25)
    os._exit(1)
threading.Thread(target=leave_with_parent, daemon=True).start()
sys.path[:] = json.loads(sys.argv[3])
from polytrain.learning import helpers
helpers._help(handle)
"""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


# --- data and answers -------------------------------------------------------------------------------------------------


def _memory(n_bytes: int) -> Path | None:
    """Folder of files in memory, if there is room for twice ``n_bytes``."""
    memory = Path("/dev/shm")
    fits = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 * n_bytes
    return memory if fits else None


def share(values: tuple[Any, ...], makes: Mapping[Helper, Callable[..., Callable[..., Any]]]) -> None:
    """Let every helper make a function of these values, with its own ``make``, and answer calls, see `_answer_calls`.

    Arrays are written once, and every process maps the same pages.
    """
    buffers = pack(values, cloudpickle)
    n_bytes = sum(map(len, buffers))
    with closing(Arena(f"{n_bytes} bytes that processes share", _REMEDY, _memory(n_bytes))) as arena:
        spans = arena.write(buffers).spans
        for helper, make in makes.items():
            helper.begin(_answer_calls, make)
            helper.send(spans)
            with _lost():
                reduction.send_handle(helper.connection, arena.handle, helper.pid)


def _receive_shared(connection: Connection) -> Any:
    """Receive what `share` sent: arrays are read-only views of the common pages."""
    spans = connection.recv()
    handle = reduction.recv_handle(connection)
    try:
        return unpack(map_buffers(handle, spans))
    finally:
        os.close(handle)


def _receive(connection: Connection) -> Any:
    """Receive a message: poll for a while before going to sleep."""
    deadline = time.perf_counter() + _WATCH_SECONDS
    while time.perf_counter() < deadline and not connection.poll(0):
        pass
    return connection.recv()


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled, with a note about its origin."""
    place = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # for any reason
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"In a helper:\n{place}")
    return error


# --- in the parent ----------------------------------------------------------------------------------------------------


def _end(process: subprocess.Popen[bytes], connection: Connection, owner: int) -> None:
    """End a helper at once."""
    connection.close()
    if os.getpid() != owner:  # a fork has only a copy of the object; without this it would warn
        process.returncode = 0
        return
    process.kill()
    process.wait()


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        raise RuntimeError(
            "a process that helped with this fit ended unexpectedly; it may have been stopped for lack of memory. "
            "Fit with a smaller n_jobs."
        ) from error


class Helper:
    """A worker process that calls functions which it receives through a connection."""

    def __init__(self) -> None:
        here, there = Pipe()
        with there:
            arguments = [str(there.fileno()), str(os.getpid()), json.dumps([str(entry) for entry in sys.path])]
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _COMMAND, *arguments],  # -P: only the path of the parent
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(there.fileno(),),
                process_group=0,
                env=os.environ | _ONE_THREAD,
            )
        self.connection, self.pid = here, process.pid
        self._process = process
        #: Ends the process, also when this object is deleted or Python ends.
        self.end = weakref.finalize(self, _end, process, here, os.getpid())

    def send(self, message: Any) -> None:
        """Send a message."""
        with _lost():
            self.connection.send(message)

    def receive(self) -> Any:
        """Wait for a message."""
        with _lost():
            return _receive(self.connection)

    def answer(self) -> Any:
        """Wait for the result of a call, and return it or raise its error."""
        value, error = self.receive()
        if error is not None:
            raise error
        return value

    def begin(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Let the helper call a function with its connection and arguments; it is free again when that returns."""
        self.send((function, arguments))

    @property
    def is_running(self) -> bool:
        """Whether the process is still running."""
        return self._process.poll() is None

    def is_free(self) -> bool:
        """Whether the helper answers: one that was idle for long may have left."""
        with suppress(RuntimeError):
            self.begin(Connection.send, None)
            return self.connection.poll(_REPLY_SECONDS) and self.receive() is None
        return False


class _Pool:
    """Idle helpers, and all helpers of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[Helper] = []
        self.all: weakref.WeakSet[Helper] = weakref.WeakSet()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    # The helpers belong to the parent: a fork begins without any.
    os.register_at_fork(after_in_child=lambda: vars(_pool).update(vars(_Pool())))


def _can_start() -> bool:
    """Whether helpers can be started here; a frozen program would start itself."""
    return os.name == "posix" and bool(sys.executable) and not getattr(sys, "frozen", False)


def may_borrow_helpers() -> bool:
    """Whether this process may have helpers: not in a worker, nor if the user chose another backend of joblib."""
    backend, _ = get_active_backend()
    return isinstance(backend, BACKENDS["loky"]) and not backend.nesting_level and _can_start()


def _find(n_helpers: int) -> list[Helper]:
    """Return idle helpers or new ones: at most ``n_helpers``, and fewer while other fits use the processor cores."""
    if not _can_start():
        return []
    with _pool.lock:
        n_busy = sum(helper.end.alive for helper in _pool.all) - len(_pool.idle)
        n_helpers = min(n_helpers, max(n_helpers, cpu_count()) - n_busy)
        candidates = [_pool.idle.pop() for _ in range(min(n_helpers, len(_pool.idle)))]
    helpers = []
    for helper in candidates:
        if helper.is_free():
            helpers.append(helper)
        else:
            helper.end()
    with suppress(OSError):  # the system may limit their number
        while len(helpers) < n_helpers:
            helpers.append(Helper())
            with _pool.lock:
                _pool.all.add(helpers[-1])
    return helpers


def are_idle(n_helpers: int) -> bool:
    """Whether ``n_helpers`` helpers are idle, so that none need be started."""
    with _pool.lock:
        return sum(helper.is_running for helper in _pool.idle) >= n_helpers


@contextmanager
def borrow_helpers(n_helpers: int) -> Iterator[list[Helper]]:
    """Enter a context with at most ``n_helpers`` helpers. An error that leaves it ends them.

    At the end, each must have returned from what `Helper.begin` called, and its messages must have been received.
    """
    helpers = _find(n_helpers)
    try:
        yield helpers
    except BaseException:
        for helper in helpers:
            helper.end()
        raise
    with _pool.lock:
        idle = [helper for helper in (*_pool.idle, *helpers) if helper.is_running]
        _pool.idle, others = idle[-cpu_count() :], idle[: -cpu_count()]
    for helper in others:
        helper.end()


def spread(
    function: Callable[..., Any], shared: tuple[Any, ...], calls: Sequence[tuple[Any, ...]], n_jobs: int
) -> Iterator[Any]:
    """Results of ``function(*shared, *call)`` for every call, in order, from at most ``n_jobs`` processes.

    The function must be picklable. Arrays in ``shared`` are read-only in helpers. Other backends of joblib are
    respected, such as threads or a cluster.
    """
    if not may_borrow_helpers():
        yield from Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(*shared, *call) for call in calls)
        return
    with borrow_helpers(min(n_jobs, len(calls))) as helpers:
        if helpers:
            yield from _spread(helpers, function, shared, calls)
        else:
            yield from (function(*shared, *call) for call in calls)


def _spread(
    helpers: Sequence[Helper], function: Callable[..., Any], shared: tuple[Any, ...], calls: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    share((function, *shared), dict.fromkeys(helpers, partial))
    waiting = iter(enumerate(calls))
    asked: dict[Connection, tuple[Helper, int]] = {}
    answers: dict[int, Any] = {}

    def ask(helper: Helper) -> None:
        number, call = next(waiting, (None, None))
        helper.send(None if call is None else (True, call))
        if number is not None:
            asked[helper.connection] = helper, number

    for helper in helpers:
        ask(helper)
    for number in range(len(calls)):
        while number not in answers:
            for connection in wait(list(asked)):
                helper, done = asked.pop(connection)  # type: ignore[call-overload]  # only connections were waited for
                answers[done] = helper.answer()
                ask(helper)
        yield answers.pop(number)


# --- in the helper ----------------------------------------------------------------------------------------------------


def _answer_calls(connection: Connection, make: Callable[..., Callable[..., Any]]) -> None:
    """Make a function of what is shared, and answer calls of it until there are no more.

    A message says whether an answer is wanted, and has the arguments. An error is reported with the next answer.
    """
    value = failure = None
    try:
        function = make(*_receive_shared(connection))
    except Exception as error:
        failure = _portable(error)
    while (message := _receive(connection)) is not None:
        wanted, arguments = message
        if failure is None:
            try:
                value = function(*arguments)
            except Exception as error:
                value, failure = None, _portable(error)
        if wanted:
            connection.send((value, failure))


def _help(handle: int) -> None:
    """Call functions until none has come for `_IDLE_SECONDS`, or the parent is gone."""
    with Connection(handle) as connection, one_blas_thread(), suppress(EOFError, ConnectionError):
        while connection.poll(_IDLE_SECONDS):
            function, arguments = connection.recv()
            function(connection, *arguments)
