"""Fit a model to a table, and measure its error on rows that it has not learned from."""

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

from polytrain.estimators import TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning.losses import get_loss, loss_names
from polytrain.tables.evaluation import Answers, Metric, categories, constant_answers, linear_answers, loss_metrics
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
        CSV and its kin, packed or not, JSON lines, Parquet, .npy or .npz.
    target : str, int, or list of these
        The columns to predict, by name or position; -1 is the last column.
    reading : ReadOptions, optional
        How the file is read; detected by default.
    folds : int, default=3
        Folds of a cross-validation that measures the error; 0 does without.
    metric : str, optional
        What is measured, see `polytrain.tables.evaluation.loss_metrics`; by default "error", "rmse" or, for losses that
        have one, "deviance" with "d2".
    seed : int, default=0
        Seed of folds and starts.
    say : callable, optional
        Called with lines about what was understood, and about progress.
    spell : callable, optional
        Writes options that notes name, given name and value; by default as keyword arguments.
    on_fitted : callable, optional
        Called with the fitted model before its error is measured.
    **parameters
        More about the columns: entries of `TableOptions`, such as ``drop``, ``offset`` and ``weight``; and parameters
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
        given |= {"task": "regression"} if given.get("task", "auto") == "auto" else {}  # few counts are no labels then
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
            f"{option('offset', rows.layout.offset)} belongs to counts and amounts. Leave it out, or pass "
            f"{' or '.join(option('loss', name) for name in takers)}."
        )
    measured = _measured(metric, estimator, rows.is_classification)
    X, y = rows.X, rows.y
    facts: dict[str, Fact] = {"file": Path(path).name, "rows": len(X)}
    facts |= {"rows_without_target": rows.n_dropped, "missing_cells": rows.n_missing}
    facts |= {role: name for role in ("offset", "weight") if (name := getattr(rows.layout, role)) is not None}
    model = TableModel(estimator, rows.layout, facts)
    talk(f"fitting {len(X)} rows, {X.shape[1]} columns")
    fit_started = time.perf_counter()
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as warned:
        estimator.fit(X, y, **rows.others)
    for warning in warned:
        talk(f"note: {warning.message}")
    facts["fit_seconds"] = time.perf_counter() - fit_started
    for reason in estimator.choice_.reasons:
        talk(f"chosen: {reason}")
    if on_fitted is not None:
        on_fitted(model)
    weighing = np.flatnonzero(rows.others.get("sample_weight", np.ones(len(X))))
    known_rows = _take((X, y, rows.others), weighing)
    if folds:
        facts |= _cross_validate(estimator, known_rows, measured, folds, seed, talk)
    facts |= {f"training_{name}": error for name, error in _errors(estimator, None, known_rows, measured).items()}
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


def _measured(metric: str | None, estimator: Any, is_classification: bool) -> dict[str, Metric]:
    """Return the metric that is asked for, or else the first of the loss, a deviance together with its D2."""
    loss = estimator.loss if estimator.loss in loss_names("regression") else "squared"  # the fit refuses others
    known = loss_metrics(loss, is_classification)
    names = [name for name in known if name in ("deviance", "d2")] if "d2" in known else [*known][:1]
    if metric not in (None, *known):
        task = "classification" if is_classification else f"regression with {option('loss', estimator.loss)}"
        raise TableError(f"{option('metric', metric)} does not apply to {task}. Name one of {', '.join(known)}.")
    return {name: known[name] for name in (names if metric is None else [metric])}


#: Rows of a frame, their targets, and further arguments of ``fit``.
_Rows = tuple[Any, NDArray, dict[str, NDArray]]


def _take(rows: _Rows, places: NDArray) -> _Rows:
    X, y, others = rows
    return X.iloc[places], y[places], {name: values[places] for name, values in others.items()}


def _cross_validate(
    model: Any, rows: _Rows, measured: dict[str, Metric], n_folds: int, seed: int, say: Say
) -> dict[str, Fact]:
    """Return mean errors over folds, in each of which all settings are chosen again."""
    classify = model.model_.classes is not None
    if len(rows[1]) > MAX_CHECK_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(len(rows[1]), MAX_CHECK_ROWS, replace=False))
        rows = _take(rows, chosen)
    y = rows[1]
    if len(y) < 4:
        return {}
    # A class with fewer rows than folds cannot be in all of them.
    rarest = int(np.unique(y, return_counts=True)[1].min()) if classify else 0
    splitter = StratifiedKFold if rarest >= n_folds else KFold
    folds = splitter(min(n_folds, len(y)), shuffle=True, random_state=seed)
    splits = list(folds.split(np.zeros(len(y)), y))
    errors: dict[str, list[float]] = {}
    (metric, (words, _)), *_ = measured.items()
    for number, (learned, tested) in enumerate(splits, 1):
        if classify and len(np.unique(y[learned])) < 2:
            continue
        X, targets, others = known = _take(rows, learned)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the same was said of all rows
            fitted = clone(model).fit(X, targets, **others)
        by_model = _errors(fitted, known, _take(rows, tested), measured)
        error = by_model[metric]
        shown = "-" if error is None else f"{100 * error:.2f} %" if metric.endswith("error") else f"{error:.5g}"
        say(f"fold {number} of {len(splits)}: {words} {shown}")
        if error is not None:
            for name, value in by_model.items():
                errors.setdefault(name, []).extend([] if value is None else [value])
    if not errors:
        return {}
    # A simple model that could not be learned in some fold would be compared on other rows.
    means = {f"cv_{name}": float(np.mean(some)) for name, some in errors.items() if len(some) == len(errors[metric])}
    return {"cv_rows": len(y), "cv_folds": len(splits), **means}


def _errors(model: Any, learned: _Rows | None, tested: _Rows, measured: dict[str, Metric]) -> dict[str, float | None]:
    """Errors of a model on rows, and of simple ones that learn from the rows that it has learned from, by name."""
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
    every: dict[str, Answers | None] = {"": own}
    if learned is not None:
        X, y, more = encoded(learned)
        known = replace(own, y=y, predicted=y, decided=None, probabilities=None, **more)
        every["linear_"] = linear_answers(X, known, features, own, categories(fitted))
        every["constant_"] = constant_answers(known, own)
    return {
        f"{kind}{name}": None if answers is None else _error(answers, name, metric)
        for name, metric in measured.items()
        for kind, answers in every.items()
        if (kind, name) != ("constant_", "d2")  # about 0
    }


def _error(answers: Answers, name: str, metric: Metric) -> float | None:
    """Error on rows; those of classes that the model does not know, -1, are wrong and have no probability."""
    known = np.ones(answers.n, dtype=bool) if answers.labels is None or name == "error" else answers.y >= 0
    return metric.measure(answers.only(known)) if known.any() else None
