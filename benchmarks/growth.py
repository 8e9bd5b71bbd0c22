"""How the fit time of one train grows with rows, features, rank, and functions per column.

    python -m benchmarks.growth [--quick]

Synthetic rows, squared loss, two one-way sweeps without a stopping rule, one thread. Exponents are slopes of a
straight line through all points in log-log; those of the larger half of the points are shown beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.kernels import table_map
from benchmarks.plots import have_matplotlib, plot_growth
from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks

#: What varies -> its values (quick, full), everything else, and the allowed exponent.
RUNS = {
    "N": ((10_000, 20_000, 40_000, 80_000), (10_000, 30_000, 100_000, 300_000, 1_000_000), {"d": 20, "r": 8, "n": 2}),
    "d": ((10, 20, 40, 80), (10, 20, 40, 80, 160), {"N": 20_000, "r": 8, "n": 3}),
    "r": ((8, 12, 16, 24), (8, 12, 16, 24, 32, 48, 64), {"N": 20_000, "d": 20, "n": 3, "solver": "cg"}),
    "n": ((3, 5, 9, 17), (3, 5, 9, 17), {"N": 20_000, "d": 20, "r": 8, "knots": True}),
}
ALLOWED = {"N": 1.05, "d": 1.05, "r": 2.3, "n": 0.3}
LABELS = {"N": "rows N", "d": "features d", "r": "rank r (solver cg)", "n": "functions n (between knots)"}


def make_rows(N: int, d: int) -> tuple[NDArray, NDArray]:
    """Columns (d, N) in [-1, 1] and a target with products of features in it."""
    rng = np.random.default_rng(0)
    columns = rng.random((d, N))
    columns *= 2
    columns -= 1
    target = np.sign(columns[0] * columns[1] + columns[2] * columns[d - 1] + 0.5 * columns[d // 2])
    return columns, target


def fit(rows: tuple[NDArray, NDArray], r: int, n: int, solver: str, knots: bool) -> None:
    columns, target = rows
    maps = MapList([PolynomialMap("power", n)] * len(columns))
    if knots:
        maps = MapList([table_map(n)] * len(columns))
        columns = maps.place((columns.T + 1) / 2)
    plan = Settings(
        loss="squared",
        rank=clip_ranks(maps.dims, r),
        alpha=1e-3,
        init="linear",
        solver=solver,
        max_sweeps=2,
        tol=0.0,
    )
    learn_train(plan, maps, ProblemRows.make(columns, target, np.ones(len(target))), Start(0))


def slope(xs: Sequence[float], times: Sequence[float]) -> float:
    return float(np.polyfit(np.log(xs), np.log(times), 1)[0])


def measure(varied: str, values: Sequence[int], fixed: dict, repeats: int) -> list[float]:
    """Least seconds for every value."""
    settings = [{"solver": "auto", "knots": False, **fixed, varied: value} for value in values]
    data = {(s["N"], s["d"]): make_rows(s["N"], s["d"]) for s in settings}
    fits = {
        str(s[varied]): partial(fit, data[s["N"], s["d"]], **{name: s[name] for name in ("r", "n", "solver", "knots")})
        for s in settings
    }
    fits[str(values[0])]()  # warm up once, with the smallest
    return list(best_of(fits, repeats, warm=False).values())


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", choices=list(RUNS), nargs="+", default=list(RUNS), help="what varies")
    arguments = parser.parse_args(argv)
    report = Report("growth", arguments.quick)
    panels = []
    for varied in arguments.only:
        quick, full, fixed = RUNS[varied]
        values = quick if arguments.quick else full
        times = measure(varied, values, fixed, 2 if arguments.quick else 3)
        half = len(values) // 2
        exponent, upper = slope(values, times), slope(values[half:], times[half:])
        power = "^2" if varied == "r" else ""
        rows = [
            {varied: x, "fit s": t, f"us / {varied}{power}": 1e6 * t / x ** (2 if power else 1)}
            for x, t in zip(values, times, strict=True)
        ]
        report.table(
            f"fit time against {LABELS[varied]}; " + ", ".join(f"{key} = {value}" for key, value in fixed.items()), rows
        )
        report.figure(f"exponent of {varied}", exponent, at_most=ALLOWED[varied])
        report.figure(f"exponent of {varied}, larger half of the points", upper)
        panels.append((LABELS[varied], values, times, exponent, ALLOWED[varied]))
    if have_matplotlib():
        plot_growth(report.plot_path(), panels)
    report.finish()


if __name__ == "__main__":
    main()
