"""Straighten slanted characters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polytrain_paper.features._images import PixelTransformer

__all__ = ["Deskew"]

# A stroke pattern that is nearly flat (a dash) has a huge slant by moments; 45 degrees is more than any writer's.
MAX_SHEAR = 1.0


class Deskew(PixelTransformer):
    """Remove the slant of characters and move their centre of mass to the centre of the image.

    The slant is read off the second moments of the ink: ``shear = cov(x, y) / var(y)``, at most 1 in size. Rows are
    moved sideways in proportion to their height and the image is resampled by bilinear interpolation. The background
    must be 0; negative pixels carry no weight and an image without ink stays as it is.

    Parameters
    ----------
    image_shape : (int, int), optional
        Height and width of the images in flat rows. By default the images' own shape, or a square.
    center : bool, default=True
        Also move the centre of mass to the centre of the image. Without it the centre of mass stays in place.

    Attributes
    ----------
    image_shape_ : (int, int)
        Height and width of the images.

    Examples
    --------
    A stroke that leans becomes upright:

    >>> import numpy as np
    >>> from polytrain_paper.features import Deskew
    >>> slanted = np.eye(5)[::-1]
    >>> Deskew().fit_transform(slanted[np.newaxis]).reshape(5, 5)
    array([[0., 0., 1., 0., 0.],
           [0., 0., 1., 0., 0.],
           [0., 0., 1., 0., 0.],
           [0., 0., 1., 0., 0.],
           [0., 0., 1., 0., 0.]])
    """

    def __init__(self, image_shape: tuple[int, int] | None = None, *, center: bool = True) -> None:
        self.image_shape = image_shape
        self.center = center

    def _transform_block(self, images: NDArray) -> NDArray:
        _, height, width = images.shape
        shear, mass_y, mass_x = slant(images)
        # Output pixel (y, x) shows the source at (y + down, x + right + shear * (y - pivot)).
        if self.center:
            pivot = np.zeros_like(mass_y)
            down, right = mass_y, mass_x
        else:
            pivot = mass_y
            down = right = np.zeros_like(mass_y)
        y = np.arange(height, dtype=images.dtype) - (height - 1) / 2
        along_x = right[:, np.newaxis] + shear[:, np.newaxis] * (y - pivot[:, np.newaxis])
        moved = shift_rows(images.swapaxes(1, 2), np.repeat(down[:, np.newaxis], width, axis=1)).swapaxes(1, 2)
        return shift_rows(moved, along_x).reshape(len(images), -1)


def slant(images: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Shear and centre of mass (y, x) of each image, measured from the middle of the image; zeros without ink.

    Shapes: images (N, h, w) -> three arrays (N,).
    """
    n_images, height, width = images.shape
    y = (np.arange(height) - (height - 1) / 2).repeat(width)
    x = np.tile(np.arange(width) - (width - 1) / 2, height)
    powers = np.stack([np.ones_like(x), y, x, y * y, x * y], axis=1).astype(images.dtype)
    ink = np.maximum(images, 0).reshape(n_images, -1)
    peak = ink.max(axis=1, keepdims=True)
    ink /= np.where(peak > 0, peak, 1)  # so that no scale of the pixels over- or underflows
    mass, *moments = (ink @ powers).T
    mean_y, mean_x, mean_yy, mean_xy = (moment / np.where(mass > 0, mass, 1) for moment in moments)
    var_y = mean_yy - mean_y * mean_y
    cov_xy = mean_xy - mean_x * mean_y
    # Rounding leaves a tiny variance where all ink is in one row; such an image has no slant.
    upright = var_y <= 1e-4
    shear = np.where(upright, 0, cov_xy / np.where(upright, 1, var_y))
    return np.clip(shear, -MAX_SHEAR, MAX_SHEAR), mean_y, mean_x


def shift_rows(images: NDArray, offsets: NDArray) -> NDArray:
    """Move every row of every image along itself by linear interpolation, with 0 outside.

    new[j, y, x] = images[j, y, x + offsets[j, y]]

    Shapes: images (N, h, w), offsets (N, h) -> (N, h, w).
    """
    n_images, height, width = images.shape
    # One zero column left and two right: any offset can be clipped to a place that reads zeros only.
    padded = np.zeros((n_images, height, width + 3), dtype=images.dtype)
    padded[:, :, 1:-2] = images
    whole = np.floor(offsets)
    fraction = (offsets - whole).astype(images.dtype)[:, :, np.newaxis]
    columns = whole.astype(np.int32)[:, :, np.newaxis] + np.arange(1, width + 1, dtype=np.int32)
    np.clip(columns, 0, width + 1, out=columns)
    row_starts = np.arange(n_images * height, dtype=np.int64).reshape(n_images, height, 1) * (width + 3)
    places = row_starts + columns
    flat = padded.reshape(-1)
    near = flat.take(places)
    places += 1
    far = flat.take(places)
    far -= near
    far *= fraction
    near += far
    return near
