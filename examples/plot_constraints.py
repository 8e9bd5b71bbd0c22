"""
Interaction constraints
=======================

Suppose that a price model must be easy to review: location and size may interact, and every
other column must have an effect of its own. ``interaction_cst`` expresses this as in
scikit-learn's gradient boosting. A forbidden interaction is then not just small but exactly
zero.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, InteractionDisplay, clean_axes

# %%
# Simulated rents per square metre, in which only distance from the centre and size interact.


def rents(count, seed):
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": generator.uniform(20, 140, size=count),
            "distance": generator.uniform(0, 15, size=count),
            "age": generator.uniform(0, 100, size=count),
            "floor": generator.integers(0, 9, size=count).astype(float),
            "noise": generator.uniform(35, 75, size=count),
        }
    )
    rent = 16 - 0.4 * X["distance"] + 250 * np.exp(-X["distance"] / 5) / X["size"]
    return X, rent + 3 * np.cos(X["age"] / 16) + 0.2 * X["floor"] - 0.004 * (
        X["noise"] - 35
    ) ** 2


X, truth = rents(250, seed=0)
y = truth + 1.5 * np.random.default_rng(1).normal(size=len(X))
X_test, truth_test = rents(5000, seed=2)

# %%
# Four models, from all interactions to none, and the effects that each found: the diagonal
# shows main effects, the other cells interactions of pairs, in per cent of the variance.

constraints = {
    "all may interact": None,
    "any two": "pairwise",
    "size and distance": [["size", "distance"], ["age"], ["floor"], ["noise"]],
    "none": "no_interactions",
}
fitted = {}
figure, axes = plt.subplots(1, 4, figsize=(14, 4), layout="constrained")
for ax, (name, groups) in zip(axes, constraints.items(), strict=True):
    fitted[name] = TensorTrainRegressor(interaction_cst=groups, random_state=0).fit(X, y)
    drawn = InteractionDisplay.from_estimator(fitted[name], X, ax=ax)
    drawn.im_.set_clim(0, 60)
    if ax is not axes[-1]:  # one scale serves all
        drawn.im_.colorbar.remove()
    ax.set_title(name)
plt.show()

# %%
# Errors on new rows without noise, and those of boosting under the same constraints. Boosting
# takes column numbers and treats columns that are in no group as one more group, as polytrain
# does.

numbers = {name: k for k, name in enumerate(X.columns)}
print(f"{'':18} {'polytrain':>10} {'boosting':>10}")
errors = {}
for name, groups in constraints.items():
    if isinstance(groups, list):
        groups = [[numbers[column] for column in group] for group in groups]
    rival = HistGradientBoostingRegressor(interaction_cst=groups, random_state=0).fit(X, y)
    errors[name] = [
        root_mean_squared_error(truth_test, one.predict(X_test))
        for one in (fitted[name], rival)
    ]
    print(f"{name:18} {errors[name][0]:10.2f} {errors[name][1]:10.2f}")

# %%
# With few rows, a correct constraint helps a train, since there are fewer terms to fit noise
# with. A constraint that forbids an existing interaction loses part of this gain. Boosting
# gains little from the correct one here.

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
places = np.arange(len(errors))
for shift, (label, colour) in enumerate((("polytrain", COLOURS[0]), ("boosting", COLOURS[7]))):
    heights = [pair[shift] for pair in errors.values()]
    bars = ax.bar(places + 0.38 * shift - 0.19, heights, width=0.36, color=colour, label=label)
    ax.bar_label(bars, fmt="%.2f", fontsize="small")
ax.set_xticks(places, list(errors))
ax.set_ylabel("error (RMSE)")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
clean_axes(ax)
plt.show()
