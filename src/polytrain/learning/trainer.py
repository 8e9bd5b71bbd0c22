"""Learn one binary or regression train: start, sweep, report. Everything an independent worker process needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import get_basis
from polytrain.learning.checkpoint import Checkpoint, Progress, fingerprint
from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines import Engine, open_engine
from polytrain.learning.gauge import fit_ranks
from polytrain.learning.losses import get_loss
from polytrain.learning.sampling import still_holds, sweep_parts
from polytrain.learning.start import linear_start, random_start
from polytrain.learning.sweep import CoreUpdate, SweepState, sweep_train
from polytrain.learning.threads import one_blas_thread

__all__ = ["TrainPlan", "TrainResult", "learn_on", "learn_train"]


@dataclass(frozen=True)
class TrainPlan:
    """What to learn, apart from the rows: the same for all trains of one fit."""

    loss: str
    basis: str
    dims: tuple[int, ...]
    ranks: tuple[int, ...]
    alpha: float
    init: str
    solver: str
    max_sweeps: int
    tol: float
    sampling: str | None = None

    @property
    def n_unknowns(self) -> int:
        """Numbers in the largest core."""
        return max(a * n * b for a, n, b in zip(self.ranks, self.dims, self.ranks[1:], strict=False))


@dataclass(frozen=True)
class TrainResult:
    """A learned train with one record per sweep."""

    cores: tuple[NDArray, ...]
    history: list[dict]
    stop_reason: str


def _record(state: SweepState, previous: SweepState, sweep: int, n_rows: int) -> dict:
    return {
        "sweep": sweep,
        "n_rows": n_rows,
        "loss": state.loss,
        "objective": state.objective,
        "decrease": previous.objective - state.objective,
        "ranks": state.ranks,
        "seconds": state.seconds,
    }


def learn_train(
    plan: TrainPlan,
    columns: NDArray,
    target: NDArray,
    weights: NDArray,
    seed: int,
    start: Sequence[NDArray] | None = None,
    report: Callable[[dict], None] | None = None,
    n_processes: int = 1,
    checkpoint: Path | None = None,
) -> TrainResult:
    """Learn one train.

    Parameters
    ----------
    plan : TrainPlan
    columns : ndarray of shape (d, N)
        Scaled features; the dtype is the compute dtype.
    target, weights : ndarray of shape (N,)
        Targets (-1 and 1 for the logistic loss), and non-negative weights with a positive sum.
    seed : int
        Seed of everything random. Nothing random depends on the rows.
    start : sequence of ndarray, optional
        Cores to start from instead of ``plan.init``; ranks are adapted to the plan's.
    report : callable, optional
        Called with each sweep's record as soon as it is there.
    n_processes : int, default=1
        Processes that share the rows. The result does not depend on it.
    checkpoint : Path, optional
        File that keeps the state after every sweep. If it is there, the fit goes on from it, with the same result.
    """
    target = np.asarray(target, dtype=np.float64)
    weights = np.asarray(weights, dtype=np.float64)
    weights = weights / weights.sum()
    loss, basis = get_loss(plan.loss), get_basis(plan.basis)
    with one_blas_thread(), open_engine(columns, target, weights, loss, basis, plan.dims, n_processes) as engine:
        return learn_on(engine, plan, seed, start, report, checkpoint)


def learn_on(
    engine: Engine,
    plan: TrainPlan,
    seed: int,
    start: Sequence[NDArray] | None = None,
    report: Callable[[dict], None] | None = None,
    checkpoint: Path | None = None,
) -> TrainResult:
    """Learn one train on the rows of an engine, wherever they are; see `learn_train`."""
    with np.errstate(over="ignore", invalid="ignore"):  # the sweep refuses an objective that is not finite
        learner = _Learner(engine, plan, seed, start, report)
        if checkpoint is not None:
            learner.resume(Checkpoint(checkpoint, fingerprint(plan, seed, start, engine.fingerprint())))
        return learner.run()


class _PartMisledError(Exception):
    """What was learned from a part of the rows does not hold for more of them."""


class _Learner:
    """One train on its way: which rows the sweeps see, and what is reported and kept after each of them."""

    def __init__(
        self,
        engine: Engine,
        plan: TrainPlan,
        seed: int,
        start: Sequence[NDArray] | None,
        report: Callable[[dict], None] | None,
    ) -> None:
        self._engine, self._plan, self._seed, self._start, self._report = engine, plan, seed, start, report
        # Cores that are given come from all rows, or from somebody's care: they are not shown part of them.
        self._begin(sampled=plan.sampling == "auto" and start is None)
        self._checkpoint: Checkpoint | None = None
        self._before: Progress | None = None

    def _begin(self, sampled: bool) -> None:
        """Forget all sweeps, and show parts of the rows to the next ones or not."""
        plan, self._sampled = self._plan, sampled
        self._rng = np.random.default_rng(self._seed)
        self._history: list[dict] = []
        self._parts = [(1.0, plan.max_sweeps)]
        if sampled:
            self._parts = sweep_parts(self._engine.n_distinct, plan.n_unknowns, plan.max_sweeps)

    def resume(self, checkpoint: Checkpoint) -> None:
        """Keep the state in this file from now on, and go on from what is there already."""
        self._checkpoint, self._before = checkpoint, checkpoint.load()
        if self._before is not None:
            self._begin(self._before.sampled)
            self._history = self._before.history
            self._rng.bit_generator.state = self._before.random_state
            if self._report is not None:
                for record in self._history:
                    self._report(record)

    def _first_cores(self) -> list[NDArray]:
        plan, rng = self._plan, self._rng
        if self._start is not None:
            return fit_ranks(self._start, plan.ranks, rng)
        if plan.init == "random":
            return random_start(plan.dims, plan.ranks, rng)
        quadratic = get_loss(plan.loss).quadratic
        return linear_start(self._engine, plan.dims, plan.ranks, plan.alpha, quadratic, rng)

    def run(self) -> TrainResult:
        learned = None
        with suppress(_PartMisledError):
            learned = self._run()
        if learned is None:  # the part is let go of by now, with all its memory
            self._begin(sampled=False)
            self._before = None
            learned = self._run()
        cores, reason = learned
        # A last word in C order: file formats may silently store anything else wrongly.
        return TrainResult(tuple(np.ascontiguousarray(core) for core in cores), self._history, str(reason))

    def _run(self) -> tuple[list[NDArray], str | None]:
        """Sweep over all parts of the rows, and return the cores with the reason to stop."""
        before = self._before
        cores, reason = (self._first_cores(), None) if before is None else (before.cores, before.stop_reason)
        for index, (part, n_sweeps) in enumerate(self._parts):
            position, done = 0, 0
            if before is not None and index <= before.part:
                if index < before.part or reason is not None:  # all sweeps over this part are done
                    continue
                position, done = before.position, before.n_sweeps
            elif self._history:  # the sweeps before may have ended at the other end of the train
                cores = fit_ranks(cores, self._plan.ranks, self._rng)
            with nullcontext(self._engine) if part == 1.0 else self._engine.part(part, self._seed) as rows:
                state = self._sweep(rows, cores, index, n_sweeps, position, done)
            cores, reason = list(state.cores), state.stop_reason
        return cores, reason

    def _sweep(
        self, rows: Engine, cores: list[NDArray], index: int, n_sweeps: int, position: int, done: int
    ) -> SweepState:
        """Sweep over a part of the rows, or what is left of it, and return where the train stands."""
        plan, whole = self._plan, self._parts[index][0] == 1.0
        states = sweep_train(
            rows,
            cores,
            alpha=plan.alpha,
            solver=CoreSolver(plan.solver, get_loss(plan.loss).quadratic),
            max_sweeps=n_sweeps - done,
            tol=plan.tol if whole else 0.0,
            rng=self._rng,
            position=position,
        )
        state: SweepState = next(states)  # type: ignore[assignment]  # a stream begins with the start
        if index > 0 and done == 0 and not still_holds(self._history[-1]["objective"], state.objective):
            raise _PartMisledError
        for following in states:
            if isinstance(following, CoreUpdate):
                continue
            self._history.append(_record(following, state, len(self._history) + 1, rows.n_rows))
            state = following
            if self._checkpoint is not None:
                self._checkpoint.save(self._progress(state, index, done + state.sweep))
            if self._report is not None:
                self._report(self._history[-1])
        return state

    def _progress(self, state: SweepState, index: int, n_sweeps: int) -> Progress:
        random_state = self._rng.bit_generator.state
        cores = [np.ascontiguousarray(core) for core in state.cores]
        return Progress(
            cores,
            state.position,
            self._sampled,
            index,
            n_sweeps,
            state.stop_reason,
            self._history,
            dict(random_state),
        )
