"""Plots of the benchmarks: colours that colour-blind readers tell apart, markers besides, no global state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from polytrain.plotting import COLOURS, MARKERS
from polytrain_paper.experiments.plots import make_panels


def _axes(n_panels: int = 1) -> tuple:
    figure, axes = make_panels(1, n_panels, 6.4 * max(1, 0.72 * n_panels), 4.6)
    return figure, axes[0]


def plot_growth(path: Path, panels: Iterable[tuple[str, Sequence[float], Sequence[float], float, float]]) -> None:
    """One log-log panel per (label of x, xs, seconds, fitted exponent, allowed exponent)."""
    panels = list(panels)
    figure, axes = _axes(len(panels))
    for ax, (label, xs, times, exponent, allowed) in zip(axes, panels, strict=True):
        line = np.polyfit(np.log(xs), np.log(times), 1)
        ax.loglog(xs, times, MARKERS[0], color=COLOURS[0], label="measured")
        ax.loglog(xs, np.exp(np.polyval(line, np.log(xs))), "-", color=COLOURS[0], label=f"exponent {exponent:.2f}")
        steep = times[0] * (np.asarray(xs) / xs[0]) ** allowed
        ax.loglog(xs, steep, "--", color=COLOURS[1], label=f"exponent {allowed:g} allowed")
        ax.set_xlabel(label)
        ax.set_ylabel("fit time (s)")
        ax.legend()
    figure.savefig(path, dpi=150)


def plot_error_time(path: Path, curve: Sequence[dict], rivals: Sequence[dict], title: str) -> None:
    """Test error against fit time: a curve over ranks, and every rival as a point."""
    figure, (ax,) = _axes()
    times, errors = [row["fit s"] for row in curve], [row["test error %"] for row in curve]
    ax.plot(times, errors, "-o", color=COLOURS[0], label="polytrain, by rank")
    for row in curve:
        ax.annotate(str(row["rank"]), (row["fit s"], row["test error %"]), textcoords="offset points", xytext=(4, 5))
    for index, row in enumerate(rivals, start=1):
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        ax.plot(row["fit s"], row["test error %"], marker, color=colour, markersize=8, label=row["model"])
    ax.set_xscale("log")
    ax.set_yscale("log")
    low, high = (edge([*errors, *(row["test error %"] for row in rivals)]) for edge in (min, max))
    ticks = [tick for tick in (0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 10, 15) if 0.8 * low <= tick <= 1.25 * high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.set_xlabel("fit time (s)")
    ax.set_ylabel("test error (%)")
    ax.set_title(title)
    ax.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def plot_error_rank(
    path: Path, curves: Mapping[str, Sequence[dict]], published: Mapping[str, tuple[float, float]], title: str
) -> None:
    """Test error against rank, one line per curve; what others reached as lines, or bands from least to largest."""
    figure, (ax,) = _axes()
    for (name, curve), colour, marker in zip(curves.items(), COLOURS, MARKERS, strict=False):
        ranks, errors = [row["rank"] for row in curve], [row["error %"] for row in curve]
        ax.plot(ranks, errors, "-", marker=marker, color=colour, label=f"polytrain, {name}")
    for index, (name, (low, high)) in enumerate(published.items(), start=len(curves)):
        colour = COLOURS[index % len(COLOURS)]
        if low < high:
            ax.axhspan(low, high, color=colour, alpha=0.35, linewidth=0, label=name)
        else:
            ax.axhline(low, linestyle="--", color=colour, label=name)
    ax.set_xticks(ranks, [str(rank) for rank in ranks])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("rank")
    ax.set_ylabel("test error (%)")
    ax.set_title(title)
    ax.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def have_matplotlib() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no plot: matplotlib is not installed")
        return False
    return True
