"""Which rows the first sweeps see."""

import gc
import sys
import weakref
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from reference import make_problem

from polytrain.learning.engines import LocalEngine
from polytrain.learning.problem import ProblemRows
from polytrain.learning.sampling import DistinctRows, choose_rows, label_chances, row_keys, row_positions, sweep_samples
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks


@pytest.mark.parametrize("n_distinct", [1, 4095, 4096, 16_384, 20_000, 60_000, 10**6, sys.maxsize])
@pytest.mark.parametrize("n_unknowns", [2, 500, 5000])
@pytest.mark.parametrize("max_sweeps", [0, 1, 2, 3, 4, 5, 20])
def test_samples_grow_and_end_with_all_rows(n_distinct, n_unknowns, max_sweeps):
    parts = sweep_samples(n_distinct, n_unknowns, max_sweeps)
    assert sum(n_sweeps for _, n_sweeps in parts) == max_sweeps
    assert parts[-1][0] == 1.0
    assert all(earlier < later for (earlier, _), (later, _) in pairwise(parts))
    for part, _ in parts[:-1]:
        assert n_distinct >= 4096
        assert part * n_distinct >= min(8191, n_distinct / 4)
        assert part * n_distinct > 7.99 * n_unknowns
    if n_distinct >= 200_000 and max_sweeps >= 4:
        assert [part for part, _ in parts] == [0.125, 0.25, 0.5, 1.0]


def test_samples_are_nested_near_their_size_and_differ_between_seeds():
    columns = np.random.default_rng(0).uniform(-1, 1, (5, 40_000))
    positions = row_positions(row_keys(columns), seed=1)
    assert ((positions >= 0) & (positions < 1)).all()
    for part in (0.125, 0.5):
        assert np.mean(positions < part) == pytest.approx(part, abs=0.01)
    other = row_positions(row_keys(columns), seed=2)
    assert np.mean((positions < 0.5) & (other < 0.5)) == pytest.approx(0.25, abs=0.01)


def test_choice_depends_on_what_a_row_holds_and_not_on_its_place():
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1, 1, (4, 500))
    order = rng.permutation(500)
    positions = row_positions(row_keys(columns), 3)
    np.testing.assert_array_equal(row_positions(row_keys(columns[:, order]), 3), positions[order])
    repeated = np.repeat(columns, 2, axis=1)
    np.testing.assert_array_equal(row_positions(row_keys(repeated), 3), np.repeat(positions, 2))
    target = rng.choice([-1.0, 1.0], 1000)
    whole = DistinctRows.of(row_keys(repeated), target)
    halves = [DistinctRows.of(row_keys(repeated[:, rows]), target[rows]) for rows in (slice(300), slice(300, None))]
    assert whole.n_rows == 500
    assert DistinctRows.merge(halves).n_rows == 500
    assert label_chances(0.1, DistinctRows.merge(halves)) == label_chances(0.1, whole)


def test_many_different_rows_are_as_good_as_infinitely_many():
    found = [DistinctRows.of(np.arange(n, n + 100_000.0), np.ones(100_000)) for n in (0, 50_000)]
    assert found[0].n_rows == 100_000
    assert DistinctRows.merge(found).n_rows > 10**9


def test_a_rare_label_keeps_enough_rows_and_sums_stay_unbiased():
    rng = np.random.default_rng(0)
    keys = rng.standard_normal(50_000)
    target = np.where(np.arange(50_000) < 2000, 1.0, -1.0)
    distinct = DistinctRows.of(keys, target)
    assert label_chances(0.125, distinct) == (0.125, 1024 / 2000)
    rows, weights = choose_rows(0.125, 0, distinct, keys, target, np.ones(50_000))
    assert weights[target[rows] > 0].sum() == pytest.approx(2000, rel=0.1)
    assert weights[target[rows] < 0].sum() == pytest.approx(48_000, rel=0.1)
    assert label_chances(0.125, DistinctRows.of(keys, rng.standard_normal(50_000))) == (0.125, 0.125)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_sampled_fit_ends_near_the_objective_of_the_full_one(loss):
    problem = make_problem(3, (3,) * 6, 4, 40_000, loss, weighted=False)
    plan = Settings(loss, clip_ranks((3,) * 6, 4), 1e-4, "linear", "auto", 4, 0.0, "auto")
    sampled = learn_train(plan, problem.maps, problem.rows, Start(0))
    full = learn_train(replace(plan, sampling=None), problem.maps, problem.rows, Start(0))
    rows = [record["n_rows"] for record in sampled.history]
    assert rows[0] < rows[2] < rows[3] == 40_000
    assert [record["n_rows"] for record in full.history] == [40_000] * 4
    assert [record["sweep"] for record in sampled.history] == [1, 2, 3, 4]
    assert sampled.history[-1]["objective"] <= 1.01 * full.history[-1]["objective"]


def test_sampled_fit_does_not_depend_on_order_repetition_or_processes():
    problem = make_problem(4, (3,) * 5, 3, 20_000, "logistic", weighted=False)
    plan = Settings("logistic", clip_ranks((3,) * 5, 3), 1e-3, "linear", "auto", 4, 0.0, "auto")
    plain = learn_train(plan, problem.maps, problem.rows, Start(0))
    shared = learn_train(plan, problem.maps, problem.rows, Start(0), n_processes=2)
    for one, other in zip(plain.cores, shared.cores, strict=True):
        np.testing.assert_array_equal(one, other)
    order = np.random.default_rng(0).permutation(20_000)
    moved = ProblemRows.make(problem.columns[:, order], problem.target[order], problem.weights[order])
    twice = ProblemRows.make(np.tile(problem.columns, 2), np.tile(problem.target, 2), np.tile(problem.weights, 2))
    for rows in (moved, twice):
        other = learn_train(plan, problem.maps, rows, Start(0))
        assert other.history[-1]["objective"] == pytest.approx(plain.history[-1]["objective"], rel=1e-9)


def separable(n_rows=6000):
    """Rows that a train can tell apart without error: a sample of them teaches too little about the others."""
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1, 1, (8, n_rows))
    target = np.sign(columns[0] * columns[1] + columns[2] * columns[3] * columns[4])
    return MapList([PolynomialMap("power", 2)] * 8), ProblemRows.make(columns, target, np.ones(n_rows))


@pytest.mark.parametrize("n_processes", [1, 2])
def test_what_a_sample_taught_is_forgotten_where_it_does_not_hold(n_processes):
    rows = separable(20_000)
    plan = Settings("logistic", clip_ranks((2,) * 8, 4), 1e-7, "linear", "auto", 4, 0.0, "auto")
    reported = []
    sampled = learn_train(
        plan, *rows, Start(0), report=lambda record, cores: reported.append(record), n_processes=n_processes
    )
    assert reported[0]["n_rows"] < 20_000  # it was tried
    assert [record["n_rows"] for record in sampled.history] == [20_000] * 4
    full = learn_train(replace(plan, sampling=None), *rows, Start(0))
    for one, other in zip(sampled.cores, full.cores, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_a_sample_that_misled_is_let_go_of(monkeypatch):
    rows = separable()
    samples = []
    open_sample = LocalEngine.sample

    def sample(self, *arguments):
        engine = open_sample(self, *arguments)
        samples.append(weakref.ref(engine))
        return engine

    monkeypatch.setattr(LocalEngine, "sample", sample)
    plan = Settings("logistic", clip_ranks((2,) * 8, 4), 1e-7, "linear", "auto", 4, 0.0, "auto")
    alive = []

    def report(record, cores):
        if record["n_rows"] == 6000:
            gc.collect()
            alive.append(sum(engine() is not None for engine in samples))

    learn_train(plan, *rows, Start(0), report=report)
    assert samples
    assert alive == [0] * 4


def test_a_fit_that_began_anew_can_be_resumed(tmp_path):
    class Stopped(Exception):
        pass

    rows = separable()
    plan = Settings("logistic", clip_ranks((2,) * 8, 4), 1e-7, "linear", "auto", 4, 0.0, "auto")
    records = []
    expected = learn_train(plan, *rows, Start(0), report=lambda record, cores: records.append(record))
    assert len(records) > len(expected.history) == 4
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
        for one, other in zip(resumed.cores, expected.cores, strict=True):
            np.testing.assert_array_equal(one, other)
        assert [record["n_rows"] for record in resumed.history] == [6000] * 4


def test_given_cores_see_all_rows():
    problem = make_problem(5, (2,) * 4, 2, 20_000, "squared")
    plan = Settings("squared", clip_ranks((2,) * 4, 2), 1e-3, "linear", "auto", 2, 0.0, "auto")
    first = learn_train(plan, problem.maps, problem.rows, Start(0))
    assert first.history[0]["n_rows"] < 20_000
    again = learn_train(plan, problem.maps, problem.rows, Start(0, first.cores))
    assert [record["n_rows"] for record in again.history] == [20_000] * 2
