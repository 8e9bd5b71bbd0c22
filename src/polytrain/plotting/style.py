"""Colours, lines, bars and axes that all pictures share. matplotlib is imported when something is drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytrain.checks import need
from polytrain.texts import printable, tick_texts

#: Two hues of Okabe and Ito's palette, then others as distinct as possible, also for red- and green-blind
#: readers, and dark enough for thin lines on white.
COLOURS = (
    "#0072B2", "#C04F00", "#255D4D", "#AE117C", "#5716BE", "#B98A21",
    "#000000", "#8C8C8C", "#588AE7", "#557E54", "#6C2600", "#6D0463",
)  # fmt: skip
#: About the same hues for a dark background.
DARK_COLOURS = (
    "#56B4E9", "#F0A04B", "#278955", "#D25C88", "#6A56EC", "#E5E0B3",
    "#FFFFFF", "#BDBDBD", "#5E8EB9", "#B3F03C", "#DA4419", "#EAD4FD",
)  # fmt: skip
#: Background, text, axes, grid lines and boxes, on light and on dark pages.
PAPER = {"paper": "#fff", "ink": "#1c1e21", "muted": "#5b6168", "rule": "#d5d9de", "panel": "#f4f6f8"}
DARK_PAPER = {"paper": "#14171a", "ink": "#e8eaed", "muted": "#a3abb3", "rule": "#3a4047", "panel": "#1f2429"}

#: Markers of lines and points, in the order of the colours.
MARKERS = "osD^vPX*<>hd"
_LINE_STYLES = ("-", "--", "-.", ":")
# More lines than this are indistinguishable and drawn in one style.
_MAX_LINES = 10
# Characters in a line of a legend, and in the numbers below an axis.
_LEGEND_LETTERS, _TICK_LETTERS = 24, 44


class Display:
    """A picture in one pair of axes: ``plot`` makes them and ``_draw`` fills them."""

    def plot(self, ax: Any = None) -> Self:
        """Draw into ``ax``, or into a new figure, and return the display."""
        self.figure_, (self.ax_,) = begin_plots(None if ax is None else [ax], 1, *self._size())
        self._draw(self.ax_)
        write_ticks(self.ax_)
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


def write_ticks(ax: Any) -> None:
    """Write the numbers at axes and at their colour bars as `tick_texts` does; levels and dates stay as they are."""
    from matplotlib.ticker import Formatter, FuncFormatter, MaxNLocator, ScalarFormatter

    def write(axis: Any) -> None:
        def texts(*more: float) -> list[str]:
            return tick_texts([*axis.get_majorticklocs().tolist(), *more])

        axis.set_major_formatter(FuncFormatter(lambda value, _: Formatter.fix_minus(texts(float(value))[-1])))
        longest = max(map(len, texts()), default=0)
        if axis.axis_name == "x" and longest > 4 and isinstance(axis.get_major_locator(), MaxNLocator):
            axis.get_major_locator().set_params(nbins=max(_TICK_LETTERS // (longest + 2), 1))

    bars = [drawn.colorbar.ax for drawn in (*ax.collections, *ax.images) if drawn.colorbar is not None]
    for axis in (axis for some in (ax, *bars) for axis in (some.xaxis, some.yaxis)):
        if type(axis.get_major_formatter()) is ScalarFormatter:
            write(axis)


def titled(name: object) -> dict[str, str]:
    """Give an element its full name; pages show it as the title of the element where labels are shortened."""
    return {"gid": f"title:{printable(name)}"}


def line_style(index: int) -> dict[str, Any]:
    """Colour, marker and dashes of line ``index``: no two of the first 48 are alike, also without colour."""
    turn = index // len(COLOURS)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[(index + turn) % len(MARKERS)],
        "linestyle": _LINE_STYLES[turn % len(_LINE_STYLES)],
    }


def draw_lines(
    ax: Any,
    curves: Sequence[tuple[Any, Any]],
    names: Sequence[str],
    *,
    indices: Sequence[int] | None = None,
    what: str = "lines",
    joined: bool = True,
    marked: Collection[int] = (),
) -> None:
    """Draw curves (x, y), or points, in the styles ``indices``, with a legend.

    Of more than ten, only those at the places ``marked`` have a style; the others are alike, and grey.
    """
    grey = set(range(len(curves))) - set(marked) if len(curves) > _MAX_LINES else set()
    of_what = f"{len(grey)} other {what}" if marked else f"each of {len(grey)} {what}"
    for place, (index, (x, y), name) in enumerate(zip(indices or range(len(curves)), curves, names, strict=True)):
        if place in grey:
            label = of_what if place == min(grey) else None
            ax.plot(x, y, "-", color=PAPER["muted"], alpha=0.4, linewidth=1, label=label, **titled(name))
        else:
            style = line_style(index) | ({"markevery": max(len(x) // 8, 1)} if joined else {"linestyle": "none"})
            ax.plot(x, y, markersize=5, label=legend_text(name), **style, **titled(name))
    ax.grid(True, which="major", color=PAPER["rule"], linewidth=0.8)
    ax.set_axisbelow(True)
    if len(curves) > 1:
        ax.legend(fontsize="small", ncols=2 if 5 < len(curves) <= _MAX_LINES else 1)


def legend_text(name: object) -> str:
    """Return a name for a legend: long ones on several lines, very long ones shortened."""
    return textwrap.fill(shorten([name], 3 * _LEGEND_LETTERS)[0], _LEGEND_LETTERS)


def draw_bars(
    ax: Any,
    labels: Sequence[str],
    values: ArrayLike,
    *,
    marked: ArrayLike = False,
    starts: ArrayLike = 0.0,
    numbers: Sequence[str] = (),
    legend: tuple[str, str] | None = None,
    names: Sequence[object] = (),
) -> None:
    """Draw horizontal bars from ``starts``, the first at the top.

    Bars that are ``marked`` have the second colour and a hatch, ``numbers`` are texts at the right ends, ``legend``
    has the names of both colours, and ``names`` are those of the labels in full.
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
    # No mathematics: a dollar sign in a name is only a character.
    for tick, name in zip(ax.set_yticks(places, labels, parse_math=False), names or labels, strict=True):
        tick.label1.set(**titled(name))
    ax.set_ylim(len(lengths) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=4)  # long names leave little room for numbers
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(fontsize="small", loc="best")


def place_values(ax: Any, axis: str, grid: NDArray, length: int = 24) -> NDArray:
    """Return where values are drawn on the axis "x" or "y"; levels (objects) are side by side, with their names."""
    if grid.dtype != object:
        # There is nothing to read between whole numbers.
        if grid.dtype.kind == "f" and np.ptp(grid) >= 1 and np.all(grid == np.round(grid)):
            getattr(ax, f"{axis}axis").get_major_locator().set_params(integer=True)
        return grid
    places = np.arange(len(grid))
    rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if axis == "x" else {}
    names = shorten(["missing" if level is None else level for level in grid], length)
    ticks = getattr(ax, f"set_{axis}ticks")(places, names, parse_math=False, **rotated)
    for tick, level in zip(ticks, grid, strict=True):
        tick.label1.set(**titled(level))
    return places


def shorten(names: Sequence[object], length: int = 24) -> list[str]:
    """Shorten long names in the middle, since some differ at the end only; write out characters that change a line."""
    texts = [printable(name) for name in names]
    tail = (length - 1) // 2
    return [text if len(text) <= length else f"{text[: length - 1 - tail]}…{text[-tail:]}" for text in texts]
