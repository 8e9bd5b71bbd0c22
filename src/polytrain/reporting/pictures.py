"""Matplotlib figures as SVG for a page that sets their colours and has their description for screen readers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

from polytrain.plotting.style import COLOURS, PAPER, draw_lines, write_ticks
from polytrain.texts import printable

# Inches: 360 units of the SVG, about the width of a phone, so that text keeps its size there.
_WIDTH = 5.0
# Colours that the style of the page sets, for light and dark screens.
_VARIABLES = {"#ffffff": "var(--paper)"}
_VARIABLES |= {colour: f"var(--{name})" for name, colour in PAPER.items()}
_VARIABLES |= {colour.lower(): f"var(--series{k})" for k, colour in enumerate(COLOURS)}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "path.simplify_threshold": 0.5,  # curves of many rows have few points on the page
    "text.parse_math": False,  # a dollar sign in a name is only a character
    "font.size": 12.5,
    **dict.fromkeys(("axes.labelsize", "xtick.labelsize", "ytick.labelsize"), 10.5),
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "text.color": PAPER["ink"],
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), PAPER["muted"]),
}


def picture(
    title: str, words: str | dict[str, Any], draw: Callable[[Any], object], *, height: float = 3.2, **more: Any
) -> dict[str, Any]:
    """Return a figure for the page.

    ``words``, a text or a table, describe the picture, with its numbers, for readers who do not see it. ``draw`` gets
    the axes; ``height`` is in inches. ``more`` may hold ``about``, words beside the title, ``note``, a
    paragraph below the picture, and ``table``, shown on demand below ``summary``.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    if not isinstance(words, str):
        lines = [zip(words["head"], line, strict=True) for line in words["rows"]]
        words = "; ".join(", ".join(f"{name} {cell}" for name, cell in line) for line in lines)
    stream = io.BytesIO()
    with style.context(["default", _SETTINGS | {"svg.hashsalt": title}]), warnings.catch_warnings():
        # The browser has other fonts than those that text is measured with.
        warnings.filterwarnings("ignore", "Glyph .* missing|constrained_layout not applied")
        figure = Figure((_WIDTH, height), layout="constrained")
        ax = figure.subplots()
        draw(ax)
        if (legend := ax.get_legend()) is not None:  # below the picture, where it hides nothing
            legend.remove()
            handles, names = ax.get_legend_handles_labels()
            longest = max(len(line) for name in names for line in name.splitlines())
            ncols = max(min(60 // (longest + 7), 4), 1)
            n_lines = max(name.count("\n") + 1 for name in names)
            figure.set_figheight(height + 0.22 * -(-len(names) // ncols) * n_lines)
            below = figure.legend(handles, names, loc="outside lower left", ncols=ncols, fontsize="small")
            for text, handle in zip(below.get_texts(), handles, strict=True):
                text.set_gid(getattr(handle, "get_gid", lambda: None)())
        write_ticks(ax)
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=no_metadata)
    svg = _inline(ElementTree.fromstring(stream.getvalue()), f"{title}. {words}")
    return {"title": title, "svg": svg, "tall": height > 4.2, **more}


def draw_curves(
    curves: dict[int, Any], names: Sequence[str], axes: Any, reference: Any, low: float, ax: Any, marked: Any = ()
) -> None:
    """Draw curves between ``low`` and 1 with a dashed line, in the colours of the classes; see `draw_lines`."""
    draw_lines(ax, list(curves.values()), names, indices=list(curves), what="classes", marked=marked)
    ax.plot(*reference, "--", color=PAPER["muted"], linewidth=1)
    ax.set(xlim=(low - 0.02, 1.02), ylim=(low - 0.02, 1.03), xlabel=axes[0], ylabel=axes[1])


def _inline(root: ElementTree.Element, description: str) -> Any:
    """Return SVG for a page: without namespaces, unused names, fonts and invisible digits."""
    from markupsafe import Markup

    for element in list(root.iter()):
        for child in [child for child in element if child.tag.endswith("}style")]:
            element.remove(child)  # it would apply to the whole page
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        if element.tag != "text":
            element.text = None
        attributes, element.attrib = element.attrib, {}
        for name, value in attributes.items():
            if name == "id" and element.tag == "g":
                if value.startswith("title:"):  # see `titled`
                    title = ElementTree.Element("title")
                    title.text = value[6:]
                    element.insert(0, title)
                name, value = "class", "map" if value.startswith("QuadMesh") else ""
            elif name in ("style", "fill", "stroke"):
                parts = [part for part in value.split("; ") if not part.startswith(("font-family", "stroke-linejoin"))]
                value = ";".join(parts).replace(": ", ":")
                value = re.sub("#[0-9a-f]{6}", lambda match: _VARIABLES.get(match[0], match[0]), value)
            elif name in ("d", "x", "y", "transform", "width", "height"):
                value = re.sub(r"-?\d+\.\d+", lambda match: f"{round(float(match[0]), 2):g}", " ".join(value.split()))
            if value and not value.startswith("rotate(-0 "):
                element.set(name.rpartition("}")[2], value)
    for group in root.iter("g"):  # the marks of a line look alike
        if len(group) > 1 and {(mark.tag, mark.get("style")) for mark in group} == {("use", group[0].get("style"))}:
            group.set("style", group[0].attrib["style"])
            for mark in group:
                del mark.attrib["style"]
    root.attrib = {"role": "img", "aria-label": printable(description), "viewBox": root.attrib["viewBox"]}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]], n_texts: int | None = 1) -> dict[str, Any]:
    """Return a table for the page; columns after the first ``n_texts`` are aligned right, with None no column."""
    return {"caption": caption, "head": head, "rows": rows, "n_texts": len(head) if n_texts is None else n_texts}
