"""The estimators that choose their regularisation by cross-validation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from polytrain import TensorTrainClassifier, TensorTrainClassifierCV, TensorTrainRegressorCV
from polytrain.rows import Rows, open_fit
from power_models import power_classifier, power_regressor

ALPHAS = (1e-4, 1e-2, 1.0)
QUICK = {"rank": 3, "max_sweeps": 2, "random_state": 0}


@pytest.fixture(scope="module")
def noisy():
    """Three overlapping classes in two features."""
    X, y = load_iris(return_X_y=True)
    return X[:, :2] + np.random.default_rng(0).normal(0, 0.3, (150, 2)), y


@pytest.fixture(scope="module")
def fitted(noisy):
    return TensorTrainClassifierCV(alphas=ALPHAS, cv=3, **QUICK).fit(*noisy)


def test_tables(fitted):
    np.testing.assert_array_equal(fitted.alphas_, sorted(ALPHAS, reverse=True))
    assert fitted.errors_.shape == (3, 3)
    assert ((fitted.errors_ >= 0) & (fitted.errors_ <= 1)).all()
    np.testing.assert_allclose(fitted.mean_errors_, fitted.errors_.mean(axis=1))


def test_chosen_alpha_has_the_least_mean_error(fitted):
    assert len(set(fitted.mean_errors_)) > 1  # else there was nothing to choose
    assert fitted.alpha_ == fitted.alphas_[np.flatnonzero(fitted.mean_errors_ == fitted.mean_errors_.min())[0]]
    assert fitted.plan_.alpha == fitted.alpha_


def test_final_model_is_the_plain_one_with_that_alpha(fitted, noisy):
    X, y = noisy
    plain = power_classifier(alpha=fitted.alpha_, **QUICK).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(fitted.predict_proba(X), plain.predict_proba(X))


def test_ties_go_to_the_strongest_regularisation():
    X = np.array([[-1.0], [-0.9], [-0.8], [-0.7], [0.7], [0.8], [0.9], [1.0]])
    y = np.repeat([0, 1], 4)
    model = TensorTrainClassifierCV(alphas=[1e-5, 1e-2, 1e-3], cv=2, degree=1, random_state=0).fit(X, y)
    assert not model.errors_.any()
    assert model.alpha_ == 1e-2


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_a_loop_by_hand(noisy, weighted):
    """At full rank the squared loss has one solution, whatever the seed and the start, so a plain loop must agree."""
    X, y = noisy
    weights = np.random.default_rng(1).uniform(0.1, 3, len(X)) if weighted else None
    folds = StratifiedKFold(4, shuffle=True, random_state=5)
    options = {"loss": "squared", "rank": 3, "max_sweeps": 4, "tol": 0.0}
    model = TensorTrainClassifierCV(alphas=ALPHAS, cv=folds, random_state=0, **options).fit(X, y, weights)
    expected = np.zeros((3, 4))
    for a, alpha in enumerate(sorted(ALPHAS, reverse=True)):
        for f, (train, test) in enumerate(folds.split(X, y)):
            part = power_classifier(alpha=alpha, random_state=9, **options)
            part.fit(X[train], y[train], None if weights is None else weights[train])
            wrong = part.predict(X[test]) != y[test]
            expected[a, f] = np.average(wrong, weights=None if weights is None else weights[test])
    np.testing.assert_allclose(model.errors_, expected, atol=1e-12)
    assert model.alpha_ == sorted(ALPHAS, reverse=True)[int(np.argmin(expected.mean(axis=1)))]


def test_folds_are_stratified_and_every_row_is_left_out_once(noisy, monkeypatch):
    X, y = noisy
    rows = np.r_[0:50, 50:70, 100:110]  # 50, 20 and 10 of the three classes
    counts, left_out = [], np.zeros(len(rows))
    learn, weigh = TensorTrainClassifierCV._fit_rows, Rows.weighted

    def watched(self, rows, loss, alpha):
        counts.append(rows.summary.label_weights)
        return learn(self, rows, loss, alpha)

    def weighed(self, factors):
        if np.count_nonzero(factors) < len(rows) / 2:
            left_out[:] += factors
        return weigh(self, factors)

    monkeypatch.setattr(TensorTrainClassifier, "_fit_rows", watched)
    monkeypatch.setattr(Rows, "weighted", weighed)
    TensorTrainClassifierCV(alphas=[1e-2], cv=5, **QUICK).fit(X[rows], y[rows])
    np.testing.assert_array_equal(counts, [[40, 16, 8]] * 5 + [[50, 20, 10]])
    np.testing.assert_array_equal(left_out, 1)


def test_ten_folds_by_default_but_no_more_than_the_smallest_class_has_rows(noisy):
    X, y = noisy
    model = TensorTrainClassifierCV(alphas=[1e-2], degree=1, rank=2, max_sweeps=0, random_state=0)
    assert model.fit(X, y).errors_.shape == (1, 10)
    rows = np.r_[0:50, 50:100, 100:104]
    assert model.fit(X[rows], y[rows]).errors_.shape == (1, 4)


def test_two_jobs_give_the_same(fitted, noisy):
    X, y = noisy
    parallel = clone(fitted).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(parallel.errors_, fitted.errors_)
    np.testing.assert_allclose(parallel.decision_function(X), fitted.decision_function(X), atol=1e-10)


def test_same_random_state_same_result(fitted, noisy):
    X, y = noisy
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.errors_, fitted.errors_)
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_rows_of_no_weight_do_not_count_as_errors(noisy):
    X, y = noisy
    flipped = y.copy()
    bad = np.random.default_rng(0).random(len(y)) < 0.3
    flipped[bad] = (y[bad] + 1) % 3
    model = TensorTrainClassifierCV(alphas=[1e-2], cv=3, **QUICK)
    weighted = model.fit(X, flipped, np.where(bad, 0.0, 1.0)).mean_errors_[0]
    assert weighted < model.fit(X, flipped).mean_errors_[0] - 0.1


def test_labels_of_any_type(noisy):
    X, y = noisy
    names = np.array(["x", "y", "z"])[y]
    model = TensorTrainClassifierCV(alphas=ALPHAS, cv=3, **QUICK).fit(X, names)
    assert set(model.predict(X)) <= {"x", "y", "z"}
    assert model.score(X, names) > 0.6


def test_iterable_of_splits(noisy):
    X, y = noisy
    splits = list(StratifiedKFold(2).split(X, y))
    model = TensorTrainClassifierCV(alphas=[1e-2, 1e-3], cv=splits, **QUICK).fit(X, y)
    assert model.errors_.shape == (2, 2)


@pytest.mark.parametrize(
    ("alphas", "message"),
    [
        ([], "alphas is empty; give at least one"),
        ("strong", "alphas must be a sequence of numbers, got 'strong'"),
        (0.1, "alphas must be a sequence of numbers, got 0.1"),
        ([0.1, -1.0], r"alphas\[1\] must be a finite number that is not negative, got -1.0"),
        ([float("nan")], r"alphas\[0\] must be a finite number"),
        (["a"], r"alphas\[0\] must be a finite number"),
    ],
)
def test_bad_alphas(noisy, alphas, message):
    with pytest.raises(ValueError, match=message):
        TensorTrainClassifierCV(alphas=alphas, cv=2, **QUICK).fit(*noisy)


@pytest.mark.parametrize("cv", [1, 0, -3, True])
def test_bad_cv(noisy, cv):
    with pytest.raises(ValueError, match="cv must be an integer of at least 2"):
        TensorTrainClassifierCV(alphas=[1e-2], cv=cv, **QUICK).fit(*noisy)


def test_one_class(noisy):
    X, _ = noisy
    with pytest.raises(ValueError, match="only one class"):
        TensorTrainClassifierCV(alphas=[1e-2], cv=2, **QUICK).fit(X, np.zeros(len(X)))


def test_rows_without_weight_change_nothing(noisy):
    X, y = noisy
    settings = {"alphas": [1e-1, 1e-3], "cv": 3, **QUICK}
    expected = TensorTrainClassifierCV(**settings).fit(X, y)
    more = np.vstack([X, 5 * X[:7]])
    labels = np.concatenate([y, [7] * 1 + [0] * 6])  # one of them the only row of its class
    weights = np.r_[np.ones(len(X)), np.zeros(7)]
    model = TensorTrainClassifierCV(**settings).fit(more, labels, weights)
    np.testing.assert_allclose(model.errors_, expected.errors_, atol=1e-12)
    np.testing.assert_array_equal(model.classes_, expected.classes_)


def test_splits_may_count_from_the_end_be_masks_or_empty(noisy):
    X, y = noisy
    n = len(y)
    plain = [(np.arange(0, n, 2), np.arange(1, n, 2)), (np.arange(0, n - 1), np.array([n - 1]))]
    odd = [(np.arange(n) % 2 == 0, np.arange(1, n, 2) - n), (list(range(n - 1)), [-1])]
    first, second = (TensorTrainClassifierCV(alphas=[1e-2], cv=cv, **QUICK).fit(X, y).errors_ for cv in (plain, odd))
    np.testing.assert_array_equal(first, second)
    nothing = TensorTrainClassifierCV(alphas=[1e-2], cv=[(np.arange(n), [])], **QUICK).fit(X, y)
    assert nothing.errors_.tolist() == [[0.0]]
    with pytest.raises(ValueError, match="cv names rows that are not there"):
        TensorTrainClassifierCV(alphas=[1e-2], cv=[([0, 1], [n])], **QUICK).fit(X, y)


class _Recording(GroupKFold):
    """Remembers the groups that it is given."""

    def split(self, X, y=None, groups=None):
        self.seen = np.asarray(groups)
        return super().split(X, y, groups)


def test_groups_reach_the_splitter_and_are_never_split():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) // 5 % 12
    splitter = _Recording(3)
    settings = {"alphas": [1e-2], "rank": 2, "max_sweeps": 1, "random_state": 0}
    TensorTrainClassifierCV(cv=splitter, **settings).fit(X, y, groups=groups)
    np.testing.assert_array_equal(splitter.seen, groups)
    for model, target in (
        (TensorTrainClassifierCV(cv=4, **settings), y),
        (TensorTrainRegressorCV(cv=4, **settings), X[:, 3]),
    ):
        with open_fit(model, X, target, None, loss=None if model._classifies else "squared", max_memory=None) as rows:
            folds = list(model._folds(rows, groups))
        assert len(folds) == 4
        for learned, tested in folds:
            assert not set(groups[learned > 0]) & set(groups[tested > 0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TensorTrainClassifierCV(cv=3, **settings).fit(X, y, groups=groups[:-1])


def test_regressors_are_judged_by_squared_errors():
    X, _ = load_iris(return_X_y=True)
    X, target = X[:, :3], X[:, 3]
    folds = KFold(3, shuffle=True, random_state=0)
    settings = {"degree": 1, "rank": 2, "max_sweeps": 2, "random_state": 0}
    model = TensorTrainRegressorCV(alphas=[1e-3, 10.0], cv=folds, **settings).fit(X, target)
    assert model.alpha_ == 1e-3
    for fold, (learned, tested) in enumerate(folds.split(X)):
        single = power_regressor(alpha=10.0, **settings).fit(X[learned], target[learned])
        error = np.mean((single.predict(X[tested]) - target[tested]) ** 2)
        np.testing.assert_allclose(model.errors_[0, fold], error, rtol=1e-6)
