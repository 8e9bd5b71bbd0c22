"""Starts: the linear model written as a train, and random cores."""

import numpy as np
import pytest
from reference import c_matrix, dense_scores, dense_tensor, is_right_orthogonal, make_problem

from polytrain.learning.core_solvers import solve_linear
from polytrain.learning.start import linear_cores, linear_start, random_start
from polytrain.tensor import clip_ranks


@pytest.mark.parametrize("dims", [(2,), (4,), (2, 3), (3, 2, 4, 2)])
@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
def test_linear_cores_represent_the_linear_function_exactly(basis, dims):
    rng = np.random.default_rng(0)
    bias, weights = 0.7, rng.standard_normal(len(dims))
    cores = linear_cores(bias, [np.eye(1, n - 1)[0] * weight for n, weight in zip(dims, weights, strict=True)])
    columns = rng.uniform(-2, 2, (len(dims), 20))
    np.testing.assert_allclose(dense_scores(cores, columns, basis), bias + weights @ columns, atol=1e-13)
    tensor = dense_tensor(cores)
    assert np.count_nonzero(tensor) == len(dims) + 1
    assert max(core.shape[0] for core in cores) <= 2


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("dims", "rank"), [((3,), 1), ((2, 2), 2), ((3, 2, 4, 2), 2), ((3, 3, 3, 3), 6)])
def test_linear_start_is_the_regularised_linear_model(dims, rank, loss):
    problem = make_problem(1, dims, rank, 60, loss)
    engine = problem.engine()
    ranks = clip_ranks(dims, rank)
    cores = linear_start(engine, problem.maps, ranks, 1e-2, loss == "squared", np.random.default_rng(0))
    assert (*(core.shape[0] for core in cores), 1) == ranks
    assert all(is_right_orthogonal(core) for core in cores[1:])
    model = solve_linear(engine.linear(), len(dims), 1e-2, loss == "squared").ravel()
    expected = model[0] + model[1:] @ problem.columns
    np.testing.assert_allclose(dense_scores(cores, problem.columns, "power"), expected, atol=1e-12)


def test_linear_start_leaves_no_dead_slots():
    """Every unused slot must be reachable by the next update: the environments span all of their ranks."""
    dims, ranks = (3, 3, 3, 3), (1, 3, 6, 3, 1)
    problem = make_problem(1, dims, 6, 60, "squared")
    cores = linear_start(problem.engine(), problem.maps, ranks, 1e-2, True, np.random.default_rng(0))
    explicit = c_matrix(cores, 0, problem.columns, "power")
    assert np.linalg.matrix_rank(explicit) == cores[0].size


@pytest.mark.parametrize(("dims", "rank"), [((3,), 1), ((2, 3), 1), ((3, 2, 4, 2), 3)])
def test_random_start_is_right_orthogonal_and_drawn_from_the_generator(dims, rank):
    ranks = clip_ranks(dims, rank)
    cores, same, other = (random_start(dims, ranks, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert [core.shape for core in cores] == [(ranks[k], n, ranks[k + 1]) for k, n in enumerate(dims)]
    assert all(is_right_orthogonal(core) for core in cores[1:])
    for core, equal, different in zip(cores, same, other, strict=True):
        np.testing.assert_array_equal(core, equal)
        assert not np.allclose(core, different)


def test_random_start_normalises_the_cores():
    # The train of cores of norm one has norm one at most, and for d = 1 exactly.
    (core,) = random_start((4,), (1, 1), np.random.default_rng(0))
    assert np.linalg.norm(core) == pytest.approx(1.0)
    cores = random_start((3, 3, 3), (1, 3, 3, 1), np.random.default_rng(0))
    assert 0 < np.linalg.norm(dense_tensor(cores)) <= 1
