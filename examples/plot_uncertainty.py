"""
How far off may it be?
======================

A regressor of polytrain answers with a standard deviation, or with an interval that holds the
target with a given frequency. Both are fitted along: there is no second model. A Gaussian
process has a standard deviation, too; boosting needs one quantile model for each end of an
interval.
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
# First one column, with a gap in which there are no rows. A polynomial of a suitable degree
# doubts there. The default functions are straight lines between the values of the training
# rows, and hardly doubt what lies between them. A Gaussian process doubts most, and need not
# be told a degree: it is the model to take where gaps in single columns matter.

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
# Then a table: intervals for 90 % of the patients of the diabetes data, out of three folds.
# What counts is how many targets are inside, and how wide the intervals are for that.


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
# The train and the Gaussian process are level, boosting is too sure of itself. Where 90 % must
# be kept and not just come out, ``calibration_fraction`` sets rows apart for that.
