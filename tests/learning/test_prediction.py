"""Evaluation of several trains at once."""

import numpy as np
import pytest
from reference import dense_scores, make_problem

from polytrain.learning.prediction import evaluate_trains


@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
@pytest.mark.parametrize("dims", [(3,), (2, 4, 3)])
def test_trains_of_different_ranks_match_the_dense_scores(dims, basis):
    problems = [make_problem(seed, dims, rank, 25) for seed, rank in enumerate((1, 2, 3))]
    columns = problems[0].columns
    actual = evaluate_trains([problem.cores for problem in problems], columns, basis)
    expected = [dense_scores(problem.cores, columns, basis) for problem in problems]
    assert actual.shape == (3, 25)
    np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_rows_beyond_one_block_and_no_dependence_on_neighbours():
    problem = make_problem(0, (3, 3), 2, 5000)
    together = evaluate_trains([problem.cores], problem.columns, "power")
    picked = [0, 1023, 1024, 4095, 4096, 4999]
    expected = dense_scores(problem.cores, problem.columns[:, picked], "power")
    np.testing.assert_allclose(together[0, picked], expected, atol=1e-13)


def test_float32_columns_return_float64():
    problem = make_problem(0, (3, 3), 2, 30)
    result = evaluate_trains([problem.cores], problem.columns.astype(np.float32), "power")
    assert result.dtype == np.float64
    np.testing.assert_allclose(result[0], dense_scores(problem.cores, problem.columns, "power"), atol=1e-5)
