"""Does ``solver="auto"`` choose the faster route? Whole fits with each solver, over ranks and degrees.

    python -m benchmarks.solver_choice [--quick]

MNIST, 20 principal components of the deskewed images, 20000 rows, one digit against the rest, two sweeps over all rows,
one thread. The time of "auto" is compared with the shorter one of the other two.
"""

from __future__ import annotations

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

N_ROWS, N_FEATURES, DIGIT, ALPHA = 20_000, 20, 8, 1e-4
#: (rank, basis size)
SHAPES = [(rank, n) for n in (2, 3, 5) for rank in (2, 4, 6, 8, 12)]
QUICK_SHAPES = [(4, 2), (8, 2), (4, 3), (8, 3)]


def fit(plan: TrainPlan, maps: MapList, columns: NDArray, target: NDArray, reached: dict[str, float]) -> None:
    rows = ProblemRows.make(columns, target, np.ones(len(target)))
    result = learn_train(plan, maps, rows, TrainJob(0))
    reached[plan.solver] = result.history[-1]["objective"]


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    try:
        X, y, _, _ = mnist_features()
    except DataMissing as missing:
        print(f"solver_choice: skipped, {missing}")
        return
    report = Report("solver_choice", arguments.quick)
    columns = np.ascontiguousarray(scaled_columns(X[:N_ROWS])[:N_FEATURES])
    target = np.where(y[:N_ROWS] == DIGIT, 1.0, -1.0)
    for loss in ("squared", "logistic"):
        rows = []
        for rank, n in QUICK_SHAPES if arguments.quick else SHAPES:
            maps, reached = MapList([PolynomialMap("power", n)] * N_FEATURES), {}
            ranks = clip_ranks(maps.dims, rank)
            fits = {
                solver: partial(
                    fit,
                    TrainPlan(loss, maps.dims, ranks, ALPHA, "linear", solver, 2, 0.0),
                    maps,
                    columns,
                    target,
                    reached,
                )
                for solver in ("exact", "cg", "auto")
            }
            times = best_of(fits, 1 if arguments.quick else 2, warm=False)
            rows.append(
                {
                    "r": rank,
                    "n": n,
                    **{f"{solver} s": spent for solver, spent in times.items()},
                    "auto / best": times["auto"] / min(times["exact"], times["cg"]),
                    "objective, auto / exact": reached["auto"] / reached["exact"],
                }
            )
        report.table(f"{loss} loss, {N_ROWS} rows, {N_FEATURES} features", rows)
        ratios = [row["auto / best"] for row in rows]
        report.figure(f"auto / the faster one, {loss}, median", float(np.median(ratios)), "x", at_most=1.2)
        report.figure(f"auto / the faster one, {loss}, worst", max(ratios), "x")
    report.finish()


if __name__ == "__main__":
    main()
