"""Errors on rows that are left out, against refits without each of them; and the rounding of exact solutions."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refits import refitted

from polytrain import TensorTrain
from polytrain.choice import MapMaker
from polytrain.choice.few_rows import additive_kernel
from polytrain.choice.map_search import ChoiceRows, MapSearch, function_values
from polytrain.learning.dual import leave_one_out, product_kernel, round_rank_ones, solve_dual
from polytrain.maps import ColumnSummary
from polytrain.tensor import clip_ranks


def some_values(rng, n_columns, n_rows):
    return [np.vstack([np.ones(n_rows), rng.normal(size=(rng.integers(1, 4), n_rows))]) for _ in range(n_columns)]


@settings(max_examples=80, deadline=None)
@given(
    n_rows=st.integers(2, 25),
    n_columns=st.integers(1, 5),
    n_targets=st.integers(1, 3),
    alphas=st.lists(st.sampled_from([1e-6, 1e-3, 0.1, 1.0, 30.0]), min_size=1, max_size=3),
    weighted=st.booleans(),
    seed=st.integers(0, 9999),
)
def test_it_is_what_refits_without_each_row_give(n_rows, n_columns, n_targets, alphas, weighted, seed):
    rng = np.random.default_rng(seed)
    kernel = product_kernel(some_values(rng, n_columns, n_rows))
    targets = rng.normal(size=(n_rows, n_targets))
    weights = rng.uniform(0.05, 3, n_rows) if weighted else np.ones(n_rows)
    weights /= weights.sum()
    before = kernel.copy()
    found = list(leave_one_out(kernel, targets, weights, alphas))
    np.testing.assert_array_equal(kernel, before)
    assert len(found) == len(alphas)
    for alpha, residuals in zip(alphas, found, strict=True):
        expected = refitted(kernel, targets, weights, alpha)
        np.testing.assert_allclose(residuals, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_rows_that_nothing_else_is_like_are_predicted_by_nothing():
    (residuals,) = leave_one_out(np.eye(4), np.arange(1.0, 5)[:, None], np.full(4, 0.25), [1e-3])
    np.testing.assert_allclose(residuals[:, 0], [1, 2, 3, 4])


def test_a_singular_kernel_without_regularisation_stays_finite():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 40))
    (residuals,) = leave_one_out(values.T @ values, (values.T @ [1.0, 2.0, 3.0])[:, None], np.full(40, 1 / 40), [0.0])
    assert np.abs(residuals).max() < 1e-6


def table(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 3))
    targets = np.stack([X[:, 0] * X[:, 1], np.sin(3 * X[:, 2])], axis=1) + 0.1 * rng.normal(size=(n_rows, 2))
    weights = rng.uniform(0.5, 2, n_rows)
    columns = [ColumnSummary(x.min(), x.max(), np.sort(x), np.ones(n_rows)) for x in X.T]
    return MapMaker(["auto"] * 3, [2] * 3, lambda with_values: columns), ChoiceRows(X, targets, weights / weights.sum())


@pytest.mark.parametrize("kind", ["smooth", "gauss", "spline-rank"])
def test_trials_of_maps_say_the_best_alpha_and_its_error(kind):
    maker, rows = table()
    alphas = [1.0, 1e-2, 1e-4]
    (trial,) = MapSearch(maker, alphas, rows).try_each([(kind, 0.7, 1e-2, None)])
    maps = maker(kind, 0.7)
    kernel = product_kernel([m.values(column) for m, column in zip(maps, maps.place(rows.X), strict=True)])
    left = [refitted(kernel, rows.targets, rows.weights, alpha) for alpha in alphas]
    errors = [float(rows.weights @ np.square(residuals).sum(axis=1)) for residuals in left]
    best = int(np.argmin(errors))
    assert (trial.kind, trial.bandwidth, trial.alpha) == (kind, 0.7, alphas[best])
    assert trial.error == pytest.approx(errors[best], rel=1e-6)
    np.testing.assert_allclose(trial.residuals, left[best], atol=1e-6)


def test_trials_of_the_linear_model():
    maker, rows = table()
    maps = maker("smooth", 0.7)
    trial = MapSearch(maker, [1e-2], rows).judge("smooth", 0.7, additive_kernel(function_values(maps, rows.X)))
    features = [m.values(column)[1:] for m, column in zip(maps, maps.place(rows.X), strict=True)]
    kernel = 1.0 + sum(functions.T @ functions for functions in features)
    np.testing.assert_allclose(trial.residuals, refitted(kernel, rows.targets, rows.weights, 1e-2), atol=1e-8)


def test_bandwidths_are_followed_until_the_error_rises_and_threads_change_nothing():
    maker, rows = table()
    alphas = [1e-1, 1e-3, 1e-5]
    walks = MapSearch(maker, alphas, rows).compare(["smooth", "spline"], "auto")
    for walk in walks:
        best = min(walk, key=lambda trial: trial.error)
        bandwidths = [trial.bandwidth for trial in walk]
        assert bandwidths == sorted(bandwidths)
        assert len(bandwidths) >= 3
        ends = bandwidths[0] <= 1 / 32 or bandwidths[-1] >= 32
        assert ends or bandwidths[0] < best.bandwidth < bandwidths[-1]
    again = MapSearch(maker, alphas, rows, n_threads=2).compare(["smooth", "spline"], "auto")
    assert [[trial[:3] for trial in walk] for walk in again] == [[trial[:3] for trial in walk] for walk in walks]
    fixed = MapSearch(maker, alphas, rows).compare(["smooth"], 0.6)
    assert [[trial.bandwidth for trial in walk] for walk in fixed] == [[0.6]]


def dense(values, coefficients):
    rows = [reduce(np.multiply.outer, [v[:, j] for v in values]) for j in range(len(coefficients))]
    return np.tensordot(coefficients, rows, axes=1)


@settings(max_examples=80, deadline=None)
@given(
    n_columns=st.integers(1, 5),
    n_rows=st.integers(1, 30),
    tolerance=st.sampled_from([1e-6, 1e-3, 0.05, 0.3, 0.9]),
    seed=st.integers(0, 9999),
)
def test_rounding_errs_by_no_more_than_the_tolerance(n_columns, n_rows, tolerance, seed):
    rng = np.random.default_rng(seed)
    values = some_values(rng, n_columns, n_rows)
    coefficients = rng.normal(size=n_rows)
    whole = dense(values, coefficients)
    ranks = clip_ranks(tuple(map(len, values)), 10**6)
    cores = round_rank_ones(values, coefficients, ranks, tolerance)
    error = np.linalg.norm(TensorTrain(cores).to_dense() - whole)
    # Singular values come from squares, whose rounding is the root of that of numbers.
    assert error <= (tolerance + 1e-6) * np.linalg.norm(whole)
    assert all(core.shape[2] <= rank for core, rank in zip(cores, ranks[1:], strict=True))
    exact = round_rank_ones(values, coefficients, ranks)
    assert all(core.shape[2] <= other.shape[2] for core, other in zip(cores, exact, strict=True))


def test_ranks_are_no_larger_than_the_tolerance_asks_for():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 4))
    values = [np.stack([np.ones(500), x, x**2, x**3]) for x in X.T]
    target = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]  # has ranks 2, 2 and 2
    coefficients = solve_dual(product_kernel(values), target, np.full(500, 1 / 500), 1e-10)
    cores = round_rank_ones(values, coefficients, clip_ranks((4,) * 4, 100), 1e-2)
    assert [core.shape[2] for core in cores] == [2, 2, 2, 1]
    cut = round_rank_ones(values, coefficients, clip_ranks((4,) * 4, 1), 1e-2)  # ranks that are given are kept to
    assert [core.shape[2] for core in cut] == [1, 1, 1, 1]
