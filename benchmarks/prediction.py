"""Prediction with ten classes, d = 40, rank 8, degree 1: rows per second, and the time one row takes.

python -m benchmarks.prediction [--quick]
"""

from __future__ import annotations

import numpy as np

from benchmarks.report import Report, make_parser
from benchmarks.settings import POWERS
from benchmarks.timing import best_of, seconds
from polytrain import TensorTrainClassifier

N_FEATURES, N_CLASSES, RANK = 40, 10, 8


def make_model() -> TensorTrainClassifier:
    """A model of the right shape: the start already has the ranks asked for."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (2000, N_FEATURES)), np.arange(2000) % N_CLASSES
    settings = {**POWERS, "loss": "squared", "degree": 1, "rank": RANK, "alpha": 1e-4, "max_sweeps": 0}
    model = TensorTrainClassifier(random_state=0, **settings).fit(X, y)
    if max(model.trains_[0].ranks) != RANK:
        raise RuntimeError(f"expected trains of rank {RANK}, got {model.trains_[0].ranks}")
    return model


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("prediction", arguments.quick)
    model = make_model()
    n_rows, repeats = (50_000, 3) if arguments.quick else (200_000, 7)
    X = np.random.default_rng(1).uniform(-1, 1, (n_rows, N_FEATURES))

    rows = []
    for dtype in (np.float64, np.float32):
        batch = X.astype(dtype)
        for label, n_jobs in (("one thread", 1), ("all cores", -1)):
            model.set_params(n_jobs=n_jobs)
            best = best_of({"predict": lambda batch=batch: model.predict(batch)}, repeats)["predict"]
            rows.append({"dtype": np.dtype(dtype).name, "threads": label, "seconds": best, "rows/s": n_rows / best})
    report.table(f"{n_rows} rows, {N_CLASSES} classes, d = {N_FEATURES}, rank {RANK}", rows)

    single = X[:1]
    model.set_params(n_jobs=None)
    model.predict(single)
    times = 1e3 * np.array([seconds(lambda: model.predict(single)) for _ in range(200 if arguments.quick else 2000)])
    best, middle, late = float(times.min()), float(np.median(times)), float(np.quantile(times, 0.99))
    report.table("one row", [{"best ms": best, "median ms": middle, "99 % ms": late}])

    for row in rows:
        target = 100_000 if row["threads"] == "all cores" else None
        report.figure(f"{row['dtype']}, {row['threads']}", row["rows/s"], "rows/s", at_least=target)
    report.figure("one row, median", middle, "ms", at_most=2.0)
    report.figure("one row, best", best, "ms")
    report.finish()


if __name__ == "__main__":
    main()
