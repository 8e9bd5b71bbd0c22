"""The frame of a page: style, head and foot, tables. Everything that comes from outside is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["cards", "details", "make_page", "matrix", "paragraph", "section", "table"]

# The browser itself is told to load nothing and to run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_STYLE = """
:root { color-scheme: light dark;
  --paper: #fff; --ink: #1c1e21; --muted: #5b6168; --rule: #d5d9de; --panel: #f4f6f8;
  --series0: #0072b2; --series1: #c04f00; --series2: #00805e; --series3: #a8497f; --series4: #5a5fc7;
  --series5: #8a6a00;
  --heat: 0, 114, 178; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e8eaed; --muted: #a3abb3; --rule: #3a4047;
  --panel: #1f2429; --series0: #56b4e9; --series1: #f0a04b; --series2: #3fc79a; --series3: #e08fc0; --series4: #a3a8ff;
  --series5: #e0c04a; --heat: 86, 180, 233; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.5rem; padding-top: 0.6rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.2rem 0 0.4rem; }
p { margin: 0.4rem 0; max-width: 44rem; }
.note, footer { color: var(--muted); font-size: 0.9rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 0.6rem;
  margin: 1rem 0; padding: 0; }
.cards div { background: var(--panel); border-radius: 8px; padding: 0.6rem 0.8rem; }
.cards dt { color: var(--muted); font-size: 0.85rem; }
.cards dd { margin: 0; font-size: 1.3rem; font-weight: 600; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 0 2rem;
  align-items: start; }
.pair > * { min-width: 0; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.92rem; }
th, td { text-align: left; padding: 0.25rem 0.7rem 0.25rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
th { font-weight: 600; } thead th { color: var(--muted); font-weight: 500; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.matrix td, .matrix th { padding: 0.35rem 0.6rem; } .matrix .number { min-width: 3.2rem; }
.matrix thead .number { white-space: normal; overflow-wrap: anywhere; min-width: 4rem; }
caption { text-align: left; color: var(--muted); font-size: 0.88rem; padding-bottom: 0.3rem; }
svg { display: block; width: 100%; max-width: 460px; height: auto; margin: 0.5rem 0; overflow: visible; }
svg text { fill: var(--ink); font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
svg .tick, svg .axis { fill: var(--muted); font-size: 11px; } svg .value { font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--rule); fill: none; } svg .reference { stroke: var(--muted); fill: none;
  stroke-dasharray: 4 4; }
svg .line { stroke: currentColor; stroke-width: 2; fill: none; } svg .thin { stroke-width: 1; opacity: 0.5; }
summary { cursor: pointer; padding: 0.3rem 0; color: var(--series0); }
a { color: var(--series0); } code { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--series0); outline-offset: 2px; }
@media print { body { max-width: none; } .scroll { overflow: visible; } }
"""


def make_page(title: str, body: Iterable[str], foot: str) -> str:
    """Return the whole page. It loads nothing: no script, no font, no picture from elsewhere."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n'
        f"<main>\n{chr(10).join(body)}\n</main>\n<footer><p>{escape(foot)}</p></footer>\n</body>\n</html>\n"
    )


def section(title: str, *parts: str) -> str:
    """Return a section with a heading."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{chr(10).join(parts)}\n</section>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f"<p{f' class={kind}' if kind else ''}>{escape(text)}</p>"


def cards(items: Sequence[tuple[str, str]]) -> str:
    """Return the most important figures, large."""
    return (
        '<dl class="cards">'
        + "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in items)
        + "</dl>"
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table that scrolls sideways; columns in ``numbers`` are set to the right, the first is a heading."""

    def cell(tag: str, k: int, text: str, scope: str = "") -> str:
        return f"<{tag}{scope}{' class=number' if k in numbers else ''}>{escape(text)}</{tag}>"

    top = "".join(cell("th", k, text, ' scope="col"') for k, text in enumerate(head))
    lines = [
        "<tr>"
        + "".join(cell("th", k, text, ' scope="row"') if k == 0 else cell("td", k, text) for k, text in enumerate(row))
        + "</tr>"
        for row in rows
    ]
    return _scrolling(
        caption, f"<caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody>"
    )


def matrix(caption: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """Return a confusion matrix whose cells are the darker the larger their share of the row is."""
    top = "".join(f'<th scope="col" class=number>{escape(label)}</th>' for label in labels)
    lines = []
    for label, row in zip(labels, counts, strict=True):
        whole = sum(row) or 1
        cells = "".join(
            f'<td class=number style="background:rgba(var(--heat),{0.55 * value / whole:.3f})">{value}</td>'
            for value in row
        )
        lines.append(f'<tr><th scope="row">{escape(label)}</th>{cells}<td class=number>{sum(row)}</td></tr>')
    return _scrolling(
        caption,
        f'<caption>{escape(caption)}</caption><thead><tr><th scope="col">true \\ predicted</th>{top}'
        f'<th scope="col" class=number>rows</th></tr></thead><tbody>{"".join(lines)}</tbody>',
        "matrix",
    )


def _scrolling(caption: str, inner: str, kind: str = "") -> str:
    # Reachable by keyboard, so that it can be scrolled without a pointer.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table{f' class={kind}' if kind else ''}>{inner}</table></div>"
    )


def details(summary: str, *parts: str) -> str:
    """Return parts that are shown on demand."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>"
