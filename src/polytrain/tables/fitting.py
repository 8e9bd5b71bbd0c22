"""Fit a model to a table, and measure its error by cross-validation."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from polytrain.checks import DataWarning
from polytrain.estimators import TensorTrainClassifier, TensorTrainRegressor
from polytrain.evaluation import (
    Answers,
    LeftOut,
    categories,
    constant_answers,
    leading_metrics,
    linear_answers,
    loss_metrics,
    metric_text,
)
from polytrain.learning.losses import get_loss, loss_names
from polytrain.tables.layout import Fact
from polytrain.tables.model import TableModel
from polytrain.tables.open_file import open_table_file
from polytrain.tables.options import ReadOptions, Say, TableError, TableOptions, option, spell_options
from polytrain.tables.training_table import TrainingTable, read_training_table

__all__ = ["fit_table"]

#: Largest number of rows on which the error is measured.
MAX_CHECK_ROWS = 10_000


def fit_table(
    path: str | os.PathLike[str],
    target: str | int | Sequence[str | int],
    *,
    reading: ReadOptions | None = None,
    folds: int = 3,
    metric: str | None = None,
    seed: int = 0,
    say: Say | None = None,
    spell: Callable[[str, str], str] | None = None,
    on_fitted: Callable[[TableModel], None] | None = None,
    **parameters: Any,
) -> TableModel:
    r"""Read a file, detect what its columns hold, fit a model, and measure its error: ``polytrain fit`` in one call.

    Parameters
    ----------
    path : path-like
        CSV and similar text, compressed or not, JSON lines, Parquet, .npy or .npz.
    target : str, int, or list of these
        The columns to predict, by name or position; -1 is the last column.
    reading : ReadOptions, optional
        How the file is read; detected by default.
    folds : int, default=3
        Folds of a cross-validation that measures the error; 0 for none.
    metric : str, optional
        The metric, see `polytrain.evaluation.loss_metrics`; by default "error", "rmse" or, for losses that have
        one, "deviance".
    seed : int, default=0
        Seed of folds and starts.
    say : callable, optional
        Called with notes about the table, and about progress.
    spell : callable, optional
        Writes options that notes name, given name and value; by default as keyword arguments.
    on_fitted : callable, optional
        Called with the fitted model before its error is measured.
    **parameters
        Options of the columns, entries of `TableOptions`, such as ``drop``, ``offset`` and ``weight``; and parameters
        of `polytrain.TensorTrainClassifier` or `polytrain.TensorTrainRegressor`, such as ``loss``.

    Returns
    -------
    TableModel
        It predicts, evaluates and saves; ``estimator`` is the fitted estimator.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain.tables import fit_table
    >>> path = Path(tempfile.mkdtemp()) / "rooms.csv"
    >>> lines = [f"{k % 5},{'ab'[k % 2]},{k % 5 + k % 2}" for k in range(60)]
    >>> _ = path.write_text("\n".join(["rooms,city,rent", *lines]))
    >>> model = fit_table(path, "rent", task="regression")
    >>> model.predict(path)[:3].round(2)
    array([0., 2., 2.])
    >>> model.evaluate(path)["n"]
    60
    """
    if folds < 0 or folds == 1:
        raise TableError(f"{option('folds', folds)} must be 0 or at least 2.")
    talk = say or (lambda text: None)
    known = {field.name for field in fields(TableOptions)}
    given = {name: parameters.pop(name) for name in known & parameters.keys()}
    if parameters.get("loss") in {*loss_names("regression")} - {*loss_names("classification")}:
        given |= {"task": "regression"} if given.get("task", "auto") == "auto" else {}  # few counts are numbers then
    options = TableOptions(target, **given)
    with open_table_file(path, reading or ReadOptions()) as table:
        for note in table.notes:
            talk(f"note: {note}")
        rows = read_training_table(table, options)
        talk(_describe(rows, table.label, table.named))
    for note in rows.notes:
        talk(f"note: {spell_options(note, spell)}")
    started = time.perf_counter()
    estimator = _make_estimator(rows.is_classification, {"random_state": seed, **parameters})
    takers = [name for name in loss_names("regression") if get_loss(name).link == "log"]
    if "offset" in rows.others and estimator.loss not in takers:
        raise TableError(
            f"{option('offset', rows.layout.offset)} applies to counts and amounts only. Leave it out, or pass "
            f"{' or '.join(option('loss', name) for name in takers)}."
        )
    metric = _checked_metric(metric, estimator, rows.is_classification)
    X, y = rows.X, rows.y
    facts: dict[str, Fact] = {"file": Path(path).name, "rows": len(X)}
    facts |= {"rows_without_target": rows.n_dropped, "missing_cells": rows.n_missing}
    facts |= {role: name for role in ("offset", "weight") if (name := getattr(rows.layout, role)) is not None}
    model = TableModel(estimator, rows.layout, facts)
    talk(f"fitting {len(X)} rows, {X.shape[1]} columns")
    fit_started = time.perf_counter()
    with warnings.catch_warnings():
        if say is not None:  # the estimator gets them in another way
            warnings.simplefilter("ignore", DataWarning)
        estimator.fit(X, y, **rows.others)
    for text in estimator.warnings_:
        talk(f"note: {text}")
    facts["fit_seconds"] = time.perf_counter() - fit_started
    talk(f"{'chosen' if estimator.choice_.tried else 'given'}: {estimator.choice_.settings}")
    if on_fitted is not None:
        on_fitted(model)
    weighing = np.flatnonzero(rows.others.get("sample_weight", np.ones(len(X))))
    known_rows = _take((X, y, rows.others), weighing)
    if folds:
        _cross_validate(estimator, known_rows, metric, folds, seed, talk)
    facts[f"training_{metric}"] = _figures(estimator, None, known_rows, [metric])["model"][metric]
    facts["total_seconds"] = time.perf_counter() - started
    return model


def _describe(rows: TrainingTable, label: str, has_header: bool) -> str:
    header, task = "with" if has_header else "no", "classification" if rows.is_classification else "regression"
    size = f"{len(rows.y)} rows, {rows.X.shape[1]} columns ({header} header), {rows.n_missing} missing cells"
    dropped = f"; {rows.n_dropped} rows without target left out" if rows.n_dropped else ""
    return f"{label}: {size}; {task}{dropped}"


def _make_estimator(is_classification: bool, parameters: dict[str, Any]) -> Any:
    """Return an estimator, or refuse parameters that it does not have."""
    kind = TensorTrainClassifier if is_classification else TensorTrainRegressor
    for name in parameters.keys() - signature(kind).parameters.keys():
        raise TableError(
            f"{option(name)} does not apply to {'classification' if is_classification else 'regression'}. Leave it "
            f"out, or pass {option('task')}. Parameters are those of {kind.__name__}."
        )
    return kind(**parameters)


def _checked_metric(metric: str | None, estimator: Any, is_classification: bool) -> str:
    """Return the given metric, or else the main one for this loss."""
    loss = estimator.loss if estimator.loss in loss_names("regression") else "squared"  # the fit refuses others
    known = loss_metrics(loss, is_classification)
    if metric not in (None, *known):
        task = "classification" if is_classification else f"regression with {option('loss', estimator.loss)}"
        raise TableError(f"{option('metric', metric)} does not apply to {task}. Name one of {', '.join(known)}.")
    return metric or leading_metrics(loss, is_classification)[0]


#: Rows of a frame, their targets, and further arguments of ``fit``.
_Rows = tuple[Any, NDArray, dict[str, NDArray]]


def _take(rows: _Rows, places: NDArray) -> _Rows:
    X, y, others = rows
    return X.iloc[places], y[places], {name: values[places] for name, values in others.items()}


def _cross_validate(model: Any, rows: _Rows, metric: str, n_folds: int, seed: int, say: Say) -> None:
    """Give the model its mean errors over folds, in each of which all settings are chosen again."""
    classify, n_rows = model.model_.classes is not None, len(rows[1])
    names = list(dict.fromkeys([metric, *leading_metrics(model.model_.loss, classify)]))
    if n_rows > MAX_CHECK_ROWS:
        rows = _take(rows, np.sort(np.random.default_rng(seed).choice(n_rows, MAX_CHECK_ROWS, replace=False)))
    y = rows[1]
    if len(y) < 4:
        return
    # A class with fewer rows than folds cannot be in all of them.
    rarest = int(np.unique(y, return_counts=True)[1].min()) if classify else 0
    splitter = StratifiedKFold if rarest >= n_folds else KFold
    folds = splitter(min(n_folds, len(y)), shuffle=True, random_state=seed)
    splits = list(folds.split(np.zeros(len(y)), y))
    folds_figures: list[dict[str, dict[str, float | None]]] = []
    for number, (learned, tested) in enumerate(splits, 1):
        if classify and len(np.unique(y[learned])) < 2:
            continue
        X, targets, others = known = _take(rows, learned)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # shown for all rows
            fitted = clone(model).fit(X, targets, **others)
        figures = _figures(fitted, known, _take(rows, tested), names)
        say(f"fold {number} of {len(splits)}: {metric_text(metric, figures['model'][metric], fitted.model_.loss)}")
        if figures["model"][metric] is not None:
            folds_figures.append(figures)
    if not folds_figures:
        return
    means: dict[str, dict[str, float | int]] = {}
    for kind in ("model", "constant", "linear"):
        columns = {name: [figures[kind].get(name) for figures in folds_figures] for name in names}
        # A simple model that could not be learned in some fold would be compared on other rows.
        complete: dict[str, Any] = {name: some for name, some in columns.items() if None not in some}
        means[kind] = {name: float(np.mean(some)) for name, some in complete.items()}
    drawn = f"{len(y):,} of {n_rows:,}" if len(y) < n_rows else f"all {n_rows:,}"
    where = f"{drawn} rows in {len(splits)} folds, all settings chosen anew in each"
    model.left_out_ = LeftOut(where, **means)


def _figures(
    model: Any, learned: _Rows | None, tested: _Rows, names: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Metrics of a model on rows, and of simple ones that learn from the rows that it has learned from."""
    fitted = model.model_

    def encoded(rows: _Rows) -> tuple[NDArray, NDArray, dict[str, Any]]:
        X, y, others = rows
        more = {"offset": others.get("offset"), "weights": others.get("sample_weight")}
        if fitted.classes is not None:
            places = np.searchsorted(fitted.classes, y).clip(max=len(fitted.classes) - 1)
            y = np.where(fitted.classes[places] == y, places, -1)
        return fitted.encode(X, model), y, more

    features, y, more = encoded(tested)
    own = Answers.of(fitted, features, y, **more)
    every: dict[str, Answers | None] = {"model": own}
    if learned is not None:
        X, y, more = encoded(learned)
        known = replace(own, y=y, predicted=y, decided=None, probabilities=None, **more)
        every["linear"] = linear_answers(X, known, features, own, categories(fitted))
        every["constant"] = constant_answers(known, own)
    return {kind: {} if answers is None else _of_known(answers, names) for kind, answers in every.items()}


def _of_known(answers: Answers, names: Sequence[str]) -> dict[str, float | None]:
    """Metrics of rows; classes unknown to the model, -1, count as wrong and have no probability."""
    known = np.ones(answers.n, dtype=bool) if answers.labels is None else answers.y >= 0
    figures = answers.only(known).figures(names) if known.any() else dict.fromkeys(names)
    return figures | (answers.figures(["error"]) if "error" in names else {})
