"""
Distributed training with Dask
==============================

``fit`` accepts Dask arrays and frames. Rows stay in their partitions: cores of the train are
sent there, and small matrices come back. In this example, a cluster of two threads on one
machine takes the place of a cluster of many; only the line that creates the client would
differ.
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
# 680,000 lazy rows in four partitions, computed from a formula on demand. The noise has
# standard deviation 3.


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
# With all settings given, a fit makes one pass over the rows per update. Settings can also be
# chosen from a sample of lazy rows; that takes some twenty passes more. Predictions of lazy
# rows are lazy.

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
# Do so many rows help? With noise of this size every row does. Models in memory, on subsets of
# the rows:

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
# With a thousand rows boosting is ahead of these settings, which were made for many rows. It
# learns from fifty thousand rows in half a second, and could learn from all of these if they
# fit in the memory of one machine. If they do not, it needs another implementation than scikit-
# learn's.
