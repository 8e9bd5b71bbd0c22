"""The digits that come with scikit-learn: nothing to download."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from polytrain_paper.datasets._images import ImageData

__all__ = ["load_digits_images"]

N_TRAIN = 1197


def load_digits_images() -> ImageData:
    """Load scikit-learn's 1,797 digits of 8x8 pixels with a fixed split.

    The first 1,197 images are the training set and the last 600 the test set. The images are in the order of their
    writers, so most of the test set comes from people who wrote none of the training set. That is harder, and closer to
    use, than a shuffled split.

    Returns
    -------
    ImageData
        float32 images between 0 and 1 (the data hold 0 to 16), int64 labels, and the split.

    Examples
    --------
    >>> from polytrain_paper.datasets import load_digits_images
    >>> load_digits_images()
    <digits: 1197 training and 600 test images of 8x8 pixels>
    """
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    return ImageData("digits", images[:N_TRAIN], labels[:N_TRAIN], images[N_TRAIN:], labels[N_TRAIN:])
