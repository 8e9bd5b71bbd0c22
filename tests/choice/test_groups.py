"""What a fit chooses where columns act together in groups only."""

import numpy as np
import pytest
from refits import refitted

from polytrain import TensorTrainRegressor
from polytrain.choice import MapMaker
from polytrain.choice.map_search import ChoiceRows, MapSearch, function_values
from polytrain.learning.parts import make_parts, parts_kernel
from polytrain.maps import ColumnSummary


def some_rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 4))
    y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, y


@pytest.mark.parametrize("groups", [[{0}, {1}, {2}, {3}], [{1, 2}], [{0, 1}, {1, 2}, {2, 3}], [{0, 1, 2}, {2, 3}]])
def test_left_out_errors_are_those_of_refits_with_the_constrained_kernel(groups):
    X, y = some_rows(30)
    columns = [ColumnSummary(0.0, 1.0, np.sort(column), np.ones(30)) for column in X.T]
    maker = MapMaker(["auto"] * 4, [2] * 4, lambda with_values: columns)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, size=30)
    weights /= weights.sum()
    rows = ChoiceRows(X, y[:, None], weights)
    parts = make_parts(groups, 4)
    search = MapSearch(maker, [1e-3], rows, parts)
    for trial in search.try_each([("smooth", 1.0, 1e-3, None), ("spline", 0.5, 1e-3, None)]):
        kernel = parts_kernel(function_values(maker(trial.kind, trial.bandwidth), X), parts)
        np.testing.assert_allclose(trial.residuals, refitted(kernel, rows.targets, weights, 1e-3), rtol=1e-6, atol=1e-9)


def test_kinds_are_compared_with_the_constrained_kernel():
    X, y = some_rows(60)
    columns = [ColumnSummary(0.0, 1.0, np.sort(column), np.ones(60)) for column in X.T]
    rows = ChoiceRows(X, y[:, None], np.full(60, 1 / 60))
    errors = []
    for groups in ([{1, 2}, {0}, {3}], [{0, 1}, {2, 3}]):
        maker = MapMaker(["auto"] * 4, [2] * 4, lambda with_values: columns)
        ((trial,),) = MapSearch(maker, [1e-4], rows, make_parts(groups, 4)).compare(["smooth"], 1.0)
        errors.append(trial.error)
    assert errors[0] < 0.5 * errors[1]  # the truth has the interaction of the second and the third column


def test_the_exact_solution_of_few_rows_is_that_of_the_constrained_kernel():
    X, y = some_rows(50)
    model = TensorTrainRegressor(interaction_cst=[{0, 1}, {1, 2}], alpha=1e-3, basis="smooth", rank=30)
    model.fit(X, y)
    kernel = parts_kernel(function_values(model.maps_, X), make_parts([{0, 1}, {1, 2}], 4))
    size = y.std()
    expected = kernel @ np.linalg.solve(kernel + np.eye(50) * 50 * 1e-3 / 2, (y - y.mean()) / size)
    np.testing.assert_allclose(model.predict(X), y.mean() + size * expected, rtol=1e-6)
    assert model.history_ == []
