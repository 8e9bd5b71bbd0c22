"""Shapley values of products of matrices, beside the definition: a mean over all coalitions."""

import itertools
import math

import numpy as np
import pytest

from polytrain.explain.local import shapley_values
from polytrain.explain.sites import site_matrices


def brute_force(present, absent):
    """Shapley values of one row after the other, from the worth of every coalition."""
    d, n_rows = len(absent), len(present[0])
    found = np.zeros((n_rows, d))
    for row in range(n_rows):
        worth = {}
        for inside in itertools.product([False, True], repeat=d):
            product = np.ones((1, 1))
            for k in range(d):
                product = product @ (present[k][row] if inside[k] else absent[k])
            worth[inside] = product[0, 0]
        for k in range(d):
            for inside, value in worth.items():
                if not inside[k]:
                    size = sum(inside)
                    weight = math.factorial(size) * math.factorial(d - 1 - size) / math.factorial(d)
                    joined = (*inside[:k], True, *inside[k + 1 :])
                    found[row, k] += weight * (worth[joined] - value)
    return found


def random_players(d, seed, n_rows=3):
    rng = np.random.default_rng(seed)
    ranks = [1, *rng.integers(1, 5, d - 1).tolist(), 1]
    shapes = list(itertools.pairwise(ranks))
    return [rng.normal(size=(n_rows, *shape)) for shape in shapes], [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("d", range(1, 9))
def test_equal_to_all_coalitions(d):
    present, absent = random_players(d, seed=d)
    found = shapley_values(present, absent)
    expected = brute_force(present, absent)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())


def by_size(present, absent):
    """Shapley values of the first row, from the sums over all coalitions of each size, carried along the train."""
    d = len(absent)
    found = np.zeros(d)
    for player in range(d):
        sums = np.ones((1, 1))  # one line per size
        for k in range(d):
            if k == player:
                sums = sums @ (present[k][0] - absent[k])
                continue
            wider = np.zeros((len(sums) + 1, absent[k].shape[1]))
            wider[:-1] += sums @ absent[k]
            wider[1:] += sums @ present[k][0]
            sums = wider
        found[player] = sum(total / math.comb(d - 1, size) for size, total in enumerate(sums[:, 0])) / d
    return found


@pytest.mark.parametrize("d", [5, 24, 60])
def test_equal_to_sums_by_size(d):
    present, absent = random_players(d, seed=d, n_rows=1)
    absent = [mean + 0.3 * matrix[0] for mean, matrix in zip(absent, present, strict=True)]
    expected = by_size(present, absent)
    found = shapley_values(present, absent)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


def test_products_of_several_cores():
    rng = np.random.default_rng(0)
    cores = [rng.normal(size=shape) for shape in ((2, 3, 4), (4, 2, 3))]
    values = [rng.normal(size=(3, 5)), rng.normal(size=(2, 5))]
    expected = np.einsum("aib,bjc,in,jn->nac", *cores, *values)
    np.testing.assert_allclose(site_matrices(cores, values), expected)


@pytest.mark.parametrize("d", [2, 33, 400])
def test_players_that_are_alike_share_alike(d):
    """x^d - 1 belongs to d equal players in equal parts, however many there are."""
    factor = 1.0 + 2.0 / d
    found = shapley_values([np.full((1, 1, 1), factor)] * d, [np.ones((1, 1))] * d)
    np.testing.assert_allclose(found, (factor**d - 1) / d, rtol=1e-12)


def test_sums_are_what_they_belong_to():
    """Of a train that is a sum of functions of single players, each gets its own, with 300 of them, too."""
    rng = np.random.default_rng(0)
    d = 300
    here, mean = rng.normal(size=d), rng.normal(size=d)

    def matrices(numbers):
        middle = [np.array([[1.0, number], [0.0, 1.0]]) for number in numbers]
        return [middle[0][:1], *middle[1:-1], middle[-1][:, 1:]]

    found = shapley_values([matrix[None] for matrix in matrices(here)], matrices(mean))
    np.testing.assert_allclose(found[0], here - mean, rtol=1e-10, atol=1e-12)
