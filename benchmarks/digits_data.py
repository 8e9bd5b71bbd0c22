"""MNIST and USPS below POLYTRAIN_DATA, deskewed, as principal components.

Everything that is fitted (the principal components) is fitted on the training rows only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from benchmarks.tabular import data_folder
from polytrain.maps import MapList, PolynomialMap
from polytrain_paper.datasets import DataNotFoundError, ImageData, load_mnist, load_usps
from polytrain_paper.features import Deskew

Split = tuple[NDArray, NDArray, NDArray, NDArray]


class DataMissing(Exception):
    """A file that a benchmark learns from is not there."""


def run_with_data(main: Callable[[], object]) -> None:
    """Run a benchmark, or say which data it lacks."""
    try:
        main()
    except DataMissing as missing:
        print(f"{Path(sys.argv[0]).stem}: skipped, {missing}")


def _load(name: str) -> ImageData:
    """Load a data set, without downloading it."""
    folder = data_folder()
    if folder is None:
        raise DataMissing("POLYTRAIN_DATA is not set; it names the folder with mnist/ and usps/")
    try:
        return {"mnist": load_mnist, "usps": load_usps}[name](data_home=folder, download=False)
    except DataNotFoundError as error:
        raise DataMissing(str(error)) from error


def _components(train: NDArray, test: NDArray, n_features: int) -> tuple[NDArray, NDArray]:
    pca = PCA(n_features, svd_solver="covariance_eigh").fit(train.reshape(len(train), -1))
    return tuple(pca.transform(images.reshape(len(images), -1)) for images in (train, test))


def deskewed_mnist() -> Split:
    """The deskewed images as rows of pixels: train_images, train_labels, test_images, test_labels."""
    data = _load("mnist")
    train, test = (Deskew().fit_transform(images) for images in (data.train_images, data.test_images))
    return train, data.train_labels, test, data.test_labels


def mnist_features(n_features: int = 40) -> Split:
    """Principal components of the deskewed images: X_train, y_train, X_test, y_test."""
    train, y_train, test, y_test = deskewed_mnist()
    X_train, X_test = _components(train.astype(np.float64), test.astype(np.float64), n_features)
    return X_train, y_train, X_test, y_test


def usps_features(n_features: int = 20) -> Split:
    """Principal components of the images as they are: X_train, y_train, X_test, y_test."""
    data = _load("usps")
    X_train, X_test = _components(
        *(images.astype(np.float64) for images in (data.train_images, data.test_images)), n_features
    )
    return X_train, data.train_labels, X_test, data.test_labels


def scaled_columns(X: NDArray) -> NDArray:
    """Rows (N, d) as the learning code wants them: columns (d, N) in [-1, 1]."""
    ranges = zip(X.min(axis=0), X.max(axis=0), strict=True)
    return MapList(PolynomialMap("power", 2, *ends) for ends in ranges).place(X)
