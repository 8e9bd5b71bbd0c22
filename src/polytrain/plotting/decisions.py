"""Pictures of what a classifier decides: regions of two features, and the digits it misreads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import check_is_fitted

from polytrain.columns import is_frame
from polytrain.plotting._style import COLOURS, MARKERS, SHARES, begin_plot, pale, shorten
from polytrain.texts import short_list

__all__ = ["DecisionBoundaryDisplay", "MisreadDigitsDisplay"]


class DecisionBoundaryDisplay:
    """Regions of the predicted classes in the plane of two features.

    Parameters
    ----------
    grid : pair of ndarray
        Values of the two features.
    decisions : ndarray of int of shape (len(grid[0]), len(grid[1]))
        Index of the class that is predicted at every point.
    classes : sequence
        Labels.
    names : pair of str
        Names of the features.
    points : ndarray of shape (N, 2), optional
        Rows to draw.
    labels : ndarray of int of shape (N,), optional
        Index of their class.
    note : str, default=""
        What holds for the features that are not shown.

    Attributes
    ----------
    ax_, figure_
        Where `plot` has drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import DecisionBoundaryDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifier(rank=2, max_sweeps=2, random_state=0).fit(X, y)
    >>> display = DecisionBoundaryDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    >>> display.decisions.shape
    (300, 300)
    """

    def __init__(
        self,
        grid: tuple[NDArray, NDArray],
        decisions: NDArray,
        classes: Sequence[Any],
        names: tuple[str, str],
        points: NDArray | None = None,
        labels: NDArray | None = None,
        note: str = "",
    ) -> None:
        self.grid = grid
        self.decisions = decisions
        self.classes = classes
        self.names = names
        self.points = points
        self.labels = labels
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: tuple[int | str, int | str] = (0, 1),
        grid_size: int = 300,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> DecisionBoundaryDisplay:
        """Predict on a grid of two features and draw the regions.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier, or a pipeline that ends with one.
        X : array-like of shape (N, d)
            Rows, also a frame. They set the range of the picture; features that are not shown are held at their median,
            or at their most frequent value if they are no numbers.
        y : array-like of shape (N,), optional
            Labels of the rows, which are drawn as points if it is given.
        features : pair of int or str, default=(0, 1)
            The two features, by index or name. They must be numbers.
        grid_size : int, default=300
            Points along each axis.
        feature_names : sequence of d str, optional
            By default the column names of ``X``, or x1, x2, ...
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        DecisionBoundaryDisplay
        """
        check_is_fitted(estimator)
        columns = _columns(X)
        known = [str(name) for name in columns] if is_frame(X) else [f"x{k + 1}" for k in range(len(columns))]
        names = known if feature_names is None else list(feature_names)
        if len(names) != len(columns):
            raise ValueError(f"feature_names has {len(names)} names but X has {len(columns)} columns.")
        pair = _check_pair(features, names)
        values = list(columns.values())
        for k in pair:
            if values[k].dtype == object:
                raise ValueError(f"the feature {names[k]!r} holds no numbers, so it has no axis; choose two others.")

        axes = tuple(_padded_range(values[k], grid_size) for k in pair)
        plane = {name: np.full(grid_size * grid_size, _typical(column)) for name, column in columns.items()}
        for k, points in zip(pair, np.meshgrid(*axes, indexing="ij"), strict=True):
            plane[list(columns)[k]] = points.ravel()
        classes = np.asarray(estimator.classes_)
        predicted = estimator.predict(type(X)(plane) if is_frame(X) else np.stack(list(plane.values()), axis=1))  # type: ignore
        decisions = np.searchsorted(classes, predicted).reshape(grid_size, grid_size)
        return cls(
            (axes[0], axes[1]),
            decisions,
            classes.tolist(),
            (names[pair[0]], names[pair[1]]),
            None if y is None else np.stack([values[k] for k in pair], axis=1),
            None if y is None else _class_numbers(classes, np.asarray(y)),
            _note([column for k, column in enumerate(values) if k not in pair]),
        ).plot(ax)

    def plot(self, ax: Any = None) -> DecisionBoundaryDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        self.figure_, self.ax_ = begin_plot(ax)
        from matplotlib.colors import ListedColormap

        count, plane = len(self.classes), self.decisions.T
        colours = [COLOURS[index % len(COLOURS)] for index in range(count)]
        self.ax_.imshow(
            plane,
            origin="lower",
            extent=[self.grid[0][0], self.grid[0][-1], self.grid[1][0], self.grid[1][-1]],
            cmap=ListedColormap([pale(colour) for colour in colours]),
            vmin=-0.5,
            vmax=count - 0.5,
            aspect="auto",
        )
        for index in range(count):  # one outline per class: levels between class numbers would cross other classes
            inside = np.asarray(plane == index, dtype=float)
            if inside.any() and not inside.all():
                self.ax_.contour(*self.grid, inside, levels=[0.5], colors="0.25", linewidths=1)
        for index, label in enumerate(self.classes):
            # With more classes than colours the markers go round in another step, so that no pair repeats early.
            marker = MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]
            style = {"color": colours[index], "edgecolor": "white", "linewidth": 0.4, "marker": marker}
            if self.points is not None and self.labels is not None:
                chosen = self.points[self.labels == index]
                self.ax_.scatter(chosen[:, 0], chosen[:, 1], s=26, label=str(label), **style)
            else:
                self.ax_.scatter([], [], s=60, label=str(label), color=pale(colours[index]), marker="s")
        self.ax_.set_xlim(self.grid[0][0], self.grid[0][-1])
        self.ax_.set_ylim(self.grid[1][0], self.grid[1][-1])
        self.ax_.set_xlabel(self.names[0])
        self.ax_.set_ylabel(self.names[1])
        self.ax_.set_title(self.note, fontsize="medium")
        self.ax_.legend(title="class", fontsize="small")
        return self


def _columns(X: Any) -> dict[Any, NDArray]:
    """Columns of rows by their names: float64, or object where they hold other things than numbers."""
    if not is_frame(X):
        return dict(enumerate(np.asarray(X, dtype=np.float64).T))
    columns = {}
    for name in X.columns:
        values = np.asarray(X[name])
        is_number = values.dtype.kind in "iuf"
        # Dates of NumPy would become numbers; in the lists of the libraries they are dates.
        columns[name] = values.astype(np.float64) if is_number else np.fromiter(X[name].to_list(), dtype=object)
    return columns


def _typical(column: NDArray) -> Any:
    """The median of numbers; of all else, what is there most often."""
    if column.dtype != object:
        return np.nanmedian(column) if not np.isnan(column).all() else np.nan
    return Counter(column.tolist()).most_common(1)[0][0]


def _note(others: Sequence[NDArray]) -> str:
    """What holds for the columns that are not shown."""
    if not others:
        return ""
    some = " or most frequent value" if any(column.dtype == object for column in others) else ""
    return f"other features at their median{some}"


def _check_pair(features: tuple[int | str, int | str], names: list[str]) -> list[int]:
    """Indices of two different features."""
    pair = []
    for feature in features:
        if isinstance(feature, str) and feature not in names:
            raise ValueError(f"there is no feature {feature!r}; the features are {', '.join(names[:12])}.")
        pair.append(names.index(feature) if isinstance(feature, str) else int(feature))
    if len(pair) != 2 or pair[0] == pair[1] or not all(0 <= k < len(names) for k in pair):
        raise ValueError(f"features must be two different features of {len(names)}, got {features!r}.")
    return pair


def _class_numbers(classes: NDArray, y: NDArray) -> NDArray:
    """Place of every label among the classes."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y has the label {unknown[0]!r}, which the model does not know; it has {short_list(classes)}."
        )
    return np.searchsorted(classes, y)


def _padded_range(column: NDArray, size: int) -> NDArray:
    """Grid a little wider than the values."""
    known = column[~np.isnan(column)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    margin = 0.05 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, size)


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
        What each one is and how it was read.
    n_misread : int
        How many images were misread in all.

    Attributes
    ----------
    ax_, figure_
        Where `plot` has drawn. ``ax_`` is switched off; the matrix and the images are insets of it.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.plotting import MisreadDigitsDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> settings = {"loss": "squared", "basis": "power", "degree": 1, "rank": 2, "alpha": 0.01, "max_sweeps": 1}
    >>> model = TensorTrainClassifier(**settings, random_state=0).fit(X[:1000], y[:1000])
    >>> display = MisreadDigitsDisplay.from_estimator(model, X[1000:], y[1000:], ax=Figure().subplots())
    >>> display.counts.shape, display.images.shape
    ((10, 10), (24, 8, 8))
    """

    def __init__(
        self, counts: NDArray, classes: Sequence[Any], images: NDArray, captions: Sequence[str], n_misread: int
    ) -> None:
        self.counts = counts
        self.classes = classes
        self.images = images
        self.captions = captions
        self.n_misread = n_misread

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
            What the estimator predicts from.
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
        return cls(counts, classes.tolist(), pictures[shown], captions, len(wrong)).plot(ax)

    def plot(self, ax: Any = None) -> MisreadDigitsDisplay:
        """Draw into ``ax``, or into a new figure, and return the display."""
        self.figure_, self.ax_ = begin_plot(ax, 11.0, 5.2)
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
        inset.imshow(np.where(wrong > 0, wrong, np.nan), cmap=SHARES, vmin=0, vmax=largest)
        for row, column in np.ndindex(wrong.shape):
            if self.counts[row, column]:
                right = row == column
                colour = "0.35" if right else ("white" if wrong[row, column] > 0.55 * largest else "black")
                inset.text(column, row, str(self.counts[row, column]), ha="center", va="center", color=colour,
                           fontsize=8, fontweight="normal" if right else "bold")  # fmt: skip
        names = shorten([str(label) for label in self.classes], 12)
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
            f"X of shape {array.shape} holds no square images; pass images of shape (N, height, width) as images."
        )
    return array.reshape(-1, side, side)
