"""The first sweeps see a sample of the rows where these are many."""

from dataclasses import replace

import numpy as np
import pytest
from reference import make_problem

from polytrain.learning import trainer
from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks


def make_plan(loss, n_columns, n, rank, alpha, max_sweeps=4):
    ranks = clip_ranks((n,) * n_columns, rank)
    return Settings(loss, rank=ranks, alpha=alpha, init="linear", solver="auto", max_sweeps=max_sweeps, tol=0.0)


def learn_from_all(monkeypatch, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "_MANY_ROWS", 10**9)
        return learn_train(*arguments)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_sampled_fit_ends_near_the_objective_of_the_full_one(monkeypatch, loss):
    problem, plan = make_problem(3, (3,) * 6, 4, 40_000, loss, weighted=False), make_plan(loss, 6, 3, 4, 1e-4)
    sampled = learn_train(plan, problem.maps, problem.rows, Start(0))
    full = learn_from_all(monkeypatch, plan, problem.maps, problem.rows, Start(0))
    assert sampled.history[0]["n_rows"] == sampled.history[1]["n_rows"] < 12_000
    assert [record["n_rows"] for record in sampled.history[2:]] == [40_000] * 2
    assert [record["sweep"] for record in sampled.history] == [1, 2, 3, 4]
    assert [record["n_rows"] for record in full.history] == [40_000] * 4
    assert sampled.history[-1]["objective"] <= 1.01 * full.history[-1]["objective"]
    for before, after in (sampled.history[:2], sampled.history[2:]):
        assert after["objective"] <= before["objective"]


def test_a_sampled_fit_does_not_depend_on_order_repetition_or_processes():
    problem, plan = (
        make_problem(4, (3,) * 5, 3, 20_000, "logistic", weighted=False),
        make_plan("logistic", 5, 3, 3, 1e-3),
    )
    plain = learn_train(plan, problem.maps, problem.rows, Start(0))
    shared = learn_train(plan, problem.maps, problem.rows, Start(0), n_processes=2)
    for core, same in zip(plain.cores, shared.cores, strict=True):
        np.testing.assert_array_equal(core, same)
    order = np.random.default_rng(0).permutation(20_000)
    moved = ProblemRows.make(problem.columns[:, order], problem.target[order], problem.weights[order])
    twice = ProblemRows.make(np.tile(problem.columns, 2), np.tile(problem.target, 2), np.tile(problem.weights, 2))
    for rows in (moved, twice):
        again = learn_train(plan, problem.maps, rows, Start(0))
        assert again.history[-1]["objective"] == pytest.approx(plain.history[-1]["objective"], rel=1e-9)


def separable(n_rows=6000):
    """Rows that a train can tell apart without error: a sample of them teaches too little about the others."""
    columns = np.random.default_rng(0).uniform(-1, 1, (8, n_rows))
    target = np.sign(columns[0] * columns[1] + columns[2] * columns[3] * columns[4])
    return MapList([PolynomialMap("power", 2)] * 8), ProblemRows.make(columns, target, np.ones(n_rows))


def test_what_a_sample_taught_is_forgotten_where_it_does_not_hold(monkeypatch):
    rows, plan, reported = separable(20_000), make_plan("logistic", 8, 2, 4, 1e-7), []
    sampled = learn_train(plan, *rows, Start(0), report=lambda record, cores: reported.append(record["n_rows"]))
    assert reported[0] < 20_000  # it was tried
    assert [record["n_rows"] for record in sampled.history] == [20_000] * 4
    full = learn_from_all(monkeypatch, plan, *rows, Start(0))
    for core, same in zip(sampled.cores, full.cores, strict=True):
        np.testing.assert_array_equal(core, same)


@pytest.mark.parametrize("alpha", [1e-7, 1e-2])  # a sample that misleads, and one that does not
def test_a_sampled_fit_can_be_resumed(tmp_path, alpha):
    class Stopped(Exception):
        pass

    rows, plan, records = separable(), make_plan("logistic", 8, 2, 4, alpha), []
    expected = learn_train(plan, *rows, Start(0), report=lambda record, cores: records.append(record))
    assert len(records) > len(expected.history) == 4 if alpha == 1e-7 else len(records) == 4
    for stop in range(len(records)):
        seen = []

        def report(record, cores, seen=seen, stop=stop):
            seen.append(record)
            if len(seen) == stop + 1:
                raise Stopped

        path = tmp_path / f"{stop}.safetensors"
        with pytest.raises(Stopped):
            learn_train(plan, *rows, Start(0, checkpoint=path), report=report)
        resumed = learn_train(plan, *rows, Start(0, checkpoint=path))
        for core, same in zip(resumed.cores, expected.cores, strict=True):
            np.testing.assert_array_equal(core, same)


@pytest.mark.parametrize("n_sweeps", [1, 2])
def test_a_report_ends_a_sampled_fit(n_sweeps):
    problem, plan = make_problem(5, (2,) * 4, 2, 20_000, "squared"), make_plan("squared", 4, 2, 2, 1e-3)
    result = learn_train(plan, problem.maps, problem.rows, Start(0), report=lambda r, cores: r["sweep"] == n_sweeps)
    assert (result.stop_reason, len(result.history)) == ("stopped", n_sweeps)


def test_given_cores_few_sweeps_and_few_rows_see_all_rows():
    problem, plan = make_problem(5, (2,) * 4, 2, 20_000, "squared"), make_plan("squared", 4, 2, 2, 1e-3)
    first = learn_train(plan, problem.maps, problem.rows, Start(0))
    assert first.history[0]["n_rows"] < 20_000
    again = learn_train(plan, problem.maps, problem.rows, Start(0, first.cores))
    short = learn_train(replace(plan, max_sweeps=3), problem.maps, problem.rows, Start(0))
    for result in (again, short):
        assert {record["n_rows"] for record in result.history} == {20_000}
    few = make_problem(5, (2,) * 4, 2, 2000, "squared")
    assert learn_train(plan, few.maps, few.rows, Start(0)).history[0]["n_rows"] == 2000
