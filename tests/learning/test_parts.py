"""Sums of trains over groups of columns: their kernel, and the one train that they are written as."""

from functools import reduce
from itertools import combinations
from operator import mul

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain import TensorTrain
from polytrain.learning.dual import product_kernel
from polytrain.learning.parts import (
    Part,
    join_parts,
    joined_ranks,
    make_parts,
    parts_kernel,
    share_additive,
    with_rank,
)
from polytrain.learning.start import linear_cores


def some_groups(rng, n_columns, pairs):
    if pairs:
        return [set(pair) for pair in combinations(range(n_columns), min(2, n_columns))]
    count = rng.integers(1, 7)
    return [set(rng.choice(n_columns, rng.integers(1, n_columns + 1), replace=False).tolist()) for _ in range(count)]


def some_trains(rng, parts, dims):
    trains = []
    for part in parts:
        if part.additive:
            trains.append(linear_cores(rng.normal(), [rng.normal(size=dims[k] - 1) for k in part.columns]))
        else:
            shapes = zip(part.ranks, [dims[k] for k in part.columns], part.ranks[1:], strict=False)
            trains.append([rng.normal(size=shape) for shape in shapes])
    return trains


def summed(parts, dims, trains):
    """The coefficients of a sum, all of them."""
    dense = np.zeros(dims)
    for part, cores in zip(parts, trains, strict=True):
        dense[tuple(slice(None) if k in part.columns else 0 for k in range(len(dims)))] += TensorTrain(cores).to_dense()
    return dense


@settings(max_examples=150, deadline=None)
@given(n_columns=st.integers(1, 7), rank=st.integers(1, 5), pairs=st.booleans(), seed=st.integers(0, 9999))
def test_one_train_is_the_sum_of_all_parts(n_columns, rank, pairs, seed):
    rng = np.random.default_rng(seed)
    dims = rng.integers(1, 5, size=n_columns).tolist()
    parts = with_rank(make_parts(some_groups(rng, n_columns, pairs), n_columns), dims, rank)
    trains = some_trains(rng, parts, dims)
    joined = join_parts(parts, dims, trains)
    expected = summed(parts, dims, trains)
    np.testing.assert_allclose(TensorTrain(joined).to_dense(), expected, atol=1e-11 * np.abs(expected).max())
    assert TensorTrain(joined).ranks == joined_ranks(parts, dims)


def test_what_no_group_has_together_has_coefficients_of_zero_exactly():
    rng, dims = np.random.default_rng(0), [3, 2, 3, 2]
    parts = with_rank(make_parts([{0, 2}, {2, 3}, {1}], 4), dims, 3)
    dense = TensorTrain(join_parts(parts, dims, some_trains(rng, parts, dims))).to_dense()
    assert (dense[:, 1:] != 0).sum() == 1  # the second column acts alone
    assert not dense[1:, 0, :, 1:].any()
    assert dense[1:, 0, 1:, 0].all()
    assert dense[0, 0, 1:, 1:].all()


def test_columns_without_interactions_take_two_channels():
    parts = make_parts([{3, 5}, {0}, {1}, {2}, {4}], 6)
    assert [part.additive for part in parts] == [True, False]
    assert joined_ranks(with_rank(parts, [4] * 6, 3), [4] * 6) == (1, 2, 2, 2, 5, 4, 1)


def test_all_pairs_share_the_functions_of_their_columns():
    pairs = [set(pair) for pair in combinations(range(10), 2)]
    ranks = joined_ranks(with_rank(make_parts(pairs, 10), [4] * 10, 3), [4] * 10)
    assert max(ranks) == 2 + 5 * 4  # and not three for each of the 25 pairs that cross the middle


def test_groups_within_others_are_no_parts():
    parts = make_parts([{1, 2}, {2, 1}, {2}, {0, 1, 2}, {4, 3}], 7)
    assert [part.columns for part in parts] == [(0, 1, 2), (3, 4), (5, 6)]


def test_a_sum_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("polytrain.learning.parts._MOST_NUMBERS", 1000)
    pairs = [set(pair) for pair in combinations(range(10), 2)]
    with pytest.raises(
        ValueError, match=r"takes a train of .* numbers, more than the 1000 that are sensible. Name fewer"
    ):
        joined_ranks(with_rank(make_parts(pairs, 10), [4] * 10, 3), [4] * 10)


@settings(max_examples=60, deadline=None)
@given(n_columns=st.integers(1, 6), n_rows=st.integers(1, 60), pairs=st.booleans(), seed=st.integers(0, 9999))
def test_the_kernel_is_the_sum_of_those_of_the_parts(n_columns, n_rows, pairs, seed):
    rng = np.random.default_rng(seed)
    values = [np.vstack([np.ones(n_rows), rng.normal(size=(2, n_rows))]) for _ in range(n_columns)]
    parts = make_parts(some_groups(rng, n_columns, pairs), n_columns)
    expected = np.zeros((n_rows, n_rows))
    for part in parts:
        kernels = [values[k].T @ values[k] for k in part.columns]
        expected += 1 + sum(kernel - 1 for kernel in kernels) if part.additive else reduce(mul, kernels)
    np.testing.assert_allclose(parts_kernel(values, parts), expected, rtol=1e-10, atol=1e-9)
    whole = Part(tuple(range(n_columns)), n_columns == 1)
    np.testing.assert_allclose(parts_kernel(values, [whole]), product_kernel(values), rtol=1e-10, atol=1e-9)


def test_an_additive_model_is_shared_out_equally():
    rng, dims = np.random.default_rng(0), [3, 2, 4]
    whole = linear_cores(0.7, [rng.normal(size=n - 1) for n in dims])
    parts = with_rank(make_parts([{0, 1}, {1, 2}], 3), dims, 2)
    shares = share_additive(whole, parts)
    np.testing.assert_allclose(summed(parts, dims, shares), TensorTrain(whole).to_dense(), atol=1e-15)
    np.testing.assert_allclose(TensorTrain(shares[0]).to_dense()[0], TensorTrain(shares[1]).to_dense()[:, 0])
