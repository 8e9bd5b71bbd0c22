"""Draw errors of models, of their mean and of rounded merges, from ``python -m benchmarks.averaging``.

    python scripts/draw_averaging.py [--tables airfoil concrete phoneme] [--curves FILE] [--out FILE]

The picture is docs/images/averaging.png: the way ``parts``, in which every model knows a quarter of the rows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from doc_images import IMAGES, RESULTS, panels

from polytrain.plotting import COLOURS, clean_axes

CURVES = RESULTS / "averaging-curves.json"
PICTURE = IMAGES / "averaging.png"
LINES = {
    "single": ("one model of a quarter of the rows", "--"),
    "mean": ("plain mean of four of them", ":"),
    "all rows": ("one model of all rows", "-."),
}
CLASSES = ("pima", "banana", "phoneme")


def draw(ax: Any, row: dict[str, Any], ranks: list[int]) -> None:
    """One table: the merge by its rank, and the models that it is compared with as lines."""
    errors = [row[f"rank {rank}"] for rank in ranks]
    ax.plot(ranks, errors, "-o", color=COLOURS[0], label="merged and rounded to a rank", zorder=3)
    for (name, (label, dashes)), colour in zip(LINES.items(), COLOURS[1:], strict=False):
        ax.axhline(row[name], color=colour, linestyle=dashes, label=label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(ranks, [str(rank) for rank in ranks])
    room = row["single"] - row["all rows"]
    ax.set_ylim(row["all rows"] - 0.15 * room, row["single"] + 0.6 * room)  # the lowest ranks may be far above
    ax.set_xlabel("largest rank of the merge")
    ax.set_ylabel("test error (%)" if row["table"] in CLASSES else "test RMSE")
    clean_axes(ax, row["table"])


def main() -> None:
    """Read the file of the benchmark and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["airfoil", "concrete", "phoneme"], help="names of tables")
    parser.add_argument("--curves", type=Path, default=CURVES, help="file that the benchmark has written")
    parser.add_argument("--out", type=Path, default=PICTURE, help="picture to write")
    arguments = parser.parse_args()
    content = json.loads(arguments.curves.read_text())
    rows = {row["table"]: row for row in content["parts"]}
    count = len(arguments.tables)
    figure, axes = panels(count, 3.7 * count, 3.6)
    for ax, name in zip(axes, arguments.tables, strict=True):
        draw(ax, rows[name], content["ranks"])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    figure.savefig(arguments.out, dpi=120)


if __name__ == "__main__":
    main()
