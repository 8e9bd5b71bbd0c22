"""Ready pipelines from digit images to feature vectors."""

from __future__ import annotations

from sklearn.decomposition import PCA, KernelPCA
from sklearn.pipeline import Pipeline

from polytrain_paper.features._images import check_image_shape
from polytrain_paper.features.canvas import FitToCanvas
from polytrain_paper.features.cnn import SIDE, DigitCNN
from polytrain_paper.features.deskew import Deskew
from polytrain_paper.features.fourier import LowFrequencyDFT

__all__ = ["FEATURE_KINDS", "make_digit_features"]

FEATURE_KINDS = ("cnn", "pca", "kernel-pca", "dft")
# Two deskewed digits on 28x28 pixels lie 6 to 11 apart (MNIST and USPS), where this kernel is 0.7 to 0.3.
KERNEL_GAMMA = 0.01


def make_digit_features(
    kind: str = "cnn", n_features: int = 20, *, image_shape: tuple[int, int] = (28, 28), random_state: int = 0
) -> Pipeline:
    """Make the pipeline that turns images of digits into feature vectors.

    Images that are not 28x28 are first brought there by :class:`~polytrain_paper.features.FitToCanvas`. Then all are
    deskewed, and the features are taken.

    Parameters
    ----------
    kind : {"cnn", "pca", "kernel-pca", "dft"}, default="cnn"
        ``"cnn"``: :class:`~polytrain_paper.features.DigitCNN`, whose weights come with the package. ``"pca"``:
        principal components. ``"kernel-pca"``: principal components of a Gaussian kernel; it holds an N x N matrix, so
        fit it on a few thousand images. ``"dft"``: :class:`~polytrain_paper.features.LowFrequencyDFT`.
    n_features : int, default=20
        Number of features d.
    image_shape : (int, int), default=(28, 28)
        Height and width of the images.
    random_state : int, default=0
        Seed of the iterative eigensolver of ``"kernel-pca"``; the other kinds use no random numbers.

    Returns
    -------
    Pipeline
        A transformer from images ``(N, h, w)`` or ``(N, h * w)``, between 0 and 1, to ``(N, n_features)``.

    Examples
    --------
    >>> from polytrain_paper.datasets import load_digits_images
    >>> from polytrain_paper.features import make_digit_features
    >>> digits = load_digits_images()
    >>> features = make_digit_features("pca", 12, image_shape=digits.image_shape)
    >>> features.fit_transform(digits.train_images).shape
    (1197, 12)
    """
    if kind == "cnn":
        extract = DigitCNN(n_features)
    elif kind == "pca":
        # The eigenvectors of the covariance matrix: exact, and quick for many more images than pixels.
        extract = PCA(n_features, svd_solver="covariance_eigh")
    elif kind == "kernel-pca":
        extract = KernelPCA(n_features, kernel="rbf", gamma=KERNEL_GAMMA, random_state=random_state)
    elif kind == "dft":
        extract = LowFrequencyDFT(n_features)
    else:
        raise ValueError(f"kind must be one of {FEATURE_KINDS}, got {kind!r}.")
    shape = check_image_shape(image_shape)
    steps = [("deskew", Deskew((SIDE, SIDE))), (kind, extract)]
    if shape != (SIDE, SIDE):
        steps.insert(0, ("canvas", FitToCanvas(shape, size=SIDE)))
    return Pipeline(steps)
