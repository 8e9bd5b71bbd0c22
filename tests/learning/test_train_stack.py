"""Evaluation of several trains at once."""

from functools import partial

import numpy as np
import pytest
from reference import dense_scores, make_problem

from polytrain.basis import get_basis
from polytrain.tensor.stack import TrainStack


def functions(basis, dims):
    return [partial(get_basis(basis).values, n=n) for n in dims]


@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
@pytest.mark.parametrize("dims", [(3,), (2, 4, 3)])
def test_trains_of_different_ranks_match_the_dense_scores(dims, basis):
    problems = [make_problem(seed, dims, rank, 25) for seed, rank in enumerate((1, 2, 3))]
    columns = problems[0].columns
    stack = TrainStack([problem.cores for problem in problems], functions(basis, dims))
    actual = stack.evaluate(columns.T)
    expected = [dense_scores(problem.cores, columns, basis) for problem in problems]
    assert actual.shape == (3, 25)
    np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_rows_beyond_one_block_and_no_dependence_on_neighbours():
    problem = make_problem(0, (3, 3), 2, 5000)
    together = TrainStack([problem.cores], functions("power", (3, 3))).evaluate(problem.columns.T)
    picked = [0, 2047, 2048, 4095, 4096, 4999]
    expected = dense_scores(problem.cores, problem.columns[:, picked], "power")
    np.testing.assert_allclose(together[0, picked], expected, atol=1e-13)


def test_computes_in_the_dtype_asked_for():
    problem = make_problem(0, (3, 3), 2, 30)
    result = TrainStack([problem.cores], functions("power", (3, 3))).evaluate(problem.columns.T, dtype=np.float32)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result[0], dense_scores(problem.cores, problem.columns, "power"), atol=1e-5)
