"""Prediction intervals of regressors: how many targets they hold, where, and how wide they are.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.intervals
    python -m benchmarks.intervals --only diabetes friedman --coverage 0.8 --out FILE
    POLYTRAIN_DATA=FOLDER python -m benchmarks.intervals --only ames hotel --folds 1 --methods default boosting
    python -m benchmarks.intervals --small 300
    python -m benchmarks.intervals --overhead

Five shuffled folds of the tables with numbers as targets, and of 5000 rows of Friedman's first function, which are many
enough for the way of many rows; three of mixed tables, which --only names. All models see training rows only:

    default     TensorTrainRegressor().predict_interval
    constant    the same fit with errors of the same scale everywhere
    std         the fit of default, mean plus and minus z standard deviations
    split       TensorTrainRegressor(calibration_fraction=0.2).predict_interval, mean over five splits
    gp          a Gaussian process of scikit-learn with one length scale per column, mean plus and minus z deviations
    boosting    two HistGradientBoostingRegressor(loss="quantile")

Which rows are set apart is decided by what they hold, so all folds have the same split of the table. Other splits come
from noise in the eighth digit of the targets.

Coverage is the part of all test rows whose target is in its interval, also by fifths of the interval's middle, the
lowest first. Widths are means over the test rows, in units of the standard deviation of the table's target. The score
(Winkler's) is the width plus 2 / (1 - coverage) times what a target is outside: its mean is least for the true
quantiles.

With --small: mean coverage over many tables of 60 rows, where guarantee and lack of it must show.

With --overhead: what all this adds to the time of default fits, and to that of predictions.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from benchmarks.report import describe_machine
from benchmarks.table_models import make_model
from benchmarks.tables import markdown, write_json
from benchmarks.tabular import TABLES, Fold, mixed_tables
from benchmarks.timing import seconds
from polytrain import TensorTrainRegressor
from polytrain.estimators import _base, _uncertainty
from polytrain.learning import trainer

#: Lower and upper ends, perhaps several of them, by the name of the method; from training rows and targets, test rows
#: and the coverage.
Intervals = dict[str, np.ndarray]

SYNTHETIC = "friedman"
N_SPLITS = 5


def _default(X: Any, y: np.ndarray, X_test: Any, coverage: float) -> Intervals:
    given: list[Any] = []

    def remember(*arguments: Any) -> Any:
        given[:] = arguments
        return _uncertainty.fit_uncertainty(*arguments)

    with patch.object(_base, "fit_uncertainty", remember):
        model = TensorTrainRegressor(random_state=0).fit(X, y)
    found = {"default": model.predict_interval(X_test, coverage), "std": _normal(model, X_test, coverage)}
    with patch.object(_uncertainty, "fit_scale", lambda errors, *_: (None, np.zeros(len(errors)))):
        model.model_ = _uncertainty.fit_uncertainty(*given).widened()
    return {**found, "constant": model.predict_interval(X_test, coverage)}


def _split(X: Any, y: np.ndarray, X_test: Any, coverage: float) -> Intervals:
    rng, model = np.random.default_rng(0), TensorTrainRegressor(calibration_fraction=0.2, random_state=0)
    noise = 1e-8 * np.std(y) * rng.normal(size=(N_SPLITS, len(y)))
    return {"split": np.stack([model.fit(X, y + own).predict_interval(X_test, coverage) for own in noise])}


def _normal(model: Any, X_test: Any, coverage: float) -> np.ndarray:
    mean, std = model.predict(X_test, return_std=True)
    reach = norm.ppf((1 + coverage) / 2) * std
    return np.stack([mean - reach, mean + reach], axis=1)


def _gp(X: Any, y: np.ndarray, X_test: Any, coverage: float) -> Intervals:
    model = make_model("gp", "numbers", X, 1) if isinstance(X, np.ndarray) else None
    return {} if model is None else {"gp": _normal(model.fit(X, y), X_test, coverage)}


def _boosting(X: Any, y: np.ndarray, X_test: Any, coverage: float) -> Intervals:
    if not isinstance(X, np.ndarray):  # it takes up to 255 categories; of more, their numbers
        many = [name for name, column in X.select_dtypes("category").items() if len(column.cat.categories) > 255]
        X, X_test = (rows.assign(**{name: rows[name].cat.codes for name in many}) for rows in (X, X_test))
    ends = [
        HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0).fit(X, y).predict(X_test)
        for level in ((1 - coverage) / 2, (1 + coverage) / 2)
    ]
    return {"boosting": np.stack(ends, axis=1)}


#: What is fitted, and what comes of it.
FITS: dict[Callable[..., Intervals], tuple[str, ...]] = {
    _default: ("default", "constant", "std"),
    _split: ("split",),
    _gp: ("gp",),
    _boosting: ("boosting",),
}
METHODS = tuple(method for methods in FITS.values() for method in methods)


def folds(name: str) -> Iterator[Fold]:
    """Training rows, their targets, test rows and theirs."""
    if name != SYNTHETIC:
        yield from next(table for table in (*TABLES, *mixed_tables()) if table.name == name).folds()
        return
    X, y = make_friedman1(5000, noise=1.0, random_state=0)
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        yield X[train], y[train], X[test], y[test]


def measure(name: str, coverage: float, methods: Sequence[str], n_folds: int | None) -> list[dict]:
    """One row per method and fold, of all folds or the first ones."""
    rows = []
    every = list(folds(name))
    unit = float(np.std(np.concatenate([fold[3] for fold in every])))
    for number, (X, y, X_test, y_test) in enumerate(every[:n_folds]):
        for fit in (fit for fit, own in FITS.items() if set(own) & set(methods)):
            found: Intervals = {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                taken = seconds(lambda: found.update(fit(X, y, X_test, coverage)))  # noqa: B023
            for method in (method for method in found if method in methods):
                own = _measured(found[method], y_test, coverage)
                for measure in ("width", "score"):
                    own[measure] /= unit
                rows.append({"table": name, "method": method, "fold": number, "rows": len(y_test), **own})
                shown = " ".join(f"{100 * part:.1f}" for part in own["fifths"])
                print(
                    f"{name}, fold {number}, {method}: "
                    f"{100 * own['coverage']:.1f} % ({shown}), width {own['width']:.4f}, "
                    f"score {own['score']:.4f}; {taken:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return rows


def _measured(intervals: np.ndarray, y: np.ndarray, coverage: float) -> dict[str, Any]:
    """Means over all rows, and over several splits if the intervals have a first axis more."""
    low, high = np.moveaxis(intervals, -1, 0)
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    inside = np.atleast_2d(outside <= 0)
    order = np.argsort(np.atleast_2d(low + high), axis=1, kind="stable")
    fifths = np.array_split(np.take_along_axis(inside, order, axis=1), 5, axis=1)
    return {
        "coverage": float(np.mean(inside)),
        "fifths": [float(np.mean(fifth)) for fifth in fifths],
        "width": float(np.mean(high - low)),
        "score": float(np.mean(high - low + 2 / (1 - coverage) * outside)),
    }


def means(rows: list[dict], measure: str) -> dict[tuple[str, str], np.ndarray]:
    """Mean over all test rows by table and method."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for row in rows:
        found.setdefault((row["table"], row["method"]), []).append((row[measure], row["rows"]))
    return {
        key: np.average([v for v, _ in own], axis=0, weights=[n for _, n in own], keepdims=True).ravel()
        for key, own in found.items()
    }


def print_measure(title: str, rows: list[dict], name: str, form: str, factor: float = 1.0) -> None:
    """One measure of all tables and methods."""
    found, methods = means(rows, name), [m for m in METHODS if any(row["method"] == m for row in rows)]
    lines = [
        [
            table,
            *(
                " ".join(format(factor * v, form) for v in found[table, m]) if (table, m) in found else "-"
                for m in methods
            ),
        ]
        for table in dict.fromkeys(row["table"] for row in rows)
    ]
    print(f"\n### {title}\n\n{markdown(('table', *methods), lines)}")


def print_small(n_tables: int, coverage: float = 0.8) -> None:
    """Mean coverage of 200 new rows each, with its standard error, over tables of a wave with noise."""
    lines = []
    for title, fraction in (("default", None), ("split", 0.3)):
        held, n_apart = [], []
        for seed in range(n_tables):
            rng = np.random.default_rng(seed)
            X = rng.uniform(-1, 1, (260, 2))
            y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=260)
            model = TensorTrainRegressor(calibration_fraction=fraction, random_state=0).fit(X[:60], y[:60])
            low, high = model.predict_interval(X[60:], coverage).T
            held.append(np.mean((low <= y[60:]) & (y[60:] <= high)))
            n_apart.append(model.model_.uncertainty.trains[0].left_out.n_rows)
        error = np.std(held) / np.sqrt(n_tables)
        most = coverage + np.mean(1 / (np.array(n_apart) + 1))
        guaranteed = f"{100 * most:.1f}" if fraction else "-"
        lines.append([title, f"{100 * np.mean(held):.1f}", f"{100 * error:.1f}", guaranteed])
    head = ("method", "coverage, %", "standard error", "guaranteed at most")
    print(f"\n{n_tables} tables, {100 * coverage:g} % wanted\n\n{markdown(head, lines)}")


def print_overhead(repeats: int = 5) -> None:
    """Processor time of what is done for uncertainty, beside that of the rest of the same fit; medians."""
    lines = []
    for n_rows in (500, 10_000, 100_000):
        X, y = make_friedman1(n_rows, noise=1.0, random_state=0)
        shares, ratios = [], []
        for _ in range(repeats):
            added: list[float] = []
            model = TensorTrainRegressor(random_state=0)
            with ExitStack() as stack:
                for module, name in ((trainer, "measure_moments"), (_base, "fit_uncertainty")):
                    stack.enter_context(patch.object(module, name, timed(getattr(module, name), added)))
                whole = processor_seconds(lambda: model.fit(X, y))  # noqa: B023
            shares.append(sum(added) / (whole - sum(added)))
            plain, known = (
                processor_seconds(lambda: model.predict(X[:5000], return_std=std))  # noqa: B023
                for std in (False, True)
            )
            ratios.append(known / plain)
        lines.append([f"{n_rows} x 10", f"{100 * np.median(shares):.1f}", f"{np.median(ratios):.1f}"])
    print(f"\n{markdown(('rows x columns', 'added to the fit, %', 'prediction with std / without'), lines)}")


def timed(function: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    """Return the function with a note of how long every call takes."""

    def call(*arguments: Any) -> Any:
        found: list[Any] = []
        times.append(processor_seconds(lambda: found.append(function(*arguments))))
        return found[0]

    return call


def processor_seconds(action: Callable[[], Any]) -> float:
    """Processor time of an action."""
    start = process_time()
    action()
    return process_time() - start


def main(argv: list[str] | None = None) -> int:
    plain = [table.name for table in TABLES if table.kind == "numbers"] + [SYNTHETIC]
    names = plain + [table.name for table in mixed_tables() if table.kind == "numbers"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, help="names of tables")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="names of methods")
    parser.add_argument("--coverage", type=float, default=0.9, help="what intervals are asked to hold")
    parser.add_argument("--folds", type=int, metavar="N", help="the first N folds only")
    parser.add_argument("--out", type=Path, help="write all rows to this JSON file")
    parser.add_argument("--small", type=int, metavar="TABLES", help="simulate so many small tables instead")
    parser.add_argument("--overhead", action="store_true", help="measure the time that it takes instead")
    arguments = parser.parse_args(argv)
    if arguments.small:
        print_small(arguments.small)
        return 0
    if arguments.overhead:
        print_overhead()
        return 0
    available = {table.name for table in (*TABLES, *mixed_tables()) if table.available} | {SYNTHETIC}
    chosen = arguments.only or plain
    missing = [name for name in chosen if name not in available]
    if missing:
        print(f"left out, POLYTRAIN_DATA is not set: {', '.join(missing)}", file=sys.stderr)
    rows = [
        row
        for name in chosen
        if name in available
        for row in measure(name, arguments.coverage, arguments.methods, arguments.folds)
    ]
    print_measure("Targets in their interval, %", rows, "coverage", ".1f", 100)
    print_measure("By fifths of the prediction, %", rows, "fifths", ".1f", 100)
    print_measure("Mean width, in standard deviations of the target", rows, "width", ".3f")
    print_measure("Interval score, in the same units", rows, "score", ".3f")
    if arguments.out:
        write_json(arguments.out, {"machine": describe_machine(), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
