"""Exact solutions with the logistic loss: against a general minimiser, and scores of left-out rows against refits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from polytrain.learning.dual import product_kernel
from polytrain.learning.dual_logistic import solve_logistic, solve_multinomial


def problem(rng, n_rows, n_classes):
    """A kernel, codes of labels that follow its columns, and weights."""
    X = rng.normal(size=(n_rows, 3))
    kernel = product_kernel([np.stack([np.ones(n_rows), 0.7 * column]) for column in X.T])
    scores = np.stack([X[:, 0] * X[:, 1], X[:, 2], -X[:, 0], X[:, 1]], axis=1)[:, :n_classes]
    labels = np.argmax(scores + 0.7 * rng.gumbel(size=scores.shape), axis=1)
    weights = rng.uniform(0.5, 1.5, n_rows)
    return kernel, 2.0 * np.eye(n_classes)[labels] - 1.0, weights / weights.sum()


def slow_solution(kernel, targets, weights, alpha):
    """Scores (N, q) that minimise the objective, by a general minimiser over the square root of the kernel."""
    sizes, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(np.maximum(sizes, 0.0))
    n_columns = targets.shape[1]

    def objective(flat):
        hidden = flat.reshape(len(kernel), n_columns)
        z = root @ hidden
        if n_columns == 1:
            loss = np.logaddexp(0.0, -targets[:, 0] * z[:, 0])
        else:
            loss = logsumexp(z, axis=1) - np.sum(z * (targets + 1) / 2, axis=1)
        return weights @ loss + alpha / 2 * np.sum(hidden**2)

    found = minimize(
        objective,
        np.zeros(len(kernel) * n_columns),
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return root @ found.x.reshape(len(kernel), n_columns)


@given(st.integers(4, 12), st.integers(0, 2**31), st.sampled_from([1e-2, 0.3]))
def test_two_classes_reach_the_minimum(n_rows, seed, alpha):
    kernel, codes, weights = problem(np.random.default_rng(seed), n_rows, 2)
    solution = solve_logistic(kernel, codes[:, 0], weights, alpha, np.zeros(n_rows))
    scores = slow_solution(kernel, codes[:, :1], weights, alpha)
    np.testing.assert_allclose(kernel @ solution.coefficients, scores, atol=2e-3)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_several_classes_come_near_the_minimum(n_classes):
    kernel, codes, weights = problem(np.random.default_rng(n_classes), 15, n_classes)
    solution = solve_multinomial(kernel, codes, weights, 0.05, np.zeros((15, n_classes)))
    scores = slow_solution(kernel, codes, weights, 0.05)
    np.testing.assert_allclose(kernel @ solution.coefficients, scores, atol=0.2)


def test_a_row_of_mixed_labels_equals_several_rows():
    kernel, codes, weights = problem(np.random.default_rng(0), 10, 2)
    target = codes[:, 0].copy()
    target[3] = 0.2  # 60 % of its weight speak for the class, 40 % against it
    rows = [*range(10), 3]
    twice, shares = np.append(codes[:, 0], -1.0), np.append(weights, 0.4 * weights[3])
    twice[3], shares[3] = 1.0, 0.6 * weights[3]
    one = solve_logistic(kernel, target, weights, 0.1, np.zeros(10))
    two = solve_logistic(kernel[np.ix_(rows, rows)], twice, shares, 0.1, np.zeros(11))
    scores = kernel @ one.coefficients
    np.testing.assert_allclose(kernel[np.ix_(rows, rows)] @ two.coefficients, scores[rows], atol=1e-4)


@pytest.mark.parametrize("alpha", [1e-2, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_scores_of_left_out_rows_are_near_those_of_refits(n_classes, alpha):
    n_rows = 60
    kernel, codes, weights = problem(np.random.default_rng(n_classes), n_rows, n_classes)
    targets = codes if n_classes > 2 else codes[:, :1]

    def solve(rows):
        start = np.zeros((len(rows), targets.shape[1]))
        if n_classes > 2:
            return solve_multinomial(kernel[np.ix_(rows, rows)], targets[rows], weights[rows], alpha, start)
        return solve_logistic(kernel[np.ix_(rows, rows)], targets[rows, 0], weights[rows], alpha, start[:, 0])

    every = np.arange(n_rows)
    whole = solve(every)
    refitted = np.stack([kernel[row, every != row] @ solve(every[every != row]).coefficients for row in every])
    centred = [scores - scores.mean(axis=1, keepdims=True) * (n_classes > 2) for scores in (whole.left_out, refitted)]
    inside = kernel @ whole.coefficients
    inside -= inside.mean(axis=1, keepdims=True) * (n_classes > 2)
    missed = np.abs(centred[0] - centred[1]).mean()
    assert missed < 0.25 * np.abs(inside - centred[1]).mean()  # what the row itself adds to its score
