"""Virtual examples: what a label does not depend on, told by distorted copies of the images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from polytrain_paper.features._images import blocks
from polytrain_paper.features.distort import Distort

__all__ = ["VirtualExamples"]

# Images that become features at once. Those of 28x28 pixels take 6 MB in float32, and so does a distorted copy.
_BLOCK_ROWS = 2048


class VirtualExamples:
    """Images and distorted copies of them, as a source of rows for ``fit``.

    A digit that is moved by a pixel is still the same digit. A model learns this from *virtual examples*, distorted
    copies with the label of their image. They are made block by block whenever they are read, so that only the images
    and one block take memory, however many distortions there are.

    Rows come in a fixed order: all images as they are, then all of them with the first distortion, and so on.

    Parameters
    ----------
    images : array of shape (N, h, w) or (N, h * w)
        The images. :class:`~polytrain_paper.features.Deskew` undoes shifts and slants, so distort images that are
        already deskewed, with features that come after.
    labels : array-like of shape (N,)
        Their labels.
    features : transformer
        Fitted; turns images, in the shape in which they are given here, into feature vectors.
    distortions : sequence of Distort, optional
        One per virtual example of an image; any transformer will do that learns nothing but the images' shape. By
        default shifts by a pixel in the four directions, turns, and thicker and thinner strokes: eight.
    block_rows : int, default=2048
        Images that are turned into features at once.

    Attributes
    ----------
    n_rows : int
        Number of rows: N times one more than there are distortions.

    See Also
    --------
    Distort : One distorted copy of every image.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from polytrain import TensorTrainClassifier, config_context
    >>> from polytrain_paper.datasets import load_digits_images
    >>> from polytrain_paper.features import Distort, VirtualExamples
    >>> digits = load_digits_images()
    >>> pca = PCA(16, svd_solver="covariance_eigh").fit(digits.train_images.reshape(-1, 64))
    >>> shifts = [Distort(shift=shift) for shift in ((0.5, 0), (-0.5, 0), (0, 0.5), (0, -0.5))]
    >>> source = VirtualExamples(digits.train_images.reshape(-1, 64), digits.train_labels, pca, shifts)
    >>> source.n_rows
    5985
    >>> settings = {"loss": "squared", "basis": "power", "degree": 2, "rank": 6, "alpha": 1e-3, "random_state": 0}
    >>> with config_context(max_memory="1 GB"):
    ...     model = TensorTrainClassifier(**settings).fit(source)

    The same rows in one array, where the features fit in memory, are learned from faster:

    >>> X, y = source.to_arrays()
    >>> X.shape
    (5985, 16)
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        features: Any,
        distortions: Sequence[Any] | None = None,
        *,
        block_rows: int = _BLOCK_ROWS,
    ) -> None:
        self._images, self._labels = np.asarray(images), np.asarray(labels)
        if self._images.ndim not in (2, 3) or not len(self._images):
            raise ValueError(
                f"images must be an array of shape (N, height, width) or (N, height * width) with at least one image, "
                f"got shape {self._images.shape}."
            )
        check_consistent_length(self._images, self._labels)
        if not hasattr(features, "transform"):
            raise TypeError(
                f"features must be a fitted transformer with a method transform, got {type(features).__name__}."
            )
        self._features, self._block_rows = features, _count("block_rows", block_rows)
        self._distortions = [_fitted(each, self._images[:1]) for each in _chosen(distortions)]
        self.n_rows = len(self._images) * (1 + len(self._distortions))

    def __iter__(self) -> Iterator[tuple[NDArray, NDArray]]:
        for distortion in (None, *self._distortions):
            for rows in blocks(len(self._images), self._block_rows):
                images = self._images[rows]
                if distortion is not None:
                    images = distortion.transform(images).reshape(images.shape)
                yield np.asarray(self._features.transform(images)), self._labels[rows]

    def to_arrays(self, dtype: Any = np.float32) -> tuple[NDArray, NDArray]:
        """Return all rows in one array, filled block by block.

        Parameters
        ----------
        dtype : dtype, default=float32
            Type of the features.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
        """
        X, start = np.empty((0, 0), dtype=dtype), 0
        for block, _ in self:
            if not start:
                X = np.empty((self.n_rows, block.shape[1]), dtype=dtype)
            X[start : start + len(block)] = block
            start += len(block)
        return X, np.concatenate([self._labels] * (1 + len(self._distortions)))


def _count(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)


def _chosen(distortions: Any) -> Sequence[Any]:
    if distortions is None:
        return [
            *(Distort(shift=shift) for shift in ((1, 0), (-1, 0), (0, 1), (0, -1))),
            *(Distort(rotation=angle) for angle in (8, -8)),
            *(Distort(thickness=amount) for amount in (0.5, -0.5)),
        ]
    try:
        return list(distortions)
    except TypeError:
        raise TypeError(
            f"distortions must be a sequence of transformers such as Distort(rotation=8), got {distortions!r}."
        ) from None


def _fitted(distortion: Any, images: NDArray) -> Any:
    if not hasattr(distortion, "transform"):
        raise TypeError(f"distortions must hold transformers such as Distort(rotation=8), got {distortion!r}.")
    return clone(distortion).fit(images)
