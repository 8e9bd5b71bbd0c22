"""The search for the strongest pairs, against all of them."""

import itertools

import numpy as np
import pytest

from polytrain.explain.search import search_pairs


def random_cores(dims, rank, seed, damp=1.0):
    """Cores in orthonormal functions; ``damp`` makes all functions but the constant small."""
    rng = np.random.default_rng(seed)
    ranks = [1, *[rank] * (len(dims) - 1), 1]
    cores = [rng.normal(size=(a, n, b)) / np.sqrt(a) for a, n, b in zip(ranks, dims, ranks[1:], strict=False)]
    for core in cores:
        core[:, 1:] *= damp
    return cores


def all_pairs(cores):
    """Variance of every pair, each from its own product of all cores."""
    found = {}
    for i, j in itertools.combinations(range(len(cores)), 2):
        state = np.ones((1, 1))
        for k, core in enumerate(cores):
            part = core[:, 1:] if k in (i, j) else core[:, :1]
            state = np.tensordot(state, part, axes=1).reshape(-1, core.shape[2])
        found[i, j] = float(np.sum(state**2))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("dims", "rank"), [((3,), 1), ((2, 4), 2), ((3, 1, 2, 4, 2), 3), ((2,) * 12, 4)])
def test_search_equals_brute_force(dims, rank, seed):
    cores = random_cores(dims, rank, seed, damp=[1.0, 0.1][seed % 2])
    expected = all_pairs(cores)
    for k in (0, 1, 4, 100):
        found = search_pairs(cores, k)
        best = sorted(expected.values(), reverse=True)[:k]
        positive = [value for value in best if value > 0]
        assert found.variances[: len(positive)] == pytest.approx(positive, rel=1e-10)
        assert [expected[pair] for pair in found.pairs] == pytest.approx(found.variances.tolist(), rel=1e-10)
        assert found.whole == pytest.approx(sum(expected.values()))


def test_equal_pairs_come_in_order():
    """A sum of four columns, squared: all six pairs are alike."""
    step = np.zeros((3, 2, 3))
    step[:, 0] = np.eye(3)
    step[0, 1, 1] = step[1, 1, 2] = 1.0
    cores = [step[:1], step, step, step[:, :, 2:]]
    found = search_pairs(cores, 3)
    assert found.pairs == [(0, 1), (0, 2), (0, 3)]


def test_few_pairs_of_hundreds_of_columns_are_formed():
    """Most columns interact with none to speak of, as in tables."""
    rng = np.random.default_rng(0)
    cores = random_cores((9,) * 300, 8, 0)
    for core in cores:
        core[:, 0] = np.eye(8)[: core.shape[0], : core.shape[2]]
        core[:, 1:] *= 10 ** rng.uniform(-3, 0)
    found = search_pairs(cores, 10)
    assert found.n_formed < 300 * 299 / 2 / 4
    every = search_pairs(cores, 300 * 299 // 2)
    assert every.n_formed == 300 * 299 // 2
    assert found.pairs == every.pairs[:10]
    assert found.whole == pytest.approx(every.variances.sum())
