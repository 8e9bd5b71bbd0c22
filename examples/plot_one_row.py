"""
Exact Shapley values of single predictions
==========================================

Shapley values split the difference between a prediction and the mean among the columns. For
most models they are estimated from random coalitions of columns. For a tensor train they are
computed exactly, in a fraction of a millisecond.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from polytrain import TensorTrainRegressor
from polytrain.explain import explain_local
from polytrain.plotting import COLOURS, LocalExplanationDisplay, clean_axes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.assign(sex=X["sex"].map({1.0: "woman", 2.0: "man"}))
model = TensorTrainRegressor(random_state=0).fit(X, y)

# %%
# A patient with a prediction above the average, and one below:

figure, axes = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
for ax, row in zip(axes, (17, 200), strict=True):
    LocalExplanationDisplay.from_estimator(model, X, row=row, max_columns=7, ax=ax)
plt.show()

# %%
# The bars sum to the prediction, up to rounding, for all patients:

started = time.perf_counter()
found = explain_local(model, X)
seconds = time.perf_counter() - started
gap = np.abs(found.base + found.values.sum(axis=1) - found.scores).max()
print(f"{len(X)} rows, {1000 * seconds / len(X):.2f} ms each; largest gap {gap:.0e}")

# %%
# How does sampling compare? It replaces the columns in a random order by values of random other
# patients, and records how the prediction changes: one order costs eleven predictions. The mean
# over orders converges to the exact values, but slowly: one more digit takes a hundred times as
# many predictions. Boosting, forests and most other models need this, although trees have
# faster methods in some cases.


def sampled(row, n_orders, generator):
    """Shapley values of each order, (n_orders, columns); columns are drawn independently."""
    frames = X.iloc[np.full(11 * n_orders, row)].reset_index(drop=True)
    orders = np.argsort(generator.uniform(size=(n_orders, 10)), axis=1)
    ranks = np.argsort(orders, axis=1)
    for k, name in enumerate(X.columns):
        other = np.repeat(generator.integers(len(X), size=n_orders), 11)
        away = (np.arange(11) <= ranks[:, [k]]).ravel()
        frames[name] = np.where(away, X[name].to_numpy()[other], frames[name])
    scores = model.predict(frames).reshape(n_orders, 11)
    return np.take_along_axis(np.diff(scores, axis=1), ranks, axis=1)


exact = explain_local(model, X.iloc[[17]], X_background=X).values[0, :, 0]
values = sampled(17, 6000, np.random.default_rng(0))
counts = np.array([30, 100, 300, 1000, 3000, 6000])
errors = [np.sqrt(np.mean((values[:count].mean(axis=0) - exact) ** 2)) for count in counts]

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.loglog(11 * counts, errors, color=COLOURS[1], marker="o", label="sampled orders")
ax.loglog(
    11 * counts,
    errors[0] * np.sqrt(counts[0] / counts),
    color="0.5",
    linestyle=":",
    label="1 / square root",
)
ax.set(
    xlabel="predictions that were made for one row", ylabel="error of a Shapley value (RMSE)"
)
ax.legend(frameon=False)
clean_axes(ax, f"the largest value of this row is {np.abs(exact).max():.0f}")
plt.show()
