"""Cores with more entries than there are rows: updates in the space of the rows against the usual exact ones.

    python -m benchmarks.few_rows [--quick]

Synthetic rows, 8 columns, spline maps of up to 17 functions, squared loss, two one-way sweeps, one thread. "auto" works
in the space of the rows from 512 unknowns on, "exact" never does.
"""

from __future__ import annotations

import numpy as np

from benchmarks.report import Report, make_parser
from benchmarks.settings import POWERS
from benchmarks.timing import best_of
from polytrain import TensorTrainRegressor

N_ROWS, N_FEATURES = 800, 8


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("few_rows", arguments.quick)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N_ROWS, N_FEATURES))
    y = np.abs(X[:, 0]) * X[:, 1] + np.sin(4 * X[:, 2]) * X[:, 3] + 0.1 * rng.standard_normal(N_ROWS)
    rows = []
    for rank in (8,) if arguments.quick else (8, 12, 16):
        models = {
            solver: TensorTrainRegressor(
                **{**POWERS, "basis": "spline"},
                rank=rank,
                alpha=1e-3,
                solver=solver,
                max_sweeps=2,
                tol=0.0,
                random_state=0,
            )
            for solver in ("exact", "auto")
        }
        fits = {solver: (lambda model=model: model.fit(X, y)) for solver, model in models.items()}
        times = best_of(fits, 1 if arguments.quick else 2, warm=False)
        objectives = {solver: model.history_[-1]["objective"] for solver, model in models.items()}
        unknowns = max(core.size for core in models["auto"].trains_[0].cores)
        rows.append(
            {
                "rank": rank,
                "most unknowns": unknowns,
                "exact s": times["exact"],
                "auto s": times["auto"],
                "ratio": times["exact"] / times["auto"],
                "objective, auto / exact": objectives["auto"] / objectives["exact"],
            }
        )
    report.table(f"{N_ROWS} rows, {N_FEATURES} columns, spline maps", rows)
    report.figure(f"exact / auto at rank {rows[-1]['rank']}", rows[-1]["ratio"], "x", at_least=2.0)
    report.finish()


if __name__ == "__main__":
    main()
