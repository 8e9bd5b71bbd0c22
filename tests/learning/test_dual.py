"""The kernel solution and its rounding against explicit tensors and scikit-learn's kernel ridge regression."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from reference import dense_scores, dense_tensor, is_left_orthogonal, is_right_orthogonal, make_problem, objective
from sklearn.kernel_ridge import KernelRidge

from polytrain import TensorTrain
from polytrain.learning.dual import (
    _right_kernels,
    product_kernel,
    round_for_sweeps,
    round_rank_ones,
    round_together,
    solve_dual,
)
from polytrain.learning.engines.tasks import TaskEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.settings import Settings, Start
from polytrain.learning.start import dual_start
from polytrain.learning.trainer import learn_train
from polytrain.tensor import clip_ranks
from power_models import power_classifier, power_regressor


def _values(problem):
    return [m.values(column) for m, column in zip(problem.maps, problem.columns, strict=True)]


def _features(problem):
    """The rows of the design matrix of all products of functions, (N, n_1 ... n_d)."""
    values = _values(problem)
    return np.array([reduce(np.kron, [v[:, j] for v in values]) for j in range(len(problem.target))])


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("dims", [(3,), (2, 3), (3, 2, 4)])
def test_solution_is_that_of_the_explicit_ridge_problem(dims, alpha):
    problem = make_problem(1, dims, 2, 15, "squared", "legendre")
    features = _features(problem)
    np.testing.assert_allclose(product_kernel(_values(problem)), features @ features.T, atol=1e-12)
    matrix = features.T @ (problem.weights[:, None] * features) + 0.5 * alpha * np.eye(features.shape[1])
    expected = np.linalg.solve(matrix, features.T @ (problem.weights * problem.target))
    coefficients = solve_dual(product_kernel(_values(problem)), problem.target, problem.weights, alpha)
    np.testing.assert_allclose(features.T @ coefficients, expected, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 10])
def test_kernels_of_the_columns_to_the_right(d):
    rng = np.random.default_rng(d)
    values = [rng.standard_normal((2, 5)) for _ in range(d)]
    found = list(_right_kernels(values))
    assert len(found) == d
    for k, kernel in enumerate(found):
        expected = reduce(np.multiply, [v.T @ v for v in values[k + 1 :]], np.ones((5, 5)))
        np.testing.assert_allclose(kernel, expected, atol=1e-12)


@pytest.mark.parametrize(("dims", "n_rows"), [((3,), 4), ((2, 3), 5), ((3, 2, 4, 2), 9), ((2, 2, 2, 2, 2), 40)])
def test_rounding_to_full_ranks_changes_nothing(dims, n_rows):
    problem = make_problem(2, dims, 2, n_rows)
    coefficients = np.random.default_rng(0).standard_normal(n_rows)
    cores = round_rank_ones(_values(problem), coefficients, clip_ranks(dims, 10**6))
    assert all(is_left_orthogonal(core, 1e-10) for core in cores[:-1])
    expected = (_features(problem).T @ coefficients).reshape(dims)
    np.testing.assert_allclose(dense_tensor(cores), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_rounding_is_as_good_as_a_truncated_svd_of_the_whole_tensor(rank):
    problem = make_problem(3, (3, 3, 3, 3), 2, 60)
    coefficients = np.random.default_rng(0).standard_normal(60)
    whole = (_features(problem).T @ coefficients).reshape(problem.dims)
    ranks = clip_ranks(problem.dims, rank)
    cores = round_rank_ones(_values(problem), coefficients, ranks)
    assert (*(core.shape[0] for core in cores), 1) == ranks
    error = np.linalg.norm(dense_tensor(cores) - whole)
    expected = np.linalg.norm(TensorTrain.from_dense(whole, max_rank=rank).to_dense() - whole)
    assert error == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("where", ["local", "tasks"])
def test_start_is_the_best_of_all_trains_where_the_ranks_allow_it(where):
    problem = make_problem(4, (3, 2, 3), 2, 40)
    ranks = clip_ranks(problem.dims, 10**6)
    engine = problem.engine()
    if where == "tasks":

        class AtOnce:
            def map(self, function, *columns):
                return [function(*row) for row in zip(*columns, strict=True)]

            def collect(self, handles):
                return handles

        partitions = [problem.rows.block(rows) for rows in (slice(0, 7), slice(7, 7), slice(7, 40))]
        engine = TaskEngine(AtOnce(), partitions, get_loss("squared"), problem.maps)
    cores = dual_start(engine, problem.maps, ranks, 1e-3, 0, np.random.default_rng(0))
    assert all(is_right_orthogonal(core, 1e-9) for core in cores[1:])
    plan = Settings("squared", ranks, 1e-3, "linear", "exact", 60, 0.0)
    swept = learn_train(plan, problem.maps, problem.rows, Start(0))
    best = objective(cores, problem, 1e-3)
    assert best <= swept.history[-1]["objective"] * (1 + 1e-9)
    assert best == pytest.approx(swept.history[-1]["objective"], rel=1e-3)


def test_an_offset_is_taken_off_the_target():
    problem = make_problem(5, (3, 2, 3), 2, 40)
    offset = np.random.default_rng(0).standard_normal(40)
    settings = problem.maps, clip_ranks(problem.dims, 10**6), 1e-2, 0
    offered, shifted = (
        dense_tensor(dual_start(changed.engine(), *settings, np.random.default_rng(0)))
        for changed in (replace(problem, offset=offset), replace(problem, target=problem.target - offset))
    )
    np.testing.assert_allclose(offered, shifted, atol=1e-10)


def test_sweeps_go_on_from_the_start():
    problem = make_problem(6, (3,) * 5, 3, 300)
    plan = Settings("squared", clip_ranks(problem.dims, 3), 1e-3, "dual", "auto", 4, 0.0)
    start = learn_train(replace(plan, max_sweeps=0), problem.maps, problem.rows, Start(0))
    result = learn_train(plan, problem.maps, problem.rows, Start(0))
    before = objective(start.cores, problem, 1e-3)
    assert result.history[0]["objective"] <= before * (1 + 1e-12)
    assert result.history[0]["decrease"] == pytest.approx(before - result.history[0]["objective"], rel=1e-6)


def test_estimator_without_sweeps_is_kernel_ridge_regression():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2] ** 2
    weights = rng.uniform(0.5, 2, 30)
    model = power_regressor(basis="spline", rank=64, alpha=1e-2, init="dual", max_sweeps=0).fit(X, y, weights)

    def kernel(one, other):
        product = np.ones((len(one), len(other)))
        for feature_map, a, b in zip(model.maps_, model.maps_.place(one), model.maps_.place(other), strict=True):
            product *= feature_map.values(a).T @ feature_map.values(b)
        return product

    ridge = KernelRidge(kernel="precomputed", alpha=0.5e-2 * weights.sum())
    ridge.fit(kernel(X, X), y - model.intercept_, sample_weight=weights)
    rows = rng.uniform(-1, 1, (50, 3))
    expected = ridge.predict(kernel(rows, X)) + model.intercept_
    np.testing.assert_allclose(model.predict(rows), expected, atol=1e-6)


def test_weights_and_repetition_are_the_same():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 4))
    y, counts = (X[:, 0] * X[:, 1] > 0), rng.integers(1, 4, 40)
    settings = {"loss": "squared", "rank": 4, "init": "dual", "max_sweeps": 1, "random_state": 0}
    weighted = power_classifier(**settings).fit(X, y, counts)
    repeated = power_classifier(**settings).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


def test_of_many_rows_a_sample_is_solved():
    problem = make_problem(7, (3,) * 4, 3, 5000, weighted=False)
    cores = dual_start(problem.engine(), problem.maps, clip_ranks(problem.dims, 4), 1e-4, 0, np.random.default_rng(0))
    scores = dense_scores(cores, problem.columns[:, :300], "power")
    noise = 0.3
    assert np.sqrt(np.mean((scores - problem.target[:300]) ** 2)) < 1.4 * noise


def test_few_rows_of_very_many_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2000))
    model = power_regressor(degree=1, rank=4, init="dual", max_sweeps=0, alpha=1e-3).fit(X, X[:, 0])
    assert np.isfinite(model.predict(X)).all()
    assert len(model.maps_) == 2000


def test_rows_that_are_alike_are_solved_as_one():
    problem = make_problem(8, (3, 2, 3), 2, 30)
    order = np.repeat(np.arange(30), 40)
    many = replace(problem, columns=problem.columns[:, order], target=problem.target[order],
                   weights=problem.weights[order] / 40)  # fmt: skip
    assert many.rows.merged().n_rows == 30
    ranks = clip_ranks(problem.dims, 10**6)
    one, other = (
        dense_tensor(dual_start(p.engine(), p.maps, ranks, 1e-3, 0, np.random.default_rng(0))) for p in (problem, many)
    )
    np.testing.assert_allclose(one, other, atol=1e-10)


def test_numbers_of_rows_beyond_counting():
    """Above some number of different rows engines only say that there are many."""
    problem = make_problem(9, (2, 2), 2, 140_000, weighted=False)
    problem = replace(problem, target=problem.target + 20)  # they are counted by sign
    engine = problem.engine()
    assert engine.n_distinct > 10**9
    cores = dual_start(engine, problem.maps, clip_ranks(problem.dims, 2), 1e-6, 0, np.random.default_rng(0))
    scores = dense_scores(cores, problem.columns[:, :200], "power")
    assert np.corrcoef(scores, problem.target[:200])[0, 1] > 0.9


def test_a_kernel_that_overflows_says_what_to_do():
    X = np.where(np.random.default_rng(0).random((40, 1100)) > 0.5, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"the kernel of init='dual' overflows with 1100 columns; use init='linear'"):
        power_regressor(init="dual", rank=2, max_sweeps=0).fit(X, X[:, 0])


@pytest.mark.parametrize("seed", range(4))
def test_rounding_for_sweeps_is_nearly_as_good(seed):
    rng = np.random.default_rng(seed)
    n_rows, d, rank = 120, 5, 6
    x = rng.uniform(-1, 1, size=(d, n_rows))
    values = [np.stack([np.ones(n_rows), 0.5 * column, 0.2 * column**2, 0.1 * column**3]) for column in x]
    coefficients = rng.standard_normal((2, n_rows)) / n_rows
    quick = round_for_sweeps(values, coefficients, rank)
    best = round_together(values, coefficients, clip_ranks([4] * d, rank))
    for own, cores, careful in zip(coefficients, quick, best, strict=True):
        whole = np.einsum("j,aj,bj,cj,dj,ej->abcde", own, *values)
        errors = [np.linalg.norm(TensorTrain(train).to_dense() - whole) for train in (cores, careful)]
        assert max(core.shape[2] for core in cores) <= rank
        assert errors[0] <= 2.0 * errors[1] + 1e-12 * np.linalg.norm(whole)


def test_rounding_for_sweeps_is_exact_where_the_rank_allows_it():
    rng = np.random.default_rng(0)
    values = [np.vstack([np.ones(30), rng.standard_normal((2, 30))]) for _ in range(3)]
    coefficients = rng.standard_normal((1, 30))
    (cores,) = round_for_sweeps(values, coefficients, 9)
    whole = np.einsum("j,aj,bj,cj->abc", coefficients[0], *values)
    np.testing.assert_allclose(TensorTrain(cores).to_dense(), whole, atol=1e-10)
