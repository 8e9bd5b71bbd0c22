"""Compare explanations on Adult with those of boosting: docs/images/effects_adult.png and effects_adult_model.png.

    POLYTRAIN_DATA=FOLDER python scripts/draw_effects.py [--rows 2000] [--out FOLDER]

Models are fitted on the training rows with their default settings; of polytrain there is a second one that learns
log-odds, as boosting does. Printed are the first columns by importance: by Sobol indices of the tensor trains, and by
permutation of columns of the test rows (loss of log likelihood, three repeats). Drawn are the partial dependences of
the log-odds on numbers, over the same training rows, each minus its mean; the second picture has the effects of the
default tensor train.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.tabular import adult_frames
from doc_images import IMAGES, panels
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance

from polytrain import TensorTrainClassifier
from polytrain.explain import effects, feature_importances, partial_dependence
from polytrain.plotting import COLOURS, EffectsDisplay

CURVES = ("age", "hours-per-week", "capital-gain")
POLYTRAIN, LOGISTIC, BOOSTING = "polytrain", 'polytrain, loss="logistic"', "HistGradientBoosting"
SETTINGS = {"scoring": "neg_log_loss", "n_repeats": 3, "random_state": 0}


def brute_force(model: Any, rows: Any, name: str, grid: np.ndarray) -> np.ndarray:
    """Mean log-odds over the rows, a column set to each of the values."""
    return np.array([model.decision_function(rows.assign(**{name: value})).mean() for value in grid])


def draw_curve(ax: Any, name: str, X: Any, grid: np.ndarray, curves: dict[str, np.ndarray]) -> None:
    """All curves, and the distribution of the column below them."""
    places = X[name].to_numpy(float)
    for (label, values), colour, style in zip(
        curves.items(), (COLOURS[0], COLOURS[2], COLOURS[1]), ("-", "-.", "--"), strict=False
    ):
        centre = np.interp(places, grid, values).mean()
        ax.plot(grid, values - centre, style, color=colour, linewidth=2, label=label)
    below = ax.twinx()
    below.hist(places, bins=40, color="0.85", zorder=0)
    below.set_ylim(0, 4 * below.get_ylim()[1])
    below.set_yticks([])
    ax.set_zorder(below.get_zorder() + 1)
    ax.patch.set_visible(False)
    ax.set_xlabel(name)
    for some in (ax, below):
        some.spines[["top", "right"]].set_visible(False)


def print_ranks(ranks: dict[str, list[tuple[str, float]]], count: int = 5) -> None:
    """The first columns of every ranking."""
    for name, ranking in ranks.items():
        print(f"{name}: " + ", ".join(f"{column} {value:.3f}" for column, value in ranking[:count]))


def main() -> None:
    """Fit, compare and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000, help="training rows that partial dependences average over")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    arguments = parser.parse_args()
    X, y, X_test, y_test = adult_frames()
    kinds = {name: pd.CategoricalDtype(sorted(X[name].dropna().unique())) for name in X.select_dtypes(exclude="number")}
    X, X_test = X.astype(kinds), X_test.astype(kinds)
    models = {
        POLYTRAIN: TensorTrainClassifier(random_state=0),
        LOGISTIC: TensorTrainClassifier(loss="logistic", random_state=0),
        BOOSTING: HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0),
    }
    ranks = {}
    for name, model in models.items():
        start = time.perf_counter()
        error = 1.0 - model.fit(X, y).score(X_test, y_test)
        print(f"{name}: test error {100 * error:.2f} %, fit {time.perf_counter() - start:.0f} s", flush=True)
        permuted = permutation_importance(model, X_test, y_test, **SETTINGS).importances_mean
        if name != BOOSTING:
            ranks[f"{name}, Sobol"] = feature_importances(model, X).ranked()
        ranks[f"{name}, permutation"] = [(X.columns[k], permuted[k]) for k in np.argsort(-permuted, kind="stable")]
    print_ranks(ranks)

    rows = X.sample(arguments.rows, random_state=0)
    figure, axes = panels(len(CURVES), 11, 3.4)
    for ax, name in zip(axes, CURVES, strict=True):
        values = np.unique(np.quantile(X[name], np.linspace(0, 1, 200)))
        grid = np.unique(np.concatenate([values, np.linspace(values[0], values[-1], 60).round()]))
        curves = {
            label: brute_force(model, rows, name, grid)
            if label == BOOSTING
            else partial_dependence(model, name, rows, grid=grid).values[0]
            for label, model in models.items()
        }
        draw_curve(ax, name, X, grid, curves)
        at = {label: np.interp(X[name], grid, curve) for label, curve in curves.items()}
        for label in (POLYTRAIN, LOGISTIC):
            agreement = np.corrcoef(at[label], at[BOOSTING])[0, 1]
            deviations = f"standard deviations {at[label].std():.2f} and {at[BOOSTING].std():.2f}"
            print(f"{name}: curves of {label} and of boosting correlate by {agreement:.3f}, {deviations}")
    axes[0].set_ylabel("log-odds, minus their mean")
    axes[0].legend(frameon=False, fontsize="small")
    figure.savefig(arguments.out / "effects_adult.png", dpi=110)

    start = time.perf_counter()
    split = effects(models[POLYTRAIN], X)
    print(f"effects over {len(X)} rows: {time.perf_counter() - start:.2f} s")
    print(split)
    display = EffectsDisplay.from_estimator(models[POLYTRAIN], X)
    display.figure_.savefig(arguments.out / "effects_adult_model.png", dpi=90)


if __name__ == "__main__":
    main()
