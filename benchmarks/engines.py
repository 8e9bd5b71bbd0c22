"""The same fit on every engine of one machine: blocks that keep their state, pure tasks, and processes.

    python -m benchmarks.engines [--quick]

MNIST, 40 principal components of the deskewed images, degree 2, rank 16, squared loss, float32 rows, four sweeps over
all rows, one thread per process. Tasks run at once in this process: what they cost is the price of being pure.
"""

from __future__ import annotations

import os

import numpy as np

from benchmarks.digits_data import DataMissing, mnist_features
from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain.learning.engines.tasks import TaskEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.trainer import TrainJob, TrainPlan, learn_train
from polytrain.maps import fit_maps
from polytrain.tensor import clip_ranks


class AtOnce:
    """A runner whose handles are the results."""

    def map(self, function, *columns):
        return [function(*row) for row in zip(*columns, strict=True)]

    def collect(self, handles):
        return handles


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    try:
        X, y, _, _ = mnist_features()
    except DataMissing as missing:
        print(f"engines: skipped, {missing}")
        return
    report = Report("engines", arguments.quick)
    chosen = np.random.default_rng(0).permutation(len(X))[: 10_000 if arguments.quick else 20_000]
    X, target = X[chosen].astype(np.float32), np.where(y[chosen] >= 5, 1.0, -1.0)
    maps = fit_maps("power", 2, "minmax", X.min(axis=0), X.max(axis=0))
    rows = ProblemRows.make(maps.place(X), target, np.ones(len(X)))
    plan = TrainPlan("squared", maps.dims, clip_ranks(maps.dims, 16), 1e-4, "linear", "auto", 4, 0.0)
    jobs = os.cpu_count() or 1

    def by_tasks() -> None:
        engine = TaskEngine(AtOnce(), [rows], get_loss("squared"), maps)
        learn_train(plan, maps, engine, TrainJob(0))

    fits = {
        "blocks with state": lambda: learn_train(plan, maps, rows, TrainJob(0)),
        "pure tasks": by_tasks,
        f"{jobs} processes": lambda: learn_train(plan, maps, rows, TrainJob(0), n_processes=jobs),
    }
    times = best_of(fits, 2 if arguments.quick else 5)
    report.table(f"{len(X)} rows", [{"engine": name, "s": spent} for name, spent in times.items()])
    report.figure("pure tasks / blocks with state", times["pure tasks"] / times["blocks with state"], "x")
    report.figure(f"blocks with state / {jobs} processes", times["blocks with state"] / times[f"{jobs} processes"], "x")
    report.finish()


if __name__ == "__main__":
    main()
