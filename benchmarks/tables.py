"""The default models against their rivals on tables: error, probabilities, time and size.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.tables [--stored]
    python -m benchmarks.tables --only iris wine --models polytrain linear --out FILE
    python -m benchmarks.tables --noise --models polytrain boosting
    python -m benchmarks.tables --counts

The tables bundled with scikit-learn and those of FOLDER/tabular run in five shuffled folds, stratified for classes;
Adult has its official split. The mixed tables of FOLDER/tables (categories, missing values) run in three. The rivals
are defined in `benchmarks.table_models`; those whose package is not installed are left out. Everything is a mean over
the folds, the root mean squared error (RMSE) too: it is the mean of the folds' RMSE. Models run one after another,
because their time is measured.

Rivals do not change, so their rows are kept in a file (`--rivals`) and only missing ones are computed; delete it after
changing a rival or the version of its package. polytrain is always computed anew. With `--stored`, the errors of rivals
on mixed tables are read from FOLDER/tables/rivals.csv, which has means over the same folds, and no rival is run there.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import (
    log_loss,
    mean_gamma_deviance,
    mean_poisson_deviance,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import tabular
from benchmarks.report import RESULTS, describe_machine
from benchmarks.table_models import MAX_GP_ROWS, MODELS, RIVALS, is_installed, make_model
from benchmarks.tabular import TABLES, Table
from benchmarks.timing import seconds
from polytrain import TensorTrainRegressor

#: Measures of a row, with the titles of their tables; the first one is the headline error.
MEASURES = {
    "error": "Error: 1 - AUC for two classes, log loss for more, RMSE for numbers",
    "error_rate": "Classes: error rate, %",
    "log_loss": "Classes: log loss",
    "fit_seconds": "Seconds of fit",
    "predict_seconds": "Seconds of predict",
    "model_kb": "Size of the pickled model, kB",
}
#: Per cent added to both error rates of a ratio, so that a table that is solved perfectly does not decide alone.
SHIFT = 0.5
#: Smaller headline errors count as this in a ratio, for the same reason.
SMALLEST_ERROR = 1e-4
#: Names of rivals in rivals.csv.
STORED = {"linear": "linear", "HistGradientBoosting": "boosting", "LightGBM": "lightgbm", "CatBoost": "catboost"}


def measure(kind: str, model: Any, fold: tabular.Fold) -> dict[str, Any]:
    """Fit on one fold and measure on its test part; where the model fails, say why."""
    X, y, X_test, y_test = fold
    row: dict[str, Any] = dict.fromkeys(MEASURES)
    predictions: list[np.ndarray] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            row["fit_seconds"] = seconds(lambda: model.fit(X, y))
            row["model_kb"] = len(pickle.dumps(model)) / 1000
            row["predict_seconds"] = seconds(lambda: predictions.append(np.ravel(model.predict(X_test))))
            if kind == "numbers":
                row["error"] = float(root_mean_squared_error(y_test, predictions[0]))
            else:
                row |= class_errors(model, X_test, y_test, predictions[0])
    except Exception as error:  # libraries raise exceptions of their own
        row["failure"] = f"{type(error).__name__}: {error}"
    return row


def class_errors(model: Any, X: Any, labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """The error rate, and what the model's probabilities or its scores of two classes give."""
    errors = {"error_rate": 100 * float(np.mean(predictions != labels))}
    has_chances = hasattr(model, "predict_proba")
    if has_chances:
        chances = np.asarray(model.predict_proba(X), float)
        errors["log_loss"] = errors["error"] = float(log_loss(labels, chances, labels=model.classes_))
    if len(model.classes_) == 2:
        scores = chances[:, 1] if has_chances else model.decision_function(X)
        errors["error"] = 1.0 - float(roc_auc_score(labels == model.classes_[1], scores))
    return errors


def warm_up(name: str, jobs: int) -> None:
    """A first fit that no time is taken of: it imports modules and starts worker processes."""
    X, y = tabular.load("iris")
    measure("numbers", make_model(name, "numbers" if name == "gp" else "classes", X, jobs), (X[::3], y[::3], X, y))


def read_rows(path: Path) -> dict[tuple, dict]:
    """Kept rows by table, model and fold; none where the file does not exist, none that lack a measure."""
    if not path.exists():
        return {}
    rows = [row for row in json.loads(path.read_text())["rows"] if MEASURES.keys() <= row.keys()]
    return {(row["table"], row["model"], row["fold"]): row for row in rows}


def write_json(path: Path, content: dict) -> None:
    """Write a file in one step, so that an interrupted run leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(draft, path)


def stored_rows(tables: Iterable[Table], models: Sequence[str]) -> list[dict]:
    """Errors of rivals on mixed tables from rivals.csv, one row for all folds; its times are of another machine."""
    names = {table.source: table.name for table in tables if table.is_mixed}
    frame = pd.read_csv(tabular.data_folder() / "tables" / "rivals.csv") if names else pd.DataFrame()
    rows = []
    for line in frame.replace({np.nan: None}).to_dict("records"):
        name, model = names.get(line["table"]), STORED.get(line["model"])
        if name and model in models:
            row = {"table": name, "model": model, "fold": None, **dict.fromkeys(MEASURES)}
            errors = {"error": line["error"], "error_rate": line["error_rate_percent"], "log_loss": line["log_loss"]}
            rows.append(row | errors)
    return rows


def run(
    tables: Iterable[Table], models: Sequence[str], rivals: Path, jobs: int, n_folds: int | None, stored: bool
) -> list[dict]:
    """Rows of all tables, models and folds; rivals' rows are read from their file or added to it."""
    kept = read_rows(rivals)
    machine = describe_machine()
    rows, warm = [], set()
    for table in tables:
        to_run = [name for name in models if name not in RIVALS or not (stored and table.is_mixed)]
        for number, fold in enumerate(islice(table.folds(), n_folds)):
            for name in to_run:
                key = (table.name, name, number)
                row = kept.get(key) if name in RIVALS else None
                if row is None:
                    model = make_model(name, table.kind, fold[0], jobs, table.components)
                    if model is None:
                        continue
                    if name not in warm:
                        warm_up(name, jobs)
                        warm.add(name)
                    row = dict(zip(("table", "model", "fold"), key, strict=True)) | measure(table.kind, model, fold)
                    tell(row)
                    if name in RIVALS and "failure" not in row:
                        kept[key] = row
                        write_json(rivals, {"machine": machine, "rows": list(kept.values())})
                rows.append(row)
    return rows


def tell(row: dict) -> None:
    """One line on a fold that was just measured."""
    error = row["error_rate"] if row["error"] is None else row["error"]
    what = row.get("failure") or f"error {error:.4g}, fit {row['fit_seconds']:.2f} s"
    print(f"{row['table']}, {row['model']}, fold {row['fold']}: {what}", file=sys.stderr, flush=True)


def fold_means(rows: list[dict], tables: Sequence[Table], models: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Means over the folds of each measure, by table and model; NaN where a fold has no value."""
    frame = pd.DataFrame(rows, columns=["table", "model", *MEASURES]).astype(dict.fromkeys(MEASURES, float))
    means = frame.groupby(["table", "model"]).agg(lambda values: values.mean(skipna=False))
    names = [table.name for table in tables]
    return {measure: means[measure].unstack("model").reindex(names, columns=models) for measure in MEASURES}


def geometric_means(title: str, ratios: pd.DataFrame) -> dict[str, Any]:
    """A line of a summary: the geometric mean of each column, and its number of tables."""
    logs = np.log(ratios.dropna(axis=1, how="all"))
    means = {name: {"ratio": float(np.exp(logs[name].mean())), "tables": int(logs[name].count())} for name in logs}
    return {"measure": title, "tables": len(ratios), "means": means}


def compare_with_best(means: dict[str, pd.DataFrame], tables: Sequence[Table]) -> list[dict]:
    """Each model's values divided by those of the best model of the same table."""
    lines = []
    for title, part in (("dev", [table for table in tables if table.dev]), ("all", tables)):
        classes, numbers = ([table.name for table in part if table.kind == kind] for kind in ("classes", "numbers"))
        for name, values in (
            ("error rate", means["error_rate"].loc[classes] + SHIFT),
            ("log loss", means["log_loss"].loc[classes]),
            ("RMSE", means["error"].loc[numbers]),
        ):
            if len(values):
                lines.append(geometric_means(f"{name}, {title} tables", values.div(values.min(axis=1), axis=0)))
    return lines


def compare_with_rivals(means: dict[str, pd.DataFrame], tables: Sequence[Table]) -> list[dict]:
    """polytrain's values divided by those of each rival."""
    errors = means["error"].clip(lower=SMALLEST_ERROR)
    errors["best rival"] = errors.drop(columns="polytrain").min(axis=1)
    others = [table.name for table in tables if not table.dev]
    parts = [("error, all tables", errors), ("error, tables that are not dev", errors.loc[others])]
    parts += [(MEASURES[name], means[name]) for name in ("fit_seconds", "predict_seconds", "model_kb")]
    return [
        geometric_means(title, values.drop(columns="polytrain").rdiv(values["polytrain"], axis=0))
        for title, values in parts
        if len(values)
    ]


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    cells = [list(head), *map(list, lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = [
        [line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]  # names to the left, numbers to the right
        for line in cells
    ]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in [padded[0], rule, *padded[1:]])


def print_measure(title: str, values: pd.DataFrame, tables: Sequence[Table], failed: set[tuple[str, str]]) -> None:
    """One measure of all tables; the best model of each is in bold."""
    models = [model for model in values if values[model].notna().any() or model in {name for _, name in failed}]
    lines = []
    for table in tables:
        line = [table.name if table.dev else f"{table.name} *"]
        for model in models:
            value = values.loc[table.name, model]
            if np.isnan(value):
                line.append("failed" if (table.name, model) in failed else "-")
            else:
                word = f"{value:.3g}" if value < 1 else f"{value:.2f}" if value < 1000 else f"{value:.0f}"
                line.append(f"**{word}**" if value == values.loc[table.name].min() else word)
        lines.append(line)
    if lines and models:
        print(f"\n### {title}\n\n{markdown(('table', *models), lines)}")


def print_summary(title: str, summary: list[dict]) -> None:
    """The geometric means; in square brackets the number of tables where a model lacks some."""
    models = list(dict.fromkeys(model for part in summary for model in part["means"]))
    lines = []
    for part in summary:
        line = [f"{part['measure']} ({part['tables']})"]
        for model in models:
            found = part["means"].get(model)
            lacks = f" [{found['tables']}]" if found and found["tables"] < part["tables"] else ""
            line.append(f"{found['ratio']:.3f}{lacks}" if found else "-")
        lines.append(line)
    if models:
        print(f"\n### {title}, geometric mean\n\n{markdown(('measure', *models), lines)}")


def print_all(rows: list[dict], tables: Sequence[Table], models: Sequence[str]) -> dict[str, list[dict]]:
    """Print all measures and both summaries, which are returned."""
    means = fold_means(rows, tables, models)
    failed = {(row["table"], row["model"]) for row in rows if "failure" in row}
    classes = [table for table in tables if table.kind == "classes"]
    for name, title in MEASURES.items():
        print_measure(title, means[name], classes if name in ("error_rate", "log_loss") else tables, failed)
    summary = {"best": compare_with_best(means, tables)}
    print_summary("Ratio to the best model of a table", summary["best"])
    if "polytrain" in models:
        summary["rivals"] = compare_with_rivals(means, tables)
        print_summary("polytrain divided by a rival", summary["rivals"])
    print(
        f"\nBest of the models shown; {SHIFT} points are added to both error rates of a ratio.\n"
        "In square brackets: the number of tables of a model that lacks some. * not a dev table.\n"
        f"gp up to {MAX_GP_ROWS} training rows; svm and gp neither on Adult nor on mixed tables."
    )
    if any(row["fold"] is None for row in rows):
        print("Mixed tables: errors of rivals are stored means over three folds, all else was computed now.")
    return summary


def run_noise(models: Sequence[str], jobs: int) -> list[dict]:
    """Print what noise columns cost the models: accuracy, and R^2 of numbers."""
    rows: list[dict] = []
    lines = []
    problems = [("classes", 10, n_columns, tabular.noisy_classes) for n_columns in (10, 40, 160)]
    for kind, n_informative, n_columns, make_fold in [*problems, ("numbers", 5, 300, tabular.noisy_numbers)]:
        X, y, X_test, y_test = make_fold(n_columns)
        scores = {}
        for name in models:
            model = make_model(name, kind, X, jobs)
            if model is not None:
                scores[name] = float(model.fit(X, y).score(X_test, y_test))
                rows.append({"kind": kind, "columns": n_columns, "model": name, "score": scores[name]})
        measure = "accuracy" if kind == "classes" else "R^2"
        title = f"{n_informative} of {n_columns} columns, {len(X)} rows, {measure}"
        lines.append([title, *(f"{scores[name]:.3f}" if name in scores else "-" for name in models)])
    print(f"\n### Informative columns among columns of noise\n\n{markdown(('problem', *models), lines)}")
    return rows


def run_counts(jobs: int) -> list[dict]:
    """Print deviances of the losses for counts and amounts: defaults of polytrain and boosting, and a linear model."""
    problems: list[tuple[str, str, list]] = [
        ("counts, made, smooth", "poisson", [tabular.made_counts(seed, steps=False) for seed in range(5)]),
        ("counts, made, steps", "poisson", [tabular.made_counts(seed, steps=True) for seed in range(5)]),
    ]
    if tabular.data_folder() is not None:
        splits = KFold(5, shuffle=True, random_state=0)
        insurance, charges = tabular.load_mixed("insurance", ())
        for title, loss, (X, y) in (
            ("counts, bike", "poisson", tabular.bike_counts()),
            ("amounts, insurance", "gamma", (pd.get_dummies(insurance).to_numpy(float), charges)),
        ):
            folds = [(X[train], y[train], X[test], y[test]) for train, test in splits.split(X)]
            problems.append((title, loss, [(fold, np.ones(len(fold[1])), np.ones(len(fold[3]))) for fold in folds]))
    rows, lines = [], []
    for title, loss, parts in problems:
        linear = {"poisson": PoissonRegressor, "gamma": GammaRegressor}[loss](alpha=1e-4, max_iter=1000)
        deviance = {"poisson": mean_poisson_deviance, "gamma": mean_gamma_deviance}[loss]
        for (X, y, X_test, y_test), exposures, exposures_test in parts:
            # Rates with exposures as weights are to all three what counts with an offset are to polytrain.
            for name, model in (
                ("polytrain", TensorTrainRegressor(loss=loss, random_state=0, n_jobs=jobs)),
                ("boosting", HistGradientBoostingRegressor(loss=loss, random_state=0)),
                ("linear", make_pipeline(StandardScaler(), linear)),
            ):
                weights = {f"{loss}regressor__sample_weight" if name == "linear" else "sample_weight": exposures}
                predicted = model.fit(X, y / exposures, **weights).predict(X_test) * exposures_test
                rows.append({"table": title, "model": name, "deviance": float(deviance(y_test, predicted))})
        means = pd.DataFrame(rows).query("table == @title").groupby("model")["deviance"]
        ratios = means.get_group("polytrain").to_numpy() / means.get_group("boosting").to_numpy()
        words = [f"{means.get_group(name).mean():.4g}" for name in ("polytrain", "boosting", "linear")]
        lines.append([f"{title}, {len(parts)} folds", *words, f"{np.exp(np.log(ratios).mean()):.3f}"])
        print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    head = ("mean deviance", "polytrain", "boosting", "linear", "polytrain / boosting")
    print(f"\n### Counts and amounts\n\n{markdown(head, lines)}")
    return rows


def main(argv: list[str] | None = None) -> int:
    tables = [*TABLES, *tabular.mixed_tables()]
    names = [table.name for table in tables]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, metavar="TABLE", help=f"some of {', '.join(names)}")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="names of models")
    parser.add_argument("--folds", type=int, metavar="N", help="run at most N folds of each table")
    parser.add_argument("--stored", action="store_true", help="read rivals' errors on mixed tables from rivals.csv")
    parser.add_argument("--noise", action="store_true", help="run synthetic tables with columns of noise instead")
    parser.add_argument("--counts", action="store_true", help="run tables of counts and amounts instead")
    parser.add_argument("--out", type=Path, help="write all rows and the summary to this JSON file")
    parser.add_argument("--rivals", type=Path, default=RESULTS / "rivals.json", help="file that keeps the rivals' rows")
    parser.add_argument("--jobs", type=int, default=2, help="threads or processes of every model")
    options = parser.parse_args(argv)
    models = [name for name in MODELS if name in options.models]
    if absent := [name for name in models if not is_installed(name)]:
        print(f"not run, not installed: {', '.join(absent)}", file=sys.stderr)
    installed = [name for name in models if name not in absent]
    threadpool_limits(options.jobs, user_api="openmp")  # boosting has no n_jobs
    if options.noise or options.counts:
        rows = run_noise(installed, options.jobs) if options.noise else run_counts(options.jobs)
        content: dict[str, Any] = {"rows": rows}
    else:
        tables = [table for table in tables if table.name in (options.only or names)]
        if missing := [table.name for table in tables if not table.available]:
            print(f"left out, POLYTRAIN_DATA is not set: {', '.join(missing)}", file=sys.stderr)
            tables = [table for table in tables if table.available]
        rows = run(tables, installed, options.rivals, options.jobs, options.folds, options.stored)
        rows += stored_rows(tables, models) if options.stored else []
        content = {"rows": rows, "summary": print_all(rows, tables, models)}
    if options.out:
        write_json(options.out, {"machine": describe_machine()} | content)
    return 1 if any("failure" in row for row in content["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
