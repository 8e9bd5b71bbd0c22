"""MNIST and USPS below POLYTRAIN_DATA, deskewed, as principal components.

Expected there: ``mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz`` and ``usps/zip.{train,test}.gz``. Everything
that is fitted (the principal components) is fitted on the training rows only.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from benchmarks.tabular import data_folder
from polytrain.scaling import FeatureScale

Split = tuple[NDArray, NDArray, NDArray, NDArray]

_BATCH = 5000


class DataMissing(Exception):
    """A file that a benchmark learns from is not there."""


def _file(name: str) -> Path:
    folder = data_folder()
    if folder is None:
        raise DataMissing("POLYTRAIN_DATA is not set; it names the folder with mnist/ and usps/")
    if not (folder / name).exists():
        raise DataMissing(f"{name} is not in the folder that POLYTRAIN_DATA names")
    return folder / name


def _read_idx(name: str) -> NDArray:
    """An idx file of unsigned bytes: two zero bytes, type, number of axes, big-endian lengths, data."""
    raw = gzip.decompress(_file(name).read_bytes())
    n_axes = raw[3]
    shape = np.frombuffer(raw, dtype=">u4", count=n_axes, offset=4)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def load_mnist() -> Split:
    """Training images (60000, 28, 28) in [0, 1] and labels, then those of the test set."""
    parts = []
    for part in ("train", "t10k"):
        parts.append(_read_idx(f"mnist/{part}-images-idx3-ubyte.gz").astype(np.float64) / 255)
        parts.append(_read_idx(f"mnist/{part}-labels-idx1-ubyte.gz").astype(np.int64))
    return tuple(parts)


def load_usps() -> Split:
    """Training images (7291, 16, 16) in [-1, 1] and labels, then those of the test set."""
    parts = []
    for part in ("train", "test"):
        with gzip.open(_file(f"usps/zip.{part}.gz"), "rt") as file:
            table = np.loadtxt(file)
        parts.append(table[:, 1:].reshape(-1, 16, 16))
        parts.append(table[:, 0].astype(np.int64))
    return tuple(parts)


def _deskew_batch(images: NDArray) -> NDArray:
    """Shear every image so that its rows line up, and centre it. Shapes: (N, h, w) -> (N, h, w)."""
    n_images, height, width = images.shape
    down, across = np.arange(height, dtype=float), np.arange(width, dtype=float)
    mass = np.maximum(images.sum(axis=(1, 2)), 1e-12)
    mean_y = np.einsum("jyx,y->j", images, down) / mass
    mean_x = np.einsum("jyx,x->j", images, across) / mass
    off_y, off_x = down - mean_y[:, None], across - mean_x[:, None]
    spread = np.einsum("jyx,jy,jy->j", images, off_y, off_y, optimize=True)
    covariance = np.einsum("jyx,jy,jx->j", images, off_y, off_x, optimize=True)
    slant = covariance / np.maximum(spread, 1e-12)
    # Bilinear interpolation is one linear interpolation down the columns and one along the rows: the source of a pixel
    # is its row plus a shift of the image, and its column plus a shift of the row.
    shift_y = np.broadcast_to((mean_y - height / 2)[:, None], (n_images, width))
    lifted = _interpolate(images.transpose(0, 2, 1), shift_y).transpose(0, 2, 1)
    shift_x = mean_x[:, None] - width / 2 + slant[:, None] * (down - height / 2)
    return _interpolate(lifted, shift_x)


def _interpolate(lines: NDArray, shift: NDArray) -> NDArray:
    """Values at ``position + shift`` on the last axis, zero outside. Shapes: (N, l, w), shift (N, l) -> (N, l, w)."""
    width = lines.shape[2]
    padded = np.pad(lines, ((0, 0), (0, 0), (1, 1)))
    position = np.arange(width) + shift[:, :, None]
    whole = np.floor(position)
    part = position - whole
    first = np.clip(whole + 1, 0, width + 1).astype(np.intp)
    second = np.clip(whole + 2, 0, width + 1).astype(np.intp)
    return (1 - part) * np.take_along_axis(padded, first, 2) + part * np.take_along_axis(padded, second, 2)


def deskew(images: NDArray) -> NDArray:
    """Undo the slant of handwriting by the images' second moments. Shapes: (N, h, w) -> (N, h, w)."""
    return np.concatenate([_deskew_batch(images[start : start + _BATCH]) for start in range(0, len(images), _BATCH)])


def _components(train: NDArray, test: NDArray, n_features: int) -> tuple[NDArray, NDArray]:
    pca = PCA(n_features, svd_solver="covariance_eigh").fit(train.reshape(len(train), -1))
    return tuple(pca.transform(images.reshape(len(images), -1)) for images in (train, test))


def mnist_features(n_features: int = 40) -> Split:
    """Principal components of the deskewed images: X_train, y_train, X_test, y_test."""
    train, y_train, test, y_test = load_mnist()
    X_train, X_test = _components(deskew(train), deskew(test), n_features)
    return X_train, y_train, X_test, y_test


def usps_features(n_features: int = 20) -> Split:
    """Principal components of the images as they are: X_train, y_train, X_test, y_test."""
    train, y_train, test, y_test = load_usps()
    X_train, X_test = _components(train, test, n_features)
    return X_train, y_train, X_test, y_test


def scaled_columns(X: NDArray) -> NDArray:
    """Rows (N, d) as the learning code wants them: columns (d, N) in [-1, 1]."""
    return FeatureScale.fit(X).columns(X)
