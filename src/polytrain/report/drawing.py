"""Small pictures in SVG that follow the page's colours, light or dark, and say in words what they show.

Conventions
-----------
A picture is `WIDTH` units wide, about the width of a phone, so that its text keeps its size there. Colours are CSS
variables of the page. Every picture has ``role="img"``, a title and a description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import count

__all__ = ["bar_chart", "line_chart", "scatter_chart"]

WIDTH = 360
_RIGHT, _TOP, _BOTTOM = 12, 10, 38
_COLOURS = tuple(f"var(--series{k})" for k in range(6))
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_ids = count()


def _picture(height: float, title: str, description: str, parts: Sequence[str]) -> str:
    name = f"picture{next(_ids)}"
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height:g}" aria-labelledby="{name}t {name}d">'
        f'<title id="{name}t">{escape(title)}</title><desc id="{name}d">{escape(description)}</desc>'
        f'<g aria-hidden="true">{"".join(parts)}</g></svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "label") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def shorten(text: str, length: int) -> str:
    """Cut long text."""
    return text if len(text) <= length else text[: length - 1] + "…"


def bar_chart(title: str, items: Sequence[tuple[str, float, str]], description: str) -> str:
    """Draw one bar for every (name, value, value as text), with the name above it, so that long names have room."""
    row, top = 34, 4
    largest = max((abs(value) for _, value, _ in items), default=0.0) or 1.0
    parts = []
    for k, (name, value, shown) in enumerate(items):
        y = top + row * k
        width = max((WIDTH - 4) * abs(value) / largest, 1.0)
        colour = "var(--series1)" if value < 0 else "var(--series0)"
        parts += [
            f"<g><title>{escape(f'{name}: {shown}')}</title>",
            _text(2, y + 12, shorten(name, 44)),
            _text(WIDTH - 2, y + 12, shown, "end", "value"),
            f'<rect x="2" y="{y + 17}" width="{width:.1f}" height="9" rx="2" fill="{colour}"/></g>',
        ]
    return _picture(top + row * len(items), title, description, parts)


def _ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Round numbers between two bounds."""
    span = high - low or 1.0
    step = 10.0 ** math.floor(math.log10(span / n))
    step *= next((factor for factor in (1, 2, 5) if span / (step * factor) <= n), 10)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


class _Frame:
    """Axes of a picture: places of values, and the lines around them."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], height: float) -> None:
        self.x, self.y, self.height = x, y, height
        self.y_ticks = _ticks(*y)
        # Room for the longest number, and for the axis's name beside it.
        self.left = 26 + 6.5 * max((len(f"{value:g}") for value in self.y_ticks), default=1)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Place of a pair of values."""
        (x0, x1), (y0, y1) = self.x, self.y
        across = (x - x0) / ((x1 - x0) or 1.0)
        up = (y - y0) / ((y1 - y0) or 1.0)
        return (
            self.left + across * (WIDTH - self.left - _RIGHT),
            self.height - _BOTTOM - up * (self.height - _TOP - _BOTTOM),
        )

    def axes(self, x_name: str, y_name: str, x_ticks: Sequence[float] | None = None) -> list[str]:
        """Draw grid, numbers and names."""
        parts = []
        for value in self.y_ticks:
            x, y = self.at(self.x[0], value)
            parts.append(f'<path class="grid" d="M{x:.1f} {y:.1f}H{WIDTH - _RIGHT}"/>')
            parts.append(_text(x - 5, y + 4, f"{value:g}", "end", "tick"))
        for value in _ticks(*self.x) if x_ticks is None else x_ticks:
            x, y = self.at(value, self.y[0])
            parts.append(f'<path class="grid" d="M{x:.1f} {y:.1f}v4"/>')
            parts.append(_text(x, y + 16, f"{value:g}", "middle", "tick"))
        parts.append(_text((self.left + WIDTH - _RIGHT) / 2, self.height - 5, x_name, "middle", "axis"))
        middle = (self.height - _BOTTOM + _TOP) / 2
        turned = f'transform="translate(11 {middle:.1f}) rotate(-90)"'
        parts.append(f'<text class="axis" text-anchor="middle" {turned}>{escape(y_name)}</text>')
        return parts


def _bounds(values: Sequence[float], margin: float = 0.04) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = margin * (high - low) or abs(high) * margin or 1.0
    return low - room, high + room


def line_chart(
    title: str,
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    names: tuple[str, str],
    description: str,
    *,
    bounds: tuple[tuple[float, float], tuple[float, float]] | None = None,
    x_ticks: Sequence[float] | None = None,
    diagonal: bool = False,
) -> str:
    """Draw lines with points; more than six look alike and have no names."""
    height = 240
    points = [point for _, line in series for point in line]
    x, y = bounds or (_bounds([p[0] for p in points]), _bounds([p[1] for p in points]))
    frame = _Frame(x, y, height)
    parts = frame.axes(*names, x_ticks)
    if diagonal:
        (x0, y0), (x1, y1) = frame.at(x[0], x[0]), frame.at(x[1], x[1])
        parts.append(f'<path class="reference" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>')
    few = len(series) <= len(_COLOURS)
    for k, (name, line) in enumerate(series):
        places = [frame.at(*point) for point in line]
        colour = _COLOURS[k if few else 0]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        dash = f' stroke-dasharray="{_DASHES[k % len(_DASHES)]}"' if few and k else ""
        parts.append(f'<g style="color:{colour}"><title>{escape(name)}</title>')
        parts.append(f'<path class="line{"" if few else " thin"}" d="M{path}"{dash}/>')
        parts += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{3 if few else 1.5}" fill="currentColor"/>' for px, py in places
        ]
        parts.append("</g>")
    legend = [(name, k) for k, (name, _) in enumerate(series)] if few and len(series) > 1 else []
    for k, (name, index) in enumerate(legend):
        left, top = frame.left + (k % 2) * 155, height + 12 + 16 * (k // 2)
        dash = f' stroke-dasharray="{_DASHES[index % len(_DASHES)]}"' if index else ""
        parts.append(f'<path class="line" style="color:{_COLOURS[index]}" d="M{left} {top - 4}h22"{dash}/>')
        parts.append(_text(left + 28, top, shorten(name, 20)))
    return _picture(height + 16 * math.ceil(len(legend) / 2) + (6 if legend else 0), title, description, parts)


def scatter_chart(title: str, points: Sequence[tuple[float, float]], names: tuple[str, str], description: str) -> str:
    """Draw points and the diagonal, both axes alike."""
    low, high = _bounds([value for point in points for value in point])
    frame = _Frame((low, high), (low, high), 320)
    parts = frame.axes(*names)
    (x0, y0), (x1, y1) = frame.at(low, low), frame.at(high, high)
    parts.append(f'<path class="reference" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>')
    places = [frame.at(*point) for point in points]
    parts.append('<g fill="var(--series0)" fill-opacity="0.45">')
    parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2"/>' for px, py in places]
    return _picture(320, title, description, [*parts, "</g>"])
