from inspect import signature

import numpy as np
import pytest
from model_ranges import ranges
from sklearn.inspection import partial_dependence as sklearn_partial_dependence

from polytrain import TensorTrain
from polytrain.basis import BASES
from polytrain.explain import partial_dependence


def brute_force(model, X, features, axes, weights=None):
    """Set the features to every point of the grid and average the predictions over the rows."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    result = np.empty(points.shape[:-1])
    for where in np.ndindex(*result.shape):
        rows = X.copy()
        rows[:, list(features)] = points[where]
        result[where] = np.average(model.predict(rows), weights=weights)
    return result


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("features", [(0,), (2,), (3,), (0, 1), (1, 3), (3, 0)])
def test_rows_equal_brute_force(random_model, basis, features):
    model = random_model((3, 2, 4, 3), basis=basis)
    rng = np.random.default_rng(0)
    X = rng.uniform(ranges(model).low - 0.1, ranges(model).high + 0.1, size=(30, 4))
    axes = [
        np.linspace(ranges(model).low[k] - 0.3, ranges(model).high[k], 5 + k) for k in features
    ]  # clipped at one end
    found = partial_dependence(model, features, X, grid=axes)
    assert found.features == features
    np.testing.assert_allclose(found.values[0], brute_force(model, X, features, axes), rtol=1e-10, atol=1e-12)


def test_more_rows_than_a_block_and_weights(random_model):
    model = random_model((3, 3, 2))
    rng = np.random.default_rng(0)
    X = rng.uniform(ranges(model).low, ranges(model).high, size=(2500, 3))
    weights = rng.random(2500)
    found = partial_dependence(model, [0, 2], X, sample_weight=weights, grid_size=3)
    np.testing.assert_allclose(found.values[0], brute_force(model, X, (0, 2), found.grid, weights), rtol=1e-10)


@pytest.mark.parametrize("features", [(1,), (2, 0)])
def test_uniform_equals_quadrature(random_model, features):
    model = random_model((3, 2, 4))
    points, weights = np.polynomial.legendre.leggauss(5)
    low, high = ranges(model).low, ranges(model).high
    nodes = [(a + b) / 2 + (b - a) / 2 * points for a, b in zip(low, high, strict=True)]
    X = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    product = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    found = partial_dependence(model, features, grid_size=4)
    np.testing.assert_allclose(found.values[0], brute_force(model, X, features, found.grid, product), rtol=1e-10)
    for k, axis in zip(features, found.grid, strict=True):
        assert (axis[0], axis[-1]) == (low[k], high[k])


@pytest.mark.skipif(
    "custom_values" not in signature(sklearn_partial_dependence).parameters, reason="scikit-learn < 1.7"
)
def test_classifier_equals_scikit_learn(iris_model):
    model, X, _ = iris_model
    axis = np.linspace(1, 6.5, 9)
    expected = sklearn_partial_dependence(
        model,
        X,
        ["petal length (cm)"],
        response_method="decision_function",
        method="brute",
        custom_values={"petal length (cm)": axis},
    )
    found = partial_dependence(model, "petal length (cm)", X, grid=axis)
    assert found.values.shape == (3, 9)
    assert found.names == ("petal length (cm)",)
    np.testing.assert_allclose(found.values, expected["average"], rtol=1e-9, atol=1e-11)


def test_unscaled_model_takes_its_grid_from_the_rows(make_model):
    model = make_model(TensorTrain.random((3, 2), 2, random_state=0), basis="power-unscaled")
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(20, 2))
    found = partial_dependence(model, 0, X)
    assert (found.grid[0][0], found.grid[0][-1]) == (X[:, 0].min(), X[:, 0].max())
    np.testing.assert_allclose(found.values[0], brute_force(model, X, (0,), found.grid), rtol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": "weight"}, "there is no feature 'weight'; the features are x1, x2, x3"),
        ({"features": 3}, "feature must be an integer between 0 and 2, got 3"),
        ({"features": [0, 1, 2]}, "features must name one or two different features"),
        ({"features": [1, 1]}, "features must name one or two different features"),
        ({"features": []}, "features must name one or two different features"),
        ({"features": [0, 1], "grid": [[1.0, 2.0]]}, "grid must have one array per feature, got 1 for 2"),
        ({"features": 0, "grid": [0.0, np.nan]}, "grid must hold finite numbers"),
        ({"features": 0, "grid": 3.0}, "grid must"),
        ({"features": 0, "grid_size": 0}, "grid_size must be a positive integer, got 0"),
    ],
)
def test_bad_arguments(random_model, arguments, message):
    with pytest.raises(ValueError, match=message):
        partial_dependence(random_model((2, 2, 2)), **arguments)
