"""
Export a model to C
===================

A trained model is a table of numbers and a short loop. ``to_c`` writes both into one C99 file
that needs no library, for machines without Python or even an operating system. Here the file
is compiled and run, and its results are compared with those of the estimator.
"""

import pickle
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polytrain import DataWarning, TensorTrainClassifier
from polytrain.export import to_c
from polytrain.plotting import COLOURS, clean_axes

# %%
# A small model on purpose: polynomials of degree 2 in each column and rank 3. The default would
# choose functions that suit the columns better, but their tables would make the program ten
# times as large.

# Radius, perimeter and area of a nucleus are near-copies of each other, so the fit issues a
# warning.
warnings.filterwarnings("ignore", category=DataWarning)
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.4, stratify=y, random_state=0
)
model = TensorTrainClassifier(basis="legendre", degree=2, rank=3, random_state=0).fit(
    X_train, y_train
)
source = to_c(model, name="tumour")
print(f"{len(source.splitlines())} lines of C, {model.n_parameters_} coefficients")

# %%
# A main program reads rows from standard input and writes a probability for each.

MAIN = r"""
#include <stdio.h>
int main(void) {
    double x[tumour_N_FEATURES], chances[tumour_N_CLASSES];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        tumour_probabilities(x, chances);
        fwrite(&chances[1], sizeof(double), 1, stdout);
    }
    return 0;
}
"""


def run_in_c(rows):
    """What the compiled program writes, its seconds and its size; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tumour.c").write_text(source + MAIN)
        subprocess.run(
            [compiler, "-std=c99", "-O2", "tumour.c", "-o", "tumour", "-lm"],
            cwd=folder,
            check=True,
        )
        started = time.perf_counter()
        written = subprocess.run(
            [Path(folder) / "tumour"], input=rows.tobytes(), capture_output=True, check=True
        )
        return (
            np.frombuffer(written.stdout),
            time.perf_counter() - started,
            (Path(folder) / "tumour").stat().st_size,
        )


result = run_in_c(X_test)
if result is None:
    print("There is no C compiler here (cc), so nothing was compiled.")
else:
    gap = np.abs(result[0] - model.predict_proba(X_test)[:, 1]).max()
    _, seconds, size = run_in_c(np.tile(X_test, (100, 1)))
    print(f"largest difference from predict_proba: {gap:.1e}")
    microseconds = 1e6 * seconds / (100 * len(X_test))
    print(f"{microseconds:.2f} microseconds per row, program and model {size / 1024:.0f} KiB")

# %%
# How do other models compare? Their files are pickles, and a single row takes a call from
# Python, most of which is checking the row; the C program checks nothing. Support vectors make
# fewer errors here; one test row is 0.4 %. A logistic regression would be even smaller: 31
# numbers.

rivals = {
    "polytrain, C": model,
    "SVC": make_pipeline(StandardScaler(), SVC()),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
}
results = {}
for name, rival in rivals.items():
    rival.fit(X_train, y_train)
    started = time.perf_counter()
    for row in X_test[:50]:
        rival.predict(row[None])
    used = len(pickle.dumps(rival)) / 1024, 1e6 * (time.perf_counter() - started) / 50
    if rival is model and result is not None:
        used = size / 1024, microseconds
    results[name] = (*used, 100 * (1 - rival.score(X_test, y_test)))
    print(
        "{:14} {:6.0f} KiB {:8.1f} microseconds {:5.1f} % errors".format(name, *results[name])
    )

titles = ("file, KiB", "one row, microseconds", "test error, per cent")
figure, axes = plt.subplots(1, 3, figsize=(11, 2.6), layout="constrained", sharey=True)
for ax, title, values in zip(axes, titles, zip(*results.values(), strict=True), strict=True):
    bars = ax.barh(list(rivals), values, color=[COLOURS[0]] + [COLOURS[7]] * (len(rivals) - 1))
    labels = [f"{value:,.0f}" if value >= 10 else f"{value:.1f}" for value in values]
    ax.bar_label(bars, labels, padding=3)
    if "error" not in title:
        ax.set_xscale("log")
        ax.set_xlim(min(values) / 3, 6 * max(values))
    clean_axes(ax, title)
axes[0].invert_yaxis()
plt.show()
