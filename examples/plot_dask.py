"""
More rows than one process holds
================================

``fit`` takes Dask arrays and frames as it takes arrays. Rows stay in the partitions where
they are; cores of the train go there, and small matrices come back. A cluster of two threads
on this machine stands for one of many machines: only the line that makes the client would
change.
"""

import time

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, MARKERS, clean_axes

# %%
# 680,000 lazy rows in four partitions, made by a formula when they are asked for. Noise has
# the size 3.


def truth(X, sine=np.sin):
    return (
        10 * sine(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3] * X[:, 4]
        + 5 * X[:, 5]
    )


random = da.random.default_rng(0)
X = random.uniform(size=(680_000, 6), chunks=(170_000, 6))
y = truth(X, da.sin) + 3 * random.normal(size=680_000, chunks=170_000)
X_test = np.random.default_rng(1).uniform(size=(5000, 6))
print(f"{X.nbytes / 1e6:.0f} MB in {X.numblocks[0]} partitions")

# %%
# With all settings given, the rows are passed over as often as there are updates. Settings
# would be chosen from lazy rows, too, on a sample; that takes some twenty passes more.
# Predictions of lazy rows are lazy.

settings = {
    "basis": "legendre",
    "degree": 4,
    "rank": 4,
    "alpha": 1e-6,
    "max_sweeps": 1,
    "random_state": 0,
}
points = {}
with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
    started = time.perf_counter()
    model = TensorTrainRegressor(**settings).fit(X, y)
    print(f"fitted in {time.perf_counter() - started:.1f} s: {model.n_parameters_} numbers")
    residuals = y - model.predict(X)
    size = residuals.std().compute()
    print(f"residuals: a lazy {type(residuals).__name__}, of size {size:.3f}; the noise is 3")
    points["polytrain, Dask"] = {
        len(X): root_mean_squared_error(truth(X_test), model.predict(X_test))
    }
X_part, y_part = da.compute(X.blocks[0], y.blocks[0])

# %%
# What are many rows good for? Against noise of this size every row helps. Models in memory, on
# parts of the rows:

rivals = {
    "polytrain, in memory": TensorTrainRegressor(**settings),
    "boosting": HistGradientBoostingRegressor(random_state=0),
}
for name, rival in rivals.items():
    points[name] = {}
    for count in (1000, 7000, 50_000):
        rival.fit(X_part[:count], y_part[:count])
        points[name][count] = root_mean_squared_error(truth(X_test), rival.predict(X_test))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, errors), colour, marker in zip(points.items(), COLOURS, MARKERS, strict=False):
    ax.loglog(
        list(errors),
        list(errors.values()),
        color=colour,
        marker=marker,
        markersize=7,
        label=name,
    )
    print(
        f"{name:21}", ", ".join(f"{count} rows: {error:.3f}" for count, error in errors.items())
    )
ax.set(xlabel="rows to learn from", ylabel="error of the function (RMSE)")
ax.set_yticks([0.1, 0.3, 1], ["0.1", "0.3", "1"])
ax.legend(frameon=False)
clean_axes(ax)
plt.show()

# %%
# With a thousand rows boosting is ahead of these settings, which were made for many. It learns
# fifty thousand in half a second and would take all of these, if they fit into the memory of
# one machine. Where they do not, it needs another implementation than scikit-learn's.
