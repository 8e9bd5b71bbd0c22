"""Distorted copies of images: moved, turned, slanted, resized, with thicker or thinner strokes."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from polytrain_paper.features._images import PixelTransformer

__all__ = ["Distort"]


class Distort(PixelTransformer):
    """Make a distorted copy of every image, the same way for all of them.

    An image is resized, then slanted, then turned, all about its middle, then moved; one bilinear interpolation does
    all of it, and what comes in from outside is 0. At last its strokes are made thicker or thinner. With the default
    parameters an image stays as it is, to the last bit.

    Parameters
    ----------
    image_shape : (int, int), optional
        Height and width of the images in flat rows. By default the images' own shape, or a square.
    shift : (float, float), default=(0, 0)
        Pixels by which the image moves down and to the right.
    rotation : float, default=0
        Degrees by which the image turns to the left.
    shear : float, default=0
        Pixels by which a row moves to the right for every pixel that it lies above the middle.
    scale : float or (float, float), default=1
        Factor by which the image grows; or one for its height and one for its width.
    thickness : float, default=0
        From -1 to 1. With 1 every pixel becomes as dark as the darkest of itself and its four neighbours, with -1 as
        light as the lightest; in between it goes part of the way.

    Attributes
    ----------
    image_shape_ : (int, int)
        Height and width of the images.

    See Also
    --------
    VirtualExamples : Images and distorted copies of them, to learn from.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain_paper.features import Distort
    >>> stroke = np.zeros((1, 4, 4))
    >>> stroke[0, 1:3, 1] = 1
    >>> Distort(shift=(0, 1)).fit_transform(stroke).reshape(4, 4)
    array([[0., 0., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 0.]])
    >>> Distort(thickness=0.5).fit_transform(stroke).reshape(4, 4)
    array([[0. , 0.5, 0. , 0. ],
           [0.5, 1. , 0.5, 0. ],
           [0.5, 1. , 0.5, 0. ],
           [0. , 0.5, 0. , 0. ]])
    """

    def __init__(
        self,
        image_shape: tuple[int, int] | None = None,
        *,
        shift: tuple[float, float] = (0.0, 0.0),
        rotation: float = 0.0,
        shear: float = 0.0,
        scale: float | tuple[float, float] = 1.0,
        thickness: float = 0.0,
    ) -> None:
        self.image_shape = image_shape
        self.shift = shift
        self.rotation = rotation
        self.shear = shear
        self.scale = scale
        self.thickness = thickness

    def _prepare(self) -> None:
        down, right = _pair("shift", self.shift)
        grow_y, grow_x = _pair("scale", self.scale if np.iterable(self.scale) else (self.scale, self.scale))
        if min(grow_y, grow_x) <= 0:
            raise ValueError(f"scale must be positive, got {self.scale!r}.")
        angle, shear = np.deg2rad(_number("rotation", self.rotation)), _number("shear", self.shear)
        if abs(_number("thickness", self.thickness)) > 1:
            raise ValueError(f"thickness must be between -1 and 1, got {self.thickness!r}.")
        # Places are (down, right), so that a turn to the left has its signs the other way round than usual.
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        slant = np.array([[1.0, 0.0], [-shear, 1.0]])
        matrix = turn @ slant @ np.diag([grow_y, grow_x])
        self._resampling = resampling_matrix(self.image_shape_, np.linalg.inv(matrix), np.array([down, right]))

    def _transform_block(self, images: NDArray) -> NDArray:
        flat = images.reshape(len(images), -1)
        moved = (self._resampling.astype(images.dtype) @ flat.T).T
        return (
            moved if self.thickness == 0 else thicken(moved.reshape(images.shape), self.thickness).reshape(flat.shape)
        )


def resampling_matrix(shape: tuple[int, int], backward: NDArray, shift: NDArray) -> csr_array:
    """Sparse matrix from the pixels of an image to those of a moved one, by bilinear interpolation with 0 outside.

    new[p] = image[backward @ (p - shift)], with places p = (down, right) measured from the middle of the image.

    All images are moved alike, so that one product with this matrix, of at most four entries per row, moves them all.
    """
    height, width = shape
    middle = np.array([[(height - 1) / 2], [(width - 1) / 2]])
    places = np.indices(shape).reshape(2, -1) - middle
    source = backward @ (places - shift[:, np.newaxis]) + middle
    # Rounding must not make a shift by whole pixels an interpolation.
    nearest = np.round(source)
    source = np.where(np.abs(source - nearest) < 1e-9, nearest, source)
    first = np.floor(source)
    fraction = source - first
    targets, sources, weights = [], [], []
    for step_y in (0, 1):
        for step_x in (0, 1):
            y, x = first[0] + step_y, first[1] + step_x
            weight = np.abs(1 - step_y - fraction[0]) * np.abs(1 - step_x - fraction[1])
            used = np.flatnonzero((weight > 0) & (y >= 0) & (y < height) & (x >= 0) & (x < width))
            targets.append(used)
            sources.append((y * width + x)[used].astype(np.intp))
            weights.append(weight[used])
    entries = np.concatenate(weights), (np.concatenate(targets), np.concatenate(sources))
    return csr_array(entries, shape=(height * width, height * width))


def thicken(images: NDArray, amount: float) -> NDArray:
    """Move every pixel towards the largest of itself and its four neighbours, or the smallest if amount < 0.

    Shapes: images (N, h, w) -> (N, h, w). Outside of the image all is 0.
    """
    extreme = np.maximum if amount > 0 else np.minimum
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    found = padded[:, 1:-1, 1:-1]
    for neighbour in (padded[:, :-2, 1:-1], padded[:, 2:, 1:-1], padded[:, 1:-1, :-2], padded[:, 1:-1, 2:]):
        found = extreme(found, neighbour)
    return images + images.dtype.type(abs(amount)) * (found - images)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def _pair(name: str, value: Any) -> tuple[float, float]:
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold two numbers, (vertical, horizontal), got {value!r}.") from None
    return _number(name, first), _number(name, second)
