"""What constraints on interactions cost or bring: default models with none, pairs and all interactions.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.constraints
    python -m benchmarks.constraints diabetes wine

Errors in per cent or root mean squared errors, mean over five shuffled folds, those of `benchmarks.tables`; and the
seconds of a fit, mean over the folds. scikit-learn's boosting takes the same constraints.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error

from benchmarks.report import describe_machine
from benchmarks.tables import TABLES
from benchmarks.timing import seconds
from polytrain import TensorTrainClassifier, TensorTrainRegressor

NAMES = ("wine", "pima", "yacht", "diabetes", "concrete", "airfoil", "phoneme")
CONSTRAINTS = ("no_interactions", "pairwise", None)
MODELS = {
    "classes": (TensorTrainClassifier, HistGradientBoostingClassifier),
    "numbers": (TensorTrainRegressor, HistGradientBoostingRegressor),
}


def error(kind: str, model: Any, X: Any, y: np.ndarray) -> float:
    predicted = model.predict(X)
    return 100 * float(np.mean(predicted != y)) if kind == "classes" else root_mean_squared_error(y, predicted)


def main(names: list[str]) -> None:
    machine = describe_machine()
    print(f"{machine['processor']}, load {machine['load_at_start']}, {machine['libraries']}")
    columns = [f"{model} {groups or 'all'}" for model in ("polytrain", "boosting") for groups in CONSTRAINTS]
    print(f"\n| table | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for table in TABLES:
        if table.name not in names or not table.available:
            continue
        cells = []
        for make in MODELS[table.kind]:
            for groups in CONSTRAINTS:
                found = []
                for X, y, X_test, y_test in table.folds():
                    model = make(interaction_cst=groups, random_state=0)
                    took = seconds(partial(model.fit, X, y))
                    found.append((error(table.kind, model, X_test, y_test), took))
                cells.append("{:.3g} ({:.2f} s)".format(*np.mean(found, axis=0)))
        print(f"| {table.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(NAMES))
