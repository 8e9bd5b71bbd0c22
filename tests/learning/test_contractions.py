"""Three ways to contract a block of rows with a core, against einsum and against each other."""

from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polytrain import TensorTrainClassifier, TensorTrainRegressor, native
from polytrain.learning import contractions, core_solvers
from polytrain.learning.contractions import make_contraction, second_moment
from polytrain.learning.engines import LocalEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.start import random_start
from polytrain.maps import MapList, MapSettings, fit_map
from polytrain.maps.feature_map import ColumnSummary
from polytrain.tensor import clip_ranks

compiled = pytest.mark.skipif(not native._routines(), reason="the compiled kernels were not built")


def column_of(basis, n_rows, dtype, seed=0):
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 6, n_rows).astype(float) if basis == "category" else rng.standard_normal(n_rows)
    raw[::9] = np.nan if basis != "power" else 0.0
    seen = raw[~np.isnan(raw)]
    values, counts = np.unique(seen, return_counts=True)
    summary = ColumnSummary(seen.min(), seen.max(), values, counts.astype(float), float(np.isnan(raw).sum()))
    feature_map = fit_map(MapSettings(basis, degree=3), summary)
    return feature_map, feature_map.place(raw.astype(dtype))


def ways(feature_map, x, near, far, to_right, monkeypatch):
    """All that can be had, by the class of their rows."""

    def take(name, shape):
        return np.empty(shape, dtype=x.dtype)

    with patch.object(native, "enabled", False):
        made = [make_contraction(feature_map, x, near, far, to_right, take)]
    if native.is_here():
        for prefers in (False, True):
            monkeypatch.setattr(contractions, "_prefers_local", lambda *_, prefers=prefers: prefers)
            made.append(make_contraction(feature_map, x, near, far, to_right, take))
    return {type(one._rows).__name__: one for one in made}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("to_right", [True, False])
@pytest.mark.parametrize("basis", ["power", "spline", "smooth-rank", "category"])
def test_all_ways_give_the_same(basis, to_right, dtype, monkeypatch):
    feature_map, x = column_of(basis, 130, dtype)
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((rank, 130)).astype(dtype) for rank in (3, 6))
    core, factors = rng.standard_normal((3, feature_map.n, 6)), rng.uniform(0, 1, 130).astype(dtype)
    near, far = (left, right) if to_right else (right, left)
    rows = np.einsum("aj,ij,bj->jaib", left, feature_map.values(x), right, dtype=np.float64)
    scores = rows.reshape(130, -1) @ core.ravel()
    moved = np.einsum("aj,ij,aib->bj" if to_right else "bj,ij,aib->aj", near, feature_map.values(x), core)
    tol = 1e-11 if dtype == np.float64 else 1e-4
    found = ways(feature_map, x, near, far, to_right, monkeypatch)
    if native.is_here():
        assert len(found) == (2 if basis == "power" else 3)
    for way in found.values():
        assert_allclose(way.scores(core), scores, rtol=tol, atol=tol)
        assert_allclose(way.sums(factors), np.tensordot(factors, rows, 1), rtol=tol, atol=tol)
        image, product = way.product(core, factors)
        assert_allclose(image, scores, rtol=tol, atol=tol)
        assert product.dtype == np.float64
        assert_allclose(product, np.tensordot(factors * scores, rows, 1), rtol=tol, atol=tol)
        assert_allclose(way.images(core, np.empty(moved.shape, dtype)), moved, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_second_moments_are_sums_of_squares(dtype):
    rng = np.random.default_rng(0)
    side, factors = rng.standard_normal((5, 77)).astype(dtype), rng.uniform(0, 1, 77).astype(dtype)
    found = second_moment(side, factors, lambda name, shape: np.empty(shape, dtype))
    assert found.dtype == np.float64
    assert_allclose(found, (side * factors) @ side.T, rtol=1e-5)


def engine_at(basis, loss, dtype, n_rows=400):
    """An engine at an inner core, and that core."""
    rng = np.random.default_rng(3)
    columns = [column_of(basis, n_rows, dtype, seed) for seed in range(4)]
    maps, placed = MapList([one for one, _ in columns]), np.array([x for _, x in columns])
    target = np.sign(rng.standard_normal(n_rows))
    engine = LocalEngine(ProblemRows.make(placed, target, rng.uniform(0, 1, n_rows)), get_loss(loss), maps)
    cores = random_start(maps.dims, clip_ranks(maps.dims, 4), rng)
    engine.place(cores, 0)
    engine.move(cores[0], to_right=True)
    engine.score(cores[1])
    return engine, cores[1]


@compiled
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("basis", ["power", "spline"])
@pytest.mark.parametrize("local", [False, True])
def test_a_descent_in_one_question_is_one_product_by_product(local, basis, loss, dtype, monkeypatch):
    monkeypatch.setattr(contractions, "_prefers_local", lambda *_: local)
    alpha, steps, directions = 1e-3, [], []
    for at_once in (True, False):
        engine, core = engine_at(basis, loss, dtype)
        if not at_once:
            monkeypatch.setattr(LocalEngine, "descend", lambda self, *_: None)
        facts = engine.facts(core_solvers._ConjugateGradients.needs)
        solve = core_solvers._ConjugateGradients.direction(engine, facts, core.shape, alpha)
        steps.append(solve(facts.gradient + alpha * core))
        directions.append(engine._blocks[0]._direction)
    tol = 1e-9 if dtype == np.float64 else 1e-3
    assert_allclose(steps[0], steps[1], rtol=tol, atol=tol * np.abs(steps[1]).max())
    assert_allclose(directions[0], directions[1], rtol=tol, atol=tol * np.abs(directions[1]).max())


@compiled
@pytest.mark.parametrize("settings", [{"basis": "power"}, {"basis": "spline", "bandwidth": 1.0}])
def test_fits_are_the_same_with_and_without_kernels(settings):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 5))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2])
    fit = {"rank": 3, "alpha": 1e-3, "init": "linear", "max_sweeps": 4, "random_state": 0, **settings}
    model = TensorTrainRegressor(**fit).fit(X, y)
    found = model.predict(X)
    with patch.object(native, "enabled", False):
        assert_allclose(model.predict(X), found, atol=1e-10)
        assert_allclose(TensorTrainRegressor(**fit).fit(X, y).predict(X), found, atol=1e-3)
    two = TensorTrainClassifier(loss="logistic", **fit).fit(X, y > 0)
    with patch.object(native, "enabled", False):
        assert_allclose(
            two.predict_proba(X),
            TensorTrainClassifier(loss="logistic", **fit).fit(X, y > 0).predict_proba(X),
            atol=0.02,
        )


@pytest.mark.parametrize("basis", ["spline", "category"])
def test_moments_between_knots_are_those_of_the_values(basis):
    feature_map, x = column_of(basis, 400, np.float64)
    factors = np.random.default_rng(0).uniform(0, 1, 400)
    values = feature_map.values(x)
    found = contractions.moment_between_knots(x, feature_map.knots(x.dtype), factors)
    assert_allclose(found, (values * factors) @ values.T, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("basis", ["spline", "smooth-rank"])
def test_functions_are_interpolated_the_same_with_and_without_kernels(basis, dtype):
    feature_map, x = column_of(basis, 700, dtype)
    out = np.empty((feature_map.n, 700), dtype)
    assert feature_map.values(x, out) is out
    with patch.object(native, "enabled", False):
        assert_allclose(out, feature_map.values(x), atol=1e-13 if dtype == np.float64 else 1e-5)
