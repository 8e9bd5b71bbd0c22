"""What a loader returns."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Labelled images with their standard split.

    Attributes
    ----------
    name : str
        Name of the data set.
    train_images, test_images : ndarray of shape (N, h, w)
        float32 between 0 (background) and 1 (ink).
    train_labels, test_labels : ndarray of shape (N,)
        int64 class labels.
    """

    name: str
    train_images: NDArray
    train_labels: NDArray
    test_images: NDArray
    test_labels: NDArray

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width of the images."""
        _, height, width = self.train_images.shape
        return height, width

    def __repr__(self) -> str:
        height, width = self.image_shape
        return (
            f"<{self.name}: {len(self.train_images)} training and {len(self.test_images)} test images of "
            f"{height}x{width} pixels>"
        )
