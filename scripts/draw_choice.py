"""Draw what a default fit tries, left-out error against bandwidth for all kinds of functions: docs/images/choosing.png.

python scripts/draw_choice.py [FILE]
"""

from __future__ import annotations

from doc_images import panels, save
from matplotlib.axes import Axes
from sklearn.datasets import load_breast_cancer, load_wine

from polytrain import TensorTrainClassifier
from polytrain.choice import Chosen
from polytrain.plotting import COLOURS, clean_axes

FAMILIES = dict(zip(("smooth", "gauss", "spline"), COLOURS, strict=False))
LINES = {"": "-", "rank": "--", "distinct": ":"}
MARKERS = {"": "o", "rank": "s", "distinct": "^"}
TABLES = {"wine": load_wine, "breast cancer": load_breast_cancer}


def draw(ax: Axes, chosen: Chosen) -> None:
    """One line per kind, a ring around the one that was chosen, and a star at the least error."""
    tried = [entry for entry in chosen.tried if entry.step == "maps"]
    # The first look, at all kinds; of many rows, a second one saw more of them.
    tried = [entry for entry in tried if entry.n_rows == tried[0].n_rows]
    for basis in dict.fromkeys(entry.basis for entry in tried):
        family, _, scale = basis.partition("-")
        points = [(entry.bandwidth, entry.error) for entry in tried if entry.basis == basis]
        style = {"color": FAMILIES[family], "linestyle": LINES[scale], "marker": MARKERS[scale], "markersize": 3.5}
        ax.plot(*zip(*points, strict=True), linewidth=1.5, label=basis, **style)
    winner = min((entry for entry in tried if entry.basis == chosen.basis), key=lambda entry: entry.error)
    least = min(tried, key=lambda entry: entry.error)
    ring = {"markerfacecolor": "none", "markeredgecolor": "black", "markeredgewidth": 1.6, "markersize": 13}
    ax.plot(winner.bandwidth, winner.error, "o", linestyle="none", label="chosen", zorder=3, **ring)
    ax.plot(least.bandwidth, least.error, "*", color="black", markersize=8, linestyle="none", label="least error")
    ax.set_ylim(0.95 * least.error, 1.6 * least.error)


def main() -> None:
    """Draw both tables."""
    figure, axes = panels(len(TABLES), 11, 4.2)
    for ax, (name, load) in zip(axes, TABLES.items(), strict=True):
        X, y = load(return_X_y=True)
        chosen = TensorTrainClassifier(random_state=0).fit(X, y).choice_
        draw(ax, chosen)
        ax.set_xscale("log", base=2)
        ax.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
        ax.set_xlabel("bandwidth")
        clean_axes(ax, f"{name}, {X.shape[0]} rows, {X.shape[1]} columns: {chosen.basis}")
    axes[0].set_ylabel("leave-one-out error, each with its best alpha")
    axes[-1].legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, "choosing.png")


if __name__ == "__main__":
    main()
