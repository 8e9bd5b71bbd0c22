"""A reproduction in words and tables: the live table of the terminal, and the Markdown page."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polytrain.version import __version__
from polytrain_paper.experiments.paper_tables import LOSS_NAMES
from polytrain_paper.experiments.results import markdown_table, percent, seconds
from polytrain_paper.experiments.settings import REFERENCE_D, REFERENCE_RANK, Settings

__all__ = ["LiveTable", "describe_run", "markdown_page"]


class LiveTable:
    """A table whose widths are known before its first line.

    Parameters
    ----------
    dataset : str
        Decides whether there are published figures to show.
    several_starts : bool
        Whether lines must say which start they belong to.
    """

    def __init__(self, dataset: str, several_starts: bool = False) -> None:
        self._columns = ["loss", "d", "degree", "rank", "alpha", "train %", "test %", "fit s"]
        if several_starts:
            self._columns.insert(1, "start")
        if dataset != "digits":
            self._columns += ["paper: train %", "test %", "s"]
        self._widths = [max(6, len(column)) for column in self._columns]

    def head(self) -> list[str]:
        """Return the lines above the first row."""
        return [self._join(self._columns), self._join(["-" * width for width in self._widths])]

    def line(self, row: Mapping[str, Any]) -> str:
        """Return one row."""
        cells = {
            **{name: str(row[name]) for name in ("d", "degree", "rank")},
            "loss": LOSS_NAMES[row["loss"]],
            "start": row["init"],
            "alpha": f"{row['alpha']:g}",
            "train %": percent(row["train_error"]),
            "fit s": seconds(row["fit_seconds"]),
            "paper: train %": percent(row["paper_train_error"]),
            "s": seconds(row["paper_seconds"]),
        }
        tests = iter([percent(row["test_error"]), percent(row["paper_test_error"])])
        return self._join([next(tests) if column == "test %" else cells[column] for column in self._columns])

    def _join(self, cells: Sequence[str]) -> str:
        return "  ".join(cell.rjust(width) for cell, width in zip(cells, self._widths, strict=True))


def describe_run(settings: Settings, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say, in sentences, how the figures of these rows came about."""
    where = (
        "for every row"
        if settings.cv_per == "row"
        else f"once per loss and degree, at d = {REFERENCE_D} and rank {REFERENCE_RANK} or the row's own if that is "
        "smaller"
    )
    drawn = "all training rows" if settings.cv_rows is None else f"{settings.cv_rows} training rows drawn at random"
    starts = " and ".join(dict.fromkeys(row["init"] for row in rows))
    sweeps = "one sweep" if settings.cv_sweeps == 1 else f"{settings.cv_sweeps} sweeps"
    return [
        f"Features: {settings.features}, fitted on training images only, scaled to [-1, 1].",
        f"alpha: {settings.folds}-fold cross-validation on {drawn}, {where}; {len(settings.alphas)} values from "
        f"{max(settings.alphas):g} to {min(settings.alphas):g}, {sweeps} each from the linear start.",
        f"Fits: {starts} start, at most {settings.max_sweeps} one-way sweeps, stop at a relative change of "
        f"{settings.tol:g}, one train per class, seed {settings.seed}.",
        "The test set was used for nothing but the test errors.",
    ]


def markdown_page(
    settings: Settings,
    rows: Sequence[Mapping[str, Any]],
    choices: Sequence[Mapping[str, Any]],
    jobs: int,
) -> str:
    """Return the page with the tables, how they came about, and the errors behind each choice of alpha."""
    total = sum(row["fit_seconds"] for row in rows)
    choosing = sum(choice["seconds"] for choice in choices)
    lines = [
        f"## {settings.dataset}, {settings.features} features",
        "",
        *describe_run(settings, rows),
        f"Fits took {total:.0f} s and cross-validation {choosing:.0f} s with --jobs {jobs} "
        f"(polytrain {__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}).",
        "",
        markdown_table(rows),
        "### Errors in cross-validation (%)",
        "",
        f"| loss | d | degree | rank | rows | {' | '.join(f'alpha {alpha:g}' for alpha in choices[0]['alphas'])} |",
        f"|---|{'---:|' * (4 + len(choices[0]['alphas']))}",
    ]
    for choice in choices:
        best = min(choice["errors"])
        errors = [f"**{percent(error)}**" if error == best else percent(error) for error in choice["errors"]]
        named = [LOSS_NAMES[choice["loss"]], *(str(choice[name]) for name in ("d", "degree", "rank", "n_rows"))]
        lines.append(f"| {' | '.join([*named, *errors])} |")
    return "\n".join(lines) + "\n"
