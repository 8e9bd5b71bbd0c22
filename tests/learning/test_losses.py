"""Losses: values, derivatives, and safety for scores of any size."""

import numpy as np
import pytest

from polytrain.learning.losses import LogisticLoss, SquaredLoss, get_loss, loss_names

LOSSES = sorted({*loss_names("classification"), *loss_names("regression")})


SPECS = [*LOSSES, "quantile(0.9, 0.5)", "quantile(0.05, 1.0)", "absolute(0.5, 0.3)", "huber(2.0, 0.5)"]


def _targets(loss, rng, count):
    """Random targets that a loss is defined for."""
    if "classification" in loss.tasks and loss.name != "squared":
        return np.where(rng.random(count) < 0.5, -1.0, 1.0)
    if loss.name == "poisson":
        return rng.poisson(2.0, count).astype(float)
    return rng.gamma(2.0, 1.0, count) if loss.name == "gamma" else rng.normal(0, 2, count)


@pytest.mark.parametrize("name", SPECS)
def test_derivatives_match_central_differences(name):
    loss, rng = get_loss(name), np.random.default_rng(0)
    target, score = _targets(loss, rng, 500), rng.normal(0, 2, 500)
    cost, slope, curvature = loss.evaluate(target, score)
    h = 1e-4
    up, here, down = (loss.evaluate(target, score + shift)[0] for shift in (h, 0.0, -h))
    size = 1 + np.abs(cost)
    np.testing.assert_allclose(slope / size, (up - down) / (2 * h) / size, atol=1e-7)
    # Some losses have a curvature that jumps: not where the three points lie on both sides of the jump.
    bends = [loss.evaluate(target, score + shift)[2] for shift in (-2 * h, 2 * h)]
    smooth = np.isclose(*bends, rtol=0.01, atol=1e-3)
    assert smooth.mean() > 0.99
    found = (up - 2 * here + down) / h**2
    atol = 2e-5 if loss.needs_values else 1e-6  # narrow corners have large fourth derivatives
    np.testing.assert_allclose((curvature / size)[smooth], (found / size)[smooth], atol=atol)
    assert (curvature >= 0).all()
    if loss.name != "squared_hinge" and loss.degree != 1:
        assert (cost >= -1e-12).all()


@pytest.mark.parametrize("name", SPECS)
def test_what_becomes_a_part_of_alpha_is_a_float_that_files_can_hold(name):
    assert type(get_loss(name).alpha_share(0.3, 1.0)) is float


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_names_a_loss(name):
    loss = get_loss(name)
    assert get_loss(loss.spec) == loss or type(get_loss(loss.spec)) is type(loss)
    assert get_loss(loss.spec).spec == loss.spec


@pytest.mark.parametrize("name", ["quantile(0.9)", "quantile(2.0, 0.1)", "quantile(0.5, 0.0)", "huber()",
                                  "quantile(0.5, nan)", "huber(1.0, 1.0, 1.0)", "a(0.5)"])  # fmt: skip
def test_specs_are_checked(name):
    with pytest.raises(ValueError, match="loss"):
        get_loss(name)


def test_smoothing_shrinks_to_the_pinball_loss_and_never_lies_below_it():
    residual = np.linspace(-3, 3, 61)
    for level in (0.1, 0.5, 0.9):
        exact = np.maximum(level * residual, (level - 1) * residual)
        wide, narrow = (
            get_loss(f"quantile({level}, {width})").evaluate(residual, 0 * residual)[0] for width in (1, 0.01)
        )
        assert (wide > narrow).all()
        assert (narrow >= exact - 1e-15).all()
        np.testing.assert_allclose(narrow, exact, atol=0.007)


def test_refined_losses_follow_the_residuals():
    rng = np.random.default_rng(0)
    residuals, weights = rng.normal(0, 0.1, 2000), np.ones(2000)
    assert 0.005 < get_loss("quantile(0.5, 0.1)").refined(residuals, weights).width < 0.01
    assert get_loss("quantile(0.5, 0.001)").refined(residuals, weights).width == 0.001  # it never grows
    residuals[:400] *= 1e6
    assert 0.09 < get_loss("huber").refined(residuals, weights).scale < 0.15
    assert get_loss("squared").refined(residuals, weights) is get_loss("squared")


def test_homogeneous_losses_grow_with_their_degree():
    rng = np.random.default_rng(0)
    target, score = rng.normal(size=(2, 20))
    for small, large in [
        ("squared",) * 2,
        ("quantile(0.3, 0.1)", "quantile(0.3, 0.5)"),
        ("huber(1.0, 0.2)", "huber(1.0, 1.0)"),
    ]:
        one, other = get_loss(small), get_loss(large)
        np.testing.assert_allclose(
            other.evaluate(5 * target, 5 * score)[0], 5.0**one.degree * one.evaluate(target, score)[0], rtol=1e-12
        )


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
    with pytest.raises(ValueError, match=r"loss must be one of \['absolute', .*\], got 'hinge'"):
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
    loss, rng = get_loss(name), np.random.default_rng(1)
    target, weights = _targets(loss, rng, 501), rng.uniform(0.5, 1.5, 501)
    start = loss.start(target, weights)
    # Constants that are quantiles are best for the loss that is not smoothed, and Huber's is only near.
    away = 0.2 if loss.needs_values else 1e-3
    costs = [weights @ loss.evaluate(target, np.full(501, start + shift))[0] for shift in (-away, 0.0, away)]
    assert costs[1] < min(costs[0], costs[2])
    if not loss.needs_values:
        mean = np.average(target, weights=weights)
        assert loss.start(np.array([mean]), np.ones(1)) == pytest.approx(start)


def test_domains():
    assert get_loss("squared").accepts(np.array([1e140, -5.0]))
    assert get_loss("logistic").accepts(np.array([-1.0, 1.0]))
    with pytest.raises(ValueError, match=r"loss='logistic' is defined for targets that are -1 or 1, got 0\.5"):
        get_loss("logistic").check_target(np.array([1.0, 0.5]))
    with pytest.raises(ValueError, match=r"between -1e\+140 and 1e\+140, got nan"):
        get_loss("squared").check_target(np.array([[1.0, np.nan]]))
    assert get_loss("logistic").start(np.ones(3), np.ones(3)) == np.inf
    for name, value in [("poisson", -1.0), ("gamma", 0.0), ("squared_hinge", 0.5), ("huber", np.inf)]:
        with pytest.raises(ValueError, match=f"loss='{name}' is defined for targets that are"):
            get_loss(name).check_target(np.array([1.0, value]))
