"""Measure rivals against each other: in one process, in turn, least time of several repeats."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from threadpoolctl import threadpool_limits


def seconds(function: Callable[[], object]) -> float:
    """Duration of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def best_of(
    rivals: Mapping[str, Callable[[], object]], repeats: int, *, warm: bool = True, threads: int | None = 1
) -> dict[str, float]:
    """Least seconds of every rival.

    The rivals take turns, so that a busy moment of the machine hits all of them; the least time is the one that was
    disturbed least. ``warm`` calls each once before, untimed. ``threads`` limits BLAS and OpenMP; None leaves them.
    """
    with threadpool_limits(threads):
        if warm:
            for function in rivals.values():
                function()
        times: dict[str, list[float]] = {name: [] for name in rivals}
        for _ in range(repeats):
            for name, function in rivals.items():
                times[name].append(seconds(function))
    return {name: min(values) for name, values in times.items()}
