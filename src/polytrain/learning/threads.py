"""Cap the threads of BLAS. Finding the loaded libraries takes milliseconds, so they are looked up once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager:
    """Return a context in which BLAS runs on one thread.

    The blocks of rows are too small to share, and results must not depend on how many trains run at once.
    """
    return _controller().limit(limits=1, user_api="blas")
