"""Show the sweeps of a fit: a bar if tqdm is installed, log lines otherwise."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self

__all__ = ["SweepProgress", "logger", "show"]

logger = logging.getLogger("polytrain")

# The log belongs to the whole process: the first fit to show something configures it, the last to end restores it.
_lock, _changes = threading.Lock(), ExitStack()
_n_showing = 0


@contextmanager
def _visible_log() -> Iterator[None]:
    """Show log lines on standard error if logging is not configured."""
    global _n_showing
    with _lock:
        _n_showing += 1
        if _n_showing == 1:
            _changes.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.INFO)
            if not logger.hasHandlers():
                handler = logging.StreamHandler(sys.stderr)
                logger.addHandler(handler)
                _changes.callback(logger.removeHandler, handler)
    try:
        yield
    finally:
        with _lock:
            _n_showing -= 1
            if not _n_showing:
                _changes.close()


def show(*messages: str) -> None:
    """Log messages so that the user sees them."""
    with _visible_log():
        for message in messages:
            logger.info(message)


class SweepProgress:
    """Shows records of sweeps and passes them on to ``watch``, which may return True to end the sweeps of a train.

    ``verbose`` of 0 shows nothing, 1 a bar (log lines without tqdm), 2 or more log lines.
    """

    def __init__(self, n_trains: int, max_sweeps: int, verbose: int, watch: Callable[..., Any]) -> None:
        self._n_trains, self._max_sweeps, self._verbose, self._watch = n_trains, max_sweeps, verbose, watch
        self._bar: Any = None
        self._sweeps = [0] * n_trains
        self._log = ExitStack()

    def __enter__(self) -> Self:
        if self._verbose == 1:
            with suppress(ImportError):
                from tqdm.auto import tqdm

                self._bar = tqdm(total=self._n_trains * self._max_sweeps, unit="sweep", desc="training")
        if self._verbose and self._bar is None:
            self._log.enter_context(_visible_log())
        return self

    def sweep_done(self, train: int, record: dict, cores: Any) -> Any:
        """Show one sweep of one train."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"train {train + 1}/{self._n_trains}, objective {record['objective']:.3g}")
            # A train may restart; then its first sweeps come a second time.
            self._bar.update(max(0, record["sweep"] - self._sweeps[train]))
            self._sweeps[train] = max(self._sweeps[train], record["sweep"])
        elif self._verbose:
            sizes = "objective {objective:.6g}, loss {loss:.6g}, {seconds:.2f} s".format_map(record)
            logger.info("train %d of %d, sweep %d: %s", train + 1, self._n_trains, record["sweep"], sizes)
        return self._watch(train, record, cores)

    def __exit__(self, *error: object) -> None:
        self._log.close()
        if self._bar is not None:
            if error[0] is None:  # trains that stopped early
                self._bar.update(self._n_trains * self._max_sweeps - sum(self._sweeps))
            self._bar.close()
