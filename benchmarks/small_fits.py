"""Default fits of small tables, the choice of all settings included, beside boosting and a forest; the sizes of their
files; and one larger fit.

    python -m benchmarks.small_fits [--quick]

Synthetic rows: Friedman's first function with noise for numbers, scikit-learn's clusters for two and three classes. All
models are as they come, with one thread. The larger table has 100,000 rows of 20 numbers; it is fitted in a child
process, with as many BLAS threads as there are cores, whose peak of memory is compared with that before the fit.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from benchmarks.memory import MB, peak_bytes
from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of, seconds
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.export import to_c

SHAPES = ((200, 5), (500, 10), (1000, 10), (1300, 20), (2000, 10))
TASKS = {"numbers": 0, "two classes": 2, "three classes": 3}
#: The shape that has a target, in seconds.
JUDGED, MOST_SECONDS = (500, 10), 0.5
#: Rows and columns of the larger fit; its seconds; its memory, as part of the table and in addition to that.
LARGE, MOST_LARGE_SECONDS = (100_000, 20), 20.0
MOST_PART, MOST_BYTES = 1.5, 200 * MB


def make_table(n_classes: int, N: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    if not n_classes:
        return make_friedman1(N, d, noise=1.0, random_state=0)
    return make_classification(N, d, n_informative=min(5, d - 1), n_redundant=1, n_classes=n_classes, random_state=0)


def fits(n_classes: int, X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """A default fit of every model."""
    families = (
        {
            "polytrain": TensorTrainClassifier,
            "boosting": HistGradientBoostingClassifier,
            "forest": RandomForestClassifier,
        }
        if n_classes
        else {
            "polytrain": TensorTrainRegressor,
            "boosting": HistGradientBoostingRegressor,
            "forest": RandomForestRegressor,
        }
    )
    return {name: (lambda family=family: family(random_state=0).fit(X, y)) for name, family in families.items()}


def resident_bytes() -> int:
    """Memory that this process has now; its peak so far where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return peak_bytes()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def child() -> None:
    """Fit the larger table, and print seconds and bytes as JSON."""
    TensorTrainRegressor(random_state=0).fit(*make_table(0, 200, 5))  # late imports
    X, y = make_table(0, *LARGE)
    before = resident_bytes()
    taken = seconds(lambda: TensorTrainRegressor(random_state=0).fit(X, y))
    print(json.dumps({"seconds": taken, "table": X.nbytes, "growth": peak_bytes() - before}))


def measure_large(report: Report) -> None:
    command = [sys.executable, "-m", "benchmarks.small_fits", "--child"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    allowed = MOST_PART * found["table"] + MOST_BYTES
    row = {
        "seconds": found["seconds"],
        "table MB": found["table"] / MB,
        "growth MB": found["growth"] / MB,
        "allowed MB": allowed / MB,
    }
    report.table(f"{LARGE[0]} rows, {LARGE[1]} columns, numbers, in a process of its own", [row])
    report.figure(f"seconds, {LARGE[0]} x {LARGE[1]}", found["seconds"], "s", at_most=MOST_LARGE_SECONDS)
    report.figure("growth / allowed", found["growth"] / allowed, "x", at_most=1.0)


def measure_sizes(report: Report, shapes: Iterable[tuple[int, int]]) -> None:
    """Sizes of the same tables as text, of model files and C sources, also of rank 1, and of the rivals' pickles."""
    rows = []
    for N, d in shapes:
        X, y = make_table(0, N, d)
        text = sum(len(f"{number},") for number in np.column_stack([X, y]).ravel().tolist())
        row = {"rows": N, "columns": d, "table KB": text / 1000}
        for name, rank in (("model", "auto"), ("rank 1", 1)):
            model = TensorTrainRegressor(rank=rank, random_state=0).fit(X, y)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model"
                model.save(path)
                row |= {f"{name} KB": path.stat().st_size / 1000, f"{name}, C KB": len(to_c(model)) / 1000}
        rivals = {name: fit for name, fit in fits(0, X, y).items() if name != "polytrain"}
        rows.append({**row, **{f"{name} KB": len(pickle.dumps(fit())) / 1000 for name, fit in rivals.items()}})
    report.table("sizes of default models of numbers", rows)


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        child()
        return
    report = Report("small_fits", arguments.quick)
    rows = []
    for N, d in SHAPES[:2] if arguments.quick else SHAPES:
        for task, n_classes in TASKS.items():
            times = best_of(fits(n_classes, *make_table(n_classes, N, d)), 2 if arguments.quick else 5)
            ratios = {f"polytrain / {name}": times["polytrain"] / times[name] for name in ("boosting", "forest")}
            rows.append({"rows": N, "columns": d, "task": task, **{f"{k} s": v for k, v in times.items()}, **ratios})
            if (N, d) == JUDGED:
                report.figure(f"seconds, {N} x {d}, {task}", times["polytrain"], "s", at_most=MOST_SECONDS)
    report.table("default fits, one thread, best of several", rows)
    measure_sizes(report, [(1000, 10)] if arguments.quick else [(1000, 10), (4000, 10), (16_000, 10)])
    if not arguments.quick:
        measure_large(report)
    report.finish()


if __name__ == "__main__":
    main()
