"""Simple models to compare with: the best constant, and a model that is linear in the columns."""

from __future__ import annotations

import warnings
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from polytrain.learning.losses import get_loss
from polytrain.tables.metrics import Answers

__all__ = ["constant_answers", "linear_answers"]


def constant_answers(learned: NDArray, y: NDArray, n_classes: int | None, loss: str = "squared") -> Answers:
    """Answer all rows with the commonest class, or the constant that costs least, of the targets ``learned``."""
    if n_classes is not None:
        shares = np.bincount(learned, minlength=n_classes) / len(learned)
        sure = np.tile(shares, (len(y), 1))
        return Answers(y, sure.argmax(axis=1), sure, sure, loss)
    rule, weights = get_loss(loss), np.ones(len(learned))
    starts = np.array([rule.start(column, weights) for column in learned.reshape(len(learned), -1).T])
    return Answers(y, np.broadcast_to(rule.mean(starts), (len(y), len(starts))).reshape(y.shape), loss=loss)


def linear_answers(
    X: NDArray,
    learned: NDArray,
    others: NDArray,
    y: NDArray,
    categories: Collection[int],
    n_classes: int | None,
    loss: str = "squared",
) -> Answers | None:
    """Answer other rows with a linear model of these ones; None where there is nothing to learn.

    Parameters
    ----------
    X, learned : ndarray of shape (N, d) and (N,) or (N, n_targets)
        Features and targets to learn from; of classes, their indexes.
    others, y : ndarray
        Features and true values of the rows to answer.
    categories : collection of int
        Features that are numbers of categories.
    n_classes : int or None
        None for numbers.
    loss : str
        What the model beside it was learned with, which says what the deviance is.
    """
    from sklearn.linear_model import LogisticRegression, RidgeCV

    if n_classes is not None and len(np.unique(learned)) < 2:
        return None
    rows, inner = _linear_columns(X, others, categories)
    learner = RidgeCV(np.logspace(-3, 4, 15)) if n_classes is None else LogisticRegression(max_iter=200)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what comes of few steps serves to compare with
        try:
            learner.fit(rows, learned)
            if n_classes is None:
                return Answers(y, learner.predict(inner), loss=loss)
            sure = np.zeros((len(y), n_classes))
            sure[:, learner.classes_] = learner.predict_proba(inner)
            return Answers(y, learner.predict(inner), sure, sure, loss)
        except (ValueError, np.linalg.LinAlgError):
            return None


def _linear_columns(X: NDArray, others: NDArray, categories: Collection[int]) -> tuple[NDArray, NDArray]:
    """Columns of a linear model: a category is one column per level; missing numbers are the mean, and marked."""
    parts, inner = [], []
    for k in range(X.shape[1]):
        pair = X[:, k], others[:, k]
        if k in categories:
            levels = np.unique(pair[0][~np.isnan(pair[0])])
            made = [np.column_stack([(one[:, None] == levels), np.isnan(one)]).astype(np.float64) for one in pair]
        else:
            # Squares of large numbers would overflow.
            top = float(np.abs(pair[0][~np.isnan(pair[0])]).max(initial=0.0)) or 1.0
            pair = pair[0] / top, pair[1] / top
            known = pair[0][~np.isnan(pair[0])]
            mean, size = (known.mean(), known.std() or 1.0) if len(known) else (0.0, 1.0)
            gaps = [np.isnan(one) for one in pair]
            made = [
                np.column_stack([np.where(gap, 0.0, (one - mean) / size), gap])
                for one, gap in zip(pair, gaps, strict=True)
            ]
            if not gaps[0].any():
                made = [one[:, :1] for one in made]
        parts.append(made[0])
        inner.append(made[1])
    return np.concatenate(parts, axis=1), np.concatenate(inner, axis=1)
