"""What pictures in SVG are made of: axes, marks and the words that say what they show.

Conventions
-----------
A picture is `WIDTH` units wide, about the width of a phone, so that its text keeps its size there. Colours are CSS
variables of the page, which follow light and dark. Every picture has ``role="img"``, a title and a description, which
reads the figures out. Everything that comes from outside is escaped here. `charts` puts pictures together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count

from polytrain.texts import page_text

__all__ = ["N_COLOURS", "WIDTH", "Frame", "bounds", "curve", "dots", "legend", "picture", "shorten", "text", "ticks"]

WIDTH = 360
#: Lines that still differ in colour.
N_COLOURS = 6
_RIGHT, _TOP, _BOTTOM = 12, 10, 38
# Letters of names at an axis, and what they take where they are written upwards, beyond the room for numbers.
_MOST_LETTERS, _UPWARDS = 14, 76
# Letters of the page's font are about this wide, in the size of labels.
_LETTER = 6.5
_ids = count()
DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3))

Point = tuple[float, float]


def picture(height: float, title: str, description: str, parts: Sequence[str]) -> str:
    """Return a picture with its text alternative."""
    name = f"picture{next(_ids)}"
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height:g}" aria-labelledby="{name}t {name}d">'
        f'<title id="{name}t">{page_text(title)}</title><desc id="{name}d">{page_text(description)}</desc>'
        f'<g aria-hidden="true">{"".join(parts)}</g></svg>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "label") -> str:
    """Return one line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{page_text(words)}</text>'


def shorten(words: str, length: int) -> str:
    """Cut long text."""
    return words if len(words) <= length else words[: length - 1] + "…"


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Round numbers between two bounds."""
    span = high - low or 1.0
    step = 10.0 ** math.floor(math.log10(span / n))
    step *= next((factor for factor in (1, 2, 5) if span / (step * factor) <= n), 10)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def bounds(values: Sequence[float], margin: float = 0.04) -> Point:
    """Least and largest value, with some room around."""
    low, high = min(values), max(values)
    room = margin * (high - low) or abs(high) * margin or 1.0
    return low - room, high + room


class Frame:
    """Axes of a picture: places of values, and the lines around them.

    Parameters
    ----------
    x, y : (float, float)
        What both axes reach over.
    height : float
        Height of the picture.
    x_names, y_names : sequence of str, optional
        Names in place of the numbers of an axis, at 0, 1, ...; those across are written upwards.
    """

    def __init__(
        self,
        x: Point,
        y: Point,
        height: float,
        x_names: Sequence[str] | None = None,
        y_names: Sequence[str] | None = None,
    ) -> None:
        self.x, self.y, self.height, self.x_names = x, y, height, x_names
        self.right, self.top = WIDTH - _RIGHT, _TOP
        self.bottom = height - _BOTTOM - (0 if x_names is None else _UPWARDS)
        if y_names is None:
            self.y_labels = [(value, f"{value:g}") for value in ticks(*y)]
        else:
            self.y_labels = [(float(k), shorten(name, _MOST_LETTERS)) for k, name in enumerate(y_names)]
        # Room for the longest number, and for the axis's name beside it.
        self.left = 26 + _LETTER * max((len(label) for _, label in self.y_labels), default=1)

    def at(self, x: float, y: float) -> Point:
        """Place of a pair of values."""
        (x0, x1), (y0, y1) = self.x, self.y
        across = (x - x0) / ((x1 - x0) or 1.0)
        up = (y - y0) / ((y1 - y0) or 1.0)
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)

    def axes(self, x_name: str, y_name: str, x_ticks: Sequence[float] | None = None, lines: bool = True) -> list[str]:
        """Draw numbers and names, and ``lines`` across at the numbers."""
        parts = []
        for value, label in self.y_labels:
            x, y = self.at(self.x[0], value)
            parts += [f'<path class="grid" d="M{x:.1f} {y:.1f}H{self.right}"/>'] if lines else []
            parts.append(text(x - 5, y + 4, label, "end", "tick"))
        parts += self._names_across() if self.x_names is not None else self._numbers_across(x_ticks)
        parts.append(text((self.left + self.right) / 2, self.height - 5, shorten(x_name, 48), "middle", "axis"))
        turned = f'transform="translate(11 {(self.bottom + self.top) / 2:.1f}) rotate(-90)"'
        parts.append(f'<text class="axis" text-anchor="middle" {turned}>{page_text(shorten(y_name, 34))}</text>')
        return parts

    def _numbers_across(self, x_ticks: Sequence[float] | None) -> list[str]:
        values = ticks(*self.x) if x_ticks is None else list(x_ticks)
        longest = max((len(f"{value:g}") for value in values), default=1)
        # Long numbers need more room than five of them have.
        if len(values) * (longest + 1) * _LETTER > self.right - self.left:
            values = values[::2]
        parts = []
        for value in values:
            x, y = self.at(value, self.y[0])
            parts.append(f'<path class="grid" d="M{x:.1f} {y:.1f}v4"/>')
            parts.append(text(x, y + 16, f"{value:g}", "middle", "tick"))
        return parts

    def _names_across(self) -> list[str]:
        parts = []
        for k, name in enumerate(self.x_names or ()):
            x, y = self.at(k, self.y[0])
            turned = f'transform="translate({x + 4:.1f} {y + 6:.1f}) rotate(-90)"'
            parts.append(
                f'<text class="tick" text-anchor="end" {turned}>{page_text(shorten(name, _MOST_LETTERS))}</text>'
            )
        return parts

    def reference(self, *points: Point) -> str:
        """Draw a dashed line to compare with."""
        return f'<path class="reference" d="M{_path(self.at, points)}"/>'

    def area(self, upper: Sequence[Point], lower: Sequence[Point], kind: str) -> str:
        """Fill what lies between two lines."""
        return f'<path class="{kind}" d="M{_path(self.at, [*upper, *reversed(lower)])}Z"/>'


def _path(at: Callable[[float, float], Point], points: Sequence[Point]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in (at(*point) for point in points))


def _dash(index: int) -> str:
    dashes = DASHES[index % len(DASHES)]
    return f' stroke-dasharray="{" ".join(map(str, dashes))}"' if dashes else ""


def curve(frame: Frame, name: str, points: Sequence[Point], index: int | None = 0, marked: bool = True) -> str:
    """Draw a line in the colour and the dashes of its index, or thin where it has none; ``marked`` shows the points."""
    look = 'class="line thin"' if index is None else f'class="line"{_dash(index)}'
    path = f'<path {look} d="M{_path(frame.at, points)}"/>'
    marks = dots(frame, points, 6 if index is not None else 3) if marked else ""
    return f'<g style="color:var(--series{index or 0})"><title>{page_text(name)}</title>{path}{marks}</g>'


def dots(frame: Frame, points: Sequence[Point], size: float = 4, opacity: float = 1.0) -> str:
    """Draw points as one path of lines without length, which have round ends: far shorter than circles."""
    path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in (frame.at(*point) for point in points))
    faint = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<path class="dots" stroke-width="{size:g}"{faint} d="{path}"/>'


def legend(names: Sequence[str], top: float, joined: bool = True) -> tuple[list[str], float]:
    """Draw the names of lines, or of points, below a picture in two columns; return parts and the height they take."""
    parts = []
    for k, name in enumerate(names):
        left, y = 14 + (k % 2) * 175, top + 12 + 16 * (k // 2)
        if joined:
            parts.append(f'<path class="line" style="color:var(--series{k})" d="M{left} {y - 4}h22"{_dash(k)}/>')
        else:
            parts.append(f'<circle cx="{left + 14}" cy="{y - 4}" r="4" style="fill:var(--series{k})"/>')
        parts.append(text(left + 28, y, shorten(name, 21)))
    return parts, 16 * math.ceil(len(names) / 2) + 6
