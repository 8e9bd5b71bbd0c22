"""Draw reliability curves, from what ``python -m benchmarks.calibration`` has written: docs/images/calibration.png.

    python scripts/draw_calibration.py [--tables adult phoneme pima] [--curves FILE] [--out FILE]

Every point is a tenth of the test rows: the mean of the probabilities that a model gave to the second class, and the
share of the rows that were of this class.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from doc_images import IMAGES, RESULTS, panels

from polytrain.plotting import COLOURS, MARKERS, clean_axes

CURVES = RESULTS / "calibration-curves.json"
PICTURE = IMAGES / "calibration.png"
MODELS = {
    "auto": "polytrain, default",
    "logistic": 'polytrain, loss="logistic"',
    "boosting": "HistGradientBoosting",
}


def draw(ax: Any, name: str, curves: dict[str, list], errors: dict[str, float]) -> None:
    """One table: a line per model, with its calibration error in the legend."""
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":")
    for (model, label), colour, marker in zip(MODELS.items(), COLOURS, MARKERS, strict=False):
        given, seen, _ = zip(*curves[model], strict=True)
        style = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5}
        ax.plot(given, seen, label=f"{label}: {errors[model]:.1f} %", **style)
    ax.set_xlabel("probability that was given")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    clean_axes(ax, name)
    ax.legend(frameon=False, fontsize="x-small", loc="upper left", title="calibration error", title_fontsize="x-small")


def main() -> None:
    """Read the file of the benchmark and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult", "phoneme", "pima"], help="tables of two classes")
    parser.add_argument("--curves", type=Path, default=CURVES, help="file that the benchmark has written")
    parser.add_argument("--out", type=Path, default=PICTURE, help="picture to write")
    arguments = parser.parse_args()
    content = json.loads(arguments.curves.read_text())
    errors = {(row["table"], row["model"]): row["ECE %"] for row in content["rows"]}
    count = len(arguments.tables)
    figure, axes = panels(count, 3.7 * count, 3.9)
    for ax, name in zip(axes, arguments.tables, strict=True):
        draw(ax, name, content["curves"][name], {model: errors[name, model] for model in MODELS})
    axes[0].set_ylabel("share of rows of the class")
    figure.savefig(arguments.out, dpi=120)


if __name__ == "__main__":
    main()
