"""Decisions against a slow reference, on hand-made scores."""

from itertools import combinations

import numpy as np
import pytest

from polytrain.decisions import BinaryCode, OneVsOne, OneVsRest, TwoClasses, get_decision

NAMES = ["one-vs-rest", "one-vs-one", "binary-code"]


def _n_trains(name, m):
    return {"one-vs-rest": m, "one-vs-one": m * (m - 1) // 2, "binary-code": int(np.ceil(np.log2(m)))}[name]


def _vote(scores, m):
    """Majority vote of one row; ties go to the larger sum of scores in favour of the class, then to the lower index."""
    votes, sums = [0] * m, [0.0] * m
    for score, (i, j) in zip(scores, combinations(range(m), 2), strict=True):
        votes[i if score > 0 else j] += 1
        sums[i] += score
        sums[j] -= score
    return max(range(m), key=lambda c: (votes[c], sums[c], -c))


def _nearest_code(scores, m):
    """Class of least Hamming distance of one row; ties go to the larger margin, then to the lower index."""
    bits = [1 if score > 0 else 0 for score in scores]

    def quality(c):
        word = [(c >> t) & 1 for t in range(len(scores))]
        distance = sum(bit != wanted for bit, wanted in zip(bits, word, strict=True))
        margin = sum(score if wanted else -score for score, wanted in zip(scores, word, strict=True))
        return -distance, margin, -c

    return max(range(m), key=quality)


SLOW = {
    "one-vs-rest": lambda scores, m: max(range(m), key=lambda c: (scores[c], -c)),
    "one-vs-one": _vote,
    "binary-code": _nearest_code,
}


@pytest.mark.parametrize("m", [2, 3, 4, 5, 8, 9, 100])
@pytest.mark.parametrize("name", NAMES)
def test_number_of_trains(name, m):
    decision = get_decision(name, m)
    assert decision.n_trains(m) == len(decision.code(m)) == (1 if m == 2 else _n_trains(name, m))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("m", [3, 4, 5, 8, 10])
@pytest.mark.parametrize("name", NAMES)
def test_decisions_match_the_slow_reference(name, m, size):
    scores = size * np.random.default_rng(m).standard_normal((_n_trains(name, m), 200))
    decided = get_decision(name, m).decide(scores, m)
    assert decided.shape == (200, m)
    np.testing.assert_array_equal(decided.argmax(axis=1), [SLOW[name](row, m) for row in scores.T])


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_few_levels_full_of_ties_match_the_slow_reference(name):
    m = 5
    scores = np.random.default_rng(0).integers(-2, 3, (_n_trains(name, m), 300)).astype(float)
    decided = get_decision(name, m).decide(scores, m).argmax(axis=1)
    np.testing.assert_array_equal(decided, [SLOW[name](row, m) for row in scores.T])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [3, 4, 6, 7])
def test_scores_equal_to_the_code_give_their_class(name, m):
    decision = get_decision(name, m)
    code = decision.code(m)
    assert code.shape == (_n_trains(name, m), m)
    assert set(np.unique(code)) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(decision.decide(code, m).argmax(axis=1), np.arange(m))
    np.testing.assert_array_equal(decision.log_probabilities(10 * code, m).argmax(axis=1), np.arange(m))


def test_a_circle_of_votes_is_broken_by_the_sum_of_scores():
    # 0 beats 1, 1 beats 2, 2 beats 0: one vote each. Pairs: (0, 1), (0, 2), (1, 2).
    scores = np.array([[1.0, 1.0, 3.0], [-3.0, -1.0, -1.0], [1.0, 3.0, 1.0]])
    decided = OneVsOne().decide(scores, 3)
    np.testing.assert_array_equal(decided.argmax(axis=1), [2, 1, 0])
    assert (np.abs(decided - 1.0) < 1 / 3).all()  # one vote each, and a tie-break that is no vote


def test_votes_outweigh_any_sum_of_scores():
    # Class 0 wins both of its pairs by a hair, class 1 wins its other pair by far.
    scores = np.array([[0.01], [0.01], [1e6]])
    assert OneVsOne().decide(scores, 3).argmax() == 0


def test_hamming_ties_go_to_the_larger_margin():
    # Three classes, two bits: words 00, 10, 01. Bits 11 are one away from classes 1 and 2.
    scores = np.array([[2.0, 1.0], [1.0, 2.0]])
    decided = BinaryCode().decide(scores, 3)
    np.testing.assert_array_equal(decided.argmax(axis=1), [1, 2])
    np.testing.assert_allclose(np.round(decided), [[-2, -1, -1], [-2, -1, -1]])


def test_hamming_distance_outweighs_any_margin():
    # Bits 100 are class 1 exactly, however weak the first bit is.
    scores = np.array([[0.01], [-1e6], [-1e6]])
    assert BinaryCode().decide(scores, 5).argmax() == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1.0, 50.0, 1e5, 1e25, 1e290])
def test_probabilities_sum_to_one_and_are_finite(name, size):
    m = 5
    scores = size * np.random.default_rng(0).standard_normal((_n_trains(name, m), 100))
    logs = get_decision(name, m).log_probabilities(scores, m)
    assert logs.shape == (100, m)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, atol=1e-12)


def test_one_vs_rest_probabilities_are_normalised_sigmoids():
    scores = np.random.default_rng(0).normal(size=(4, 30))
    sigmoids = 1 / (1 + np.exp(-scores.T))
    expected = sigmoids / sigmoids.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(OneVsRest().log_probabilities(scores, 4)), expected, atol=1e-14)


def test_every_class_very_unlikely_still_gives_probabilities():
    scores = np.array([[-1000.0], [-1001.0], [-2000.0]])
    probabilities = np.exp(OneVsRest().log_probabilities(scores, 3))[0]
    np.testing.assert_allclose(probabilities, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0], atol=1e-12)


@pytest.mark.parametrize("m", [3, 5])
def test_pairwise_coupling_is_exact_for_consistent_pairs(m):
    probabilities = np.random.default_rng(m).dirichlet(np.ones(m), size=40)
    logs = np.log(probabilities)
    scores = np.array([logs[:, i] - logs[:, j] for i, j in combinations(range(m), 2)])
    np.testing.assert_allclose(np.exp(OneVsOne().log_probabilities(scores, m)), probabilities, rtol=1e-10)


def test_binary_code_probabilities_are_products_of_bits():
    scores = np.random.default_rng(0).normal(size=(2, 20))
    sigmoids = 1 / (1 + np.exp(-scores))
    words = [(0, 0), (1, 0), (0, 1)]
    expected = np.array(
        [np.prod([s if bit else 1 - s for s, bit in zip(sigmoids, w, strict=True)], 0) for w in words]
    ).T
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(BinaryCode().log_probabilities(scores, 3)), expected, atol=1e-14)


@pytest.mark.parametrize("m", [3, 4, 5, 8, 9])
def test_binary_code_words_differ_and_number_of_trains_is_least(m):
    code = BinaryCode().code(m)
    assert len({tuple(word) for word in code.T}) == m
    assert len(code) == int(np.ceil(np.log2(m)))


def test_unknown_name():
    with pytest.raises(ValueError, match=r"decision must be one of .*'one-vs-rest'.*, got 'all'"):
        get_decision("all", 3)


@pytest.mark.parametrize("name", NAMES)
def test_between_two_classes_there_is_only_one_decision(name):
    decision = get_decision(name, 2)
    assert isinstance(decision, TwoClasses)
    scores = np.array([[-2.0, 0.0, 0.5, 800.0, -800.0]])
    np.testing.assert_array_equal(decision.decide(scores, 2), scores[0])
    np.testing.assert_array_equal(decision.choose(scores[0]), [0, 0, 1, 1, 0])
    with np.errstate(over="ignore"):
        positive = 1 / (1 + np.exp(-scores[0]))
    probabilities = decision.probabilities(scores, 2)
    np.testing.assert_allclose(probabilities[:, 1], positive, atol=1e-15)
    np.testing.assert_array_equal(probabilities.sum(axis=1), 1)
    logs = decision.log_probabilities(scores, 2)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs), probabilities, atol=1e-15)
    assert decision.train_names(["no", "yes"]) == ("yes",)
    with pytest.raises(ValueError, match="decision must be one of"):
        get_decision("two-classes", 3)


def test_trains_are_named_by_what_a_high_score_speaks_for():
    names = ["a", "b", "c"]
    assert OneVsRest().train_names(names) == ("a", "b", "c")
    assert OneVsOne().train_names(names) == ("a vs b", "a vs c", "b vs c")
    assert BinaryCode().train_names(names) == ("b vs a/c", "c vs a/b")


@pytest.mark.parametrize("name", NAMES)
def test_classes_that_are_all_very_unlikely(name):
    logs = get_decision(name, 3).log_probabilities(np.full((_n_trains(name, 3), 2), -1e20), 3)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, atol=1e-12)
