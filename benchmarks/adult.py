"""Adult, official split: settings chosen by 3-fold cross-validation on the training rows, then the test error.

POLYTRAIN_DATA=FOLDER python -m benchmarks.adult
"""

from __future__ import annotations

import itertools
import time

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.settings import POWERS
from benchmarks.tabular import load_adult
from polytrain import TensorTrainClassifier

GRID = {"loss": ("squared", "logistic"), "rank": (2, 4, 8), "alpha": (1e-4, 1e-2)}
FIXED = {**POWERS, "max_sweeps": 4, "random_state": 0}


def main() -> None:
    X, y, X_test, y_test = load_adult()
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    errors = {}
    for values in itertools.product(*GRID.values()):
        settings = dict(zip(GRID, values, strict=True))
        scores = cross_val_score(TensorTrainClassifier(**settings, **FIXED), X, y, cv=folds, n_jobs=2)
        errors[values] = 1 - scores.mean()
        print(f"{settings}: cross-validated error {100 * errors[values]:.2f} %", flush=True)
    best = dict(zip(GRID, min(errors, key=errors.get), strict=True))
    started = time.perf_counter()
    model = TensorTrainClassifier(**best, **FIXED).fit(X, y)
    seconds = time.perf_counter() - started
    print(f"chosen {best}: test error {100 * (1 - model.score(X_test, y_test)):.2f} %, fit {seconds:.1f} s")
    rival = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
    print(f"logistic regression: test error {100 * (1 - rival.score(X_test, y_test)):.2f} %")


if __name__ == "__main__":
    main()
