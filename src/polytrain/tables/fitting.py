"""Choose the settings of a model by cross-validation on training rows, and fit it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from polytrain.estimators import TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning.losses import loss_names
from polytrain.tables.errors import TableError
from polytrain.tables.learning import TrainingRows
from polytrain.tables.model import TableModel
from polytrain.tables.section import Fact

__all__ = ["FitSettings", "fit_table_model"]

#: Settings are compared on at most so many rows.
MAX_SEARCH_ROWS = 10_000
_RANKS = (2, 4, 8)
_ALPHAS = {True: (1e-3, 1e-4, 1e-2), False: (1e-2, 1e-3, 1e-1)}  # classification or not; the first is tried first


@dataclass(frozen=True)
class FitSettings:
    """What the user says about the model. Of several values the best is chosen.

    Attributes
    ----------
    losses, ranks, alphas : sequence
        Values to choose from; empty for the usual ones.
    degree : int
        Largest power of features; those of only two values, such as categories, have degree 1.
    fixed : dict
        Other parameters of the estimator.
    folds : int
        Folds of the cross-validation; 0 does without, where there is nothing to choose.
    holdout : float
        Part of the rows that is set aside to measure the error, 0 for none.
    seed : int
        Seed of folds, splits and starts.
    """

    losses: Sequence[str] = ()
    ranks: Sequence[int] = ()
    alphas: Sequence[float] = ()
    degree: int = 2
    fixed: dict[str, Any] | None = None
    folds: int = 3
    holdout: float = 0.0
    seed: int = 0


def fit_table_model(rows: TrainingRows, settings: FitSettings, say: Callable[[str], None]) -> TableModel:
    """Choose settings, fit all rows (but those held out), and record what was done.

    Losses and ranks are compared first, with the first regularisation, then the regularisations for the best of them:
    the error is the mean over the folds of the error rate (classification) or of the root mean squared error.

    Parameters
    ----------
    rows : TrainingRows
        The prepared table.
    settings : FitSettings
        What to choose from.
    say : callable
        Told about progress.

    Returns
    -------
    TableModel
    """
    started = time.perf_counter()
    X, y, classify = rows.X, rows.y, rows.is_classification
    _check_rows(y, classify)
    held = None
    if settings.holdout:
        X, held_X, y, held_y = _split(X, y, settings.holdout, settings.seed, classify)
        held = held_X, held_y
    facts: dict[str, Fact] = {"rows": len(X), "rows_without_target": rows.n_dropped, "missing_cells": rows.n_missing}
    model, error = _choose(X, y, classify, replace(settings, fixed=_fixed(X, settings)), say, facts)
    metric = "error" if classify else "rmse"
    if error is not None:
        facts[f"cv_{metric}"] = error
    say(f"fitting {len(X)} rows, {X.shape[1]} features: {_describe(model)}")
    fit_started = time.perf_counter()
    model.fit(X, y)
    facts["fit_seconds"] = time.perf_counter() - fit_started
    if held is not None:
        facts["holdout_rows"] = len(held[0])
        facts[f"holdout_{metric}"] = _error(model, *held, classify)
    facts[f"training_{metric}"] = _error(model, X, y, classify)
    facts["total_seconds"] = time.perf_counter() - started
    return TableModel(model, rows.preparation, facts)


def _fixed(X: NDArray, settings: FitSettings) -> dict[str, Any]:
    """Parameters that are not chosen. Powers of a feature of two values would only repeat it."""
    degree: int | list[int] = settings.degree
    if settings.degree > 1:
        low, high = X.min(axis=0), X.max(axis=0)
        two_values = (np.equal(X, low) | np.equal(X, high)).all(axis=0)
        degree = [1 if two else settings.degree for two in two_values.tolist()]
    return {**(settings.fixed or {}), "degree": degree}


def _check_rows(y: NDArray, classify: bool) -> None:
    if classify and len(np.unique(y)) < 2:
        raise TableError(f"all rows have the same label {y[0]!s:.60}; bring rows of at least two classes.")


def _split(X: NDArray, y: NDArray, part: float, seed: int, classify: bool) -> Any:
    try:
        return train_test_split(X, y, test_size=part, random_state=seed, stratify=y if classify else None)
    except ValueError as error:
        raise TableError(f"--holdout {part:g} cannot be set aside: {error} Use --folds instead.") from None


def _choose(
    X: NDArray, y: NDArray, classify: bool, settings: FitSettings, say: Callable[[str], None], facts: dict[str, Fact]
) -> tuple[Any, float | None]:
    """Return the model with the best settings, and its cross-validated error if it was measured."""
    ranks, alphas = settings.ranks or _RANKS, settings.alphas or _ALPHAS[classify]
    losses = (settings.losses or loss_names("classification")) if classify else loss_names("regression")
    first = [_make(classify, loss, rank, alphas[0], settings) for loss, rank in itertools.product(losses, ranks)]
    if not settings.folds:
        if len(first) > 1 or len(alphas) > 1:
            raise TableError("--folds 0 leaves nothing to choose by. Give one --loss, one --rank and one --alpha.")
        return first[0], None
    search_X, search_y = _search_rows(X, y, classify, settings.seed)
    splits = _folds(search_X, search_y, classify, settings)
    facts["cv_rows"], facts["cv_folds"] = len(search_X), len(splits)
    n_trials = len(first) + len(alphas) - 1
    facts["cv_settings"] = n_trials
    results: list[tuple[float, Any]] = []

    def try_out(models: Sequence[Any]) -> tuple[float, Any]:
        for model in models:
            error = _cross_validate(model, search_X, search_y, splits, classify)
            results.append((error, model))
            shown = f"{100 * error:.2f} %" if classify else f"{error:.5g}"
            say(f"{len(results)} of {n_trials}: {_describe(model)}: cross-validated error {shown}")
        return min(results, key=lambda result: result[0])  # the first of equals: the smaller model

    _, best = try_out(first)
    error, best = try_out([clone(best).set_params(alpha=alpha) for alpha in alphas[1:]])
    return clone(best), error


def _make(classify: bool, loss: str, rank: int, alpha: float, settings: FitSettings) -> Any:
    common = {**(settings.fixed or {}), "rank": rank, "alpha": alpha, "random_state": settings.seed}
    return TensorTrainClassifier(loss=loss, **common) if classify else TensorTrainRegressor(loss=loss, **common)


def _describe(model: Any) -> str:
    loss = f"loss {model.loss}, " if isinstance(model, TensorTrainClassifier) else ""
    return f"{loss}rank {model.rank}, alpha {model.alpha:g}"


def _search_rows(X: NDArray, y: NDArray, classify: bool, seed: int) -> tuple[NDArray, NDArray]:
    if len(X) <= MAX_SEARCH_ROWS:
        return X, y
    chosen = np.sort(np.random.default_rng(seed).choice(len(X), MAX_SEARCH_ROWS, replace=False))
    if classify and len(np.unique(y[chosen])) < len(np.unique(y)):  # a rare class must not vanish
        return X, y
    return X[chosen], y[chosen]


def _folds(X: NDArray, y: NDArray, classify: bool, settings: FitSettings) -> list[tuple[NDArray, NDArray]]:
    most = int(np.unique(y, return_counts=True)[1].min()) if classify else len(y)
    if most < 2:
        label = min(zip(*np.unique(y, return_counts=True), strict=True), key=lambda pair: pair[1])[0]
        raise TableError(
            f"the class {label!s:.60} has one row only, which cross-validation cannot split. Leave it out, or give "
            "one --loss, --rank and --alpha, and --folds 0."
        )
    splitter = StratifiedKFold if classify else KFold
    folds = splitter(min(settings.folds, most), shuffle=True, random_state=settings.seed)
    return list(folds.split(X, y))


def _cross_validate(model: Any, X: NDArray, y: NDArray, splits: Sequence[Any], classify: bool) -> float:
    errors = [
        _error(clone(model).fit(X[learned], y[learned]), X[tested], y[tested], classify) for learned, tested in splits
    ]
    return float(np.mean(errors))


def _error(model: Any, X: NDArray, y: NDArray, classify: bool) -> float:
    guess = model.predict(X)
    return float((guess != y).mean() if classify else np.sqrt(((guess - y) ** 2).mean()))
