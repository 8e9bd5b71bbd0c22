"""Cap the threads of BLAS. Finding the loaded libraries takes milliseconds, so they are looked up once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import threadpoolctl
from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set limits: newer versions of threadpoolctl silently ignore all threads but the first that did.

    Whoever comes in first or leaves last may be any thread; what they do to the limit is counted.
    """
    controller: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


class _Shared:
    """The limit is one for the whole process: the first to come in sets it, the last to leave lifts it."""

    lock = threading.Lock()
    n_inside = 0
    limit: Any = None

    @classmethod
    def enter(cls) -> None:
        """Limit the threads if nobody has."""
        with cls.lock:
            if cls.n_inside == 0:
                _take_control()
                cls.limit = _controller().limit(limits=1, user_api="blas")
            cls.n_inside += 1

    @classmethod
    def leave(cls) -> None:
        """Lift the limit if nobody else needs it."""
        with cls.lock:
            cls.n_inside -= 1
            if cls.n_inside == 0:
                cls.lift()

    @classmethod
    def lift(cls) -> None:
        """Lift the limit."""
        _take_control()
        cls.limit.restore_original_limits()
        _take_control()  # and leave it to whoever wants to be next


def _lift_in_fork() -> None:
    """Forget those who are inside: a fork has one thread only, and that of its parent's fits did not come along."""
    _Shared.lock = threading.Lock()
    if _Shared.n_inside:
        _Shared.n_inside = 0
        _Shared.lift()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lift_in_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Enter a context in which BLAS runs on one thread, also while other threads are in one.

    The blocks of rows are too small to share, and results must not depend on how many trains run at once.
    """
    _Shared.enter()
    try:
        yield
    finally:
        _Shared.leave()
