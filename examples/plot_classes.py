"""
Decision boundaries of classifiers
==================================

Tables with two columns can be drawn. Here are four simulated tables, and the decision regions
of five classifiers that learned from the same 200 noisy rows. All models have default
settings; support vectors and logistic regression follow a scaler, which polytrain does not
need.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polytrain import TensorTrainClassifier
from polytrain.plotting import COLOURS

# %%
# Four functions with known boundaries: a curve, rings, a product of both columns, and steps
# along the axes. One label in twenty is wrong.


def bend(x, y):
    return y > np.sin(2 * x)


def rings(x, y):
    return np.sin(2.5 * np.hypot(x, y)) > 0


def product(x, y):
    return x * y > 0.3


def steps(x, y):
    return (x > 0.7) ^ (y > -0.9)


def rows(rule, count, wrong, seed):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2.5, 2.5, size=(count, 2))
    return X, rule(*X.T) ^ (generator.uniform(size=count) < wrong)


# %%
# The models, and the error of each on 4000 new rows with correct labels.

models = {
    "polytrain": TensorTrainClassifier(random_state=0),
    "SVC, RBF kernel": make_pipeline(StandardScaler(), SVC()),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
rules = [bend, rings, product, steps]
axis = np.linspace(-2.5, 2.5, 120)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

figure, grid = plt.subplots(
    len(rules), len(models), figsize=(11, 9), layout="constrained", sharex=True, sharey=True
)
for line, rule in zip(grid, rules, strict=True):
    X, y = rows(rule, 200, wrong=0.05, seed=0)
    X_test, y_test = rows(rule, 4000, wrong=0.0, seed=1)
    for ax, (name, model) in zip(line, models.items(), strict=True):
        model.fit(X, y)
        regions = model.predict(plane).reshape(len(axis), -1)
        ax.pcolormesh(
            axis, axis, regions, cmap=ListedColormap(["#f6d9c6", "#cfe3f1"]), shading="nearest"
        )
        truth = rule(*plane.T).reshape(len(axis), -1).astype(float)
        ax.contour(
            axis, axis, truth, levels=[0.5], colors="0.35", linewidths=0.8, linestyles=":"
        )
        for label, colour, marker in ((False, COLOURS[1], "s"), (True, COLOURS[0], "o")):
            ax.scatter(*X[y == label].T, s=7, color=colour, marker=marker, linewidths=0)
        error = np.mean(model.predict(X_test) != y_test)
        ax.set_title(
            f"{name}\n{100 * error:.1f} %" if rule is bend else f"{100 * error:.1f} %",
            fontsize="medium",
        )
        ax.set(xticks=[], yticks=[])
        print(f"{rule.__name__:8} {name:20} {100 * error:5.1f} %")
    line[0].set_ylabel(rule.__name__)
plt.show()

# %%
# Dotted lines are the true boundaries. Where these are smooth, polytrain's decision regions are
# smooth, too, and it has fewer errors than the others. Trees consist of steps along the axes:
# on that table a forest and boosting are slightly ahead. A straight line is not enough for any
# of them.
