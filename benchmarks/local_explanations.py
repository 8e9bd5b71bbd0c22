"""Exact Shapley values of rows: seconds for many rows and many columns, and beside brute force for ten columns.

    python -m benchmarks.local_explanations [--quick]

Default models of Friedman's first function, which has five columns that matter, among others that do not. Brute force
predicts every coalition of the columns, with a background of one row, for which a coalition is a row, too: what any
model allows. One thread.
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.datasets import make_friedman1

from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain import TensorTrainRegressor
from polytrain.explain import explain_local

#: Training rows, columns, and rows to explain.
SHAPES = ((500, 5, 1000), (1000, 10, 1000), (1000, 20, 1000), (5000, 20, 1000), (1000, 100, 100), (2000, 300, 100))
QUICK = SHAPES[:3]
#: The shape that has a target, in seconds.
JUDGED, MOST_SECONDS = (1000, 20, 1000), 1.0
BRUTE_COLUMNS, BRUTE_ROWS = 10, 20


def brute_force(model: TensorTrainRegressor, X: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Shapley values (rows, columns) from predictions of all coalitions."""
    d = X.shape[1]
    inside = (np.arange(2**d)[:, None] >> np.arange(d)) % 2 == 1
    sizes = inside.sum(axis=1)
    weights = np.array([1 / (d * math.comb(d - 1, size)) for size in range(d)])
    found = np.empty(X.shape)
    for row, values in zip(found, X, strict=True):
        worth = model.predict(np.where(inside, values, background))
        for k in range(d):
            without = np.flatnonzero(~inside[:, k])
            row[k] = weights[sizes[without]] @ (worth[without + 2**k] - worth[without])
    return found


def fitted(N: int, d: int) -> tuple[TensorTrainRegressor, np.ndarray]:
    X, y = make_friedman1(N, d, noise=1.0, random_state=0)
    return TensorTrainRegressor(random_state=0).fit(X, y), X


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("local_explanations", arguments.quick)
    repeats = 3 if arguments.quick else 7
    lines = []
    for shape in QUICK if arguments.quick else SHAPES:
        N, d, count = shape
        model, X = fitted(N, d)
        rows = X[np.arange(count) % N]
        found = explain_local(model, rows)
        gap = np.abs(found.values.sum(axis=1) - (found.scores - found.base)).max() / np.abs(found.scores).max()
        best = best_of({"exact": lambda model=model, rows=rows: explain_local(model, rows)}, repeats)["exact"]
        size = {"columns": d, "rank": max(model.trains_[0].ranks), "rows": count}
        lines.append({**size, "s": best, "ms per row": 1e3 * best / count, "gap": gap})
        if shape == JUDGED:
            report.figure(f"{count} rows of {d} columns", best, "s", at_most=MOST_SECONDS)
    report.table("exact Shapley values; gap: of their sum to score less mean, relative", lines, markdown=True)

    model, X = fitted(1000, BRUTE_COLUMNS)
    rows, background = X[:BRUTE_ROWS], np.median(X, axis=0, keepdims=True)
    rivals = {
        "exact": lambda: explain_local(model, rows, X_background=background).values[:, :, 0],
        "brute force": lambda: brute_force(model, rows, background),
    }
    difference = float(np.abs(rivals["exact"]() - rivals["brute force"]()).max())
    best = best_of(rivals, repeats)
    report.table(
        f"{BRUTE_ROWS} rows of {BRUTE_COLUMNS} columns",
        [{"way": name, "ms per row": 1e3 * time / BRUTE_ROWS} for name, time in best.items()],
        markdown=True,
    )
    report.figure("largest difference to brute force", difference, at_most=1e-9)
    report.figure("brute force / exact", best["brute force"] / best["exact"], "x")
    report.finish()


if __name__ == "__main__":
    main()
