"""Draw how sure a regressor is, in one column and on tables: docs/images/uncertainty.png.

python -m benchmarks.intervals --only hotel ames bike diamonds --folds 1 --out intervals.json
python scripts/draw_uncertainty.py intervals.json
"""

import json
import sys
from pathlib import Path

import numpy as np
from doc_images import IMAGES, panels

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, MARKERS

NAMES = {"constant": "errors of one size", "default": "predict_interval"}


def draw_band(ax):
    """A wave with a gap, learned as a polynomial of degree 8."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(0, 0.45, 60), rng.uniform(0.75, 1, 30)])
    y = np.sin(9 * x) + 0.15 * rng.normal(size=90)
    model = TensorTrainRegressor(basis="legendre", degree=8, random_state=0).fit(x[:, None], y)
    grid = np.linspace(0, 1, 300)
    mean = model.predict(grid[:, None])
    low, high = model.predict_interval(grid[:, None], coverage=0.9).T
    ax.fill_between(grid, low, high, color=COLOURS[0], alpha=0.2, lw=0, label="90 % interval")
    ax.plot(grid, mean, color=COLOURS[0], label="prediction")
    ax.plot(grid, np.sin(9 * grid), "--", color=COLOURS[6], lw=1, label="truth")
    ax.plot(x, y, ".", color=COLOURS[1], ms=4, label="rows")
    ax.set(title="A polynomial of degree 8: less sure without rows", xlabel="x", ylim=(-1.8, 1.5))
    ax.legend(fontsize=8, ncols=2, loc="lower left")


def draw_coverage(ax, rows):
    """Part of the test rows in their interval by fifths of the prediction, by table and method."""
    tables = list(dict.fromkeys(row["table"] for row in rows))
    steps = np.linspace(-0.32, 0.32, 5)
    for place, (method, label) in enumerate(NAMES.items()):
        for number, table in enumerate(tables):
            own = [row for row in rows if (row["table"], row["method"]) == (table, method)]
            held = np.average([row["fifths"] for row in own], axis=0, weights=[row["rows"] for row in own])
            style = {"color": COLOURS[1 - place], "marker": MARKERS[place], "ms": 5, "lw": 1}
            ax.plot(number + steps, 100 * held, **style, label=None if number else label)
    ax.axhspan(85, 95, color="0.9", zorder=0)
    ax.axhline(90, color="0.5", lw=1, zorder=0)
    ax.set_xticks(range(len(tables)), tables)
    ax.set(title="Targets in 90 % intervals, by fifths of the prediction", ylabel="%")
    ax.legend(fontsize=8, loc="lower left")


def main(measured, path):
    """Both pictures side by side."""
    figure, (left, right) = panels(2, 10.5, 4)
    draw_band(left)
    draw_coverage(right, json.loads(Path(measured).read_text())["rows"])
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else IMAGES / "uncertainty.png")
