"""Sweeps that first see part of the rows against sweeps that always see all: time and final objective.

    python -m benchmarks.sampling [--quick]

MNIST, one digit against the rest, four one-way sweeps, float32 rows: 40 principal components of the deskewed images
with degree 2, and 20 features of the net with degree 1. The latter can be told apart almost without error, so that a
part of the rows misleads and fits begin anew with all of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.digits_data import DataMissing, mnist_features, scaled_columns
from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain.learning.problem import ProblemRows
from polytrain.learning.trainer import TrainJob, TrainPlan, learn_train
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks
from polytrain_paper.experiments.digit_rows import DigitRows

#: features, degree, loss, rank
CASES = (("pca", 2, "squared", 16), ("pca", 2, "logistic", 8), ("cnn", 1, "squared", 8), ("cnn", 1, "logistic", 8))
ALPHA = 1e-4


def load(kind: str) -> tuple[NDArray, NDArray]:
    """Scaled columns and labels of the training rows."""
    X, y, *_ = mnist_features() if kind == "pca" else DigitRows("mnist", "cnn").split(20)
    return scaled_columns(X).astype(np.float32), y


def fit(plan: TrainPlan, maps: MapList, columns: NDArray, target: NDArray, reached: dict[str, list[dict]]) -> None:
    rows = ProblemRows.make(columns, target, np.ones(len(target)))
    reached[str(plan.sampling)] = learn_train(plan, maps, rows, TrainJob(0)).history


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    try:
        data = {kind: load(kind) for kind in ("pca", "cnn")}
    except DataMissing as missing:
        print(f"sampling: skipped, {missing}")
        return
    report = Report("sampling", arguments.quick)
    rows = []
    for kind, degree, loss, rank in CASES:
        columns, y = data[kind]
        maps = MapList([PolynomialMap("power", degree + 1)] * len(columns))
        for digit in (8,) if arguments.quick else (3, 8):
            target = np.where(y == digit, 1.0, -1.0)
            plan = TrainPlan(loss, maps.dims, clip_ranks(maps.dims, rank), ALPHA, "linear", "auto", 4, 0.0)
            reached: dict[str, list[dict]] = {}

            sides = {
                str(sampling): partial(fit, replace(plan, sampling=sampling), maps, columns, target, reached)
                for sampling in (None, "auto")
            }
            times = best_of(sides, 1 if arguments.quick else 2, warm=False)
            began_anew = reached["auto"][0]["n_rows"] == len(y)
            objectives = {name: history[-1]["objective"] for name, history in reached.items()}
            rows.append(
                {
                    "features": kind,
                    "loss": loss,
                    "rank": rank,
                    "digit": digit,
                    "all rows s": times["None"],
                    "auto s": times["auto"],
                    "objective, all rows": objectives["None"],
                    "objective, auto": objectives["auto"],
                    "began anew": "yes" if began_anew else "no",
                }
            )
            name = f"{kind}, {loss}, rank {rank}, digit {digit}"
            # A fit that begins anew has lost at most a quarter of a full fit.
            allowed = 1.3 if began_anew else 1.0
            report.figure(f"time, auto / all rows, {name}", times["auto"] / times["None"], "x", at_most=allowed)
            ratio = objectives["auto"] / objectives["None"]
            report.figure(f"objective, auto / all rows, {name}", ratio, "x", at_most=1.0)
    report.table(f"{len(y)} rows", rows)
    report.finish()


if __name__ == "__main__":
    main()
