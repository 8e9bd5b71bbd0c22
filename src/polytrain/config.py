"""Settings of the machine, not of the model: memory and checkpoints of all fits within a ``with`` statement."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

from polytrain.texts import shown

__all__ = ["Config", "config_context", "current_config"]


class Config(NamedTuple):
    """Bytes that the rows of a fit may take in memory, and the folder for the states of its trains."""

    max_bytes: int = 0
    checkpoint: Path | None = None


_NOTHING = Config()
_CONFIG = ContextVar("polytrain_config", default=_NOTHING)


@contextmanager
def config_context(
    *, max_memory: int | str | None = None, checkpoint: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Set how fits use the machine, for a ``with`` statement in this thread.

    A setting of None is inherited from outside of the statement. Processes and Dask workers that help with a fit follow
    it; fits that other libraries run in other processes or threads, such as a parallel grid search, do not see it.

    Parameters
    ----------
    max_memory : int or str, optional
        Bytes, or text such as "2 GB", that the rows of a fit and arrays computed from them may take in memory; the rest
        is kept on disk. For sources of rows and memory maps. By default half of the machine's memory.
    checkpoint : path-like, optional
        Folder that keeps the state of every train after each sweep. A fit with the same rows, parameters and
        ``random_state`` (an integer) continues from these states and ends with the same model; other fits need other
        folders. By default nothing is stored.

    Examples
    --------
    >>> import polytrain
    >>> with polytrain.config_context(max_memory="2 GB"):
    ...     model = polytrain.TensorTrainRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    """
    if not (checkpoint is None or (isinstance(checkpoint, str | os.PathLike) and os.fspath(checkpoint))):
        raise ValueError(f"checkpoint must be None or the path of a folder, got {shown(checkpoint)}.")
    outer = _CONFIG.get()
    folder = outer.checkpoint if checkpoint is None else Path(checkpoint)
    token = _CONFIG.set(Config(outer.max_bytes if max_memory is None else _n_bytes(max_memory), folder))
    try:
        yield
    finally:
        _CONFIG.reset(token)


def current_config() -> Config:
    """Return the settings of this thread, with defaults that suit the machine."""
    config, half = _CONFIG.get(), 4 << 30
    with suppress(AttributeError, ValueError, OSError):  # not available on every system
        half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return config._replace(max_bytes=config.max_bytes or half)


def _n_bytes(value: int | str) -> int:
    if isinstance(value, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)i?B\s*", value)
        if parts and math.isfinite(size := float(parts[1]) * 1024.0 ** " kMGT".index(parts[2] or " ")):
            return max(1, int(size))
    elif not isinstance(value, bool) and isinstance(value, Integral) and int(value) > 0:
        return int(value)
    wanted = "None, a positive number of bytes or a text such as '2 GB'"
    raise ValueError(f"max_memory must be {wanted}, got {shown(value)}.")
