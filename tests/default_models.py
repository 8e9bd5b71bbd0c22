"""Models that leave all to the choice, fitted to little tables: what is said about any model must hold for them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from polytrain import TensorTrainClassifier, TensorTrainRegressor

#: Names of the cases.
NAMES = ("two-classes", "three-classes", "regressor", "gaps", "frame", "frame-regressor", "columns-left-out")


class Case(NamedTuple):
    """A fitted model, rows that it can predict, and the same rows as numbers, one column per feature."""

    model: Any
    rows: Any
    features: np.ndarray


def make_frame(n_rows: int = 160, seed: int = 0) -> pd.DataFrame:
    """A table with numbers, categories, text and dates, all but one of them with gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n_rows),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n_rows)),
            "town": rng.choice(["Bern", "Graz", 'say "*/"', "Åbo"], n_rows),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n_rows), unit="D"),
        }
    )
    for k, name in enumerate(frame.columns[1:]):
        frame.loc[rng.random(n_rows) < 0.05 * (k + 1), name] = None
    return frame


def frame_target(frame: pd.DataFrame) -> np.ndarray:
    """A number that depends on all columns."""
    month = frame["day"].dt.month.fillna(6).to_numpy()
    return frame["size"].to_numpy() * (1 + (frame["colour"] == "red")) + (frame["town"] == "Bern") + 0.2 * month


@cache
def default_case(name: str) -> Case:
    """Fit the model of a case, once."""
    rng = np.random.default_rng(0)
    if name.startswith("frame"):
        frame, rows = make_frame(), make_frame(60, seed=1)
        rows.loc[:3, "town"] = "unknown"
        rows["size"] *= 3
        target = frame_target(frame)
        if name == "frame":
            model = TensorTrainClassifier(random_state=0).fit(frame, np.where(target > 1.5, "yes", "no"))
        else:
            model = TensorTrainRegressor(clip=False, random_state=0).fit(frame, target)
        return Case(model, rows, model.model_.columns.encode(rows))
    X = rng.normal(size=(160, 4))
    X[:, 3] = rng.integers(0, 5, 160)
    target = X[:, 0] + X[:, 1] * X[:, 2] - 0.3 * X[:, 3]
    rows = np.vstack([X, 3 * rng.normal(size=(40, 4))])
    if name == "gaps":
        for array in (X, rows):
            array[rng.random(array.shape) < 0.1] = np.nan
    if name == "columns-left-out":  # one of numbers, and one of categories
        frame, table = (pd.DataFrame(own, columns=["first", "second", "third", "fourth"]) for own in (X, rows))
        for own in (frame, table):
            own.insert(0, "noise", rng.normal(size=len(own)))
            own["kind"] = pd.Categorical(rng.choice(["red", "green"], len(own)), ["green", "red"])
        table.loc[:5, ["noise", "kind"]] = None
        model = TensorTrainRegressor(clip=False, random_state=0, relevance=[0, 1, 2, 1, 1, 0]).fit(
            frame, 100 + 5 * target
        )
        return Case(model, table, model.model_.columns.encode(table))
    if name == "regressor":
        return Case(TensorTrainRegressor(random_state=0).fit(X, 100 + 5 * target), rows, rows)
    n_classes = 2 if name == "two-classes" else 3
    labels = np.digitize(target, np.quantile(target, [0.4] if n_classes == 2 else [0.3, 0.6]))
    return Case(TensorTrainClassifier(random_state=0).fit(X, labels), rows, rows)
