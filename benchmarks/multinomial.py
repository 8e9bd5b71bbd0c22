"""Classes learned together or one against the rest: log loss, error and time on tables with several classes.

    python -m benchmarks.multinomial [--quick]

polytrain with ``loss="multinomial"``, with ``loss="logistic"`` (one train per class, each against all others) and with
the default (``auto``: squared loss, calibrated by a softmax on rows that were left out), all else as it comes; and
multinomial logistic regression on standardised columns. Five shuffled, stratified folds; means over them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.report import Report, make_parser
from polytrain import TensorTrainClassifier

MODELS = ("multinomial", "logistic", "auto", "linear")


def tables(quick: bool) -> Iterator[tuple[str, NDArray, NDArray]]:
    """Names, features and labels."""
    yield "wine", *load_wine(return_X_y=True)
    yield "iris", *load_iris(return_X_y=True)
    for seed in range(1 if quick else 3):
        made = make_classification(2000, 20, n_informative=8, n_classes=5, random_state=seed)
        yield f"made, 2000 x 20, 5 classes, seed {seed}", *made
    for seed in range(0 if quick else 3):
        made = make_classification(600, 10, n_informative=5, n_classes=3, random_state=seed)
        yield f"made, 600 x 10, 3 classes, seed {seed}", *made
    if not quick:
        yield "digits", *load_digits(return_X_y=True)


def build(name: str) -> Any:
    """An unfitted model."""
    if name == "linear":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    return TensorTrainClassifier(loss=name, random_state=0)


def measure(name: str, X: NDArray, y: NDArray) -> dict[str, float]:
    """Mean log loss, error and seconds of a fit over the folds."""
    found = []
    for learned, tested in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = build(name)
        started = time.perf_counter()
        model.fit(X[learned], y[learned])
        seconds = time.perf_counter() - started
        chances = model.predict_proba(X[tested])
        wrong = np.mean(model.predict(X[tested]) != y[tested])
        found.append((log_loss(y[tested], chances), 100 * wrong, seconds))
    return dict(zip(("log loss", "error %", "fit s"), np.mean(found, axis=0).tolist(), strict=True))


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("multinomial", arguments.quick)
    losses: dict[str, list[float]] = {name: [] for name in MODELS}
    lines: dict[str, list[dict]] = {"log loss": [], "error %": [], "fit s": []}
    for table, X, y in tables(arguments.quick):
        found = {name: measure(name, X, y) for name in MODELS}
        for key, rows in lines.items():
            rows.append({"table": table, **{name: found[name][key] for name in MODELS}})
        for name in MODELS:
            losses[name].append(found[name]["log loss"])
    for key, rows in lines.items():
        report.table(key, rows, markdown=True)
    for name in MODELS[1:]:
        ratio = np.log(losses["multinomial"]) - np.log(losses[name])
        report.figure(f"log loss, multinomial / {name}, geometric mean", float(np.exp(ratio.mean())), "x")
    report.finish()


if __name__ == "__main__":
    main()
