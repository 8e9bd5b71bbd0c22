"""Draw the pictures of the guides about losses, early stopping and streams, into docs/images.

    python scripts/draw_guides.py [losses stopping streams]

The picture about streams shows what ``python -m benchmarks.streams`` has written.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from doc_images import IMAGES, RESULTS, panels

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, clean_axes

STREAMS = RESULTS / "streams-curves.json"


def draw_losses() -> None:
    """Quantiles, outliers and counts."""
    rng = np.random.default_rng(0)
    figure, (left, middle, right) = panels(3, 11, 3.3)
    grid = np.linspace(-1, 1, 300)[:, None]

    x = rng.uniform(-1, 1, 1000)
    y = np.sin(3 * x) + (0.15 + 0.45 * (x + 1) / 2) * rng.normal(size=1000)
    left.scatter(x, y, s=3, color="0.75", linewidths=0)
    for level, colour in ((0.9, COLOURS[1]), (0.5, COLOURS[0]), (0.1, COLOURS[2])):
        model = TensorTrainRegressor(loss="quantile", quantile=level, random_state=0).fit(x[:, None], y)
        left.plot(grid, model.predict(grid), color=colour, linewidth=2, label=f"quantile={level}")
    left.legend(frameon=False, fontsize="small", loc="upper left")
    clean_axes(left, 'loss="quantile"')

    x = rng.uniform(-1, 1, 200)
    y = np.sin(3 * x) + 0.1 * rng.normal(size=200)
    y[::8] += rng.uniform(2, 6, 25)
    middle.scatter(x, y, s=6, color="0.65", linewidths=0)
    for loss, colour in (("squared", COLOURS[1]), ("huber", COLOURS[0])):
        model = TensorTrainRegressor(loss=loss, random_state=0).fit(x[:, None], y)
        middle.plot(grid, model.predict(grid), color=colour, linewidth=2, label=loss)
    middle.set_ylim(-2, 6)
    middle.legend(frameon=False, fontsize="small", loc="upper left")
    clean_axes(middle, "one target in eight is wrong")

    x = rng.uniform(-1, 1, 500)
    y = rng.poisson(np.exp(1 + 1.5 * np.sin(3 * x)))
    right.scatter(x, y + rng.uniform(-0.3, 0.3, 500), s=4, color="0.7", linewidths=0)
    model = TensorTrainRegressor(loss="poisson", random_state=0).fit(x[:, None], y)
    right.plot(grid, np.exp(1 + 1.5 * np.sin(3 * grid)), color="0.2", linewidth=1, linestyle=":", label="truth")
    right.plot(grid, model.predict(grid), color=COLOURS[0], linewidth=2, label="predicted mean")
    right.legend(frameon=False, fontsize="small", loc="upper left")
    clean_axes(right, 'counts, loss="poisson"')
    figure.savefig(IMAGES / "losses.png", dpi=120)


def draw_stopping() -> None:
    """Both curves of a fit that overfits."""

    def rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (n_rows, 4))
        return X, 3 * X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_rows)

    settings = {"basis": "power", "rank": 4, "alpha": 1e-3, "init": "random", "tol": 0.0, "clip": False}
    settings["random_state"] = 0
    X, y = rows(100, 0)
    X_val, y_val = rows(300, 1)
    end = TensorTrainRegressor(**settings, max_sweeps=25).fit(X, y, X_val=X_val, y_val=y_val).n_iter_
    sweeps = range(1, 26)
    fits = [TensorTrainRegressor(**settings, max_sweeps=n).fit(X, y) for n in sweeps]
    learned, losses = (
        [np.mean(np.square(fit.predict(rows) - wanted)) for fit in fits] for rows, wanted in ((X, y), (X_val, y_val))
    )
    figure, (ax,) = panels(1, 6.5, 3.3)
    ax.plot(sweeps, learned, color=COLOURS[0], marker="o", markersize=3, label="training")
    ax.plot(sweeps, losses, color=COLOURS[1], marker="o", markersize=3, label="validation")
    best = int(np.argmin(losses))
    ax.plot(sweeps[best], losses[best], marker="o", markersize=11, fillstyle="none", color="0.2", linestyle="none")
    ax.annotate("kept", (sweeps[best], losses[best]), (0, -18), textcoords="offset points", ha="center")
    ax.axvline(end, color="0.5", linestyle=":", linewidth=1)
    ax.text(end + 0.2, max(losses) * 0.9, "stopped: no gain in 2 sweeps", fontsize="small", color="0.3")
    ax.set_xlabel("sweep")
    ax.set_ylabel("mean squared error")
    ax.set_ylim(0, None)
    ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.42))
    clean_axes(ax, "")
    figure.savefig(IMAGES / "stopping.png", dpi=120)


def draw_streams() -> None:
    """How near a stream comes to the batch, and how it finds back after a change."""
    content = json.loads(STREAMS.read_text())
    figure, (left, right) = panels(2, 10, 3.4)
    for (loss, curve), colour in zip(content["objectives"].items(), COLOURS, strict=False):
        left.plot(np.arange(1, len(curve) + 1), curve, color=colour, linewidth=2, label=f"{loss} loss")
    left.axhline(1, color="0.5", linestyle=":", linewidth=1)
    left.set_yscale("log")
    left.set_yticks([1, 1.1, 1.5, 2, 4], labels=["1", "1.1", "1.5", "2", "4"])
    left.minorticks_off()
    left.set_ylim(0.97, 5)
    left.set_xlabel("blocks of 200 rows")
    left.set_ylabel("objective of all rows / batch")
    left.legend(frameon=False)
    clean_axes(left, "one block after the other, beside all at once")
    for (forgetting, found), colour in zip(content["changes"].items(), COLOURS, strict=False):
        right.plot(np.arange(2, len(found) + 2), found, color=colour, linewidth=2, label=f"forgetting={forgetting}")
    right.axvline(len(found) // 2 + 1, color="0.5", linestyle=":", linewidth=1)
    right.set_ylim(-3, 1.05)
    right.set_xlabel("blocks of 200 rows")
    right.set_ylabel("$R^2$ of the next block")
    right.legend(frameon=False, loc="lower left")
    clean_axes(right, "the rule changes its sign half-way")
    figure.savefig(IMAGES / "streams.png", dpi=120)


PICTURES = {"losses": draw_losses, "stopping": draw_stopping, "streams": draw_streams}


def main() -> None:
    """Draw what is asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", nargs="*", choices=[*PICTURES, []], help="which pictures")
    for name in parser.parse_args().pictures or PICTURES:
        PICTURES[name]()


if __name__ == "__main__":
    main()
