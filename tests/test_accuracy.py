"""Accuracy on real data, by default and with the settings of the paper's kind."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from power_models import power_classifier

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::polytrain.DataWarning")]

DIGITS_SETTINGS = {"random_state": 0}
# Chosen on the training rows alone by ``python -m benchmarks.adult`` at commit 8bb9b40.
ADULT_SETTINGS = {"loss": "squared", "rank": 2, "alpha": 1e-4, "max_sweeps": 4, "random_state": 0}

ADULT_NUMERIC = (0, 2, 4, 10, 11, 12)


def test_digits_five_fold_error():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(PCA(30, random_state=0), power_classifier(**DIGITS_SETTINGS))
    accuracies = cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
    assert 1 - accuracies.mean() <= 0.014


def test_digits_five_fold_error_by_default():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(PCA(30, random_state=0), TensorTrainClassifier(random_state=0))
    accuracies = cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
    assert 1 - accuracies.mean() <= 0.012


@pytest.mark.parametrize(("load", "error"), [(load_iris, 0.06), (load_wine, 0.03), (load_breast_cancer, 0.035)])
def test_small_tables_five_fold_error_by_default(load, error):
    X, y = load(return_X_y=True)
    model = TensorTrainClassifier(random_state=0)
    assert 1 - cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0)).mean() <= error


def test_diabetes_five_fold_score_by_default():
    X, y = load_diabetes(return_X_y=True)
    model = TensorTrainRegressor(random_state=0)
    assert cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0)).mean() >= 0.47


def _read_adult(path):
    """Numeric columns, categorical columns (with missing as a category) and labels."""
    with path.open(newline="") as stream:
        rows = [[cell.strip() for cell in row] for row in csv.reader(stream) if len(row) == 15]
    numeric = np.array([[float(row[k]) for k in ADULT_NUMERIC] for row in rows])
    categories = np.array([[row[k] for k in range(14) if k not in ADULT_NUMERIC] for row in rows])
    labels = np.array([row[14].rstrip(".") for row in rows])
    return numeric, categories, labels


@pytest.fixture(scope="module")
def adult():
    folder = os.environ.get("POLYTRAIN_DATA")
    if folder is None:
        pytest.skip("POLYTRAIN_DATA is not set; it names the folder that holds tabular/adult-train.csv")
    return [_read_adult(Path(folder) / "tabular" / f"adult-{part}.csv") for part in ("train", "test")]


def test_adult_test_error(adult):
    (numeric, categories, y), (numeric_test, categories_test, y_test) = adult
    assert (len(y), len(y_test)) == (32561, 16281)
    assert set(y) == set(y_test) == {"<=50K", ">50K"}
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(categories)
    X = np.hstack([numeric, encoder.transform(categories)])
    X_test = np.hstack([numeric_test, encoder.transform(categories_test)])
    model = power_classifier(**ADULT_SETTINGS).fit(X, y)
    assert 1 - model.score(X_test, y_test) <= 0.145


def test_adult_test_error_by_default(adult):
    pandas = pytest.importorskip("pandas")
    frames = [
        pandas.concat([pandas.DataFrame(numeric), pandas.DataFrame(categories)], axis=1, ignore_index=True)
        for numeric, categories, _ in adult
    ]
    model = TensorTrainClassifier(random_state=0).fit(frames[0], adult[0][2])
    assert 1 - model.score(frames[1], adult[1][2]) <= 0.135
