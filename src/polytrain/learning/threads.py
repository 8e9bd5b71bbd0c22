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


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set limits: newer versions of threadpoolctl ignore all threads but the first that did."""
    controller: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


class _Shared:
    """One limit for the whole process: the first thread to enter sets it, the last to leave lifts it."""

    lock = threading.Lock()
    n_inside = 0
    limit: Any = None


def _lift() -> None:
    _take_control()
    _Shared.limit.restore_original_limits()
    _take_control()  # for the next thread


def _lift_in_fork() -> None:
    """Forget the threads inside: a fork has only one thread, which is in no fit."""
    _Shared.lock = threading.Lock()
    if _Shared.n_inside:
        _Shared.n_inside = 0
        _lift()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lift_in_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Enter a context in which BLAS runs on one thread, also while other threads are in one.

    The blocks of rows are too small to share, and results must not depend on how many trains run at once.
    """
    with _Shared.lock:
        if _Shared.n_inside == 0:
            _take_control()
            _Shared.limit = _controller().limit(limits=1, user_api="blas")
        _Shared.n_inside += 1
    try:
        yield
    finally:
        with _Shared.lock:
            _Shared.n_inside -= 1
            if _Shared.n_inside == 0:
                _lift()
