"""Second moments along a train, against moments of dense tensors."""

import numpy as np
import pytest
from reference import basis_vector, dense_tensor, make_problem
from test_task_engine import AtOnce

from polytrain.learning.engines.tasks import TaskEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.moments import measure_moments
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.tensor import clip_ranks
from polytrain.uncertainty import leverages

CASES = [
    # seed, dims, rank, rows, basis
    (0, (3,), 1, 20, "power"),
    (1, (2, 2, 2), 1, 15, "legendre"),
    (2, (2, 4, 3), (2, 3), 30, "chebyshev"),
    (3, (3, 2, 2, 4), (3, 4, 4), 30, "power"),
    (4, (2, 3), 2, 1, "power"),
]


def _kron_rows(columns, dims, basis):
    """All products of the functions of some columns, one line per row."""
    lines = []
    for row in columns.T:
        line = np.ones(1)
        for x, n in zip(row, dims, strict=True):
            line = np.kron(line, basis_vector(basis, x, n))
        lines.append(line)
    return np.array(lines)


def _dense_doubts(tensor, problem, alpha, columns, used):
    """The same from singular vectors of all unfoldings of the tensor, and inverses of Kronecker products."""
    dims, found = tensor.shape, np.zeros(columns.shape[1])
    for k in range(len(dims)):
        parts = []
        for rows in (problem.columns, columns):
            left = _kron_rows(rows[:k], dims[:k], problem.basis)
            right = _kron_rows(rows[k + 1 :], dims[k + 1 :], problem.basis)
            middle = _kron_rows(rows[k : k + 1], dims[k : k + 1], problem.basis)
            if k:
                left = left @ np.linalg.svd(tensor.reshape(left.shape[1], -1))[0][:, : used[k]]
            if k < len(dims) - 1:
                right = right @ np.linalg.svd(tensor.reshape(-1, right.shape[1]))[2][: used[k + 1]].T
            parts.append((left, middle, right))
        learned, asked = parts
        left, middle, right = ((part.T * problem.weights) @ part for part in learned)
        hessian = 2 * np.kron(left, np.kron(middle, right))
        inverse = np.linalg.inv(hessian + alpha * np.eye(len(hessian)))
        for j in range(columns.shape[1]):
            v = np.kron(asked[0][j], np.kron(asked[1][j], asked[2][j]))
            found[j] += v @ inverse @ v
    return found


def _values(maps, columns):
    return [one.values(column) for one, column in zip(maps, columns, strict=True)]


def _cores(rng, dims, rank):
    ranks = clip_ranks(dims, rank if isinstance(rank, int) else list(rank))
    return [rng.standard_normal((a, n, b)) for a, n, b in zip(ranks, dims, ranks[1:], strict=False)], ranks


@pytest.mark.parametrize(("seed", "dims", "rank", "n_rows", "basis"), CASES)
def test_doubts_are_those_of_dense_tensors(seed, dims, rank, n_rows, basis):
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, dims, n_rows=n_rows, basis=basis, loss="squared")
    cores, ranks = _cores(rng, dims, rank)
    with problem.engine() as engine:
        moments = measure_moments(engine, cores)
    asked = rng.uniform(-1, 1, (len(dims), 7))
    found = leverages(cores, moments, 0.01, _values(problem.maps, asked))
    expected = _dense_doubts(dense_tensor(cores), problem, 0.01, asked, ranks)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize(("seed", "dims", "rank", "n_rows", "basis"), CASES[2:4])
def test_neither_gauge_nor_unused_directions_matter(seed, dims, rank, n_rows, basis):
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, dims, n_rows=n_rows, basis=basis, loss="squared")
    cores, _ = _cores(rng, dims, rank)
    asked = _values(problem.maps, rng.uniform(-1, 1, (len(dims), 7)))
    other = [core.copy() for core in cores]
    for k in range(len(dims) - 1):
        b = other[k].shape[2]
        turn = rng.standard_normal((b, b)) + 2 * np.eye(b)
        # A third direction on this bond: one side has it, the other does not.
        wide = np.concatenate([other[k] @ turn, rng.standard_normal((*other[k].shape[:2], 1))], axis=2)
        back = np.tensordot(np.linalg.inv(turn), other[k + 1], axes=1)
        other[k], other[k + 1] = wide, np.concatenate([back, np.zeros((1, *back.shape[1:]))])
    found = []
    for train in (cores, other):
        with problem.engine() as engine:
            found.append(leverages(train, measure_moments(engine, train), 0.01, asked))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_rows_in_partitions_have_the_same_moments():
    problem = make_problem(3, (3, 2, 4), n_rows=60, loss="squared")
    cores, _ = _cores(np.random.default_rng(0), (3, 2, 4), 2)
    asked = _values(problem.maps, np.random.default_rng(1).uniform(-1, 1, (3, 7)))
    with problem.engine() as engine:
        expected = leverages(cores, measure_moments(engine, cores), 0.01, asked)
    partitions = [problem.rows.block(rows) for rows in (slice(0, 7), slice(7, 40), slice(40, 60))]
    tasks = TaskEngine(AtOnce(), partitions, get_loss("squared"), problem.maps)
    np.testing.assert_allclose(leverages(cores, measure_moments(tasks, cores), 0.01, asked), expected, rtol=1e-9)


def test_a_train_without_any_direction_has_none():
    problem = make_problem(0, (2, 3), n_rows=10, loss="squared")
    with problem.engine() as engine:
        assert measure_moments(engine, [np.zeros((1, 2, 2)), np.ones((2, 3, 1))]) == ()


def test_a_job_asks_for_moments():
    problem = make_problem(0, (2, 3), n_rows=30, loss="squared")
    plan = Settings("squared", (1, 2, 1), 1e-3, "linear", "auto", 2, 0.0)
    plain, asked = (learn_train(plan, problem.maps, problem.rows, Start(0), measure=m) for m in (False, True))
    assert plain.moments == ()
    assert len(asked.moments) == 2
    for one, other in zip(plain.cores, asked.cores, strict=True):
        np.testing.assert_array_equal(one, other)
