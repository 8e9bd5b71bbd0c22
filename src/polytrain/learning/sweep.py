"""The order of core updates, and when to stop. Nothing here sees a row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines.engine import Engine
from polytrain.learning.gauge import shift_left, shift_right

#: Why sweeps end, the harmless reason first: a fit of several trains reports the last of its reasons in this order.
STOP_REASONS = ("tolerance", "validation", "max_sweeps", "stopped", "rounding")

# A relative rise of the objective over a sweep, or a round of them, that rounding explains, also in float32.
ROUNDING = 1e-5


@dataclass(frozen=True)
class SweepState:
    """A train after a number of one-way sweeps; sweep 0 is the start.

    The objective is the weighted mean loss + alpha / 2 <A, A>. Cores are in orthogonal gauge around ``position``: the
    last one after a left-to-right sweep, else the first. ``stop_reason`` is None until the last state.
    """

    sweep: int
    loss: float
    objective: float
    cores: tuple[Array, ...]
    position: int
    seconds: float
    stop_reason: str | None


def sweep_train(
    engine: Engine,
    cores: list[Array],
    *,
    alpha: float,
    solver: CoreSolver,
    max_sweeps: int,
    tol: float,
    rng: np.random.Generator,
    position: int = 0,
) -> Iterator[SweepState]:
    """Sweep over the cores, left to right and back in turn; yield the start and the state after each one-way sweep.

    A sweep updates every core but the one it ends at; that one is the first of the sweep back. It stops once the
    objective changed by at most ``tol`` relative to its value over a sweep (the paper's rule), or after ``max_sweeps``.
    Should a sweep raise the objective by more than rounding explains, it is undone and the reason is "rounding".
    ``cores`` are orthogonal on both sides of ``position``, the first core or the last; the list is not modified.
    """
    cores = list(cores)
    last = len(cores) - 1
    engine.place(cores, position)

    def state(sweep: int, seconds: float, previous: float | None) -> SweepState:
        core = cores[position]
        engine.score(core)  # line searches moved the scores step by step: recompute them, without drift
        loss = engine.mean_loss()
        objective = loss + 0.5 * alpha * float(np.vdot(core, core))
        if not np.isfinite(objective):
            raise FloatingPointError(f"the objective became {objective} in sweep {sweep}")
        reason = None
        if previous is not None and abs(previous - objective) <= tol * abs(previous):
            reason = "tolerance"
        elif sweep >= max_sweeps:
            reason = "max_sweeps"
        return SweepState(sweep, loss, objective, tuple(cores), position, seconds, reason)

    current = state(0, 0.0, None)
    yield current
    while current.stop_reason is None:
        started = time.perf_counter()
        if last == 0:
            cores[0] = solver.update(engine, cores[0], alpha)
        else:
            sites = range(last) if position == 0 else range(last, 0, -1)
            for k in sites:
                core = solver.update(engine, cores[k], alpha)
                if position == 0:
                    cores[k], cores[k + 1] = shift_right(core, cores[k + 1], rng)
                else:
                    cores[k], cores[k - 1] = shift_left(core, cores[k - 1], rng)
                engine.move(cores[k], to_right=position == 0)
            position = last - position
        previous = current
        current = state(previous.sweep + 1, time.perf_counter() - started, previous.objective)
        if current.objective > previous.objective * (1.0 + ROUNDING):
            # Only badly scaled features get here. Keep the better train and report the reason.
            current = replace(previous, sweep=current.sweep, seconds=current.seconds, stop_reason="rounding")
        yield current
