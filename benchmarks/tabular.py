"""Tables that the benchmarks learn from: those bundled with scikit-learn, and CSV files below POLYTRAIN_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import OneHotEncoder


def data_folder() -> Path | None:
    """Folder with the data, or None where POLYTRAIN_DATA is not set."""
    folder = os.environ.get("POLYTRAIN_DATA")
    return Path(folder) if folder else None


def _csv(name: str, header: int | None) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(data_folder() / "tabular" / f"{name}.csv", header=header, skipinitialspace=True)
    return table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()


def load_adult() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Adult's official split: one-hot categories, a missing value being a category, numbers as they are."""
    frames = [
        pd.read_csv(data_folder() / "tabular" / f"adult-{part}.csv", header=None, skipinitialspace=True).dropna()
        for part in ("train", "test")
    ]
    labels = [frame.iloc[:, -1].str.rstrip(".").to_numpy() for frame in frames]
    rows = [frame.iloc[:, :-1] for frame in frames]
    numeric = rows[0].select_dtypes("number").columns
    others = [column for column in rows[0].columns if column not in numeric]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(rows[0][others])
    train, test = (np.hstack([frame[numeric].to_numpy(float), encoder.transform(frame[others])]) for frame in rows)
    return train, labels[0], test, labels[1]


def classification() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Small classification tables by name."""
    digits, labels = load_digits(return_X_y=True)
    tables = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits, 20 PCA": (PCA(20, random_state=0).fit_transform(digits), labels),
    }
    if data_folder():
        for name, header in (
            ("banana", 0),
            ("phoneme", None),
            ("pima-indians-diabetes", None),
            ("sonar", None),
            ("spambase", 0),
        ):
            tables[name] = _csv(name, header)
    return tables


def regression() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Small regression tables by name."""
    tables = {"diabetes": load_diabetes(return_X_y=True)}
    if data_folder():
        for name in ("airfoil", "concrete", "yacht"):
            rows, target = _csv(name, 0)
            tables[name] = rows, target.astype(float)
    return tables
