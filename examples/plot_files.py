"""
Save and load models, and export to ONNX
========================================

``save`` writes a model into one file of numbers without any code, so a file from an untrusted
source can be opened safely. ``to_onnx`` exports the model for onnxruntime, which runs without
Python. Both give the same predictions as the estimator.
"""

import pickle
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.metrics import root_mean_squared_error
from sklearn.svm import SVR

import polytrain
from polytrain.export import to_onnx
from polytrain.plotting import COLOURS, clean_axes

X, y = make_friedman1(3000, n_features=6, noise=1.0, random_state=0)
X_test, y_test = make_friedman1(2000, n_features=6, noise=0.0, random_state=1)
model = polytrain.TensorTrainRegressor(random_state=0).fit(X, y)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.tt"
    model.save(path)
    n_bytes = path.stat().st_size
    same = polytrain.load(path)
graph = to_onnx(model, dtype="float64").SerializeToString()
session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])

predicted = model.predict(X_test)
gap = np.abs(same.predict(X_test) - predicted).max()
print(f"largest difference of the file: {gap:.0e}")
gap = np.abs(session.run(None, {"X": X_test})[0][:, 0] - predicted).max()
print(f"largest difference of ONNX: {gap:.0e}")

# %%
# Other models are stored as pickles, which run code when they are opened, or as ONNX through
# skl2onnx. How large are the files, how long does a single row take, and how accurate are the
# models?

rivals = {
    "boosting": HistGradientBoostingRegressor(random_state=0),
    "random forest": RandomForestRegressor(50, random_state=0),
    "SVR": SVR(C=10.0),
}


def milliseconds(predict):
    row, times = X_test[:1], []
    for _ in range(30):
        started = time.perf_counter()
        predict(row)
        times.append(time.perf_counter() - started)
    return 1000 * min(times)


def error(predict):
    return root_mean_squared_error(y_test, np.ravel(predict(X_test)))


def in_onnx(rows):
    return session.run(None, {"X": rows})[0]


results = {
    "polytrain": (n_bytes, milliseconds(model.predict), error(model.predict)),
    "polytrain, ONNX": (len(graph), milliseconds(in_onnx), error(in_onnx)),
}
for name, rival in rivals.items():
    predict = rival.fit(X, y).predict
    results[name] = (len(pickle.dumps(rival)), milliseconds(predict), error(predict))

print(f"{'':16} {'KiB':>7} {'ms for a row':>13} {'error':>6}")
for name, (size, one, rmse) in results.items():
    print(f"{name:16} {size / 1024:7.0f} {one:13.3f} {rmse:6.2f}")

# %%
# Most of a call from Python is checking the row; ONNX and :doc:`C <plot_export_c>` check
# nothing.

titles = ("file, KiB", "one row, ms", "error (RMSE)")
figure, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained", sharey=True)
for ax, title, column in zip(axes, titles, np.transpose(list(results.values())), strict=True):
    values = column / 1024 if "KiB" in title else column
    colours = [COLOURS[0] if "polytrain" in name else COLOURS[7] for name in results]
    bars = ax.barh(list(results), values, color=colours)
    ax.bar_label(
        bars,
        [f"{value:,.0f}" if "KiB" in title else f"{value:.2f}" for value in values],
        padding=3,
        fontsize="small",
    )
    if "error" not in title:
        ax.set_xscale("log")
    ax.set_xlim(
        0 if "error" in title else values.min() / 3,
        (1.2 if "error" in title else 4) * values.max(),
    )
    clean_axes(ax, title)
axes[0].invert_yaxis()
plt.show()
