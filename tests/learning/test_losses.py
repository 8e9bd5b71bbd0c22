"""Losses: values, derivatives, and safety for scores of any size."""

import numpy as np
import pytest

from polytrain.learning.losses import LogisticLoss, SquaredLoss, get_loss, loss_names

LOSSES = sorted({*loss_names("classification"), *loss_names("regression")})


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_match_central_differences(name):
    loss = get_loss(name)
    rng = np.random.default_rng(0)
    target = np.where(rng.random(50) < 0.5, -1.0, 1.0)
    score = rng.normal(0, 3, 50)
    _, slope, curvature = loss.evaluate(target, score)
    h = 1e-4
    up, here, down = (loss.evaluate(target, score + shift)[0] for shift in (h, 0.0, -h))
    np.testing.assert_allclose(slope, (up - down) / (2 * h), atol=1e-7)
    np.testing.assert_allclose(curvature, (up - 2 * here + down) / h**2, atol=1e-6)


def test_logistic_derivatives_are_the_papers():
    score = np.linspace(-5, 5, 11)
    sigma = 1 / (1 + np.exp(-score))
    for label in (-1.0, 1.0):
        _, slope, curvature = LogisticLoss().evaluate(np.full(11, label), score)
        np.testing.assert_allclose(slope, sigma - (label + 1) / 2, atol=1e-15)
        np.testing.assert_allclose(curvature, sigma * (1 - sigma), atol=1e-15)


def test_logistic_loss_is_log_of_one_plus_exp():
    score = np.concatenate([np.linspace(-40, 40, 81), [1e-12, -1e-12]])
    for label in (-1.0, 1.0):
        value = LogisticLoss().evaluate(np.full(83, label), score)[0]
        np.testing.assert_allclose(value, np.logaddexp(0.0, -label * score), rtol=1e-14)


def test_logistic_loss_stays_finite_for_huge_scores():
    score = np.array([1e308, -1e308, 800.0, -800.0])
    for label in (-1.0, 1.0):
        target = np.full(4, label)
        value, slope, curvature = LogisticLoss().evaluate(target, score)
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()
        assert (curvature >= 0).all()
        np.testing.assert_array_equal(value, np.where(target * score > 0, 0.0, np.abs(score)))


@pytest.mark.parametrize("name", LOSSES)
def test_evaluate_returns_fresh_arrays_and_leaves_its_arguments(name):
    target, score = np.array([1.0, -1.0, 1.0]), np.array([0.5, 2.0, -3.0])
    kept = target.copy(), score.copy()
    results = get_loss(name).evaluate(target, score)
    for result in results:
        result[:] = 7.0
    np.testing.assert_array_equal(target, kept[0])
    np.testing.assert_array_equal(score, kept[1])
    assert all(result is not other for k, result in enumerate(results) for other in results[:k])


def test_names():
    assert isinstance(get_loss("squared"), SquaredLoss)
    assert get_loss("squared").quadratic
    assert not get_loss("logistic").quadratic
    loss = SquaredLoss()
    assert get_loss(loss) is loss
    with pytest.raises(ValueError, match=r"loss must be one of \['logistic', 'squared'\], got 'hinge'"):
        get_loss("hinge")


def test_logistic_derivatives_are_zero_or_large_enough_for_float32():
    score = np.linspace(-2000, 2000, 40_001)
    for label in (-1.0, 1.0):
        _, slope, curvature = LogisticLoss().evaluate(np.full(len(score), label), score)
        for values in (np.abs(slope), curvature):
            assert np.all((values == 0) | (values > 1e-21))
            assert np.any(values == 0)


@pytest.mark.parametrize("name", LOSSES)
def test_start_is_the_best_constant(name):
    loss = get_loss(name)
    target = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    start = loss.start(target.mean())
    costs = [loss.evaluate(target, np.full(5, start + shift))[0].mean() for shift in (-1e-3, 0.0, 1e-3)]
    assert costs[1] < min(costs[0], costs[2])


def test_domains():
    assert get_loss("squared").accepts(np.array([1e140, -5.0]))
    assert get_loss("logistic").accepts(np.array([-1.0, 1.0]))
    with pytest.raises(ValueError, match=r"loss='logistic' is defined for targets that are -1 or 1, got 0\.5"):
        get_loss("logistic").check_target(np.array([1.0, 0.5]))
    with pytest.raises(ValueError, match=r"between -1e\+140 and 1e\+140, got nan"):
        get_loss("squared").check_target(np.array([[1.0, np.nan]]))
    assert get_loss("logistic").start(1.0) == np.inf
