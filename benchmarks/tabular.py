"""Tables that the benchmarks learn from: those bundled with scikit-learn, and CSV files below POLYTRAIN_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import OneHotEncoder

#: Tables that come with scikit-learn.
BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}
#: Tables below POLYTRAIN_DATA/tabular, with the row that names their columns.
FILES = {
    "banana": 0,
    "phoneme": None,
    "pima-indians-diabetes": None,
    "sonar": None,
    "spambase": 0,
    "airfoil": 0,
    "concrete": 0,
    "yacht": 0,
}
ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)


def data_folder() -> Path | None:
    """Folder with the data, or None where POLYTRAIN_DATA is not set."""
    folder = os.environ.get("POLYTRAIN_DATA")
    return Path(folder) if folder else None


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels or targets of one table; the last column of a file is what to predict."""
    if name in BUNDLED:
        return BUNDLED[name](return_X_y=True)
    table = pd.read_csv(data_folder() / "tabular" / f"{name}.csv", header=FILES[name], skipinitialspace=True)
    return table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()


def adult_frames() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Adult's official split as it is: strings for categories, NaN where a value is missing."""
    parts = []
    for part in ("train", "test"):
        path = data_folder() / "tabular" / f"adult-{part}.csv"
        frame = pd.read_csv(path, names=[*ADULT_COLUMNS, "income"], skipinitialspace=True, na_values="?")
        parts += [frame[list(ADULT_COLUMNS)], frame["income"].str.rstrip(".").to_numpy(object)]
    return tuple(parts)


def load_adult() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Adult's official split: one-hot categories, a missing value being a category, numbers as they are."""
    train, y, test, y_test = adult_frames()
    numeric = train.select_dtypes("number").columns
    others = [column for column in train.columns if column not in numeric]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(train[others].fillna("?"))
    X, X_test = (
        np.hstack([frame[numeric].to_numpy(float), encoder.transform(frame[others].fillna("?"))])
        for frame in (train, test)
    )
    return X, y, X_test, y_test


def classification() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Small classification tables by name."""
    tables = {name: load(name) for name in ("iris", "wine", "breast cancer")}
    digits, labels = load("digits")
    tables["digits, 20 PCA"] = PCA(20, random_state=0).fit_transform(digits), labels
    if data_folder():
        tables |= {name: load(name) for name in ("banana", "phoneme", "pima-indians-diabetes", "sonar", "spambase")}
    return tables


def regression() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Small regression tables by name."""
    names = ("diabetes", *(("airfoil", "concrete", "yacht") if data_folder() else ()))
    return {name: load(name) for name in names}
