"""Streams of a hundred blocks: what partial_fit ends at beside a fit of all rows, and beside warm starts.

    python -m benchmarks.streams [--quick]

Rows of six correlated columns come in blocks of 200. With given maps, rank and alpha, ``stream`` learns from one block
after the other by ``partial_fit``, ``warm starts`` fits each block from the last model with ``warm_start=True``, and
``batch`` fits all rows at once. The objective (mean loss plus alpha / 2 times the squared coefficients) is that of all
rows. Then the rule changes its sign half-way: the explained part of the next block's variance before it is learned
from, by how much is forgotten with each block. The curves are written to ``results/streams-curves.json``;
``scripts/draw_guides.py`` draws them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from benchmarks.report import RESULTS, Report, make_parser
from benchmarks.tables import write_json
from polytrain import TensorTrainRegressor
from polytrain.learning.losses import get_loss
from polytrain.tensor import TensorTrain

BLOCK, ALPHA = 200, 1e-4
SETTINGS: dict[str, Any] = {"basis": "spline", "bandwidth": 1.0, "rank": 6, "alpha": ALPHA, "random_state": 0}


def make_rows(n_rows: int, seed: int = 0) -> tuple[NDArray, NDArray, np.random.Generator]:
    """Correlated columns, and what is to be learned from them."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n_rows, 6)) @ (np.eye(6) + 0.5 * rng.normal(size=(6, 6))), -3, 3)
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] ** 2 - X[:, 3] * X[:, 4], rng


def objective(model: Any, X: NDArray, y: NDArray) -> float:
    """Mean loss plus regularisation, in units of the target."""
    fitted = model.model_
    loss, values, size = get_loss(fitted.loss), fitted.values(X)[0], float(fitted.size[0])
    penalty = ALPHA / 2 * TensorTrain(fitted.cores[0]).norm() ** 2
    if loss.degree:
        return size**loss.degree * (float(loss.evaluate((y - fitted.shift[0]) / size, values)[0].mean()) + penalty)
    return float(loss.evaluate(y, values + fitted.shift[0])[0].mean()) + penalty


def compare(loss: str, X: NDArray, y: NDArray) -> tuple[dict, list[float]]:
    """One line of the table, and the stream's objective after every block."""
    blocks = np.split(np.arange(len(X)), len(X) // BLOCK)
    started = time.perf_counter()
    batch = TensorTrainRegressor(loss=loss, **SETTINGS).fit(X, y)
    seconds = {"batch s": time.perf_counter() - started}
    stream, warm = TensorTrainRegressor(loss=loss, **SETTINGS), TensorTrainRegressor(loss=loss, **SETTINGS)
    warm.set_params(warm_start=True)
    curve, spent = [], 0.0
    for rows in blocks:
        started = time.perf_counter()
        stream.partial_fit(X[rows], y[rows], maps=batch.maps_)
        spent += time.perf_counter() - started
        curve.append(objective(stream, X, y))
        warm.fit(X[rows], y[rows])
    best = objective(batch, X, y)
    line = {
        "loss": loss,
        "batch": best,
        "stream / batch": curve[-1] / best,
        "warm starts / batch": objective(warm, X, y) / best,
        **seconds,
        "stream s": spent,
    }
    return line, [value / best for value in curve]


def change(forgetting: float, X: NDArray, y: NDArray) -> list[float]:
    """Explained part of the variance of every block, before it is learned from."""
    model = TensorTrainRegressor(**SETTINGS)
    found = []
    for rows in np.split(np.arange(len(X)), len(X) // BLOCK):
        if found or hasattr(model, "model_"):
            found.append(float(r2_score(y[rows], model.predict(X[rows]))))
        model.partial_fit(X[rows], y[rows], forgetting=forgetting)
    return found


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("streams", arguments.quick)
    n_rows = BLOCK * (20 if arguments.quick else 100)
    X, truth, rng = make_rows(n_rows)
    targets = {
        "squared": truth + rng.normal(size=n_rows),
        "poisson": rng.poisson(np.exp(np.clip(truth / 2, -3, 3))).astype(float),
    }
    lines, curves = [], {}
    for loss, y in targets.items():
        line, curves[loss] = compare(loss, X, y)
        lines.append(line)
        report.figure(f"{loss}: objective of the stream / batch", line["stream / batch"], "x", at_most=1.1)
    report.table("a stream beside a batch", lines, markdown=True)
    half = n_rows // 2
    y = np.concatenate([truth[:half], -truth[half:]]) + 0.3 * rng.normal(size=n_rows)
    changes = {str(forgetting): change(forgetting, X, y) for forgetting in (0.0, 0.1, 0.3)}
    ends = [
        {
            "forgetting": name,
            "before": np.mean(found[half // BLOCK - 6 : half // BLOCK - 1]),
            "after": np.mean(found[-5:]),
        }
        for name, found in changes.items()
    ]
    report.table("explained variance of the next block, before and long after the change", ends, markdown=True)
    write_json(RESULTS / f"{report.file_stem}-curves.json", {"objectives": curves, "changes": changes})
    report.finish()


if __name__ == "__main__":
    main()
