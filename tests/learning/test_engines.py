"""The in-memory engine at every site, moving right and left, against explicit matrices."""

import os
import signal
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from reference import (
    Problem,
    basis_vector,
    c_matrix,
    dense_tensor,
    left_vector,
    loss_curvatures,
    loss_slopes,
    loss_values,
    make_problem,
    right_vector,
)

from polytrain.learning import helpers
from polytrain.learning.gauge import fit_ranks, shift_left, shift_right
from polytrain.learning.problem import FACTORS, GRADIENT, Need

EVERYTHING = Need(gradient=True, gram=True, left=True, middle=True, right=True)

CASES = [
    # seed, dims, rank, rows, basis
    (0, (3,), 1, 20, "power"),
    (1, (2, 2, 2), 1, 15, "legendre"),
    (2, (2, 4, 3), (2, 3), 30, "chebyshev"),
    (3, (3, 2, 2, 4), (3, 4, 4), 30, "power"),
    (4, (3, 3, 3, 3), 5, 40, "legendre"),
    (5, (2, 3), 2, 1, "power"),
]


def _tolerance(dtype):
    return 1e-11 if dtype == np.float64 else 1e-4


def _check_site(engine, problem, cores, k, tol):
    """Everything that the engine can be asked at core k."""
    rng = np.random.default_rng(k)
    core = cores[k] + 0.3 * rng.standard_normal(cores[k].shape)  # not the train's own core: nothing may be cached
    step = rng.standard_normal(core.shape)
    explicit = c_matrix(cores, k, problem.columns, problem.basis)
    scores = explicit @ core.ravel() + (0.0 if problem.offset is None else problem.offset)
    weighted_slopes = problem.weights * loss_slopes(problem.loss, problem.target, scores)
    curvatures = problem.weights * loss_curvatures(problem.loss, problem.target, scores)

    def close(actual, desired):
        np.testing.assert_allclose(actual, desired, rtol=tol, atol=tol * max(1.0, np.abs(desired).max()))

    engine.score(core)
    facts = engine.facts(EVERYTHING)
    close(facts.loss, problem.weights @ loss_values(problem.loss, problem.target, scores))
    close(facts.gradient, (explicit.T @ weighted_slopes).reshape(core.shape))
    gram = explicit.T @ (curvatures[:, None] * explicit)
    close(facts.gram, gram)
    close(engine.product(step), (gram @ step.ravel()).reshape(core.shape))

    # The direction may be put together from products, or be that of a step.
    engine.clear_direction()
    engine.extend_direction(0.5)
    engine.product(2.0 * step)
    engine.extend_direction(-1.0)
    moved = scores - 1.5 * explicit @ step.ravel()
    close(engine.try_step(1.0, core - 1.5 * step), problem.weights @ loss_values(problem.loss, problem.target, moved))

    # Along a step: probing must not move anything, advancing must equal scoring the moved core.
    engine.set_direction(step)
    for length in (1.0, 0.25):
        moved = scores + length * explicit @ step.ravel()
        close(
            engine.try_step(length, core + length * step),
            problem.weights @ loss_values(problem.loss, problem.target, moved),
        )
    close(engine.mean_loss(), problem.weights @ loss_values(problem.loss, problem.target, scores))
    engine.try_step(0.5, core + 0.5 * step)
    engine.accept()
    scores = scores + 0.5 * explicit @ step.ravel()
    close(engine.mean_loss(), problem.weights @ loss_values(problem.loss, problem.target, scores))
    weighted_slopes = problem.weights * loss_slopes(problem.loss, problem.target, scores)
    curvatures = problem.weights * loss_curvatures(problem.loss, problem.target, scores)
    facts = engine.facts(Need(gradient=True, gram=True))
    assert facts.left is None
    close(facts.gradient, (explicit.T @ weighted_slopes).reshape(core.shape))
    close(facts.gram, explicit.T @ (curvatures[:, None] * explicit))
    scores = scores - 0.75 * explicit @ step.ravel()
    engine.try_step(-0.75, core - 0.25 * step)
    engine.accept()
    close(engine.mean_loss(), problem.weights @ loss_values(problem.loss, problem.target, scores))
    curvatures = problem.weights * loss_curvatures(problem.loss, problem.target, scores)

    # The factors are weighted second moments; only their Kronecker product has a meaning, so compare that.
    sides = _environments(cores, k, problem)
    seconds = [(side * curvatures) @ side.T for side in sides]
    expected = np.kron(seconds[0], np.kron(seconds[1], seconds[2])) / curvatures.sum() ** 2
    factors = engine.facts(FACTORS)
    assert factors.gram is None
    left, middle, right = factors.left, factors.middle, factors.right
    close(np.kron(left, np.kron(middle, right)), expected)


def _environments(cores, k, problem):
    rows = problem.columns.astype(np.float64).T
    left = np.array([left_vector(cores, k, row, problem.basis) for row in rows]).T
    values = np.array([basis_vector(problem.basis, row[k], cores[k].shape[1]) for row in rows]).T
    right = np.array([right_vector(cores, k, row, problem.basis) for row in rows]).T
    return left, values, right


def _walk(problem, check, rng):
    """Go right through all sites and back again, calling ``check(engine, cores, k)`` at each of them."""
    ranks = (1, *(core.shape[2] for core in problem.cores))
    cores = fit_ranks(problem.cores, ranks, rng)
    engine = problem.engine()
    engine.place(cores)
    last = len(cores) - 1
    for k in range(last):
        check(engine, cores, k)
        cores[k], cores[k + 1] = shift_right(cores[k], cores[k + 1], rng)
        engine.move(cores[k], to_right=True)
    for k in range(last, 0, -1):
        check(engine, cores, k)
        cores[k], cores[k - 1] = shift_left(cores[k], cores[k - 1], rng)
        engine.move(cores[k], to_right=False)
    check(engine, cores, 0)
    return cores


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("seed", "dims", "rank", "n_rows", "basis"), CASES)
def test_engine_matches_reference_at_every_site(seed, dims, rank, n_rows, basis, loss, dtype):
    problem = make_problem(seed, dims, rank, n_rows, loss, basis).with_dtype(dtype)
    visited = []

    def check(engine, cores, k):
        visited.append(k)
        _check_site(engine, problem, cores, k, _tolerance(dtype))

    cores = _walk(problem, check, np.random.default_rng(seed))
    d = len(dims)
    assert visited == [*range(d), *range(d - 2, -1, -1)]
    np.testing.assert_allclose(dense_tensor(cores), dense_tensor(problem.cores), atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_an_offset_is_added_to_every_score(loss):
    problem = make_problem(3, (3, 2, 4), (3, 4), 30, loss)
    problem = replace(problem, offset=np.random.default_rng(1).standard_normal(30))

    def check(engine, cores, k):
        _check_site(engine, problem, cores, k, _tolerance(np.float64))

    _walk(problem, check, np.random.default_rng(0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_engine_with_more_rows_than_a_block(loss, dtype):
    problem = make_problem(7, (2, 3, 2), 2, 9_000, loss, "power").with_dtype(dtype)

    def check(engine, cores, k):
        _check_site(engine, problem, cores, k, _tolerance(dtype))

    ranks = (1, 2, 2, 1)
    cores = fit_ranks(problem.cores, ranks, np.random.default_rng(0))
    engine = problem.engine()
    engine.place(cores)
    cores[0], cores[1] = shift_right(cores[0], cores[1], np.random.default_rng(0))
    engine.move(cores[0], to_right=True)
    check(engine, cores, 1)


def test_answers_are_the_same_to_the_last_bit_on_any_number_of_processes():
    problem = make_problem(11, (2, 3, 2), 2, 50_000, "logistic", "power")
    cores = fit_ranks(problem.cores, (1, 2, 2, 1), np.random.default_rng(0))
    answers = []
    for n_processes in (1, 2, 3):
        with problem.engine(n_processes) as engine:
            engine.place(cores)
            engine.move(cores[0], to_right=True)
            engine.score(cores[1])
            facts = engine.facts(EVERYTHING)
            step = facts.gradient
            answers.append([*facts, engine.product(step)])
            engine.extend_direction(0.1)
            answers[-1].append(engine.try_step(1.0, cores[1] + 0.1 * step))
    for others in answers[1:]:
        for one, other in zip(answers[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_a_killed_helper_is_reported_and_the_next_fit_works():
    problem = make_problem(12, (2, 3, 2), 2, 20_000, "squared", "power")
    cores = fit_ranks(problem.cores, (1, 2, 2, 1), np.random.default_rng(0))
    with problem.engine(2) as engine:
        engine.place(cores)
        before = engine.facts(GRADIENT).gradient
        known = [helper for helper in helpers._pool.all if helper.is_running]  # some of other tests may have ended
        [helper] = [helper for helper in known if helper not in helpers._pool.idle]
        os.kill(helper.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="ended unexpectedly"):
            [engine.facts(GRADIENT) for _ in range(100)]
    with problem.engine(2) as engine:
        engine.place(cores)
        np.testing.assert_array_equal(engine.facts(GRADIENT).gradient, before)


def test_engine_stands_at_the_first_core_with_its_scores_after_place():
    problem = make_problem(8, (3, 2, 3), 2, 20, "logistic")
    cores = fit_ranks(problem.cores, (1, 2, 2, 1), np.random.default_rng(0))
    engine = problem.engine()
    engine.place(cores)
    scores = c_matrix(cores, 0, problem.columns, "power") @ cores[0].ravel()
    expected = problem.weights @ loss_values("logistic", problem.target, scores)
    assert engine.mean_loss() == pytest.approx(expected, rel=1e-12)
    assert engine.n_rows == 20


@pytest.mark.parametrize("basis", ["power", "legendre"])
def test_kronecker_factors_are_exact_on_a_full_factorial_grid(basis):
    levels = [np.linspace(-1, 1, 4), np.linspace(-0.8, 1, 3), np.linspace(-1, 0.7, 5)]
    columns = np.array(list(product(*levels))).T
    n_rows = columns.shape[1]
    source = make_problem(9, (3, 3, 3), 3, 4, "squared", basis)
    problem = Problem(columns, np.ones(n_rows), np.full(n_rows, 1 / n_rows), "squared", basis, (3, 3, 3), source.cores)

    def check(engine, cores, k):
        engine.score(cores[k])
        facts = engine.facts(EVERYTHING)
        left, middle, right, gram = facts.left, facts.middle, facts.right, facts.gram
        np.testing.assert_allclose(np.kron(left, np.kron(middle, right)), gram, atol=1e-12 * np.abs(gram).max())

    _walk(problem, check, np.random.default_rng(0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("n_rows", [1, 60, 9000])
def test_linear_rows_match_the_explicit_linear_model(n_rows, loss, dtype):
    problem = make_problem(10, (3, 2, 4), 2, n_rows, loss).with_dtype(dtype)
    rows = problem.engine().linear()
    explicit = np.vstack([np.ones(n_rows), problem.columns.astype(np.float64)]).T
    rng = np.random.default_rng(0)
    core, step = rng.standard_normal((1, 4, 1)), rng.standard_normal((1, 4, 1))
    scores = explicit @ core.ravel()
    curvatures = problem.weights * loss_curvatures(loss, problem.target, scores)
    gram = explicit.T @ (curvatures[:, None] * explicit)

    rows.score(core)
    assert rows.n_rows == n_rows
    expected_loss = problem.weights @ loss_values(loss, problem.target, scores)
    assert rows.mean_loss() == pytest.approx(expected_loss, rel=1e-12)
    slopes = problem.weights * loss_slopes(loss, problem.target, scores)
    facts = rows.facts(Need(gradient=True, gram=True))
    np.testing.assert_allclose(facts.gradient, (explicit.T @ slopes).reshape(1, 4, 1), atol=1e-12)
    np.testing.assert_allclose(facts.gram, gram, atol=1e-12)
    rows.set_direction(step)
    moved = scores + 0.5 * explicit @ step.ravel()
    expected_loss = problem.weights @ loss_values(loss, problem.target, moved)
    assert rows.try_step(0.5, core + 0.5 * step) == pytest.approx(expected_loss, rel=1e-12)
    rows.accept()
    assert rows.mean_loss() == pytest.approx(expected_loss, rel=1e-12)
