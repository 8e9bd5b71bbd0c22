"""Errors of a model on a table, counted block by block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.tables.errors import TableError
from polytrain.tables.model import TableModel

__all__ = ["ClassificationErrors", "RegressionErrors", "make_errors"]

# Its square is still a number.
_MOST_RATIO = 1e150
# Probabilities are counted in this many bins, of which a plot may join some.
N_BINS = 20


class ClassificationErrors:
    """Counts of right and wrong labels.

    Parameters
    ----------
    model : TableModel
        A classifier.

    Attributes
    ----------
    confusion : ndarray of shape (m, m)
        Rows of the true class (first axis) that were given a class (second axis).
    bins : ndarray of shape (3, N_BINS)
        Of every bin of the predicted class's probability: rows, sum of the probabilities, rows that were right.
    """

    def __init__(self, model: TableModel) -> None:
        self._estimator = model.estimator
        self.labels = [str(label) for label in model.estimator.classes_]
        self.has_probabilities = hasattr(model.estimator, "predict_log_proba")
        self.confusion = np.zeros((len(self.labels), len(self.labels)), dtype=np.int64)
        self.bins = np.zeros((3, N_BINS))
        self._log_loss = 0.0

    def add(self, X: NDArray, y: NDArray) -> None:
        """Count rows with their true classes, given as indexes."""
        # Both answers from the scores, which are what takes time.
        fitted, n_classes = self._estimator.model_, len(self.labels)
        values = fitted.scores(X)
        scores = fitted.decision.decide(values, n_classes)
        guess = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        np.add.at(self.confusion, (y, guess), 1)
        if self.has_probabilities:
            logs = fitted.decision.log_probabilities(values, n_classes)
            self._log_loss -= float(logs[np.arange(len(y)), y].sum())
            sure = np.exp(logs[np.arange(len(y)), guess])
        elif scores.ndim == 1:
            sure = np.minimum((1.0 + np.abs(scores)) / 2, 1.0)
        else:
            return
        place = np.minimum((sure * N_BINS).astype(np.intp), N_BINS - 1)
        for row, weights in zip(self.bins, (None, sure, (guess == y).astype(np.float64)), strict=True):
            row += np.bincount(place, weights, minlength=N_BINS)

    @property
    def n(self) -> int:
        """Rows so far."""
        return int(self.confusion.sum())

    def summary(self) -> dict[str, Any]:
        """Return the figures by name."""
        counts = self.confusion.sum(axis=1)
        right = np.diagonal(self.confusion)
        error = 1.0 - float(right.sum()) / self.n
        with_rows = counts > 0
        figures: dict[str, Any] = {
            "n": self.n,
            "error": error,
            "accuracy": 1.0 - error,
            "balanced_accuracy": float((right[with_rows] / counts[with_rows]).mean()),
        }
        if self.has_probabilities:
            figures["log_loss"] = self._log_loss / self.n
        figures["classes"] = self.labels
        figures["confusion"] = self.confusion.tolist()
        return figures


class RegressionErrors:
    """Sums of residuals.

    Parameters
    ----------
    model : TableModel
        A regressor.

    Attributes
    ----------
    sample : list of ndarray
        Pairs of true and predicted values of the first rows, for a picture.
    """

    MAX_SAMPLE = 2000

    def __init__(self, model: TableModel) -> None:
        self._estimator = model.estimator
        self._centre = float(model.estimator.intercept_)  # keeps the sums of squares from cancelling
        self.n = 0
        self._error = self._size = self._mean_error = self._mean = self.largest = 0.0
        self._sample: list[NDArray] = []
        self._n_sample = 0

    def add(self, X: NDArray, y: NDArray) -> None:
        """Count rows with their true values."""
        guess = self._estimator.predict(X)
        residual, centred = guess - y, y - self._centre
        self.n += len(y)
        part = len(y) / self.n
        # Means of all rows so far, and roots of means of squares: sums and squares of large numbers would overflow.
        self._mean_error += part * (float(np.mean(np.abs(residual))) - self._mean_error)
        self._mean += part * (float(np.mean(centred)) - self._mean)
        self._error = _joint_root(self._error, _root_mean_square(residual), part)
        self._size = _joint_root(self._size, _root_mean_square(centred), part)
        self.largest = max(self.largest, float(np.abs(residual).max()))
        room = self.MAX_SAMPLE - self._n_sample
        if room > 0:
            self._sample.append(np.stack([y[:room], guess[:room]]))
            self._n_sample += len(y[:room])

    @property
    def sample(self) -> NDArray:
        """True and predicted values of the first rows, shape (2, at most 2000)."""
        return np.concatenate(self._sample, axis=1)

    def summary(self) -> dict[str, Any]:
        """Return the figures by name; ``r2`` is None where the target does not vary."""
        rest = 1.0 - (self._mean / self._size) ** 2 if self._size > 0 else 0.0  # of the squares, without their mean
        r2 = None
        if rest > 0:
            r2 = 1.0 - min(self._error / self._size / rest**0.5, _MOST_RATIO) ** 2
        return {"n": self.n, "rmse": self._error, "mae": self._mean_error, "largest_error": self.largest, "r2": r2}


def _root_mean_square(values: NDArray) -> float:
    top = float(np.abs(values).max())
    return top * float(np.sqrt(np.mean(np.square(values / top)))) if top > 0 else 0.0


def _joint_root(root: float, other: float, part: float) -> float:
    """Root of the mean of squares of all rows, of which this part has the other root."""
    return math.hypot(math.sqrt(1.0 - part) * root, math.sqrt(part) * other)


def make_errors(model: TableModel) -> ClassificationErrors | RegressionErrors:
    """Return the counter that fits a model."""
    if not model.estimator.model_.one_output:
        raise TableError(
            f"the model predicts {model.estimator.model_.n_trains} numbers per row, and a table has one target. "
            "Evaluate it in Python, for example with model.score(X, y)."
        )
    return ClassificationErrors(model) if model.is_classifier else RegressionErrors(model)
