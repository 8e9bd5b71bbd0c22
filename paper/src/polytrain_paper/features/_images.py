"""Shared base of the image transformers: images in, one row of numbers per image out.

Conventions
-----------
At the edge images are ``(N, h, w)`` or flat ``(N, h * w)``, row by row. Inside they are always ``(N, h, w)``, float32
or float64. The background is 0 and ink is positive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import isqrt, prod
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

# Rows per block: the handful of temporaries of a block of 28x28 images then stays within a few MB.
BLOCK_ROWS = 512


def blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Cut ``range(n_rows)`` into consecutive slices of at most ``size`` rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def square_shape(n_pixels: int) -> tuple[int, int]:
    """Return the square shape with that many pixels, or say that there is none."""
    side = isqrt(n_pixels)
    if side * side != n_pixels:
        raise ValueError(
            f"X has {n_pixels} features, which is not a square image; pass image_shape=(height, width) "
            "or images of shape (N, height, width)."
        )
    return side, side


def check_image_shape(image_shape: Any) -> tuple[int, int]:
    """Return ``image_shape`` as two positive integers."""
    try:
        height, width = image_shape
    except (TypeError, ValueError):
        raise ValueError(f"image_shape must be None or (height, width), got {image_shape!r}.") from None
    for side in (height, width):
        if not isinstance(side, Integral) or isinstance(side, bool) or side < 1:
            raise ValueError(f"image_shape must hold two positive integers, got {image_shape!r}.")
    return int(height), int(width)


class ImageTransformer(TransformerMixin, BaseEstimator, ABC):
    """Base of the transformers that look at images.

    A transformer states ``_transform_block``, images ``(N, h, w)`` -> ``(N, n_out)``, and ``_n_features_out``; it may
    refuse a shape or prepare something in ``_prepare``. ``fit`` learns nothing from the pixels' values.
    """

    # Where scikit-learn's HTML of a transformer leads to.
    _doc_link_module = "polytrain_paper"
    _doc_link_template = (
        "https://polytrain.readthedocs.io/en/stable/generated/polytrain_paper.features.{estimator_name}.html"
    )

    image_shape: tuple[int, int] | None
    _block_rows = BLOCK_ROWS

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the shape of the images.

        Parameters
        ----------
        X : array of shape (N, h, w) or (N, h * w)
            The images.
        y : None
            Ignored.

        Returns
        -------
        object
            The transformer itself.
        """
        self._images(X, reset=True)
        self._prepare()
        return self

    def transform(self, X: Any) -> NDArray:
        """Turn images into rows of numbers.

        Parameters
        ----------
        X : array of shape (N, h, w) or (N, h * w)
            Images of the shape seen in ``fit``.

        Returns
        -------
        ndarray of shape (N, n_out)
            float32 for float32 images, else float64.
        """
        check_is_fitted(self)
        images = self._images(X, reset=False)
        out = np.empty((len(images), self._n_features_out), dtype=images.dtype)
        for rows in blocks(len(images), self._block_rows):
            out[rows] = self._transform_block(images[rows])
        return out

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """Numbers per image."""

    def _prepare(self) -> None:
        """Check the parameters against ``image_shape_`` and set what ``_transform_block`` needs."""

    @abstractmethod
    def _transform_block(self, images: NDArray) -> NDArray:
        """Turn some images into rows of numbers."""

    def _images(self, X: Any, *, reset: bool) -> NDArray:
        """Return X as (N, h, w) of floats; with ``reset`` remember the shape, else insist on it."""
        own_shape = None
        if getattr(X, "ndim", None) == 3:
            own_shape = tuple(X.shape[1:])
            X = np.asarray(X).reshape(len(X), prod(own_shape))
        flat = validate_data(self, X, reset=reset, dtype=(np.float64, np.float32), order="C")
        if reset:
            self.image_shape_ = self._shape_of(flat.shape[1], own_shape)
        if own_shape is not None and own_shape != self.image_shape_:
            raise ValueError(f"X holds images of shape {own_shape}, but {self._expected()}.")
        return flat.reshape(-1, *self.image_shape_)

    def _shape_of(self, n_pixels: int, own_shape: tuple[int, int] | None) -> tuple[int, int]:
        if self.image_shape is None:
            return own_shape or square_shape(n_pixels)
        height, width = check_image_shape(self.image_shape)
        if height * width != n_pixels:
            raise ValueError(
                f"image_shape={self.image_shape!r} needs {height * width} features, but X has {n_pixels} features."
            )
        return height, width

    def _expected(self) -> str:
        if self.image_shape is not None:
            return f"image_shape={self.image_shape!r}"
        return f"{type(self).__name__} was fitted on images of shape {self.image_shape_}"


class PixelTransformer(OneToOneFeatureMixin, ImageTransformer):
    """Base of the transformers that return an image of the same shape."""

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_
