import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain import Polynomial, TensorTrain
from polytrain.explain.search import entries_at, largest_entries, suffix_covers
from polytrain.tensor.decompose import orthogonalize_cores

dims_of_small_tensors = st.lists(st.integers(1, 4), min_size=1, max_size=8)


def brute_force(train, k):
    """The k largest magnitudes of the dense tensor, largest first."""
    return np.sort(np.abs(train.to_dense()).ravel())[::-1][:k]


@settings(max_examples=60, deadline=None)
@given(dims=dims_of_small_tensors, rank=st.integers(1, 6), seed=st.integers(0, 10**6), k=st.integers(1, 30))
def test_largest_entries_equal_brute_force(dims, rank, seed, k):
    train = TensorTrain.random(dims, rank, random_state=seed)
    index, exact = largest_entries(train.cores, k, max_nodes=10_000)
    expected = brute_force(train, k)
    found = np.abs(train.to_dense()[tuple(index.T)])
    assert exact
    assert len({tuple(row) for row in index}) == len(index)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * train.norm())


@pytest.mark.parametrize("positive", [False, True])
def test_largest_entries_without_room_for_all_prefixes(positive):
    """With fewer nodes than prefixes the bounds must do the work. All-positive cores are the hard case for them."""
    train = TensorTrain.random((3,) * 8, 4, random_state=5)
    if positive:
        train = TensorTrain([np.abs(core) for core in train.cores])
    index, exact = largest_entries(train.cores, 5, max_nodes=300)
    assert exact
    np.testing.assert_allclose(np.abs(entries_at(train.cores, index)), brute_force(train, 5))


@settings(max_examples=40, deadline=None)
@given(dims=st.lists(st.integers(1, 3), min_size=2, max_size=6), rank=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_covers_bound_every_suffix(dims, rank, seed):
    cores = orthogonalize_cores(TensorTrain.random(dims, rank, random_state=seed).cores, len(dims) - 1)[0]
    covers = suffix_covers(cores)
    suffixes = np.ones((1, 1))
    for core, cover in zip(reversed(cores), reversed(covers[:-1]), strict=True):
        suffixes = np.tensordot(core, suffixes, axes=1).reshape(core.shape[0], -1)
        # (p s)^2 <= p M p' for all p is s' M^-1 s <= 1.
        inside = np.einsum("as,as->s", suffixes, np.linalg.pinv(cover, hermitian=True) @ suffixes)
        assert inside.max() <= 1 + 1e-8


def test_bound_is_far_below_the_norm_for_a_dense_train():
    """The Frobenius norm would need more nodes than there is memory for this train."""
    train = TensorTrain.random((3,) * 30, 8, random_state=0)
    index, exact = largest_entries(train.cores, 20, max_nodes=50_000)
    assert exact
    assert len(index) == 20


def test_search_that_is_cut_short_says_so():
    train = TensorTrain.random((3,) * 30, 8, random_state=0)
    index, exact = largest_entries(train.cores, 5, max_nodes=50)
    assert not exact
    assert len(index) == 5
    best, proven = largest_entries(train.cores, 5, max_nodes=50_000)
    assert proven
    assert np.all(np.abs(entries_at(train.cores, index)) <= np.abs(entries_at(train.cores, best)) * (1 + 1e-12))


def test_entries_at_the_level_of_rounding_are_left_out():
    polynomial = Polynomial.parse("3*x1*x30^2 - 2*x7 + x12^2*x13")
    train = polynomial.to_train()  # rounding leaves noise of 1e-17 in the cores
    index, exact = largest_entries(train.cores, 50, max_nodes=1000)
    assert exact
    assert {tuple(row) for row in index} == set(polynomial.terms)


def test_zero_train_has_no_entries():
    index, exact = largest_entries(TensorTrain.zeros((2, 3, 2)).cores, 3, max_nodes=10)
    assert index.shape == (0, 3)
    assert exact


def test_huge_and_tiny_cores_do_not_matter():
    train = TensorTrain.random((3,) * 6, 3, random_state=1)
    scaled = [core * 10.0 ** (80 if k % 2 else -80) for k, core in enumerate(train.cores)]
    one, _ = largest_entries(train.cores, 7, max_nodes=1000)
    two, exact = largest_entries(scaled, 7, max_nodes=1000)
    assert exact
    np.testing.assert_array_equal(one, two)
