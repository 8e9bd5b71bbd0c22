"""Answers about many rows: no more memory than they need themselves, and the same bits as all at once."""

import tracemalloc

import numpy as np
import pytest

from polytrain.decisions import get_decision
from polytrain.maps import MapList, PolynomialMap
from polytrain.models import FittedModel, fitted

MEGABYTE = 1 << 20


def _classifier(decision, n_classes, rank=3, n_features=4):
    rng = np.random.default_rng(0)
    kind = get_decision(decision, n_classes)
    n_trains, ranks = kind.n_trains(n_classes), (1, *(rank,) * (n_features - 1), 1)
    shapes = [(ranks[k], 3, ranks[k + 1]) for k in range(n_features)]
    trains = [[rng.normal(size=shape) for shape in shapes] for _ in range(n_trains)]
    maps = MapList([PolynomialMap("power", 3, -1.0, 1.0)] * n_features)
    ends = {"size": rng.uniform(0.5, 2, n_trains), "shift": rng.normal(size=n_trains), "calibrated": True}
    return FittedModel("squared", maps, trains, decision=kind, classes=np.arange(n_classes), **ends)


def _rows(n_rows, dtype=np.float64, n_features=4):
    return np.random.default_rng(1).uniform(-1, 1, (n_rows, n_features)).astype(dtype)


def _peak(function, *arguments):
    tracemalloc.start()
    result = function(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, peak


@pytest.mark.parametrize("method", ["probabilities", "log_probabilities", "decide", "predict"])
@pytest.mark.parametrize(
    ("decision", "n_classes"), [("one-vs-one", 26), ("one-vs-rest", 50), ("binary-code", 60), ("one-vs-rest", 2)]
)
def test_memory_is_that_of_the_answer_and_some_megabytes(decision, n_classes, method):
    model, X = _classifier(decision, n_classes), _rows(40_000)
    answer, peak = _peak(getattr(model, method), X)
    assert peak < answer.nbytes + 48 * MEGABYTE


def test_memory_of_very_many_trains_does_not_grow_with_their_size():
    model = _classifier("one-vs-one", 60, rank=16)  # what 1770 trains make of a thousand rows would take 1.3 GB
    _, peak = _peak(model.scores, _rows(100))
    _, more = _peak(model.scores, _rows(1000))
    assert more - peak < 1770 * 900 * 8 + 48 * MEGABYTE


def test_memory_of_several_outputs():
    rng = np.random.default_rng(0)
    trains = [[rng.normal(size=(1, 3, 1))] for _ in range(40)]
    model = FittedModel("squared", MapList([PolynomialMap("power", 3, -1.0, 1.0)]), trains, one_output=False)
    answer, peak = _peak(model.predict, _rows(100_000, n_features=1))
    assert peak < answer.nbytes + 16 * MEGABYTE
    assert answer.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    ("decision", "n_classes"), [("one-vs-one", 12), ("one-vs-rest", 12), ("binary-code", 12), ("one-vs-one", 2)]
)
def test_the_answer_has_the_bits_of_one_that_is_computed_at_once(decision, n_classes, n_threads, dtype, monkeypatch):
    model, X = _classifier(decision, n_classes, rank=9), _rows(7_123, dtype)
    scores, kind = model.scores(X), model.decision
    monkeypatch.setattr(fitted, "_MOST_SCORES", 1)
    np.testing.assert_array_equal(model.scores(X, n_threads), scores)
    for method in ("probabilities", "log_probabilities", "decide"):
        expected = getattr(kind, method)(scores, n_classes)
        np.testing.assert_array_equal(getattr(model, method)(X, n_threads), expected)
    np.testing.assert_array_equal(model.predict(X, n_threads), kind.choose(kind.decide(scores, n_classes)))
