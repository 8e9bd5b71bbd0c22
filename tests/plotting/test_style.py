"""Colours, lines, legends and numbers at axes that all pictures share."""

import io
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from polytrain.plotting.style import (
    COLOURS,
    DARK_COLOURS,
    DARK_PAPER,
    PAPER,
    draw_bars,
    draw_lines,
    line_style,
    place_values,
    shorten,
    write_ticks,
)

# What red- and green-blind readers see of linear RGB (Machado, Oliveira and Fernandes 2009), and the way to Oklab.
SEEN = {
    "all": np.eye(3),
    "green-blind": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "red-blind": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
TO_CONES = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]]
TO_LAB = [[0.21045, 0.79362, -0.00407], [1.978, -2.42859, 0.45059], [0.0259, 0.78277, -0.80868]]


def linear(colour):
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("colours", [COLOURS, DARK_COLOURS])
@pytest.mark.parametrize("reader", SEEN)
def test_colours_are_told_apart(colours, reader):
    seen = [TO_LAB @ np.cbrt(TO_CONES @ np.clip(SEEN[reader] @ linear(colour), 0, 1)) for colour in colours]
    assert min(np.linalg.norm(one - two) for one, two in combinations(seen, 2)) > 0.07


@pytest.mark.parametrize(("colours", "paper"), [(COLOURS, "#ffffff"), (DARK_COLOURS, DARK_PAPER["paper"])])
def test_colours_stand_out_from_the_paper(colours, paper):
    ground, *inks = (linear(colour) @ [0.2126, 0.7152, 0.0722] + 0.05 for colour in (paper, *colours))
    assert min(max(ink, ground) / min(ink, ground) for ink in inks) > 3.0


def test_no_two_lines_are_alike():
    styles = [line_style(index) for index in range(48)]
    for keys in (("marker", "linestyle"), ("color", "marker"), ("color", "linestyle")):
        assert len({tuple(style[key] for key in keys) for style in styles}) == 48
    assert len({style["color"] for style in styles[:12]}) == 12


def test_many_lines_have_their_colours_where_they_are_marked():
    ax = Figure().subplots()
    draw_lines(
        ax, [([0, 1], [k, k]) for k in range(26)], [f"class {k}" for k in range(26)], what="classes", marked=[3, 20]
    )
    drawn = [line.get_color() for line in ax.lines]
    assert [drawn[3], drawn[20]] == [line_style(3)["color"], line_style(20)["color"]]
    assert set(drawn[:3] + drawn[4:20] + drawn[21:]) == {PAPER["muted"]}
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"24 other classes", "class 3", "class 20"}


def test_legends_hold_names_in_full():
    ax, name = Figure().subplots(), "a class whose name is as long as that of a species"
    draw_lines(ax, [([0, 1], [0, 1])] * 2, [name, "short"])
    first, second = (text.get_text() for text in ax.get_legend().get_texts())
    assert first.replace("\n", " ") == name
    assert max(map(len, first.split("\n"))) <= 24
    assert second == "short"


def test_long_names_keep_their_ends_and_have_a_title():
    assert shorten(["x" * 24]) == ["x" * 24]
    names = [f"the same beginning of all {k} columns of this table" for k in range(3)]
    ax, labels = Figure().subplots(), shorten(names, 47)
    assert len(set(labels)) == 3
    assert all(len(label) == 47 and label.endswith("this table") for label in labels)
    draw_bars(ax, labels, [1, 2, 3], names=names)
    place_values(ax, "x", np.array(["one & only level of the very first column", "b"], dtype=object))
    stream = io.StringIO()
    ax.figure.savefig(stream, format="svg")
    assert all(f'id="title:{name}"' in stream.getvalue() for name in names)
    assert 'id="title:one &amp; only level of the very first column"' in stream.getvalue()


def ticks(axis):
    low, high = axis.get_view_interval()
    shown = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for place, label in shown if low <= place <= high]


def test_numbers_at_axes_are_written_out_and_do_not_meet():
    ax = Figure((5, 3), layout="constrained").subplots()
    ax.plot([100_000, 700_000], [0.00002, 0.00005])
    write_ticks(ax)
    ax.figure.canvas.draw()
    assert set(ticks(ax.xaxis)) <= {f"{k}00,000" for k in range(1, 8)}
    boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text() in ticks(ax.xaxis)]
    assert len(boxes) > 2
    assert all(left.x1 + 4 < right.x0 for left, right in pairwise(boxes))
    assert "2e\N{MINUS SIGN}5" in ticks(ax.yaxis)


def test_whole_numbers_have_whole_ticks():
    ax, grid = Figure().subplots(), np.array([0.0, 1.0, 2.0])
    ax.plot(place_values(ax, "x", grid), grid)
    write_ticks(ax)
    ax.figure.canvas.draw()
    assert ticks(ax.xaxis) == ["0", "1", "2"]


def test_levels_stay_as_they_are():
    ax = Figure().subplots()
    draw_bars(ax, ["12345", "$b$"], [1, 2])
    write_ticks(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["12345", "$b$"]
