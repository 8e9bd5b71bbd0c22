"""Explanations of a large mixed table beside those of boosting."""

import os

import numpy as np
import pandas as pd
import pytest
from benchmarks.tabular import adult_frames
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance

from polytrain import TensorTrainClassifier
from polytrain.explain import effects, feature_importances, partial_dependence

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("POLYTRAIN_DATA"), reason="needs POLYTRAIN_DATA"),
]


@pytest.fixture(scope="module")
def adult():
    X, y, X_test, y_test = adult_frames()
    kinds = {name: pd.CategoricalDtype(sorted(X[name].dropna().unique())) for name in X.select_dtypes(exclude="number")}
    X, X_test = X.astype(kinds), X_test.astype(kinds)
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0).fit(X, y)
    # Columns that say the same stand in for each other; with equal relevance, the choice among them is not learned.
    return TensorTrainClassifier(relevance=None, random_state=0).fit(X, y), boosting, X, X_test[:4000], y_test[:4000]


def test_the_first_columns_are_those_of_boosting(adult):
    model, boosting, _, X, y = adult
    permuted = permutation_importance(boosting, X, y, scoring="neg_log_loss", n_repeats=1, random_state=0)
    theirs = X.columns[np.argsort(-permuted.importances_mean)]
    ours = [name for name, _ in feature_importances(model).ranked()]
    assert ours[0] == theirs[0] == "capital-gain"
    assert len(set(ours[:5]) & set(theirs[:5])) >= 4 or len(set(ours[:6]) & set(theirs[:6])) >= 5


@pytest.mark.parametrize("name", ["age", "hours-per-week", "capital-gain"])
def test_curves_look_like_those_of_boosting(adult, name):
    model, boosting, X, _, _ = adult
    rows = X.sample(300, random_state=0)
    grid = np.unique(np.quantile(X[name], np.linspace(0, 1, 40)))
    ours = partial_dependence(model, name, rows, grid=grid).values[0]
    theirs = [boosting.decision_function(rows.assign(**{name: value})).mean() for value in grid]
    places = [np.interp(X[name], grid, curve) for curve in (ours, theirs)]
    assert np.corrcoef(*places)[0, 1] > 0.8


def test_effects_sum_to_the_log_odds(adult):
    model, _, X, rows, _ = adult
    found = effects(model, X)
    terms = found.of_rows(rows)
    total = terms.mean + terms.main.sum(axis=1) + terms.pairs.sum(axis=1) + terms.rest
    np.testing.assert_allclose(total, model.decision_function(rows), rtol=1e-10, atol=1e-10)
    assert found["workclass"].missing_count == X["workclass"].isna().sum()
    assert found["sex"].counts.tolist() == X["sex"].value_counts().sort_index().tolist()
