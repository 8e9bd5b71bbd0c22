import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import affine_transform

from polytrain_paper.features import Deskew
from polytrain_paper.features.deskew import MAX_SHEAR, slant


def blobs(n_images, shape, seed=0):
    """Images with a few soft strokes away from the border."""
    rng = np.random.default_rng(seed)
    images = np.zeros((n_images, *shape))
    images[:, 3:-3, 3:-3] = rng.random((n_images, shape[0] - 6, shape[1] - 6)) ** 4
    return images


def reference(image, center):
    """One image, by SciPy's general affine resampling."""
    height, width = image.shape
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    y, x = np.mgrid[:height, :width]
    mass = image.sum()
    mean_y, mean_x = (image * y).sum() / mass, (image * x).sum() / mass
    shear = (image * (y - mean_y) * (x - mean_x)).sum() / (image * (y - mean_y) ** 2).sum()
    matrix = np.array([[1, 0], [np.clip(shear, -MAX_SHEAR, MAX_SHEAR), 1]])
    mean = np.array([mean_y, mean_x])
    pivot = middle if center else mean
    return affine_transform(image, matrix, mean - matrix @ pivot, order=1)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(28, 28), (16, 16), (12, 20), (21, 11)])
def test_equals_the_slow_reference(shape, center):
    images = blobs(7, shape)
    expected = np.stack([reference(image, center) for image in images])
    found = Deskew(center=center).fit_transform(images).reshape(images.shape)
    # SciPy sets to 0 what lies outside by less than a pixel; here it fades out. The strokes stay away from there.
    assert_allclose(found, expected, atol=1e-12)


def test_removes_a_known_slant():
    upright = np.zeros((28, 28))
    upright[5:23, 12:16] = 1
    slanted = affine_transform(upright, [[1, 0], [0.3, 1]], [0, -0.3 * 13.5], order=1)
    before, *_ = slant(slanted[np.newaxis])
    after, mean_y, mean_x = slant(Deskew().fit_transform(slanted[np.newaxis]).reshape(1, 28, 28))
    assert abs(before[0]) > 0.25
    assert_allclose([after[0], mean_y[0], mean_x[0]], 0, atol=0.02)


@pytest.mark.parametrize("center", [True, False])
def test_ink_is_kept_unless_it_leaves_the_image(center):
    images = blobs(5, (28, 28))
    images[:, :9] = images[:, -9:] = images[:, :, :9] = images[:, :, -9:] = 0
    found = Deskew(center=center).fit_transform(images)
    assert_allclose(found.sum(axis=1), images.sum(axis=(1, 2)), rtol=1e-12)


def test_blocks_and_row_order_do_not_matter(monkeypatch):
    images = blobs(40, (16, 16))
    deskew = Deskew().fit(images)
    expected = deskew.transform(images)
    monkeypatch.setattr(Deskew, "_block_rows", 7)
    assert_allclose(deskew.transform(images), expected, atol=1e-13)
    assert_allclose(deskew.transform(images[::-1]), expected[::-1], atol=1e-13)


def test_scale_of_the_pixels_does_not_matter():
    images = blobs(5, (16, 16))
    expected = Deskew().fit_transform(images)
    for factor in (1e-30, 255.0, 1e30):
        assert_allclose(Deskew().fit_transform(images * factor) / factor, expected, atol=1e-12)


def test_flat_rows_and_images_give_the_same():
    images = blobs(3, (12, 20))
    flat = images.reshape(3, -1)
    assert_array_equal(Deskew(image_shape=(12, 20)).fit_transform(flat), Deskew().fit_transform(images))


@pytest.mark.parametrize(("dtype", "expected"), [(np.float32, np.float32), (np.uint8, np.float64), (float, float)])
def test_dtype_family_is_kept(dtype, expected):
    images = (255 * blobs(2, (16, 16))).astype(dtype)
    assert Deskew().fit_transform(images).dtype == expected


def test_float32_agrees_with_float64():
    images = blobs(20, (28, 28)).astype(np.float32)
    assert_allclose(Deskew().fit_transform(images), Deskew().fit_transform(images.astype(float)), atol=2e-5)


def test_images_without_ink_or_slant_stay():
    images = np.zeros((3, 9, 9))
    images[1, 4, :] = 1  # one row: no height, so no slant
    images[2, :, 4] = 1
    assert_allclose(Deskew().fit_transform(images).reshape(images.shape), images, atol=1e-12)


def test_no_images_are_refused():
    with pytest.raises(ValueError, match="0 sample"):
        Deskew().fit(np.zeros((0, 28, 28)))


def test_errors_name_the_remedy():
    with pytest.raises(ValueError, match=r"X has 50 features, which is not a square image; pass image_shape"):
        Deskew().fit(np.ones((2, 50)))
    with pytest.raises(ValueError, match=r"image_shape=\(4, 4\) needs 16 features, but X has 25 features"):
        Deskew(image_shape=(4, 4)).fit(np.ones((2, 25)))
    with pytest.raises(ValueError, match=r"image_shape must hold two positive integers, got \(0, 4\)"):
        Deskew(image_shape=(0, 4)).fit(np.ones((2, 25)))
    with pytest.raises(ValueError, match=r"image_shape must be None or \(height, width\), got 5"):
        Deskew(image_shape=5).fit(np.ones((2, 25)))
    with pytest.raises(ValueError, match=r"X holds images of shape \(2, 8\), but Deskew was fitted on .* \(4, 4\)"):
        Deskew().fit(np.ones((2, 4, 4))).transform(np.ones((2, 2, 8)))
    with pytest.raises(ValueError, match=r"X holds images of shape \(2, 8\), but image_shape=\(4, 4\)"):
        Deskew(image_shape=(4, 4)).fit(np.ones((2, 2, 8)))
