"""Draw the functions that maps find for a skewed column: docs/images/maps_functions.png.

python scripts/draw_maps.py [FILE]
"""

from __future__ import annotations

import numpy as np
from doc_images import panels, save

from polytrain.maps import ColumnSummary, MapSettings, fit_map
from polytrain.plotting import COLOURS, clean_axes

TITLES = {"spline": "spline: by range", "spline-rank": "spline-rank: by rank", "gauss": "gauss: smooth, by range"}


def main() -> None:
    """Draw the functions of three kinds."""
    column = np.sort(np.exp(0.7 * np.random.default_rng(0).normal(size=400)))
    summary = ColumnSummary(column[0], column[-1], column, np.ones(len(column)))
    figure, axes = panels(3, 11, 3.6, sharey=True)
    for ax, (basis, title) in zip(axes, TITLES.items(), strict=True):
        feature_map = fit_map(MapSettings(basis), summary)
        grid = np.linspace(*feature_map.range, 600)
        for number, (function, colour) in enumerate(
            zip(feature_map.values(feature_map.place(grid))[1:5], COLOURS, strict=False), start=1
        ):
            ax.plot(grid, function, color=colour, linewidth=1.8, label=f"function {number}")
        ax.plot(column[::4], np.full(100, -2.15), "|", color="0.4", markersize=7)
        ax.set_xlabel("value of the column; ticks are rows")
        ax.axhline(0, color="0.85", linewidth=0.8, zorder=0)
        clean_axes(ax, f"{title}, {feature_map.n - 1} functions")
    axes[0].set_ylabel("function, with the size of its prior")
    axes[0].set_ylim(-2.4, 3.2)
    axes[0].legend(frameon=False, fontsize="small")
    save(figure, "maps_functions.png")


if __name__ == "__main__":
    main()
