import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from polytrain_paper.features import LowFrequencyDFT


@given(height=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 99))
def test_all_parts_together_preserve_distances(height, width, seed):
    images = np.random.default_rng(seed).normal(size=(3, height, width))
    features = LowFrequencyDFT(height * width).fit_transform(images)
    flat = images.reshape(3, -1)
    assert_allclose(features @ features.T, flat @ flat.T, atol=1e-10)


@given(height=st.integers(1, 9), width=st.integers(1, 9), data=st.data())
def test_features_are_parts_of_the_fft(height, width, data):
    n_features = data.draw(st.integers(1, height * width))
    image = np.random.default_rng(0).normal(size=(height, width))
    dft = LowFrequencyDFT(n_features).fit(image[np.newaxis])
    spectrum = np.fft.fft2(image)
    for feature, (row, column), imaginary in zip(
        dft.transform(image[np.newaxis])[0], dft.frequencies_, dft.is_imaginary_, strict=True
    ):
        value = spectrum[row, column].imag if imaginary else spectrum[row, column].real
        own_conjugate = 2 * row % height == 0 and 2 * column % width == 0
        assert_allclose(feature, value * np.sqrt((1 if own_conjugate else 2) / (height * width)), atol=1e-10)


def test_lowest_frequencies_come_first_and_fewer_are_a_prefix():
    images = np.random.default_rng(0).random((2, 28, 28))
    many = LowFrequencyDFT(60).fit(images)
    radius = np.linalg.norm(many.frequencies_, axis=1)
    assert np.all(np.diff(radius) >= 0)
    assert_allclose(LowFrequencyDFT(20).fit_transform(images), many.transform(images)[:, :20], atol=1e-12)


def test_names_are_unique_and_go_to_pandas():
    pandas = pytest.importorskip("pandas")
    dft = LowFrequencyDFT(30).set_output(transform="pandas")
    table = dft.fit_transform(np.random.default_rng(0).random((2, 8, 8)))
    assert isinstance(table, pandas.DataFrame)
    assert_array_equal(table.columns, dft.get_feature_names_out())
    assert table.columns.is_unique


@pytest.mark.parametrize("n_features", [0, 65, 2.0, True, None])
def test_wrong_numbers_of_features_are_named(n_features):
    with pytest.raises(ValueError, match=r"n_features must be an integer from 1 to the number of pixels, 64, got"):
        LowFrequencyDFT(n_features).fit(np.ones((1, 8, 8)))
