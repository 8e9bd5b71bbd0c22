"""The default models on real tables with categories and gaps, beside rivals: error, log loss and time.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.mixed_tables
    python -m benchmarks.mixed_tables --only bike churn --models polytrain catboost

FOLDER/tables holds the tables, ``index.json`` about them, and ``rivals.csv`` with the errors of rivals on the same
three shuffled folds, which are printed for rivals that are not run here. The error is 1 - AUC for two classes, the log
loss for more, and the root mean squared error for numbers; all are means over the folds. Models have their defaults,
and run one after another, because their time is measured. CatBoost and LightGBM are not installed with polytrain.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from benchmarks import tabular
from benchmarks.report import RESULTS, describe_machine
from benchmarks.table_models import make_model
from benchmarks.tables import write_json
from benchmarks.timing import seconds

#: Names of models that can be run, and of the same in ``rivals.csv``.
STORED = {"catboost": "CatBoost", "lightgbm": "LightGBM", "boosting": "HistGradientBoosting", "linear": "linear"}


def build(name: str, task: str, X: pd.DataFrame, jobs: int) -> Any:
    """An unfitted model with its defaults."""
    if name == "catboost":
        import catboost

        family = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
        categories = X.select_dtypes("category").columns.tolist()
        return family(verbose=0, thread_count=1, random_seed=0, cat_features=categories)
    if name == "lightgbm":
        import lightgbm

        family = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
        return family(verbose=-1, n_jobs=1, random_state=0)
    return make_model(name, "numbers" if task == "regression" else "classes", X, jobs)


def prepared(name: str, X: pd.DataFrame) -> pd.DataFrame:
    """Rows as a model takes them: CatBoost wants text for categories."""
    if name != "catboost":
        return X
    texts = {column: X[column].astype(object).fillna("missing").astype(str) for column in X.select_dtypes("category")}
    return X.assign(**{column: text.astype("category") for column, text in texts.items()})


def folds(folder: Path, name: str, entry: dict[str, Any]) -> Iterator[tuple[pd.DataFrame, Any, pd.DataFrame, Any]]:
    """Training rows, their targets, test rows and theirs, fold by fold."""
    X = pd.read_csv(folder / f"{name}.csv.gz")
    y = X.pop(X.columns[-1]).to_numpy()
    X = X.astype({column: "category" for column in entry["categories"] if column in X})
    family = KFold if entry["task"] == "regression" else StratifiedKFold
    for train, test in family(3, shuffle=True, random_state=0).split(X, y):
        yield X.iloc[train], y[train], X.iloc[test], y[test]


def measure(name: str, task: str, fold: tuple[pd.DataFrame, Any, pd.DataFrame, Any], jobs: int) -> dict[str, float]:
    """Fit on one fold and measure on its test part."""
    X, y, X_test, y_test = fold
    X, X_test = prepared(name, X), prepared(name, X_test)
    model = build(name, task, X, jobs)
    row: dict[str, float] = {"fit_seconds": seconds(lambda: model.fit(X, y))}
    if task == "regression":
        return row | {"error": float(root_mean_squared_error(y_test, model.predict(X_test)))}
    chances = np.asarray(model.predict_proba(X_test), float)
    row["error_rate"] = 100 * float(np.mean(model.classes_[chances.argmax(axis=1)] != y_test))
    row["log_loss"] = row["error"] = float(log_loss(y_test, chances, labels=model.classes_))
    if task == "binary":
        row["error"] = 1.0 - float(roc_auc_score(y_test == model.classes_[1], chances[:, 1]))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="tables to run; default all")
    parser.add_argument("--models", nargs="+", choices=("polytrain", *STORED), default=["polytrain"])
    parser.add_argument("--folds", type=int, default=3, help="how many of the three folds to run (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes of polytrain (default %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS / "mixed_tables.json")
    options = parser.parse_args()
    data = tabular.data_folder()
    folder = None if data is None else data / "tables"
    if folder is None or not (folder / "index.json").exists():
        sys.exit("POLYTRAIN_DATA does not name a folder with tables/index.json")
    index = json.loads((folder / "index.json").read_text())
    stored = pd.read_csv(folder / "rivals.csv").pivot_table(index="table", columns="model", values="error")
    rows: list[dict[str, Any]] = []
    errors: dict[str, dict[str, float]] = {}
    for table in options.only or index:
        errors[table] = {
            name: float(stored.loc[table, column])
            for name, column in STORED.items()
            if name not in options.models and column in stored and table in stored.index
        }
        for name in options.models:
            own = []
            for number, fold in enumerate(folds(folder, table, index[table])):
                if number < options.folds:
                    own.append(measure(name, index[table]["task"], fold, options.jobs))
                    rows.append({"table": table, "model": name, "fold": number, **own[-1]})
                    print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            errors[table][name] = float(np.mean([row["error"] for row in own]))
    write_json(options.out, {"machine": describe_machine(), "rows": rows})
    frame = pd.DataFrame(errors).T
    frame["best rival"] = frame[[name for name in frame if name != "polytrain"]].min(axis=1)
    print(frame.to_string(float_format=lambda value: f"{value:.5g}"))
    if "polytrain" in frame:
        for name in frame.columns.drop("polytrain"):
            ratios = (frame["polytrain"] / frame[name]).dropna()
            print(
                f"error of polytrain / {name}: geometric mean {np.exp(np.log(ratios).mean()):.3f}, {len(ratios)} tables"
            )


if __name__ == "__main__":
    main()
