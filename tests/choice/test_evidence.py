"""Which model errors on rows that were left out speak for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain.choice.alphas import Evidence, simplest, strongest


def evidence(*squares):
    return Evidence(np.array(squares, dtype=float), np.full(len(squares), 1 / len(squares)))


@settings(max_examples=100, deadline=None)
@given(n_rows=st.integers(1, 30), seed=st.integers(0, 999))
def test_a_difference_and_its_standard_error(n_rows, seed):
    rng = np.random.default_rng(seed)
    one, other = rng.exponential(size=(2, n_rows))
    weights = rng.dirichlet(np.ones(n_rows))
    found, known = Evidence(one, weights), Evidence(other, weights)
    assert found.error == pytest.approx(np.average(one, weights=weights))
    mean, error = found.worse_than(known)
    assert mean == pytest.approx(found.error - known.error)
    assert error == pytest.approx(np.sqrt(np.sum((weights * (one - other - mean)) ** 2)))
    backwards = known.worse_than(found)
    assert backwards == pytest.approx((-mean, error))


def test_the_standard_error_is_that_of_repeated_samples():
    rng = np.random.default_rng(0)
    gaps = [evidence(*rng.normal(2, 3, 50)).worse_than(evidence(*np.zeros(50))) for _ in range(2000)]
    means, errors = np.transpose(gaps)
    assert np.std(means) == pytest.approx(np.mean(errors), rel=0.05)


def test_rows_of_hardly_any_weight_do_not_overflow():
    weights = np.array([1e-300, 0.5, 0.5])
    wild, calm = Evidence(np.array([1e290, 1.0, 1.2]), weights), Evidence(np.array([0.0, 1.1, 1.1]), weights)
    assert np.isfinite(wild.worse_than(calm)).all()
    assert simplest([wild, calm]) == 0


def test_the_simplest_that_is_not_clearly_worse():
    best = evidence(1.0, 1.2, 0.8, 1.0)
    noisy = evidence(0.2, 2.2, 0.1, 1.9)  # worse on average, but this may be chance
    clearly = evidence(2.0, 2.2, 1.8, 2.0)
    assert simplest([noisy, best]) == 0
    assert simplest([clearly, best]) == 1
    assert simplest([clearly, noisy, best]) == 1
    assert simplest([noisy, best], standard_errors=0.0) == 1
    assert simplest([best, evidence(1.0, 1.2, 0.8, 0.9999)], standard_errors=0.0) == 0  # that is rounding


@pytest.mark.parametrize(
    ("errors", "index"), [([3.0, 2.0, 1.0], 2), ([1.0005, 1.0, 2.0], 0), ([1.01, 1.0, 1.0], 1), ([0.0, 0.0], 0)]
)
def test_the_first_of_those_that_are_as_good_as_the_best(errors, index):
    assert strongest(errors) == index
