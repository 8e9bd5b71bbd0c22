"""Learning one train from start to record."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from reference import dense_tensor, make_problem, objective

from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train, shared_linear_gram
from polytrain.tensor import clip_ranks

DIMS = (3, 3, 3)
PLAN = Settings(
    loss="logistic",
    rank=clip_ranks(DIMS, 2),
    alpha=1e-3,
    init="linear",
    solver="auto",
    max_sweeps=3,
    tol=0.0,
)


def _learn(plan=PLAN, seed=0, weights_factor=1.0, start=None, **options):
    problem = make_problem(2, DIMS, 2, 60, plan.loss)
    rows = ProblemRows.make(problem.columns, problem.target, problem.weights * weights_factor)
    return problem, learn_train(plan, problem.maps, rows, Start(seed, start), **options)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_history_has_one_record_per_sweep_that_ends_at_the_returned_cores(loss):
    plan = replace(PLAN, loss=loss)
    problem, result = _learn(plan)
    assert [record["sweep"] for record in result.history] == [1, 2, 3]
    assert result.stop_reason == "max_sweeps"
    final = result.history[-1]
    assert final["objective"] == pytest.approx(objective(result.cores, problem, plan.alpha), rel=1e-11)
    square = np.sum(dense_tensor(result.cores) ** 2)
    assert final["loss"] == pytest.approx(final["objective"] - plan.alpha / 2 * square, rel=1e-10)
    for before, after in pairwise(result.history):
        assert after["decrease"] == pytest.approx(before["objective"] - after["objective"], abs=1e-15)
    assert all(record["decrease"] >= -1e-12 and record["seconds"] >= 0 for record in result.history)
    assert all(record["ranks"] == plan.ranks for record in result.history)


def test_first_decrease_is_measured_from_the_start():
    problem, started = _learn(replace(PLAN, max_sweeps=0))
    assert started.history == []
    _, result = _learn()
    first = result.history[0]
    start = objective(started.cores, problem, PLAN.alpha)
    assert first["decrease"] == pytest.approx(start - first["objective"], rel=1e-9)


def test_report_sees_every_record():
    seen = []
    _, result = _learn(report=lambda record, cores: seen.append(record))
    assert seen == result.history


def test_same_seed_same_cores_and_other_seed_other_cores():
    plan = replace(PLAN, rank=clip_ranks(DIMS, 3))  # the linear model fills two slots; the third is random
    first, second, third = (_learn(plan, seed=seed)[1] for seed in (3, 3, 4))
    for core, same, other in zip(first.cores, second.cores, third.cores, strict=True):
        np.testing.assert_array_equal(core, same)
        assert not np.array_equal(core, other)


def test_only_the_ratios_of_weights_matter():
    _, first = _learn()
    _, second = _learn(weights_factor=1e6)
    for core, other in zip(first.cores, second.cores, strict=True):
        np.testing.assert_allclose(core, other, atol=1e-8)


def test_cores_are_contiguous_float64():
    _, result = _learn()
    assert all(core.flags.c_contiguous and core.dtype == np.float64 for core in result.cores)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_given_start_is_adapted_to_the_plans_ranks(rank):
    _, result = _learn(replace(PLAN, max_sweeps=2))
    plan = replace(PLAN, rank=clip_ranks(DIMS, rank), max_sweeps=0)
    problem, started = _learn(plan, start=result.cores)
    assert (*(core.shape[0] for core in started.cores), 1) == plan.ranks
    if rank >= 2:
        np.testing.assert_allclose(dense_tensor(started.cores), dense_tensor(result.cores), atol=1e-12)
        assert objective(started.cores, problem, PLAN.alpha) == pytest.approx(result.history[-1]["objective"])


def test_random_init_does_not_start_at_the_linear_model():
    _, linear = _learn(replace(PLAN, max_sweeps=0))
    _, random = _learn(replace(PLAN, max_sweeps=0, init="random"))
    products = [dense_tensor(result.cores)[1:, 1:, 1:] for result in (linear, random)]
    assert np.abs(products[0]).max() < 1e-12
    assert np.abs(products[1]).max() > 1e-3


def test_start_does_not_depend_on_number_or_order_of_rows():
    """The random directions, not only the function, must be the same for repeated and permuted rows."""
    problem = make_problem(2, DIMS, 2, 60, "squared")
    plan = replace(PLAN, loss="squared", rank=clip_ranks(DIMS, 3), max_sweeps=0)
    plain = learn_train(plan, problem.maps, problem.rows, Start(0))
    order = np.random.default_rng(0).permutation(np.tile(np.arange(60), 2))
    rows = ProblemRows.make(problem.columns[:, order], problem.target[order], problem.weights[order])
    again = learn_train(plan, problem.maps, rows, Start(0))
    for core, other in zip(plain.cores, again.cores, strict=True):
        np.testing.assert_allclose(core, other, atol=1e-11)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_float32_columns_give_nearly_the_float64_result(loss):
    plan = replace(PLAN, loss=loss)
    problem, double = _learn(plan)
    single = learn_train(plan, problem.maps, problem.with_dtype(np.float32).rows, Start(0))
    assert single.history[-1]["objective"] == pytest.approx(double.history[-1]["objective"], rel=1e-5)
    np.testing.assert_allclose(dense_tensor(single.cores), dense_tensor(double.cores), atol=2e-3)


@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs"])
def test_an_offset_of_the_squared_loss_is_a_shifted_target(solver):
    problem = make_problem(5, (3,) * 4, 3, 200, "squared")
    offset = np.random.default_rng(0).standard_normal(200)
    plan = replace(PLAN, loss="squared", rank=clip_ranks(problem.dims, 3), solver=solver)
    offered = learn_train(plan, problem.maps, replace(problem, offset=offset).rows, Start(0))
    shifted = learn_train(plan, problem.maps, replace(problem, target=problem.target - offset).rows, Start(0))
    for one, other in zip(offered.cores, shifted.cores, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8 if solver != "lbfgs" else 1e-4)


def test_an_offset_of_the_logistic_loss_is_in_the_reported_objective():
    problem = replace(make_problem(5, DIMS, 2, 200, "logistic"), offset=np.random.default_rng(0).standard_normal(200))
    result = learn_train(PLAN, problem.maps, problem.rows, Start(0))
    assert result.history[-1]["objective"] == pytest.approx(objective(result.cores, problem, PLAN.alpha), rel=1e-11)
    assert all(record["decrease"] >= -1e-12 for record in result.history)
    without = learn_train(PLAN, problem.maps, replace(problem, offset=None).rows, Start(0))
    assert objective(without.cores, problem, PLAN.alpha) > result.history[-1]["objective"] * 1.01


def test_a_known_gram_matrix_changes_nothing():
    problem = make_problem(6, DIMS, 2, 300, "squared")
    plan = replace(PLAN, loss="squared")
    gram = shared_linear_gram(problem.engine(), problem.maps)
    plain = learn_train(plan, problem.maps, problem.rows, Start(0))
    told = learn_train(plan, problem.maps, problem.rows, Start(0), linear_gram=gram)
    for one, other in zip(plain.cores, told.cores, strict=True):
        np.testing.assert_array_equal(one, other)
