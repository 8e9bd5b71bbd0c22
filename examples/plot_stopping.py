"""
Early stopping
==============

Sweeps update the cores along the train, back and forth, and each sweep lowers the training
error. With weak regularisation, the error on other rows rises again at some point. With
validation rows, a fit stops there and keeps the best train. The default does not need this,
because it chooses the regularisation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_squared_error

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, clean_axes


def rows(count, seed):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, size=(count, 5))
    return X, 3 * X[:, 0] * X[:, 1] + X[:, 2] + generator.normal(size=count)


X, y = rows(150, seed=0)
X_val, y_val = rows(300, seed=1)
X_test, y_test = rows(5000, seed=2)

# %%
# A random start and almost no regularisation make overfitting likely. Fits of up to 25 sweeps
# show the effect; a fit with validation rows stops early.

settings = {
    "basis": "power",
    "degree": 2,
    "rank": 4,
    "alpha": 1e-3,
    "init": "random",
    "tol": 0.0,
    "random_state": 0,
}
fits = [TensorTrainRegressor(**settings, max_sweeps=n).fit(X, y) for n in range(1, 26)]
stopped = TensorTrainRegressor(**settings, max_sweeps=25).fit(X, y, X_val=X_val, y_val=y_val)
print(f"stopped after {stopped.n_iter_} sweeps, reason: {stopped.stop_reason_}")

# %%
# Boosting, counted in trees, also fits the noise, but here without harm to other rows.

boosting = HistGradientBoostingRegressor(max_iter=150, random_state=0).fit(X, y)
stages = [mean_squared_error(y_val, stage) for stage in boosting.staged_predict(X_val)]
learned = [mean_squared_error(y, stage) for stage in boosting.staged_predict(X)]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
curves = {
    "tensor train": (
        [mean_squared_error(y, fit.predict(X)) for fit in fits],
        [mean_squared_error(y_val, fit.predict(X_val)) for fit in fits],
    ),
    "boosting": (learned, stages),
}
for ax, (name, (training, validation)) in zip((left, right), curves.items(), strict=True):
    steps = np.arange(1, len(training) + 1)
    ax.plot(steps, training, color=COLOURS[0], label="training rows")
    ax.plot(steps, validation, color=COLOURS[1], label="validation rows")
    best = int(np.argmin(validation))
    ax.plot(
        steps[best],
        validation[best],
        "o",
        markersize=12,
        fillstyle="none",
        color="0.2",
        label="best",
    )
    clean_axes(ax, name)
left.axvline(stopped.n_iter_, color="0.5", linewidth=1, linestyle=":")
left.text(stopped.n_iter_ + 0.3, 1.1, "stopped here", fontsize="small", color="0.35")
left.set(xlabel="sweep", ylabel="mean squared error")
right.set_xlabel("tree")
left.set_ylim(0, 2.5)
right.legend(frameon=False, fontsize="small")
plt.show()

# %%
# Errors on new rows, where the noise alone gives 1. Stopping early helps, but boosting is
# better. Early stopping is a weak remedy: the default, which chose functions and regularisation
# on the same 150 rows and needs no validation rows, is the best.

models = {
    "25 sweeps": fits[-1],
    "stopped": stopped,
    "boosting, 150 trees": boosting,
    "boosting, stopped": HistGradientBoostingRegressor(
        max_iter=int(np.argmin(stages)) + 1, random_state=0
    ).fit(X, y),
    "polytrain, default": TensorTrainRegressor(random_state=0).fit(X, y),
}
for name, model in models.items():
    print(f"{name:20} {mean_squared_error(y_test, model.predict(X_test)):.2f}")
