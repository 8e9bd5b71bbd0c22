"""
Feature importances, effects and interactions
=============================================

A tensor train is a sum of products, so its main effects and the share of each column in the
variance are computed exactly, not sampled. Friedman's first function, ``10 sin(pi a b) + 20
(c - 0.5)^2 + 10 d + 5 e``, has known answers to compare with. Three further columns have no
effect.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.inspection import partial_dependence, permutation_importance

from polytrain import TensorTrainRegressor
from polytrain.explain import effects, sobol_indices
from polytrain.plotting import COLOURS, EffectsDisplay, clean_axes

table, y = make_friedman1(2000, n_features=8, noise=1.0, random_state=0)
X = pd.DataFrame(table, columns=list("abcdefgh"))
model = TensorTrainRegressor(random_state=0).fit(X, y)
boosting = HistGradientBoostingRegressor(random_state=0).fit(X, y)

# %%
# All main effects and the strongest pair at once:

EffectsDisplay.from_estimator(model, X, columns=list("abcdefg"), n_pairs=1)
plt.show()

# %%
# Each title has two shares: that of the column alone, and that including its interactions. They
# differ only for ``a`` and ``b``. The same as a list:

print(effects(model, X, top_pairs=2))

# %%
# How close is this to the truth? The plot compares shares of the variance of the function
# itself, by brute force over a million points, and the permutation importances of boosting
# divided by their sum. The latter cost 5 predictions of the table per column, do not separate
# main effects from interactions, and are not shares of the variance.

points = (np.arange(1000) + 0.5) / 1000
product = 10 * np.sin(np.pi * np.outer(points, points))
parts = {
    "a": product.mean(axis=1).var(),
    "b": product.mean(axis=0).var(),
    "c": 400 / 180,
    "d": 100 / 12,
    "e": 25 / 12,
}
both = product.var() - parts["a"] - parts["b"]
truth = pd.Series(parts).reindex(X.columns, fill_value=0.0)
total = truth.sum() + both
permuted = permutation_importance(boosting, X, y, random_state=0).importances_mean
table = pd.DataFrame(
    {
        "true, alone": truth / total,
        "polytrain, alone": sobol_indices(model, X).first[0],
        "true, in all": (truth + both * truth.index.isin(["a", "b"])) / total,
        "polytrain, in all": sobol_indices(model, X).total[0],
        "boosting, permuted": permuted / permuted.sum(),
    }
)
print((100 * table).round(1).to_string())

# %%
# Curves of both models, and the truth. Boosting follows in steps.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, name, curve in zip(
    axes, "ce", [lambda x: 20 * (x - 0.5) ** 2, lambda x: 5 * x], strict=True
):
    for label, fitted, colour in (
        ("polytrain", model, COLOURS[0]),
        ("boosting", boosting, COLOURS[1]),
    ):
        found = partial_dependence(fitted, X, [name], percentiles=(0, 1), grid_resolution=60)
        grid, values = found["grid_values"][0], found["average"][0]
        ax.plot(grid, values - values.mean(), color=colour, label=label)
    ax.plot(grid, curve(grid) - curve(grid).mean(), color="0.2", linestyle=":", label="truth")
    ax.set_xlabel(f"column {name}")
    clean_axes(ax)
axes[0].set_ylabel("partial dependence, less its mean")
axes[0].legend(frameon=False)
plt.show()
