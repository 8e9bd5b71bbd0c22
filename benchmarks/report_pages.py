"""Time and size of reports: of a wide table with ten classes, and of Adult.

    python -m benchmarks.report_pages [--quick]

The wide table has 200 columns, 10 classes and 20,000 rows to be judged on; models of rank 2 and, in the full run, 8.
Adult is read from the folder that POLYTRAIN_DATA names.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np

import polytrain
from benchmarks.report import Report, make_parser
from polytrain import TensorTrainClassifier
from polytrain.cli import main as run_command


def wide_table(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes by linear scores, products of columns, and noise."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(n_rows, 200)), rng.normal(size=(200, 10))
    scores = X @ W / 14 + 0.5 * np.tanh(X[:, :10] * X[:, 10:20]) + 0.3 * rng.gumbel(size=(n_rows, 10))
    return X, scores.argmax(axis=1)


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("report_pages", arguments.quick)
    n_rows = 4000 if arguments.quick else 20_000
    X, y = wide_table(n_rows + 4000)
    rows = []
    for rank in (2,) if arguments.quick else (2, 8):
        model = TensorTrainClassifier(rank=rank, alpha=1e-3, max_sweeps=1, n_jobs=1, random_state=0)
        model.fit(X[:4000], y[:4000])
        started = time.perf_counter()
        page = polytrain.report(model, X[4000:], y[4000:])
        rows.append(_row(f"200 columns, 10 classes, rank {rank}", n_rows, started, len(page.html.encode())))
    folder = os.environ.get("POLYTRAIN_DATA")
    if folder is None:
        report.note("adult: left out, POLYTRAIN_DATA is not set")
    else:
        rows.append(_adult(Path(folder) / "tabular"))
    report.table("reports", rows, markdown=True)
    report.figure("seconds of the wide report", max(row["seconds"] for row in rows[:2]), "s", at_most=20.0)
    report.figure("size of the largest report", max(row["KiB"] for row in rows), "KiB", at_most=1000.0)
    report.finish()


def _adult(folder: Path) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as place:
        model, page = f"{place}/adult.polytrain", f"{place}/adult.html"
        run_command(
            ["fit", str(folder / "adult-train.csv"), "--target", "-1", "--folds", "0", "--quiet", "--out", model]
        )
        started = time.perf_counter()
        run_command(["report", model, str(folder / "adult-test.csv"), "--out", page])
        return _row("Adult, from its file", 16_281, started, Path(page).stat().st_size)


def _row(name: str, n_rows: int, started: float, n_bytes: int) -> dict[str, object]:
    return {"table": name, "rows": n_rows, "seconds": time.perf_counter() - started, "KiB": n_bytes / 1024}


if __name__ == "__main__":
    main()
