"""The USPS zip-code digits in their text files."""

from __future__ import annotations

import os
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from polytrain_paper.datasets._files import DataFileError, Source, StandardFile, read_files
from polytrain_paper.datasets._images import ImageData

__all__ = ["load_usps"]

SOURCE = Source("USPS", "usps", "https://hastie.su.domains/ElemStatLearn/datasets")
FILES = (
    StandardFile("zip.train", 14_504_792, "cffe3715cf1d92aa5881a14674dbbf6343f59ca12dae90a73c1b6c7500f643aa"),
    StandardFile("zip.test", 3_986_035, "99a533840801264c6352c7987e5a4ee5fd8cc30ae722acc85a5d20a3d833c732"),
)
SIDE = 16
N_CLASSES = 10


def load_usps(
    *,
    data_home: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
    download: bool = True,
    progress: bool = True,
) -> ImageData:
    """Load the US Postal Service digits: 7,291 training and 2,007 test images of 16x16 pixels.

    ``zip.train.gz`` and ``zip.test.gz`` of *The Elements of Statistical Learning*, or the decompressed files, are read
    from ``<data home>/usps`` or the data home itself. Missing ones are downloaded there, with the extra ``data``. Every
    file is checked against the digest of its content. The test set is known to be harder than the training set; people
    misread 2.5 % of it.

    Parameters, result and errors are those of `load_mnist`; the files hold grey values from -1 to 1, the images 0 to 1.

    Examples
    --------
    >>> from polytrain_paper.datasets import load_usps
    >>> load_usps()  # doctest: +SKIP
    <USPS: 7291 training and 2007 test images of 16x16 pixels>
    """
    (train_images, train_labels), (test_images, test_labels) = read_files(
        FILES, SOURCE, _parse, data_home=data_home, base_url=base_url, download=download, progress=progress
    )
    return ImageData("USPS", train_images, train_labels, test_images, test_labels)


def _parse(file: StandardFile, content: bytes) -> tuple[NDArray, NDArray]:
    """Read lines of a label and 256 grey values between -1 and 1."""
    try:
        table = np.loadtxt(BytesIO(content), dtype=np.float32, ndmin=2)
    except ValueError as error:
        raise DataFileError(f"it is not a table of numbers ({error}).") from None
    if table.shape[1] != 1 + SIDE * SIDE:
        raise DataFileError(f"its lines hold {table.shape[1]} numbers instead of {1 + SIDE * SIDE}.")
    labels, pixels = table[:, 0], table[:, 1:]
    if not np.isin(labels, np.arange(N_CLASSES)).all():
        wrong = labels[~np.isin(labels, np.arange(N_CLASSES))][0]
        raise DataFileError(f"it holds the label {wrong:g}; labels are 0 to {N_CLASSES - 1}.")
    if not np.all(np.abs(pixels) <= 1):
        raise DataFileError("it holds grey values outside [-1, 1].")
    return ((pixels + 1) / 2).reshape(-1, SIDE, SIDE), labels.astype(np.int64)
