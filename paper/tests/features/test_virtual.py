import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer

from polytrain import config_context
from polytrain_paper.datasets import load_digits_images
from polytrain_paper.features import Deskew, Distort, VirtualExamples
from power_models import power_classifier


@pytest.fixture(scope="module")
def digits():
    return load_digits_images()


@pytest.fixture(scope="module")
def pca(digits):
    return PCA(12, svd_solver="covariance_eigh").fit(flat(digits.train_images))


def flat(images):
    return images.reshape(len(images), -1)


SHIFTS = [Distort(shift=shift) for shift in ((0.5, 0), (-0.5, 0), (0, 0.5), (0, -0.5))]


def test_rows_are_images_and_then_their_distorted_copies(digits, pca):
    images, labels = flat(digits.train_images[:50]), digits.train_labels[:50]
    source = VirtualExamples(images, labels, pca, SHIFTS[:2], block_rows=20)
    found = list(source)
    assert [len(X) for X, _ in found] == [20, 20, 10] * 3
    versions = [images, *(shift.fit_transform(images) for shift in SHIFTS[:2])]
    # Blocks of another size round differently, in single precision.
    np.testing.assert_allclose(
        np.concatenate([X for X, _ in found]), np.concatenate([pca.transform(each) for each in versions]), atol=1e-5
    )
    assert_array_equal(np.concatenate([y for _, y in found]), np.tile(labels, 3))
    assert source.n_rows == 150


def test_every_pass_brings_the_same_rows(digits, pca):
    source = VirtualExamples(flat(digits.train_images[:100]), digits.train_labels[:100], pca, block_rows=30)
    assert source.n_rows == 900
    for one, other in zip(source, source, strict=True):
        assert_array_equal(one[0], other[0])
        assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_rows_in_one_array(digits, pca, dtype):
    images = flat(digits.train_images[:70])
    source = VirtualExamples(images, digits.train_labels[:70], pca, SHIFTS, block_rows=32)
    X, y = source.to_arrays(dtype)
    assert X.dtype == dtype
    assert X.flags.c_contiguous
    assert_array_equal(X, np.concatenate([block for block, _ in source]).astype(dtype))
    assert_array_equal(y, np.concatenate([block for _, block in source]))


def test_features_see_images_in_the_shape_in_which_they_are_given():
    seen = []

    def see(images):
        seen.append(images.shape)
        return flat(images)

    images = np.random.default_rng(0).random((5, 6, 8))
    list(VirtualExamples(images, np.arange(5), FunctionTransformer(see), SHIFTS[:1]))
    assert seen == [(5, 6, 8)] * 2
    seen.clear()
    distortion = Distort((6, 8), shift=(1, 0))
    list(VirtualExamples(flat(images), np.arange(5), FunctionTransformer(see), [distortion]))
    assert seen == [(5, 48)] * 2


def test_labels_of_any_kind_and_no_distortions():
    images = np.random.default_rng(0).random((4, 5, 5))
    labels = ["a", "b", "a", "c"]
    X, y = VirtualExamples(images, labels, FunctionTransformer(flat), []).to_arrays(np.float64)
    assert_array_equal(X, flat(images))
    assert y.tolist() == labels


def test_any_transformer_of_images_is_a_distortion():
    images = np.random.default_rng(0).random((4, 6, 6)) ** 3
    X, _ = VirtualExamples(images, np.zeros(4), FunctionTransformer(flat), [Deskew()]).to_arrays(np.float64)
    np.testing.assert_allclose(X[4:], Deskew().fit_transform(images))


def test_given_distortions_are_left_alone():
    distortion = Distort(shift=(1, 0))
    VirtualExamples(np.zeros((1, 4, 4)), [0], FunctionTransformer(flat), [distortion])
    assert not hasattr(distortion, "image_shape_")


@pytest.mark.parametrize("n_distortions", [1, 16])
def test_memory_does_not_grow_with_the_distortions(n_distortions):
    images = np.zeros((4000, 28, 28), dtype=np.float32)
    distortions = [Distort(shift=(0, 1), rotation=k, thickness=0.5) for k in range(n_distortions)]
    source = VirtualExamples(images, np.zeros(4000), FunctionTransformer(lambda block: block[:, 0, :20]), distortions)
    tracemalloc.start()
    for _ in source:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    block = 2048 * 784 * 4
    assert peak < 4 * block


def test_a_fit_on_the_source_is_that_on_the_arrays(digits, pca):
    images = flat(digits.train_images[:300]).astype(np.float64)
    source = VirtualExamples(images, digits.train_labels[:300], pca, SHIFTS, block_rows=128)
    settings = {"loss": "squared", "rank": 4, "alpha": 1e-3, "random_state": 0}
    with config_context(max_memory=10**6):
        streamed = power_classifier(**settings).fit(source)
    X, y = source.to_arrays(np.float64)
    together = power_classifier(**settings).fit(X, y)
    rows = pca.transform(flat(digits.test_images))
    np.testing.assert_allclose(streamed.decision_function(rows), together.decision_function(rows), atol=1e-6)


@pytest.mark.slow
def test_digits_are_read_better_with_virtual_examples(digits, pca):
    images, labels = flat(digits.train_images), digits.train_labels
    X, y = VirtualExamples(images, labels, pca, SHIFTS).to_arrays()
    settings = {"loss": "squared", "degree": 2, "rank": 6, "alpha": 1e-3, "random_state": 0}
    rows = pca.transform(flat(digits.test_images))
    plain = power_classifier(**settings).fit(X[: len(images)], labels).score(rows, digits.test_labels)
    assert power_classifier(**settings).fit(X, y).score(rows, digits.test_labels) > plain


IMAGES, ALL = np.zeros((3, 4, 4)), FunctionTransformer(flat)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((np.zeros(3), [0, 1, 2], ALL), ValueError, r"images must be an array of shape .* got shape \(3,\)"),
        ((IMAGES[:0], [], ALL), ValueError, r"at least one image, got shape \(0, 4, 4\)"),
        ((IMAGES, [0, 1], ALL), ValueError, "inconsistent numbers of samples"),
        ((IMAGES, [0, 1, 2], "pca"), TypeError, "features must be a fitted transformer .* got str"),
        ((IMAGES, [0, 1, 2], ALL, Distort()), TypeError, r"distortions must be a sequence of transformers"),
        ((IMAGES, [0, 1, 2], ALL, [8]), TypeError, "distortions must hold transformers .* got 8"),
        ((IMAGES, [0, 1, 2], ALL, [Distort(scale=-1)]), ValueError, "scale must be positive, got -1"),
    ],
)
def test_bad_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        VirtualExamples(*arguments)


@pytest.mark.parametrize("block_rows", [0, 1.5, True])
def test_bad_block_rows(block_rows):
    with pytest.raises(ValueError, match=f"block_rows must be a positive integer, got {block_rows}"):
        VirtualExamples(IMAGES, [0, 1, 2], ALL, block_rows=block_rows)


def test_features_that_were_not_fitted_say_so():
    with pytest.raises(AttributeError):  # NotFittedError is one, and old versions of PCA know no better
        next(iter(VirtualExamples(flat(IMAGES), [0, 1, 2], PCA(2))))
