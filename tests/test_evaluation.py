"""Metrics of rows: weights count like repetition, and each loss has the metric that people think in."""

import numpy as np
import pytest

from polytrain.evaluation import METRICS, Answers, LeftOut, constant_answers, leading_metrics, loss_metrics

RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(1, 4, size=40).astype(float)


def rows(loss="squared", n_outputs=0):
    shape = (40, n_outputs) if n_outputs else 40
    y = RNG.gamma(2.0, size=shape)
    return Answers(y, y * RNG.uniform(0.5, 2.0, size=shape), loss=loss)


def class_rows():
    y, scores = RNG.integers(0, 3, size=40), RNG.normal(size=(40, 3))
    sure = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return Answers(y, sure.argmax(axis=1), sure, sure, labels=["a", "b", "c"])


def weighted(answers):
    """Answers with weights, and the same rows repeated as often."""
    more = answers.only(np.repeat(np.arange(40), WEIGHTS.astype(int)))
    names = ("y", "predicted", "decided", "probabilities")
    return Answers(*(getattr(answers, name) for name in names), answers.loss, answers.labels, WEIGHTS), more


@pytest.mark.parametrize("loss", ["squared", "poisson", "gamma", "quantile(0.9, 0.1)"])
@pytest.mark.parametrize("n_outputs", [0, 2])
def test_weights_of_numbers_are_repetitions(loss, n_outputs):
    answers, repeated = weighted(rows(loss, n_outputs))
    assert answers.figures() == pytest.approx(repeated.figures())


def test_weights_of_classes_are_repetitions():
    answers, repeated = weighted(class_rows())
    assert answers.figures() == pytest.approx(repeated.figures())


def test_all_metrics_have_a_name_of_their_own():
    every = [loss_metrics("squared", True), loss_metrics("squared"), loss_metrics("poisson")]
    assert set(METRICS) == {name for some in every for name in some}


@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson", "gamma", "quantile(0.9, 0.1)"])
def test_left_out_rows_are_measured_beside_the_best_constant(loss):
    answers = weighted(rows(loss))[0]
    left_out = LeftOut.of(answers, "somewhere")
    names = leading_metrics(loss, False)
    assert tuple(left_out.model) == names
    assert left_out.model == answers.figures(names)
    # No other constant is better.
    first = names[0]
    for factor in (0.9, 1.1):
        constant = constant_answers(answers, answers).predicted * factor
        other = Answers(answers.y, constant, loss=loss, weights=WEIGHTS).figures([first])[first]
        assert left_out.constant[first] < other


def test_scores_beyond_all_bounds_are_not_measured():
    assert LeftOut.of(Answers(np.ones(3), np.array([1.0, np.inf, 2.0])), "somewhere") is None
