"""Draw a layered graph as SVG: boxes in rows, and smooth lines that go around the boxes.

A line that passes a row bends there as if it had a narrow box of its own in it. The rows are ordered and placed by the
means of their neighbours, the usual way to few crossings. The same graph always gives the same text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from statistics import fmean
from textwrap import wrap
from xml.sax.saxutils import escape

# Sizes in pixels. Text is measured by the letter, so a box leaves room for the widest of the usual fonts.
BOX_WIDTH, BOX_HEIGHT, BEND_WIDTH, COLUMN_GAP, ROW_GAP = 224, 96, 6, 20, 56
MARGIN, PORT_GAP, LINE_LETTERS, MAX_LINES = 24, 20, 30, 4
MAX_BOXES = 4  # in a row, as far as the arrows allow; a wider picture is too small to read on a page
# The picture brings its own paper, so that it can be read on light and on dark pages.
PAPER, FILL, INK, FAINT, LINE, ALARM = "#ffffff", "#eef3f8", "#1f2933", "#46535f", "#5b7083", "#c62828"
N_PASSES = 30


@dataclass(frozen=True, order=True)
class Arrow:
    """A line from one box to another. An alarming one does not count when the boxes are put into levels."""

    source: str
    target: str
    dashed: bool = False
    alarming: bool = False


@dataclass(frozen=True, order=True)
class Bend:
    """Where a line passes a row."""

    arrow: Arrow
    level: int


Node = str | Bend
Link = tuple[Node, Node]  # (upper, lower), in neighbouring rows
Point = tuple[float, float]


def make_levels(names: Sequence[str], links: Sequence[tuple[str, str]], top: str) -> dict[str, int]:
    """The longest way down from each box; `top` goes above the others unless an arrow leads to it."""
    levels: dict[str, int] = {}
    while len(levels) < len(names):
        for name in names:
            below = [lower for upper, lower in links if upper == name]
            if all(lower in levels for lower in below):
                levels[name] = 1 + max((levels[lower] for lower in below), default=-1)
    if all(lower != top for _, lower in links):
        levels[top] = 1 + max((levels[name] for name in names if name != top), default=-1)
    return thin_out(levels, links)


def thin_out(levels: dict[str, int], links: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Lift boxes out of crowded rows, those first that are furthest below the boxes above them."""
    levels = dict(levels)
    highest = max(levels.values())
    for level in range(highest):
        row = [name for name in levels if levels[name] == level]
        room = {name: min([levels[upper] for upper, lower in links if lower == name] or [highest]) for name in row}
        for name in sorted(row, key=lambda name: (-room[name], name))[: max(len(row) - MAX_BOXES, 0)]:
            levels[name] += room[name] > level + 1
    return levels


def make_chain(arrow: Arrow, levels: dict[str, int]) -> list[Node]:
    """The upper box, a bend for each row in between, the lower box."""
    upper, lower = sorted([arrow.source, arrow.target], key=levels.__getitem__, reverse=True)
    return [upper, *(Bend(arrow, level) for level in range(levels[upper] - 1, levels[lower], -1)), lower]


def width_of(node: Node) -> int:
    """The room that a node takes in its row."""
    return COLUMN_GAP + (BOX_WIDTH if isinstance(node, str) else BEND_WIDTH)


def spread(row: Sequence[Node], settings: dict[Node, float]) -> dict[Node, float]:
    """Centres that keep the order of the row, do not overlap, and are nearest to the settings (least squares)."""
    # Without the widths to its left, a node may be anywhere not left of the one before: an isotonic regression.
    offsets = list(accumulate((width_of(left) + width_of(right)) / 2 for left, right in pairwise([row[0], *row])))
    pools: list[list[float]] = []
    for node, offset in zip(row, offsets, strict=True):
        pools.append([settings[node] - offset])
        while len(pools) > 1 and fmean(pools[-2]) >= fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    shifts = [fmean(pool) for pool in pools for _ in pool]
    return {node: offset + shift for node, offset, shift in zip(row, offsets, shifts, strict=True)}


def count_crossings(links: Sequence[Link], depths: dict[Node, int], centres: dict[Node, float]) -> int:
    """How many pairs of lines cross between two rows."""
    ends = [(depths[upper], centres[upper], centres[lower]) for upper, lower in links]
    return sum(a[0] == b[0] and (a[1] - b[1]) * (a[2] - b[2]) < 0 for a, b in combinations(ends, 2))


def place(depths: dict[Node, int], links: Sequence[Link]) -> dict[Node, float]:
    """Horizontal centres: rows follow their neighbours, down and up in turn. The pass with fewest crossings wins."""
    rows = [[node for node in depths if depths[node] == depth] for depth in range(max(depths.values()) + 1)]
    centres: dict[Node, float] = {}
    for row in rows:
        centres |= spread(row, dict.fromkeys(row, 0.0))
    tried = []
    for turn in range(N_PASSES):
        step = -1 if turn % 2 else 1
        for row in rows[::step][1:]:
            settings: dict[Node, float] = {}
            for node in row:
                ends = [end for link in links if node in link for end in link if depths[end] == depths[node] - step]
                settings[node] = fmean(centres[end] for end in ends or [node])
            row.sort(key=settings.__getitem__)
            centres |= spread(row, settings)
        tried.append((count_crossings(links, depths, centres), turn, dict(centres)))
    left = min(tried)[2]
    start = min(left[node] - width_of(node) / 2 for node in left)
    return {node: MARGIN + centre - start for node, centre in left.items()}


def route(chains: Sequence[list[Node]], depths: dict[Node, int], centres: dict[Node, float]) -> list[list[Point]]:
    """The points of each line. Lines that share a box meet it side by side."""
    ends = [(number, *link) for number, chain in enumerate(chains) for link in pairwise(chain)]
    ports: dict[tuple[int, Node, bool], float] = {}
    for node in centres:
        for at_top in (False, True):
            far = {
                number: upper if at_top else lower for number, upper, lower in ends if (upper, lower)[at_top] == node
            }
            gap = min(PORT_GAP, BOX_WIDTH / (len(far) + 1))
            for spot, number in enumerate(sorted(far, key=lambda number: (centres[far[number]], number))):
                ports[number, node, at_top] = centres[node] + gap * (spot - (len(far) - 1) / 2)
    lines: list[list[Point]] = [[] for _ in chains]
    for number, upper, lower in ends:
        lines[number] += [(ports[number, upper, False], top_of(depths[upper]) + BOX_HEIGHT)]
        lines[number] += [(ports[number, lower, True], top_of(depths[lower]))]
    return lines


def top_of(depth: int) -> int:
    """The upper edge of a row."""
    return MARGIN + 34 + depth * (BOX_HEIGHT + ROW_GAP)


def draw_text(x: float, y: float, text: str, style: str) -> str:
    """One line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def draw_box(name: str, text: str, x: float, y: float) -> Iterator[str]:
    """A box with a name and a few lines of text, its centre at x and its top at y."""
    size = f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7"'
    yield f'<rect x="{x - BOX_WIDTH / 2:.1f}" y="{y:.1f}" {size} fill="{FILL}" stroke="{LINE}"/>'
    lines = wrap(
        text, LINE_LETTERS, max_lines=MAX_LINES, placeholder=" \N{HORIZONTAL ELLIPSIS}", break_on_hyphens=False
    )
    y += (BOX_HEIGHT - 18 - 15 * len(lines)) / 2 + 13
    yield draw_text(x, y, name, f'font-size="15" font-weight="bold" text-anchor="middle" fill="{INK}"')
    for number, line in enumerate(lines):
        yield draw_text(x, y + 18 + 15 * number, line, f'font-size="12" text-anchor="middle" fill="{FAINT}"')


def draw_arrow(arrow: Arrow, points: Sequence[Point], points_up: bool) -> Iterator[str]:
    """A line from top to bottom through the points, upright at each of them, with a head at one end."""
    colour, dashes = ALARM if arrow.alarming else LINE, ' stroke-dasharray="6 4"' if arrow.dashed else ""
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>'
    (x, y), back = (points[0], 9) if points_up else (points[-1], -9)
    yield f'<path d="M{x:.1f},{y:.1f} l-4.5,{back} h9 z" fill="{colour}"/>'


def draw_layers(title: str, caption: Sequence[str], boxes: dict[str, str], arrows: Sequence[Arrow], top: str) -> str:
    """The SVG text of a picture of named boxes with a text in each; arrows lead down, but for alarming ones."""
    levels = make_levels(list(boxes), [(arrow.source, arrow.target) for arrow in arrows if not arrow.alarming], top)
    chains = [make_chain(arrow, levels) for arrow in arrows]
    depths: dict[Node, int] = {name: max(levels.values()) - levels[name] for name in boxes}
    for chain in chains:
        depths |= {node: depths[chain[0]] + step for step, node in enumerate(chain)}
    centres = place(depths, [link for chain in chains for link in pairwise(chain)])

    lines = [draw_text(MARGIN, MARGIN + 12, title, f'font-size="18" font-weight="bold" fill="{INK}"')]
    for arrow, chain, points in zip(arrows, chains, route(chains, depths, centres), strict=True):
        lines += draw_arrow(arrow, points, points_up=arrow.target == chain[0])
    for name, text in boxes.items():
        lines += draw_box(name, text, centres[name], top_of(depths[name]))
    width = max(centres[node] + width_of(node) / 2 for node in centres) + MARGIN
    height = top_of(max(depths.values())) + BOX_HEIGHT + 14
    for line in (line for text in caption for line in wrap(text, int(width / 8))):
        height += 19
        lines.append(draw_text(MARGIN, height, line, f'font-size="13" fill="{FAINT}"'))
    height += MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="Helvetica, Arial, sans-serif" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="100%" height="100%" rx="10" fill="{PAPER}"/>',
            *lines,
            "</svg>\n",
        ]
    )
