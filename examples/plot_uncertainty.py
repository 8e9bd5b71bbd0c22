"""
Prediction intervals and standard deviations
============================================

A polytrain regressor returns a standard deviation, or an interval that contains the target
with a given probability. Both come from a single fit. A Gaussian process also has a standard
deviation; boosting needs one quantile model for each end of an interval.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, clean_axes

# %%
# First a single column, with a gap without rows. A polynomial of a suitable degree is uncertain
# there. The default functions are straight lines between the values of the training rows, and
# hardly show the gap. A Gaussian process is the least certain there, and needs no degree: use
# it where gaps in single columns matter.

generator = np.random.default_rng(0)
x = np.concatenate([generator.uniform(0, 0.35, 60), generator.uniform(0.8, 1, 40)])
y = np.sin(7 * x) + 0.15 * generator.normal(size=100)
grid = np.linspace(0, 1, 300)
kernel = ConstantKernel() * RBF(0.2) + WhiteKernel(0.02)
models = {
    'polytrain, basis="legendre"': TensorTrainRegressor(
        basis="legendre", degree=6, random_state=0
    ),
    "polytrain": TensorTrainRegressor(random_state=0),
    "Gaussian process": GaussianProcessRegressor(kernel, normalize_y=True),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained", sharey=True)
for ax, (name, model), colour in zip(axes, models.items(), COLOURS, strict=False):
    mean, std = model.fit(x[:, None], y).predict(grid[:, None], return_std=True)
    ax.fill_between(
        grid, mean - 1.645 * std, mean + 1.645 * std, color=colour, alpha=0.25, linewidth=0
    )
    ax.plot(grid, mean, color=colour)
    ax.plot(grid, np.sin(7 * grid), color="0.3", linewidth=1, linestyle=":")
    ax.scatter(x, y, s=8, color="0.4", linewidths=0)
    ax.set_xlabel("x")
    clean_axes(ax, name)
axes[0].set_ylim(-2.2, 2.2)
axes[0].set_ylabel("mean and 90 % band; dotted: truth")
plt.show()

# %%
# Then a table: intervals for 90 % of the patients of the diabetes data, in three folds. Two
# things count: how many targets are inside, and how wide the intervals are.


def of_train(X, y, X_test):
    return (
        TensorTrainRegressor(random_state=0).fit(X, y).predict_interval(X_test, coverage=0.9).T
    )


def of_process(X, y, X_test):
    model = make_pipeline(
        StandardScaler(),
        GaussianProcessRegressor(ConstantKernel() * RBF(3.0) + WhiteKernel(), normalize_y=True),
    )
    mean, std = model.fit(X, y).predict(X_test, return_std=True)
    return mean - 1.645 * std, mean + 1.645 * std


def of_boosting(X, y, X_test):
    ends = [
        HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=50)
        for level in (0.05, 0.95)
    ]
    return [end.fit(X, y).predict(X_test) for end in ends]


X, y = load_diabetes(return_X_y=True)
print(f"{'':18} {'inside':>7} {'mean width':>11}")
for name, method in (
    ("polytrain", of_train),
    ("Gaussian process", of_process),
    ("quantile boosting", of_boosting),
):
    low, high = np.empty(len(y)), np.empty(len(y))
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        low[test], high[test] = method(X[train], y[train], X[test])
    inside = 100 * np.mean((low <= y) & (y <= high))
    print(f"{name:18} {inside:5.1f} % {np.mean(high - low):11.0f}")

# %%
# The train and the Gaussian process are level, and boosting is overconfident. If a coverage of
# 90 % must be guaranteed, ``calibration_fraction`` holds out rows for it.
