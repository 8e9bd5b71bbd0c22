"""Missing values in maps that are tables: what NaN means to them, in memory and in files."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_table_maps import BASES, summary_of

from polytrain.maps import CategoryMap, ColumnSummary, InterpolatedMap, MapList, MapSettings, PolynomialMap, fit_map
from polytrain.models.file import Document
from polytrain.models.fitted import FittedModel
from polytrain.models.fitted_state import describe_fitted, read_fitted

NAN = float("nan")


def reference(feature_map, column):
    """Values, one number after another."""
    found = []
    for value in column.tolist():
        if value != value:
            found.append(feature_map.missing)
        elif isinstance(feature_map, InterpolatedMap):
            found.append([np.interp(value, feature_map.points, function) for function in feature_map.table])
        else:
            at = [k for k, level in enumerate(feature_map.points.tolist()) if level == value]
            found.append(feature_map.table[:, at[0]] if at else np.eye(1, feature_map.n)[0])
    return np.array(found).reshape(-1, feature_map.n).T


def means(feature_map, column, weights):
    return np.average(feature_map.values(feature_map.place(column)), axis=1, weights=weights)


@settings(max_examples=150, deadline=None)
@example(basis="category", n_rows=2, n_values=1, part=0.6, size=1e-300, seed=1)
@given(
    basis=st.sampled_from(BASES),
    n_rows=st.integers(1, 40),
    n_values=st.integers(1, 12),
    part=st.sampled_from([0.0, 0.1, 0.6, 1.0]),
    size=st.sampled_from([1.0, 1e300, 1e-300]),
    seed=st.integers(0, 999),
)
def test_values_are_those_of_the_reference(basis, n_rows, n_values, part, size, seed):
    rng = np.random.default_rng(seed)
    column = size * rng.integers(-n_values, n_values + 1, n_rows)
    column[rng.random(n_rows) < part] = NAN
    weights = rng.uniform(0.5, 2.0, n_rows)
    feature_map = fit_map(MapSettings(basis, bandwidth=0.8, n_columns=2), summary_of(column, weights))
    assert feature_map.n == len(feature_map.missing) >= 2
    assert feature_map.missing_weight == pytest.approx(weights[np.isnan(column)].sum() / weights.sum())
    at = np.concatenate([column, size * rng.uniform(-15, 15, 5), [NAN, 0.0]])
    before = at.copy()
    values = feature_map.values(feature_map.place(at))
    assert_array_equal(at, before)
    assert_allclose(values, reference(feature_map, at), atol=1e-9)
    out = np.empty_like(values)
    assert feature_map.values(feature_map.place(at), out) is out
    assert_array_equal(out, values)
    # All functions but the constant have mean 0 over the rows, and the size that the map says.
    assert_allclose(means(feature_map, column, weights), np.eye(1, feature_map.n)[0], atol=1e-9)
    places, masses = feature_map.measure()
    assert masses.sum() == pytest.approx(1)
    assert_allclose(feature_map.values(places) @ masses, np.eye(1, feature_map.n)[0], atol=1e-9)
    if np.isnan(column).all():
        assert feature_map.range == (0.0, 0.0)
    else:
        assert feature_map.range == (np.nanmin(column), np.nanmax(column))
    assert np.isfinite(feature_map.grid(7)).all()


def test_a_tiny_number_is_not_the_level_zero():
    feature_map = fit_map(MapSettings("category"), summary_of([0.0, 0.5, NAN]))
    column = np.array([0.0, -0.0, 5e-324, 1e-300, -1e-46, 0.5, NAN])
    assert_array_equal(feature_map.place(column), [0, 0, 2, 2, 2, 1, 3])
    # What float32 has is told apart in float32, too.
    assert_array_equal(feature_map.place(np.array([0, 1e-45, 0.5], dtype=np.float32)), [0, 2, 1])


@pytest.mark.parametrize("basis", BASES)
def test_both_precisions(basis):
    rng = np.random.default_rng(0)
    column = np.where(rng.random(500) < 0.2, NAN, rng.integers(0, 9, 500))
    feature_map = fit_map(MapSettings(basis), summary_of(column))
    double = feature_map.values(feature_map.place(column))
    places = feature_map.place(column.astype(np.float32))
    single = feature_map.values(places)
    assert places.dtype == single.dtype == np.float32
    assert_allclose(single, double, atol=1e-5)
    gaps = single[:, np.isnan(column)]
    assert_array_equal(gaps, np.broadcast_to(np.float32(feature_map.missing)[:, None], gaps.shape))


@pytest.mark.parametrize("basis", BASES)
def test_without_missing_values_in_training_a_missing_value_is_the_mean(basis):
    feature_map = fit_map(MapSettings(basis), summary_of([1, 1, 2, 5, 7]))
    assert feature_map.missing_weight == 0
    assert_array_equal(feature_map.values(feature_map.place(np.array([NAN])))[:, 0], np.eye(1, feature_map.n)[0])
    assert len(feature_map.measure()[0]) == len(feature_map.points)


@pytest.mark.parametrize("basis", InterpolatedMap.bases)
def test_numbers_have_one_more_function_and_the_others_stay(basis):
    values = np.array([0.0, 1.0, 2.0, 2.0, 3.5, 9.0])
    settings_ = MapSettings(basis, bandwidth=0.5)
    plain = fit_map(settings_, summary_of(values))
    gaps = fit_map(settings_, summary_of([*values, NAN, NAN]))
    assert gaps.n == plain.n + 1
    assert_allclose(gaps.table[:-1], plain.table, atol=1e-12)
    assert_allclose(gaps.table[-1], -0.25 * 0.5)
    assert_allclose(gaps.missing, [1, *[0] * (plain.n - 1), 0.75 * 0.5])


def test_missing_is_a_level_like_others():
    settings_ = MapSettings("category", bandwidth=0.7)
    named = fit_map(settings_, summary_of([-5, -5, 1, 1, 1, 4, 9, 9]))
    gaps = fit_map(settings_, summary_of([NAN, NAN, 1, 1, 1, 4, 9, 9]))
    expected = named.values(named.place(np.array([-5.0, 1, 4, 9])))
    found = gaps.values(gaps.place(np.array([NAN, 1.0, 4, 9])))
    assert_allclose(found.T @ found, expected.T @ expected, atol=1e-12)
    assert_array_equal(gaps.grid(3), [1, 4, 9])
    assert_array_equal(gaps.place(np.array([NAN, 4.0, -5.0, np.inf])), [4, 1, 3, 3])
    many = fit_map(settings_, summary_of([*range(100), *[NAN] * 5]))
    assert len(many.points) == 64
    assert many.n == 65


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("values", [[NAN], [NAN, NAN], [NAN, 3.0], [3.0, 3.0, NAN], [-1.7e308, 1.7e308, NAN]])
def test_columns_with_hardly_a_value(basis, values):
    feature_map = fit_map(MapSettings(basis), summary_of(values))
    found = feature_map.values(feature_map.place(np.array([NAN, 3.0, 0.0, 1e308])))
    assert np.isfinite(found).all()
    if len(set(map(str, values))) == 2:  # a value and NaN: one function tells them apart
        assert feature_map.n == 2
        assert found[1, 0] > 0 > found[1, 1] or found[1, 0] < 0 < found[1, 1]


@pytest.mark.parametrize("basis", BASES)
def test_no_values_and_a_range(basis):
    feature_map = fit_map(MapSettings(basis), ColumnSummary(2.0, 5.0, missing=3.0))
    assert feature_map.range == (2.0, 2.0)
    assert feature_map.missing_weight == 1
    places, parts = feature_map.measure()
    assert_array_equal(np.square(feature_map.values(places)) @ parts, np.eye(1, feature_map.n)[0])


def test_only_tables_take_missing_values():
    assert InterpolatedMap.takes_missing
    assert CategoryMap.takes_missing
    assert not PolynomialMap.takes_missing


def test_rows_of_all_maps_at_once():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((20_000, len(BASES))) < 0.1, NAN, rng.integers(0, 5, (20_000, len(BASES))))
    maps = MapList([fit_map(MapSettings(basis), summary_of(x)) for basis, x in zip(BASES, X.T, strict=True)])
    for dtype in (np.float64, np.float32):
        places = maps.place(X.astype(dtype))
        assert places.dtype == dtype
        for feature_map, line, column in zip(maps, places, X.T, strict=True):
            assert_array_equal(line == feature_map.missing_place, np.isnan(column))


@pytest.mark.parametrize("basis", BASES)
def test_pickles_and_copies(basis):
    feature_map = fit_map(MapSettings(basis), summary_of([1, 2, NAN, 5]))
    for again in (pickle.loads(pickle.dumps(feature_map)), copy.deepcopy(feature_map)):
        assert again == feature_map
        assert hash(again) == hash(feature_map)
        with pytest.raises(ValueError, match="read-only"):
            again.missing[0] = 0


def packed(kind, exact=True):
    columns = ([1, 2, 5, NAN], [3, 4], [NAN, NAN], [9, NAN])
    maps = [fit_map(MapSettings(kind.bases[-1]), summary_of(values)) for values in columns]
    return maps, [m.basis for m in maps], kind.pack(maps, exact)


@pytest.mark.parametrize("kind", [InterpolatedMap, CategoryMap])
def test_files_keep_missing_values(kind):
    maps, bases, arrays = packed(kind)
    assert kind.unpack(bases, dict(arrays)) == maps


def test_model_files_keep_missing_values():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, len(BASES))) < 0.2, NAN, rng.integers(0, 5, (50, len(BASES))))
    X[:, 0] = np.arange(50)
    maps = MapList([fit_map(MapSettings(basis), summary_of(x)) for basis, x in zip(BASES, X.T, strict=True)])
    model = FittedModel("squared", maps, [[rng.normal(size=(1, n, 1)) for n in maps.dims]])
    document, tensors = describe_fitted(model)
    content = Document(json.loads(json.dumps(document)), tensors)
    again = read_fitted(content)
    content.check_empty()
    for one, two in zip(again.maps, maps, strict=True):
        assert_array_equal(one.points, two.points)
        assert one.missing_weight == two.missing_weight
    assert_allclose(again.predict(X), model.predict(X), rtol=0, atol=1e-6 * np.ptp(model.predict(X)))
    assert np.isfinite(again.predict(np.full((1, len(BASES)), NAN))).all()


@pytest.mark.parametrize("kind", [InterpolatedMap, CategoryMap])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("missing", lambda a: 2 * a),
        ("missing", lambda a: a[:-1]),
        ("missing", lambda a: a * NAN),
        ("missing", lambda a: np.where(a == 1, np.inf, a)),
        ("missing", lambda a: a.astype(np.float32)),
        ("missing", lambda a: a[None]),
        ("missing", None),
        ("missing_weight", lambda a: a + 1),
        ("missing_weight", lambda a: -a),
        ("missing_weight", lambda a: a * NAN),
        ("missing_weight", lambda a: a[1:]),
        ("missing_weight", lambda a: a[:, None]),
        ("missing_weight", lambda a: np.ones(4, dtype=np.int64)),
        ("missing_weight", None),
    ],
)
def test_files_that_say_something_impossible_are_refused(kind, name, change):
    _, bases, arrays = packed(kind)
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    with pytest.raises(ValueError, match="maps"):
        kind.unpack(bases, dict(arrays))


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from([InterpolatedMap, CategoryMap]), seed=st.integers(0, 10**6), exact=st.booleans())
def test_files_with_any_change_are_refused_or_sound(kind, seed, exact):
    rng = np.random.default_rng(seed)
    _, bases, arrays = packed(kind, exact)
    for _ in range(rng.integers(1, 3)):
        name = rng.choice([name for name in arrays if arrays[name].size])
        array = arrays[name] = arrays[name].copy()
        wild = [0, 1, -1, 2, 7, 2**40] if array.dtype == np.int64 else [0, 1, -1, 0.5, NAN, np.inf, 1e308, 5e-324]
        array.flat[rng.integers(array.size)] = rng.choice(wild)
        if rng.random() < 0.2:
            arrays[name] = array.ravel()[: rng.integers(array.size + 1)]
    try:
        maps = kind.unpack(bases, dict(arrays))
    except ValueError:
        return
    for feature_map in maps:
        places = feature_map.place(np.array([NAN, -1.0, 3.0, 1e300]))
        with np.errstate(over="ignore", invalid="ignore"):  # differences of numbers near the largest float
            values = feature_map.values(places)
        assert values.shape == (feature_map.n, 4)
        assert_array_equal(values[0], 1)
        assert_array_equal(values[:, 0], feature_map.missing)
        assert feature_map.measure()[1].sum() == pytest.approx(1, abs=1e-5)
