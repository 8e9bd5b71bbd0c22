"""The Dask engine against the local one on the same cores, and the bytes that its workers send.

    python -m benchmarks.cluster [--quick] [--solver cg]

Synthetic rows, two classes, one fit with two sweeps over all rows. The cluster is a local one with one single-threaded
worker per core; the local engine shares the rows of the train between as many processes.
"""

from __future__ import annotations

import os

import numpy as np

from benchmarks.report import Report, make_parser
from benchmarks.settings import POWERS
from benchmarks.timing import best_of
from polytrain import TensorTrainClassifier

#: solver -> rank
RANKS = {"exact": 8, "cg": 16}


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--solver", choices=list(RANKS), help="run only this one")
    arguments = parser.parse_args(argv)
    try:
        import dask.array as da
        from distributed import Client, LocalCluster
    except ImportError:
        print("cluster: skipped, Dask is not installed")
        return
    report = Report("cluster", arguments.quick)
    n_rows, d, cores = 250_000 if arguments.quick else 1_000_000, 20, os.cpu_count() or 1
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, d))
    y = np.sign(X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.3 * rng.standard_normal(n_rows))
    chunks = n_rows // (2 * cores)
    settings = {"n_workers": cores, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        lazy = client.persist([da.from_array(X, chunks=(chunks, d)), da.from_array(y, chunks=chunks)])
        table = []
        for solver in [arguments.solver] if arguments.solver else RANKS:
            rank = RANKS[solver]
            plan = {**POWERS, "loss": "squared", "rank": rank, "alpha": 1e-4, "max_sweeps": 2, "tol": 0.0}

            def fit(*rows: object, plan: dict = plan, solver: str = solver) -> None:
                TensorTrainClassifier(solver=solver, random_state=0, n_jobs=cores, **plan).fit(*rows)

            sides = {"local": lambda fit=fit: fit(X, y), "dask": lambda fit=fit: fit(*lazy)}
            times = best_of(sides, 1 if arguments.quick else 2, warm=not arguments.quick)
            table.append({"solver": solver, "rank": rank, **{f"{name} s": value for name, value in times.items()}})
            ratio = times["dask"] / times["local"]
            report.figure(f"Dask / local time, {solver}, rank {rank}", ratio, "x", at_most=2.0)
        report.table(f"{n_rows} rows, {d} features, degree 2, {cores} cores, chunks of {chunks} rows", table)
    report.finish()


if __name__ == "__main__":
    main()
