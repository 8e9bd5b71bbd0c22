"""Products of a small matrix with very many rows: cut into pieces against all at once.

    python -m benchmarks.thin_products [--quick]

Both products of a CG step, one thread, blocks of rows as the engines have them: scores (r x n r times n r x N) and
their adjoint (n r x N times N x r).
"""

from __future__ import annotations

import numpy as np

from benchmarks.report import Report, make_parser
from benchmarks.timing import best_of
from polytrain.tensor.thin_products import multiply_rows, sum_over_rows

N_ROWS = 7500
#: rank, basis size
SHAPES = ((8, 2), (10, 4), (16, 3), (24, 3), (32, 3))
LARGE = 1500


def compare(rank: int, n: int, dtype: type, repeats: int) -> dict:
    rng = np.random.default_rng(0)
    shapes = (rank, n * rank), (n * rank, N_ROWS), (rank, N_ROWS), (LARGE, LARGE)
    matrix, spread, out, large = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    times = best_of(
        {
            "scores, whole": lambda: np.matmul(matrix, spread, out=out),
            "scores, pieces": lambda: multiply_rows(matrix, spread, out),
            "adjoint, whole": lambda: spread @ out.T,
            "adjoint, pieces": lambda: sum_over_rows(spread, out),
            "large": lambda: large @ large,
        },
        repeats,
    )
    work = 2e-9 * matrix.size * N_ROWS
    rates = {f"{name} GFLOP/s": work / spent for name, spent in times.items() if name != "large"}
    both = sum(times[f"{name}, whole"] for name in ("scores", "adjoint"))
    gain = both / sum(times[f"{name}, pieces"] for name in ("scores", "adjoint"))
    return {
        "rows": np.dtype(dtype).name,
        "r": rank,
        "n": n,
        **rates,
        "large GFLOP/s": 2e-9 * LARGE**3 / times["large"],
        "gain": gain,
    }


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("thin_products", arguments.quick)
    repeats = 10 if arguments.quick else 50
    rows = [compare(rank, n, dtype, repeats) for dtype in (np.float64, np.float32) for rank, n in SHAPES]
    report.table(f"{N_ROWS} rows, one thread; the last rate is that of one square product of size {LARGE}", rows)
    for row in rows:
        report.figure(f"pieces / whole, {row['rows']}, r={row['r']}, n={row['n']}", row["gain"], "x", at_least=0.9)
    report.finish()


if __name__ == "__main__":
    main()
