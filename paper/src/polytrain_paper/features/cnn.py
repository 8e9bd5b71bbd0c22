"""Features of digits from a small convolutional net, evaluated with NumPy.

Conventions
-----------
The net is 1-20-P-100-P-d: 28x28 input, 5x5 convolution with 20 maps, 2x2 max-pooling, 5x5 convolution with 100 maps,
2x2 max-pooling, 4x4 convolution with d maps. Activations are ReLU, and tanh for the d features. Inside, the image row
``y`` is the first axis and the maps are the last, ``(y, N, x, maps)``: then what one row of a kernel sees at all
heights is one contiguous block, a GEMM reads it in place, and patches need copying along x only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from scipy.linalg.blas import sgemm
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from polytrain.tensor_file import read_tensor_file
from polytrain_paper.features._images import ImageTransformer

__all__ = ["DigitCNN"]

SIDE = 28
PACKAGED_N_FEATURES = (20, 25, 30, 35, 40)
# Our headers take about 1 kB; a larger number is a sign of some other file.
MAX_HEADER_BYTES = 100_000
WEIGHTS = Path(__file__).parent / "weights"


class DigitCNN(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """Features of handwritten digits: the top hidden layer of a convolutional net trained on deskewed MNIST.

    The net is the paper's 1-20-P-100-P-d-10 and the features are its d activations, between -1 and 1. The weights come
    with the package; the forward pass is NumPy only, in float32. Images must be 28x28 with background 0 and ink up to
    1, deskewed by :class:`~polytrain_paper.features.Deskew`; :class:`~polytrain_paper.features.FitToCanvas` brings
    others there.

    Parameters
    ----------
    n_features : int, default=20
        Number of features d. Nets for 20, 25, 30, 35 and 40 come with the package.
    weights : path-like, optional
        A safetensors file of another net of this shape, as written by ``scripts/train_cnn.py``.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels, 784.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain_paper.features import DigitCNN
    >>> blank = np.zeros((3, 28, 28), dtype=np.float32)
    >>> DigitCNN(n_features=25).fit_transform(blank).shape
    (3, 25)
    """

    # Not a parameter: the net fixes it.
    image_shape = (SIDE, SIDE)
    # Large enough for GEMMs that are worth two threads; the patches and maps of a block take some 50 MB.
    _block_rows = 256

    def __init__(self, n_features: int = 20, *, weights: str | os.PathLike[str] | None = None) -> None:
        self.n_features = n_features
        self.weights = weights

    @property
    def _n_features_out(self) -> int:
        return self._net.n_features

    def _shape_of(self, n_pixels: int, own_shape: tuple[int, int] | None) -> tuple[int, int]:
        shape = own_shape or n_pixels
        if shape not in (self.image_shape, SIDE * SIDE):
            raise ValueError(
                f"DigitCNN needs images of 28x28 pixels (784 features), but X has {n_pixels} features"
                f"{f' as images of shape {own_shape}' if own_shape else ''}; put FitToCanvas before it."
            )
        return self.image_shape

    def _prepare(self) -> None:
        if self.weights is None and self.n_features not in PACKAGED_N_FEATURES:
            raise ValueError(
                f"n_features must be one of {PACKAGED_N_FEATURES}, got {self.n_features!r}; "
                "pass weights for another net."
            )
        path = Path(self.weights or WEIGHTS / f"digit_cnn_d{self.n_features}.safetensors")
        self._net = Net.read(path)
        if self._net.n_features != self.n_features:
            raise ValueError(
                f"{path} holds a net with {self._net.n_features} features, but n_features={self.n_features!r}."
            )

    def _transform_block(self, images: NDArray) -> NDArray:
        return self._net(images.astype(np.float32, copy=False))


def read_weights(path: Path) -> tuple[dict[str, NDArray], dict[str, str]]:
    """Return the tensors and the metadata of a safetensors file of float32 tensors, or say what is wrong with it."""
    try:
        tensors, metadata = read_tensor_file(path, MAX_HEADER_BYTES)
    except ValueError as error:
        raise ValueError(f"{path} is no safetensors file of weights: {error}") from None
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32:
            raise ValueError(f"{path}: {name} has dtype {tensor.dtype}; weights are float32.")
    return tensors, metadata


@dataclass(frozen=True)
class Net:
    """The weights, laid out for the GEMMs of the forward pass.

    Shapes: kernel1 (36, 80), kernel2 (5, 100, 100), kernel3 (4, 400, d); biases (20,), (100,), (d,).
    """

    kernel1: NDArray
    bias1: NDArray
    kernel2: NDArray
    bias2: NDArray
    kernel3: NDArray
    bias3: NDArray

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return len(self.bias3)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a net from a safetensors file and check that it is one of this shape."""
        tensors, metadata = read_weights(path)
        if metadata.get("activation") != "tanh":
            raise ValueError(f"{path} has the activation {metadata.get('activation')!r}; DigitCNN evaluates 'tanh'.")
        n_features = len(tensors["conv3.bias"]) if "conv3.bias" in tensors else 0
        shapes = {"conv1": (20, 1, 5, 5), "conv2": (100, 20, 5, 5), "conv3": (n_features, 100, 4, 4)}
        for layer, shape in shapes.items():
            for name, expected in ((f"{layer}.weight", shape), (f"{layer}.bias", shape[:1])):
                found = tensors[name].shape if name in tensors else None
                if found != expected:
                    raise ValueError(f"{path}: {name} should have shape {expected}, got {found}.")
        return cls.from_layers(*(tensors[f"{layer}.{kind}"] for layer in shapes for kind in ("weight", "bias")))

    @classmethod
    def from_layers(
        cls, weight1: NDArray, bias1: NDArray, weight2: NDArray, bias2: NDArray, weight3: NDArray, bias3: NDArray
    ) -> Self:
        """Lay out weights of shape (maps out, maps in, height, width)."""
        # Four neighbouring outputs of the first layer, which are pooled together, from the 6x6 patch that they share:
        # a wider GEMM over a third of the copied pixels.
        kernel1 = np.zeros((6, 6, 2, 2, 20), dtype=np.float32)
        for y in range(2):
            for x in range(2):
                kernel1[y : y + 5, x : x + 5, y, x] = weight1[:, 0].transpose(1, 2, 0)
        kernel2 = np.ascontiguousarray(weight2.transpose(2, 3, 1, 0)).reshape(5, 100, 100)
        kernel3 = np.ascontiguousarray(weight3.transpose(2, 3, 1, 0)).reshape(4, 400, -1)
        return cls(kernel1.reshape(36, 80), bias1, kernel2, bias2, kernel3, bias3)

    def __call__(self, images: NDArray) -> NDArray:
        """Features of a block of images. Shapes: (N, 28, 28) of float32 -> (N, d)."""
        n_images = len(images)
        maps1 = self._layer1(np.ascontiguousarray(images))
        maps2 = self._layer2(maps1, n_images)
        rows = maps2.reshape(4, n_images, 400)
        scores = self.bias3 + sum(row @ kernel for row, kernel in zip(rows, self.kernel3, strict=True))
        return np.tanh(scores, out=scores)

    def _layer1(self, images: NDArray) -> NDArray:
        """Convolve, pool and rectify. Shapes: (N, 28, 28) -> (12 * N, 240), rows (y, image), columns (x, map)."""
        n_images = len(images)
        along_n, along_y, along_x = images.strides
        patches = as_strided(
            images, (12, n_images, 12, 6, 6), (2 * along_y, along_n, 2 * along_x, along_y, along_x), writeable=False
        )
        pooled = patches.reshape(-1, 36) @ self.kernel1
        pooled = np.maximum(pooled[:, :40], pooled[:, 40:])
        pooled = np.maximum(pooled[:, :20], pooled[:, 20:]).reshape(-1, 240)
        pooled += np.tile(self.bias1, 12)
        return np.maximum(pooled, 0, out=pooled)

    def _layer2(self, maps1: NDArray, n_images: int) -> NDArray:
        """Convolve, pool and rectify. Shapes: (12 * N, 240) -> (4 * N * 4, 100), rows (y, image, x)."""
        along_row, along_column = maps1.strides
        patches = as_strided(
            maps1, (len(maps1), 8, 100), (along_row, 20 * along_column, along_column), writeable=False
        ).reshape(12, n_images * 8, 100)
        total = np.empty((8 * n_images * 8, 100), dtype=np.float32)
        for y, kernel in enumerate(self.kernel2):
            # Transposed, C-contiguous arrays are the Fortran arrays that BLAS adds into without a copy.
            seen = patches[y : y + 8].reshape(-1, 100)
            sgemm(1.0, kernel.T, seen.T, beta=float(y > 0), c=total.T, overwrite_c=True)
        pairs = total.reshape(4, 2, n_images * 8, 100)
        pooled = np.maximum(pairs[:, 0], pairs[:, 1]).reshape(-1, 2, 100)
        pooled = np.maximum(pooled[:, 0], pooled[:, 1])
        pooled += self.bias2
        return np.maximum(pooled, 0, out=pooled)
