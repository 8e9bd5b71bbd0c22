"""A table of mixed columns and handwritten digits, with other models beside polytrain.

Run it with ``make demo``. Nothing is downloaded: the table is simulated, and the digits come
with scikit-learn. Written is a picture, demo.png, or, without matplotlib, a page, demo.html.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import KFold, cross_val_predict, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from polytrain import TensorTrainClassifier, TensorTrainRegressor

N_FLATS, N_FOLDS = 1200, 5
N_COMPONENTS, DEGREE, RANK = 30, 2, 8

Line = tuple[str, ...]


def simulate_flats(count: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Flats with numbers, texts, dates and gaps, and rents by a formula with noise."""
    rng = np.random.default_rng(seed)
    districts = {"centre": 17.0, "harbour": 15.0, "north": 12.0, "south": 11.0, "hills": 14.0}
    flats = pd.DataFrame(
        {
            "area": rng.gamma(6, 12, size=count).round() + 15,
            "built": rng.integers(1890, 2024, size=count).astype(float),
            "floor": rng.integers(0, 8, size=count),
            "lift": rng.uniform(size=count) < 0.5,
            "district": rng.choice(list(districts), size=count, p=[0.25, 0.1, 0.3, 0.25, 0.1]),
            "heating": rng.choice(
                ["gas", "district heat", "oil", "heat pump"],
                size=count,
                p=[0.5, 0.25, 0.15, 0.1],
            ),
            "listed": pd.Timestamp("2021-01-01")
            + pd.to_timedelta(rng.integers(0, 1400, size=count), "D"),
        }
    )
    per_metre = flats["district"].map(districts) * (1 + 8 / flats["area"])
    per_metre += 1.5 * np.cos((flats["built"] - 1900) / 25) - 1.2 * (flats["heating"] == "oil")
    per_metre += flats["floor"] * np.where(flats["lift"], 0.35, -0.25)
    years = (flats["listed"] - pd.Timestamp("2021-01-01")).dt.days / 365.25
    per_metre *= 1 + 0.05 * years + 0.04 * np.sin(2 * np.pi * years)
    rent = (per_metre * flats["area"] * np.exp(0.05 * rng.normal(size=count))).rename("rent")
    flats.loc[rng.uniform(size=count) < 0.1, "built"] = np.nan
    flats.loc[rng.uniform(size=count) < 0.08, "heating"] = None
    return flats, rent


def take_dates_apart(flats: pd.DataFrame) -> pd.DataFrame:
    """What other models need: parts of the date, and texts as categories."""
    listed = flats["listed"]
    texts = {name: flats[name].astype("category") for name in ("district", "heating")}
    parts = {"days": (listed - pd.Timestamp("2021-01-01")).dt.days, "month": listed.dt.month}
    return flats.assign(**texts, **parts).drop(columns="listed")


def build_regressors() -> dict[str, BaseEstimator]:
    """polytrain on the frame, boosting with native categories, and a linear model."""
    apart = FunctionTransformer(take_dates_apart)
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore")
    encoded = make_column_transformer(
        (numbers, make_column_selector(dtype_exclude="category")),
        (texts, make_column_selector(dtype_include="category")),
    )
    return {
        "polytrain": TensorTrainRegressor(random_state=0),
        "HistGradientBoosting": make_pipeline(
            apart,
            HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0),
        ),
        "ridge regression": make_pipeline(apart, encoded, RidgeCV(np.logspace(-3, 3, 13))),
    }


def build_classifiers() -> dict[str, Pipeline]:
    """Every model sees the same principal components."""
    powers = {
        "basis": "power",
        "degree": DEGREE,
        "rank": RANK,
        "alpha": 1e-4,
        "init": "linear",
        "max_sweeps": 4,
    }
    models = {
        "TTLS (squared loss)": TensorTrainClassifier(loss="squared", random_state=0, **powers),
        "TTLR (logistic loss)": TensorTrainClassifier(
            loss="logistic", random_state=0, **powers
        ),
        "logistic regression": LogisticRegression(max_iter=5000),
        "SVC, poly kernel, degree 3": SVC(kernel="poly", degree=3),
    }
    return {
        name: make_pipeline(PCA(N_COMPONENTS, random_state=0), model)
        for name, model in models.items()
    }


def print_table(lines: list[Line]) -> None:
    """Print the head and the lines under it, names to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ", "   ".join([line[0].ljust(widths[0]), *cells[1:]]))
        if number == 0:
            print("  ", "   ".join("-" * width for width in widths))


def draw(
    model: TensorTrainRegressor, flats: pd.DataFrame, rent: pd.Series, errors: dict[str, float]
) -> Path:
    """Write errors and effects as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from polytrain.plotting import COLOURS, EffectsDisplay, clean_axes

    figure, axes = plt.subplots(2, 3, figsize=(12, 6.4), layout="constrained")
    bars = axes[0, 0].barh(
        list(errors), list(errors.values()), color=[COLOURS[0], COLOURS[7], COLOURS[7]]
    )
    axes[0, 0].bar_label(bars, fmt="%.0f", padding=3)
    axes[0, 0].invert_yaxis()
    clean_axes(axes[0, 0], "mean absolute error of the rent, cross-validated")
    columns = ["area", "built", "district", "heating", "listed"]
    EffectsDisplay.from_estimator(
        model, flats, columns=columns, n_pairs=0, axes=axes.ravel()[1:]
    )
    figure.suptitle("Rents of simulated flats: errors, and what five columns do on their own")
    path = Path("demo.png")
    figure.savefig(path, dpi=110)
    return path


def show_table() -> None:
    """Mixed columns: cross-validated errors, what was chosen, a picture."""
    flats, rent = simulate_flats(N_FLATS, seed=0)
    gaps = 100 * flats[["built", "heating"]].isna().mean()
    names = ", ".join(flats)
    print(f"1. A simulated table: rents of {N_FLATS} flats, {flats.shape[1]} columns: {names}.")
    print("   Numbers, texts, truth values and dates; ", end="")
    shares = [f"{share:.0f} % of {name!r}" for name, share in gaps.items()]
    print(f"{' and '.join(shares)} missing.\n")
    folds, lines, errors = KFold(N_FOLDS, shuffle=True, random_state=0), [], {}
    for name, model in build_regressors().items():
        started = time.perf_counter()
        predicted = cross_val_predict(model, flats, rent, cv=folds)
        seconds = (time.perf_counter() - started) / N_FOLDS
        errors[name] = mean_absolute_error(rent, predicted)
        lines.append(
            (
                name,
                f"{errors[name]:.1f}",
                f"{100 * errors[name] / rent.mean():.1f} %",
                f"{seconds:.2f} s",
            )
        )
    print_table(
        [
            (f"{N_FOLDS}-fold cross-validation", "mean error", "of the mean rent", "per fit"),
            *lines,
        ]
    )
    model = TensorTrainRegressor(random_state=0).fit(flats, rent)
    print("\n   What polytrain has chosen, from all rows:")
    for reason in model.choice_.reasons:
        print(f"   - {reason}")
    print(f"   The picture is {draw(model, flats, rent, errors)}.\n", flush=True)


def count_stored(model: Pipeline) -> int:
    """Numbers that the classifier must keep in order to predict."""
    classifier = model[-1]
    if isinstance(classifier, TensorTrainClassifier):
        return classifier.n_parameters_
    if isinstance(classifier, SVC):
        return (
            classifier.support_vectors_.size
            + classifier.dual_coef_.size
            + classifier.intercept_.size
        )
    return classifier.coef_.size + classifier.intercept_.size


def show_digits() -> None:
    """The paper's trains on principal components of digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    print(f"2. Digits: {len(X_train)} rows to learn from, {len(X_test)} to test on; ", end="")
    print(f"{N_COMPONENTS} principal components.")
    print(f"   Polynomials of degree {DEGREE} in each, as the paper has them: ", end="")
    print(f"tensor trains of rank {RANK}.\n", flush=True)
    lines = []
    for name, model in build_classifiers().items():
        started = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - started
        error = 1 - model.score(X_test, y_test)
        lines.append(
            (name, f"{100 * error:.2f} %", f"{count_stored(model):,}", f"{seconds:.2f} s")
        )
    print_table([("model", "test error", "numbers stored", "training time"), *lines])
    full = 10 * (DEGREE + 1) ** N_COMPONENTS
    count = f"10 x {DEGREE + 1}^{N_COMPONENTS} = {full:,}"
    print(f"\n   The full polynomials would have {count} coefficients.")


if __name__ == "__main__":
    show_table()
    show_digits()
