"""The reference itself: its parts must agree with each other before anything is measured against them."""

import numpy as np
import pytest
from reference import c_matrix, dense_scores, dense_tensor, general_d, make_problem


@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
@pytest.mark.parametrize("dims", [(3,), (2, 4, 3), (2, 3, 2, 3)])
def test_c_matrix_times_core_is_the_dense_score(dims, basis):
    problem = make_problem(0, dims=dims, basis=basis)
    expected = dense_scores(problem.cores, problem.columns, basis)
    for k, core in enumerate(problem.cores):
        np.testing.assert_allclose(c_matrix(problem.cores, k, problem.columns, basis) @ core.ravel(), expected)


@pytest.mark.parametrize("dims", [(3,), (2, 4, 3), (2, 3, 2, 3)])
def test_general_d_is_the_gradient_and_hessian_of_the_squared_norm(dims):
    problem = make_problem(1, dims=dims)
    for k, core in enumerate(problem.cores):
        matrix = general_d(problem.cores, k)
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
        # <A, A> is exactly quadratic in one core, so the form must reproduce it for the core and for any other one.
        for trial in (core, np.random.default_rng(2).standard_normal(core.shape)):
            cores = [*problem.cores[:k], trial, *problem.cores[k + 1 :]]
            assert trial.ravel() @ matrix @ trial.ravel() == pytest.approx(np.sum(dense_tensor(cores) ** 2))
