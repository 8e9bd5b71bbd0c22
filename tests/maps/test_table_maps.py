"""Maps that are tables: functions that suit the values of a column, categories, and rows that stand for all."""

import copy
import ctypes
import pickle
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_legendre

import polytrain
from polytrain import config_context
from polytrain.explain import partial_dependence, sobol_indices
from polytrain.export import to_c, to_onnx
from polytrain.maps import CategoryMap, ColumnSummary, InterpolatedMap, MapSettings, fit_map
from polytrain.maps.column_functions import eigenfunctions, gauss_kernel, spline_kernel
from polytrain.rows.rows import positive_rows
from polytrain.rows.summary import RowSketch, sketch_rows, summarise
from power_models import power_classifier, power_regressor

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")

BASES = [*InterpolatedMap.bases, "category"]


def summary_of(values, weights=None):
    values = np.asarray(values, dtype=float)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    missing = np.isnan(values)
    different, place = np.unique(values[~missing], return_inverse=True)
    totals = np.bincount(place, weights[~missing], minlength=len(different))
    ends = (different[0], different[-1]) if len(different) else (np.nan, np.nan)
    return ColumnSummary(*ends, different, totals, float(weights[missing].sum()))


@pytest.mark.parametrize("kernel", [spline_kernel, gauss_kernel, lambda u: np.eye(len(u))])
@pytest.mark.parametrize("size", [2, 5, 40])
def test_eigenfunctions_are_centred_uncorrelated_and_carry_the_kernel(kernel, size):
    rng = np.random.default_rng(size)
    u, weights = np.sort(rng.random(size)), rng.dirichlet(np.ones(size))
    functions = eigenfunctions(kernel(u), weights)
    np.testing.assert_allclose(functions @ weights, 0, atol=1e-9)
    covariance = (functions * weights) @ functions.T
    np.testing.assert_allclose(covariance, np.diag(np.diagonal(covariance)), atol=1e-9)
    centred = np.eye(size) - np.outer(np.ones(size), weights)
    exact = centred @ kernel(u) @ centred.T
    exact /= weights @ np.diagonal(exact)
    assert 0 < np.trace(covariance) <= 1 + 1e-9
    if len(functions) < 16:  # all but half a per cent of the variance, where the number of functions allows it
        assert np.trace(covariance) >= 0.995
        gap = exact - functions.T @ functions
        assert weights @ np.diagonal(gap) <= 0.0051


def test_spline_functions_of_uniform_values_are_cosines():
    u = np.linspace(0, 1, 401)
    functions = eigenfunctions(spline_kernel(u), np.full(401, 1 / 401))
    for j, function in enumerate(functions[:5], start=1):
        cosine = np.cos(np.pi * j * u) * (-1) ** j
        np.testing.assert_allclose(function / function[-1], cosine, atol=0.02)
    sizes = np.square(functions).mean(axis=1)
    np.testing.assert_allclose(sizes[:5] / sizes[0], 1 / np.arange(1, 6) ** 2, rtol=0.02)


@pytest.mark.parametrize("basis", InterpolatedMap.bases)
@pytest.mark.parametrize("n_values", [1, 2, 7, 129, 160, 1000])
def test_values_are_straight_lines_between_knots(basis, n_values):
    rng = np.random.default_rng(0)
    column = np.exp(rng.normal(size=n_values))
    feature_map = fit_map(MapSettings(basis, bandwidth=0.7, n_columns=3), summary_of(column))
    at = np.concatenate([rng.uniform(column.min() - 1, column.max() + 1, 50), column[:20]])
    values = feature_map.values(feature_map.place(at))
    assert values.shape == (feature_map.n, len(at))
    np.testing.assert_array_equal(values[0], 1)
    for function, row in zip(feature_map.table, values, strict=True):
        np.testing.assert_allclose(row, np.interp(at, feature_map.points, function), atol=1e-12)
    single = feature_map.values(feature_map.place(at.astype(np.float32)))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, values, atol=2e-3)
    assert len(feature_map.points) <= 128
    assert feature_map.range == (column.min(), column.max())
    points, weights = feature_map.measure()
    means = feature_map.values(points) @ weights
    np.testing.assert_allclose(means[1:], 0, atol=1e-8)
    spread = np.square(feature_map.values(points)[1:]) @ weights
    if n_values > 1 and not basis.startswith("smooth"):
        assert spread.sum() == pytest.approx(0.49 / 3, rel=0.05)  # sixteen functions have 96 per cent


def test_ranks_do_not_see_outliers_or_monotone_changes():
    rng = np.random.default_rng(0)
    column = rng.normal(size=90)
    plain, bent = (fit_map(MapSettings("spline-rank"), summary_of(x)) for x in (column, np.exp(5 * column)))
    np.testing.assert_allclose(plain.table, bent.table, atol=1e-9)


def test_weights_and_repetition_are_the_same():
    rng = np.random.default_rng(0)
    column, counts = rng.integers(0, 30, 60).astype(float), rng.integers(1, 4, 60)
    for basis in BASES:
        weighted = fit_map(MapSettings(basis), summary_of(column, counts))
        repeated = fit_map(MapSettings(basis), summary_of(np.repeat(column, counts)))
        assert weighted == repeated


def test_levels_that_were_never_seen_are_the_mean():
    feature_map = fit_map(MapSettings("category"), summary_of([1, 1, 1, 4, 4, 9]))
    values = feature_map.values(feature_map.place(np.array([1.0, 4.0, 9.0, 2.0, -5.0, 100.0, np.inf])))
    np.testing.assert_array_equal(values[1:, 3:], 0)
    assert len(np.unique(values[1:, :3].round(9), axis=1).T) == 3
    np.testing.assert_array_equal(feature_map.grid(5), [1, 4, 9])


def test_very_many_levels_are_cut_to_the_frequent_ones():
    counts = np.arange(1, 1001)
    feature_map = fit_map(MapSettings("category"), summary_of(np.arange(1000), counts))
    assert len(feature_map.points) == feature_map.n == 64
    assert feature_map.points[0] == 936


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kind", ["constant", "two values", "integers", "huge", "outlier", "lognormal", "tiny"])
def test_odd_columns_are_fine(basis, kind):
    rng = np.random.default_rng(0)
    column = {
        "constant": np.full(300, 7.0),
        "two values": rng.integers(0, 2, 300).astype(float),
        "integers": rng.integers(0, 5, 300).astype(float),
        "huge": rng.uniform(-1, 1, 300) * 1.7e308,
        "outlier": np.where(np.arange(300) == 5, 1e4, rng.normal(size=300)),
        "lognormal": np.exp(3 * rng.normal(size=300)),
        "tiny": rng.uniform(-1, 1, 300) * 1e-300,
    }[kind]
    X = np.column_stack([rng.normal(size=300), column])
    y = X[:, 0] + (column > np.median(column))
    model = power_regressor(basis=["spline", basis], rank=3, alpha=1e-3, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    if basis != "category" or kind in ("constant", "two values", "integers"):
        # A smooth function of the range cannot do much with a column that is all in one place of it.
        assert model.score(X, y) > (0.7 if basis in ("gauss", "smooth") else 0.9)
    far = np.column_stack([X[:, 0], np.where(np.arange(300) % 2, -1.7e308, 1.7e308)])
    assert np.isfinite(model.predict(far)).all()


def test_pickle_copy_and_equality():
    for basis in BASES:
        feature_map = fit_map(MapSettings(basis), summary_of([1, 2, 2, 5, 7]))
        feature_map.values(feature_map.place(np.array([1.0])))
        for again in (pickle.loads(pickle.dumps(feature_map)), copy.deepcopy(feature_map)):
            assert again == feature_map
            assert hash(again) == hash(feature_map)
        assert feature_map != fit_map(MapSettings(basis, bandwidth=0.5), summary_of([1, 2, 2, 5, 7]))
        assert feature_map != fit_map(MapSettings(basis), summary_of([1, 2, 2, 5, 7, np.nan]))
        with pytest.raises(ValueError, match="read-only"):
            feature_map.table[0] = 0


@pytest.mark.parametrize("kind", [InterpolatedMap, CategoryMap])
def test_files_that_say_something_impossible_are_refused(kind):
    maps = [fit_map(MapSettings(kind.bases[0]), summary_of(values)) for values in ([1, 2, 5], [3, 4], [9])]
    bases, arrays = [m.basis for m in maps], kind.pack(maps, exact=True)
    assert kind.unpack(bases, dict(arrays)) == maps
    changes = [
        ("size", lambda a: a + 1),
        ("size", lambda a: a * 0),
        ("size", lambda a: np.array([[2, 2**40]] * 3)),
        ("points", lambda a: a[::-1]),
        ("points", lambda a: a[:-1]),
        ("points", lambda a: a * np.nan),
        ("weights", lambda a: -a),
        ("weights", lambda a: 2 * a),
        ("table", lambda a: 2 * a),
        ("table", lambda a: a.astype(np.float32)),
    ]
    for name, change in changes:
        with pytest.raises(ValueError, match="map"):
            kind.unpack(bases, {**arrays, name: np.ascontiguousarray(change(arrays[name]))})


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=500), np.exp(rng.normal(size=500)), rng.integers(0, 6, 500), np.full(500, 3.0)]
    )
    y = np.abs(X[:, 0]) * np.array([0, 2, -1, 0.5, 3, 1])[X[:, 2].astype(int)] + np.log(X[:, 1])
    settings = {"basis": ["spline", "gauss-rank", "category", "spline"], "rank": 6, "alpha": 1e-5, "max_sweeps": 6}
    return power_regressor(random_state=0, bandwidth=2.0, **settings).fit(X, y), X, y


def test_mixed_maps_learn_and_go_everywhere(mixed, tmp_path):
    model, X, y = mixed
    assert model.score(X, y) > 0.98
    far = np.vstack([X, X * 3 - 1, X + 100])
    model.save(tmp_path / "model")
    loaded = polytrain.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(far), model.predict(far), rtol=1e-5, atol=1e-5)

    indices = sobol_indices(model)
    assert indices.total[0, 3] == pytest.approx(0, abs=1e-9)
    assert indices.total[0, [0, 2]].min() > 0.1
    curve = partial_dependence(model, 2, X)
    np.testing.assert_array_equal(curve.grid[0], np.arange(6))
    assert curve.values[0].argmax() == 4

    onnxruntime = pytest.importorskip("onnxruntime")
    graph = to_onnx(model, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"X": far})[0][:, 0], model.predict(far), atol=1e-10)

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler:
        (tmp_path / "model.c").write_text(to_c(model))
        flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Werror", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "-o", tmp_path / "model.so", tmp_path / "model.c"], check=True)
        predict = ctypes.CDLL(str(tmp_path / "model.so")).model_predict
        predict.restype = ctypes.c_double
        pointer = ctypes.POINTER(ctypes.c_double)
        found = [predict(row.ctypes.data_as(pointer)) for row in np.ascontiguousarray(far)]
        np.testing.assert_allclose(found, model.predict(far), atol=1e-7)


def test_bandwidth_is_the_size_of_the_prior(mixed):
    _, X, _ = mixed
    for bandwidth in (0.5, 2.0):
        model = power_regressor(basis="spline", bandwidth=bandwidth, rank=1, max_sweeps=0).fit(X, X[:, 0])
        total = 0.0
        for feature_map in model.maps_:
            places, parts = feature_map.measure()
            total += (np.square(feature_map.values(places)[1:]) @ parts).sum()
        assert total == pytest.approx(0.75 * bandwidth**2, rel=0.05)  # one of the four columns is constant
    for wrong in (0.0, -1.0, "wide", np.inf):
        with pytest.raises(ValueError, match="bandwidth must be"):
            power_regressor(bandwidth=wrong).fit(X, X[:, 0])


def test_thresholds_are_learned_by_splines_where_squares_cannot():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = (np.floor(2 * X[:, 0]) + np.floor(2 * X[:, 1])) % 2 > 0
    settings = {"rank": 4, "alpha": 1e-4, "random_state": 0, "loss": "squared"}
    square = power_classifier(**settings).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    spline = power_classifier(basis="spline", bandwidth=3.0, **settings).fit(X[:1000], y[:1000])
    assert spline.score(X[1000:], y[1000:]) > 0.9
    assert square < 0.7


def test_warm_starts_keep_the_knots(mixed):
    _, X, y = mixed
    model = power_regressor(basis="spline", rank=3, warm_start=True, random_state=0).fit(X, y)
    maps, before = model.maps_, model.predict(X)
    model.set_params(max_sweeps=0).fit(X[:100], y[:100])
    assert model.maps_ == maps
    np.testing.assert_allclose(
        model.predict(X) - model.intercept_, before - y.mean(), atol=1e-9
    )  # the intercept is that of the new rows


def sketched(X, y, weights, classify=False):
    rows = positive_rows(X, y, weights)
    return sketch_rows(*rows, summarise(*rows, classify))


@settings(max_examples=60, deadline=None)
@given(
    n_rows=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 60), max_size=3),
    targets=st.sampled_from(["labels", "one number", "two numbers"]),
    seed=st.integers(0, 99),
)
def test_sketches_of_partitions_merge_to_that_of_all_rows(n_rows, cuts, targets, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n_rows, 2)).astype(float)
    weights = rng.integers(0, 3, n_rows).astype(float)
    weights[0] = 1.0
    y = {
        "labels": np.array(["ash", "birch", "cedar"])[rng.integers(0, 3, n_rows)],
        "one number": rng.normal(size=n_rows),
        "two numbers": 1e300 * rng.normal(size=(n_rows, 2)),
    }[targets]
    whole_rows = positive_rows(X, y, weights)
    summary = summarise(*whole_rows, classify=targets == "labels")
    whole = sketch_rows(*whole_rows, summary)
    bounds = sorted(min(cut, n_rows) for cut in cuts)
    pieces = zip(*(np.split(array, bounds) for array in (X, y, weights)), strict=True)
    merged = RowSketch.merge([sketch_rows(*positive_rows(*piece), summary) for piece in pieces])
    for name in ("hashes", "X", "weights"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    np.testing.assert_allclose(merged.sums, whole.sums, atol=1e-13)
    # In units of the largest weight and of the largest target.
    units = weights / weights.max()
    if targets == "labels":
        shares = units[:, None] * (y[:, None] == np.unique(y[weights > 0]))
    else:
        outputs = y.reshape(n_rows, -1)
        shares = units[:, None] * (outputs / np.abs(outputs[weights > 0]).max(axis=0))
    different = {tuple(row) for row in X[weights > 0] + 0.0}
    assert len(whole.X) == whole.n_distinct == len(different)
    for row, weight, sums in zip(whole.X, whole.weights, whole.sums, strict=True):
        same = (row == X).all(axis=1)
        assert tuple(row) in different
        assert weight == pytest.approx(units[same].sum())
        np.testing.assert_allclose(sums, shares[same].sum(axis=0), atol=1e-13)


def test_a_sketch_of_many_rows_is_a_fair_sample_that_no_repetition_changes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 2))
    sketch = sketched(X, X[:, 0], np.ones(30_000))
    assert len(sketch.X) == 4096
    np.testing.assert_allclose(np.quantile(sketch.X, [0.1, 0.5, 0.9]), np.quantile(X, [0.1, 0.5, 0.9]), atol=0.05)
    order = rng.permutation(60_000) % 30_000
    again = sketched(X[order], X[order, 0], np.full(60_000, 0.5))
    np.testing.assert_array_equal(again.X, sketch.X)
    np.testing.assert_array_equal(again.weights, 2 * sketch.weights)
    np.testing.assert_allclose(again.sums, 2 * sketch.sums, rtol=1e-14)


@pytest.mark.parametrize("n_distinct", [1, 500, 4095])
def test_different_rows_are_counted_exactly_where_they_are_few(n_distinct):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_distinct, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0] = 0.0
    rows = np.concatenate([X, X[rng.integers(0, n_distinct, 10_000)]])
    rows[-5:] = -0.0  # the same as 0
    expected = len(np.unique(np.nan_to_num(X, nan=99.0), axis=0))
    assert sketched(rows, np.zeros(len(rows)), np.ones(len(rows))).n_distinct == expected


@pytest.mark.parametrize("n_distinct", [4096, 6000, 40_000, 300_000])
@pytest.mark.parametrize("kind", ["normal", "integers", "one column"])
def test_many_different_rows_are_counted_within_a_tenth(n_distinct, kind):
    rng = np.random.default_rng(1)
    X = {
        "normal": lambda: rng.normal(size=(n_distinct, 2)),
        "integers": lambda: np.stack([np.arange(n_distinct) % 700, np.arange(n_distinct) // 700], axis=1),
        "one column": lambda: np.arange(n_distinct)[:, None],
    }[kind]().astype(float)
    rows = np.concatenate([X, X[: n_distinct // 3]])
    found = sketched(rows, np.arange(len(rows)) % 3 > 0, np.ones(len(rows)), classify=True)
    assert found.n_distinct == pytest.approx(n_distinct, rel=0.1)
    some = found.take(slice(100))
    assert some.n_rows == 100
    np.testing.assert_array_equal(some.sums, found.sums[:100])


def test_blocks_give_the_model_of_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = np.abs(X[:, 0]) * X[:, 1]
    weights = rng.uniform(0.5, 1, 6000)

    class Blocks:
        def __iter__(self):
            for start in range(0, 6000, 2500):
                rows = slice(start, start + 2500)
                yield X[rows], y[rows], weights[rows]

    settings = {"basis": "spline-rank", "rank": 3, "max_sweeps": 2, "random_state": 0}
    expected = power_regressor(**settings).fit(X, y, weights)
    for factor in (1.0, 1e307):  # sums of such weights overflow
        weights = weights * factor
        with config_context(max_memory="10 kB"):
            model = power_regressor(**settings).fit(Blocks())
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)
        assert model.maps_.dims == expected.maps_.dims


def test_all_levels_are_told_apart_however_frequent():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(50), 20)
    X = np.column_stack([codes, rng.normal(size=1000)])
    y = rng.normal(size=50)[codes]
    settings = {"basis": ["category", "spline"], "alpha": 1e-8, "rank": 4, "random_state": 0}
    plain = power_regressor(**settings).fit(X, y)
    assert plain.score(X, y) > 0.9999
    nearly = power_regressor(**settings).fit(X, y, rng.uniform(0.999, 1.001, 1000))
    np.testing.assert_allclose(nearly.predict(X), plain.predict(X), atol=1e-3)


def test_levels_are_the_same_in_both_precisions():
    levels = np.array([0.1, 0.3, 0.7])
    for fitted, asked in ((np.float64, np.float32), (np.float32, np.float64)):
        feature_map = fit_map(MapSettings("category"), summary_of(levels.astype(fitted)))
        np.testing.assert_array_equal(feature_map.place(levels.astype(asked)), [0, 1, 2])
    close = 1.7e9 + np.arange(3)  # float32 cannot tell these apart
    feature_map = fit_map(MapSettings("category"), summary_of(close))
    np.testing.assert_array_equal(feature_map.place(close), [0, 1, 2])


@pytest.mark.parametrize("basis", InterpolatedMap.bases)
@pytest.mark.parametrize(
    "column", [np.arange(300) * 5e-324, np.array([0, 1e-322, 1.0] * 100), np.array([0, 5e-324] * 9)]
)
def test_values_too_close_to_be_told_apart_are_one(basis, column):
    feature_map = fit_map(MapSettings(basis), summary_of(column))
    assert np.isfinite(feature_map.values(feature_map.place(np.array([*column, 5e-323, -1.0, 2.0])))).all()


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_knots_that_float_cannot_tell_apart_are_exported(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([1.7e9 + rng.integers(0, 300, 400), rng.normal(size=400)])
    model = power_regressor(basis="spline", rank=2, alpha=1e-3, random_state=0).fit(X, X[:, 1])
    (tmp_path / "model.c").write_text(to_c(model, dtype="float32"))
    subprocess.run(["cc", "-std=c99", "-shared", "-fPIC", "-o", tmp_path / "m.so", tmp_path / "model.c"], check=True)
    predict = ctypes.CDLL(str(tmp_path / "m.so")).model_predict
    predict.restype = ctypes.c_float
    rows = np.ascontiguousarray(X, dtype=np.float32)
    found = [predict(row.ctypes.data_as(ctypes.POINTER(ctypes.c_float))) for row in rows]
    assert np.isfinite(found).all()


@pytest.mark.slow
def test_very_many_columns_with_very_many_functions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1000))
    model = power_regressor(basis="spline", rank=2, max_sweeps=0, random_state=0).fit(X, X[:, 0])
    assert sum(model.maps_.linear_sizes()) == 4000
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("basis", ["smooth", "smooth-rank"])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("n_values", [1, 2, 5, 9, 60])
def test_smooth_functions_are_damped_legendre_polynomials(basis, bandwidth, n_values):
    rng = np.random.default_rng(n_values)
    values, counts = np.cumsum(rng.uniform(0.1, 1, n_values)), rng.integers(1, 5, n_values).astype(float)
    summary = ColumnSummary(values[0], values[-1], values, counts)
    feature_map = fit_map(MapSettings(basis, bandwidth=bandwidth, n_columns=2), summary)
    assert feature_map.n - 1 == max(1, min(8, n_values - 1))
    size = min(1.0, bandwidth / np.sqrt(2))
    for i, function in enumerate(feature_map.table[1:], start=1):
        exact = []
        for k, value in enumerate(values):
            below = (counts[:k].sum() + counts[k] / 2) / counts.sum()
            along = (value - values[0]) / (values[-1] - values[0]) if n_values > 1 else 0.5
            u = below if basis == "smooth-rank" else along
            exact.append(size**i * np.sqrt(2 * i + 1) * eval_legendre(i, 2 * u - 1))
        np.testing.assert_allclose(function, exact - np.average(exact, weights=counts), atol=1e-12)


def test_smooth_functions_of_uniform_values_are_uncorrelated():
    values = np.linspace(-3, 4, 1000)
    feature_map = fit_map(MapSettings("smooth", bandwidth=0.5), summary_of(values))
    at = feature_map.values(feature_map.place(values))[1:]
    np.testing.assert_allclose(at @ at.T / 1000, np.diag(0.25 ** np.arange(1, 9)), atol=4e-3)


def test_smooth_functions_learn_smooth_targets_from_few_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + np.exp(X[:, 2])
    for basis in ("smooth", "smooth-rank"):
        model = power_regressor(basis=basis, rank=3, alpha=1e-6, random_state=0).fit(X[:150], y[:150])
        assert model.score(X[150:], y[150:]) > 0.98


@settings(max_examples=60, deadline=None)
@given(n_levels=st.integers(2, 20), seed=st.integers(0, 999))
def test_all_pairs_of_levels_differ_alike_in_advance(n_levels, seed):
    weights = np.random.default_rng(seed).dirichlet(np.full(n_levels, 0.3)) + 1e-6
    summary = ColumnSummary(0.0, n_levels - 1.0, np.arange(float(n_levels)), weights)
    functions = fit_map(MapSettings("category"), summary).table[1:]
    differences = np.square(functions[:, :, None] - functions[:, None]).sum(axis=0)
    expected = 2 * n_levels / (n_levels - 1) * (1 - np.eye(n_levels))
    np.testing.assert_allclose(differences, expected, rtol=1e-5, atol=1e-9)


def test_levels_with_few_rows_stay_close_to_the_mean():
    """The rarer of two levels, whose rows are all 1 where all others are 0."""
    found = []
    for n_rare in (1, 10, 100):
        X = np.column_stack([np.arange(1000) < n_rare, np.zeros(1000)]).astype(float)
        model = power_regressor(basis=["category", "spline"], alpha=0.01, rank=1, random_state=0).fit(X, X[:, 0])
        found.append(model.predict(X[:1])[0] - model.predict(X[-1:])[0])
    assert found[0] < 0.3 < 0.6 < found[1] < 0.9 < found[2]


def test_maps_of_all_kinds_share_the_knots_of_a_column_and_are_as_if_each_were_alone():
    column = summary_of(np.random.default_rng(0).lognormal(size=300))
    together = {basis: InterpolatedMap.fit(MapSettings(basis), column) for basis in InterpolatedMap.bases}
    for basis, found in together.items():
        assert found == InterpolatedMap.fit(
            MapSettings(basis), summary_of(np.random.default_rng(0).lognormal(size=300))
        )
    assert together["gauss-rank"].points is together["smooth-rank"].points


@pytest.mark.parametrize("n_levels", [2, 3, 7, 30])
def test_functions_of_levels_do_not_depend_on_the_unit_of_weights(n_levels):
    """Nor where several levels weigh the same, so that any rotation of their functions would do."""
    rng = np.random.default_rng(n_levels)
    levels, weights = np.arange(float(n_levels)), rng.integers(1, 4, n_levels).astype(float)
    for missing in (0.0, 2.0):
        expected = fit_map(MapSettings("category"), ColumnSummary(0.0, n_levels - 1.0, levels, weights, missing))
        for unit in (3.7e-5, 0.1, 1 / 3, 1e10 / 7):
            summary = ColumnSummary(0.0, n_levels - 1.0, levels, weights * unit, missing * unit)
            found = fit_map(MapSettings("category"), summary)
            np.testing.assert_allclose(found.table, expected.table, atol=1e-12)
            np.testing.assert_allclose(found.missing, expected.missing, atol=1e-12)


def test_files_with_points_that_hardly_differ_are_refused():
    """A position between two of them would overflow."""
    arrays = InterpolatedMap.pack([fit_map(MapSettings("spline"), summary_of([0.0, 1.0, 2.0]))], exact=True)
    arrays["points"] = np.array([0.0, 5e-324, 1e-320])
    with pytest.raises(ValueError, match="points of the table maps are too close"):
        InterpolatedMap.unpack(["spline"], arrays)
