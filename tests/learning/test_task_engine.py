"""The engine of tasks against the one in memory, with a runner that computes at once."""

import dataclasses

import numpy as np
import pytest
from reference import make_problem

from polytrain.learning.engines.tasks import TaskEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.tensor import clip_ranks


class AtOnce:
    """A runner whose handles are the results."""

    def map(self, function, *columns):
        return [function(*row) for row in zip(*columns, strict=True)]

    def collect(self, handles):
        return list(handles)


def _task_engine(problem, bounds):
    rows = [slice(start, stop) for start, stop in zip([0, *bounds], [*bounds, len(problem.target)], strict=True)]
    partitions = [problem.rows.block(some) for some in rows]
    return TaskEngine(AtOnce(), partitions, get_loss(problem.loss), problem.maps)


def _scores(cores, columns):
    left = np.ones((1, columns.shape[1]))
    for core, column in zip(cores, columns, strict=True):
        powers = column ** np.arange(core.shape[1])[:, None]
        left = np.einsum("aj,ij,aib->bj", left, powers, core)
    return left[0]


@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("bounds", [(), (100,), (1, 2, 399), (0, 200, 200)])
@pytest.mark.parametrize("with_offset", [False, True])
def test_same_train_however_the_rows_are_cut(loss, solver, bounds, with_offset):
    problem = make_problem(1, (3,) * 4, 3, 400, loss)
    if with_offset:
        problem = dataclasses.replace(problem, offset=np.random.default_rng(0).standard_normal(400))
    plan = Settings(loss, clip_ranks(problem.dims, 3), 1e-3, "linear", solver, 3, 0.0)
    expected = learn_train(plan, problem.maps, problem.rows, Start(0))
    learned = learn_train(plan, problem.maps, _task_engine(problem, bounds), Start(0))
    tol = 1e-8 if solver != "lbfgs" else 1e-5
    expected_scores = _scores(expected.cores, problem.columns)
    np.testing.assert_allclose(_scores(learned.cores, problem.columns), expected_scores, atol=tol)
    assert learned.stop_reason == expected.stop_reason
    assert [record["n_rows"] for record in learned.history] == [400] * 3


@pytest.mark.parametrize("where", ["local", "tasks"])
def test_line_searches_do_not_chase_rounding_in_float32(where):
    problem = make_problem(4, (3,) * 6, 4, 3000, "logistic")
    problem = dataclasses.replace(problem, columns=problem.columns.astype(np.float32))
    plan = Settings("logistic", clip_ranks(problem.dims, 4), 1e-3, "linear", "auto", 12, 0.0)
    engine = _task_engine(problem, (1000,)) if where == "tasks" else problem.engine()
    lengths = []
    probe = engine.try_step

    def watched(length, core):
        lengths.append(length)
        return probe(length, core)

    engine.try_step = watched
    learn_train(plan, problem.maps, engine, Start(0))
    assert len(lengths) < 3 * 12 * 5  # a sweep has five updates
    assert min(lengths) > 1e-3
