"""Polynomial maps: range, clipping, constant and huge columns, and what they know about themselves."""

import numpy as np
import pytest

from polytrain.basis import BASES, get_basis
from polytrain.maps import ColumnSummary, MapList, MapSettings, PolynomialMap, fit_map


def scaled(X, degree=2):
    """Maps of all columns that know their ranges."""
    return MapList(PolynomialMap("power", degree + 1, *ends) for ends in zip(X.min(axis=0), X.max(axis=0), strict=True))


def test_range_of_every_feature_becomes_minus_one_to_one():
    X = np.random.default_rng(0).normal(3, 10, (50, 4))
    columns = scaled(X).place(X)
    assert columns.shape == (4, 50)
    np.testing.assert_allclose(columns.min(axis=1), -1, atol=1e-14)
    np.testing.assert_allclose(columns.max(axis=1), 1, atol=1e-14)
    low, high = X.min(axis=0), X.max(axis=0)
    np.testing.assert_allclose(columns.T, 2 * (X - low) / (high - low) - 1, atol=1e-13)


def test_values_outside_the_range_are_clipped():
    scale = scaled(np.array([[0.0, -1.0], [4.0, 1.0]]))
    far = np.array([[1e300, -1e300], [-5.0, 2.0], [1.0, 0.5]])
    np.testing.assert_allclose(scale.place(far).T, [[1, -1], [-1, 1], [-0.5, 0.5]])


def test_constant_columns_become_zero_everywhere():
    scale = scaled(np.array([[7.0, 0.0], [7.0, 0.0]]))
    np.testing.assert_array_equal(scale.place(np.array([[7.0, 0.0], [9.0, -3.0]])), 0)


@pytest.mark.parametrize("size", [1e30, 1e308, np.finfo(float).max, 1e-300])
def test_extreme_ranges(size):
    X = np.array([[-size], [0.0], [size / 2], [size]])
    np.testing.assert_allclose(scaled(X).place(X)[0], [-1, 0, 0.5, 1], atol=1e-12)


def test_a_range_of_denormal_width_stays_finite():
    X = np.array([[0.0], [5e-324]])
    assert np.isfinite(scaled(X).place(X)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept_and_the_result_is_contiguous(dtype):
    X = np.random.default_rng(0).normal(size=(10, 3)).astype(dtype)
    for columns in (scaled(X).place(X), MapList([PolynomialMap("power", 3)] * 3).place(X)):
        assert columns.dtype == dtype
        assert columns.flags.c_contiguous


def test_rows_beyond_one_block():
    X = np.random.default_rng(0).normal(size=(20000, 2))
    scale = scaled(X)
    whole = scale.place(X)
    np.testing.assert_array_equal(whole[:, 8000:8400], scale.place(X[8000:8400]))
    np.testing.assert_array_equal(whole[:, -10:], scale.place(X[-10:]))


def test_columns_without_range_are_taken_as_they_are():
    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(MapList([PolynomialMap("power", 2)] * 2).place(X), X.T)
    mixed = MapList([PolynomialMap("power", 2), PolynomialMap("legendre", 4, 1.0, 5.0)])
    np.testing.assert_array_equal(mixed.place(X), [[0, 2, 4], [-1, 0, 1]])


def test_one_column_is_placed_as_all_of_them_are():
    X = np.random.default_rng(0).normal(size=(30, 3))
    maps = scaled(X)
    for k, feature_map in enumerate(maps):
        np.testing.assert_array_equal(feature_map.place(3 * X[:, k]), maps.place(3 * X)[k])


def test_centre_and_factor_are_the_map():
    maps = MapList([PolynomialMap("power", 2, *ends) for ends in ((1.0, 3.0), (-2.0, 0.0), (5.0, 5.0))])
    X = np.array([[1.5, -1.0, 5.0], [3.0, -0.5, 5.0]])
    centre, factor = (np.array([getattr(m, name) for m in maps]) for name in ("centre", "factor"))
    np.testing.assert_allclose(maps.place(X), ((X - centre) * factor).T)
    assert factor.tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("basis", BASES)
def test_what_a_map_says_about_its_functions_is_true(basis, n):
    feature_map = PolynomialMap(basis, n, -1.0, 3.0)
    raw = np.random.default_rng(n).uniform(-1, 3, 40)
    x = feature_map.place(raw)
    values = feature_map.values(x)
    assert values.shape == (n, 40)
    np.testing.assert_array_equal(values, get_basis(basis).values(x, n))
    np.testing.assert_array_equal(values[1 : 1 + feature_map.n_linear], [x])
    rule = feature_map.products
    products = rule.values(x, np.empty((rule.size, 40)))
    np.testing.assert_array_equal(products[0], 1)
    expected = values[:, None] * values[None]
    np.testing.assert_allclose(np.einsum("ije,en->ijn", rule.table(), products), expected, atol=1e-12)
    form = feature_map.powers
    powers = (form.factor * (raw - form.centre)) ** np.arange(n)[:, None]
    np.testing.assert_allclose(form.matrix @ powers, values, atol=1e-11)
    points, weights = feature_map.measure()
    exact = [np.mean(get_basis(basis).values(np.linspace(-1, 1, 200_001), n)[i]) for i in range(n)]
    np.testing.assert_allclose(feature_map.values(points) @ weights, exact, atol=1e-4)
    np.testing.assert_array_equal(feature_map.grid(3), [-1, 1, 3])


def test_without_range_there_is_no_grid_and_no_measure():
    free = fit_map(MapSettings("power-unscaled", 2), ColumnSummary(0.0, 1.0))
    assert free == PolynomialMap("power-unscaled", 3)
    assert free.range is None
    assert free.grid(5) is None
    assert free.measure() is None


def test_a_constant_column_is_measured_at_its_only_value():
    points, weights = PolynomialMap("power", 4, 2.0, 2.0).measure()
    assert (points.tolist(), weights.tolist()) == ([0.0], [1.0])


def test_pack_and_unpack():
    maps = [
        PolynomialMap("power-unscaled", 3),
        PolynomialMap("legendre", 2, -1.0, 7.0),
        PolynomialMap("power", 5, 0.0, 0.0),
    ]
    bases, arrays = [m.basis for m in maps], PolynomialMap.pack(maps, exact=True)
    assert PolynomialMap.unpack(bases, dict(arrays)) == maps
    for name, array in (
        ("n", np.array([3, 2])),
        ("n", np.array([3, 1, 2])),
        ("range", np.array([[0.0, 1.0], [np.nan, 1.0], [0.0, 1.0]])),
        ("range", np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]])),
    ):
        with pytest.raises(ValueError, match=r"maps?|ranges"):
            PolynomialMap.unpack(bases, {**arrays, name: array})


def test_unknown_basis():
    with pytest.raises(ValueError, match=r"basis must be one of \['power', .*'category'\], got 'sine'"):
        fit_map(MapSettings("sine"), ColumnSummary(0.0, 1.0))


@pytest.mark.parametrize("n", [-1, 0, 1, 1025, 10**9])
def test_sizes_that_exports_and_explanations_could_not_handle_are_refused(n):
    with pytest.raises(ValueError, match=f"2 to 1024 functions, not {n}"):
        PolynomialMap("power", n)
