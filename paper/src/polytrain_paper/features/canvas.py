"""Bring images of another size to the frame that MNIST uses."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from polytrain_paper.features._images import ImageTransformer

__all__ = ["FitToCanvas"]


class FitToCanvas(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """Resize images into the middle of a larger, empty square.

    MNIST digits fill a box of 20x20 pixels inside 28x28. USPS digits fill all of their 16x16 pixels, scikit-learn's all
    of their 8x8. With the default parameters they become digits of the size that a net trained on MNIST expects. Images
    keep their proportions; the longer side fills the box. The interpolation is linear, and averages when it shrinks.

    Parameters
    ----------
    image_shape : (int, int), optional
        Height and width of the images in flat rows. By default the images' own shape, or a square.
    size : int, default=28
        Height and width of the result.
    margin : int, default=4
        Empty pixels on each side.

    Attributes
    ----------
    image_shape_ : (int, int)
        Height and width of the images before.
    n_features_in_ : int
        Number of pixels before.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain_paper.features import FitToCanvas
    >>> FitToCanvas(size=4, margin=1).fit_transform(np.ones((1, 8, 8))).reshape(4, 4)
    array([[0., 0., 0., 0.],
           [0., 1., 1., 0.],
           [0., 1., 1., 0.],
           [0., 0., 0., 0.]])
    """

    def __init__(self, image_shape: tuple[int, int] | None = None, *, size: int = 28, margin: int = 4) -> None:
        self.image_shape = image_shape
        self.size = size
        self.margin = margin

    @property
    def _n_features_out(self) -> int:
        return self.size * self.size

    def _prepare(self) -> None:
        for name, value, least in (("size", self.size, 1), ("margin", self.margin, 0)):
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
        box = self.size - 2 * self.margin
        if box < 1:
            raise ValueError(f"margin={self.margin} leaves no room in size={self.size}; it must be below size / 2.")
        longest = max(self.image_shape_)
        self._along_y, self._along_x = (
            canvas_matrix(side, max(1, round(side * box / longest)), self.size) for side in self.image_shape_
        )

    def _transform_block(self, images: NDArray) -> NDArray:
        along_y, along_x = self._along_y.astype(images.dtype), self._along_x.astype(images.dtype)
        return (along_y @ images @ along_x.T).reshape(len(images), -1)


def canvas_matrix(n_before: int, n_box: int, n_after: int) -> NDArray:
    """Matrix (n_after, n_before) that resamples a line to ``n_box`` pixels in the middle of ``n_after`` pixels."""
    step = n_before / n_box
    centers = (np.arange(n_box) + 0.5) * step - 0.5
    # A triangle over the two nearest pixels; over all that are merged when shrinking.
    distances = np.abs(centers[:, np.newaxis] - np.arange(n_before)) / max(step, 1.0)
    weights = np.maximum(0, 1 - distances)
    matrix = np.zeros((n_after, n_before))
    start = (n_after - n_box) // 2
    matrix[start : start + n_box] = weights / weights.sum(axis=1, keepdims=True)
    return matrix
