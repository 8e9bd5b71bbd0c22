"""The common way to report: an aligned table on the terminal, the same as JSON beside it.

A full run writes ``results/NAME.json``, a quick one ``results/NAME-quick.json``, so that a smoke run never overwrites
figures that took an hour. Both hold the machine, the library versions and the BLAS threads.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("polytrain", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")

#: Rounding allowed on a target, relative.
_ROUNDING = 1e-6


def make_parser(doc: str) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has; the first line of the module's text describes it."""
    parser = argparse.ArgumentParser(
        description=doc.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smaller run, to see that all is well")
    return parser


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def describe_machine() -> dict[str, Any]:
    """Processor, load, versions and native thread pools: what a figure depends on besides the code."""
    pools = [
        {key: pool[key] for key in ("internal_api", "version", "num_threads", "threading_layer") if key in pool}
        for pool in threadpool_info()
    ]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "thread_pools": pools,
    }


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return "" if value is None else str(value)


def _is_number(word: str) -> bool:
    try:
        float(word.replace(",", "") or 0)
    except ValueError:
        return False
    return True


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with the same keys as aligned text; columns of numbers are aligned to the right."""
    names = list(rows[0])
    columns = []
    for name in names:
        words = [name, *(_word(row[name]) for row in rows)]
        numeric = all(_is_number(word) for word in words[1:])
        width = max(map(len, words))
        columns.append([word.rjust(width) if numeric else word.ljust(width) for word in words])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def markdown_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with the same keys as a Markdown table; columns of numbers are aligned to the right."""
    names = list(rows[0])
    numeric = [all(_is_number(_word(row[name])) for row in rows) for name in names]
    lines = [names, ["---:" if right else "---" for right in numeric]]
    lines += [[_word(row[name]) for name in names] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Figure:
    """One number to be judged; without a target it is only told."""

    name: str
    value: float
    unit: str = ""
    target: float | None = None
    at_least: bool = True

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        room = _ROUNDING * abs(self.target)
        return bool(self.value >= self.target - room if self.at_least else self.value <= self.target + room)

    def row(self) -> dict[str, object]:
        sign = ">=" if self.at_least else "<="
        close = self.target is not None and abs(self.value - self.target) < 0.01 * abs(self.target)
        return {
            "figure": self.name,
            "value": f"{self.value:.7g}" if close else float(self.value),
            "unit": self.unit,
            "target": "" if self.target is None else f"{sign} {self.target:g}",
            "met": "" if self.met is None else _word(self.met),
        }


class Report:
    """Collects the tables and figures of one benchmark, prints them as they come, and writes them at the end."""

    def __init__(self, name: str, quick: bool) -> None:
        self.name, self.quick = name, quick
        self.file_stem = f"{name}-quick" if quick else name
        self._machine = describe_machine()
        self._tables: dict[str, list[dict]] = {}
        self._figures: list[Figure] = []
        libraries = self._machine["libraries"]
        print(f"\n=== {name}{' (quick)' if quick else ''} ===")
        print(
            f"{self._machine['processor']}, {self._machine['cores']} cores, load {self._machine['load_at_start']}; "
            f"python {self._machine['python']}, " + ", ".join(f"{key} {libraries[key]}" for key in LIBRARIES)
        )

    def table(self, title: str, rows: Sequence[Mapping[str, object]], *, markdown: bool = False) -> None:
        self._tables[title] = [dict(row) for row in rows]
        print(f"\n{title}\n\n{markdown_table(rows)}" if markdown else f"\n{title}\n{format_table(rows)}", flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)

    def figure(
        self, name: str, value: float, unit: str = "", *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Add a number; ``at_least`` or ``at_most`` gives its target."""
        target = at_least if at_least is not None else at_most
        self._figures.append(Figure(name, float(value), unit, target, at_most is None))

    def plot_path(self, suffix: str = "") -> Path:
        RESULTS.mkdir(exist_ok=True)
        return RESULTS / f"{self.file_stem}{suffix}.png"

    def finish(self) -> None:
        """Print the figures with their targets and write everything as JSON."""
        if self._figures:
            print(
                "\nFigures" + (" (quick run: fewer repeats or smaller than the targets ask for)" if self.quick else "")
            )
            print(format_table([figure.row() for figure in self._figures]))
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.file_stem}.json"
        content = {
            "benchmark": self.name,
            "quick": self.quick,
            "machine": self._machine,
            "figures": [{**asdict(figure), "met": figure.met} for figure in self._figures],
            "tables": self._tables,
        }
        path.write_text(json.dumps(content, indent=1, default=float) + "\n")
        print(f"\nwritten: {path.parent.parent.name}/{path.parent.name}/{path.name}", flush=True)
