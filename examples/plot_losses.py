"""
Quantile regression, and Poisson regression with exposures
==========================================================

The loss of a regressor determines what it predicts: the mean, a quantile, or the mean of
counts. A train is linear in each of its cores, so every convex loss works, with all
interactions.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score, mean_pinball_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, clean_axes

# %%
# **Quantiles.** Waiting times vary more in the evening than in the morning. Two quantiles show
# how much, and the true ones are known.


def waits(count, seed):
    generator = np.random.default_rng(seed)
    hour = generator.uniform(6, 22, size=count)
    return hour[:, None], middle(hour) + width(hour) * generator.normal(size=count)


def middle(hour):
    return 30 + 6 * np.sin(hour / 2)


def width(hour):
    return 1 + 0.4 * (hour - 6)


X, y = waits(1000, seed=0)
X_test, y_test = waits(10_000, seed=1)
hours = np.linspace(6.1, 21.9, 300)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, name in zip(axes, ("polytrain", "boosting"), strict=True):
    ax.scatter(X, y, s=4, color="0.75", linewidths=0)
    for level, colour in ((0.1, COLOURS[2]), (0.9, COLOURS[1])):
        settings = {"loss": "quantile", "quantile": level, "random_state": 0}
        model = (
            TensorTrainRegressor if name == "polytrain" else HistGradientBoostingRegressor
        )(**settings).fit(X, y)
        predicted = model.predict(X_test)
        loss = mean_pinball_loss(y_test, predicted, alpha=level)
        below = 100 * np.mean(y_test <= predicted)
        print(f"{name:10} {level}: {below:4.1f} % below, pinball loss {loss:.3f}")
        ax.plot(hours, model.predict(hours[:, None]), color=colour, label=f"quantile={level}")
        ax.plot(
            hours,
            middle(hours) + norm.ppf(level) * width(hours),
            color="0.2",
            linewidth=1,
            linestyle=":",
        )
    ax.set_xlabel("hour of the day")
    clean_axes(ax, name)
axes[0].set_ylabel("minutes; dotted: the true quantiles")
axes[0].legend(frameon=False, loc="upper left")
plt.show()

# %%
# **Counts with exposures.** Claims of drivers, each insured for a different part of the year.
# The logarithm of that part is an ``offset`` of the score. scikit-learn's models have no
# offset; they learn claims per year, weighted by the part, which is equivalent.

generator = np.random.default_rng(0)
age, power = generator.uniform(18, 80, size=6000), generator.uniform(40, 200, size=6000)
years = generator.uniform(0.1, 1, size=6000)
rate = 0.15 * np.exp(
    1.5 * np.exp(-(age - 18) / 10) * power / 100 + (np.maximum(age - 65, 0) / 15) ** 2
)
claims = generator.poisson(years * rate)
X = np.column_stack([age, power])
train, test = np.arange(6000) < 3000, np.arange(6000) >= 3000
model = TensorTrainRegressor(loss="poisson", random_state=0)
model.fit(X[train], claims[train], offset=np.log(years[train]))
models = {
    "boosting": HistGradientBoostingRegressor(
        loss="poisson", early_stopping=True, random_state=0
    ),
    "linear": make_pipeline(StandardScaler(), PoissonRegressor()),
}
predicted = {"the truth": rate, "polytrain": model.predict(X)}
for name, rival in models.items():
    step = "" if name == "boosting" else "poissonregressor__"
    rival.fit(X[train], claims[train] / years[train], **{f"{step}sample_weight": years[train]})
    predicted[name] = rival.predict(X)
for name, rates in predicted.items():
    explained = d2_tweedie_score(
        claims[test] / years[test], rates[test], sample_weight=years[test], power=1
    )
    print(f"{name:10} explains {100 * explained:4.1f} % of the deviance")

# %%
# Most of a count is chance, so even the true function explains little. Boosting is stopped
# early here; with default settings its explained fraction would be negative. Rates per year of
# a car of 150 PS:

ages = np.linspace(18, 80, 300)
cars = np.column_stack([ages, np.full(300, 150.0)])
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
curve = 0.15 * np.exp(2.25 * np.exp(-(ages - 18) / 10) + (np.maximum(ages - 65, 0) / 15) ** 2)
ax.plot(ages, curve, color="0.2", linestyle=":", label="truth")
for (name, one), colour in zip({"polytrain": model, **models}.items(), COLOURS, strict=False):
    ax.plot(ages, one.predict(cars), color=colour, label=name)
ax.set(xlabel="age of the driver", ylabel="claims per year", ylim=(0, None))
ax.legend(frameon=False)
clean_axes(ax)
plt.show()
