"""Peak memory of fitting one train, measured in a child process.

    python -m benchmarks.memory [--quick]

The child notes its peak after all imports, makes its rows in place, fits one sweep of one train of degree 1 and notes
its peak again. Allowed: the imports, the rows in the compute dtype, 1.25 (d + 1) r N numbers, and 100 MB. The inner
route is ``learn_train`` on given columns, the outer one the estimator on rows, which adds its scaled copy of them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.report import Report, make_parser
from benchmarks.settings import POWERS

MB = 1e6
ROUTES = ("learn_train", "estimator")


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    try:
        # ru_maxrss survives exec on Linux, so a child would begin with the peak of the process that started it.
        status = Path("/proc/self/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def fill(shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Uniform numbers in [-1, 1], made in place."""
    rows = np.empty(shape, dtype=dtype)
    np.random.default_rng(0).random(out=rows, dtype=dtype)
    rows *= 2
    rows -= 1
    return rows


def child(route: str, dtype: str, N: int, d: int, r: int) -> None:
    """Fit, and print both peaks as JSON."""
    from polytrain import TensorTrainRegressor
    from polytrain.learning.problem import ProblemRows
    from polytrain.learning.settings import Settings, Start
    from polytrain.learning.trainer import learn_train
    from polytrain.maps import MapList, PolynomialMap
    from polytrain.tensor import clip_ranks

    settings = {**POWERS, "degree": 1, "alpha": 1e-3, "max_sweeps": 1, "tol": 0.0, "random_state": 0}
    TensorTrainRegressor(rank=2, **settings).fit(fill((50, 4), dtype), np.arange(50.0))  # late imports
    imported = peak_bytes()
    if route == "learn_train":
        columns = fill((d, N), dtype)
        maps = MapList([PolynomialMap("power", 2)] * d)
        plan = Settings(
            loss="squared",
            rank=clip_ranks(maps.dims, r),
            alpha=1e-3,
            init="linear",
            solver="auto",
            max_sweeps=1,
            tol=0.0,
        )
        problem = ProblemRows.make(columns, np.sign(columns[0].astype(float)), np.ones(N))
        learn_train(plan, maps, problem, Start(0))
    else:
        rows = fill((N, d), dtype)
        TensorTrainRegressor(rank=r, **settings).fit(rows, np.sign(rows[:, 0]))
    print(json.dumps({"imported": imported, "peak": peak_bytes()}))


def measure(route: str, dtype: str, N: int, d: int, r: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.memory", "--child", route, dtype, *map(str, (N, d, r))]
    peaks = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    size = np.dtype(dtype).itemsize
    rows, numbers = d * N * size, (d + 1) * r * N * size
    allowed = rows + 1.25 * numbers + 100 * MB
    return {
        "route": route,
        "dtype": dtype,
        "imports MB": peaks["imported"] / MB,
        "rows MB": rows / MB,
        "(d+1) r N MB": numbers / MB,
        "peak MB": peaks["peak"] / MB,
        "allowed MB": (peaks["imported"] + allowed) / MB,
        "part of allowed": peaks["peak"] / (peaks["imported"] + allowed),
        "part, imports not granted": peaks["peak"] / allowed,
    }


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        route, dtype, *sizes = arguments.child
        child(route, dtype, *map(int, sizes))
        return
    N, d, r = 200_000 if arguments.quick else 1_000_000, 30, 8
    report = Report("memory", arguments.quick)
    rows = [measure(route, dtype, N, d, r) for dtype in ("float64", "float32") for route in ROUTES]
    report.table(f"one train, one sweep, N = {N}, d = {d}, r = {r}, degree 1", rows)
    for row in rows:
        report.figure(f"peak / allowed, {row['route']}, {row['dtype']}", row["part of allowed"], "x", at_most=1.0)
    report.finish()


if __name__ == "__main__":
    main()
