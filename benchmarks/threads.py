"""Threads against processes: trains of a fit, and blocks of rows of one train, on two workers.

    python -m benchmarks.threads [--quick]

The package uses processes. Here the same fits also run on threads: trains on a thread pool, and the blocks of a train
shared by the threads of one. POLYTRAIN_NATIVE=0 measures the same without compiled kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_wine

from benchmarks.digits_data import DataMissing, mnist_features
from benchmarks.report import Report, make_parser
from benchmarks.settings import POWERS
from benchmarks.timing import best_of
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning import schedule, trainer
from polytrain.learning.blocks import Scratch, TrainBlock
from polytrain.learning.engines.local import LocalEngine, row_ranges

WORKERS = 2


class ThreadEngine(LocalEngine):
    """Every thread owns every n-th block of rows."""

    def __init__(self, rows: Any, loss: Any, maps: Any) -> None:
        super().__init__(rows, loss, maps)
        scratch = [Scratch() for _ in range(WORKERS)]
        ranges = row_ranges(rows.n_rows)
        self._blocks = [
            TrainBlock(rows.block(some), loss, maps, scratch[k % WORKERS], len(ranges) == 1)
            for k, some in enumerate(ranges)
        ]
        self._pool = ThreadPoolExecutor(WORKERS - 1)

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def _share(self, name: str, arguments: tuple, first: int) -> list:
        with np.errstate(over="ignore", invalid="ignore"):
            return [getattr(block, name)(*arguments) for block in self._blocks[first::WORKERS]]

    def _ask(self, question: str, *arguments: Any) -> list:
        tasks = [self._pool.submit(self._share, question, arguments, k) for k in range(1, WORKERS)]
        shares = [self._share(question, arguments, 0), *(task.result() for task in tasks)]
        return [shares[k % WORKERS][k // WORKERS] for k in range(len(self._blocks))]

    _tell = _ask


def _spread(function: Callable, shared: tuple, calls: Any, n_jobs: Any) -> Iterator[Any]:
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(lambda call: function(*shared, *call), calls)


def _open_engine(rows: Any, loss: Any, maps: Any, n_processes: int = 1) -> Any:
    shares = n_processes > 1 and len(row_ranges(rows.n_rows)) > 1
    return ThreadEngine(rows, loss, maps) if shares else LocalEngine(rows, loss, maps)


@contextmanager
def threads() -> Iterator[None]:
    """Let fits use threads in the place of processes."""
    before = schedule.spread, schedule.are_idle, trainer.open_engine
    schedule.spread, schedule.are_idle, trainer.open_engine = _spread, lambda n: True, _open_engine
    try:
        yield
    finally:
        schedule.spread, schedule.are_idle, trainer.open_engine = before


def _problems(quick: bool) -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(0)
    try:
        X, y, _, _ = mnist_features()
    except DataMissing as missing:
        print(f"threads: MNIST skipped, {missing}")
    else:
        rows = rng.permutation(len(X))[: 10_000 if quick else len(X)]
        X, y = X[rows].astype(np.float32), y[rows]
        settings = {**POWERS, "loss": "squared", "rank": 16, "alpha": 1e-4, "max_sweeps": 4, "tol": 0.0}
        yield "MNIST, ten classes", (TensorTrainClassifier(random_state=0, **settings), X, y)
        yield "MNIST, two classes", (TensorTrainClassifier(random_state=0, **settings), X, y >= 5)
    X = rng.uniform(-1, 1, (10_000 if quick else 100_000, 20))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] * X[:, 4] * X[:, 5] + 0.1 * rng.standard_normal(len(X))
    yield f"{len(X)} x 20 numbers, default", (TensorTrainRegressor(random_state=0), X, y)
    yield "digits, default", (TensorTrainClassifier(random_state=0), *load_digits(return_X_y=True))
    yield "wine, default", (TensorTrainClassifier(random_state=0), *load_wine(return_X_y=True))
    yield "diabetes, default", (TensorTrainRegressor(random_state=0), *load_diabetes(return_X_y=True))


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report, table = Report("threads", arguments.quick), []
    for name, (model, X, y) in _problems(arguments.quick):

        def fit(n_jobs: int, model: Any = model, X: Any = X, y: Any = y) -> None:
            model.set_params(n_jobs=n_jobs).fit(X, y)

        def fit_on_threads(fit: Any = fit) -> None:
            with threads():
                fit(WORKERS)

        sides = {"one": lambda fit=fit: fit(1), "processes": lambda fit=fit: fit(WORKERS), "threads": fit_on_threads}
        times = best_of(sides, 1 if arguments.quick else 3)
        ratio = times["threads"] / times["processes"]
        table.append({"problem": name, **{f"{side} s": spent for side, spent in times.items()}, "ratio": ratio})
    report.table("threads / processes", table)
    report.finish()


if __name__ == "__main__":
    main()
