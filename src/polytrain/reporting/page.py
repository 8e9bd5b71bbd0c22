"""The frame of a page: style, head and foot, tables. Everything that comes from outside is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polytrain.plotting import COLOURS, DARK_COLOURS, DARK_PAPER, PAPER
from polytrain.reporting.drawing import N_COLOURS
from polytrain.texts import page_text

__all__ = [
    "cards", "details", "figure", "grid", "make_page", "matrix", "number", "paragraph", "percent", "section", "table",
]  # fmt: skip

# The browser itself is told to load nothing and to run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def _variables(paper: Mapping[str, str], colours: Sequence[str]) -> str:
    """CSS variables of a colour scheme."""
    heat = ", ".join(str(int(colours[0][start : start + 2], 16)) for start in (1, 3, 5))
    series = {f"series{k}": colour for k, colour in enumerate(colours[:N_COLOURS])}
    return "".join(f"--{name}: {value}; " for name, value in {**paper, **series, "heat": heat}.items())


_STYLE = (
    f":root {{ color-scheme: light dark; {_variables(PAPER, COLOURS)}}}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK_PAPER, DARK_COLOURS)}}} }}"
    """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(1rem, 3vw, 2.5rem); max-width: 92rem; background: var(--paper);
  color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 0.5rem; padding-top: 0.7rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.4rem 0 0.4rem; overflow-wrap: anywhere; }
p { margin: 0.4rem 0; max-width: 56rem; overflow-wrap: anywhere; }
.lead { font-size: 1.15rem; } .note, footer { color: var(--muted); font-size: 0.9rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; list-style: none; margin: 0.8rem 0; padding: 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 0.6rem;
  margin: 1rem 0; padding: 0; }
.cards div { background: var(--panel); border-radius: 8px; padding: 0.6rem 0.8rem; }
.cards dt { color: var(--muted); font-size: 0.85rem; }
.cards dd { margin: 0; font-size: 1.3rem; font-weight: 600; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: 1rem 1.6rem;
  align-items: start; margin: 0.8rem 0; grid-auto-flow: dense; }
.grid > * { min-width: 0; margin: 0; }
.tall { grid-row: span 2; } .full { grid-column: 1 / -1; }
.words { columns: 26rem 2; column-gap: 2rem; max-width: 88rem; } .words p { break-inside: avoid; margin: 0 0 0.4rem; }
figcaption { font-weight: 600; overflow-wrap: anywhere; } figcaption span { color: var(--muted); font-weight: 400; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.92rem; }
th, td { text-align: left; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
th { font-weight: 600; } thead th { color: var(--muted); font-weight: 500; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.matrix td, .matrix th { padding: 0.35rem 0.6rem; } .matrix .number { min-width: 3.2rem; }
.matrix thead .number { white-space: normal; overflow-wrap: break-word; min-width: 4rem; max-width: 12rem; }
caption { text-align: left; color: var(--muted); font-size: 0.88rem; padding-bottom: 0.3rem; }
svg { display: block; width: 100%; max-width: 480px; height: auto; margin: 0.5rem 0; overflow: visible; }
svg text { fill: var(--ink); font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
svg .tick, svg .axis { fill: var(--muted); font-size: 11px; } svg .value { font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--rule); fill: none; } svg .reference { stroke: var(--muted); fill: none;
  stroke-dasharray: 4 4; }
svg .line { stroke: currentColor; stroke-width: 2; fill: none; stroke-linejoin: round; }
svg .thin { stroke-width: 1; opacity: 0.5; }
svg .dots { stroke: currentColor; stroke-linecap: round; fill: none; }
svg .band { fill: var(--series0); fill-opacity: 0.18; } svg .density { fill: var(--muted); fill-opacity: 0.3; }
svg .ring { stroke: var(--ink); stroke-width: 1.5; fill: none; }
svg .high { fill: var(--series0); } svg .low { fill: var(--series1); }
summary { cursor: pointer; padding: 0.3rem 0; color: var(--series0); }
a { color: var(--series0); } code { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--series0); outline-offset: 2px; }
@media print { body { max-width: none; } .scroll { overflow: visible; } figure { break-inside: avoid; } }
"""
)


def percent(share: float) -> str:
    """Return a share as per cent."""
    return f"{100 * share:.2f} %"


def number(value: Any) -> str:
    """Return a number with thin spaces between thousands, or with five digits."""
    if value is None or value != value:
        return "-"
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else f"{value:.5g}"


def make_page(title: str, top: Sequence[str], sections: Sequence[tuple[str, str]], foot: str) -> str:
    """Return the whole page, with links to its sections, given by name. It loads nothing: no script, font, picture."""
    links = "".join(f'<li><a href="#part{k}">{page_text(name)}</a></li>' for k, (name, _) in enumerate(sections))
    body = [
        f'<section id="part{k}" aria-labelledby="name{k}">\n'
        f'<h2 id="name{k}">{page_text(name)}</h2>\n{content}\n</section>'
        for k, (name, content) in enumerate(sections)
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<link rel="icon" href="data:,">\n<title>{page_text(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header>\n{chr(10).join(top)}\n"
        f'<nav aria-label="Parts of this page"><ul>{links}</ul></nav>\n</header>\n'
        f"<main>\n{chr(10).join(body)}\n</main>\n<footer><p>{page_text(foot)}</p></footer>\n</body>\n</html>\n"
    )


def section(title: str, *parts: str) -> tuple[str, str]:
    """Return a section: its name and its content."""
    return title, "\n".join(part for part in parts if part)


def heading(title: str) -> str:
    """Return the heading of a part of a section."""
    return f"<h3>{page_text(title)}</h3>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f"<p{f' class={kind}' if kind else ''}>{page_text(text)}</p>"


def cards(items: Sequence[tuple[str, str]]) -> str:
    """Return the most important figures, large."""
    return (
        '<dl class="cards">'
        + "".join(f"<div><dt>{page_text(name)}</dt><dd>{page_text(value)}</dd></div>" for name, value in items)
        + "</dl>"
    )


def grid(*parts: str) -> str:
    """Return parts side by side, as many as the width has room for."""
    return f'<div class="grid">{chr(10).join(part for part in parts if part)}</div>'


def words(*paragraphs: str) -> str:
    """Return paragraphs in two columns where there is room."""
    return f'<div class="words">{"".join(paragraphs)}</div>'


def figure(title: str, chart: str, about: str = "", more: str = "", *, tall: bool = False) -> str:
    """Return a picture with its name above, a few words beside that, and something below; tall ones take two rows."""
    beside = f" <span>{page_text(about)}</span>" if about else ""
    opening = f"<figure{' class=tall' if tall else ''}><figcaption>{page_text(title)}"
    return f"{opening}{beside}</figcaption>{chart}{more}</figure>"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table that scrolls sideways; columns in ``numbers`` are set to the right, the first is a heading."""

    def cell(tag: str, k: int, text: str, scope: str = "") -> str:
        return f"<{tag}{scope}{' class=number' if k in numbers else ''}>{page_text(text)}</{tag}>"

    top = "".join(cell("th", k, text, ' scope="col"') for k, text in enumerate(head))
    lines = [
        "<tr>"
        + "".join(cell("th", k, text, ' scope="row"') if k == 0 else cell("td", k, text) for k, text in enumerate(row))
        + "</tr>"
        for row in rows
    ]
    return _scrolling(
        caption, f"<caption>{page_text(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody>"
    )


def matrix(caption: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """Return a confusion matrix whose cells are the darker the larger their share of the row is."""
    top = "".join(f'<th scope="col" class=number>{page_text(label)}</th>' for label in labels)
    lines = []
    for label, row in zip(labels, counts, strict=True):
        whole = sum(row) or 1
        cells = "".join(
            f'<td class=number style="background:rgba(var(--heat),{0.55 * value / whole:.3f})">{value}</td>'
            for value in row
        )
        lines.append(f'<tr><th scope="row">{page_text(label)}</th>{cells}<td class=number>{sum(row)}</td></tr>')
    return _scrolling(
        caption,
        f'<caption>{page_text(caption)}</caption><thead><tr><th scope="col">true \\ predicted</th>{top}'
        f'<th scope="col" class=number>rows</th></tr></thead><tbody>{"".join(lines)}</tbody>',
        "matrix",
    )


def _scrolling(caption: str, inner: str, kind: str = "") -> str:
    # Reachable by keyboard, so that it can be scrolled without a pointer.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{page_text(caption)}">'
        f"<table{f' class={kind}' if kind else ''}>{inner}</table></div>"
    )


def details(summary: str, *parts: str) -> str:
    """Return parts that are shown on demand."""
    return f"<details><summary>{page_text(summary)}</summary>{''.join(parts)}</details>"
