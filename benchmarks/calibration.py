"""How far probabilities can be trusted: log loss, Brier score and calibration error beside boosting, forest and linear.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.calibration [--quick]
    python -m benchmarks.calibration --only iris wine

polytrain runs with its defaults (``auto``: squared loss, scores turned into log-odds by rows that were left out) and
with ``loss="logistic"`` and all else as it comes (``logistic``); the rivals are those of `benchmarks.table_models`.
Five shuffled, stratified folds, a PCA within the folds; Adult has its official split. The test rows of all folds are
put together before anything is measured:

- log loss, with the natural logarithm;
- Brier score: mean over the rows of half the sum over the classes of (probability - 1 or 0)^2, which for two classes is
  the mean of (probability - label)^2;
- calibration error (ECE): mean distance between the probability and the share of the class, in ten bins of equally many
  rows, mean over the classes.

The bins themselves, of the second of two classes and of all classes together where there are more, are written beside
the report, as ``results/calibration-curves.json``; ``scripts/draw_calibration.py`` draws them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from benchmarks import tabular
from benchmarks.report import RESULTS, Report, make_parser
from benchmarks.table_models import make_model
from benchmarks.tables import write_json
from polytrain import TensorTrainClassifier

TABLES = tuple(table for table in tabular.TABLES if table.kind == "classes")
QUICK = ("iris", "wine")
OWN = ("auto", "logistic")
MODELS = (*OWN, "boosting", "forest", "linear")
MEASURES = ("log loss", "Brier score", "ECE %")
N_BINS = 10


def calibration_error(labels: NDArray, probabilities: NDArray) -> float:
    """Mean over the classes of the calibration error in bins of equal size; labels are indices of classes."""
    errors = []
    for index, chances in enumerate(probabilities.T):
        order = np.argsort(chances, kind="stable")
        gaps = np.array_split(chances[order] - (labels[order] == index), min(N_BINS, len(order)))
        errors.append(sum(abs(gap.sum()) for gap in gaps) / len(order))
    return float(np.mean(errors))


def build(table: tabular.Table, name: str, X: Any, jobs: int) -> Any:
    """An unfitted model, behind a PCA where the table asks for one."""
    if name not in OWN:
        return make_model(name, table.kind, X, jobs, table.components)
    model = TensorTrainClassifier(loss=name, random_state=0, n_jobs=jobs)
    return make_pipeline(PCA(table.components, random_state=0), model) if table.components else model


def brier_score(labels: NDArray, probabilities: NDArray) -> float:
    """Half of the squared distance to the true class, mean over the rows; labels are indices of classes."""
    truth = np.eye(probabilities.shape[1])[labels]
    return float(np.mean(np.sum((probabilities - truth) ** 2, axis=1)) / 2)


def reliability(labels: NDArray, probabilities: NDArray) -> list[tuple[float, float, int]]:
    """Mean probability, share of the class and number of entries in bins of equal size, in order."""
    if probabilities.shape[1] == 2:
        chances, hits = probabilities[:, 1], labels == 1
    else:
        chances, hits = probabilities.ravel(), np.eye(probabilities.shape[1], dtype=bool)[labels].ravel()
    parts = np.array_split(np.argsort(chances, kind="stable"), min(N_BINS, len(chances)))
    return [(float(chances[part].mean()), float(hits[part].mean()), len(part)) for part in parts]


def predicted(table: tabular.Table, name: str, folds: Sequence[tuple], jobs: int) -> tuple[NDArray, NDArray, float]:
    """Labels as indices and probabilities of the test rows of all folds, and the mean seconds of a fit."""
    labels, found, seconds = [], [], 0.0
    for X, y, X_test, y_test in folds:
        model = build(table, name, X, jobs)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        seconds += time.perf_counter() - started
        labels.append(np.searchsorted(model.classes_, y_test))
        found.append(np.asarray(model.predict_proba(X_test), dtype=np.float64))
    return np.concatenate(labels), np.concatenate(found), seconds / len(folds)


def measure(table: tabular.Table, models: Sequence[str], n_folds: int, jobs: int) -> tuple[list[dict], dict[str, list]]:
    """One row per model, and the bins of each."""
    folds = list(table.folds())[:n_folds]
    rows, curves = [], {}
    for name in models:
        labels, chances, seconds = predicted(table, name, folds, jobs)
        rows.append(
            {
                "table": table.name,
                "model": name,
                "log loss": float(log_loss(labels, chances, labels=np.arange(chances.shape[1]))),
                "Brier score": brier_score(labels, chances),
                "ECE %": 100 * calibration_error(labels, chances),
                "error %": 100 * float(np.mean(chances.argmax(axis=1) != labels)),
                "fit s": seconds,
            }
        )
        curves[name] = reliability(labels, chances)
    return rows, curves


def by_model(rows: Sequence[dict], measure: str, models: Sequence[str]) -> list[dict]:
    """One line per table, one column per model."""
    names = dict.fromkeys(row["table"] for row in rows)
    values = {(row["table"], row["model"]): row[measure] for row in rows}
    return [{"table": name, **{model: values[name, model] for model in models}} for name in names]


def summarise(rows: Sequence[dict], models: Sequence[str]) -> list[dict]:
    """Geometric means over the tables of what each model has in units of the first one."""
    lines = []
    for name in MEASURES:
        table = by_model(rows, name, models)
        logs = {model: np.log([line[model] / line[models[0]] for line in table]) for model in models}
        lines.append({"measure": name, **{model: float(np.exp(logs[model].mean())) for model in models}})
    return lines


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=[table.name for table in TABLES], help="names of tables")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="names of models")
    parser.add_argument("--folds", type=int, default=5, help="how many of the five folds; quick: 2")
    parser.add_argument("--jobs", type=int, default=1, help="n_jobs of polytrain and the forest")
    arguments = parser.parse_args(argv)
    wanted = arguments.only or (QUICK if arguments.quick else [table.name for table in TABLES])
    models = [name for name in MODELS if name in arguments.models]
    report = Report("calibration", arguments.quick)
    rows: list[dict] = []
    curves: dict[str, dict] = {}
    for table in TABLES:
        if table.name not in wanted:
            continue
        if not table.available:
            report.note(f"{table.name}: left out, POLYTRAIN_DATA is not set")
            continue
        found, curves[table.name] = measure(table, models, 2 if arguments.quick else arguments.folds, arguments.jobs)
        report.table(table.name, found)
        rows += found
        write_json(RESULTS / f"{report.file_stem}-curves.json", {"rows": rows, "curves": curves})
    for name in MEASURES:
        report.table(name, by_model(rows, name, models), markdown=True)
    summary = summarise(rows, models)
    report.table(f"geometric means over the tables, relative to {models[0]}", summary, markdown=True)
    for line in summary:
        for model in models[1:]:
            report.figure(f"{line['measure']}, {model} / {models[0]}", line[model], "x")
    report.finish()


if __name__ == "__main__":
    main()
