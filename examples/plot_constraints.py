"""
Which columns may act together
==============================

Someone has to sign for the model, and signs only for what can be read: prices may depend on
the place and the size together, everything else must act on its own. ``interaction_cst`` says
so, with the same words as in scikit-learn's boosting. A forbidden interaction is then not
small: it is not there.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, InteractionDisplay, clean_axes

# %%
# Simulated rents per square metre, of which only distance from the centre and size act
# together.


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
# Four models, from everything allowed to nothing, and what each has found: on the diagonal
# what columns do alone, beside it what pairs do together, in per cent of the variance.

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
# Errors on fresh rows without noise, beside boosting under the same constraints. Boosting
# counts columns by number and takes those that no group names as one more group, as polytrain
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
# With few rows a constraint that is true helps a train, since noise finds fewer places to
# settle, and one that forbids what is there gives part of this away again. Boosting gains
# little from the true one here.

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
