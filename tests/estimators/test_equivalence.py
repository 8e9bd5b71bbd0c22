"""Small models against Ridge and LogisticRegression on explicit features, with and without weights."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from power_models import power_classifier, power_regressor

ALPHA = 1e-2
WEIGHTED = pytest.mark.parametrize("weighted", [False, True])


def _data(seed, n_features, n_rows=60, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(2.0, 3.0, (n_rows, n_features))
    y = X[:, 0] - 0.5 * X[:, -1] * X[:, 0] + rng.standard_normal(n_rows)
    weights = rng.uniform(0.2, 3.0, n_rows) if weighted else None
    return X, y, weights


def _scaled(X):
    return 2 * (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)) - 1


def _powers(X, degree):
    """All products of powers of the scaled features, one column each."""
    scaled = _scaled(X)
    exponents = product(*(range(n + 1) for n in np.broadcast_to(degree, X.shape[1])))
    return np.array([np.prod(scaled ** np.array(exponent), axis=1) for exponent in exponents]).T


def _ones_and(X):
    return np.hstack([np.ones((len(X), 1)), _scaled(X)])


def _total(X, weights):
    return len(X) if weights is None else weights.sum()


def _ridge(features, target, weights):
    model = Ridge(alpha=ALPHA * _total(features, weights) / 2, fit_intercept=False)
    return model.fit(features, target, sample_weight=weights).predict(features)


def _logistic(features, y, weights):
    strength = 1 / (ALPHA * _total(features, weights))
    model = LogisticRegression(C=strength, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    return model.fit(features, y, sample_weight=weights).decision_function(features)


def _expected(kind, features, y, weights):
    """Scores of the explicit model on its training rows."""
    if kind == "regressor":
        mean = np.average(y, weights=weights)
        return mean + _ridge(features, y - mean, weights)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    if kind == "squared":
        return _ridge(features, labels, weights)
    return _logistic(features, labels, weights)


def _actual(kind, X, y, weights, **options):
    options = {"alpha": ALPHA, "random_state": 0, "tol": 0.0, **options}
    if kind == "regressor":
        return power_regressor(**options).fit(X, y, weights).predict(X)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    return power_classifier(loss=kind, **options).fit(X, labels, weights).decision_function(X)


KINDS = pytest.mark.parametrize(("kind", "atol"), [("regressor", 1e-9), ("squared", 1e-9), ("logistic", 1e-6)])


@WEIGHTED
@KINDS
@pytest.mark.parametrize(("degree", "rank", "basis"), [(1, 2, "power"), (2, 2, "legendre"), (3, 5, "power")])
def test_linear_start_without_sweeps_is_the_linear_model(degree, rank, basis, kind, atol, weighted):
    X, y, weights = _data(0, 4, weighted=weighted)
    actual = _actual(kind, X, y, weights, degree=degree, rank=rank, basis=basis, max_sweeps=0)
    np.testing.assert_allclose(actual, _expected(kind, _ones_and(X), y, weights), atol=atol)


@WEIGHTED
@KINDS
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_one_feature_is_the_model_on_powers(degree, kind, atol, weighted):
    X, y, weights = _data(1, 1, weighted=weighted)
    actual = _actual(kind, X, y, weights, degree=degree, max_sweeps=10)
    np.testing.assert_allclose(actual, _expected(kind, _powers(X, degree), y, weights), atol=atol)


@WEIGHTED
@KINDS
@pytest.mark.parametrize("degree", [1, 2, (2, 1, 3)])
@pytest.mark.parametrize("init", ["linear", "random"])
def test_full_rank_on_three_features_is_the_model_on_all_products(init, degree, kind, atol, weighted):
    X, y, weights = _data(2, 3, weighted=weighted)
    actual = _actual(kind, X, y, weights, degree=degree, rank=50, init=init, max_sweeps=10)
    np.testing.assert_allclose(actual, _expected(kind, _powers(X, degree), y, weights), atol=atol)


@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs", "auto"])
@KINDS
def test_every_solver_finds_the_explicit_model(kind, atol, solver):
    X, y, _ = _data(3, 3, n_rows=100)
    actual = _actual(kind, X, y, None, degree=1, rank=4, solver=solver, max_sweeps=12)
    tolerance = max(atol, 1e-4) if solver == "lbfgs" else atol
    np.testing.assert_allclose(actual, _expected(kind, _powers(X, 1), y, None), atol=tolerance)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_one_vs_rest_learns_each_class_against_the_rest(loss):
    X, y, _ = _data(4, 3)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model = power_classifier(loss=loss, alpha=ALPHA, max_sweeps=0, random_state=0).fit(X, labels)
    for label, scores in enumerate(model.decision_function(X).T):
        target = np.where(labels == label, 1.0, -1.0)
        explicit = _ridge if loss == "squared" else _logistic
        np.testing.assert_allclose(scores, explicit(_ones_and(X), target, None), atol=1e-6)


def test_one_vs_one_learns_each_pair_on_its_own_rows():
    X, y, _ = _data(4, 3)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model = power_classifier(
        loss="squared", decision="one-vs-one", alpha=ALPHA, max_sweeps=0, basis="power-unscaled", random_state=0
    ).fit(_scaled(X), labels)
    for train, (i, j) in zip(model.trains_, [(0, 1), (0, 2), (1, 2)], strict=True):
        rows = (labels == i) | (labels == j)
        features = _ones_and(X)[rows]
        target = np.where(labels[rows] == i, 1.0, -1.0)
        np.testing.assert_allclose(train.evaluate(_scaled(X)[rows]), _ridge(features, target, None), atol=1e-9)
