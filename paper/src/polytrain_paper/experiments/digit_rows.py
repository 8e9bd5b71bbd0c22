"""Digits as rows of features, loaded and computed when first asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from numpy.typing import NDArray

from polytrain_paper.datasets import ImageData, load_digits_images, load_mnist, load_usps
from polytrain_paper.features import make_digit_features

__all__ = ["DigitRows", "Split"]


class Split(NamedTuple):
    """Features and labels of the training and of the test set."""

    X_train: NDArray
    y_train: NDArray
    X_test: NDArray
    y_test: NDArray


class DigitRows:
    """Features of one data set for any number d of them; each d is computed once and kept in memory.

    Whatever is fitted (principal components) is fitted on training images only. Features are float32, like the images.

    Parameters
    ----------
    dataset : {"usps", "mnist", "digits"}
    kind : {"cnn", "pca", "dft"}
    data_home : path-like, optional
        Folder of the data sets; see `polytrain_paper.datasets.get_data_home`.
    talk : callable
        Told what takes time.
    """

    def __init__(
        self,
        dataset: str,
        kind: str,
        data_home: str | os.PathLike[str] | None = None,
        talk: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._dataset, self._kind, self._data_home, self._talk = dataset, kind, data_home, talk
        self._images: ImageData | None = None
        self._splits: dict[int, Split] = {}

    def images(self) -> ImageData:
        """Return the images, loaded once."""
        if self._images is None:
            if self._dataset == "digits":
                self._images = load_digits_images()
            else:
                load = load_usps if self._dataset == "usps" else load_mnist
                self._images = load(data_home=self._data_home)
            self._talk(repr(self._images)[1:-1])
        return self._images

    def split(self, d: int) -> Split:
        """Return the rows with d features."""
        if d not in self._splits:
            images = self.images()
            started = time.perf_counter()
            extract = make_digit_features(self._kind, d, image_shape=images.image_shape)
            X_train = extract.fit_transform(images.train_images)
            X_test = extract.transform(images.test_images)
            self._splits[d] = Split(X_train, images.train_labels, X_test, images.test_labels)
            self._talk(f"{d} {self._kind} features: {time.perf_counter() - started:.1f} s")
        return self._splits[d]
