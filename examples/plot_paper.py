"""
TTLS and TTLR: the paper's experiment in small
==============================================

Chen, Batselier, Suykens and Wong classify handwritten digits with tensor trains: by least
squares (TTLS) and by logistic regression (TTLR). Their tables vary the number of features, the
degree of the polynomials and the rank of the trains. This example does the same with the
small digits of scikit-learn and 20 principal components. ``polytrain reproduce digits`` runs
the whole experiment, with a cross-validated alpha; ``polytrain reproduce usps`` and ``mnist``
run the rows of the paper.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from polytrain import TensorTrainClassifier
from polytrain.plotting import COLOURS, MARKERS, clean_axes

# %%
# The last 600 digits are by other writers than most of the first 1197, so errors are larger
# than after shuffling.

X, y = load_digits(return_X_y=True)
components = PCA(20, random_state=0).fit(X[:1197])
X_train, X_test = components.transform(X[:1197]), components.transform(X[1197:])
y_train, y_test = y[:1197], y[1197:]


def error(model):
    return 100 * (1 - model.fit(X_train, y_train).score(X_test, y_test))


def train(loss, degree, rank):
    settings = {
        "basis": "power",
        "alpha": 1e-2,
        "init": "linear",
        "max_sweeps": 2,
        "random_state": 0,
    }
    return TensorTrainClassifier(loss=loss, degree=degree, rank=rank, **settings)


# %%
# Powers of each feature up to the degree, trains of a given rank, and a linear start. All test
# errors are in per cent; with 600 digits a standard error is about 0.6.

cells = [(1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (3, 4)]
print("degree  rank  coefficients   TTLS   TTLR  seconds")
errors = {"TTLS": [], "TTLR": []}
for degree, rank in cells:
    started = time.perf_counter()
    for name, loss in (("TTLS", "squared"), ("TTLR", "logistic")):
        errors[name].append(error(train(loss, degree, rank)))
    full = f"{(degree + 1) ** 20:.0e}"
    seconds = time.perf_counter() - started
    least, logistic = (values[-1] for values in errors.values())
    print(f"{degree:6} {rank:5} {full:>13} {least:6.2f} {logistic:6.2f} {seconds:8.1f}")

# %%
# For comparison: a linear model and support vectors on the same 20 numbers, and polytrain's
# default, which chooses functions, alpha and rank.

others = {
    "logistic regression": LogisticRegression(max_iter=2000),
    "SVC, degree 3": SVC(kernel="poly", degree=3),
    "SVC, RBF": SVC(),
    "polytrain, default": TensorTrainClassifier(random_state=0),
}
lines = {name: error(model) for name, model in others.items()}
for name, value in lines.items():
    print(f"{name:20} {value:5.2f} %")

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
places = np.arange(len(cells))
for (name, values), colour, marker in zip(errors.items(), COLOURS, MARKERS, strict=False):
    ax.plot(
        places, values, color=colour, marker=marker, markersize=7, linestyle="none", label=name
    )
for (name, value), colour, dashes in zip(
    lines.items(), COLOURS[2:6], (":", "--", "-.", "-"), strict=True
):
    ax.axhline(value, color=colour, linewidth=1.2, linestyle=dashes, label=name)
ax.set_xticks(places, [f"degree {degree}\nrank {rank}" for degree, rank in cells])
ax.set(ylabel="test error, per cent", ylim=(0, None), xlim=(-0.5, len(cells) - 0.5))
ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
clean_axes(ax, "20 principal components of 1197 digits")
plt.show()

# %%
# Here a higher rank helps more than a higher degree, and least squares are ahead of logistic
# regression, with one alpha for both; the full table chooses it for each. One of these
# polynomials reaches support vectors with a polynomial kernel, and none reaches those with a
# Gaussian kernel; the functions of the default do.
