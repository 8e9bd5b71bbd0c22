"""Reading a CSV file: three columns of numbers and two of text, beside pandas, polars and the csv module.

    python -m benchmarks.reading [--quick] [--rows 1000000 10000000]

The numbers become float64 and the text codes of categories, in arrays of the whole table, as a fit needs them. Every
reader runs in a process of its own: the time is that of the reading, the memory what the peak grows by after all
imports and a small file. The readers take turns, and the least time counts. The csv module is how text is read where
pyarrow is missing, and was the only way before; it is left out beyond a million rows.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.memory import MB, peak_bytes
from benchmarks.report import Report, make_parser
from benchmarks.timing import seconds

NUMBERS, TEXTS = ("length", "count", "price"), ("colour", "town")
MOST_FOR_CSV = 1_000_000


def write_rows(path: Path, N: int) -> None:
    """Write a table of N rows, some at a time."""
    generator = np.random.default_rng(0)
    colours = np.array(["red", "green", "blue", "dark grey"])
    towns = np.array([f"town {k}" for k in range(500)])
    with open(path, "w") as stream:
        stream.write(",".join((*NUMBERS, *TEXTS)) + "\n")
        for start in range(0, N, 100_000):
            n = min(100_000, N - start)
            columns = (
                generator.normal(size=n).round(4).tolist(),
                generator.integers(0, 1_000_000, n).tolist(),
                generator.uniform(0, 1000, n).round(2).tolist(),
                colours[generator.integers(0, len(colours), n)].tolist(),
                towns[generator.integers(0, len(towns), n)].tolist(),
            )
            stream.writelines(f"{a},{b},{c},{d},{e}\n" for a, b, c, d, e in zip(*columns, strict=True))


def read_table(path: Path, fast: bool) -> list[np.ndarray]:
    from polytrain.tables.files import DEFAULT_MISSING, Form, ReadOptions
    from polytrain.tables.files.streams import ByteStream, TextStream
    from polytrain.tables.files.text_table import TextTable

    missing, plain = frozenset(DEFAULT_MISSING), Form("number")
    parts: list[list[np.ndarray]] = [[] for _ in (*NUMBERS, *TEXTS)]
    known: list[dict[str, int]] = [{} for _ in TEXTS]
    stream = ByteStream(open(path, "rb", buffering=0), str(path))  # noqa: SIM115 - the table closes it
    with TextTable(TextStream(stream, str(path)), str(path), path.name, ReadOptions(), fast=fast) as table:
        for block in table.blocks():
            for part, column in zip(parts, block.columns[: len(NUMBERS)], strict=False):
                part.append(column.values(plain, missing)[0])
            for part, column, codes_of in zip(parts[3:], block.columns[3:], known, strict=True):
                codes, texts = column.coded(missing)
                part.append(np.array([codes_of.setdefault(text, len(codes_of)) for text in texts])[codes])
    return [np.concatenate(part) for part in parts]


def read_pandas(path: Path) -> list[np.ndarray]:
    import pandas

    frame = pandas.read_csv(path, dtype=dict.fromkeys(TEXTS, "category"))
    numbers = [frame[name].to_numpy(np.float64) for name in NUMBERS]
    return [*numbers, *(frame[name].cat.codes.to_numpy() for name in TEXTS)]


def read_polars(path: Path) -> list[np.ndarray]:
    import polars

    frame = polars.read_csv(path, schema_overrides=dict.fromkeys(TEXTS, polars.Categorical))
    numbers = [frame[name].cast(polars.Float64).to_numpy() for name in NUMBERS]
    return [*numbers, *(frame[name].to_physical().to_numpy() for name in TEXTS)]


READERS: dict[str, Callable[[Path], list[np.ndarray]]] = {
    "polytrain": lambda path: read_table(path, True),
    "pandas": read_pandas,
    "polars": read_polars,
    "polytrain, csv module": lambda path: read_table(path, False),
}


def child(reader: str, path: str, small: str) -> None:
    """Read, and print time, growth of the peak and a sum as JSON."""
    READERS[reader](Path(small))  # late imports
    before = peak_bytes()
    found: list[np.ndarray] = []
    time = seconds(lambda: found.extend(READERS[reader](Path(path))))
    total = float(sum(column.sum() for column in found[:3]))
    print(json.dumps({"seconds": time, "bytes": peak_bytes() - before, "rows": len(found[0]), "sum": total}))


def measure(reader: str, path: Path, small: Path) -> dict:
    command = [sys.executable, "-m", "benchmarks.reading", "--child", reader, str(path), str(small)]
    # One thread each, as far as the readers can be told.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **threads})
    return json.loads(done.stdout)


def compare(path: Path, small: Path, N: int, repeats: int) -> list[dict]:
    write_rows(path, N)
    readers = [reader for reader in READERS if N <= MOST_FOR_CSV or "csv" not in reader]
    runs: dict[str, list[dict]] = {reader: [] for reader in readers}
    for _ in range(repeats):
        for reader in readers:
            runs[reader].append(measure(reader, path, small))
    if len({(run["rows"], round(run["sum"], 3)) for tried in runs.values() for run in tried}) != 1:
        raise SystemExit("the readers do not agree about the numbers")
    least = {reader: min(run["seconds"] for run in tried) for reader, tried in runs.items()}
    return [
        {
            "rows": N,
            "reader": reader,
            "seconds": least[reader],
            "million rows / s": N / 1e6 / least[reader],
            "time / polytrain": least[reader] / least["polytrain"],
            "peak MB": min(run["bytes"] for run in runs[reader]) / MB,
            "file MB": path.stat().st_size / MB,
        }
        for reader in readers
    ]


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", help="sizes of the tables, instead of a million")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        child(*arguments.child)
        return
    report = Report("reading", arguments.quick)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("pyarrow", "pandas", "polars"))
    report.note(versions)
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder, "rows.csv"), Path(folder, "small.csv")
        write_rows(small, 20_000)
        for N in arguments.rows or [100_000 if arguments.quick else 1_000_000]:
            rows = compare(path, small, N, 1 if N > 2_000_000 else 3)
            report.table(f"CSV, {N} rows, 3 columns of numbers and 2 of text", rows)
            own = rows[0]
            report.figure(f"time / pandas, {N} rows", 1 / rows[1]["time / polytrain"], "x")
            report.figure(f"peak / file, {N} rows", own["peak MB"] / own["file MB"], "x")
            if N <= MOST_FOR_CSV:
                report.figure(f"csv module / polytrain, {N} rows", rows[3]["time / polytrain"], "x", at_least=5.0)
    report.finish()


if __name__ == "__main__":
    main()
