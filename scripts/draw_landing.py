"""Draw the picture of the landing page, for light and for dark paper: a train, and errors beside other models.

The figures are read from the table "All together" of ``docs/when-it-wins.md``. ``python scripts/draw_landing.py``
writes ``docs/images/landing-light.svg`` and ``docs/images/landing-dark.svg``.
"""

from __future__ import annotations

import re
from pathlib import Path

from polytrain.plotting.style import COLOURS, DARK_COLOURS, DARK_PAPER, PAPER

DOCS = Path(__file__).parents[1] / "docs"
WIDTH, HEIGHT = 460, 400
COLUMNS = ("age", "district", "sold", "area")
ROWS = {"RMSE, all tables": "numbers: error / best error", "error %, all tables": "classes: error / best error"}


def read_means(page: str) -> dict[str, dict[str, float]]:
    """Geometric means by row of the table and by model."""
    header = re.search(r"^\| measure .*$", page, re.MULTILINE)
    if header is None:
        raise ValueError("docs/when-it-wins.md has no table that begins with 'measure'.")
    models = [cell.strip() for cell in header[0].strip("|").split("|")][1:]
    found = {}
    for start, name in ROWS.items():
        line = re.search(rf"^\| {re.escape(start)}.*$", page, re.MULTILINE)
        if line is None:
            raise ValueError(f"docs/when-it-wins.md has no row that begins with {start!r}.")
        cells = [cell.strip() for cell in line[0].strip("|").split("|")][1:]
        numbers = {model: re.match(r"[\d.]+", cell) for model, cell in zip(models, cells, strict=True)}
        found[name] = {model: float(number[0]) for model, number in numbers.items() if number}
    return found


def draw_train(colours: tuple[str, ...], paper: dict[str, str]) -> list[str]:
    """Four cores on a rail, a column of the table below each, and the score behind the last."""
    parts = [f'<path d="M70 62H414" stroke="{paper["muted"]}" stroke-width="4"/>']
    for k, column in enumerate(COLUMNS):
        x = 40 + 92 * k
        parts += [
            f'<path d="M{x + 31} 88V118" stroke="{paper["muted"]}" stroke-width="3"/>',
            f'<rect x="{x}" y="36" width="62" height="52" rx="12" fill="{colours[k]}"/>',
            f'<text x="{x + 31}" y="68" text-anchor="middle" fill="{paper["paper"]}" font-weight="600">'
            f'G<tspan dy="4" font-size="10">{k + 1}</tspan></text>',
            f'<text x="{x + 31}" y="134" text-anchor="middle" fill="{paper["ink"]}">{column}</text>',
        ]
    parts += [
        f'<path d="M406 54L420 62L406 70" fill="none" stroke="{paper["muted"]}" stroke-width="3"/>',
        f'<text x="440" y="40" text-anchor="end" fill="{paper["ink"]}">score</text>',
    ]
    return parts


def draw_bars(means: dict[str, dict[str, float]], colours: tuple[str, ...], paper: dict[str, str]) -> list[str]:
    """A bar per model for either kind of target; a line marks 1, the best model of every table."""
    parts, y = [], 172
    for name, models in means.items():
        parts.append(f'<text x="20" y="{y}" fill="{paper["ink"]}" font-weight="600">{name}</text>')
        y += 9
        top = y
        for model, mean in sorted(models.items(), key=lambda item: item[1]):
            colour = colours[0] if model == "polytrain" else paper["muted"]
            width = 64 * mean
            parts += [
                f'<text x="96" y="{y + 13}" text-anchor="end" fill="{paper["ink"]}">{model}</text>',
                f'<rect x="104" y="{y + 2}" width="{width:.0f}" height="13" rx="3" fill="{colour}"/>',
                # The table has three digits; halves are rounded up, as by hand.
                f'<text x="{112 + width:.0f}" y="{y + 13}" fill="{paper["ink"]}">{mean + 1e-9:.2f}</text>',
            ]
            y += 17
        parts.append(f'<path d="M168 {top}V{y}" stroke="{paper["ink"]}" stroke-dasharray="2 3"/>')
        y += 24
    return parts


def draw(means: dict[str, dict[str, float]], colours: tuple[str, ...], paper: dict[str, str]) -> str:
    """The whole picture as SVG, on paper that shows through."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="system-ui, sans-serif" font-size="13">',
            *draw_train(colours, paper),
            *draw_bars(means, colours, paper),
            "</svg>\n",
        ]
    )


def main() -> None:
    """Write both pictures."""
    means = read_means((DOCS / "when-it-wins.md").read_text(encoding="utf-8"))
    for name, colours, paper in (("light", COLOURS, PAPER), ("dark", DARK_COLOURS, DARK_PAPER)):
        (DOCS / "images" / f"landing-{name}.svg").write_text(draw(means, colours, paper), encoding="utf-8")


if __name__ == "__main__":
    main()
