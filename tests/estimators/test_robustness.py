"""Badly scaled, repeated and ill-conditioned data; models that survive a failed fit."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info, threadpool_limits

from polytrain import TensorTrain, TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning import core_solvers
from polytrain.learning.threads import one_blas_thread
from power_models import power_classifier, power_regressor


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("max_sweeps", [0, 3])
@pytest.mark.parametrize("size", [1e-200, 1e-40, 1e-14, 1e12, 1e36, 1e137])
def test_the_size_of_the_target_changes_nothing(diabetes, size, max_sweeps, dtype):
    X, y = diabetes
    X = X.astype(dtype)
    model = power_regressor(rank=3, max_sweeps=max_sweeps, tol=0, random_state=0)
    expected = model.fit(X, y).predict(X)
    actual = model.fit(X, y * size).predict(X) / size
    np.testing.assert_allclose(actual, expected, rtol=1e-7 if dtype == np.float64 else 1e-3)


def test_the_losses_of_a_regressor_are_in_the_target_s_units(diabetes):
    X, y = diabetes
    model = power_regressor(rank=3, random_state=0).fit(X, y)
    assert model.history_[-1]["loss"] == pytest.approx(np.mean((model.predict(X) - y) ** 2), rel=1e-9)
    penalty = 0.5 * model.alpha * model.trains_[0].norm() ** 2
    assert model.history_[-1]["objective"] == pytest.approx(model.history_[-1]["loss"] + penalty, rel=1e-9)


def test_a_regressor_continues_from_its_own_train(diabetes):
    X, y = diabetes
    model = power_regressor(rank=3, max_sweeps=2, tol=0, random_state=0, warm_start=True).fit(X, y)
    first = model.history_[-1]["objective"]
    model.set_params(max_sweeps=0).fit(X, y)
    again = power_regressor(rank=3, max_sweeps=0, init=model.trains_[0], random_state=0).fit(X, y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)
    assert model.set_params(max_sweeps=1).fit(X, y).history_[-1]["objective"] <= first


def test_a_start_in_a_lopsided_gauge_is_the_same_start(diabetes):
    X, y = diabetes
    train = power_regressor(rank=2, random_state=0).fit(X, y).trains_[0]
    cores = [np.array(core) for core in train.cores]
    turn = np.array([1.0, 1e-12])
    cores[0] = cores[0] * turn
    cores[1] = cores[1] / turn[:, None, None]
    fits = [
        power_regressor(rank=2, max_sweeps=0, init=start, random_state=0).fit(X, y).predict(X)
        for start in (train, TensorTrain(cores))
    ]
    np.testing.assert_allclose(*fits, rtol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "cg", "exact"])
@pytest.mark.parametrize("n_rows", [60, 150, 250])
def test_doubled_weight_equals_a_row_written_twice_also_near_as_many_unknowns_as_rows(diabetes, n_rows, solver):
    X, y = (part[:n_rows] for part in diabetes)  # rank 8 and degree 2 have up to 192 unknowns
    model = power_regressor(solver=solver, max_sweeps=2, random_state=0)
    once = model.fit(X, y, sample_weight=np.full(n_rows, 2.0)).predict(X)
    twice = model.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).predict(X)
    np.testing.assert_allclose(once, twice, rtol=1e-7)


def test_conjugate_gradients_run_when_asked_for(iris, monkeypatch):
    calls = []
    original = core_solvers._ConjugateGradients.direction

    def spy(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(core_solvers._ConjugateGradients, "direction", spy)
    power_classifier(solver="cg", random_state=0).fit(*iris)
    assert calls


def _never_rises(model):
    objectives = [record["objective"] for record in model.history_]
    decreases = [record["decrease"] for record in model.history_]
    return np.isfinite(objectives).all() and (np.array(decreases) >= -1e-5 * np.array(objectives)).all()


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("solver", ["exact", "cg", "auto"])
def test_large_raw_features_do_not_raise_the_objective(diabetes, solver):
    X, y = diabetes
    labels = y > np.median(y)
    model = power_classifier(basis="power-unscaled", loss="squared", rank=6, solver=solver, max_sweeps=6, tol=0)
    assert _never_rises(model.set_params(random_state=0).fit(X * 1000, labels))
    X, y = load_breast_cancer(return_X_y=True)
    assert _never_rises(
        power_classifier(basis="power-unscaled", rank=4, solver=solver, random_state=0, tol=0).fit(X, y)
    )


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_without_regularisation_float32_and_repeated_columns_do_not_raise_the_objective(diabetes):
    X, y = diabetes
    X = np.hstack([X, X[:, :2]]).astype(np.float32)
    model = power_classifier(loss="squared", alpha=0, degree=3, rank=4, tol=0, random_state=0)
    assert _never_rises(model.fit(X, y > np.median(y)))


@pytest.mark.parametrize("basis", ["legendre", "chebyshev"])
def test_high_degrees(basis):
    x = np.linspace(-1, 1, 400)[:, None]
    target = np.cos(12 * x[:, 0])
    model = power_regressor(degree=30, basis=basis, alpha=1e-10, solver="exact").fit(x, target)
    assert np.abs(model.predict(x) - target).max() < 1e-4


def test_probabilities_follow_the_fitted_loss(iris):
    squared = power_classifier(loss="squared", random_state=0).fit(*iris).set_params(loss="logistic")
    assert not hasattr(squared, "predict_proba")
    logistic = power_classifier(random_state=0).fit(*iris).set_params(loss="squared")
    assert logistic.predict_proba(iris[0]).shape == (150, 3)


def test_the_missing_probabilities_say_what_to_do(iris):
    model = power_classifier(loss="squared", random_state=0).fit(*iris)
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        model.predict_proba(iris[0])
    assert re.search("loss='squared'.*CalibratedClassifierCV", str(caught.value.__cause__))


@pytest.mark.parametrize("make", [power_classifier, TensorTrainClassifier])
def test_a_failed_fit_leaves_the_model_as_it_was(iris, make):
    X, y = iris
    model = make(warm_start=True, random_state=0).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(basis="legendre", degree=3).fit(100 * X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(ValueError, match="only one class"):
        model.set_params(warm_start=False, degree=2).fit(X[:, :2], np.zeros(150))
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.decision_function(X), before)
    fresh = make()
    with pytest.raises(ValueError, match="only one class"):
        fresh.fit(X, np.zeros(150))
    assert not hasattr(fresh, "n_features_in_")
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@pytest.mark.parametrize("make", [power_classifier, TensorTrainClassifier])
def test_huge_class_weights(iris, make):
    plain = make(random_state=0).fit(*iris).decision_function(iris[0])
    huge = make(class_weight=dict.fromkeys(range(3), 1e308), random_state=0).fit(*iris)
    np.testing.assert_allclose(huge.decision_function(iris[0]), plain)


@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs"])
def test_overflow_of_raw_features_proposes_scaling(diabetes, solver):
    X, y = diabetes
    model = power_classifier(basis="power-unscaled", solver=solver, random_state=0)
    with pytest.raises(ValueError, match="basis='power'"):
        model.fit(X * 1e40, y > np.median(y))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"decision": ["one-vs-rest"]}, r"decision must be one of"),
        ({"basis": ["power"]}, r"basis has 1 entries, but X has 4 features"),
        ({"basis": ["power", "sine", "power", "power"]}, r"basis\[1\] must be one of .*, got 'sine'"),
        ({"basis": 3}, r"basis must be one of"),
        ({"init": [None] * 3}, r"init must be one of .*a TensorTrain or a list of them, got \[None, None, None\]"),
    ],
)
def test_parameters_of_the_wrong_kind_are_named(iris, parameters, message):
    with pytest.raises(ValueError, match=message):
        TensorTrainClassifier(**parameters).fit(*iris)


def test_weights_that_are_not_numbers_are_named(iris):
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        TensorTrainClassifier().fit(*iris, sample_weight=["a"] * 150)


def test_sparse_targets_are_refused():
    with pytest.raises(ValueError, match=r"y is a sparse csr_array; make it dense with y\.toarray\(\)"):
        TensorTrainRegressor().fit(np.eye(3), csr_array(np.eye(3)))


def test_blas_is_limited_while_anyone_needs_it_and_free_afterwards():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):  # the tests themselves may run on one
        before = threads()
        assert set(before) == {2}
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before
