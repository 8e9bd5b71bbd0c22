"""Explanations in terms of columns, against sums over explicit grids."""

import itertools

import numpy as np
import pytest

from polytrain import TensorTrainRegressor
from polytrain.tables import CategoryColumn, NumberColumn, Preparation, TableModel
from polytrain.tables.explaining import RowSample, column_importances, strongest_terms


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    size, job = rng.normal(size=300).round(1), rng.integers(0, 3, 300)  # few distinct values: a small grid
    X = np.column_stack([size, *(job == k for k in range(3))]).astype(float)
    y = 2 * size + size**2 * (job == 1) + 0.5 * (job == 2)
    estimator = TensorTrainRegressor(degree=[2, 1, 1, 1], rank=3, alpha=1e-5, random_state=0).fit(X, y)
    columns = (NumberColumn("size", 0, 0.0, False), CategoryColumn("job", 1, ("a", "b", "c"), False))
    return TableModel(estimator, Preparation(columns, None, True, 2, ()), {}), X


def all_effects(model, X):
    """Effects of all terms, by Gram-Schmidt over the rows of each feature and a projection on their product grid."""
    columns = []
    for k, n in enumerate(model.estimator.plan_.dims):
        values, counts = np.unique(X[:, k], return_counts=True)
        weights = counts / counts.sum()
        functions = [np.ones(len(values))]
        for power in range(1, n):
            f = values**power
            for g in functions:
                f = f - (weights * f * g).sum() * g
            functions.append(f / np.sqrt((weights * f * f).sum()))
        columns.append((values, weights, np.array(functions)))
    grid = np.array(list(itertools.product(*(values for values, _, _ in columns))))
    shape = [len(values) for values, _, _ in columns]
    result = model.estimator.predict(grid).reshape(shape)
    for axis, (_, weights, functions) in enumerate(columns):
        result = np.moveaxis(np.tensordot(functions * weights, result, axes=(1, axis)), 0, axis)
    return result


def test_strongest_terms_equal_projections(data):
    model, X = data
    expected = all_effects(model, X)
    found = strongest_terms(model, X, 23)
    assert found.exact
    flat = expected.copy()
    flat[0, 0, 0, 0] = 0
    order = np.sort(np.abs(flat).ravel())[::-1][: len(found.effects)]
    np.testing.assert_allclose(np.abs(found.effects), order, atol=1e-9 * order[0])
    named = dict(zip(found.names, found.effects, strict=True))
    assert named["size"] == pytest.approx(expected[1, 0, 0, 0])
    assert named["size^2 * job=b"] == pytest.approx(expected[2, 0, 1, 0])
    assert found.shares.sum() == pytest.approx((found.effects**2).sum() / (flat**2).sum())


def test_column_importances(data):
    model, X = data
    found = column_importances(model, X)
    assert sum(share for _, share in found.columns) == pytest.approx(1)
    shares = [share for _, share in found.columns]
    assert shares == sorted(shares, reverse=True)
    ((one, two, share),) = found.pairs
    assert {one, two} == {"size", "job"}
    effects = all_effects(model, X) ** 2
    effects[0, 0, 0, 0] = 0
    job = np.stack(np.meshgrid(*[range(n) for n in effects.shape], indexing="ij"))[1:]
    with_one_job = (job > 0).sum(axis=0) == 1
    assert share == pytest.approx((effects * with_one_job)[1:].sum() / effects.sum(), rel=1e-6)


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
@pytest.mark.parametrize("n", [5, 50, 51, 1000, 1003])
def test_row_sample_is_even(block, n):
    sample = RowSample(50)
    rows = np.arange(n)[:, None]
    for start in range(0, n, block):
        sample(rows[start : start + block])
    found = sample.rows[:, 0]
    assert len(found) <= 50
    assert found[0] == 0
    assert len(set(np.diff(found))) <= 1
    assert n - found[-1] <= max(1, np.diff(found).max(initial=1))
