"""Run the benchmarks one after the other, each in a process of its own, and list all figures at the end.

    python -m benchmarks                     the quick set, a few minutes
    python -m benchmarks --full              everything, at the sizes that the targets speak of
    python -m benchmarks --only growth mnist

MNIST and USPS are read from the folder that POLYTRAIN_DATA names; benchmarks that lack their data say so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from benchmarks.report import RESULTS, Figure, format_table

NAMES = (
    "kernels",
    "small_fits",
    "two_site",
    "calibration",
    "averaging",
    "streams",
    "paper_fit",
    "mnist",
    "virtual_mnist",
    "growth",
    "memory",
    "parallel",
    "cluster",
    "prediction",
)


def run(name: str, full: bool) -> tuple[int, list[dict]]:
    """Exit code of one benchmark, and the rows of its figures."""
    path = RESULTS / f"{name if full else name + '-quick'}.json"
    started = time.time()
    command = [sys.executable, "-m", f"benchmarks.{name}", *([] if full else ["--quick"])]
    code = subprocess.run(command, check=False).returncode
    if code or not path.exists() or path.stat().st_mtime < started - 1:  # failed or skipped: nothing new to tell
        return code, []
    figures = json.loads(path.read_text())["figures"]
    rows = [Figure(**{key: value for key, value in figure.items() if key != "met"}).row() for figure in figures]
    return code, [{"benchmark": name, **row} for row in rows]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="full sizes and all rivals")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="names of benchmarks")
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    rows, failed = [], []
    for name in arguments.only:
        code, figures = run(name, arguments.full)
        rows += figures
        if code:
            failed.append(name)
    if rows:
        print(f"\n=== all figures, {time.perf_counter() - started:.0f} s ===\n{format_table(rows)}")
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
