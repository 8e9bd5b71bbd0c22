"""The CG core update against the exact one, from the same state, during a real fit.

    python -m benchmarks.cg_update [--quick]

MNIST, deskewed, 40 principal components, degree 2, squared loss, one class against the rest, all 60000 rows. The fit
begins at the linear model and goes on by CG; in the second and third sweep both updates are taken from the same core
and scores at every sampled inner core.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.digits_data import DataMissing, mnist_features, scaled_columns
from benchmarks.report import Report, make_parser
from polytrain.learning.core_solvers import CoreSolver
from polytrain.learning.engines import LocalEngine
from polytrain.learning.gauge import shift_left, shift_right
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.start import linear_start
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import clip_ranks

ALPHA, N_BASIS = 1e-4, 3
#: rank -> target of the ratio of times.
RANKS = {16: 6.0, 24: 12.0}
DECREASE_TARGET = 95.0
SAMPLED_SWEEPS = (2, 3)


def objective(engine: LocalEngine, core: NDArray) -> float:
    return engine.mean_loss() + 0.5 * ALPHA * float(np.vdot(core, core))


def compare(engine: LocalEngine, core: NDArray, repeats: int) -> dict:
    """Both updates from this core, in turn; the engine is left where it was."""
    engine.score(core)
    before = objective(engine, core)
    times: dict[str, list[float]] = {"exact": [], "cg": []}
    decreases = {}
    for _ in range(repeats):
        for name in times:
            engine.score(core)
            started = time.perf_counter()
            updated = CoreSolver(name, quadratic=True).update(engine, core, ALPHA)
            times[name].append(time.perf_counter() - started)
            engine.score(updated)
            decreases[name] = before - objective(engine, updated)
    engine.score(core)
    exact, cg = min(times["exact"]), min(times["cg"])
    return {
        "exact ms": 1e3 * exact,
        "cg ms": 1e3 * cg,
        "ratio": exact / cg,
        "exact decrease": decreases["exact"],
        "cg decrease": decreases["cg"],
        "decrease %": 100 * decreases["cg"] / decreases["exact"],
    }


def sampled_fit(columns: NDArray, target: NDArray, rank: int, step: int, repeats: int) -> Iterator[dict]:
    """Fit by CG; yield a comparison at every ``step``-th inner core of the sampled sweeps."""
    rng = np.random.default_rng(0)
    maps = MapList([PolynomialMap("power", N_BASIS)] * len(columns))
    rows = ProblemRows.make(columns, target, np.ones(len(target)))
    engine = LocalEngine(rows, get_loss("squared"), maps)
    cores = linear_start(engine, maps, clip_ranks(maps.dims, rank), ALPHA, True, rng)
    engine.place(cores)
    solver = CoreSolver("cg", quadratic=True)
    last, n_inner = len(cores) - 1, 0
    for sweep in range(1, max(SAMPLED_SWEEPS) + 1):
        to_right = sweep % 2 == 1
        for k in range(last) if to_right else range(last, 0, -1):
            if sweep in SAMPLED_SWEEPS and cores[k].shape == (rank, N_BASIS, rank):
                n_inner += 1
                if n_inner % step == 0:
                    yield {"sweep": sweep, "core": k, **compare(engine, cores[k], repeats)}
            core = solver.update(engine, cores[k], ALPHA)
            if to_right:
                cores[k], cores[k + 1] = shift_right(core, cores[k + 1], rng)
                engine.move_right(cores[k])
            else:
                cores[k], cores[k - 1] = shift_left(core, cores[k - 1], rng)
                engine.move_left(cores[k])
        engine.score(cores[last if to_right else 0])


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(RANKS))
    parser.add_argument("--digits", type=int, nargs="+", help="classes against the rest; 3 and 8, quick: 3")
    arguments = parser.parse_args(argv)
    try:
        X, y, _, _ = mnist_features()
    except DataMissing as missing:
        print(f"cg_update: skipped, {missing}")
        return
    report = Report("cg_update", arguments.quick)
    columns = scaled_columns(X)
    for rank in arguments.ranks:
        # Some ten samples per class are enough at the larger rank, where one exact update takes seconds.
        step = (16 if rank > 16 else 8) if arguments.quick else (7 if rank > 16 else 2)
        rows = []
        with threadpool_limits(1):
            for digit in arguments.digits or ([3] if arguments.quick else [3, 8]):
                target = np.where(y == digit, 1.0, -1.0)
                samples = sampled_fit(columns, target, rank, step, 1 if arguments.quick else 2)
                rows += [{"digit": digit, **row} for row in samples]
        report.table(f"rank {rank}, n = {N_BASIS}, {len(y)} rows, one thread", rows)
        ratio, decrease = (float(np.median([row[key] for row in rows])) for key in ("ratio", "decrease %"))
        report.figure(f"exact / CG time, r={rank}, median", ratio, "x", at_least=RANKS.get(rank))
        report.figure(f"CG's part of the decrease, r={rank}, median", decrease, "%", at_least=DECREASE_TARGET)
    report.finish()


if __name__ == "__main__":
    main()
