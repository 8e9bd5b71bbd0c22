"""Colours, lines, bars and axes that all pictures share. matplotlib is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.checks import need
from polytrain.texts import printable

#: Hues of Okabe and Ito's palette, which colour-blind readers tell apart, dark enough for thin lines on white; then
#: black and grey.
COLOURS = ("#0072B2", "#C04F00", "#00805E", "#A8497F", "#5A5FC7", "#8A6A00", "#000000", "#7F7F7F")
#: The same hues for a dark background.
DARK_COLOURS = ("#56B4E9", "#F0A04B", "#3FC79A", "#E08FC0", "#A3A8FF", "#E0C04A", "#FFFFFF", "#A0A0A0")
#: Background, text, axes, grid lines and boxes, on light and on dark pages.
PAPER = {"paper": "#fff", "ink": "#1c1e21", "muted": "#5b6168", "rule": "#d5d9de", "panel": "#f4f6f8"}
DARK_PAPER = {"paper": "#14171a", "ink": "#e8eaed", "muted": "#a3abb3", "rule": "#3a4047", "panel": "#1f2429"}

#: Markers of lines and points, in the order of the colours.
MARKERS = "osD^vPX*"
_LINE_STYLES = ("-", "--", "-.", ":")
# More lines than this cannot be told apart; they are drawn alike.
_MAX_LINES = 10


class Display:
    """A picture in one pair of axes: ``plot`` makes them and ``_draw`` fills them."""

    def plot(self, ax: Any = None) -> Self:
        """Draw into ``ax``, or into a new figure, and return the display."""
        self.figure_, (self.ax_,) = begin_plots(None if ax is None else [ax], 1, *self._size())
        self._draw(self.ax_)
        return self

    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure."""
        return 6.4, 4.4

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def begin_plots(axes: Any, count: int, width: float = 3.4, height: float = 3.1) -> tuple[Any, list[Any]]:
    """Return the figure and ``count`` axes of this size; a new figure with four side by side if ``axes`` is None."""
    if axes is not None:
        given = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(given) < count:
            raise ValueError(f"axes must be at least {count}, one per picture, got {len(given)}.")
        return given[0].figure, given[:count]
    across, down = min(count, 4), -(-count // 4)
    figure, grid = need("a picture", "plot", "matplotlib.pyplot").subplots(
        down, across, figsize=(width * across, height * down), layout="constrained", squeeze=False
    )
    for ax in grid.ravel()[count:]:
        ax.set_visible(False)
    return figure, list(grid.ravel()[:count])


def clean_axes(ax: Any, title: str = "") -> None:
    """Remove the upper and the right border; set the title in the size of the text."""
    ax.set_title(title, fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def line_style(index: int) -> dict[str, Any]:
    """Colour, marker and dashes of line ``index``: no two of the first 32 are alike, even without colour."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": _LINE_STYLES[index // len(COLOURS) % len(_LINE_STYLES)],
    }


def draw_lines(
    ax: Any,
    curves: Sequence[tuple[Any, Any]],
    names: Sequence[str],
    *,
    indices: Sequence[int] | None = None,
    what: str = "lines",
    joined: bool = True,
) -> None:
    """Draw curves (x, y), or points, in the styles ``indices``, with a legend; more than ten of them all alike."""
    many = len(curves) > _MAX_LINES
    for index, (x, y), name in zip(indices or range(len(curves)), curves, names, strict=True):
        if many:
            label = f"each of {len(curves)} {what}" if not ax.lines else None
            ax.plot(x, y, "-", color=COLOURS[0], alpha=0.4, linewidth=1, label=label)
        else:
            style = line_style(index) | ({"markevery": max(len(x) // 8, 1)} if joined else {"linestyle": "none"})
            ax.plot(x, y, markersize=5, label=shorten([name])[0], **style)
    ax.grid(True, which="major", color=PAPER["rule"], linewidth=0.8)
    ax.set_axisbelow(True)
    if len(curves) > 1:
        ax.legend(fontsize="small", ncols=2 if 5 < len(curves) <= _MAX_LINES else 1)


def draw_bars(
    ax: Any,
    labels: Sequence[str],
    values: ArrayLike,
    *,
    marked: ArrayLike = False,
    starts: ArrayLike = 0.0,
    numbers: Sequence[str] = (),
    legend: tuple[str, str] | None = None,
) -> None:
    """Draw horizontal bars from ``starts``, the first at the top.

    Bars that are ``marked`` have the second colour and a hatch, ``numbers`` are texts at the right ends, and ``legend``
    has the names of both colours.
    """
    lengths = np.asarray(values, dtype=float)
    places = np.arange(len(lengths))
    left, second = np.broadcast_to(starts, lengths.shape), np.broadcast_to(marked, lengths.shape)
    look = {"edgecolor": "white", "height": 0.75, "zorder": 2}
    for index, mask in enumerate((~second, second)):
        if mask.any():
            look |= {"color": COLOURS[index], "hatch": ("", "//")[index], "label": legend[index] if legend else None}
            ax.barh(places[mask], lengths[mask], left=left[mask], **look)
    note = {"textcoords": "offset points", "va": "center", "fontsize": "small", "zorder": 3}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    for place, (text, end) in enumerate(zip(numbers, np.maximum(left, left + lengths), strict=False)):
        ax.annotate(text, (end, place), xytext=(4, 0), bbox=box, **note)
    for tick in ax.set_yticks(places, labels):
        for text in (tick.label1, tick.label2):
            text.set_parse_math(False)  # a dollar in a name is a dollar
    ax.set_ylim(len(lengths) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=4)  # long names leave little room for numbers
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(fontsize="small", loc="best")


def place_values(ax: Any, axis: str, grid: NDArray, length: int = 24) -> NDArray:
    """Return where values are drawn on the axis "x" or "y"; levels (objects) are side by side, with their names."""
    if grid.dtype != object:
        return grid
    places = np.arange(len(grid))
    rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if axis == "x" else {}
    names = shorten(["missing" if level is None else level for level in grid], length)
    getattr(ax, f"set_{axis}ticks")(places, names, parse_math=False, **rotated)
    return places


def shorten(names: Sequence[object], length: int = 24) -> list[str]:
    """Cut long names, and write out characters that change a line, so that they do not spoil the picture."""
    texts = [printable(name) for name in names]
    return [text if len(text) <= length else text[: length - 1] + "…" for text in texts]
