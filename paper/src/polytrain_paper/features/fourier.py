"""Low-frequency Fourier features of images."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polytrain_paper.features._images import ImageTransformer

__all__ = ["LowFrequencyDFT"]


class LowFrequencyDFT(ImageTransformer):
    """Real and imaginary parts of the lowest frequencies of the 2-D discrete Fourier transform.

    A real image of h x w pixels has h * w independent parts: those of one frequency of each conjugate pair, without
    the imaginary parts that are always zero. They are taken in the order of their frequency (cycles per pixel, ties by
    row and then column frequency, real before imaginary) and scaled so that all of them together preserve distances.

    Parameters
    ----------
    n_features : int, default=40
        Number of parts to keep.
    image_shape : (int, int), optional
        Height and width of the images in flat rows. By default the images' own shape, or a square.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, 2)
        Row and column frequency of each feature, in cycles per image; negative row frequencies run the other way.
    is_imaginary_ : ndarray of shape (n_features,)
        Whether a feature is an imaginary part.
    image_shape_ : (int, int)
        Height and width of the images.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain_paper.features import LowFrequencyDFT
    >>> dft = LowFrequencyDFT(n_features=5)
    >>> dft.fit_transform(np.ones((1, 4, 4))).round(6) + 0.0
    array([[4., 0., 0., 0., 0.]])
    >>> dft.get_feature_names_out()
    array(['re_0_0', 're_0_1', 'im_0_1', 're_1_0', 'im_1_0'], dtype=object)
    """

    frequencies_: NDArray
    is_imaginary_: NDArray
    _matrix: NDArray

    def __init__(self, n_features: int = 40, *, image_shape: tuple[int, int] | None = None) -> None:
        self.n_features = n_features
        self.image_shape = image_shape

    @property
    def _n_features_out(self) -> int:
        return len(self.frequencies_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the names of the features, ``re_<row>_<column>`` and ``im_<row>_<column>``.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str objects
            The names.
        """
        check_is_fitted(self)
        parts = zip(self.frequencies_, self.is_imaginary_, strict=True)
        return np.array([f"{'im' if imaginary else 're'}_{row}_{column}" for (row, column), imaginary in parts], object)

    def _prepare(self) -> None:
        n_features, n_pixels = self.n_features, self.n_features_in_
        if not isinstance(n_features, Integral) or isinstance(n_features, bool) or not 1 <= n_features <= n_pixels:
            raise ValueError(
                f"n_features must be an integer from 1 to the number of pixels, {n_pixels}, got {n_features!r}."
            )
        height, width = self.image_shape_
        parts = independent_parts(height, width)[:n_features]
        self.frequencies_ = np.array([part[:2] for part in parts])
        self.is_imaginary_ = np.array([part[2] for part in parts])
        y, x = np.divmod(np.arange(n_pixels), width)
        row, column = self.frequencies_.T
        angle = -2 * np.pi * (np.outer(y / height, row) + np.outer(x / width, column))
        matrix = np.where(self.is_imaginary_, np.sin(angle), np.cos(angle))
        self._matrix = matrix / np.linalg.norm(matrix, axis=0)

    def _transform_block(self, images: NDArray) -> NDArray:
        return images.reshape(len(images), -1) @ self._matrix.astype(images.dtype)


def independent_parts(height: int, width: int) -> list[tuple[int, int, bool]]:
    """All (row frequency, column frequency, is imaginary) that determine a real image, lowest frequency first."""
    parts = []
    for row in range(-((height - 1) // 2), height // 2 + 1):
        for column in range(width // 2 + 1):
            own_conjugate = 2 * row % height == 0 and 2 * column % width == 0
            # The columns 0 and w/2 hold both members of each conjugate pair: keep the one of positive row frequency.
            if 2 * column % width == 0 and row < 0:
                continue
            parts.append((row, column, False))
            if not own_conjugate:
                parts.append((row, column, True))

    def rank(part: tuple[int, int, bool]) -> tuple[int, int, int, bool]:
        row, column, imaginary = part
        # |frequency|^2 times (height * width)^2, in integers so that ties are exact.
        return (row * width) ** 2 + (column * height) ** 2, row, column, imaginary

    return sorted(parts, key=rank)
