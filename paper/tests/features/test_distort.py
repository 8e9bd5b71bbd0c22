import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import affine_transform, grey_dilation, grey_erosion

from polytrain_paper.features import Distort

CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=bool)


def random_images(n_images, shape, margin=0, seed=0):
    images = np.zeros((n_images, *shape))
    inner = [side - 2 * margin for side in shape]
    images[:, margin : margin + inner[0], margin : margin + inner[1]] = np.random.default_rng(seed).random(
        (n_images, *inner)
    )
    return images


def distorted(images, **parameters):
    return Distort(**parameters).fit_transform(images).reshape(images.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_distortion_images_stay_as_they_are(dtype):
    images = random_images(5, (9, 12)).astype(dtype)
    found = distorted(images)
    assert found.dtype == dtype
    assert_array_equal(found, images)


@pytest.mark.parametrize("shift", [(1, 0), (-1, 0), (0, 2), (3, -4), (-20, 1), (0.0, 11)])
def test_whole_shifts_copy_pixels(shift):
    images = random_images(4, (9, 12))
    expected = np.zeros_like(images)
    for y in range(9):
        for x in range(12):
            if 0 <= y - shift[0] < 9 and 0 <= x - shift[1] < 12:
                expected[:, y, x] = images[:, y - int(shift[0]), x - int(shift[1])]
    assert_array_equal(distorted(images, shift=shift), expected)


def interpolated(image, y, x):
    """The image between its pixels, and 0 outside."""
    total = 0.0
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            total += image[row, column] * max(0.0, 1 - abs(y - row)) * max(0.0, 1 - abs(x - column))
    return total


def reference(image, shift=(0, 0), rotation=0.0, shear=0.0, scale=1.0):
    """One image, pixel by pixel: undo one step after the other."""
    height, width = image.shape
    grow_y, grow_x = (scale, scale) if np.isscalar(scale) else scale
    angle = np.deg2rad(rotation)
    out = np.zeros_like(image)
    for row in range(height):
        for column in range(width):
            up = (height - 1) / 2 - (row - shift[0])
            right = (column - shift[1]) - (width - 1) / 2
            # Turning to the left is what mathematics does with axes to the right and up; here it is undone.
            right, up = right * np.cos(angle) + up * np.sin(angle), up * np.cos(angle) - right * np.sin(angle)
            right -= shear * up
            up, right = up / grow_y, right / grow_x
            out[row, column] = interpolated(image, (height - 1) / 2 - up, right + (width - 1) / 2)
    return out


@pytest.mark.parametrize(
    "parameters",
    [
        {"shift": (0.5, -1.25)},
        {"rotation": 8},
        {"rotation": -100.0},
        {"shear": 0.2},
        {"scale": 1.15},
        {"scale": (0.9, 1.2)},
        {"shift": (1, 0.3), "rotation": -7.5, "shear": -0.1, "scale": (1.1, 0.8)},
    ],
)
@pytest.mark.parametrize("shape", [(8, 8), (7, 10)])
def test_equals_the_slow_reference(shape, parameters):
    images = random_images(3, shape)
    expected = np.stack([reference(image, **parameters) for image in images])
    assert_allclose(distorted(images, **parameters), expected, atol=1e-12)


def test_equals_scipy():
    images = random_images(3, (20, 20), margin=5)
    angle = np.deg2rad(10)
    backward = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    offset = 9.5 - backward @ np.array([9.5, 9.5])
    expected = np.stack([affine_transform(image, backward, offset, order=1) for image in images])
    assert_allclose(distorted(images, rotation=10), expected, atol=1e-12)


@pytest.mark.parametrize(("amount", "extreme"), [(1.0, grey_dilation), (-1.0, grey_erosion), (0.3, grey_dilation)])
def test_thickness_equals_scipy(amount, extreme):
    images = random_images(3, (9, 11))
    far = np.stack([extreme(image, footprint=CROSS, mode="constant", cval=0.0) for image in images])
    expected = images + abs(amount) * (far - images)
    assert_allclose(distorted(images, thickness=amount), expected, atol=1e-15)


def test_strokes_become_thicker_or_thinner():
    images = random_images(3, (12, 12), margin=4) ** 2
    ink = images.sum()
    assert distorted(images, thickness=-0.5).sum() < ink < distorted(images, thickness=0.5).sum()


def test_does_not_depend_on_the_other_images():
    images = random_images(1030, (6, 6))
    distort = Distort(rotation=12, thickness=0.5).fit(images)
    whole = distort.transform(images)
    for rows in (slice(0, 1), slice(500, 700), slice(1020, 1030)):
        assert_array_equal(distort.transform(images[rows]), whole[rows])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"shift": 1}, r"shift must hold two numbers, \(vertical, horizontal\), got 1"),
        ({"shift": (1, "a")}, "shift must be a finite number, got 'a'"),
        ({"rotation": np.nan}, "rotation must be a finite number, got nan"),
        ({"rotation": True}, "rotation must be a finite number, got True"),
        ({"shear": np.inf}, "shear must be a finite number, got inf"),
        ({"scale": 0}, "scale must be positive, got 0"),
        ({"scale": (1, -1)}, r"scale must be positive, got \(1, -1\)"),
        ({"scale": (1, 1, 1)}, "scale must hold two numbers"),
        ({"thickness": 1.5}, "thickness must be between -1 and 1, got 1.5"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        Distort(**parameters).fit(np.zeros((1, 4, 4)))
