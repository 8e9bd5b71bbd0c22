"""
Calibrated probabilities
========================

Of all days with a forecast of 70 %, it should rain on seven in ten. A label reveals little
about a single probability, so the rows of this example are drawn from a formula: the true
probability of each row is known, and predictions can be compared with it row by row.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from polytrain import TensorTrainClassifier
from polytrain.plotting import COLOURS, MARKERS, clean_axes


def rows(count, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 5))
    chance = expit(1.5 * X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.8 * X[:, 3])
    return X, generator.uniform(size=count) < chance, chance


X, y, _ = rows(1000, seed=0)
X_test, y_test, truth = rows(20_000, seed=1)

# %%
# By default, a classifier learns with the squared loss and turns scores into log-odds on left-
# out rows; ``loss="logistic"`` learns log-odds directly.

models = {
    "polytrain": TensorTrainClassifier(random_state=0),
    'polytrain, loss="logistic"': TensorTrainClassifier(loss="logistic", random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "logistic regression": LogisticRegression(),
}
chances = {name: model.fit(X, y).predict_proba(X_test)[:, 1] for name, model in models.items()}

print(f"{'':28} {'log loss':>9} {'distance from the truth':>24}")
print(f"{'the true chances':28} {log_loss(y_test, truth):9.3f} {0:24.3f}")
for name, chance in chances.items():
    print(f"{name:28} {log_loss(y_test, chance):9.3f} {np.mean(np.abs(chance - truth)):24.3f}")

# %%
# The left plot is the usual calibration curve: the share of the class among rows of similar
# predicted probability. The right plot needs the formula: the true probabilities of the rows
# with a given prediction. The band holds four fifths of them; a narrow band means that the
# model also distinguishes rows well.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax in (left, right):
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":")
    ax.set(xlabel="probability that a model gives", xlim=(0, 1), ylim=(0, 1), aspect="equal")
for (name, chance), colour, marker in zip(chances.items(), COLOURS, MARKERS, strict=False):
    seen, given = calibration_curve(y_test, chance, n_bins=12, strategy="quantile")
    left.plot(given, seen, color=colour, marker=marker, markersize=4, label=name)
for name, colour in (("polytrain", COLOURS[0]), ("boosting", COLOURS[2])):
    order = np.argsort(chances[name])
    groups = np.array_split(order, 40)
    centres = [chances[name][group].mean() for group in groups]
    low, high = np.transpose([np.quantile(truth[group], [0.1, 0.9]) for group in groups])
    right.fill_between(centres, low, high, color=colour, alpha=0.3, linewidth=0, label=name)
left.set_ylabel("share of the class")
right.set_ylabel("true chances, middle 80 %")
for ax in (left, right):
    ax.legend(frameon=False, fontsize="small", loc="upper left")
clean_axes(left, "reliability")
clean_axes(right, "the truth behind equal answers")
plt.show()

# %%
# Boosting with default settings is overconfident, and the forest is underconfident. Logistic
# regression is well calibrated but hardly distinguishes rows: calibration alone is not enough.
