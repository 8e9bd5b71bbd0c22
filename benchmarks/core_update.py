"""The exact core update against a dense C.T @ C of the same shape, and the rate of its one GEMM.

    python -m benchmarks.core_update [--quick]

The engine stands at the middle one of three cores, so that its environments have the ranks asked for. float32 rows are
accumulated in float64 by the engine, so the dense product with the same accuracy is the float64 one; the float32 one
is shown too.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain import native
from polytrain.learning import contractions
from polytrain.learning.engines import LocalEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import Need, ProblemRows
from polytrain.maps import MapList, PolynomialMap

N_ROWS = 60_000
#: (rank, basis size) -> targets for float64 and float32 rows.
SHAPES = {(8, 2): (2.0, 4.0), (10, 4): (3.0, 5.0), (10, 5): (3.5, 6.0)}
#: (rank, basis size) -> per cent of the large-GEMM rate.
GEMM_SHAPES = {(8, 2): 40.0, (10, 4): 50.0, (16, 3): 50.0}
LARGE = 1500
GRAM = Need(gram=True)


def make_engine(rank: int, n: int, dtype: type) -> tuple[LocalEngine, NDArray]:
    """An engine at the middle core, and the dense matrix C of that core in float64."""
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1, 1, (3, N_ROWS)).astype(dtype)
    cores = [rng.standard_normal(shape) for shape in ((1, n, rank), (rank, n, rank), (rank, n, 1))]
    power = PolynomialMap("power", n)
    rows = ProblemRows.make(columns, np.sign(columns[1].astype(float)), np.ones(N_ROWS))
    engine = LocalEngine(rows, get_loss("squared"), MapList([power] * 3))
    engine.place(cores)
    engine.move_right(cores[0])
    engine.score(cores[1])
    values = [power.values(column.astype(float)) for column in columns]
    left, right = values[0].T @ cores[0][0], values[2].T @ cores[2][:, :, 0].T
    dense = (left[:, :, None, None] * values[1].T[:, None, :, None] * right[:, None, None, :]).reshape(N_ROWS, -1)
    return engine, dense


def flops(rank: int, n: int) -> tuple[float, float]:
    """Operations per row: the dense product (half of it, being symmetric) and the moments."""
    size, pairs = rank * n * rank, rank * (rank + 1) // 2
    return size * (size + 1), 2 * (2 * n - 1) * pairs**2


def compare(rank: int, n: int, dtype: type, repeats: int) -> dict:
    """Times of the engine's Gram matrix and of the dense products, checked against each other."""
    engine, dense = make_engine(rank, n, dtype)
    expected = 2 / N_ROWS * (dense.T @ dense)  # the squared loss has curvature 2
    error = np.abs(engine.facts(GRAM).gram - expected).max() / np.abs(expected).max()
    rivals = {"moments": lambda: engine.facts(GRAM), "dense64": lambda: dense.T @ dense}
    if dtype is np.float32:
        dense32 = dense.astype(np.float32)
        rivals["dense32"] = lambda: dense32.T @ dense32
    times = best_of(rivals, repeats)
    dense_flops, moment_flops = flops(rank, n)
    return {
        "rows": np.dtype(dtype).name,
        "r": rank,
        "n": n,
        "moments ms": 1e3 * times["moments"],
        "dense f64 ms": 1e3 * times["dense64"],
        "dense f32 ms": 1e3 * times["dense32"] if "dense32" in times else None,
        "ratio": times["dense64"] / times["moments"],
        "ratio f32": times["dense32"] / times["moments"] if "dense32" in times else None,
        "flop bound": dense_flops / moment_flops * (2 if dtype is np.float32 else 1),
        "largest error": float(error),
    }


def engine_block(rank: int, n: int, dtype: type) -> int:
    """Rows per block that the engine takes for its moments: seen by watching it work."""
    engine, _ = make_engine(rank, n, dtype)
    seen = []
    original = contractions.moments

    def watch(left: NDArray, *rest: object, **options: object) -> NDArray:
        seen.append(left.shape[-1])
        return original(left, *rest, **options)

    with mock.patch.object(contractions, "moments", watch), native.switched_off():
        engine.facts(GRAM)
    return max(seen)


def gemm_rate(rank: int, n: int, dtype: type, repeats: int) -> dict:
    """Speed of the moments' GEMM alone, as the engine calls it, beside that of one large square GEMM."""
    rng = np.random.default_rng(0)
    pairs, block = rank * (rank + 1) // 2, engine_block(rank, n, dtype)
    spread = rng.standard_normal(((2 * n - 1) * pairs, block)).astype(dtype)
    weighted = rng.standard_normal((pairs, block)).astype(dtype)
    large = rng.standard_normal((LARGE, LARGE)).astype(dtype)
    other = rng.standard_normal((LARGE, LARGE)).astype(dtype)
    calls = max(1, N_ROWS // block)

    def moments() -> None:
        for _ in range(calls):
            contractions.moment_product(spread, weighted)

    times = best_of({"moments": moments, "large": lambda: large @ other}, repeats)
    rates = {
        "moments": 2e-9 * spread.shape[0] * pairs * block * calls / times["moments"],
        "large": 2e-9 * LARGE**3 / times["large"],
    }
    return {
        "rows": np.dtype(dtype).name,
        "r": rank,
        "n": n,
        "GEMM shape": f"{spread.shape[0]} x {block} x {pairs}",
        "moments GFLOP/s": rates["moments"],
        "large GFLOP/s": rates["large"],
        "per cent": 100 * rates["moments"] / rates["large"],
    }


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    arguments = parser.parse_args(argv)
    repeats = 3 if arguments.quick else 9
    report = Report("core_update", arguments.quick)

    rows = []
    for index, dtype in enumerate((np.float64, np.float32)):
        for (rank, n), targets in SHAPES.items():
            row = compare(rank, n, dtype, repeats)
            rows.append(row)
            report.figure(f"update, {row['rows']}, r={rank}, n={n}", row["ratio"], "x", at_least=targets[index])
    report.table(f"Gram matrix of one core from {N_ROWS} rows, one thread", rows)

    rates = []
    for dtype in (np.float64, np.float32):
        for (rank, n), target in GEMM_SHAPES.items():
            row = gemm_rate(rank, n, dtype, repeats)
            rates.append(row)
            report.figure(f"moment GEMM, {row['rows']}, r={rank}", row["per cent"], "%", at_least=target)
    report.table(f"The moments' GEMM alone, against {LARGE} x {LARGE} x {LARGE}", rates)
    report.finish()


if __name__ == "__main__":
    main()
