"""Tables that the benchmarks learn from: those bundled with scikit-learn, and files below POLYTRAIN_DATA.

POLYTRAIN_DATA/tabular has CSV files of numbers, and Adult. POLYTRAIN_DATA/tables has mixed tables, with categories and
missing values, and ``index.json``, which gives the task and the categories of each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import KFold, StratifiedKFold

#: Tables that come with scikit-learn.
BUNDLED = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}
#: Files below POLYTRAIN_DATA/tabular without a row that names their columns.
WITHOUT_NAMES = ("phoneme", "pima-indians-diabetes", "sonar")
#: Mixed tables whose name another table has already.
RENAMED = {"wine": "wine-quality"}
ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
]  # fmt: skip

#: Training rows, their labels or targets, test rows and theirs.
Fold = tuple[Any, np.ndarray, Any, np.ndarray]


@dataclass(frozen=True)
class Table:
    """A table of "classes" or "numbers"; `dev` marks tables that development looked at.

    `source` is its name in the data where that differs, `components` asks for a PCA within the folds, and `categories`
    names the columns of a mixed table that hold categories; it is None for other tables.
    """

    name: str
    kind: str
    dev: bool = False
    source: str = ""
    components: int | None = None
    categories: tuple[str, ...] | None = None

    @property
    def available(self) -> bool:
        return (self.source or self.name) in BUNDLED or data_folder() is not None

    @property
    def is_mixed(self) -> bool:
        return self.categories is not None

    def folds(self) -> Iterator[Fold]:
        """Adult's official split, three shuffled folds of mixed tables, five of others; stratified for classes."""
        if self.name == "adult":
            yield adult_frames()
            return
        X, y = load(self.source or self.name) if self.categories is None else load_mixed(self.source, self.categories)
        family = StratifiedKFold if self.kind == "classes" else KFold
        rows = X.iloc if self.is_mixed else X
        for train, test in family(3 if self.is_mixed else 5, shuffle=True, random_state=0).split(X, y):
            yield rows[train], y[train], rows[test], y[test]


#: The quick ones first.
TABLES = (
    Table("iris", "classes"),
    Table("wine", "classes", dev=True),
    Table("sonar", "classes", dev=True),
    Table("breast-cancer", "classes", dev=True, source="breast cancer"),
    Table("pima", "classes", dev=True, source="pima-indians-diabetes"),
    Table("yacht", "numbers", dev=True),
    Table("diabetes", "numbers", dev=True),
    Table("concrete", "numbers", dev=True),
    Table("airfoil", "numbers", dev=True),
    Table("digits", "classes"),
    Table("digits-pca30", "classes", source="digits", components=30),
    Table("spambase", "classes", dev=True),
    Table("banana", "classes", dev=True),
    Table("phoneme", "classes", dev=True),
    Table("adult", "classes"),
)


def data_folder() -> Path | None:
    """Folder with the data, or None where POLYTRAIN_DATA is not set."""
    folder = os.environ.get("POLYTRAIN_DATA")
    return Path(folder) if folder else None


def mixed_tables() -> list[Table]:
    """Tables of POLYTRAIN_DATA/tables that are not among `TABLES`; development looked at all of them."""
    folder = data_folder()
    if folder is None or not (folder / "tables" / "index.json").exists():
        return []
    others, tables = {table.name for table in TABLES}, []
    for source, entry in json.loads((folder / "tables" / "index.json").read_text()).items():
        if (name := RENAMED.get(source, source)) not in others:
            kind = "numbers" if entry["task"] == "regression" else "classes"
            tables.append(Table(name, kind, dev=True, source=source, categories=tuple(entry["categories"])))
    return tables


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels or targets of one table; the last column of a file is what to predict."""
    if name in BUNDLED:
        return BUNDLED[name](return_X_y=True)
    header = None if name in WITHOUT_NAMES else 0
    table = pd.read_csv(data_folder() / "tabular" / f"{name}.csv", header=header, skipinitialspace=True)
    return table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()


def load_mixed(name: str, categories: tuple[str, ...]) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows and labels or targets of one mixed table, the categories with pandas' dtype for them."""
    X = pd.read_csv(data_folder() / "tables" / f"{name}.csv.gz")
    y = X.pop(X.columns[-1])
    return X.astype(dict.fromkeys(categories, "category")), y.to_numpy()


def adult_frames() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Adult's official split as it is: strings for categories, NaN where a value is missing."""
    parts = []
    for part in ("train", "test"):
        path = data_folder() / "tabular" / f"adult-{part}.csv"
        frame = pd.read_csv(path, names=[*ADULT_COLUMNS, "income"], skipinitialspace=True, na_values="?")
        parts += [frame[ADULT_COLUMNS], frame["income"].str.rstrip(".").to_numpy(object)]
    return tuple(parts)


def made_counts(seed: int, *, steps: bool) -> tuple[Fold, np.ndarray, np.ndarray]:
    """Events per exposure of a smooth rate or one with steps, 4000 training rows, and the exposures of both parts."""
    rng = np.random.default_rng(seed)
    X, exposures = rng.uniform(-1, 1, (6000, 8)), np.exp(rng.uniform(-1.6, 1.6, 6000))
    if steps:
        log_rate = (X[:, 0] > 0.3) * (X[:, 1] < 0) + 0.8 * (X[:, 2] > 0) - 0.7 * (np.abs(X[:, 3]) > 0.5)
    else:
        log_rate = np.sin(3 * X[:, 0]) + 1.5 * X[:, 1] * X[:, 2] + 0.8 * X[:, 3] ** 2 - 0.5 * X[:, 4]
    y = rng.poisson(exposures * np.exp(log_rate))
    return (X[:4000], y[:4000], X[4000:], y[4000:]), exposures[:4000], exposures[4000:]


def bike_counts() -> tuple[np.ndarray, np.ndarray]:
    """Rented bikes by the hour: counts of two kinds of riders, which the table has as columns, are the target."""
    X, _ = load_mixed("bike", ())
    y = sum(np.rint(X[name] - X[name].min()) for name in ("x15", "x16"))
    return X.drop(columns=["x15", "x16"]).to_numpy(), y.to_numpy()


def noisy_classes(n_columns: int) -> Fold:
    """Two classes, 4000 training rows, 10 informative columns; the others are noise."""
    X, y = datasets.make_classification(
        6000, 10, n_informative=10, n_redundant=0, n_clusters_per_class=3, class_sep=1.2, random_state=1
    )
    X = np.hstack([X, np.random.default_rng(0).standard_normal((len(X), n_columns - 10))])
    X = X[:, np.random.default_rng(1).permutation(n_columns)]
    return X[:4000], y[:4000], X[4000:], y[4000:]


def noisy_numbers(n_columns: int) -> Fold:
    """Friedman's first function, 2000 training rows, 5 informative columns; the others are noise."""
    X, y = datasets.make_friedman1(4000, n_columns, noise=1, random_state=0)
    return X[:2000], y[:2000], X[2000:], y[2000:]
