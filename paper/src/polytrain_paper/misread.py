"""Picture of the digits that a classifier misreads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix

__all__ = ["MisreadDigitsDisplay"]


@dataclass(eq=False, repr=False)
class MisreadDigitsDisplay:
    """Confusion matrix of a digit classifier, with the images that it misread beside it.

    Parameters
    ----------
    counts : ndarray of shape (m, m)
        Rows by true class, columns by predicted class.
    classes : sequence of m labels
        Labels.
    images : ndarray of shape (K, height, width)
        Misread images.
    captions : sequence of K str
        True and predicted label of each.
    n_misread : int
        Number of all misread images.

    Attributes
    ----------
    ax_, figure_
        Where `plot` has drawn. ``ax_`` is switched off; the matrix and the images are insets of it.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain_paper.misread import MisreadDigitsDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> settings = {"loss": "squared", "basis": "power", "degree": 1, "rank": 2, "alpha": 0.01, "max_sweeps": 1}
    >>> model = TensorTrainClassifier(**settings, random_state=0).fit(X[:1000], y[:1000])
    >>> display = MisreadDigitsDisplay.from_estimator(model, X[1000:], y[1000:], ax=Figure().subplots())
    >>> display.counts.shape, display.images.shape
    ((10, 10), (24, 8, 8))
    """

    counts: NDArray
    classes: Sequence[Any]
    images: NDArray
    captions: Sequence[str]
    n_misread: int

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike,
        *,
        images: ArrayLike | None = None,
        max_images: int = 24,
        ax: Any = None,
    ) -> MisreadDigitsDisplay:
        """Predict, count and draw.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier, or a pipeline that ends with one.
        X : array-like
            Rows for the estimator.
        y : array-like of shape (N,)
            True labels.
        images : array-like of shape (N, height, width), optional
            Images to show. By default ``X`` itself, as images or as rows of square images.
        max_images : int, default=24
            How many misread images to show, ordered by true class.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        MisreadDigitsDisplay
        """
        pictures = _as_images(X if images is None else images)
        truth = np.asarray(y)
        if len(truth) != len(pictures):
            raise ValueError(f"y has {len(truth)} labels but there are {len(pictures)} images.")
        predicted = np.asarray(estimator.predict(X))
        classes = np.unique(np.concatenate((truth, predicted)))
        wrong = np.flatnonzero(truth != predicted)
        shown = wrong[np.lexsort((predicted[wrong], truth[wrong]))][:max_images]
        captions = [f"{truth[row]} read as {predicted[row]}" for row in shown]
        counts = confusion_matrix(truth, predicted, labels=classes)
        display = cls(
            counts=counts,
            classes=classes.tolist(),
            images=pictures[shown],
            captions=captions,
            n_misread=len(wrong),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> MisreadDigitsDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(11.0, 5.2), layout="constrained")
        self.figure_, self.ax_ = ax.figure, ax
        self.ax_.set_axis_off()
        self._plot_counts(self.ax_.inset_axes((0.04, 0.08, 0.42, 0.84)))
        count = len(self.images)
        if count:
            n_columns = int(np.ceil(np.sqrt(1.2 * count)))
            n_rows = -(-count // n_columns)
            width, height = 0.5 / n_columns, 0.86 / n_rows
            for index, (image, caption) in enumerate(zip(self.images, self.captions, strict=True)):
                row, column = divmod(index, n_columns)
                place = (0.5 + column * width, 0.92 - (row + 1) * height, 0.92 * width, 0.74 * height)
                inset = self.ax_.inset_axes(place)
                inset.imshow(image, cmap="gray_r")
                inset.set_xticks([])
                inset.set_yticks([])
                inset.set_title(caption, fontsize=8, pad=2)
        shown = "" if count == self.n_misread else f", {count} of them shown"
        total = int(np.sum(self.counts))
        self.ax_.set_title(f"{self.n_misread} of {total} misread{shown}", fontsize="medium")
        return self

    def _plot_counts(self, inset: Any) -> None:
        """Heat map of the errors; right answers are numbers on white, or they would drown the errors."""
        wrong = np.array(self.counts, dtype=float)
        np.fill_diagonal(wrong, np.nan)
        largest = max(np.nanmax(wrong), 1.0) if len(wrong) > 1 else 1.0
        inset.imshow(np.where(wrong > 0, wrong, np.nan), cmap="Blues", vmin=0, vmax=largest)
        for row, column in np.ndindex(wrong.shape):
            if self.counts[row, column]:
                right = row == column
                colour = "0.35" if right else ("white" if wrong[row, column] > 0.55 * largest else "black")
                inset.text(column, row, str(self.counts[row, column]), ha="center", va="center", color=colour,
                           fontsize=8, fontweight="normal" if right else "bold")  # fmt: skip
        names = [f"{label!s:.12}" for label in self.classes]
        inset.set_xticks(range(len(names)), names)
        inset.set_yticks(range(len(names)), names)
        inset.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
        inset.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
        inset.grid(True, which="minor", color="0.85", linewidth=0.5)
        inset.tick_params(which="minor", length=0)
        inset.set_xlabel("read as")
        inset.set_ylabel("is")


def _as_images(data: ArrayLike) -> NDArray:
    """Images (N, height, width), or rows of square images made into such."""
    array = np.asarray(data)
    if array.ndim == 3:
        return array
    side = int(np.sqrt(array.shape[1])) if array.ndim == 2 else 0
    if array.ndim != 2 or side * side != array.shape[1]:
        raise ValueError(
            f"X of shape {array.shape} does not hold square images; pass images of shape (N, height, width) as images."
        )
    return array.reshape(-1, side, side)
