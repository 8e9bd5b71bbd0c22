import itertools

import numpy as np
import pandas as pd
import pytest
from model_ranges import ranges

from polytrain import Polynomial, TensorTrain, TensorTrainRegressor
from polytrain.basis import BASES
from polytrain.explain import explain_local, feature_importances, sobol_indices
from power_models import power_regressor


def explicit_anova(function, points, weights):
    """Variance of every ANOVA component over a full grid: subset of features -> variance.

    The component of a subset is the conditional mean on it minus the components of its proper subsets. A slow,
    direct reading of the definition.
    """
    d = len(points)
    grid = np.stack(np.meshgrid(*points, indexing="ij"), axis=-1)
    values = function(grid.reshape(-1, d)).reshape(grid.shape[:-1])
    components, variances = {}, {}
    for size in range(d + 1):
        for subset in itertools.combinations(range(d), size):
            component = values
            for k in range(d):
                if k not in subset:
                    component = np.sum(
                        component * weights[k].reshape([-1 if j == k else 1 for j in range(d)]), axis=k, keepdims=True
                    )
            for smaller in range(size):
                for part in itertools.combinations(subset, smaller):
                    component = component - components[part]
            components[subset] = component
            square = component**2
            for k in range(d):
                if k in subset:
                    square = np.sum(
                        square * weights[k].reshape([-1 if j == k else 1 for j in range(d)]), axis=k, keepdims=True
                    )
            variances[subset] = float(square.ravel()[0])
    mean = float(components[()].ravel()[0])
    del variances[()]
    return mean, variances


def check_against_anova(indices, mean, variances):
    d = indices.first.shape[1]
    whole = sum(variances.values())
    np.testing.assert_allclose(indices.mean[0], mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(indices.variance[0], whole, rtol=1e-9)
    share = {subset: value / whole for subset, value in variances.items()}
    np.testing.assert_allclose(indices.first[0], [share[(k,)] for k in range(d)], rtol=1e-8, atol=1e-12)
    totals = [sum(value for subset, value in share.items() if k in subset) for k in range(d)]
    np.testing.assert_allclose(indices.total[0], totals, rtol=1e-8, atol=1e-12)
    for j, k in itertools.combinations(range(d), 2):
        np.testing.assert_allclose(indices.second[0, j, k], share[(j, k)], rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(indices.second[0], indices.second[0].T)
    assert not indices.second[0].diagonal().any()
    higher = sum(value for subset, value in share.items() if len(subset) > 2)
    np.testing.assert_allclose(indices.higher[0], higher, atol=1e-10)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("dims", [(3,), (2, 4), (3, 2, 3, 2), (2, 3, 2, 2, 3)])
def test_uniform_measure_equals_explicit_anova(random_model, basis, dims):
    model = random_model(dims, basis=basis, seed=2)
    points, weights = np.polynomial.legendre.leggauss(6)
    low, high = ranges(model).low, ranges(model).high
    nodes = [(a + b) / 2 + (b - a) / 2 * points for a, b in zip(low, high, strict=True)]
    check_against_anova(sobol_indices(model), *explicit_anova(model.predict, nodes, [weights / 2] * len(dims)))


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("weighted", [False, True])
def test_data_measure_equals_explicit_anova(random_model, weighted):
    model = random_model((3, 4, 2), seed=4)
    rng = np.random.default_rng(0)
    X = rng.uniform(ranges(model).low - 0.2, ranges(model).high + 0.2, size=(7, 3))  # some values are clipped
    weights = rng.integers(1, 4, size=7) if weighted else np.ones(7)
    expected = explicit_anova(model.predict, list(X.T), [weights / weights.sum()] * 3)
    check_against_anova(sobol_indices(model, X, sample_weight=weights if weighted else None), *expected)


def test_integer_weights_equal_repeated_rows(random_model):
    model = random_model((3, 3, 2))
    X = np.random.default_rng(1).uniform(ranges(model).low, ranges(model).high, size=(6, 3))
    weights = np.array([1, 2, 0, 3, 1, 1])
    one = sobol_indices(model, X, sample_weight=weights)
    two = sobol_indices(model, np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(one.total, two.total, rtol=1e-10)
    np.testing.assert_allclose(one.second, two.second, rtol=1e-9, atol=1e-14)


def test_features_with_few_values_are_no_trouble(random_model):
    """Powers of a binary feature are collinear; their covariance is singular."""
    model = random_model((4, 4, 3), seed=1)
    low, high = ranges(model).low, ranges(model).high
    X = np.where(np.random.default_rng(0).random((40, 3)) < 0.4, low, high)
    share = [np.mean(X[:, k] == high[k]) for k in range(3)]
    expected = explicit_anova(model.predict, list(zip(low, high, strict=True)), [np.array([1 - p, p]) for p in share])
    check_against_anova(sobol_indices(model, X), *expected)


def test_monte_carlo_agrees_within_its_error(random_model):
    """Saltelli's estimator of main effects and Jansen's of total effects, as variances: both have no bias."""
    model = random_model((3,) * 6, rank=4, seed=7)
    indices = sobol_indices(model)
    rng = np.random.default_rng(0)
    low, high = ranges(model).low, ranges(model).high
    A, B = rng.uniform(low, high, size=(2, 100_000, 6))
    # The exact mean is taken off: far from mean 0 the first estimator is much too noisy to compare with.
    of_a, of_b = model.predict(A) - indices.mean[0], model.predict(B) - indices.mean[0]
    samples = [of_a**2]
    expected = [1.0]
    for k in range(6):
        mixed = A.copy()
        mixed[:, k] = B[:, k]
        of_mixed = model.predict(mixed) - indices.mean[0]
        samples += [of_b * (of_mixed - of_a), (of_a - of_mixed) ** 2 / 2]
        expected += [indices.first[0, k], indices.total[0, k]]
    samples = np.array(samples) / indices.variance[0]
    error = samples.std(axis=1) / np.sqrt(samples.shape[1])
    assert error.max() < 0.02  # else the comparison would say nothing
    assert np.all(np.abs(samples.mean(axis=1) - expected) < 3 * error)


def ishigami(X, a=7.0, b=0.1):
    return np.sin(X[:, 0]) + a * np.sin(X[:, 1]) ** 2 + b * X[:, 2] ** 4 * np.sin(X[:, 0])


def test_ishigami_function():
    """The analytic indices of Ishigami and Homma (1990), from a fit of degree 8 to samples, to 2 %."""
    a, b = 7.0, 0.1
    X = np.random.default_rng(0).uniform(-np.pi, np.pi, size=(3000, 3))
    model = power_regressor(degree=8, rank=3, basis="legendre", alpha=1e-6, max_sweeps=10, random_state=0)
    indices = sobol_indices(model.fit(X, ishigami(X)))
    parts = {
        (0,): 0.5 * (1 + b * np.pi**4 / 5) ** 2,
        (1,): a**2 / 8,
        (0, 2): b**2 * np.pi**8 * (1 / 18 - 1 / 50),
    }
    whole = sum(parts.values())
    assert indices.mean[0] == pytest.approx(a / 2, rel=0.02)
    assert indices.variance[0] == pytest.approx(whole, rel=0.02)
    assert indices.first[0, 0] == pytest.approx(parts[(0,)] / whole, rel=0.02)
    assert indices.first[0, 1] == pytest.approx(parts[(1,)] / whole, rel=0.02)
    assert indices.first[0, 2] == pytest.approx(0, abs=1e-3)
    assert indices.second[0, 0, 2] == pytest.approx(parts[(0, 2)] / whole, rel=0.02)
    assert indices.second[0, 0, 1] == pytest.approx(0, abs=1e-3)
    expected = [(parts[(0,)] + parts[(0, 2)]) / whole, parts[(1,)] / whole, parts[(0, 2)] / whole]
    np.testing.assert_allclose(indices.total[0], expected, rtol=0.02)


def test_long_train_neither_overflows_nor_vanishes(make_model):
    train = TensorTrain.random((2,) * 300, 3, random_state=0)
    model = make_model(train)
    plain = sobol_indices(model)
    lopsided = [core * (1e3 if k < 150 else 1e-3) for k, core in enumerate(train.cores)]
    model.model_ = model.model_.with_trains([lopsided])
    indices = sobol_indices(model)
    assert np.isfinite(indices.total).all()
    assert indices.first.sum() + indices.second.sum() / 2 + indices.higher[0] == pytest.approx(1)
    assert np.all(indices.first <= indices.total + 1e-12)
    np.testing.assert_allclose(indices.total, plain.total, rtol=1e-6)


def test_constant_polynomial_has_no_indices(make_model):
    model = make_model(TensorTrain.rank_one([[2.0, 0.0], [1.0, 0.0]]), intercept=1.0)
    indices = sobol_indices(model)
    assert indices.mean[0] == pytest.approx(3.0)
    assert indices.variance[0] == 0
    assert not indices.total.any()
    assert indices.higher[0] == 0
    assert not feature_importances(model).importances.any()


def test_constant_feature_has_no_influence(make_model):
    model = make_model(Polynomial.parse("x1 + 3*x2 + 2*x1*x2^2").to_train(), low=[0, 5], high=[2, 5])
    indices = sobol_indices(model)
    np.testing.assert_allclose(indices.total[0], [1, 0], atol=1e-12)


def test_importances_average_the_classes(iris_model):
    model, X, _ = iris_model
    indices, importances = sobol_indices(model, X), feature_importances(model, X)
    assert indices.total.shape == (3, 4)
    assert indices.second.shape == (3, 4, 4)
    assert indices.train_names == ("0", "1", "2")
    expected = indices.total.mean(axis=0) / indices.total.mean(axis=0).sum()
    np.testing.assert_allclose(importances.importances, expected)
    assert importances.feature_names == tuple(X.columns)
    ranked = importances.ranked()
    assert [value for _, value in ranked] == sorted(expected, reverse=True)


def test_errors(make_model):
    model = make_model(TensorTrain.random((2, 2), 2, random_state=0), basis="power-unscaled")
    with pytest.raises(
        ValueError, match=r"does not know the range of its feature 'x1' \(as with basis='power-unscaled'\); pass X"
    ):
        sobol_indices(model)
    assert sobol_indices(model, [[0.1, 0.2], [0.3, -0.5], [1.0, 1.0]]).variance[0] > 0
    with pytest.raises(ValueError, match="sample_weight belongs to the rows of X"):
        sobol_indices(model, sample_weight=[1.0])
    with pytest.raises(ValueError, match="3 features"):
        sobol_indices(model, [[1.0, 2.0, 3.0]])


def test_groups_of_columns_count_as_one():
    """The index of a set is what no column outside of it explains; contributions of a group add up."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (200, 4)), columns=["a", "b", "c", "d"])
    y = X["a"] + X["a"] * X["c"] + X["b"] * X["d"]
    model = TensorTrainRegressor(basis="power", rank=3, alpha=1e-6, random_state=0).fit(X, y)
    indices, found = sobol_indices(model, X), feature_importances(model, X, groups=[["c", "b"], ["d"]])
    assert found.feature_names == ("a", "c & b", "d")
    inside = indices.first[0, 0] + indices.first[0, 3] + indices.second[0, 0, 3]
    expected = np.array([indices.total[0, 0], 1.0 - inside, indices.total[0, 3]])
    np.testing.assert_allclose(found.importances, expected / expected.sum(), rtol=1e-6)
    alone, together = explain_local(model, X[:5]), explain_local(model, X[:5], groups=[[1, 2]])
    np.testing.assert_allclose(together.values[:, 1], alone.values[:, 1] + alone.values[:, 2], rtol=1e-12)
    np.testing.assert_array_equal(together.values[:, [0, 2]], alone.values[:, [0, 3]])
    assert together.cells[0][1] == f"{alone.cells[0][1]}, {alone.cells[0][2]}"
    assert explain_local(model, X[:5], groups="auto").column_names == ("a", "b", "c", "d")
    copied = X.assign(b=X["a"] + 0.01 * X["b"])
    assert explain_local(model, X[:5], X_background=copied, groups="auto").column_names == ("a & b", "c", "d")


@pytest.mark.parametrize(
    ("groups", "X", "message"),
    [
        ("auto", None, r"groups must be None, 'auto' with rows X, or a list of groups, got 'auto'"),
        ("all", [[0.0, 0.0]], "got 'all'"),
        ([[0, 1], [1]], None, r"groups must not share columns, got \[\[0, 1\], \[1\]\]. Name every column once"),
        ([[0, 5]], None, "column must be an integer between 0 and 1, got 5"),
        ([["z"]], None, "there is no column 'z'"),
    ],
)
def test_wrong_groups_are_refused(groups, X, message):
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    model = TensorTrainRegressor(rank=1, alpha=0.1, max_sweeps=1, random_state=0).fit(rows, rows[:, 0])
    with pytest.raises(ValueError, match=message):
        feature_importances(model, X, groups=groups)
