"""Sweeps that first see part of the rows against sweeps that always see all: time and final objective.

    python -m benchmarks.sampling [--quick]

MNIST, 40 principal components of the deskewed images, one digit against the rest, degree 2, four one-way sweeps,
float32 rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.digits_data import DataMissing, mnist_features, scaled_columns
from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain.learning.trainer import TrainPlan, learn_train
from polytrain.tensor import clip_ranks

CASES = (("squared", 16), ("logistic", 8))


def fit(plan: TrainPlan, columns: NDArray, target: NDArray, reached: dict[str, float]) -> None:
    result = learn_train(plan, columns, target, np.ones(len(target)), 0)
    reached[str(plan.sampling)] = result.history[-1]["objective"]


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    try:
        X, y, _, _ = mnist_features()
    except DataMissing as missing:
        print(f"sampling: skipped, {missing}")
        return
    report = Report("sampling", arguments.quick)
    columns, dims = scaled_columns(X).astype(np.float32), (3,) * X.shape[1]
    rows = []
    for loss, rank in CASES:
        for digit in (8,) if arguments.quick else (3, 8):
            target = np.where(y == digit, 1.0, -1.0)
            plan = TrainPlan(loss, "power", dims, clip_ranks(dims, rank), 1e-4, "linear", "auto", 4, 0.0)
            reached: dict[str, float] = {}

            sides = {
                str(sampling): partial(fit, replace(plan, sampling=sampling), columns, target, reached)
                for sampling in (None, "auto")
            }
            times = best_of(sides, 1 if arguments.quick else 2, warm=False)
            rows.append(
                {
                    "loss": loss,
                    "rank": rank,
                    "digit": digit,
                    "all rows s": times["None"],
                    "auto s": times["auto"],
                    "objective, all rows": reached["None"],
                    "objective, auto": reached["auto"],
                }
            )
            name = f"{loss}, rank {rank}, digit {digit}"
            report.figure(f"time, auto / all rows, {name}", times["auto"] / times["None"], "x", at_most=1.0)
            report.figure(f"objective, auto / all rows, {name}", reached["auto"] / reached["None"], "x", at_most=1.0)
    report.table(f"{len(y)} rows", rows)
    report.finish()


if __name__ == "__main__":
    main()
