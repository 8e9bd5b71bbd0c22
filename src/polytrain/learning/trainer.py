"""Learn one binary or regression train: start, sweep, report. Everything an independent worker process needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import get_basis
from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines import Engine, open_engine
from polytrain.learning.gauge import fit_ranks
from polytrain.learning.losses import get_loss
from polytrain.learning.sampling import sweep_parts
from polytrain.learning.start import linear_start, random_start
from polytrain.learning.sweep import SweepState, sweep_train
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
    """
    target = np.asarray(target, dtype=np.float64)
    weights = np.asarray(weights, dtype=np.float64)
    weights = weights / weights.sum()
    loss, basis = get_loss(plan.loss), get_basis(plan.basis)
    with one_blas_thread(), open_engine(columns, target, weights, loss, basis, plan.dims, n_processes) as engine:
        return learn_on(engine, plan, seed, start, report)


def learn_on(
    engine: Engine,
    plan: TrainPlan,
    seed: int,
    start: Sequence[NDArray] | None = None,
    report: Callable[[dict], None] | None = None,
) -> TrainResult:
    """Learn one train on the rows of an engine, wherever they are; see `learn_train`."""
    rng = np.random.default_rng(seed)
    history: list[dict] = []
    with np.errstate(over="ignore", invalid="ignore"):  # the sweep refuses an objective that is not finite
        if start is not None:
            cores = fit_ranks(start, plan.ranks, rng)
        elif plan.init == "random":
            cores = random_start(plan.dims, plan.ranks, rng)
        else:
            quadratic = get_loss(plan.loss).quadratic
            cores = linear_start(engine, plan.dims, plan.ranks, plan.alpha, quadratic, rng)
        sampled = plan.sampling == "auto" and start is None  # cores given come from all rows, or from somebody's care
        parts = sweep_parts(engine.n_distinct, plan.max_sweeps) if sampled else [(1.0, plan.max_sweeps)]
        for part, n_sweeps in parts:
            if history:  # the sweeps before may have ended at the other end of the train
                cores = fit_ranks(cores, plan.ranks, rng)
            with nullcontext(engine) if part == 1.0 else engine.part(part, seed) as seen:
                state = _sweep_over(seen, cores, plan, n_sweeps, part, rng, history, report)
            cores = list(state.cores)
    # A last word in C order: file formats may silently store anything else wrongly.
    return TrainResult(tuple(np.ascontiguousarray(core) for core in cores), history, str(state.stop_reason))


def _sweep_over(
    engine: Engine,
    cores: list[NDArray],
    plan: TrainPlan,
    n_sweeps: int,
    part: float,
    rng: np.random.Generator,
    history: list[dict],
    report: Callable[[dict], None] | None,
) -> SweepState:
    """Sweep over these rows, adding to the history, and return where the train stands."""
    states = sweep_train(
        engine,
        cores,
        alpha=plan.alpha,
        solver=CoreSolver(plan.solver, get_loss(plan.loss).quadratic),
        max_sweeps=n_sweeps,
        tol=plan.tol if part == 1.0 else 0.0,
        rng=rng,
    )
    state = next(states)
    for following in states:
        history.append(_record(following, state, len(history) + 1, engine.n_rows))
        state = following
        if report is not None:
            report(history[-1])
    return state
