"""The MNIST digits in their idx files."""

from __future__ import annotations

import os
from math import prod

import numpy as np
from numpy.typing import NDArray

from polytrain_paper.datasets._files import DataFileError, Source, StandardFile, read_files
from polytrain_paper.datasets._images import ImageData

__all__ = ["load_mnist"]

SOURCE = Source("MNIST", "mnist", "https://ossci-datasets.s3.amazonaws.com/mnist")
FILES = (
    StandardFile(
        "train-images-idx3-ubyte", 47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    StandardFile("train-labels-idx1-ubyte", 60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    StandardFile(
        "t10k-images-idx3-ubyte", 7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    StandardFile("t10k-labels-idx1-ubyte", 10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)
N_CLASSES = 10


def load_mnist(
    *,
    data_home: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
    download: bool = True,
    progress: bool = True,
) -> ImageData:
    """Load the MNIST database of handwritten digits: 60,000 training and 10,000 test images of 28x28 pixels.

    The four standard idx files, plain or .gz, are read from ``<data home>/mnist`` or the data home itself. Missing ones
    are downloaded there, with the extra ``data``. Every file is checked against the digest of its content.

    Parameters
    ----------
    data_home : path-like, optional
        Folder of the data sets. By default the environment variable ``POLYTRAIN_DATA``, else the user's cache.
    base_url : str, optional
        Where to download from instead of the usual mirror.
    download : bool, default=True
        Whether missing files may be downloaded.
    progress : bool, default=True
        Show a progress bar while downloading, where tqdm is installed.

    Returns
    -------
    ImageData
        float32 images between 0 and 1, int64 labels, and the standard split.

    Raises
    ------
    DataFileError
        If a file is truncated, corrupt or not the standard one.
    DataNotFoundError
        If files are missing and cannot be downloaded; the message says which files to put where.

    Examples
    --------
    >>> from polytrain_paper.datasets import load_mnist
    >>> load_mnist()  # doctest: +SKIP
    <MNIST: 60000 training and 10000 test images of 28x28 pixels>
    """
    train_images, train_labels, test_images, test_labels = read_files(
        FILES, SOURCE, _parse, data_home=data_home, base_url=base_url, download=download, progress=progress
    )
    for part, images, labels in (("train", train_images, train_labels), ("t10k", test_images, test_labels)):
        if len(images) != len(labels):
            raise DataFileError(f"MNIST {part} files disagree: {len(images)} images and {len(labels)} labels.")
    return ImageData("MNIST", _scaled(train_images), _wide(train_labels), _scaled(test_images), _wide(test_labels))


def _parse(file: StandardFile, content: bytes) -> NDArray:
    """Read one idx file: two zero bytes, type 8 (unsigned byte), number of axes, big-endian sizes, then the values."""
    n_axes = 3 if "idx3" in file.name else 1
    magic = bytes([0, 0, 8, n_axes])
    if content[:4] != magic:
        raise DataFileError(f"it starts with {content[:4].hex(' ')}, but {file.name} starts with {magic.hex(' ')}.")
    start = 4 + 4 * n_axes
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], dtype=">u4"))
    if len(shape) != n_axes or len(content) != start + prod(shape):
        raise DataFileError(
            f"its header announces {' x '.join(map(str, shape))} values, but {len(content) - start:,} bytes follow."
        )
    values = np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
    if n_axes == 1 and values.size and values.max() >= N_CLASSES:
        raise DataFileError(f"it holds the label {values.max()}; labels are 0 to {N_CLASSES - 1}.")
    return values


def _scaled(images: NDArray) -> NDArray:
    return np.divide(images, np.float32(255), dtype=np.float32)


def _wide(labels: NDArray) -> NDArray:
    return labels.astype(np.int64)
