"""Learn one binary or regression train: start, sweep, report. Everything an independent worker process needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.checkpoint import Checkpoint, Progress, fingerprint
from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines import Engine, LocalEngine, open_engine
from polytrain.learning.gauge import fit_ranks
from polytrain.learning.losses import get_loss
from polytrain.learning.moments import CoreMoments, measure_moments
from polytrain.learning.problem import Need, ProblemRows
from polytrain.learning.sampling import still_holds, sweep_samples
from polytrain.learning.start import dual_start, linear_start, random_start
from polytrain.learning.sweep import CoreUpdate, SweepState, sweep_train
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import MapList

__all__ = ["Report", "TrainJob", "TrainPlan", "TrainResult", "learn_train", "shared_linear_gram"]


#: Told each sweep's record and the cores as soon as they are there; True ends the sweeps.
Report = Callable[[dict, Sequence[NDArray]], Any]


@dataclass(frozen=True)
class TrainPlan:
    """What to learn, apart from the rows and the maps: the same for all trains of one fit.

    With validation rows, sweeps stop after ``patience`` of them that did not lower the loss of these rows. Trains that
    are ``joint`` are those of classes whose probabilities sum to 1 by a softmax of their scores.
    """

    loss: str
    dims: tuple[int, ...]
    ranks: tuple[int, ...]
    alpha: float
    init: str
    solver: str
    max_sweeps: int
    tol: float
    sampling: str | None = None
    patience: int = 0
    joint: bool = False

    @property
    def n_unknowns(self) -> int:
        """Numbers in the largest core."""
        return max(a * n * b for a, n, b in zip(self.ranks, self.dims, self.ranks[1:], strict=False))


@dataclass(frozen=True)
class TrainResult:
    """A learned train with one record per sweep, and second moments at every core if the job asked for them."""

    cores: tuple[NDArray, ...]
    history: list[dict]
    stop_reason: str
    moments: tuple[CoreMoments, ...] = ()
    parts: Sequence[Sequence[NDArray]] = ()  # the trains that this one is the sum of, if it is one

    @property
    def following(self) -> Any:
        """Where a job that goes on from here starts."""
        return self.parts or self.cores


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


@dataclass(frozen=True)
class TrainJob:
    """What one train of a fit has of its own.

    Attributes
    ----------
    seed : int
        Seed of everything random. Nothing random depends on the rows.
    start : sequence of ndarray, optional
        Cores to start from instead of ``plan.init``; ranks are adapted to the plan's.
    checkpoint : Path, optional
        File that keeps the state after every sweep. If it is there, the fit goes on from it, with the same result.
    measure : bool, default=False
        Whether second moments at every core are wanted in the end, see `polytrain.learning.moments`.
    """

    seed: int
    start: Sequence[NDArray] | None = None
    checkpoint: Path | None = None
    measure: bool = False


def learn_train(
    plan: TrainPlan,
    maps: MapList,
    rows: ProblemRows | Engine,
    job: TrainJob,
    *,
    report: Report | None = None,
    n_processes: int = 1,
    linear_gram: NDArray | None = None,
    validation: ProblemRows | Engine | None = None,
) -> TrainResult:
    """Learn one train on rows in memory, or on those of an engine.

    Parameters
    ----------
    plan : TrainPlan
    maps : MapList
        One per column.
    rows : ProblemRows or Engine
        Weights sum to 1.
    job : TrainJob
    report : callable, optional
        Called with each sweep's record and the cores; if it returns True, the sweep was the last.
    n_processes : int, default=1
        Processes that share rows in memory. The result does not depend on it.
    linear_gram : ndarray, optional
        Gram matrix of the linear model on these rows, if it is known.
    validation : ProblemRows or Engine, optional
        Rows whose loss decides when to stop, and which of the trains on the way is kept.
    """
    loss = get_loss(plan.loss)
    if isinstance(validation, ProblemRows):
        validation = LocalEngine(validation, loss, maps)
    opened = nullcontext(rows) if isinstance(rows, Engine) else open_engine(rows, loss, maps, n_processes)
    # The sweep refuses an objective that is not finite.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"), opened as engine:
        learner = _Learner(engine, plan, maps, job, report, linear_gram, validation)
        if job.checkpoint is not None:
            name = fingerprint(plan, maps, job, engine.fingerprint())
            learner.resume(Checkpoint(job.checkpoint, name, plan.dims, plan.ranks))
        outcome = learner.run()
        if outcome is None:  # by now the sample is let go of, with all its memory
            learner.forget_samples()
            outcome = learner.run()
        cores, reason = outcome  # type: ignore[misc]  # without samples there is one
        moments = measure_moments(engine, cores, job.seed) if job.measure else ()
    # In C order: file formats may silently store anything else wrongly.
    return TrainResult(tuple(np.ascontiguousarray(core) for core in cores), learner.history, str(reason), moments)


def shared_linear_gram(engine: Engine, maps: MapList) -> NDArray:
    """Gram matrix of the linear model: with a quadratic loss it is the same for all targets of the same rows."""
    with engine.linear() as linear:
        linear.score(np.zeros((1, 1 + sum(maps.linear_sizes()), 1)))
        return linear.facts(Need(gram=True)).gram


class _Learner:
    """One train on its way: which rows the sweeps see, and what is reported and kept after each of them."""

    def __init__(
        self,
        engine: Engine,
        plan: TrainPlan,
        maps: MapList,
        job: TrainJob,
        report: Report | None,
        linear_gram: NDArray | None,
        validation: Engine | None,
    ) -> None:
        self._validation = validation
        self._engine, self._plan, self._maps, self._job = engine, plan, maps, job
        self._report, self._linear_gram = report, linear_gram
        # Cores that are given come from all rows, or from somebody's care: they are not shown a sample.
        self._begin(sampled=plan.sampling == "auto" and job.start is None)
        self._checkpoint: Checkpoint | None = None
        self._before: Progress | None = None

    def _begin(self, sampled: bool) -> None:
        """Forget all sweeps, and show samples of the rows to the next ones or not."""
        plan, self._sampled = self._plan, sampled
        self._best: tuple[float, tuple[NDArray, ...]] = math.inf, ()  # loss of the validation rows, and its cores
        self._since_best = 0
        self._rng = np.random.default_rng(self._job.seed)
        self.history: list[dict] = []
        self._stages = [(1.0, plan.max_sweeps)]
        if sampled:
            self._stages = sweep_samples(self._engine.n_distinct, plan.n_unknowns, plan.max_sweeps)

    def resume(self, checkpoint: Checkpoint) -> None:
        """Keep the state in this file from now on, and go on from what is there already."""
        self._checkpoint, self._before = checkpoint, checkpoint.load()
        if self._before is not None:
            may_sample = self._sampled
            self._begin(self._before.sampled)
            stages = self._stages[: self._before.stage + 1]
            planned = len(stages) > self._before.stage and self._before.n_sweeps <= stages[-1][1]
            if not planned or (self._sampled and not may_sample):
                raise checkpoint.unusable("it has made sweeps that the plan of this fit does not have")
            self.history = self._before.history
            self._rng.bit_generator.state = self._before.random_state
            if self._report is not None:
                for record in self.history:
                    self._report(record, self._before.cores)

    def _first_cores(self) -> list[NDArray]:
        plan, rng = self._plan, self._rng
        if self._job.start is not None:
            return fit_ranks(self._job.start, plan.ranks, rng)
        if plan.init == "random":
            return random_start(plan.dims, plan.ranks, rng)
        if plan.init == "dual":
            return dual_start(self._engine, self._maps, plan.ranks, plan.alpha, self._job.seed, rng)
        quadratic = get_loss(plan.loss).quadratic
        return linear_start(self._engine, self._maps, plan.ranks, plan.alpha, quadratic, rng, self._linear_gram)

    def forget_samples(self) -> None:
        """Begin anew, with all rows from the first sweep on."""
        self._begin(sampled=False)
        self._before = None

    def run(self) -> tuple[Sequence[NDArray], str | None] | None:
        """Sweep in all stages, over more and more rows, and return the cores with the reason to stop.

        None if what was learned from a sample of the rows does not hold for more of them.
        """
        before = self._before
        if before is None:
            cores, position, reason = self._first_cores(), 0, None
        else:
            cores, position, reason = before.cores, before.position, before.stop_reason
        for stage, (fraction, n_sweeps) in enumerate(self._stages):
            done = 0
            if before is not None and stage <= before.stage:
                if stage < before.stage or reason is not None:  # all sweeps of this stage are done
                    continue
                done = before.n_sweeps
            whole = nullcontext(self._engine)
            with whole if fraction == 1.0 else self._engine.sample(fraction, self._job.seed) as rows:
                state = self._sweep(rows, cores, stage, n_sweeps, position, done)
            if state is None:
                return None
            cores, position, reason = list(state.cores), state.position, state.stop_reason
        return self._best[1] or cores, reason

    def _sweep(
        self, rows: Engine, cores: list[NDArray], stage: int, n_sweeps: int, position: int, done: int
    ) -> SweepState | None:
        """Make the sweeps of a stage, or what is left of them, and return where the train stands.

        None if what was learned from a sample of the rows does not hold for more of them.
        """
        plan, whole = self._plan, self._stages[stage][0] == 1.0
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
        # Random cores are no model; any other start may be better than what the sweeps make of it.
        if self._validation is not None and whole and done == 0 and (plan.init != "random" or self._job.start):
            self._validate(state)
        if stage > 0 and done == 0 and not still_holds(self.history[-1]["objective"], state.objective):
            return None
        for following in states:
            if isinstance(following, CoreUpdate):
                continue
            self.history.append(_record(following, state, len(self.history) + 1, rows.n_rows))
            state = following
            if self._checkpoint is not None:
                self._checkpoint.save(self._progress(state, stage, done + state.sweep))
            if self._validation is not None:
                self.history[-1]["validation_loss"] = self._validate(state, whole)
            if self._report is not None and self._report(self.history[-1], state.cores):
                return replace(state, stop_reason="stopped")
            if whole and self._validation is not None and self._since_best >= self._plan.patience:
                return state if state.stop_reason else replace(state, stop_reason="validation")
        return state

    def _validate(self, state: SweepState, counts: bool = True) -> float:
        """Loss of the validation rows; where it counts, the best train so far is remembered."""
        self._validation.place(list(state.cores), state.position)  # type: ignore[union-attr]
        loss = self._validation.mean_loss()  # type: ignore[union-attr]
        if counts:
            is_better = loss < self._best[0]
            self._since_best = 0 if is_better else self._since_best + 1
            if is_better:
                self._best = loss, state.cores
        return loss

    def _progress(self, state: SweepState, stage: int, n_sweeps: int) -> Progress:
        random_state = self._rng.bit_generator.state
        cores = [np.ascontiguousarray(core) for core in state.cores]
        return Progress(
            cores,
            state.position,
            self._sampled,
            stage,
            n_sweeps,
            state.stop_reason,
            self.history,
            dict(random_state),
        )
