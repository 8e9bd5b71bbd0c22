"""Accuracy on real data, with the settings that the documentation shows."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from power_models import power_classifier

pytestmark = pytest.mark.slow

DIGITS_SETTINGS = {"random_state": 0}
# Chosen on the training rows alone by ``python -m benchmarks.adult``.
ADULT_SETTINGS = {"loss": "squared", "rank": 2, "alpha": 1e-4, "max_sweeps": 4, "random_state": 0}

ADULT_NUMERIC = (0, 2, 4, 10, 11, 12)


def test_digits_five_fold_error():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(PCA(30, random_state=0), power_classifier(**DIGITS_SETTINGS))
    accuracies = cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
    assert 1 - accuracies.mean() <= 0.014


def _read_adult(path):
    """Numeric columns, categorical columns (with missing as a category) and labels."""
    with path.open(newline="") as stream:
        rows = [[cell.strip() for cell in row] for row in csv.reader(stream) if len(row) == 15]
    numeric = np.array([[float(row[k]) for k in ADULT_NUMERIC] for row in rows])
    categories = np.array([[row[k] for k in range(14) if k not in ADULT_NUMERIC] for row in rows])
    labels = np.array([row[14].rstrip(".") for row in rows])
    return numeric, categories, labels


def test_adult_test_error():
    folder = os.environ.get("POLYTRAIN_DATA")
    if folder is None:
        pytest.skip("POLYTRAIN_DATA is not set; it names the folder that holds tabular/adult-train.csv")
    numeric, categories, y = _read_adult(Path(folder) / "tabular" / "adult-train.csv")
    numeric_test, categories_test, y_test = _read_adult(Path(folder) / "tabular" / "adult-test.csv")
    assert (len(y), len(y_test)) == (32561, 16281)
    assert set(y) == set(y_test) == {"<=50K", ">50K"}
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(categories)
    X = np.hstack([numeric, encoder.transform(categories)])
    X_test = np.hstack([numeric_test, encoder.transform(categories_test)])
    model = power_classifier(**ADULT_SETTINGS).fit(X, y)
    assert 1 - model.score(X_test, y_test) <= 0.145
