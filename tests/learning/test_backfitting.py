"""Sums of trains are learned in rounds: towards the exact solution, and the same wherever the rows are."""

from functools import partial

import numpy as np
import pytest

from polytrain.choice.map_search import function_values
from polytrain.learning.dual import solve_dual
from polytrain.learning.parts import joined_ranks, make_parts, parts_kernel, sum_scores, with_rank
from polytrain.learning.placed import PlacedRows
from polytrain.learning.schedule import train
from polytrain.learning.settings import Settings, Start
from polytrain.learning.targets import PartTarget, PlacedBlock
from polytrain.maps import MapList, PolynomialMap
from polytrain.models import FittedModel
from polytrain.rows import ClassTarget, NumberTarget, Rows

GROUPS = [{0, 1}, {1, 2, 3}, {4}]


class Elsewhere:
    """Runs tasks at once; rows that it keeps are never in one place."""

    def map(self, function, *columns):
        return [function(*row) for row in zip(*columns, strict=True)]

    def collect(self, handles):
        return handles


def some_rows(n_rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 5))
    y = X[:, 0] * X[:, 1] + X[:, 1] * X[:, 2] * X[:, 3] + X[:, 4] ** 2 + 0.1 * rng.normal(size=n_rows)
    return X, y, rng.uniform(0.2, 1, size=n_rows)


def backfit(loss="squared", rank=3, max_sweeps=4, tol=0.0, alpha=1e-2, rows=None, elsewhere=False, y=None, dtype=float):
    X, numbers, weights = some_rows() if rows is None else rows
    maps = MapList([PolynomialMap("legendre", 3)] * 5)
    parts = with_rank(make_parts(GROUPS, 5), maps.dims, rank)
    plan = Settings(loss, joined_ranks(parts, maps.dims), alpha, "linear", "auto", max_sweeps, tol)
    classify = loss == "logistic"
    target = ClassTarget(np.array([-1.0, 1.0]), np.ones(2)) if classify else NumberTarget(0)
    arrays = X.astype(dtype), (numbers > 0).astype(int) if classify else numbers, weights
    placed = Rows.of_arrays(arrays, classify).place(maps)
    if elsewhere:
        placed = PlacedRows(runner=Elsewhere(), partitions=[placed.block])
    (found,) = train(placed, maps, plan, [target], [Start(0)], parts=parts)
    return maps, parts, found, FittedModel(loss, maps, [found.cores])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_objective_never_rises(loss, dtype):
    _, _, found, _ = backfit(loss, rank=2, dtype=dtype)
    objectives = [record["objective"] for record in found.history]
    slack = 1e-12 if dtype == np.float64 else 1e-5
    assert len(objectives) == 4
    assert all(record["decrease"] >= -slack * abs(record["objective"]) for record in found.history)
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_objective_is_that_of_the_whole(loss):
    X, y, weights = some_rows()
    alpha = 1e-2
    _, _, found, model = backfit(loss, alpha=alpha)
    scores = model.scores(X)[0]
    signs = np.where(y > 0, 1.0, -1.0)
    losses = np.square(scores - y) if loss == "squared" else np.logaddexp(0, -signs * scores)
    norms = sum(np.square(np.linalg.norm(_dense(cores))) for cores in found.parts)
    expected = np.average(losses, weights=weights) + alpha / 2 * norms
    np.testing.assert_allclose(found.history[-1]["objective"], expected, rtol=1e-9)


def _dense(cores):
    dense = np.ones((1, 1))
    for core in cores:
        dense = (dense @ core.reshape(len(core), -1)).reshape(-1, core.shape[2])
    return dense


def test_rounds_lead_to_the_exact_solution():
    X, y, weights = some_rows()
    alpha = 0.05
    maps, parts, found, model = backfit(rank=9, max_sweeps=60, alpha=alpha)
    weights = weights / weights.sum()
    kernel = parts_kernel(function_values(maps, X), parts)
    exact = solve_dual(kernel, y, weights, alpha)
    least = weights @ np.square(kernel @ exact - y) + alpha / 2 * exact @ kernel @ exact
    assert least * (1 - 1e-9) <= found.history[-1]["objective"] <= least * (1 + 1e-5)
    np.testing.assert_allclose(model.scores(X)[0], kernel @ exact, atol=1e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_elsewhere_lead_to_the_same_model(loss):
    X, _, _ = some_rows()
    here, there = (backfit(loss, elsewhere=elsewhere) for elsewhere in (False, True))
    np.testing.assert_allclose(there[3].scores(X), here[3].scores(X), atol=1e-9)


def test_repeated_rows_are_rows_of_twice_the_weight():
    X, y, weights = some_rows(60)
    twice = backfit(rows=(X, y, 2 * weights))
    repeated = backfit(rows=tuple(np.concatenate([array, array])[::-1] for array in (X, y, weights)))
    np.testing.assert_allclose(repeated[3].scores(X), twice[3].scores(X), atol=1e-8)


def test_it_ends_where_the_objective_hardly_changes():
    _, _, found, _ = backfit(max_sweeps=100, tol=1e-3)
    last = found.history[-1]
    assert found.stop_reason == "tolerance"
    assert 0 <= last["decrease"] <= 1e-3 * (last["objective"] + last["decrease"])


def test_an_additive_part_alone_is_solved_at_once():
    X, y, weights = some_rows()
    maps = MapList([PolynomialMap("legendre", 3)] * 5)
    parts = make_parts([{k} for k in range(5)], 5)
    plan = Settings("squared", joined_ranks(parts, maps.dims), 0.1, "linear", "auto", 4, 0.0)
    placed = Rows.of_arrays((X, y, weights), False).place(maps)
    (found,) = train(placed, maps, plan, [NumberTarget(0)], [Start(0)], parts=parts)
    model = FittedModel("squared", maps, [found.cores])
    kernel, shares = parts_kernel(function_values(maps, X), parts), weights / weights.sum()
    np.testing.assert_allclose(model.scores(X)[0], kernel @ solve_dual(kernel, y, shares, 0.1), atol=1e-10)
    assert found.history == []


@pytest.mark.parametrize("code", [[-1.0, 1.0, 0.0], [1.0, -1.0, 1.0]])
def test_scores_that_are_known_are_those_of_the_other_parts(code):
    """Also where some classes are left out."""
    rng = np.random.default_rng(0)
    maps, parts, found, _ = backfit()
    columns = rng.uniform(-1, 1, size=(5, 40))
    block = PlacedBlock(columns, rng.integers(0, 3, size=40), rng.uniform(1, 2, size=40), rng.integers(0, 9, size=40))
    others = partial(sum_scores, parts[1:], maps, found.parts[1:])
    known = others(columns)
    target = ClassTarget(np.array(code), np.ones(3))
    one, two = (PartTarget(target, (4, 2), rest).problem(block) for rest in (others, known))
    plain = target.problem(block)
    for name in ("columns", "target", "weights", "keys", "offset"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-13)
    np.testing.assert_array_equal(one.columns, plain.columns[[4, 2]])
    np.testing.assert_array_equal(one.keys, plain.keys)


def test_a_report_may_end_the_rounds():
    X, y, weights = some_rows()
    maps = MapList([PolynomialMap("legendre", 3)] * 5)
    parts = with_rank(make_parts(GROUPS, 5), maps.dims, 2)
    plan = Settings("squared", joined_ranks(parts, maps.dims), 1e-2, "linear", "auto", 9, 0.0)
    placed = Rows.of_arrays((X, y, weights), False).place(maps)
    seen = []

    def report(index, record, cores):
        seen.append(cores)
        return len(seen) == 2

    (found,) = train(placed, maps, plan, [NumberTarget(0)], [Start(0)], report=report, parts=parts)
    assert (found.stop_reason, len(found.history)) == ("stopped", 2)
    for one, other in zip(seen[-1], found.cores, strict=True):
        np.testing.assert_array_equal(one, other)
