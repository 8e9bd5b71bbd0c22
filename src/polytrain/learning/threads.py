"""Cap the threads of BLAS. Finding the loaded libraries takes milliseconds, so they are looked up once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _Shared:
    """The limit is one for the whole process: the first to come in sets it, the last to leave lifts it."""

    lock = threading.Lock()
    n_inside = 0
    limit: Any = None


def _lift_in_fork() -> None:
    """Forget those who are inside: a fork has one thread only, and that of its parent's fits did not come along."""
    _Shared.lock = threading.Lock()
    if _Shared.n_inside:
        _Shared.n_inside = 0
        _Shared.limit.restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lift_in_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Enter a context in which BLAS runs on one thread, also while other threads are in one.

    The blocks of rows are too small to share, and results must not depend on how many trains run at once.
    """
    with _Shared.lock:
        if _Shared.n_inside == 0:
            _Shared.limit = _controller().limit(limits=1, user_api="blas")
        _Shared.n_inside += 1
    try:
        yield
    finally:
        with _Shared.lock:
            _Shared.n_inside -= 1
            if _Shared.n_inside == 0:
                _Shared.limit.restore_original_limits()
