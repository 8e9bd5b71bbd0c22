"""Speed on all cores against one: ten trains, and the rows of a single train.

    python -m benchmarks.parallel [--quick]

MNIST, 40 principal components of the deskewed images, degree 2, rank 16, squared loss, float32 rows. Each side is
fitted once before, so that processes have started.
"""

from __future__ import annotations

import os

import numpy as np

from benchmarks.digits_data import mnist_features, run_with_data
from benchmarks.report import Report, make_parser
from benchmarks.settings import POWERS
from benchmarks.timing import best_of
from polytrain import TensorTrainClassifier

TARGETS = {"ten classes": 1.7, "two classes": 1.5}


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    X, y, _, _ = mnist_features()
    report = Report("parallel", arguments.quick)
    rows = np.random.default_rng(0).permutation(len(X))[: 20_000 if arguments.quick else len(X)]
    X, y = X[rows].astype(np.float32), y[rows]
    jobs = os.cpu_count() or 1
    table = []
    for name, labels in (("ten classes", y), ("two classes", y >= 5)):

        def fit(n_jobs: int, labels: np.ndarray = labels) -> None:
            settings = {**POWERS, "loss": "squared", "rank": 16, "alpha": 1e-4, "max_sweeps": 4, "tol": 0.0}
            TensorTrainClassifier(random_state=0, n_jobs=n_jobs, **settings).fit(X, labels)

        sides = {"one": lambda fit=fit: fit(1), "all": lambda fit=fit: fit(jobs)}
        times = best_of(sides, 1 if arguments.quick else 2, warm=name == "two classes")
        ratio = times["one"] / times["all"]
        table.append({"problem": name, "one core s": times["one"], f"{jobs} cores s": times["all"], "ratio": ratio})
        report.figure(f"{name}, one core / {jobs} cores", ratio, "x", at_least=TARGETS[name])
    report.table(f"{len(X)} rows, four sweeps over all rows", table)
    report.finish()


if __name__ == "__main__":
    run_with_data(main)
