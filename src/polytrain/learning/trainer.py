"""Learn one binary or regression train: start, sweep, report. Everything an independent worker process needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polytrain.basis import get_basis
from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines import LocalEngine
from polytrain.learning.gauge import fit_ranks
from polytrain.learning.losses import get_loss
from polytrain.learning.start import linear_start, random_start
from polytrain.learning.sweep import SweepState, sweep_train
from polytrain.learning.threads import one_blas_thread

__all__ = ["TrainPlan", "TrainResult", "learn_train"]


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


@dataclass(frozen=True)
class TrainResult:
    """A learned train with one record per sweep."""

    cores: tuple[NDArray, ...]
    history: list[dict]
    stop_reason: str


def _record(state: SweepState, previous: SweepState) -> dict:
    return {
        "sweep": state.sweep,
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
    """
    rng = np.random.default_rng(seed)
    loss = get_loss(plan.loss)
    target = np.asarray(target, dtype=np.float64)
    weights = np.asarray(weights, dtype=np.float64)
    history: list[dict] = []
    # Overflow shows as an objective that is not finite, which the sweep refuses.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        engine = LocalEngine(columns, target, weights / weights.sum(), loss, get_basis(plan.basis), plan.dims)
        if start is not None:
            cores = fit_ranks(start, plan.ranks, rng)
        elif plan.init == "random":
            cores = random_start(plan.dims, plan.ranks, rng)
        else:
            cores = linear_start(engine, plan.dims, plan.ranks, plan.alpha, loss.quadratic, rng)
        solver = CoreSolver(plan.solver, loss.quadratic)
        states = sweep_train(
            engine, cores, alpha=plan.alpha, solver=solver, max_sweeps=plan.max_sweeps, tol=plan.tol, rng=rng
        )
        state = next(states)
        for following in states:
            history.append(_record(following, state))
            state = following
            if report is not None:
                report(history[-1])
    # A last word in C order: file formats may silently store anything else wrongly.
    cores_out = tuple(np.ascontiguousarray(core) for core in state.cores)
    return TrainResult(cores_out, history, str(state.stop_reason))
