"""Fit a model to a table, and measure its error on rows that it has not learned from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from polytrain.estimators import TensorTrainClassifier, TensorTrainRegressor
from polytrain.maps import map_kind
from polytrain.tables.errors import TableError
from polytrain.tables.learning import TrainingRows
from polytrain.tables.model import TableModel
from polytrain.tables.section import Fact

__all__ = ["FitSettings", "fit_table_model"]

#: The error is measured on at most so many rows.
MAX_CHECK_ROWS = 10_000


@dataclass(frozen=True)
class FitSettings:
    """What the user says about the model. What is left out is chosen by the estimator.

    Attributes
    ----------
    parameters : dict
        Parameters of the estimator; ``basis`` is that of numbers.
    folds : int
        Folds of a cross-validation that measures the error; 0 does without.
    holdout : float
        Part of the rows that is set aside to measure the error, 0 for none.
    seed : int
        Seed of folds, splits and starts.
    """

    parameters: dict[str, Any]
    folds: int = 3
    holdout: float = 0.0
    seed: int = 0


def fit_table_model(rows: TrainingRows, settings: FitSettings, say: Callable[[str], None]) -> TableModel:
    """Fit all rows (but those held out), and record what was done.

    Parameters
    ----------
    rows : TrainingRows
        The prepared table.
    settings : FitSettings
        What is given.
    say : callable
        Told about progress.

    Returns
    -------
    TableModel
    """
    started = time.perf_counter()
    X, y, classify = rows.X, rows.y, rows.is_classification
    _check_rows(y, classify)
    _check_missing(rows, settings.parameters.get("basis", "auto"))
    held = None
    if settings.holdout:
        X, held_X, y, held_y = _split(X, y, settings.holdout, settings.seed, classify)
        held = held_X, held_y
        if classify and len(np.unique(y)) < 2:
            raise TableError(
                f"--holdout {settings.holdout:g} cannot be set aside: the other rows would be of one class. "
                "Use --folds instead."
            )
    facts: dict[str, Fact] = {"rows": len(X), "rows_without_target": rows.n_dropped, "missing_cells": rows.n_missing}
    model = _make(rows, settings)
    metric = "error" if classify else "rmse"
    say(f"fitting {len(X)} rows, {X.shape[1]} columns")
    fit_started = time.perf_counter()
    model.fit(X, y)
    facts["fit_seconds"] = time.perf_counter() - fit_started
    for reason in model.choice_.reasons:
        say(f"chosen: {reason}")
    if settings.folds:
        facts |= _cross_validate(model, X, y, settings, classify, say)
    if held is not None:
        facts["holdout_rows"] = len(held[0])
        facts[f"holdout_{metric}"] = _error(model, *held, classify)
    facts[f"training_{metric}"] = _error(model, X, y, classify)
    facts["total_seconds"] = time.perf_counter() - started
    return TableModel(model, rows.preparation, facts)


def _make(rows: TrainingRows, settings: FitSettings) -> Any:
    parameters, n_features = dict(settings.parameters), rows.X.shape[1]
    categories = set(rows.preparation.categories)
    if categories:
        basis = parameters.get("basis", "auto")
        parameters["basis"] = ["category" if k in categories else basis for k in range(n_features)]
    if rows.is_classification:
        return TensorTrainClassifier(random_state=settings.seed, **parameters)
    parameters.pop("loss", None)
    return TensorTrainRegressor(random_state=settings.seed, **parameters)


def _check_rows(y: NDArray, classify: bool) -> None:
    if classify and len(np.unique(y)) < 2:
        raise TableError(f"all rows have the same label {y[0]!s:.60}; bring rows of at least two classes.")


def _check_missing(rows: TrainingRows, basis: str) -> None:
    """Refuse missing numbers where the functions do not know them."""
    if basis == "auto" or map_kind(basis).takes_missing:
        return
    numbers = np.setdiff1d(np.arange(rows.X.shape[1]), rows.preparation.categories)
    gone = numbers[np.isnan(rows.X[:, numbers]).any(axis=0)]
    if len(gone):
        raise TableError(
            f"column {rows.preparation.feature_names[gone[0]]!r} has missing cells, which --basis {basis} cannot take. "
            "Use --basis auto, or fill the cells."
        )


def _split(X: NDArray, y: NDArray, part: float, seed: int, classify: bool) -> Any:
    rare = classify and np.unique(y, return_counts=True)[1].min() < 2
    try:
        return train_test_split(X, y, test_size=part, random_state=seed, stratify=y if classify and not rare else None)
    except ValueError as error:
        raise TableError(f"--holdout {part:g} cannot be set aside: {error} Use --folds instead.") from None


def _cross_validate(
    model: Any, X: NDArray, y: NDArray, settings: FitSettings, classify: bool, say: Callable[[str], None]
) -> dict[str, Fact]:
    """Mean error over folds, in each of which everything is chosen anew."""
    X, y = _some_rows(X, y, settings.seed)
    if len(y) < 4:
        return {}
    splits = _folds(X, y, classify, settings)
    errors = []
    for number, (learned, tested) in enumerate(splits, 1):
        if classify and len(np.unique(y[learned])) < 2:
            continue
        errors.append(_error(clone(model).fit(X[learned], y[learned]), X[tested], y[tested], classify))
        shown = f"{100 * errors[-1]:.2f} %" if classify else f"{errors[-1]:.5g}"
        say(f"fold {number} of {len(splits)}: error {shown}")
    if not errors:
        return {}
    metric = "error" if classify else "rmse"
    return {"cv_rows": len(X), "cv_folds": len(splits), f"cv_{metric}": float(np.mean(errors))}


def _some_rows(X: NDArray, y: NDArray, seed: int) -> tuple[NDArray, NDArray]:
    if len(X) <= MAX_CHECK_ROWS:
        return X, y
    chosen = np.sort(np.random.default_rng(seed).choice(len(X), MAX_CHECK_ROWS, replace=False))
    return X[chosen], y[chosen]


def _folds(X: NDArray, y: NDArray, classify: bool, settings: FitSettings) -> Sequence[tuple[NDArray, NDArray]]:
    # A class with fewer rows than folds cannot be in all of them.
    rarest = int(np.unique(y, return_counts=True)[1].min()) if classify else 0
    splitter = StratifiedKFold if rarest >= settings.folds else KFold
    return list(splitter(min(settings.folds, len(y)), shuffle=True, random_state=settings.seed).split(X, y))


def _error(model: Any, X: NDArray, y: NDArray, classify: bool) -> float:
    guess = model.predict(X)
    return float((guess != y).mean() if classify else np.sqrt(((guess - y) ** 2).mean()))
