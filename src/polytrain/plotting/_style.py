"""Colours, markers and axes that all pictures share. matplotlib is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polytrain.palette import COLOURS

__all__ = [
    "COLOURS",
    "LINE_STYLES",
    "MARKERS",
    "SHARES",
    "SURFACE",
    "begin_plot",
    "clean_axes",
    "line_style",
    "make_panels",
    "shorten",
]

MARKERS = "osD^vPX*"
LINE_STYLES = ("-", "--", "-.", ":")

#: Colour maps with even steps in brightness, readable without colour: for surfaces, and for shares that begin at 0.
SURFACE = "cividis"
SHARES = "Blues"


def begin_plot(ax: Any, width: float = 6.4, height: float = 4.4) -> tuple[Any, Any]:
    """Return the figure and the axes to draw in; a new figure if ``ax`` is None."""
    if ax is not None:
        return ax.figure, ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib; install it with pip install 'polytrain[plot]'.") from error
    return plt.subplots(figsize=(width, height), layout="constrained")


def make_panels(
    n_rows: int, n_columns: int, width: float, height: float, *, sharex: bool | str = False, sharey: bool | str = False
) -> tuple[Any, Any]:
    """Return a figure of its own, apart from pyplot, and its axes (n_rows, n_columns) over a pale grid."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=sharex, sharey=sharey)  # type: ignore[arg-type]
    for ax in axes.flat:
        ax.grid(True, which="major", color="0.9")
        ax.set_axisbelow(True)
        clean_axes(ax)
    return figure, axes


def clean_axes(ax: Any, title: str = "") -> None:
    """Take away what says nothing: the upper and the right border; set the title in the size of the text."""
    ax.set_title(title, fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def line_style(index: int) -> dict[str, Any]:
    """Colour, marker and dashes of line ``index``: no two of the first 32 are alike, even without colour."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINE_STYLES[index // len(COLOURS) % len(LINE_STYLES)],
    }


def shorten(names: Sequence[str], length: int = 24) -> list[str]:
    """Cut long names, so that they do not push the picture aside."""
    return [name if len(name) <= length else name[: length - 1] + "…" for name in names]
