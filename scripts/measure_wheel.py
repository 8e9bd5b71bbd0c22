"""Measure what installing costs: size of the wheel, time of pip, what comes along, and the import of an estimator.

    python scripts/measure_wheel.py . ../before    # folders with a pyproject.toml, in turn

Wheels are built once. Every install goes into a fresh environment, best of several rounds, as the network and other
programs only ever add to a time; pip's cache is warm after the first.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from zipfile import ZipFile

_IMPORT = """
import time
start = time.perf_counter()
from polytrain import TensorTrainClassifier
print(time.perf_counter() - start)
"""


def run(*command: str | Path) -> str:
    """Run a command and return what it prints; where it fails, show why."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_environment(folder: Path) -> Path:
    """Make an empty environment and return its Python."""
    run(sys.executable, "-m", "venv", "--clear", folder)
    return next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())


def seconds(*command: str | Path) -> float:
    """Time a command."""
    started = time.perf_counter()
    run(*command)
    return time.perf_counter() - started


def build(source: Path, scratch: Path) -> Path:
    """Build the wheel of a folder."""
    scratch.mkdir()
    run(sys.executable, "-m", "pip", "wheel", "-q", source.resolve(), "--no-deps", "-w", scratch)
    (wheel,) = scratch.glob("*.whl")
    return wheel


def measure(wheel: Path, scratch: Path) -> dict[str, float]:
    """Install a wheel twice, without and with what it needs, and import it."""
    python = make_environment(scratch)
    pip = (python, "-m", "pip", "--disable-pip-version-check", "-q", "install")
    found = {"install alone, s": seconds(*pip, "--no-deps", wheel)}
    python = make_environment(scratch)
    before = len(run(python, "-m", "pip", "list", "--format=freeze").splitlines())
    found["install with dependencies, s"] = seconds(*pip, wheel)
    found["distributions"] = len(run(python, "-m", "pip", "list", "--format=freeze").splitlines()) - before
    found["import of an estimator, s"] = min(float(run(python, "-c", _IMPORT)) for _ in range(6))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure all folders in turn and print a table."""
    parser = argparse.ArgumentParser(description="Measure what installing a package costs.")
    parser.add_argument("sources", nargs="+", type=Path, help="folders with a pyproject.toml")
    parser.add_argument("--rounds", type=int, default=3, help="installs of each, the best of which counts (default: 3)")
    options = parser.parse_args(arguments)
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        wheels = [build(source, Path(folder) / f"wheel{k}") for k, source in enumerate(options.sources)]
        for wheel in wheels:
            with ZipFile(wheel) as archive:
                whole = sum(member.file_size for member in archive.infolist())
            rows.append({"wheel, MB": wheel.stat().st_size / 1e6, "unpacked, MB": whole / 1e6})
        pairs = list(zip(rows, wheels, strict=True))
        for number in range(options.rounds):
            for row, wheel in pairs[:: -1 if number % 2 else 1]:  # in turn, as the second may find what the first left
                found = measure(wheel, Path(folder) / "environment")
                row.update({key: min(value, row.get(key, value)) for key, value in found.items()})
    print("| |", " | ".join(_title(source) for source in options.sources), "|")
    print("|---" * (1 + len(rows)) + "|")
    for key in rows[0]:
        print(f"| {key} |", " | ".join(f"{row[key]:.3g}" for row in rows), "|")
    return 0


def _title(source: Path) -> str:
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    return f"{project['name']} in {source}"


if __name__ == "__main__":
    sys.exit(main())
