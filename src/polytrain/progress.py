"""Show a fit's sweeps as they happen: a bar where tqdm is installed, log lines otherwise."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

__all__ = ["SweepProgress", "logger", "show_choice", "show_merge"]

logger = logging.getLogger("polytrain")


class _Shown:
    """Makes the log visible while something is shown, if nobody has configured logging.

    The log is one for the whole process: the first to show something changes it, the last to end changes it back.
    """

    _lock, _n_showing = threading.Lock(), 0
    _handler: logging.Handler | None = None
    _level = logging.NOTSET

    def __init__(self, verbose: int) -> None:
        self._verbose = verbose

    def _show_log(self) -> None:
        with _Shown._lock:
            _Shown._n_showing += 1
            if _Shown._n_showing > 1:
                return
            _Shown._level = logger.level
            logger.setLevel(logging.INFO)
            if not logger.hasHandlers():  # nobody configured logging, yet the user asked to see something
                _Shown._handler = logging.StreamHandler(sys.stderr)
                logger.addHandler(_Shown._handler)

    def __enter__(self) -> Self:
        self._show_log()
        return self

    def __exit__(self, *error: object) -> None:
        self._hide_log()

    def _hide_log(self) -> None:
        with _Shown._lock:
            _Shown._n_showing -= 1
            if _Shown._n_showing:
                return
            logger.setLevel(_Shown._level)
            if _Shown._handler is not None:
                logger.removeHandler(_Shown._handler)
                _Shown._handler = None


def show_choice(verbose: int, reasons: Sequence[str], table: str) -> None:
    """Log what a fit has chosen, and with ``verbose`` of 2 or more what it has tried."""
    if verbose and reasons:
        with _Shown(verbose):
            if verbose > 1:
                logger.info("tried:\n%s", table)
            logger.info("chosen: %s", "; ".join(reasons))


def show_merge(verbose: int, words: str) -> None:
    """Log that several models became one."""
    if verbose:
        with _Shown(verbose):
            logger.info("merged: %s", words)


class SweepProgress(_Shown):
    """Shows records of sweeps and passes them on to ``watch``, whose answer True ends the sweeps of a train.

    ``verbose`` of 0 shows nothing, 1 a bar (log lines without tqdm), 2 or more log lines.
    """

    def __init__(self, n_trains: int, max_sweeps: int, verbose: int, watch: Callable[..., Any]) -> None:
        super().__init__(verbose)
        self._watch = watch
        self._n_trains, self._max_sweeps = n_trains, max_sweeps
        self._bar: Any = None
        self._sweeps = [0] * n_trains

    def __enter__(self) -> Self:
        if self._verbose == 1:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                pass
            else:
                self._bar = tqdm(total=self._n_trains * self._max_sweeps, unit="sweep", desc="training")
        if self._verbose and self._bar is None:
            self._show_log()
        return self

    def sweep_done(self, train: int, record: dict, cores: Any) -> Any:
        """Take note of one sweep of one train."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"train {train + 1}/{self._n_trains}, objective {record['objective']:.3g}")
            # A train may begin anew; then its first sweeps come a second time.
            self._bar.update(max(0, record["sweep"] - self._sweeps[train]))
            self._sweeps[train] = max(self._sweeps[train], record["sweep"])
        elif self._verbose:
            logger.info(
                "train %d of %d, sweep %d: objective %.6g, loss %.6g, %.2f s",
                train + 1,
                self._n_trains,
                record["sweep"],
                record["objective"],
                record["loss"],
                record["seconds"],
            )
        return self._watch(train, record, cores)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            if error[0] is None:  # trains that stopped early
                self._bar.update(self._n_trains * self._max_sweeps - sum(self._sweeps))
            self._bar.close()
        elif self._verbose:
            self._hide_log()
