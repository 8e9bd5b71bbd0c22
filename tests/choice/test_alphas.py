"""The search for alpha against trying all of them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import polytrain.choice.alphas as searching
from polytrain.choice.alphas import find_alpha, strongest
from polytrain.choice.map_search import ALPHAS, MapMaker
from polytrain.learning.dual import LeftOut, leave_one_out
from polytrain.maps import ColumnSummary


def all_errors(kernel, targets, weights, alphas=ALPHAS):
    every = leave_one_out(kernel, targets, weights, alphas)
    return [float(weights @ np.square(residuals).sum(axis=1)) for residuals in every]


def table(seed, n_rows=160, n_columns=4, noise=0.3, width=1.0, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    distances = np.square(X[:, None] - X).sum(axis=2)
    targets = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + noise * rng.normal(size=n_rows)
    weights = rng.uniform(0.3, 2, n_rows) if weighted else np.ones(n_rows)
    return np.exp(-distances / (2 * width * width * n_columns)), targets[:, None], weights / weights.sum()


@pytest.fixture
def n_factors(monkeypatch):
    """How many alphas were tried by a factor of their own."""
    counted = []

    class Counted(LeftOut):
        def __call__(self, alpha):
            counted.append(alpha)
            return super().__call__(alpha)

    monkeypatch.setattr(searching, "LeftOut", Counted)
    return counted


def is_valley(errors, hill=1.0):
    ground = int(np.argmin(errors))
    sides = np.array(errors[ground:]), np.array(errors[ground::-1])
    return all((hill * side >= np.maximum.accumulate(side)).all() for side in sides)


@settings(max_examples=60, deadline=None)
@example(seed=239, n_rows=239, noise=5.0, width=3.0, weighted=False, near=None)  # a hill of a part in a thousand
@example(seed=910, n_rows=219, noise=0.03, width=1.0, weighted=True, near=1e-4)
@given(
    seed=st.integers(0, 999),
    n_rows=st.integers(20, 260),
    noise=st.sampled_from([0.03, 0.3, 1.0, 5.0]),
    width=st.sampled_from([0.3, 1.0, 3.0]),
    weighted=st.booleans(),
    near=st.one_of(st.none(), st.sampled_from([1e-8, 1e-4, 1e-2, 1.0])),
)
def test_it_finds_what_trying_all_finds(seed, n_rows, noise, width, weighted, near):
    problem = table(seed, n_rows, noise=noise, width=width, weighted=weighted)
    errors = all_errors(*problem)
    found = find_alpha(*problem, ALPHAS, near)
    place = ALPHAS.index(found.alpha)
    if is_valley(errors):
        assert found.evidence.error <= 1.003 * min(errors)
    else:  # from where it begins, it goes to a ground
        assert found.evidence.error <= 1.003 * min(errors[max(0, place - 1) : place + 2])
    (residuals,) = leave_one_out(*problem, [found.alpha])
    np.testing.assert_allclose(found.residuals, residuals, rtol=1e-4, atol=1e-5)
    assert found.evidence.error == pytest.approx(errors[place], rel=1e-5)


def test_all_alphas_are_tried_where_some_rows_show_two_valleys(n_factors):
    problem = table(0, n_rows=169, width=3.0, weighted=False)
    errors = all_errors(*problem)
    assert not is_valley(errors, 1.2)
    few_errors = all_errors(problem[0][:128, :128], problem[1][:128], np.full(128, 1 / 128))
    assert not is_valley(few_errors, 1.02)
    assert find_alpha(*problem, ALPHAS).alpha == ALPHAS[strongest(errors)]
    assert n_factors == []


@pytest.mark.parametrize("seed", range(6))
def test_few_alphas_are_enough_from_anywhere_near(seed, n_factors):
    problem = table(seed)
    errors = all_errors(*problem)
    best = strongest(errors)
    for near in (None, *ALPHAS[best - 1 : best + 2]):
        n_factors.clear()
        assert find_alpha(*problem, ALPHAS, near).alpha == ALPHAS[best]
        assert len(n_factors) <= (5 if near else 8)


def test_with_few_rows_or_few_alphas_all_are_tried(n_factors):
    few = table(0, n_rows=100)
    assert find_alpha(*few, ALPHAS).alpha == ALPHAS[strongest(all_errors(*few))]
    assert find_alpha(*table(0), [1.0, 0.1, 0.01]).alpha == 0.01
    assert n_factors == []


def test_one_alpha_is_taken_as_it_is(n_factors):
    problem = table(0)
    trial = find_alpha(*problem, [0.3])
    assert trial.alpha == 0.3
    assert n_factors == [0.3]
    np.testing.assert_allclose(trial.residuals, next(leave_one_out(*problem, [0.3])), atol=1e-9)
    assert np.isfinite(find_alpha(*problem, [0.0]).residuals).all()  # without a ridge the eigendecomposition helps


def test_the_strongest_alpha_wins_on_a_plain(n_factors):
    # Rows that have nothing to do with each other are predicted by nothing, whatever alpha is.
    n_rows = 150
    found = find_alpha(np.eye(n_rows), np.ones((n_rows, 1)), np.full(n_rows, 1 / n_rows), ALPHAS, 1e-5)
    assert found.alpha == ALPHAS[0]
    assert len(n_factors) == 8  # then all are tried at once


def test_without_noise_the_smallest_alphas_are_reached():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 2))
    kernel, weights = np.square(1 + X @ X.T), np.full(150, 1 / 150)
    targets = (X[:, :1] * X[:, 1:]) - X[:, :1]
    found = find_alpha(kernel, targets, weights, ALPHAS)
    assert found.alpha == ALPHAS[strongest(all_errors(kernel, targets, weights))]
    assert found.alpha < 1e-8


def test_a_kernel_without_a_chance_is_left_early(n_factors):
    problem = table(0)
    error = find_alpha(*problem, ALPHAS).evidence.error
    n_factors.clear()
    assert find_alpha(*problem, ALPHAS, rival=error).evidence.error == error
    assert len(n_factors) >= 3
    n_factors.clear()
    assert find_alpha(*problem, ALPHAS, rival=error / 50).evidence.error >= error
    assert len(n_factors) == 2


@pytest.mark.parametrize(
    ("counts", "repeats"), [(np.ones(100), False), (np.r_[50.0, np.ones(50)], True), (np.ones(1), False)]
)
def test_ranks_are_places_where_no_value_is_more_frequent(counts, repeats):
    values = np.arange(float(len(counts)))
    column = ColumnSummary(values[0], values[-1], values, counts)
    assert MapMaker(["auto"], [2], lambda with_values: [column]).has_repeats is repeats
    assert not MapMaker(["spline"], [2], lambda with_values: [column]).has_repeats
