import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from polytrain_paper.datasets import load_digits_images
from polytrain_paper.features import FEATURE_KINDS, Deskew, DigitCNN, FitToCanvas, make_digit_features


@pytest.fixture(scope="module")
def digits():
    return load_digits_images()


@pytest.mark.parametrize("kind", FEATURE_KINDS)
def test_all_kinds_give_the_asked_features(kind, digits):
    features = make_digit_features(kind, 20, image_shape=(8, 8)).fit(digits.train_images[:200])
    X = features.transform(digits.test_images)
    assert X.shape == (600, 20)
    assert np.isfinite(X).all()
    assert len(features.get_feature_names_out()) == 20
    assert_allclose(clone(features).fit(digits.train_images[:200]).transform(digits.test_images), X, atol=1e-5)
    flat = digits.test_images.reshape(600, -1)
    assert_allclose(features.transform(flat), X, atol=1e-5)


def test_cnn_pipeline_is_its_steps(digits):
    canvas = FitToCanvas().fit_transform(digits.test_images)
    expected = DigitCNN(40).fit_transform(Deskew().fit_transform(canvas))
    found = make_digit_features("cnn", 40, image_shape=(8, 8)).fit_transform(digits.test_images)
    assert_allclose(found, expected, atol=1e-6)


def test_nets_know_digits_they_were_not_trained_on(digits):
    features = make_digit_features("cnn", 40, image_shape=(8, 8))
    train, test = features.fit_transform(digits.train_images), features.transform(digits.test_images)
    centers = np.stack([train[digits.train_labels == digit].mean(axis=0) for digit in range(10)])
    nearest = ((test[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert np.mean(nearest != digits.test_labels) < 0.06


def test_images_of_the_right_size_are_not_resized():
    assert [name for name, _ in make_digit_features("pca", 5).steps] == ["deskew", "pca"]
    assert [name for name, _ in make_digit_features("pca", 5, image_shape=(16, 16)).steps] == [
        "canvas",
        "deskew",
        "pca",
    ]


def test_unknown_kinds_are_named():
    with pytest.raises(ValueError, match=r"kind must be one of .*'dft'.*, got 'sift'"):
        make_digit_features("sift")
