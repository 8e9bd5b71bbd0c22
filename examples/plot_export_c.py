"""
A model as a C program
======================

A trained model is a table of numbers and a short loop. ``to_c`` writes both into one file of C99 without any library,
for a machine that has no Python, or no operating system. Here it is compiled, run, and held against the estimator.
"""

import pickle
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polytrain import TensorTrainClassifier
from polytrain.export import to_c
from polytrain.plotting import COLOURS, clean_axes

# %%
# A small model on purpose: polynomials of degree 2 in each column and rank 3. The default would choose functions that
# suit the columns better, and their tables would make the program ten times as large.

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
model = TensorTrainClassifier(basis="legendre", degree=2, rank=3, random_state=0).fit(X_train, y_train)
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
    """Compile, run, and return what the program wrote, its seconds and its size; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tumour.c").write_text(source + MAIN)
        subprocess.run([compiler, "-std=c99", "-O2", "tumour.c", "-o", "tumour", "-lm"], cwd=folder, check=True)
        started = time.perf_counter()
        written = subprocess.run([Path(folder) / "tumour"], input=rows.tobytes(), capture_output=True, check=True)
        return np.frombuffer(written.stdout), time.perf_counter() - started, (Path(folder) / "tumour").stat().st_size


result = run_in_c(X_test)
if result is None:
    print("There is no C compiler here (cc), so nothing was compiled.")
else:
    gap = np.abs(result[0] - model.predict_proba(X_test)[:, 1]).max()
    _, seconds, size = run_in_c(np.tile(X_test, (100, 1)))
    print(f"largest difference from predict_proba: {gap:.1e}")
    print(f"{1e6 * seconds / (100 * len(X_test)):.2f} microseconds per row, {size / 1024:.0f} KiB of program and model")

# %%
# What do others need? Their pickles, and the Python to open them, are larger; support vectors come near, and make
# fewer errors here: one row of the test is 0.4 %. A logistic regression would be smaller still: 31 numbers.

rivals = {
    "SVC": make_pipeline(StandardScaler(), SVC()),
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
}
n_bytes = len(source) if result is None else size
points = {"polytrain in C": (n_bytes / 1024, 100 * (1 - model.score(X_test, y_test)))}
for name, rival in rivals.items():
    error = 100 * (1 - rival.fit(X_train, y_train).score(X_test, y_test))
    points[name] = (len(pickle.dumps(rival)) / 1024, error)

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (name, (n_kilobytes, error)), colour in zip(points.items(), COLOURS, strict=False):
    print(f"{name:15} {n_kilobytes:7.0f} KiB {error:5.1f} % errors")
    ax.scatter(n_kilobytes, error, color=colour, s=60, zorder=3)
    ax.annotate(name, (n_kilobytes, error), (8, 5), textcoords="offset points")
ax.set(xscale="log", xlabel="size in KiB", ylabel="test error, per cent", ylim=(0, 7), xlim=(10, 1000))
ax.grid(color="0.92")
clean_axes(ax)
plt.show()
