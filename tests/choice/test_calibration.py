"""From scores to log-odds: against scikit-learn's logistic regression, and probabilities that are what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from polytrain import TensorTrainClassifier
from polytrain.choice.calibration import _LEAST_SPREAD, _PRIOR, fit_log_odds, fit_softmax, held_out_shift


def explicit(scores, positive, negative, strength=np.inf):
    """The same by scikit-learn: every row counts for both classes, a little less than surely for its own."""
    total = positive + negative
    sure = (positive.sum() + 1) / (positive.sum() + 2)
    unsure = 1 / (negative.sum() + 2)
    wanted = positive * sure + negative * unsure
    centre = np.average(scores, weights=total)
    size = max(np.sqrt(np.average((scores - centre) ** 2, weights=total)), _LEAST_SPREAD)
    x = np.tile((scores - centre) / size, 2)[:, None]
    model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(x, np.repeat([1, 0], len(scores)), np.concatenate([wanted, total - wanted]))
    factor = model.coef_[0, 0] / size
    return factor, model.intercept_[0] - factor * centre


def some_scores(n_rows, seed, slope=1.5):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.3, 0.8, n_rows)
    positive = (rng.random(n_rows) < expit(slope * scores - 0.4)).astype(float)
    positive[:2], scores[:2] = (0.0, 1.0), (-0.5, 0.7)
    return scores, positive, rng


@settings(max_examples=40, deadline=None)
@given(n_rows=st.integers(4, 60), weighted=st.booleans(), seed=st.integers(0, 999))
def test_it_is_a_logistic_regression_that_is_held_back_a_little(n_rows, weighted, seed):
    scores, positive, rng = some_scores(n_rows, seed)
    weights = rng.uniform(0.1, 3, n_rows) if weighted else np.ones(n_rows)
    parts = weights * positive, weights * (1 - positive)
    expected = explicit(scores, *parts, strength=1 / _PRIOR)
    found = fit_log_odds(scores, *parts)
    if expected[0] > 1e-2:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    else:  # scores that mean the opposite are hardly listened to
        assert 0 < found[0] < 0.1


def test_many_rows_are_not_held_back():
    scores, positive, _ = some_scores(20_000, 0)
    found = fit_log_odds(scores, positive, 1 - positive)
    np.testing.assert_allclose(found, explicit(scores, positive, 1 - positive), rtol=1e-4)
    np.testing.assert_allclose(found, [1.5, -0.4], atol=0.06)


@pytest.mark.parametrize(("factor", "shift"), [(1e3, 0.0), (1.0, 50.0), (10.0, -3e4)])
def test_size_and_place_of_the_scores_do_not_matter(factor, shift):
    scores, positive, _ = some_scores(300, 1)
    slope, bias = fit_log_odds(scores, positive, 1 - positive)
    moved = fit_log_odds(factor * scores + shift, positive, 1 - positive)
    np.testing.assert_allclose(moved[0] * (factor * scores + shift) + moved[1], slope * scores + bias, atol=1e-6)


def test_rows_of_both_classes_are_two_rows():
    scores, _, rng = some_scores(50, 2)
    both = rng.uniform(0, 2, 50), rng.uniform(0, 2, 50)
    twice = np.concatenate([scores, scores])
    nothing = np.zeros(50)
    expected = fit_log_odds(twice, np.concatenate([both[0], nothing]), np.concatenate([nothing, both[1]]))
    np.testing.assert_allclose(fit_log_odds(scores, *both), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("scores", "positive"),
    [
        ([-1.0, -0.9, 0.9, 1.0], [0, 0, 1, 1]),  # without a fault
        ([0.5, 0.5, 0.5, 0.5], [0, 1, 0, 1]),
        ([0.0, 0.0, 0.0, 0.0], [0, 0, 0, 1]),
        ([1.0, 0.9, -0.9, -1.0], [0, 0, 1, 1]),  # all wrong
        ([1e100, -1e100, 1e99, 0.0], [1, 0, 1, 0]),
        ([0.1, 0.2], [1, 1]),  # one class
        ([0.1], [0]),
    ],
)
def test_extreme_scores(scores, positive):
    scores, positive = np.array(scores), np.array(positive, dtype=float)
    factor, shift = fit_log_odds(scores, positive, 1 - positive)
    assert factor > 0
    assert np.isfinite([factor, shift]).all()
    chances = expit(factor * scores + shift)
    assert ((chances > 0.001) & (chances < 0.999)).all()  # four rows make nobody sure


def test_no_rows_leave_scores_as_they_are():
    nothing = np.zeros(3)
    assert fit_log_odds(np.arange(3.0), nothing, nothing) == (1.0, 0.0)


# ------------------------------------------------------------------------------------------------------ classifiers


def simulated(n_rows, n_classes, seed):
    """Rows, the true probability of every class, and labels drawn by it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    scores = np.stack([X[:, 0] * X[:, 1], X[:, 2] - 0.5, 0.5 * X[:, 3] ** 2 - X[:, 0]], axis=1)[:, :n_classes]
    if n_classes == 2:
        scores = np.stack([np.zeros(n_rows), 1.2 * X[:, 0] * X[:, 1] + X[:, 2] - 0.5], axis=1)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    labels = (chances.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1)
    return X, chances, labels


@pytest.mark.parametrize("decision", ["one-vs-rest", pytest.param("one-vs-one", marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_classes", [pytest.param(2, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("n_rows", [600, pytest.param(4000, marks=pytest.mark.slow)])
def test_probabilities_are_what_they_say(n_rows, n_classes, decision):
    X, _, y = simulated(n_rows, n_classes, 0)
    model = TensorTrainClassifier(decision=decision, random_state=0).fit(X, y)
    Z, true, labels = simulated(20_000, n_classes, 1)
    found = model.predict_proba(Z)
    assert found.shape == (20_000, n_classes)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(Z)), found, atol=1e-12)
    for label in range(n_classes):
        bins = np.digitize(found[:, label], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
        gaps = [
            abs(found[bins == k, label].mean() - np.mean(labels[bins == k] == label)) * np.mean(bins == k)
            for k in np.unique(bins)
        ]
        assert sum(gaps) < (0.06 if n_rows < 1000 else 0.04)
    assert np.abs(found - true).mean() < (0.12 if n_rows < 1000 else 0.07)


@pytest.mark.slow
def test_probabilities_of_many_classes_sum_to_one():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(7, 3))
    y = rng.integers(0, 7, 900)
    X = centres[y] + 0.4 * rng.normal(size=(900, 3))
    for decision in ("one-vs-rest", "one-vs-one", "binary-code"):
        model = TensorTrainClassifier(decision=decision, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-12)
        assert model.score(X, y) > 0.75


def test_the_order_of_rows_does_not_change_the_probabilities_of_classes():
    rng = np.random.default_rng(0)
    for _ in range(10):
        scores, labels, order = rng.normal(size=(30, 3)), rng.integers(0, 3, 30), rng.permutation(30)
        weights = np.eye(3)[labels]
        for found, again in zip(fit_softmax(scores, weights), fit_softmax(scores[order], weights[order]), strict=True):
            np.testing.assert_allclose(found, again, rtol=0, atol=1e-12)


def test_scores_that_say_nothing_give_the_shares_of_the_classes():
    weights = np.eye(3)[[0, 0, 0, 1, 2]]
    shift = fit_softmax(np.zeros((5, 3)), weights)[1]
    assert shift[0] > shift[1] == pytest.approx(shift[2])


@pytest.mark.slow
def test_predictions_are_those_of_the_largest_score():
    X, _, y = simulated(500, 3, 0)
    model = TensorTrainClassifier(random_state=0).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    two = TensorTrainClassifier(random_state=0).fit(X, y > 0)
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], expit(two.decision_function(X)), atol=1e-12)
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)


def test_the_squared_loss_alone_is_not_calibrated():
    X, _, y = simulated(300, 2, 0)
    given = {"basis": "smooth", "bandwidth": 0.5, "alpha": 0.01, "random_state": 0}
    plain = TensorTrainClassifier(loss="squared", **given).fit(X, y)
    assert not hasattr(plain, "predict_proba")
    calibrated = TensorTrainClassifier(**given).fit(X, y)
    assert plain.choice_.alpha == calibrated.choice_.alpha == 0.01
    # The same train, whose scores were moved and stretched.
    line = np.polynomial.Polynomial.fit(plain.decision_function(X), calibrated.decision_function(X), 1)
    np.testing.assert_allclose(line(plain.decision_function(X)), calibrated.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_shifts_are_distances_of_mean_probabilities_from_shares(n_classes, loss):
    rng = np.random.default_rng(0)
    labels = rng.uniform(0.5, 2, (300, 1)) * np.eye(n_classes)[rng.integers(0, n_classes, 300)]
    chances = labels / labels.sum(axis=1, keepdims=True) * 0.8 + 0.2 * labels.sum(axis=0) / labels.sum()
    scores = 2 * chances - 1 if loss == "squared" else np.log(chances)
    if n_classes == 2:
        scores = scores[:, 1:] - (scores[:, :1] if loss == "logistic" else 0)
    assert held_out_shift(scores, labels, loss) < 1e-12
    shares = (labels.sum(axis=0) / labels.sum())[1 if n_classes == 2 else 0 :]
    if loss == "squared":
        expected = len(shares) * 0.05**2 / np.sum(shares * (1 - shares))
        assert held_out_shift(scores + 0.1, labels, loss) == pytest.approx(expected)
    else:
        assert held_out_shift(0.5 * scores + np.arange(1, 1 + scores.shape[1]), labels, loss) > 1e-3
