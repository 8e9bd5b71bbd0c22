"""Evidence for the default parameters: cross-validated error over a grid, on small tables.

    python -m benchmarks.defaults [--out FILE]

For every table (at most 1000 rows of it) and setting: mean error of 5 shuffled folds (classification: per cent;
regression: root mean squared error in per cent of the target's standard deviation). A setting is judged by its error
relative to the best setting of the same table, averaged over tables.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from benchmarks import tabular
from polytrain import TensorTrainClassifier, TensorTrainRegressor

ALPHAS = (1e-4, 1e-3, 1e-2)
SHAPES = ((1, 8), (2, 4), (2, 8))
SWEEPS = (4, 8)  # the second number of sweeps is tried for the last shape only
MAX_ROWS = 1000


def classification_error(X: np.ndarray, y: np.ndarray, **parameters: object) -> float:
    model = TensorTrainClassifier(random_state=0, **parameters)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return 100 * (1 - cross_val_score(model, X, y, cv=folds).mean())


def regression_error(X: np.ndarray, y: np.ndarray, **parameters: object) -> float:
    model = TensorTrainRegressor(random_state=0, **parameters)
    folds = KFold(5, shuffle=True, random_state=0)
    squares = -cross_val_score(model, X, y, cv=folds, scoring="neg_mean_squared_error")
    return 100 * np.sqrt(squares.mean()) / y.std()


def run(kind: str, name: str, X: np.ndarray, y: np.ndarray, settings: dict) -> dict:
    started = time.perf_counter()
    error = classification_error if kind == "classification" else regression_error
    result = {"kind": kind, "table": name, **settings, "error": error(X, y, **settings)}
    result["seconds"] = time.perf_counter() - started
    return result


def sample(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most MAX_ROWS rows, drawn at random."""
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_ROWS]
    return X[rows], y[rows]


def jobs() -> list:
    """All runs, the quick ones first."""
    grid = [
        {"degree": degree, "rank": rank, "alpha": alpha, "max_sweeps": sweeps}
        for (degree, rank), alpha, sweeps in itertools.product(SHAPES, ALPHAS, SWEEPS)
        if sweeps == SWEEPS[0] or (degree, rank) == SHAPES[-1]
    ]
    todo = []
    for name, (X, y) in tabular.regression().items():
        X, y = sample(X, y)
        todo += [("regression", name, X, y, settings) for settings in grid]
    for name, (X, y) in tabular.classification().items():
        X, y = sample(X, y)
        for loss in ("logistic", "squared"):
            todo += [("classification", name, X, y, {"loss": loss, **settings}) for settings in grid]
    return todo


def summarise(results: list[dict]) -> None:
    """Print the mean over tables of each setting's error divided by the table's best error."""
    for kind in ("classification", "regression"):
        rows = [row for row in results if row["kind"] == kind]
        keys = [key for key in ("loss", "degree", "rank", "alpha", "max_sweeps") if key in rows[0]]
        best = {
            table: min(row["error"] for row in rows if row["table"] == table)
            for table in {row["table"] for row in rows}
        }
        ratios: dict[tuple, list[float]] = {}
        for row in rows:
            # half a per cent is added to both, so that a table solved perfectly does not decide alone
            ratio = (row["error"] + 0.5) / (best[row["table"]] + 0.5)
            ratios.setdefault(tuple(row[key] for key in keys), []).append(ratio)
        print(f"\n{kind}: mean ratio to the table's best error, over {len(best)} tables; the ten best settings")
        print("  ".join(keys))
        for setting, values in sorted(ratios.items(), key=lambda item: np.mean(item[1]))[:10]:
            print("  ".join(map(str, setting)), f"-> {np.mean(values):.3f} (worst {np.max(values):.2f})")
        for key in keys:
            means = {
                value: np.mean([v for s, vs in ratios.items() if s[keys.index(key)] == value for v in vs])
                for value in sorted({s[keys.index(key)] for s in ratios})
            }
            print(f"  by {key}: " + ", ".join(f"{value}: {mean:.3f}" for value, mean in means.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="write all results to this JSON file")
    arguments = parser.parse_args()
    started = time.perf_counter()
    results = Parallel(n_jobs=-1, verbose=10)(delayed(run)(*job) for job in jobs())
    summarise(results)
    print(f"\n{len(results)} runs, {time.perf_counter() - started:.0f} s", file=sys.stderr)
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
