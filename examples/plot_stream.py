"""
Concept drift: learning from a stream
=====================================

Rows arrive in blocks and cannot be kept. ``partial_fit`` learns from each block once, and
``forgetting`` sets how fast past rows lose their weight. Every block is predicted before it is
learned, so each point of the plot is an error on unseen rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, clean_axes

# %%
# The power of a machine depends on two settings that interact. After 30 blocks a part is
# replaced, and the interaction changes its sign.


def block(number):
    generator = np.random.default_rng(number)
    X = generator.uniform(-1, 1, size=(300, 4))
    sign = 1 if number < 30 else -1
    y = sign * 2 * X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.2 * generator.normal(size=300)
    return X, y


# %%
# Two streams of polytrain: one keeps the full weight of the past, the other forgets a fifth of
# it before each block. For comparison, stochastic gradient descent on all products of two
# columns; boosting would have to be refitted on stored rows.

quadratic = make_pipeline(
    PolynomialFeatures(2), SGDRegressor(learning_rate="constant", eta0=0.01, random_state=0)
)
streams = {
    "polytrain": TensorTrainRegressor(random_state=0),
    "polytrain, forgetting=0.2": TensorTrainRegressor(random_state=0),
    "gradient descent, degree 2": quadratic[-1],
}
features = quadratic[0].fit(np.zeros((1, 4)))
errors = {name: [] for name in streams}
for number in range(60):
    X, y = block(number)
    for name, model in streams.items():
        rows = features.transform(X) if model is quadratic[-1] else X
        if number:
            errors[name].append(np.sqrt(np.mean((model.predict(rows) - y) ** 2)))
        forgetting = {"forgetting": 0.2} if "forgetting" in name else {}
        model.partial_fit(rows, y, **forgetting)

# %%
# The noise is 0.2. Gradient descent finds the product and forgets by itself, but cannot
# represent the sine. The stream without forgetting recovers only as fast as new rows outweigh
# the old ones; the one with forgetting is back at the noise level after some fifteen blocks.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, curve), colour in zip(errors.items(), COLOURS, strict=False):
    ax.plot(np.arange(1, 60), curve, color=colour, label=name)
    before, end = np.mean(curve[20:29]), np.mean(curve[-5:])
    print(f"{name:27} before the change {before:.3f}, at the end {end:.3f}")
ax.axhline(0.2, color="0.5", linewidth=1, linestyle=":")
ax.text(62, 0.197, "noise", ha="right", va="top", fontsize="small", color="0.35")
ax.axvline(30, color="0.5", linewidth=1, linestyle=":")
ax.set(xlabel="block of 300 rows", ylabel="error on the next block (RMSE)", yscale="log")
ax.set_yticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
ax.minorticks_off()
ax.legend(frameon=False, fontsize="small")
clean_axes(ax)
plt.show()
