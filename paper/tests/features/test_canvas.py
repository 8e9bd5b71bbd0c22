import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polytrain_paper.features import FitToCanvas


def test_usps_digits_fill_the_box_of_mnist_digits():
    found = FitToCanvas().fit_transform(np.ones((1, 16, 16))).reshape(28, 28)
    expected = np.zeros((28, 28))
    expected[4:24, 4:24] = 1
    assert_allclose(found, expected, atol=1e-12)


def test_linear_ramps_stay_linear_away_from_the_border():
    ramp = np.arange(16.0) * np.ones((16, 1))
    found = FitToCanvas().fit_transform(ramp[np.newaxis]).reshape(28, 28)
    expected = (np.arange(20) + 0.5) * 16 / 20 - 0.5
    assert_allclose(found[10, 5:23], expected[1:-1], atol=1e-12)


def test_shrinking_averages():
    checkers = np.indices((40, 40)).sum(axis=0) % 2
    found = FitToCanvas(size=14, margin=2).fit_transform(checkers[np.newaxis].astype(float)).reshape(14, 14)
    assert_allclose(found[2:-2, 2:-2], 0.5, atol=0.03)


def test_same_size_without_margin_is_the_identity():
    images = np.random.default_rng(0).random((4, 28, 28)).astype(np.float32)
    assert_array_equal(FitToCanvas(margin=0).fit_transform(images), images.reshape(4, -1))


def test_proportions_are_kept():
    found = FitToCanvas().fit_transform(np.ones((1, 20, 10))).reshape(28, 28)
    assert_array_equal(np.flatnonzero(found.any(axis=0)), np.arange(9, 19))
    assert_array_equal(np.flatnonzero(found.any(axis=1)), np.arange(4, 24))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": 0}, "size must be an integer of at least 1, got 0"),
        ({"size": 2.5}, "size must be an integer of at least 1, got 2.5"),
        ({"margin": -1}, "margin must be an integer of at least 0, got -1"),
        ({"margin": 14}, "margin=14 leaves no room in size=28"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        FitToCanvas(**parameters).fit(np.ones((1, 16, 16)))
