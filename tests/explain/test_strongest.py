"""Explanations in terms of columns, against sums over explicit grids."""

import itertools
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from polytrain import TensorTrainRegressor
from polytrain.columns import CategoryColumn, Columns, NumberColumn
from polytrain.explain import effects, sobol_indices
from polytrain.explain.terms import strongest_terms
from polytrain.explain.view import read_model


def view_of(estimator, *columns):
    """A view of columns of which the estimator, fitted on their features, knows nothing."""
    known = copy(estimator)
    known.model_ = replace(estimator.model_, columns=Columns(columns), feature_names=None)
    known.n_features_in_ = len(columns)
    return read_model(known).on_features()


@pytest.fixture(scope="module")
def coded():
    """A number and a category, both with missing cells."""
    rng = np.random.default_rng(0)
    size, job = rng.integers(-3, 4, 400).astype(float), rng.integers(0, 3, 400).astype(float)
    y = 2 * size + size * (job == 1) + 0.5 * (job == 2)
    size[rng.random(400) < 0.1] = np.nan
    job[rng.random(400) < 0.1] = np.nan
    X = np.column_stack([size, job])
    estimator = TensorTrainRegressor(basis=["spline", "category"], bandwidth=1.0, rank=3, alpha=1e-5, random_state=0)
    return view_of(estimator.fit(X, y), NumberColumn("size"), CategoryColumn("job", ("a", "b", "c"))), X


@pytest.mark.parametrize("with_rows", [True, False])
def test_effects_of_coded_categories(coded, with_rows):
    model, X = coded
    job = effects(model, X if with_rows else None)["job"]
    assert job.grid.tolist() == ["a", "b", "c"]
    assert job.missing_part == pytest.approx(np.isnan(X[:, 1]).mean())
    means = [model.fitted.predict(np.column_stack([X[:, 0], np.full(400, code)])).mean() for code in (0, 1, 2, np.nan)]
    mean = np.append(job.parts, job.missing_part) @ means
    np.testing.assert_allclose(np.append(job.values, job.missing), means - mean, atol=1e-9)


def effects_on_grid(model, X):
    """Main effects and interaction of two columns, from predictions on the grid of all their values."""
    values, weights = zip(*(np.unique(column, return_counts=True) for column in X.T), strict=True)
    size, job = (w / w.sum() for w in weights)
    grid = np.array(list(itertools.product(*values)))
    table = model.fitted.predict(grid).reshape(len(size), len(job))
    table -= size @ table @ job
    first, second = table @ job, size @ table
    return size @ first**2, job @ second**2, size @ np.square(table - first[:, None] - second) @ job


@pytest.mark.parametrize("with_rows", [True, False])
def test_categories_and_missing_cells(coded, with_rows):
    """Without rows, columns are distributed as in training: the maps know how."""
    model, X = coded
    size, job, both = effects_on_grid(model, X)
    found = sobol_indices(model, X if with_rows else None)
    whole = size + job + both
    np.testing.assert_allclose(found.total[0], [(size + both) / whole, (job + both) / whole], rtol=1e-6)
    assert found.second[0, 0, 1] == pytest.approx(both / whole, rel=1e-6)
    terms = strongest_terms(model, X if with_rows else None, 40)
    assert terms.shares.sum() == pytest.approx(1, rel=1e-6)
    assert terms.names[0] == "f1(size)"
    assert terms.effects[0] > 0
    kinds = ("size", "job", " * ")
    named = {kind: sum(terms.effects[[kind in name for name in terms.names]] ** 2) for kind in kinds}
    assert named["size"] == pytest.approx(size + both)
    assert named["job"] == pytest.approx(job + both)
    assert named[" * "] == pytest.approx(both)


def test_terms_of_missing_numbers(coded):
    """The mean where the number is missing against that of all rows, jobs being as they are among all rows."""
    model, X = coded
    terms = strongest_terms(model, X, 40)
    effect = terms.effects[terms.names.index("size is missing")]
    means = [model.fitted.predict(np.column_stack([np.full(len(X), x), X[:, 1]])).mean() for x in X[:, 0]]
    gone = np.isnan(X[:, 0])
    part = gone.mean()
    gap = np.array(means)[gone][0] - np.mean(means)
    assert effect == pytest.approx(gap * np.sqrt(part / (1 - part)))


def test_a_column_named_like_a_term(coded):
    """The slope of a column "size is missing" and the missing cells of "size" are two terms."""
    _, X = coded
    estimator = TensorTrainRegressor(basis=["spline", "power"], bandwidth=1.0, rank=2, alpha=1e-5, random_state=0)
    rows = np.column_stack([X[:, 0], np.arange(400) % 7])
    estimator.fit(rows, np.isnan(rows[:, 0]) + rows[:, 1])
    names = strongest_terms(view_of(estimator, NumberColumn("size"), NumberColumn("size is missing")), rows, 5).names
    assert set(names[:2]) == {"size is missing", "size is missing (2)"}
    assert len(set(names)) == len(names)


def test_terms_of_huge_scores(coded):
    """Their variance exceeds the largest float; shares of it do not."""
    model, X = coded
    huge, fitted = copy(model.estimator), model.fitted
    huge.model_ = replace(fitted, size=1e200 * fitted.size, shift=1e200 * fitted.shift)
    terms = strongest_terms(view_of(huge, *model.fitted.columns.columns), X, 3)
    assert terms.shares == pytest.approx(strongest_terms(model, X, 3).shares, rel=1e-3)
