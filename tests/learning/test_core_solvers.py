"""One core update against the minimiser of the core problem, computed from explicit matrices."""

import numpy as np
import pytest
from reference import (
    c_matrix,
    general_d,
    loss_curvatures,
    loss_slopes,
    loss_values,
    make_problem,
    objective,
)

from polytrain.learning import core_solvers
from polytrain.learning.core_solvers import SOLVERS, CoreSolver, solve_linear
from polytrain.learning.engines.tasks import TaskEngine
from polytrain.learning.gauge import fit_ranks, shift_right
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import GRADIENT, Need
from polytrain.tensor import clip_ranks
from power_models import power_regressor

ALPHA = 1e-2


class AtOnce:
    """A runner of tasks whose handles are the results."""

    def map(self, function, *columns):
        return [function(*row) for row in zip(*columns, strict=True)]

    def collect(self, handles):
        return handles


BASES = ["power", "chebyshev", "legendre"]


def _stand_at(problem, rank, site):
    """An engine at this site of an orthogonal train, and the train."""
    rng = np.random.default_rng(0)
    cores = fit_ranks(problem.cores, clip_ranks(problem.dims, rank), rng)
    engine = problem.engine()
    engine.place(cores)
    for k in range(site):
        cores[k], cores[k + 1] = shift_right(cores[k], cores[k + 1], rng)
        engine.move(cores[k], to_right=True)
    engine.score(cores[site])
    return engine, cores


def _replaced(cores, k, core):
    return [*cores[:k], core, *cores[k + 1 :]]


def _squared_minimiser(problem, cores, k, alpha):
    """The paper's normal equations, with weights that sum to 1 in place of 1 / N."""
    explicit = c_matrix(cores, k, problem.columns, problem.basis)
    matrix = explicit.T @ (problem.weights[:, None] * explicit) + 0.5 * alpha * general_d(cores, k)
    solution = np.linalg.solve(matrix, explicit.T @ (problem.weights * problem.target))
    return solution.reshape(cores[k].shape)


def _logistic_minimiser(problem, cores, k, alpha):
    """Damped Newton on the explicit problem, to rounding."""
    explicit = c_matrix(cores, k, problem.columns, problem.basis)
    regular = alpha * general_d(cores, k)

    def value(core):
        return problem.weights @ loss_values("logistic", problem.target, explicit @ core) + core @ regular @ core / 2

    core = np.zeros(explicit.shape[1])
    for _ in range(100):
        scores = explicit @ core
        gradient = explicit.T @ (problem.weights * loss_slopes("logistic", problem.target, scores)) + regular @ core
        curvatures = problem.weights * loss_curvatures("logistic", problem.target, scores)
        step = -np.linalg.solve(explicit.T @ (curvatures[:, None] * explicit) + regular, gradient)
        if np.abs(gradient).max() < 1e-14:
            break
        length = 1.0
        while value(core + length * step) > value(core) and length > 1e-6:
            length /= 2
        core = core + length * step
    return core.reshape(cores[k].shape)


@pytest.mark.parametrize("site", [0, 1, 2])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
def test_exact_update_of_the_squared_loss_is_the_minimiser(alpha, basis, site):
    problem = make_problem(site, (3, 2, 4), (3, 4), 60, "squared", basis)
    engine, cores = _stand_at(problem, (3, 4), site)
    core = CoreSolver("exact", True).update(engine, cores[site], alpha)
    np.testing.assert_allclose(core, _squared_minimiser(problem, cores, site, alpha), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs", "auto"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_scores_follow_the_update(loss, solver):
    problem = make_problem(1, (3, 3, 3, 3, 3), 5, 150, loss)
    engine, cores = _stand_at(problem, 5, 2)
    core = CoreSolver(solver, loss == "squared").update(engine, cores[2], ALPHA)
    followed = engine.mean_loss()
    engine.score(core)
    assert followed == pytest.approx(engine.mean_loss(), rel=1e-12)


def _share_of_the_decrease(problem, solver, minimiser):
    """Decrease of the objective by an update of the third core, divided by the largest possible one."""
    engine, cores = _stand_at(problem, 5, 2)
    assert cores[2].size > 64  # else cg would take the exact route
    before = objective(cores, problem, ALPHA)
    best = objective(_replaced(cores, 2, minimiser(problem, cores, 2, ALPHA)), problem, ALPHA)
    core = solver.update(engine, cores[2], ALPHA)
    reached = objective(_replaced(cores, 2, core), problem, ALPHA)
    assert best * (1 - 1e-12) <= reached
    return (before - reached) / (before - best)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(2))
def test_logistic_update_is_nearly_the_minimiser(seed, solver):
    problem = make_problem(seed, (3, 3, 3, 3, 3), 5, 150, "logistic")
    assert _share_of_the_decrease(problem, CoreSolver(solver, False), _logistic_minimiser) >= 0.99


@pytest.mark.parametrize("site", [0, 1, 2])
@pytest.mark.parametrize("basis", BASES)
def test_repeated_logistic_updates_meet_the_first_order_condition(basis, site):
    problem = make_problem(site, (3, 2, 4), (3, 4), 60, "logistic", basis)
    engine, cores = _stand_at(problem, (3, 4), site)
    core = cores[site]
    for _ in range(5):  # each call takes at least one more Newton step
        core = CoreSolver("exact", False).update(engine, core, ALPHA)
    explicit = c_matrix(cores, site, problem.columns, basis)
    slopes = problem.weights * loss_slopes("logistic", problem.target, explicit @ core.ravel())
    gradient = explicit.T @ slopes + ALPHA * general_d(cores, site) @ core.ravel()
    assert np.abs(gradient).max() < 1e-9
    np.testing.assert_allclose(core, _logistic_minimiser(problem, cores, site, ALPHA), atol=1e-6)


@pytest.mark.parametrize("solver", ["cg", "lbfgs", "auto"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("basis", BASES)
def test_inexact_updates_of_the_squared_loss_reach_nearly_the_exact_objective(basis, seed, solver):
    problem = make_problem(seed, (3, 3, 3, 3, 3), 5, 250, "squared", basis)
    # A random train, and hardly more rows than unknowns: nothing is harder for conjugate gradients.
    assert _share_of_the_decrease(problem, CoreSolver(solver, True), _squared_minimiser) >= 0.8


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_an_update_at_the_minimum_stays_there(loss, solver):
    problem = make_problem(4, (3, 3, 3, 3, 3), 5, 150, loss)
    engine, cores = _stand_at(problem, 5, 2)
    minimiser = _squared_minimiser if loss == "squared" else _logistic_minimiser
    core = minimiser(problem, cores, 2, ALPHA)
    engine.score(core)
    best = objective(_replaced(cores, 2, core), problem, ALPHA)
    updated = CoreSolver(solver, loss == "squared").update(engine, core, ALPHA)
    assert objective(_replaced(cores, 2, updated), problem, ALPHA) == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_regularisation_and_fewer_rows_than_unknowns(loss, solver):
    """The Hessian is singular; the update must still be finite and no worse."""
    problem = make_problem(5, (3, 3, 3, 3, 3), 5, 20, loss)
    engine, cores = _stand_at(problem, 5, 2)
    before = engine.mean_loss()
    core = CoreSolver(solver, loss == "squared").update(engine, cores[2], 0.0)
    assert np.isfinite(core).all()
    engine.score(core)
    assert engine.mean_loss() <= before


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("basis", BASES)
def test_gradient_and_hessian_match_central_differences_of_the_objective(basis, loss):
    problem = make_problem(6, (2, 3, 2), 2, 12, loss, basis)
    engine, cores = _stand_at(problem, 2, 1)
    shape = cores[1].shape
    h = 1e-4

    def value(shift):
        return objective(_replaced(cores, 1, cores[1] + shift.reshape(shape)), problem, ALPHA)

    units = h * np.eye(cores[1].size)
    gradient = np.array([(value(unit) - value(-unit)) / (2 * h) for unit in units])
    np.testing.assert_allclose((engine.facts(GRADIENT).gradient + ALPHA * cores[1]).ravel(), gradient, atol=1e-7)
    hessian = np.array(
        [[(value(u + v) - value(u - v) - value(v - u) + value(-u - v)) / (4 * h * h) for v in units] for u in units]
    )
    np.testing.assert_allclose(engine.facts(Need(gram=True)).gram + ALPHA * np.eye(len(units)), hessian, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_solve_linear_meets_the_first_order_condition_to_rounding(loss):
    problem = make_problem(7, (3, 2, 4), 2, 80, loss)
    model = solve_linear(problem.engine().linear(), 3, ALPHA, loss == "squared")
    assert model.shape == (1, 4, 1)
    explicit = np.vstack([np.ones(80), problem.columns]).T
    slopes = problem.weights * loss_slopes(loss, problem.target, explicit @ model.ravel())
    assert np.abs(explicit.T @ slopes + ALPHA * model.ravel()).max() < 1e-13


@pytest.mark.parametrize("where", ["local", "tasks"])
@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1e-6, 1e-2, 10.0])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_update_in_the_space_of_the_rows_is_the_exact_one(loss, alpha, where, monkeypatch):
    monkeypatch.setattr(core_solvers, "_MANY_UNKNOWNS", 1)
    problem = make_problem(8, (3, 3, 3, 3, 3), 6, 40, loss, "legendre")
    engine, cores = _stand_at(problem, 6, 2)
    assert cores[2].size > 40
    if where == "tasks":
        engine = TaskEngine(AtOnce(), [problem.rows.block(slice(0, 9)), problem.rows.block(slice(9, 40))],
                            get_loss(loss), problem.maps)  # fmt: skip
        engine.place(fit_ranks(problem.cores, clip_ranks(problem.dims, 6), np.random.default_rng(0)))
        for k in range(2):
            engine.move(cores[k], to_right=True)
        engine.score(cores[2])
    taken = []
    direction = core_solvers._RowSpace.direction

    def spy(*arguments):
        taken.append(arguments)
        return direction(*arguments)

    monkeypatch.setattr(core_solvers._RowSpace, "direction", spy)
    before = engine.mean_loss() + alpha / 2 * np.sum(cores[2] ** 2)
    core = CoreSolver("auto", loss == "squared").update(engine, cores[2], alpha)
    assert taken
    reached = objective(_replaced(cores, 2, core), problem, alpha)
    assert reached <= before * (1 + 1e-12)
    if alpha < 1e-9:  # many cores fit all rows
        assert reached < 1e-9 * before or loss == "logistic"
        assert reached < 0.5 * before
    elif loss == "squared":
        best = _squared_minimiser(problem, cores, 2, alpha)
        np.testing.assert_allclose(core, best, atol=1e-7 * np.abs(best).max())
    else:
        best = objective(_replaced(cores, 2, _logistic_minimiser(problem, cores, 2, alpha)), problem, alpha)
        assert before - reached >= 0.99 * (before - best)


def test_surroundings_are_the_factors_of_the_design_matrix():
    problem = make_problem(9, (3, 2, 4), (3, 4), 30, "logistic", "chebyshev")
    engine, cores = _stand_at(problem, (3, 4), 1)
    left, values, right, curvature = engine.local_factors()
    explicit = np.einsum("aj,ij,bj->jaib", left, values, right).reshape(30, -1)
    np.testing.assert_allclose(explicit, c_matrix(cores, 1, problem.columns, "chebyshev"), atol=1e-12)
    scores = explicit @ cores[1].ravel()
    expected = problem.weights * loss_curvatures("logistic", problem.target, scores)
    np.testing.assert_allclose(curvature, expected, atol=1e-14)


def test_rows_that_depend_on_each_other_do_not_stop_an_update():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(100, 12)), 3, axis=0)
    y = rng.normal(size=300)
    model = power_regressor(basis="spline", rank=8, alpha=1e-6, bandwidth=30.0, max_sweeps=1, random_state=0)
    assert np.isfinite(model.fit(X, y).predict(X)).all()
    assert min(record["decrease"] for record in model.history_) >= 0


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_many_rows_are_left_to_conjugate_gradients_even_with_more_unknowns(loss, monkeypatch):
    monkeypatch.setattr(core_solvers, "_MANY_UNKNOWNS", 1)
    monkeypatch.setattr(core_solvers, "_MANY_ROWS", 30)
    problem = make_problem(8, (3, 3, 3, 3, 3), 6, 40, loss, "legendre")
    engine, cores = _stand_at(problem, 6, 2)
    assert cores[2].size > 40
    monkeypatch.delattr(core_solvers._RowSpace, "direction")
    before = engine.mean_loss() + ALPHA / 2 * np.sum(cores[2] ** 2)
    core = CoreSolver("auto", loss == "squared").update(engine, cores[2], ALPHA)
    assert objective(_replaced(cores, 2, core), problem, ALPHA) < before


def test_the_estimated_work_follows_the_route_that_is_taken():
    work = core_solvers.update_work
    assert work((16, 17, 16), 1000, False, 17) == pytest.approx(1e9 / 3 + 4352e6)  # in the space of the rows
    assert work((16, 17, 16), 4000, False, 17) == 24 * 4000 * 4352  # by conjugate gradients
    assert work((16, 17, 16), 4000, False, 2) == 24 * 4000 * 512  # between knots
    assert work((16, 17, 16), 4000, True, 17) == pytest.approx(4352**3 / 3 + 4000 * 17 * 256 * 256 / 2)  # by moments
    assert work((2, 3, 2), 4000, False, 3) == pytest.approx(12**3 / 3 + 4000 * 3 * 16 / 2)
