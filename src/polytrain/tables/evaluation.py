"""Errors of a model on rows that come block by block; scikit-learn computes the figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from polytrain.models import FittedModel
from polytrain.tables.errors import Option, TableError
from polytrain.tables.metrics import Answers, measure, metric_names
from polytrain.tables.reading import TableFile

__all__ = ["ClassificationErrors", "RegressionErrors", "count_errors", "make_errors"]

# Probabilities are counted in this many bins, of which a plot may join some.
N_BINS = 20


class _Errors:
    """Answers to all rows; add them before you ask.

    Parameters
    ----------
    fitted : FittedModel
        The model that answers.
    """

    task = ""

    def __init__(self, fitted: FittedModel) -> None:
        self._fitted = fitted
        self._parts: list[Answers] = []

    def add(self, X: NDArray, y: NDArray) -> None:
        """Take features of rows, with their true values or indexes of classes."""
        self._parts.append(Answers.of(self._fitted, X, y))

    @cached_property
    def answers(self) -> Answers:
        """Of all rows."""
        return Answers.join(self._parts)

    @property
    def n(self) -> int:
        """Rows so far."""
        return sum(len(part.y) for part in self._parts)

    def summary(self) -> dict[str, Any]:
        """Return the figures by name; None for those that these rows do not have."""
        return {"n": self.n} | {name: measure(name, self.answers) for name in metric_names(self.task)}


class ClassificationErrors(_Errors):
    """Right and wrong labels.

    Attributes
    ----------
    confusion : ndarray of shape (m, m)
        Rows of the true class (first axis) that were given a class (second axis).
    bins : ndarray of shape (3, N_BINS)
        Of every bin of the predicted class's probability: rows, sum of the probabilities, rows that were right.
    """

    task = "classification"

    def __init__(self, fitted: FittedModel) -> None:
        super().__init__(fitted)
        self.labels = [str(label) for label in fitted.classes]  # type: ignore[union-attr]
        self.has_probabilities = fitted.has_probabilities

    @cached_property
    def confusion(self) -> NDArray:
        """Counts."""
        return confusion_matrix(self.answers.y, self.answers.predicted, labels=np.arange(len(self.labels)))

    @cached_property
    def bins(self) -> NDArray:
        """Counts of probabilities; all 0 where there are none, and no margin of two classes either."""
        answers, counts = self.answers, np.zeros((3, N_BINS))
        if answers.probabilities is not None:
            sure = answers.probabilities[np.arange(self.n), answers.predicted]
        elif answers.decided is not None and answers.decided.shape[1] == 2:
            sure = np.minimum((1.0 + np.abs(answers.decided[:, 1])) / 2, 1.0)
        else:
            return counts
        place = np.minimum((sure * N_BINS).astype(np.intp), N_BINS - 1)
        right = (answers.predicted == answers.y).astype(np.float64)
        for row, weights in zip(counts, (None, sure, right), strict=True):
            row += np.bincount(place, weights, minlength=N_BINS)
        return counts

    def summary(self) -> dict[str, Any]:
        """Return the figures by name, with accuracies, labels and counts."""
        figures = super().summary()
        figures |= {"accuracy": 1.0 - figures["error"], "balanced_accuracy": 1.0 - figures["balanced_error"]}
        if not self.has_probabilities:
            del figures["log_loss"]
        return figures | {"classes": self.labels, "confusion": self.confusion.tolist()}


class RegressionErrors(_Errors):
    """Residuals."""

    task = "regression"

    def summary(self) -> dict[str, Any]:
        """Return the figures by name; ``r2`` is None where the target does not vary."""
        return super().summary() | {"largest_error": float(np.abs(self.answers.predicted - self.answers.y).max())}


def count_errors(
    model: Any,
    table: TableFile,
    *,
    visit: Callable[[NDArray, NDArray], None] | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> ClassificationErrors | RegressionErrors:
    """Compare predictions with the targets in a table.

    Parameters
    ----------
    model : TableModel
        The model.
    table : TableFile
        What ``model.open`` returned.
    visit : callable, optional
        Sees features and targets of every block.
    say : callable, optional
        Told about rows and labels that are not taken as they are.
    **options
        See `TableModel.blocks`.

    Returns
    -------
    ClassificationErrors or RegressionErrors
    """
    errors, n_rows, n_dotted = make_errors(model.fitted), 0, 0
    talk = say or (lambda text: None)
    for block in model.blocks(table, with_target=True, say=say, **options):
        n_rows += len(block.frame)
        n_dotted += block.n_dotted
        if not len(block.X):
            continue
        errors.add(block.X, block.y)
        if visit is not None:
            visit(block.X, block.y)
    if not errors.n:
        raise TableError(
            f"{table.label} holds no row with a target. Name the right column with ", Option("target"), "."
        )
    if n_dotted:
        talk(f"note: {n_dotted} labels end with a dot that the model's labels do not have; they are taken without it")
    if n_rows > errors.n:
        talk(f"note: {n_rows - errors.n} rows without target are left out")
    return errors


def make_errors(fitted: FittedModel) -> ClassificationErrors | RegressionErrors:
    """Return what measures the errors of a model."""
    return RegressionErrors(fitted) if fitted.classes is None else ClassificationErrors(fitted)
