"""Draw what a model has found with and without a constraint on its interactions: docs/images/constraints.png.

python scripts/draw_constraints.py [FILE]
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from doc_images import panels, save

from polytrain import TensorTrainRegressor
from polytrain.plotting import InteractionDisplay

CONSTRAINTS = {
    "all may interact": None,
    "any two": "pairwise",
    "c and d only": [["c", "d"], ["a"], ["b"], ["e"]],
    "none": "no_interactions",
}
# Per cent of the variance at the end of the scale.
LARGEST_SHARE = 72


def truth(table: pd.DataFrame) -> pd.Series:
    """The function that is to be found: c and d interact, the other columns do not."""
    return np.sin(3 * table["a"]) + table["b"] ** 2 + 2 * table["c"] * table["d"] + table["e"] / 2


def rows(count: int, seed: int) -> pd.DataFrame:
    """Rows of five independent columns."""
    generator = np.random.default_rng(seed)
    return pd.DataFrame(generator.uniform(-1, 1, size=(count, 5)), columns=list("abcde"))


def main() -> None:
    """Draw the interactions of four models side by side."""
    table, fresh = rows(120, seed=0), rows(5000, seed=1)
    y = truth(table) + 0.5 * np.random.default_rng(2).normal(size=len(table))
    figure, axes = panels(len(CONSTRAINTS), 14, 4)
    for ax, (name, groups) in zip(axes, CONSTRAINTS.items(), strict=True):
        model = TensorTrainRegressor(interaction_cst=groups, random_state=0).fit(table, y)
        drawn = InteractionDisplay.from_estimator(model, table, ax=ax)
        drawn.im_.set_clim(0, LARGEST_SHARE)
        if ax is not axes[-1]:  # one scale serves all
            drawn.im_.colorbar.remove()
        error = np.sqrt(np.mean(np.square(model.predict(fresh) - truth(fresh))))
        ax.set_title(f"{name}\nerror on fresh rows {error:.2f}", fontsize="medium")
    save(figure, "constraints.png")


if __name__ == "__main__":
    main()
