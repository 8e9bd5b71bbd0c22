"""Learn one binary or regression train: start, sweep, report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
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
from polytrain.learning.sampling import still_holds, sweep_samples
from polytrain.learning.settings import Settings, Start
from polytrain.learning.start import dual_start, linear_start, random_start
from polytrain.learning.sweep import CoreUpdate, SweepState, sweep_train
from polytrain.learning.threads import one_blas_thread
from polytrain.maps import MapList

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
    report: Report | None = None,
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
    if isinstance(validation, ProblemRows):
        validation = LocalEngine(validation, loss, maps)
    # The sweep refuses an objective that is not finite.
    with (
        one_blas_thread(),
        np.errstate(over="ignore", invalid="ignore"),
        open_engine(rows, loss, maps, n_processes) as engine,
    ):
        learner = _Learner(engine, plan, maps, start, report, linear_gram, validation)
        if start.checkpoint is not None:
            name = fingerprint(plan, maps, start, engine.fingerprint())
            learner.resume(Checkpoint(start.checkpoint, name, maps.dims, plan.ranks))
        outcome = learner.run()
        if outcome is None:  # by now the memory of the sample is released
            learner.begin(sampled=False)
            outcome = learner.run()
        cores, reason = outcome  # type: ignore[misc]  # without samples there is one
        moments = measure_moments(engine, cores, start.seed) if measure else ()
    # In C order: file formats may silently store anything else wrongly.
    return TrainResult(tuple(np.ascontiguousarray(core) for core in cores), learner.history, str(reason), moments)


def shared_linear_gram(engine: Engine, maps: MapList) -> Array:
    """Gram matrix of the linear model: with a quadratic loss it is the same for all targets of the same rows."""
    with engine.linear() as linear:
        linear.score(np.zeros((1, 1 + sum(maps.linear_sizes()), 1)))
        gram: Array = linear.facts(Need(gram=True)).gram
        return gram


@dataclass
class _Learner:
    """One train in progress: which rows the sweeps see, and what is reported and kept after each of them."""

    _engine: Engine
    _plan: Settings
    _maps: MapList
    _given: Start
    _report: Report | None
    _linear_gram: Array | None
    _validation: Engine | None
    _checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        self._quadratic = get_loss(self._plan.loss).quadratic
        # Given cores are better than what a sample of the rows would make of them.
        self.begin(sampled=self._plan.sampling == "auto" and self._given.cores is None)

    def begin(self, sampled: bool) -> None:
        """Forget all sweeps, and show samples of the rows to the next ones or not."""
        plan, self._sampled = self._plan, sampled
        self._before: Progress | None = None
        self._best: tuple[float, tuple[Array, ...]] = math.inf, ()  # loss of the validation rows, and its cores
        self._since_best = 0
        self._rng = np.random.default_rng(self._given.seed)
        self.history: list[dict[str, Any]] = []
        self._stages = [(1.0, plan.max_sweeps)]
        if sampled:
            self._stages = sweep_samples(self._engine.n_distinct, plan.n_unknowns(self._maps.dims), plan.max_sweeps)

    def resume(self, checkpoint: Checkpoint) -> None:
        """Keep the state in this file from now on, and continue from its present state."""
        self._checkpoint, may_sample, before = checkpoint, self._sampled, checkpoint.load()
        if before is None:
            return
        self.begin(before.sampled)
        planned = before.stage < len(self._stages) and before.n_sweeps <= self._stages[before.stage][1]
        if not planned or (self._sampled and not may_sample):
            raise checkpoint.unusable("it has made sweeps that the plan of this fit does not have")
        self._before, self.history = before, before.history
        self._rng.bit_generator.state = before.random_state
        if self._report is not None:
            for record in self.history:
                self._report(record, before.cores)

    def _first_cores(self) -> list[Array]:
        plan, rng = self._plan, self._rng
        if self._given.cores is not None:
            return fit_ranks(self._given.cores, plan.ranks, rng)
        if plan.init == "random":
            return random_start(self._maps.dims, plan.ranks, rng)
        if plan.init == "dual":
            return dual_start(self._engine, self._maps, plan.ranks, plan.alpha, self._given.seed, rng)
        return linear_start(self._engine, self._maps, plan.ranks, plan.alpha, self._quadratic, rng, self._linear_gram)

    def run(self) -> tuple[Sequence[Array], str | None] | None:
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
            with whole if fraction == 1.0 else self._engine.sample(fraction, self._given.seed) as rows:
                state = self._sweep(rows, cores, stage, n_sweeps, position, done)
            if state is None:
                return None
            cores, position, reason = list(state.cores), state.position, state.stop_reason
        return self._best[1] or cores, reason

    def _sweep(
        self, rows: Engine, cores: list[Array], stage: int, n_sweeps: int, position: int, done: int
    ) -> SweepState | None:
        """Make the sweeps of a stage, or what is left of them, and return where the train stands.

        None if what was learned from a sample of the rows does not hold for more of them.
        """
        plan, whole = self._plan, self._stages[stage][0] == 1.0
        states = sweep_train(
            rows,
            cores,
            alpha=plan.alpha,
            solver=CoreSolver(plan.solver, self._quadratic),
            max_sweeps=n_sweeps - done,
            tol=plan.tol if whole else 0.0,
            rng=self._rng,
            position=position,
        )
        state: SweepState = next(states)  # type: ignore[assignment]  # a stream begins with the start
        # Random cores are not a model; any other start may be better than the result of the sweeps.
        if self._validation is not None and whole and done == 0 and (plan.init != "random" or self._given.cores):
            self._validate(state)
        if stage > 0 and done == 0 and not still_holds(self.history[-1]["objective"], state.objective):
            return None
        for following in states:
            if isinstance(following, CoreUpdate):
                continue
            record = {"sweep": len(self.history) + 1, "n_rows": rows.n_rows, "loss": following.loss}
            record |= {"objective": following.objective, "decrease": state.objective - following.objective}
            self.history.append({**record, "ranks": following.ranks, "seconds": following.seconds})
            state = following
            if self._checkpoint is not None:
                self._checkpoint.save(
                    Progress(
                        cores=[np.ascontiguousarray(core) for core in state.cores],
                        position=state.position,
                        sampled=self._sampled,
                        stage=stage,
                        n_sweeps=done + state.sweep,
                        stop_reason=state.stop_reason,
                        history=self.history,
                        random_state=dict(self._rng.bit_generator.state),
                    )
                )
            if self._validation is not None:
                self.history[-1]["validation_loss"] = self._validate(state, whole)
            if self._report is not None and self._report(self.history[-1], state.cores):
                return replace(state, stop_reason="stopped")
            if whole and self._validation is not None and self._since_best >= plan.patience:
                return state if state.stop_reason else replace(state, stop_reason="validation")
        return state

    def _validate(self, state: SweepState, counts: bool = True) -> float:
        """Loss of the validation rows; if it counts, the best train so far is remembered."""
        assert self._validation is not None
        self._validation.place(list(state.cores), state.position)
        loss = self._validation.mean_loss()
        if counts:
            self._since_best += 1
            if loss < self._best[0]:
                self._best, self._since_best = (loss, state.cores), 0
        return loss
