"""Learn one binary or regression train: start, sweep, report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polytrain.arrays import Array
from polytrain.learning.checkpoint import Checkpoint, Progress, fingerprint
from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines import Engine, LocalEngine, open_engine
from polytrain.learning.gauge import fit_ranks
from polytrain.learning.losses import get_loss
from polytrain.learning.moments import CoreMoments, measure_moments
from polytrain.learning.problem import Need, ProblemRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.start import dual_start, linear_start, random_start
from polytrain.learning.sweep import sweep_train
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import MapList

# With at least this many distinct rows, the first two of four or more sweeps from a linear or random start see a sample
# of them: a quarter, or fewer if they are many, but several times the unknowns of the largest core. Learning from more
# than half of the rows does not pay.
_MANY_ROWS, _LARGEST_SAMPLE, _ENOUGH_ROWS, _ROWS_PER_UNKNOWN, _WORTHWHILE = 4096, 0.25, 8192, 8, 0.5
_SAMPLED_SWEEPS, _LEAST_SWEEPS = 2, 4
# A sample has taught something if the objective of its train grows by no more than this factor on all rows: up to 1.75,
# 15 of 17 fits of digits ended within 1 % of the objective without sampling; from 2 on, 12 ended well above it.
_MOST_GROWTH = 1.8

#: Called with each sweep's record and the cores; True ends the sweeps.
Report = Callable[[dict[str, Any], Sequence[Array]], Any]


@dataclass(frozen=True)
class TrainResult:
    """A learned train with one record per sweep, and second moments at every core if they were asked for."""

    cores: tuple[Array, ...]
    history: list[dict[str, Any]]
    stop_reason: str
    moments: tuple[CoreMoments, ...] = ()
    parts: Sequence[Sequence[Array]] = ()  # the trains that this one is the sum of, if it is one

    @property
    def following(self) -> Any:
        """Cores of a start that continues from here."""
        return self.parts or self.cores

    def later_history(self, n_before: int) -> list[dict[str, Any]]:
        """The history, counted on from ``n_before`` sweeps."""
        return [{**record, "sweep": record["sweep"] + n_before} for record in self.history]


def learn_train(
    plan: Settings,
    maps: MapList,
    rows: ProblemRows | Engine,
    start: Start,
    *,
    measure: bool = False,
    report: Report = lambda record, cores: None,
    n_processes: int = 1,
    linear_gram: Array | None = None,
    validation: ProblemRows | Engine | None = None,
) -> TrainResult:
    """Learn one train on rows in memory, whose weights sum to 1, or on those of an engine.

    The result does not depend on ``n_processes``, the number of processes that share rows in memory. ``linear_gram`` is
    the Gram matrix of the linear model on these rows, if it is known. The loss of the ``validation`` rows decides when
    to stop, and which of the trains on the way is returned. ``measure`` asks for second moments at every core.
    """
    loss = get_loss(plan.loss)
    rng = np.random.default_rng(start.seed)
    # The sweep refuses an objective that is not finite.
    with (
        one_blas_thread(),
        np.errstate(over="ignore", invalid="ignore"),
        open_engine(rows, loss, maps, n_processes) as engine,
    ):
        checkpoint, progress = None, None
        if start.checkpoint is not None:
            checkpoint = Checkpoint(start.checkpoint, fingerprint(plan, maps, start, engine.fingerprint()))
            progress = checkpoint.load()
        if progress is None:
            progress = Progress(_first_cores(engine, plan, maps, start, rng, linear_gram), 0, None, [], {})
            if start.cores is None and plan.init in ("linear", "random") and validation is None:
                progress = _learn_from_sample(engine, plan, maps, progress, start.seed, report)
        else:
            rng.bit_generator.state = progress.random_state
            for record in progress.history:
                report(record, progress.cores)
        if isinstance(validation, ProblemRows):
            validation = LocalEngine(validation, loss, maps)
        watched = None if validation is None else _Validation(validation)
        # Random cores are not a model; any other start may be better than the result of the sweeps.
        if watched is not None and (plan.init != "random" or start.cores is not None):
            watched.look(progress.cores, progress.position)
        cores, reason = _sweep(engine, plan, progress, rng, report, checkpoint, watched)
        moments = measure_moments(engine, cores) if measure else ()
    # In C order: file formats may silently store anything else wrongly.
    return TrainResult(tuple(map(np.ascontiguousarray, cores)), progress.history, reason, moments)


def shared_linear_gram(engine: Engine, maps: MapList) -> Array:
    """Gram matrix of the linear model: with a quadratic loss it is the same for all targets of the same rows."""
    linear = engine.linear()
    linear.score(np.zeros((1, 1 + sum(maps.linear_sizes()), 1)))
    gram: Array = linear.facts(Need(gram=True)).gram
    return gram


def _first_cores(
    engine: Engine, plan: Settings, maps: MapList, start: Start, rng: np.random.Generator, linear_gram: Array | None
) -> list[Array]:
    if start.cores is not None:
        return fit_ranks(start.cores, plan.ranks, rng)
    if plan.init == "random":
        return random_start(maps.dims, plan.ranks, rng)
    if plan.init == "dual":
        return dual_start(engine, maps, plan.ranks, plan.alpha, start.seed, rng)
    return linear_start(engine, maps, plan.ranks, plan.alpha, get_loss(plan.loss).quadratic, rng, linear_gram)


def _learn_from_sample(
    engine: Engine, plan: Settings, maps: MapList, start: Progress, seed: int, report: Report
) -> Progress:
    """Make the first sweeps, there and back, on a sample of the rows if there are many; the start if it misleads.

    Rows are chosen by their values: neither their order nor repetition matters. The sample is discarded if its train
    does not generalise to all rows, since later sweeps do not recover from that.
    """
    n_rows = min(engine.n_distinct, engine.n_rows)
    n_unknowns = max(a * n * b for a, n, b in zip(plan.ranks, maps.dims, plan.ranks[1:], strict=False))
    share = max(min(_ENOUGH_ROWS / n_rows, _LARGEST_SAMPLE), _ROWS_PER_UNKNOWN * n_unknowns / n_rows)
    if n_rows < _MANY_ROWS or plan.max_sweeps < _LEAST_SWEEPS or share > _WORTHWHILE:
        return start
    sample = LocalEngine(engine.gather(share, seed), get_loss(plan.loss), maps)
    sampled, learned = replace(plan, max_sweeps=_SAMPLED_SWEEPS, tol=0.0), replace(start, history=[])
    cores, reason = _sweep(sample, sampled, learned, np.random.default_rng(seed), report, None, None)
    learned = replace(learned, cores=list(cores), stop_reason="stopped" if reason == "stopped" else None)
    if reason == "max_sweeps":
        engine.place(learned.cores)
        objective = engine.mean_loss() + 0.5 * plan.alpha * float(np.vdot(cores[0], cores[0]))
        return learned if objective <= _MOST_GROWTH * learned.history[-1]["objective"] else start
    return learned if reason == "stopped" else start


def _sweep(
    engine: Engine,
    plan: Settings,
    progress: Progress,
    rng: np.random.Generator,
    report: Report,
    checkpoint: Checkpoint | None,
    validation: _Validation | None,
) -> tuple[Sequence[Array], str]:
    """Make the sweeps of a plan, or the remaining ones, and return the cores with the reason to stop."""
    history = progress.history  # grows
    if progress.stop_reason is not None:
        return progress.cores, progress.stop_reason
    solver = CoreSolver(plan.solver, get_loss(plan.loss).quadratic)
    states = sweep_train(
        engine,
        progress.cores,
        alpha=plan.alpha,
        solver=solver,
        max_sweeps=plan.max_sweeps - len(history),
        tol=plan.tol,
        rng=rng,
        position=progress.position,
    )
    state = next(states)
    for following in states:
        record = {"sweep": len(history) + 1, "n_rows": engine.n_rows, "loss": following.loss}
        record |= {"objective": following.objective, "decrease": state.objective - following.objective}
        history.append({**record, "ranks": plan.ranks, "seconds": following.seconds})
        state = following
        if checkpoint is not None:
            random_state = dict(rng.bit_generator.state)
            checkpoint.save(Progress(list(state.cores), state.position, state.stop_reason, history, random_state))
        if validation is not None:
            history[-1]["validation_loss"] = validation.look(state.cores, state.position)
        if report(history[-1], state.cores):
            state = replace(state, stop_reason="stopped")
        elif validation is not None and validation.n_worse >= plan.patience:
            state = replace(state, stop_reason=state.stop_reason or "validation")
        if state.stop_reason is not None:
            break
    best = None if validation is None else validation.cores
    return best or state.cores, str(state.stop_reason)


@dataclass
class _Validation:
    """Validation rows, and the train with their lowest loss so far; ``n_worse`` sweeps did not lower it."""

    engine: Engine
    loss: float = math.inf
    cores: tuple[Array, ...] = ()
    n_worse: int = 0

    def look(self, cores: Sequence[Array], position: int) -> float:
        """Return the loss of the rows for a train that is orthogonal on both sides of a core."""
        self.engine.place(list(cores), position)
        loss = self.engine.mean_loss()
        self.n_worse += 1
        if loss < self.loss:
            self.loss, self.cores, self.n_worse = loss, tuple(cores), 0
        return loss
