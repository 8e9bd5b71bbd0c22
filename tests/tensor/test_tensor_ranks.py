import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytrain.tensor import TensorTrain, clip_ranks, rank_bounds

dims_lists = st.lists(st.integers(1, 5), min_size=1, max_size=7)


@given(dims_lists)
def test_bounds_are_the_smaller_side_of_each_unfolding(dims):
    expected = [min(math.prod(dims[:k]), math.prod(dims[k:])) for k in range(1, len(dims))]
    assert list(rank_bounds(dims)) == expected


@pytest.mark.parametrize("dims", [(3, 2, 4), (2, 2, 2, 2, 2), (5, 3), (7,), (1, 3, 3), (2, 1, 1, 2)])
def test_generic_tensor_attains_the_bounds(dims):
    tensor = np.random.default_rng(0).standard_normal(dims)
    assert TensorTrain.from_dense(tensor).ranks == (1, *rank_bounds(dims), 1)


def test_bounds_of_a_long_train_do_not_overflow():
    assert rank_bounds((4,) * 784)[391] == 4**392


@given(dims_lists, st.data())
def test_clipped_ranks_are_the_largest_attainable_ones(dims, data):
    wanted = data.draw(st.lists(st.integers(1, 40), min_size=len(dims) - 1, max_size=len(dims) - 1))
    ranks = clip_ranks(dims, wanted)
    # Reference: cut every bond to what any other bond and the dimensions between the two can support.
    full = [1, *wanted, 1]
    expected = [
        min(full[j] * math.prod(dims[min(j, k) : max(j, k)]) for j in range(len(full))) for k in range(len(full))
    ]
    assert list(ranks) == expected
    assert clip_ranks(dims, ranks[1:-1]) == ranks


@given(dims_lists, st.integers(1, 40))
def test_one_rank_means_the_same_rank_at_every_bond(dims, rank):
    assert clip_ranks(dims, rank) == clip_ranks(dims, [rank] * (len(dims) - 1))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 5), st.integers(0, 1000))
def test_random_cores_of_clipped_ranks_really_have_these_ranks(dims, rank, seed):
    train = TensorTrain.random(dims, rank, random_state=seed)
    assert train.ranks == clip_ranks(dims, rank)
    assert train.round().ranks == train.ranks


def test_clip_takes_numpy_integers_and_arrays():
    ranks = clip_ranks(np.array([4, 2, 3]), np.array([2, 2]))
    assert ranks == (1, 2, 2, 1)
    assert all(type(rank) is int for rank in ranks)
    assert clip_ranks((4, 2, 3), np.int64(2)) == ranks


@pytest.mark.parametrize(
    ("dims", "rank", "message"),
    [
        ((2, 2, 2), [2], r"rank must be an integer, or 2 of them for the inner bonds of 3 features, got 1\."),
        ((2, 2, 2), [2, 0], r"rank\[1\] must be a positive integer, got 0\."),
        ((2, 2, 2), 0, r"rank must be a positive integer, got 0\."),
        ((2, 2, 2), 2.5, r"rank must be a positive integer, got 2\.5\."),
        ((2, 2, 2), True, r"rank must be a positive integer, got True\."),
        ((2, 0, 2), 2, r"dims\[1\] must be a positive integer, got 0\."),
        ((), 2, r"dims must name at least one dimension, got none\."),
    ],
)
def test_clip_says_what_is_wrong(dims, rank, message):
    with pytest.raises(ValueError, match=message):
        clip_ranks(dims, rank)
