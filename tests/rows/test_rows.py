"""Rows in one array or in several partitions: the same summaries, the same problems."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain import config_context
from polytrain.learning import distinct
from polytrain.learning.blocks import LinearBlock
from polytrain.learning.targets import PlacedBlock
from polytrain.rows import ClassTarget, NumberTarget, Summary
from polytrain.rows import rows as rows_module
from polytrain.rows.opening import hold_out
from polytrain.rows.rows import Rows, positive_rows
from polytrain.rows.summary import summarise, target_hashes
from power_models import power_classifier, power_regressor


class Blocks:
    """A source of rows in blocks of these sizes."""

    def __init__(self, sizes, *arrays):
        self.sizes, self.arrays = sizes, arrays

    def __iter__(self):
        start = 0
        for size in self.sizes:
            yield tuple(array[start : start + size] for array in self.arrays)
            start += size


@settings(max_examples=60, deadline=None)
@given(
    n_rows=st.integers(1, 30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    outputs=st.integers(0, 3),
    exponent=st.sampled_from([-290, 0, 5, 290, 307]),
    seed=st.integers(0, 100),
)
def test_summaries_of_partitions_merge_to_that_of_all_rows(n_rows, cuts, outputs, exponent, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 2))
    y = rng.uniform(-1, 1, (n_rows, outputs) if outputs else n_rows) * 10.0**exponent
    weights = rng.uniform(0.1, 1, n_rows) * (rng.random(n_rows) > 0.3) * 10.0 ** rng.choice([0.0, 300.0])
    weights[0] = weights.max() or 1.0
    whole = summarise(*positive_rows(X, y, weights), classify=False)
    bounds = sorted(min(cut, n_rows) for cut in cuts)
    pieces = zip(*(np.split(array, bounds) for array in (X, y, weights)), strict=True)
    merged = Summary.merge([summarise(*positive_rows(*piece), classify=False) for piece in pieces])
    assert merged.n_rows == whole.n_rows == np.sum(weights > 0)
    for name in ("low", "high"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
        np.testing.assert_array_equal(getattr(merged.target, name), getattr(whole.target, name))
    np.testing.assert_allclose(merged.target.mean, whole.target.mean, atol=1e-13)
    np.testing.assert_allclose(merged.weight, whole.weight, rtol=1e-12)
    expected = np.average(y / np.abs(y[weights > 0]).max(axis=0), axis=0, weights=weights / weights.max())
    np.testing.assert_allclose(whole.target.mean, np.atleast_1d(expected), atol=1e-13)


def test_labels_and_their_weights_merge():
    X = np.zeros((5, 1))
    pieces = [
        (X, np.array(["b", "a", "b", "c", "d"]), np.array([1.0, 2.0, 3.0, 0.0, 1e2])),
        (X[:2], np.array(["a", "c"]), np.array([4e299, 2e299])),
    ]
    merged = Summary.merge([summarise(*positive_rows(*piece), classify=True) for piece in pieces])
    assert merged.labels.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_allclose(merged.label_weights, [1.0, 1e-299, 0.5, 2.5e-298], rtol=1e-12)
    assert (merged.largest_weight, merged.least_weight) == (4e299, 1.0)


@pytest.mark.parametrize("size", [1e100, 6e139])
def test_huge_targets_and_weights_are_learned_alike_from_arrays_and_blocks(size):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = size * (X[:, 0] * X[:, 1] + 0.5)
    weights = rng.uniform(0.5, 1, 3000) * 1e307
    settings = {"rank": 2, "max_sweeps": 2, "random_state": 0}
    expected = power_regressor(**settings).fit(X, y, weights)
    with config_context(max_memory="10 kB"):
        model = power_regressor(**settings).fit(Blocks((1000, 1700, 300), X, y, weights))
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9)
    assert np.abs(expected.predict(X) - y).max() < 0.1 * size


def test_keys_and_linear_gram_matrix_are_computed_once_per_fit(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.0, 0.5])
    counts = {"keys": 0, "gram": 0}
    row_keys, facts = distinct.row_keys, LinearBlock.facts

    def counted_keys(columns):
        counts["keys"] += 1
        return row_keys(columns)

    def counted_facts(self, need):
        counts["gram"] += need.gram
        return facts(self, need)

    monkeypatch.setattr(rows_module, "row_keys", counted_keys)
    monkeypatch.setattr("polytrain.learning.problem.row_keys", counted_keys)
    monkeypatch.setattr(LinearBlock, "facts", counted_facts)
    power_classifier(loss="squared", rank=2, random_state=0).fit(X, y)
    assert counts == {"keys": 1, "gram": 1}
    power_classifier(loss="squared", rank=2, random_state=0, decision="one-vs-one", max_sweeps=0).fit(X, y)
    assert counts == {"keys": 2, "gram": 1 + 6}  # each pair of classes has rows of its own


@pytest.mark.slow
def test_pairs_of_classes_take_no_copy_of_targets_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = np.arange(20_000) % 40
    model = power_classifier(decision="one-vs-one", degree=1, rank=1, max_sweeps=0)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * X.nbytes  # targets and weights of all 780 pairs would take 780 times the rows


def test_problems_of_classes():
    rows = PlacedBlock(np.arange(8.0).reshape(2, 4), np.array([0, 2, 1, 2]), np.array([1.0, 2, 3, 4]), np.arange(4.0))
    factors = np.array([1.0, 0.5, 2.0])
    whole = ClassTarget(np.array([1.0, -1.0, -1.0]), factors).problem(rows)
    assert whole.target.tolist() == [1, -1, -1, -1]
    assert whole.weights.tolist() == [1, 4, 1.5, 8]
    pair = ClassTarget(np.array([1.0, 0.0, -1.0]), factors)
    assert not pair.keeps_all
    problem = pair.problem(rows)
    assert problem.target.tolist() == [1, -1, -1]
    assert problem.columns.tolist() == [[0, 1, 3], [4, 5, 7]]
    assert problem.weights.tolist() == [1, 4, 8]
    assert problem.keys.tolist() == [0, 1, 3]


def test_problems_of_numbers():
    y = np.array([[1.0, 10.0], [3.0, -30.0]])
    rows = PlacedBlock(np.zeros((1, 2)), y, np.ones(2), np.zeros(2))
    problem = NumberTarget(1, 30.0, 0.25, 2.0).problem(rows)
    np.testing.assert_allclose(problem.target, [(10 / 30 - 0.25) / 2, (-1 - 0.25) / 2])
    assert problem.offset is None
    offered = NumberTarget(0, offset=1.5).problem(rows)
    assert offered.target.tolist() == [1, 3]
    assert offered.offset.tolist() == [1.5, 1.5]


def test_blocks_that_do_not_belong_together_are_refused():
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match=r"blocks of X differ in their number of features: \[1, 2\]"):
        Summary.merge([summarise(X[:, :k], np.arange(4), np.ones(4), classify=True) for k in (1, 2)])
    found = [summarise(X, np.ones((4, k)), np.ones(4), classify=False) for k in (1, 2)]
    with pytest.raises(ValueError, match="blocks of y differ in their number of outputs"):
        Summary.merge(found)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        Summary.merge([summarise(X[:0], np.ones(0), np.zeros(0), classify=False)])


def test_rows_set_apart_know_nothing_of_each_other():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 2)), rng.normal(size=2000)
    X[5] = X[3]  # another target
    X[9], y[9] = X[8], y[8]
    rows = Rows.of_arrays((X, y, np.ones(2000)), False)
    assert rows.sketch.n_rows == 1998
    learned, apart = rows.set_apart(0.2)
    sizes = [side.summary.n_rows for side in (learned, apart)]
    assert sum(sizes) == 2000
    assert 350 < sizes[1] < 450
    seen = [side.scored(lambda X: X.T) for side in (learned, apart)]
    keys = [set(target_hashes(side.hashes, side.y).tolist()) for side in seen]
    assert not keys[0] & keys[1]
    assert len(keys[0] | keys[1]) == 1999
    # Neither order nor what else is there matters, and parts of a side are parts of it alone.
    few = Rows.of_arrays((X[::-3], y[::-3], np.ones(667)), False).set_apart(0.2)[1].scored(lambda X: X.T)
    assert set(target_hashes(few.hashes, few.y).tolist()) <= keys[1]
    halves = [learned.part(k, k + 1, 2).scored(lambda X: X.T).hashes for k in range(2)]
    assert sum(map(len, halves)) == sizes[0]
    assert not set(halves[0].tolist()) & set(halves[1].tolist())


@pytest.mark.parametrize("fraction", [1e-6, 0.3, 1 - 1e-6])
@pytest.mark.parametrize("n_rows", [2, 3, 10])
def test_both_sides_of_rows_that_are_held_out_have_rows(n_rows, fraction):
    X = np.arange(float(n_rows)).repeat(3)[:, None]
    sides = hold_out(Rows.of_arrays((X, X[:, 0], np.ones(len(X))), False), fraction)
    learned, held_out = (set(side.scored(lambda X: X.T).y.tolist()) for side in sides)
    assert learned | held_out == set(range(n_rows))
    assert min(len(learned), len(held_out)) >= 1
    assert not learned & held_out
    if fraction != 0.3:
        assert min(len(learned), len(held_out)) == 1


def test_equal_rows_cannot_be_held_out():
    with pytest.raises(ValueError, match=r"needs different rows .* got n_samples=5"):
        hold_out(Rows.of_arrays((np.ones((5, 1)), np.arange(5.0), np.ones(5)), False), 0.3)
