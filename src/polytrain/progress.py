"""Show a fit's sweeps as they happen: a bar where tqdm is installed, log lines otherwise."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

__all__ = ["ChoiceProgress", "SweepProgress", "logger"]

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

    def _hide_log(self) -> None:
        with _Shown._lock:
            _Shown._n_showing -= 1
            if _Shown._n_showing:
                return
            logger.setLevel(_Shown._level)
            if _Shown._handler is not None:
                logger.removeHandler(_Shown._handler)
                _Shown._handler = None


class ChoiceProgress(_Shown):
    """Says what a fit has chosen, and with ``verbose`` of 2 or more what it has tried."""

    def __enter__(self) -> ChoiceProgress:
        if self._verbose:
            self._show_log()
        return self

    def chosen(self, reasons: Sequence[str], table: str) -> None:
        """Take note of a choice."""
        if self._verbose and reasons:
            if self._verbose > 1:
                logger.info("tried:\n%s", table)
            logger.info("chosen: %s", "; ".join(reasons))

    def merged(self, words: str) -> None:
        """Take note that models became one."""
        if self._verbose:
            logger.info("merged: %s", words)

    def __exit__(self, *exception: object) -> None:
        if self._verbose:
            self._hide_log()


class SweepProgress(_Shown):
    """Consumer of sweep records.

    Parameters
    ----------
    n_trains, max_sweeps : int
        What there is to do at most.
    verbose : int
        0 shows nothing, 1 a bar (log lines without tqdm), 2 or more log lines.
    """

    def __init__(self, n_trains: int, max_sweeps: int, verbose: int) -> None:
        super().__init__(verbose)
        self._n_trains, self._max_sweeps = n_trains, max_sweeps
        self._bar: Any = None
        self._sweeps = [0] * n_trains

    def __enter__(self) -> SweepProgress:
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

    def sweep_done(self, train: int, record: dict) -> None:
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

    def train_done(self, train: int) -> None:
        """Take note that a train needs no further sweeps."""
        if self._bar is not None:
            self._bar.update(self._max_sweeps - self._sweeps[train])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._verbose:
            self._hide_log()
