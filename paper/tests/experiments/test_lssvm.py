import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, make_classification
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from polytrain_paper.experiments import lssvm
from polytrain_paper.experiments.lssvm import LSSVMClassifier


@parametrize_with_checks([LSSVMClassifier(), LSSVMClassifier(kernel="rbf")])
def test_conventions(estimator, check):
    check(estimator)


def problem(n_classes, seed=0, n_rows=60):
    return make_classification(
        n_rows, 6, n_informative=5, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=seed
    )


def dense_solution(kernel, targets, regularization):
    """The whole KKT system, as it is written."""
    n_rows = len(kernel)
    system = np.zeros((n_rows + 1, n_rows + 1))
    system[0, 1:] = system[1:, 0] = 1
    system[1:, 1:] = kernel + np.eye(n_rows) / regularization
    solution = np.linalg.solve(system, np.vstack([np.zeros((1, targets.shape[1])), targets]))
    return solution[1:], solution[0]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", ["poly", "rbf"])
@pytest.mark.parametrize("regularization", [1e-2, 1.0, 1e3])
def test_equals_the_dense_system(kernel, n_classes, regularization):
    X, y = problem(n_classes)
    X_new, _ = problem(n_classes, seed=1)
    if kernel == "poly":
        inner, outer = (polynomial_kernel(A, X, degree=3, gamma=0.2, coef0=0.5) for A in (X, X_new))
    else:
        inner, outer = (rbf_kernel(A, X, gamma=0.2) for A in (X, X_new))
    codes = [1] if n_classes == 2 else range(n_classes)
    targets = np.stack([np.where(y == code, 1.0, -1.0) for code in codes], axis=1)
    dual, bias = dense_solution(inner, targets, regularization)

    model = LSSVMClassifier(kernel, degree=3, gamma=0.2, coef0=0.5, regularization=regularization).fit(X, y)
    assert_allclose(model.dual_coef_, dual, rtol=1e-6, atol=1e-8 * np.abs(dual).max())
    assert_allclose(model.intercept_, bias, rtol=1e-6, atol=1e-8)
    expected = outer @ dual + bias
    scores = model.decision_function(X_new)
    assert scores.shape == ((60,) if n_classes == 2 else (60, n_classes))
    assert_allclose(scores.reshape(60, -1), expected, rtol=1e-6, atol=1e-6)
    assert_allclose(model.dual_coef_.sum(axis=0), 0, atol=1e-8 * np.abs(dual).max() * len(X))


def test_linear_kernel_is_ridge_with_a_free_bias():
    X, y = problem(2)
    model = LSSVMClassifier(degree=1, gamma=1.0, coef0=0.0, regularization=0.5).fit(X, y)
    ridge = Ridge(alpha=2.0).fit(X, np.where(y == 1, 1.0, -1.0))
    assert_allclose(model.decision_function(X), ridge.predict(X), atol=1e-10)


def test_rbf_without_bias_is_a_gaussian_process():
    X, y = problem(2)
    centered = np.where(y == 1, 1.0, -1.0)
    model = LSSVMClassifier("rbf", gamma=0.5, regularization=10).fit(X, y)
    process = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, centered - model.intercept_[0])
    assert_allclose(model.decision_function(X), process.predict(X) + model.intercept_[0], atol=1e-8)


def test_blocks_do_not_matter(monkeypatch):
    X, y = problem(3)
    model = LSSVMClassifier().fit(X, y)
    expected = model.decision_function(X)
    monkeypatch.setattr(lssvm, "BLOCK_BYTES", 8 * len(X) * 7)
    assert_allclose(model.decision_function(X), expected, atol=1e-12)


def test_parameters_by_cross_validation():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), LSSVMClassifier()),
        {"lssvmclassifier__degree": [1, 3], "lssvmclassifier__regularization": [1e-3, 10.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_ == {"lssvmclassifier__degree": 3, "lssvmclassifier__regularization": 10.0}
    assert search.best_score_ > 0.9


def test_refuses_a_kernel_matrix_that_does_not_fit():
    X = np.zeros((60_000, 2), dtype=np.float32)
    with pytest.raises(MemoryError) as caught:
        LSSVMClassifier().fit(X, np.arange(60_000) % 10)
    message = str(caught.value)
    assert "N=60,000 rows needs a kernel matrix of 28,800,000,000 bytes (26.8 GiB)" in message
    assert "max_bytes=4,294,967,296" in message
    assert "at most 23,170 rows" in message
    X, y = problem(2)
    LSSVMClassifier(max_bytes=8 * 60 * 60).fit(X, y)
    with pytest.raises(MemoryError, match="N=60 rows"):
        LSSVMClassifier(max_bytes=8 * 60 * 60 - 1).fit(X, y)


def test_keeps_labels_and_data():
    X, y = problem(3)
    before = X.copy()
    names = np.array(["ant", "bee", "cat"])[y]
    model = LSSVMClassifier(regularization=100.0).fit(X, names)
    assert_array_equal(model.classes_, ["ant", "bee", "cat"])
    assert model.score(X, names) > 0.9
    assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "sigmoid"}, "kernel must be one of .*, got 'sigmoid'"),
        ({"degree": 0}, "degree must be a positive integer, got 0"),
        ({"degree": 1.5}, "degree must be a positive integer, got 1.5"),
        ({"gamma": -1.0}, "gamma must be a positive number, got -1.0"),
        ({"regularization": 0}, "regularization must be a positive number, got 0"),
        ({"regularization": np.inf}, "regularization must be a positive number, got inf"),
        ({"coef0": -0.5}, "coef0 must be a number of at least 0, got -0.5"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    X, y = problem(2)
    with pytest.raises(ValueError, match=message):
        LSSVMClassifier(**parameters).fit(X, y)


def test_hopeless_conditioning_is_explained():
    X, y = problem(2)
    with pytest.raises(ValueError, match=r"no Cholesky factor .* lower regularization"):
        LSSVMClassifier(degree=1, coef0=0, regularization=1e30).fit(1e3 * X, y)
