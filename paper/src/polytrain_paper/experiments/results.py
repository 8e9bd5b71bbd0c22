"""What survives of a run: one small file per finished job, and the tables made from them.

A job is anything that takes time: a row of a table, a choice of alpha, a convergence curve. Its key holds everything
that the result depends on. A finished job is written to a file of its own in one step (temporary file, fsync, rename),
so a process may be killed at any moment: a file is there whole, or not at all.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polytrain.atomic_file import write_atomically
from polytrain_paper.experiments.paper_tables import LOSS_NAMES

__all__ = ["COLUMNS", "JobStore", "markdown_table", "rows_as_csv"]

#: Fields of a row in results.json and results.csv. Errors are fractions, times in seconds; ``n_rows`` are the training
#: rows.
COLUMNS = (
    "dataset",
    "features",
    "init",
    "loss",
    "d",
    "degree",
    "rank",
    "alpha",
    "cv_error",
    "train_error",
    "test_error",
    "fit_seconds",
    "n_parameters",
    "n_rows",
    "paper_train_error",
    "paper_test_error",
    "paper_seconds",
)


class JobStore:
    """Finished jobs in a folder.

    Parameters
    ----------
    folder : Path
        Where the files are; made when the first job is finished.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polytrain_paper.experiments.results import JobStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = JobStore(Path(folder) / "finished")
    ...     store.put({"kind": "row", "d": 20}, {"test_error": 0.02})
    ...     store.get({"kind": "row", "d": 20}), store.get({"kind": "row", "d": 25})
    ({'test_error': 0.02}, None)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, key: Mapping[str, Any]) -> Path:
        digest = hashlib.sha256(_canonical(key).encode()).hexdigest()
        return self._folder / f"{key['kind']}-{digest[:24]}.json"

    def get(self, key: Mapping[str, Any]) -> Any:
        """Return the result of the job with exactly this key, or None. An unreadable file counts as not finished."""
        try:
            job = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(job, dict) or "result" not in job or _canonical(job.get("key")) != _canonical(key):
            return None
        return job["result"]

    def put(self, key: Mapping[str, Any], result: Any) -> None:
        """Keep a result."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path(key), json.dumps({"key": key, "result": result}, indent=1) + "\n")

    def clear(self) -> None:
        """Forget all finished jobs."""
        for path in self._folder.glob("*.json"):
            path.unlink()


def _canonical(key: Any) -> str:
    return json.dumps(key, sort_keys=True)


def rows_as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV; what the paper does not report is left empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def percent(fraction: float | None) -> str:
    """Return a fraction as per cent with two digits, or a dash."""
    return "-" if fraction is None else f"{100 * fraction:.2f}"


def seconds(value: float | None) -> str:
    """Return seconds with a digit that means something, or a dash."""
    return "-" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


# Head of a column, the field it shows, how the field is written.
_MARKDOWN: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("d", "d", str),
    ("degree", "degree", str),
    ("rank", "rank", str),
    ("alpha", "alpha", lambda alpha: f"{alpha:g}"),
    ("CV error %", "cv_error", percent),
    ("train error %", "train_error", percent),
    ("test error %", "test_error", percent),
    ("fit s", "fit_seconds", seconds),
    ("paper: train %", "paper_train_error", percent),
    ("test %", "paper_test_error", percent),
    ("s", "paper_seconds", seconds),
)


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return one Markdown table per loss (and start), without the columns that no row has a figure for."""
    parts = []
    groups = dict.fromkeys((row["loss"], row["init"]) for row in rows)
    several_starts = len({init for _, init in groups}) > 1
    for loss, init in groups:
        members = [row for row in rows if (row["loss"], row["init"]) == (loss, init)]
        columns = [column for column in _MARKDOWN if _is_shown(column[1], members)]
        title = f"{LOSS_NAMES[loss]} ({loss} loss{f', {init} start' if several_starts else ''})"
        lines = [f"### {title}", "", _line(head for head, _, _ in columns), _line(["---:"] * len(columns))]
        lines += [_line(write(row[field]) for _, field, write in columns) for row in members]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _is_shown(field: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a column has something to say; errors of some rows in cross-validation would compare with nothing."""
    known = [row[field] is not None for row in rows]
    return all(known) if field == "cv_error" else any(known)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
