"""
Learning curves of regressors
=============================

How fast does the error fall as rows are added? Friedman's first function has five columns that
matter, two of them only in a product inside a sine, and five that do not, with noise of
standard deviation 1. The error is measured on the function without noise, so the best
possible error is 0.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, MARKERS, clean_axes

warnings.simplefilter(
    "ignore", ConvergenceWarning
)  # length scales of useless columns grow without end
kernel = ConstantKernel(10.0) * RBF(np.ones(10)) + WhiteKernel(0.1)
models = {
    "polytrain": TensorTrainRegressor(random_state=0),
    "boosting": HistGradientBoostingRegressor(random_state=0),
    "Gaussian process": make_pipeline(
        StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True)
    ),
    "ridge regression": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
}

# %%
# The Gaussian process has a length scale for each column. It stops at 150 rows, because its
# time grows with their cube.

X, y = make_friedman1(4000, noise=1.0, random_state=0)
X_test, y_test = make_friedman1(2000, noise=0.0, random_state=1)
sizes = [60, 150, 400, 1500, 4000]
print(f"{'rows':18}", *(f"{size:6}" for size in sizes))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, model), colour, marker in zip(models.items(), COLOURS, MARKERS, strict=False):
    used = [size for size in sizes if size <= 150 or name != "Gaussian process"]
    errors = [
        root_mean_squared_error(y_test, model.fit(X[:n], y[:n]).predict(X_test)) for n in used
    ]
    print(f"{name:18}", *(f"{error:6.2f}" for error in errors))
    ax.plot(used, errors, color=colour, marker=marker, label=name)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="rows to learn from",
    ylabel="error of the function (RMSE)",
)
ax.set_xticks(sizes, [str(size) for size in sizes])
ax.set_yticks([0.3, 0.5, 1, 2, 3], ["0.3", "0.5", "1", "2", "3"])
ax.minorticks_off()
ax.legend(frameon=False, fontsize="small")
clean_axes(ax, "Friedman's first function")
plt.show()

# %%
# With few rows the Gaussian process is far ahead: its length scales find out which columns have
# no effect, while polytrain treats all columns alike. Twice the rows take it eight times as
# long, though, while polytrain goes on to thousands of rows and more.
#
# A smooth function with few interactions suits both. Data about people often differ: on the
# diabetes table, with 442 patients, ten columns and much noise, there is little beyond a linear
# function, so the main task is to avoid overfitting. Ridge regression gets nearly as far in a
# fraction of the time.

X, y = load_diabetes(return_X_y=True)
folds = KFold(3, shuffle=True, random_state=0)
print(f"{'diabetes':18} {'RMSE':>6} {'seconds':>8}")
for name in ("polytrain", "boosting", "ridge regression"):
    started = time.perf_counter()
    scores = cross_val_score(
        models[name], X, y, cv=folds, scoring="neg_root_mean_squared_error"
    )
    print(f"{name:18} {-scores.mean():6.1f} {time.perf_counter() - started:8.2f}")
