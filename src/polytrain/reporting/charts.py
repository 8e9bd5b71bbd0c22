"""The kinds of pictures of a report; each takes plain numbers and names and returns SVG with its text alternative."""

from __future__ import annotations

import math
from collections.abc import Sequence

from polytrain.reporting.drawing import (
    N_COLOURS,
    WIDTH,
    Frame,
    Point,
    bounds,
    curve,
    dots,
    legend,
    picture,
    shorten,
    text,
)
from polytrain.texts import page_text

__all__ = ["bar_chart", "effect_chart", "heat_map", "interval_chart", "level_chart", "line_chart", "scatter_chart"]

_HEIGHT = 240


def bar_chart(title: str, items: Sequence[tuple[str, float, str]], description: str) -> str:
    """Draw one bar for every (name, value, value as text), with the name above it, so that long names have room.

    Bars begin at the left, or where 0 is if some values are negative.
    """
    row, top = 34, 4
    low, high = min((0.0, *(value for _, value, _ in items))), max((0.0, *(value for _, value, _ in items)))
    scale = (WIDTH - 4) / ((high - low) or 1.0)
    zero = 2 - low * scale
    parts = []
    for k, (name, value, shown) in enumerate(items):
        y, width = top + row * k, max(abs(value) * scale, 1.0)
        colour = "var(--series1)" if value < 0 else "var(--series0)"
        left = zero - width if value < 0 else zero
        parts += [
            f"<g><title>{page_text(f'{name}: {shown}')}</title>",
            text(2, y + 12, shorten(name, 52 - len(shown))),
            text(WIDTH - 2, y + 12, shown, "end", "value"),
            f'<rect x="{left:.1f}" y="{y + 17}" width="{width:.1f}" height="9" rx="2" fill="{colour}"/></g>',
        ]
        if low < 0:
            parts.append(f'<path class="grid" d="M{zero:.1f} {y + 16}v11"/>')
    return picture(top + row * len(items), title, description, parts)


def level_chart(title: str, levels: Sequence[tuple[str, float, int]], description: str) -> str:
    """Draw a bar for every (level, effect, rows), to the left or right of zero, with the rows beside the name."""
    items = [(f"{name} ({n:,} rows)".replace(",", "\u202f"), value, f"{value:+.3g}") for name, value, n in levels]
    return bar_chart(title, items, description)


def interval_chart(title: str, items: Sequence[tuple[str, float, float, float, str]], description: str) -> str:
    """Draw (name, value, low, high, value as text) as points with whiskers over a common axis that begins at 0."""
    row = 40
    highest = max(high for _, _, _, high, _ in items) or 1.0
    frame = Frame((0.0, 1.05 * highest), (0.0, 1.0), row * len(items) + 6)
    frame.left, frame.right = 2, WIDTH - 6
    parts = []
    for k, (name, value, low, high, shown) in enumerate(items):
        y = row * k
        (x0, _), (x, _), (x1, _) = (frame.at(at, 0.0) for at in (low, value, high))
        parts += [
            f'<g style="color:var(--series{min(k, 2)})"><title>{page_text(f"{name}: {shown}")}</title>',
            text(2, y + 13, shorten(name, 48 - len(shown))),
            text(WIDTH - 2, y + 13, shown, "end", "value"),
            f'<path class="grid" d="M2 {y + 26}H{WIDTH - 2}"/>',
            f'<path class="line" d="M{x0:.1f} {y + 26}H{x1:.1f}M{x0:.1f} {y + 21}v10M{x1:.1f} {y + 21}v10"/>',
            f'<circle cx="{x:.1f}" cy="{y + 26}" r="5" fill="currentColor"/></g>',
        ]
    return picture(row * len(items) + 2, title, description, parts)


def line_chart(
    title: str,
    series: Sequence[tuple[str, Sequence[Point]]],
    names: tuple[str, str],
    description: str,
    *,
    limits: tuple[Point, Point] | None = None,
    x_ticks: Sequence[float] | None = None,
    references: Sequence[Sequence[Point]] = (),
    marked: bool = True,
    joined: bool = True,
    ringed: Point | None = None,
) -> str:
    """Draw lines with points; more than six look alike and have no names. Not ``joined``, points without lines.

    ``references`` are dashed lines to compare with, ``ringed`` is a point to look at.
    """
    points = [point for _, line in series for point in line]
    x, y = limits or (bounds([p[0] for p in points]), bounds([p[1] for p in points]))
    frame = Frame(x, y, _HEIGHT)
    parts = frame.axes(*names, x_ticks)
    parts += [frame.reference(*line) for line in references]
    few = len(series) <= N_COLOURS
    for k, (name, line) in enumerate(series):
        if joined:
            parts.append(curve(frame, name, line, k if few else None, marked))
        else:
            parts.append(f'<g style="color:var(--series{k % N_COLOURS})"><title>{page_text(name)}</title>')
            parts.append(dots(frame, line, 7) + "</g>")
    if ringed is not None:
        across, up = frame.at(*ringed)
        parts.append(f'<circle class="ring" cx="{across:.1f}" cy="{up:.1f}" r="7"/>')
    if not few or len(series) < 2:
        return picture(_HEIGHT, title, description, parts)
    below, height = legend([name for name, _ in series], _HEIGHT, joined)
    return picture(_HEIGHT + height, title, description, [*parts, *below])


def scatter_chart(
    title: str, points: Sequence[Point], names: tuple[str, str], description: str, *, level: float | None = None
) -> str:
    """Draw points: around the diagonal, both axes alike, or around a level that is given."""
    if level is None:
        low, high = bounds([value for point in points for value in point])
        x, y, line = (low, high), (low, high), ((low, low), (high, high))
    else:
        x, y = bounds([p[0] for p in points]), bounds([level, *(p[1] for p in points)])
        line = ((x[0], level), (x[1], level))
    frame = Frame(x, y, 300)
    cloud = f'<g style="color:var(--series0)">{dots(frame, points, 4, 0.6)}</g>'
    return picture(300, title, description, [*frame.axes(*names), frame.reference(*line), cloud])


def effect_chart(
    title: str,
    series: Sequence[tuple[str, Sequence[Point]]],
    names: tuple[str, str],
    description: str,
    *,
    band: tuple[Sequence[Point], Sequence[Point]] | None = None,
    density: tuple[Sequence[float], Sequence[float]] = ((), ()),
    missing: Sequence[float] = (),
) -> str:
    """Draw curves of a column over the distribution of its values, with a band, and missing values at the right.

    ``density`` has the edges of bins and the rows in each; ``missing`` a value for every curve.
    """
    heights = [point[1] for _, line in series for point in line] + list(missing)
    heights += [point[1] for line in band or () for point in line]
    low, high = bounds([0.0, *heights], 0.06)
    x = series[0][1][0][0], series[0][1][-1][0]
    frame = Frame(x, (low - 0.22 * (high - low), high), _HEIGHT)
    if missing:
        frame.right -= 44
    parts = _histogram(frame, *density)
    parts += frame.axes(*names)
    parts.append(frame.reference((x[0], 0.0), (x[1], 0.0)))
    if band is not None:
        parts.append(frame.area(*band, "band"))
    parts += [curve(frame, name, line, k, False) for k, (name, line) in enumerate(series)]
    for k, value in enumerate(missing):
        y = frame.at(x[0], value)[1]
        parts.append(f'<circle cx="{WIDTH - 26}" cy="{y:.1f}" r="5" style="fill:var(--series{k})"/>')
    if missing:
        parts.append(text(WIDTH - 26, frame.bottom + 16, "missing", "middle", "tick"))
    if len(series) < 2:
        return picture(_HEIGHT, title, description, parts)
    below, height = legend([name for name, _ in series], _HEIGHT)
    return picture(_HEIGHT + height, title, description, [*parts, *below])


def _histogram(frame: Frame, edges: Sequence[float], rows: Sequence[float]) -> list[str]:
    """Bars at the foot of a picture: how many rows have such a value."""
    most = max(rows, default=0.0)
    if not most:
        return []
    path = ""
    for left, right, n in zip(edges[:-1], edges[1:], rows, strict=True):
        (x0, y0), (x1, _) = frame.at(left, frame.y[0]), frame.at(right, frame.y[0])
        # Roots, so that rare values can still be seen.
        path += f"M{x0:.1f} {y0:.1f}v{-34 * math.sqrt(n / most):.1f}H{x1:.1f}V{y0:.1f}Z"
    return [f'<path class="density" d="{path}"/>']


def heat_map(
    title: str,
    cells: Sequence[Sequence[float]],
    sides: tuple[Sequence[str] | Point, Sequence[str] | Point],
    names: tuple[str, str],
    description: str,
) -> str:
    """Draw a surface: one list of cells for every step across, each from the bottom up.

    ``sides`` has for both axes the names of the steps, or the range of the numbers. Two colours tell above from below
    zero.
    """
    (x, x_edges, x_names), (y, y_edges, y_names) = (
        _steps(side, n) for side, n in zip(sides, (len(cells), len(cells[0])), strict=True)
    )
    height = 280 if x_names is None else 340
    frame = Frame(x, y, height, x_names, y_names)
    largest = max((abs(value) for column in cells for value in column), default=0.0) or 1.0
    parts = frame.axes(*names, lines=False)
    for i, column in enumerate(cells):
        for j, value in enumerate(column):
            (x0, y0), (x1, y1) = frame.at(x_edges[i], y_edges[j]), frame.at(x_edges[i + 1], y_edges[j + 1])
            strength = abs(value) / largest
            if strength >= 0.02:
                kind = "low" if value < 0 else "high"
                # A little wider than they are, since the eye sees seams between neighbours.
                parts.append(
                    f'<rect class="{kind}" x="{x0:.1f}" y="{y1:.1f}" width="{x1 - x0 + 0.3:.1f}" '
                    f'height="{y0 - y1 + 0.3:.1f}" fill-opacity="{0.95 * strength:.2f}"/>'
                )
    scale = [
        f'<rect class="low" x="14" y="{height + 4}" width="12" height="12"/>',
        text(31, height + 14, f"down to {-largest:.3g}"),
        f'<rect class="high" x="189" y="{height + 4}" width="12" height="12"/>',
        text(206, height + 14, f"up to +{largest:.3g}"),
    ]
    return picture(height + 22, title, description, [*parts, *scale])


def _steps(side: Sequence[str] | Point, n: int) -> tuple[Point, list[float], list[str] | None]:
    """Range of an axis, edges of its n steps, and their names if they have any."""
    names = [name for name in side if isinstance(name, str)]
    if names:
        return (-0.5, n - 0.5), [k - 0.5 for k in range(n + 1)], names
    low, high = (float(end) for end in side)
    return (low, high), [low + (high - low) * k / n for k in range(n + 1)], None
