"""Compiled kernels and functions between knots: one product with all rows of a block, and whole fits.

    python -m benchmarks.kernels [--quick]

A product is what conjugate gradients ask for again and again: scores of a step, and their adjoint. It is taken by NumPy
through the values of all functions (dense), by compiled kernels through the same values, and by compiled kernels
through the two knots that a row lies between (local). A block that is not alone evaluates its functions anew for every
product; the ratio with that left out is shown beside it. One thread.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from sklearn.datasets import make_friedman1

from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain import TensorTrainRegressor, native
from polytrain.learning.contractions import Contraction, SpreadRows
from polytrain.maps import InterpolatedMap

N_ROWS, N_KNOTS = 8000, 128
SIZES, RANKS = (5, 9, 17), (4, 8, 16)
#: Number of functions -> the least ratio of times, for ranks of at least 8.
TARGETS = {9: 3.0, 17: 6.0}


def table_map(n: int) -> InterpolatedMap:
    """A map with so many functions: cosines over the knots."""
    knots = np.linspace(0.0, 1.0, N_KNOTS)
    table = np.cos(np.pi * np.arange(n)[:, None] * knots)
    return InterpolatedMap(knots, np.full(N_KNOTS, 1 / N_KNOTS), table, np.eye(1, n)[0], 0.0, "spline")


def compare(n: int, rank: int, dtype: type, repeats: int) -> dict:
    """Microseconds of one product in every way, and ratios."""
    rng = np.random.default_rng(0)
    near, far = (rng.standard_normal((rank, N_ROWS)).astype(dtype) for _ in range(2))
    feature_map = table_map(n)
    x = feature_map.place(rng.uniform(0, 1, N_ROWS).astype(dtype))
    values, step = feature_map.values(x), rng.standard_normal((rank, n, rank))
    curvature = rng.uniform(0, 1, N_ROWS).astype(dtype)
    memory: dict[str, np.ndarray] = {}

    def take(name: str, shape: tuple[int, ...]) -> np.ndarray:
        return memory.setdefault(name, np.empty(shape, dtype))

    def by_numpy(seen: np.ndarray) -> tuple:
        return Contraction(SpreadRows(near, seen, far, take), n, True).product(step, curvature)

    def by_kernels(rows: native.DenseRows | native.LocalRows) -> tuple:
        return Contraction(rows, n, True).product(step, curvature)

    ways = {
        "numpy": lambda: by_numpy(feature_map.values(x, take("values", values.shape))),
        "numpy, values given": lambda: by_numpy(values),
        "compiled, values given": lambda: by_kernels(native.DenseRows(near, values, far)),
        "local": lambda: by_kernels(native.LocalRows(x, near, far, feature_map.knots(x.dtype))),
    }
    results = [way() for way in ways.values()]
    for scores, sums in results[1:]:
        np.testing.assert_allclose(scores, results[0][0], rtol=1e-3, atol=1e-3 * np.abs(results[0][0]).max())
        np.testing.assert_allclose(sums, results[0][1], rtol=1e-3, atol=1e-3 * np.abs(results[0][1]).max())
    times = best_of(ways, repeats)
    return {
        "rows": np.dtype(dtype).name,
        "n": n,
        "r": rank,
        **{f"{name}, us": 1e6 * seconds for name, seconds in times.items()},
        "numpy / local": times["numpy"] / times["local"],
        "values given": times["numpy, values given"] / times["local"],
        "compiled / local": times["compiled, values given"] / times["local"],
    }


def compare_fits(n_rows: int, repeats: int) -> list[dict]:
    """Seconds of whole fits without and with the kernels."""
    X, y = make_friedman1(n_rows, 10, noise=1.0, random_state=0)
    rows = []
    settings = [("spline", rank) for rank in (4, 8, 16)] + [
        ("smooth", 8),
        ("power", 8),
        ("power", 16),
        ("auto", "auto"),
    ]
    for dtype in (np.float64, np.float32):
        for basis, rank in settings:
            given = {} if basis == "auto" else {"alpha": 1e-4, "init": "linear", "max_sweeps": 4, "bandwidth": 1.0}
            if basis == "power":
                given["bandwidth"] = None
            model = TensorTrainRegressor(basis=basis, rank=rank, random_state=0, **given)
            table = X.astype(dtype)

            def fit(enabled: bool, model: TensorTrainRegressor = model, table: np.ndarray = table) -> None:
                with patch.object(native, "enabled", enabled):
                    model.fit(table, y)

            times = best_of(
                {"numpy": lambda fit=fit: fit(False), "kernels": lambda fit=fit: fit(True)},
                repeats,
            )
            rows.append(
                {
                    "rows": np.dtype(dtype).name,
                    "functions": basis,
                    "rank": rank,
                    "numpy s": times["numpy"],
                    "kernels s": times["kernels"],
                    "ratio": times["numpy"] / times["kernels"],
                }
            )
    return rows


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    if not native.is_here():
        print("kernels: skipped, the compiled kernels were not built")
        return
    report = Report("kernels", arguments.quick)
    repeats = 10 if arguments.quick else 40
    rows = [compare(n, rank, dtype, repeats) for dtype in (np.float64, np.float32) for n in SIZES for rank in RANKS]
    report.table(f"one product, {N_ROWS} rows, {N_KNOTS} knots", rows)
    n_rows = 5000 if arguments.quick else 20_000
    fits = compare_fits(n_rows, 1 if arguments.quick else 3)
    report.table(f"whole fits, {n_rows} x 10", fits)
    for row in rows:
        if row["n"] in TARGETS and row["r"] >= 8:
            label = f"product, n = {row['n']}, r = {row['r']}, {row['rows']}: numpy / local"
            report.figure(label, row["numpy / local"], "x", at_least=TARGETS[row["n"]])
    ratios = np.array([row["ratio"] for row in fits])
    report.figure("whole fits, numpy / kernels, geometric mean", float(np.exp(np.log(ratios).mean())), "x")
    report.finish()


if __name__ == "__main__":
    main()
