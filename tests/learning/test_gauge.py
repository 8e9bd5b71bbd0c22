"""Orthogonal gauges: what is kept, what is orthogonal, and that nothing jumps."""

import numpy as np
import pytest
from reference import dense_tensor, general_d, is_left_orthogonal, is_right_orthogonal, make_problem

from polytrain.learning.gauge import fit_ranks, orthonormal_factor, shift_left, shift_right
from polytrain.tensor import TensorTrain, clip_ranks

SHAPES = [((3,), 1), ((2, 2, 2), 1), ((2, 4, 3), (2, 3)), ((3, 2, 2, 4), (3, 4, 4)), ((2, 3, 2, 3, 2), 5)]


def _rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize(("dims", "rank"), SHAPES)
def test_orthogonality_and_norm_at_every_step_of_a_walk(dims, rank):
    problem = make_problem(0, dims, rank)
    ranks = clip_ranks(dims, rank)
    tensor = dense_tensor(problem.cores)
    rng = _rng()
    cores = fit_ranks(problem.cores, ranks, rng)

    def check(position):
        assert tuple(core.shape[2] for core in cores) == ranks[1:]
        assert all(is_left_orthogonal(core) for core in cores[:position])
        assert all(is_right_orthogonal(core) for core in cores[position + 1 :])
        np.testing.assert_allclose(dense_tensor(cores), tensor, atol=1e-12)
        assert np.sum(cores[position] ** 2) == pytest.approx(np.sum(tensor**2), rel=1e-12)
        np.testing.assert_allclose(general_d(cores, position), np.eye(cores[position].size), atol=1e-12)

    check(0)
    for k in range(len(dims) - 1):
        cores[k], cores[k + 1] = shift_right(cores[k], cores[k + 1], rng)
        check(k + 1)
    for k in range(len(dims) - 1, 0, -1):
        cores[k], cores[k - 1] = shift_left(cores[k], cores[k - 1], rng)
        check(k - 1)


def test_general_d_is_not_the_identity_in_other_gauges():
    problem = make_problem(0, (2, 4, 3), (2, 3))
    assert not np.allclose(general_d(problem.cores, 1), np.eye(problem.cores[1].size), atol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_fit_ranks_keeps_the_tensor_when_ranks_grow(seed):
    dims = (3, 2, 3, 2, 3)
    problem = make_problem(seed, dims, 2)
    ranks = clip_ranks(dims, 6)
    cores = fit_ranks(problem.cores, ranks, _rng())
    assert (*(core.shape[0] for core in cores), 1) == ranks
    assert all(is_right_orthogonal(core) for core in cores[1:])
    np.testing.assert_allclose(dense_tensor(cores), dense_tensor(problem.cores), atol=1e-13)


def test_new_slots_are_directions_and_not_zeros():
    problem = make_problem(0, (3, 3, 3), 1)
    cores = fit_ranks(problem.cores, (1, 3, 3, 1), _rng())
    unfolded = cores[2].reshape(3, 3)
    assert np.linalg.matrix_rank(unfolded) == 3


@pytest.mark.parametrize("seed", range(3))
def test_fit_ranks_cuts_one_bond_like_the_best_approximation(seed):
    problem = make_problem(seed, (3, 3, 4), 4)
    tensor = dense_tensor(problem.cores)
    cores = fit_ranks(problem.cores, (1, 3, 2, 1), _rng())
    assert all(is_right_orthogonal(core) for core in cores[1:])
    singular = np.linalg.svd(tensor.reshape(9, 4), compute_uv=False)
    assert np.linalg.norm(dense_tensor(cores) - tensor) == pytest.approx(np.linalg.norm(singular[2:]), rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_fit_ranks_cuts_many_bonds_like_rounding(seed):
    dims = (3, 2, 3, 2, 3)
    problem = make_problem(seed, dims, 6)
    tensor = dense_tensor(problem.cores)
    cores = fit_ranks(problem.cores, clip_ranks(dims, 2), _rng())
    assert all(is_right_orthogonal(core) for core in cores[1:])
    error = np.linalg.norm(dense_tensor(cores) - tensor)
    tails = [
        np.linalg.norm(np.linalg.svd(tensor.reshape(int(np.prod(dims[:k])), -1), compute_uv=False)[2:])
        for k in range(1, len(dims))
    ]
    assert max(tails) * (1 - 1e-12) <= error <= np.linalg.norm(tails) * (1 + 1e-12)  # the bounds of TT-SVD
    rounded = TensorTrain(problem.cores).round(tol=0.0, max_rank=2)
    assert error <= 1.5 * np.linalg.norm(rounded.to_dense() - tensor)


def test_fit_ranks_does_not_modify_its_input():
    problem = make_problem(0, (3, 3, 3), 2)
    kept = [core.copy() for core in problem.cores]
    fit_ranks(problem.cores, (1, 1, 1, 1), _rng())
    fit_ranks(problem.cores, (1, 3, 3, 1), _rng())
    for core, copy in zip(problem.cores, kept, strict=True):
        np.testing.assert_array_equal(core, copy)


@pytest.mark.parametrize("ranks", [(1, 2, 2, 1), (1, 3, 3, 1), (1, 1, 1, 1)])
def test_fit_ranks_of_a_zero_train(ranks):
    cores = fit_ranks([np.zeros((1, 3, 2)), np.zeros((2, 3, 2)), np.zeros((2, 3, 1))], ranks, _rng())
    assert (*(core.shape[0] for core in cores), 1) == ranks
    assert all(is_right_orthogonal(core) for core in cores[1:])
    assert not dense_tensor(cores).any()


def _deficient(rng):
    """Cores of formal rank 3 whose tensor has rank 1 at every bond, and a repeated slice."""
    core0 = np.zeros((1, 3, 3))
    core0[0, :, 0] = core0[0, :, 1] = rng.standard_normal(3)
    core1 = np.repeat(rng.standard_normal((1, 3, 1)), 3, axis=0).repeat(3, axis=2)
    return [core0, core1, rng.standard_normal((3, 3, 1))]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_fit_ranks_of_rank_deficient_cores(rank):
    cores = _deficient(np.random.default_rng(0))
    fitted = fit_ranks(cores, (1, rank, rank, 1), _rng())
    assert all(is_right_orthogonal(core) for core in fitted[1:])
    np.testing.assert_allclose(dense_tensor(fitted), dense_tensor(cores), atol=1e-12)


@pytest.mark.parametrize("make", [lambda: _deficient(np.random.default_rng(0)), lambda: [np.zeros((1, 3, 3))] * 3])
def test_shifts_of_rank_deficient_and_zero_cores(make):
    cores = make()
    following = np.random.default_rng(1).standard_normal((3, 3, 3))
    core, rest = shift_right(cores[0], following, _rng())
    assert core.shape == cores[0].shape
    assert is_left_orthogonal(core)
    np.testing.assert_allclose(np.tensordot(core, rest, 1), np.tensordot(cores[0], following, 1), atol=1e-12)
    mirrored = np.ascontiguousarray(cores[0].T)
    core, rest = shift_left(mirrored, following, _rng())
    assert core.shape == mirrored.shape
    assert is_right_orthogonal(core)
    np.testing.assert_allclose(np.tensordot(rest, core, 1), np.tensordot(following, mirrored, 1), atol=1e-12)


@pytest.mark.parametrize("n_columns", [2, 4, 6])
def test_orthonormal_factor_has_the_columns_asked_for(n_columns):
    matrix = np.random.default_rng(0).standard_normal((6, 2))
    basis, factor = orthonormal_factor(matrix, n_columns, _rng())
    assert basis.shape == (6, n_columns)
    assert factor.shape == (n_columns, 2)
    np.testing.assert_allclose(basis.T @ basis, np.eye(n_columns), atol=1e-13)
    np.testing.assert_allclose(basis @ factor, matrix, atol=1e-13)


def _perturbed(cores, size):
    rng = np.random.default_rng(5)
    return [core + size * rng.standard_normal(core.shape) for core in cores]


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_fit_ranks_is_continuous(rank):
    """Rounding in the input must stay rounding in the output, also where random directions are filled in."""
    problem = make_problem(3, (3, 4, 3), (2, 2))
    ranks = clip_ranks((3, 4, 3), rank)
    plain = fit_ranks(problem.cores, ranks, _rng())
    moved = fit_ranks(_perturbed(problem.cores, 1e-13), ranks, _rng())
    for core, other in zip(plain, moved, strict=True):
        np.testing.assert_allclose(core, other, atol=1e-10)


def test_shifts_are_continuous_where_columns_are_rounding_noise():
    """A column that is zero up to rounding is not normalised: it would become an arbitrary direction."""
    core = np.random.default_rng(0).standard_normal((2, 3, 3))
    core[:, :, 2] = 0.0
    following = np.random.default_rng(1).standard_normal((3, 2, 2))
    plain = shift_right(core, following, _rng())
    moved = shift_right(core + 1e-15 * np.random.default_rng(2).standard_normal(core.shape), following, _rng())
    for part, other in zip(plain, moved, strict=True):
        np.testing.assert_allclose(part, other, atol=1e-12)
