"""Sweeps: the gauge and the objective at every core update, monotony, stopping."""

from itertools import pairwise

import numpy as np
import pytest
from reference import (
    dense_tensor,
    general_d,
    is_left_orthogonal,
    is_right_orthogonal,
    make_problem,
    objective,
)

from polytrain.learning.core_solvers import SOLVERS, CoreSolver
from polytrain.learning.engines import LocalEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.start import linear_start, random_start
from polytrain.learning.sweep import sweep_train
from polytrain.tensor import clip_ranks

ALPHA = 1e-3
BASES = ["power", "chebyshev", "legendre"]
LOSSES = ["squared", "logistic"]


class TrackingEngine(LocalEngine):
    """An engine that remembers the whole train as the sweep shows it, core by core."""

    def place(self, cores, position=0):
        self.seen, self.at = list(cores), len(cores) - 1
        super().place(cores, position)
        self.seen, self.at = list(cores), 0

    def move(self, core, to_right):
        self.seen[self.at] = core
        self.at += 1 if to_right else -1
        super().move(core, to_right)


class WatchingSolver:
    """A core solver that calls ``watch(engine, cores)`` before and after each of its updates."""

    def __init__(self, name, quadratic, watch):
        self.inner, self.watch = CoreSolver(name, quadratic), watch

    def update(self, rows, core, alpha):
        rows.seen[rows.at] = core
        self.watch(rows, list(rows.seen))
        core = self.inner.update(rows, core, alpha)
        rows.seen[rows.at] = core
        self.watch(rows, list(rows.seen))
        return core


def _prepare(problem, rank, start, seed=0):
    rng = np.random.default_rng(seed)
    engine = TrackingEngine(problem.rows, get_loss(problem.loss), problem.maps)
    ranks = clip_ranks(problem.dims, rank)
    if start == "linear":
        return engine, linear_start(engine, problem.maps, ranks, ALPHA, problem.loss == "squared", rng), rng
    return engine, random_start(problem.dims, ranks, rng), rng


def _sweep(problem, rank=5, start="linear", solver="exact", watch=None, max_sweeps=4, tol=0.0):
    engine, cores, rng = _prepare(problem, rank, start)
    quadratic = problem.loss == "squared"
    solver = CoreSolver(solver, quadratic) if watch is None else WatchingSolver(solver, quadratic, watch)
    return list(sweep_train(engine, cores, alpha=ALPHA, solver=solver, max_sweeps=max_sweeps, tol=tol, rng=rng))


@pytest.mark.parametrize("start", ["linear", "random"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("dims", "rank"),
    [((4,), 1), ((2, 2, 2), 1), ((2, 4, 3), (2, 3)), ((3, 2, 2, 3), 4), ((2, 2, 2, 2, 2), (2, 4, 3, 2))],
)
def test_gauge_and_objective_at_every_core_update(dims, rank, loss, start):
    """Orthogonality, <A, A> = |G_k|^2, D_k = I, and the engine's objective equal to the dense one: before and after."""
    problem = make_problem(3, dims, rank, 30, loss, "legendre")
    visited = []

    def watch(engine, cores):
        k = engine.at
        visited.append(k)
        assert all(is_left_orthogonal(core) for core in cores[:k])
        assert all(is_right_orthogonal(core) for core in cores[k + 1 :])
        square = np.sum(cores[k] ** 2)
        assert square == pytest.approx(np.sum(dense_tensor(cores) ** 2), rel=1e-11)
        np.testing.assert_allclose(general_d(cores, k), np.eye(cores[k].size), atol=1e-11)
        engine.score(cores[k])
        assert engine.mean_loss() + ALPHA / 2 * square == pytest.approx(objective(cores, problem, ALPHA), rel=1e-11)

    states = _sweep(problem, rank, start, watch=watch, max_sweeps=3)
    last = len(dims) - 1
    one_way, back = list(range(last)), list(range(last, 0, -1))
    expected = [*one_way, *back, *one_way] if last else [0, 0, 0]
    assert visited == [k for k in expected[: len(visited) // 2] for _ in range(2)]
    assert len(visited) // 2 == (len(states) - 1) * max(last, 1)
    for state in states:
        assert state.objective == pytest.approx(objective(state.cores, problem, ALPHA), rel=1e-11)
        assert all(is_left_orthogonal(core) for core in state.cores[: state.position])
        assert all(is_right_orthogonal(core) for core in state.cores[state.position + 1 :])
        assert (*(core.shape[0] for core in state.cores), 1) == clip_ranks(dims, rank)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("start", ["linear", "random"])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_never_rises(loss, solver, basis, start, dtype):
    """Neither over a sweep nor over any single core update."""
    slack = 1e-10 if dtype == np.float64 else 1e-5
    # L-BFGS takes hundreds of passes over the rows where the others take a few, so it gets a smaller train.
    dims = (3, 3, 3) if solver == "lbfgs" else (3, 3, 3, 3, 3)
    for seed, n_rows in ((0, 200), (1, 60)):
        problem = make_problem(seed, dims, 5, n_rows, loss, basis).with_dtype(dtype)
        trace = []

        def watch(engine, cores, trace=trace):
            core = cores[engine.at]
            engine.score(core)
            trace.append(engine.mean_loss() + ALPHA / 2 * np.sum(core**2))

        states = _sweep(problem, 5, start, solver, watch=watch, max_sweeps=3)
        assert len(trace) == 2 * (len(dims) - 1) * (len(states) - 1)
        assert all(after <= before * (1 + slack) for before, after in pairwise(trace))
        objectives = [state.objective for state in states]
        assert all(after <= before * (1 + slack) for before, after in pairwise(objectives))
        assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_agree_once_converged_on_a_full_rank_train(loss):
    """At full rank the middle core holds every coefficient, so all solvers must find the one global minimum."""
    problem = make_problem(5, (2, 3, 2), 2, 40, loss)
    finals = [_sweep(problem, 2, "linear", solver, max_sweeps=20)[-1].objective for solver in SOLVERS]
    np.testing.assert_allclose(finals, finals[0], rtol=1e-8)


@pytest.mark.parametrize("max_sweeps", [0, 1, 3])
def test_stops_after_max_sweeps(max_sweeps):
    problem = make_problem(6, (3, 3, 3, 3), 3, 50, "squared")
    states = _sweep(problem, 3, "random", max_sweeps=max_sweeps)
    assert [state.sweep for state in states] == list(range(max_sweeps + 1))
    assert [state.stop_reason for state in states] == [None] * max_sweeps + ["max_sweeps"]
    assert [state.position for state in states] == [0, 3, 0, 3][: max_sweeps + 1]


def test_stops_by_the_papers_rule():
    problem = make_problem(6, (3, 3, 3, 3), 3, 50, "squared")
    tol = 1e-3
    states = _sweep(problem, 3, "random", max_sweeps=100, tol=tol)
    changes = [abs(before.objective - after.objective) / before.objective for before, after in pairwise(states)]
    assert states[-1].stop_reason == "tolerance"
    assert changes[-1] <= tol
    assert all(change > tol for change in changes[:-1])
    assert len(changes) > 2


def test_the_given_cores_are_not_modified():
    problem = make_problem(6, (3, 3, 3), 3, 50, "squared")
    engine, cores, rng = _prepare(problem, 3, "random")
    kept, copies = list(cores), [core.copy() for core in cores]
    list(sweep_train(engine, cores, alpha=ALPHA, solver=CoreSolver("exact", True), max_sweeps=2, tol=0.0, rng=rng))
    for core, original, copy in zip(cores, kept, copies, strict=True):
        assert core is original
        np.testing.assert_array_equal(core, copy)


def test_an_objective_that_is_not_finite_is_refused():
    problem = make_problem(6, (3, 3, 3), 3, 50, "squared")
    problem.columns[0] = 1e200
    rng = np.random.default_rng(0)
    cores = random_start(problem.dims, (1, 3, 3, 1), rng)
    engine = problem.engine()
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match=r"objective became (inf|nan)"):
        next(sweep_train(engine, cores, alpha=ALPHA, solver=CoreSolver("exact", True), max_sweeps=1, tol=0.0, rng=rng))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs"])
def test_no_core_update_raises_the_objective_and_a_sweep_ends_where_its_last_update_did(loss, solver):
    problem = make_problem(6, (2, 3, 2), 3, 30, loss)
    engine, cores, rng = _prepare(problem, 3, "random")
    sites, objectives = [], []

    class Recorder(CoreSolver):
        def update(self, rows, core, alpha):
            core = super().update(rows, core, alpha)
            sites.append(rows._at.site)
            objectives.append(rows.mean_loss() + alpha / 2 * float(np.vdot(core, core)))
            return core

    recorder = Recorder(solver, loss == "squared")
    start, first, second = sweep_train(engine, cores, alpha=ALPHA, solver=recorder, max_sweeps=2, tol=0.0, rng=rng)
    assert sites == [0, 1, 2, 1]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise([start.objective, *objectives]))
    # The gauge moves between the last update of a sweep and its end, the train does not.
    for last, state in ((objectives[1], first), (objectives[3], second)):
        assert last == pytest.approx(objective(list(state.cores), problem, ALPHA), rel=1e-11)
        assert last == pytest.approx(state.objective, rel=1e-11)
