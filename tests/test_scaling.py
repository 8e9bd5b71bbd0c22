"""Feature scaling: range, clipping, constant and huge columns."""

import numpy as np
import pytest

from polytrain.scaling import FeatureScale, plain_columns


def test_range_of_every_feature_becomes_minus_one_to_one():
    X = np.random.default_rng(0).normal(3, 10, (50, 4))
    columns = FeatureScale.fit(X).columns(X)
    assert columns.shape == (4, 50)
    np.testing.assert_allclose(columns.min(axis=1), -1, atol=1e-14)
    np.testing.assert_allclose(columns.max(axis=1), 1, atol=1e-14)
    low, high = X.min(axis=0), X.max(axis=0)
    np.testing.assert_allclose(columns.T, 2 * (X - low) / (high - low) - 1, atol=1e-13)


def test_values_outside_the_range_are_clipped():
    scale = FeatureScale.fit(np.array([[0.0, -1.0], [4.0, 1.0]]))
    far = np.array([[1e300, -1e300], [-5.0, 2.0], [1.0, 0.5]])
    np.testing.assert_allclose(scale.columns(far).T, [[1, -1], [-1, 1], [-0.5, 0.5]])


def test_constant_columns_become_zero_everywhere():
    scale = FeatureScale.fit(np.array([[7.0, 0.0], [7.0, 0.0]]))
    np.testing.assert_array_equal(scale.columns(np.array([[7.0, 0.0], [9.0, -3.0]])), 0)


@pytest.mark.parametrize("size", [1e30, 1e308, np.finfo(float).max, 1e-300])
def test_extreme_ranges(size):
    X = np.array([[-size], [0.0], [size / 2], [size]])
    np.testing.assert_allclose(FeatureScale.fit(X).columns(X)[0], [-1, 0, 0.5, 1], atol=1e-12)


def test_a_range_of_denormal_width_stays_finite():
    X = np.array([[0.0], [5e-324]])
    assert np.isfinite(FeatureScale.fit(X).columns(X)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept_and_the_result_is_contiguous(dtype):
    X = np.random.default_rng(0).normal(size=(10, 3)).astype(dtype)
    for columns in (FeatureScale.fit(X).columns(X), plain_columns(X)):
        assert columns.dtype == dtype
        assert columns.flags.c_contiguous


def test_rows_beyond_one_block():
    X = np.random.default_rng(0).normal(size=(20000, 2))
    scale = FeatureScale.fit(X)
    whole = scale.columns(X)
    np.testing.assert_array_equal(whole[:, 8000:8400], scale.columns(X[8000:8400]))
    np.testing.assert_array_equal(whole[:, -10:], scale.columns(X[-10:]))


def test_plain_columns_are_the_transpose():
    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(plain_columns(X), X.T)


def test_centre_and_factor_are_the_map():
    scale = FeatureScale(np.array([1.0, -2.0, 5.0]), np.array([3.0, 0.0, 5.0]))
    X = np.array([[1.5, -1.0, 5.0], [3.0, -0.5, 5.0]])
    np.testing.assert_allclose(scale.columns(X), ((X - scale.centre) * scale.factor).T)
    assert scale.factor.tolist() == [1.0, 1.0, 0.0]
