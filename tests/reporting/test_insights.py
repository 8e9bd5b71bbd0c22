"""Effects in a report equal those of the definition: means and deviations over all combinations of the values."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.explain.view import read_model
from polytrain.reporting.insights import Insights
from polytrain.reporting.subject import Subject


def as_table(estimator, levels=None):
    view = read_model(estimator, [f"c{k}" for k in range(estimator.n_features_in_)])
    names = tuple((levels or {}).get(k) for k in range(estimator.n_features_in_))
    return Subject(replace(view.on_features(), level_names=names))


@pytest.fixture
def fitted():
    """A model of a number, a category and a number with gaps, and six rows that give the distributions."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 3, 200), rng.normal(size=200)])
    X[rng.random(200) < 0.2, 2] = np.nan
    y = X[:, 0] * (X[:, 1] - 1) + np.where(np.isnan(X[:, 2]), 1.0, X[:, 2] ** 2) + X[:, 0] * (X[:, 1] == 2)
    basis = ["spline", "category", "spline"]
    model = TensorTrainRegressor(basis=basis, rank=4, alpha=1e-4, random_state=0).fit(X, y)
    rows = X[np.r_[0:5, np.flatnonzero(np.isnan(X[:, 2]))[:1]]]
    return as_table(model, {1: ("low", "middle", "high")}), rows


def all_scores(model, rows, **fixed):
    """Scores of all combinations of the rows' values, with some columns at given values: (combinations,)."""
    columns = [[fixed[f"c{k}"]] if f"c{k}" in fixed else rows[:, k].tolist() for k in range(rows.shape[1])]
    return model.estimator.model_.scores(np.array(list(product(*columns))))[0]


def test_effects_of_columns(fitted):
    model, rows = fitted
    effects = {effect.axis.name: effect for effect in Insights(model, rows).columns(3)}
    mean = all_scores(model, rows).mean()
    for name, effect in effects.items():
        k = int(name[1])
        without = np.mean([all_scores(model, rows, **{name: value}) for value in rows[:, k]], axis=0)
        for j in range(0, len(effect.axis.points), 7):
            scores = all_scores(model, rows, **{name: effect.axis.points[j]})
            assert effect.values[0, j] == pytest.approx(scores.mean() - mean, abs=1e-9)
            assert effect.spread[j] == pytest.approx((scores - without).std(), abs=1e-7)
    assert effects["c2"].missing[0] == pytest.approx(all_scores(model, rows, c2=np.nan).mean() - mean, abs=1e-9)
    assert effects["c2"].axis.n_missing == np.isnan(rows[:, 2]).sum()
    assert effects["c0"].missing is None
    assert set(effects["c1"].axis.levels) <= {"low", "middle", "high"}
    assert effects["c1"].axis.rows.sum() == len(rows)


def test_effects_of_pairs(fitted):
    model, rows = fitted
    (pair, *_) = Insights(model, rows).pairs(2)
    one, two = pair.axes
    mean = all_scores(model, rows).mean()
    for i in range(0, len(one.points), 5):
        for j in range(0, len(two.points), 2):
            at = {one.name: one.points[i]}, {two.name: two.points[j]}
            alone = sum(all_scores(model, rows, **fixed).mean() - mean for fixed in at)
            both = all_scores(model, rows, **at[0], **at[1]).mean() - mean
            assert pair.values[i, j] == pytest.approx(both - alone, abs=1e-9)


def test_importances_and_shares(fitted):
    model, rows = fitted
    insights = Insights(model, rows)
    assert sum(share for _, share in insights.importances) == pytest.approx(1.0)
    assert sum(insights.shares) == pytest.approx(1.0)


def test_contributions_sum_to_the_score():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 4))
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] * X[:, 2] > 0)
    model = as_table(TensorTrainClassifier(rank=3, alpha=1e-3, random_state=0).fit(X, y))
    scores = model.estimator.model_.scores(X[:3])
    found = Insights(model, X).explain_rows(X[:3], [0, 2, 1])
    for j, (train, why) in enumerate(zip([0, 2, 1], found, strict=True)):
        assert why.score == pytest.approx(scores[train, j])
        assert why.base + sum(value for _, _, value in why.parts) == pytest.approx(why.score)
        sizes = [abs(value) for _, _, value in why.parts]
        assert sizes == sorted(sizes, reverse=True)
        assert {name: cell for name, cell, _ in why.parts}["c1"] == f"{X[j, 1]:.5g}"


def test_constant_columns_and_models_have_pictures():
    X = np.column_stack([np.linspace(0, 1, 30), np.full(30, 2.0)])
    model = as_table(TensorTrainRegressor(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X, np.ones(30)))
    insights = Insights(model, X)
    assert insights.pairs(3) == []
    assert all(np.isfinite(effect.values).all() for effect in insights.columns(2))
