"""Sizes of columns: against refits, and what they are good for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.choice import relevance as choice_relevance
from polytrain.choice.ladder import _rescaled
from polytrain.choice.relevance import column_sizes, train_effects
from polytrain.learning.dual import column_gains, product_kernel, squared_effects


def slow_effects(values, targets, weights, alpha):
    """Solve the kernel problem without each row, and take from its score what is left without the column."""
    squares = np.zeros(len(values))
    n_rows = len(targets)
    kernel = product_kernel(values)
    for row in range(n_rows):
        others = np.arange(n_rows) != row
        matrix = kernel[np.ix_(others, others)] + np.diag(0.5 * alpha / weights[others])
        coefficients = np.linalg.solve(matrix, targets[others])
        for k in range(len(values)):
            without = product_kernel([np.vstack([v[:1], 0 * v[1:]]) if m == k else v for m, v in enumerate(values)])
            effect = (kernel - without)[row, others] @ coefficients
            squares[k] += weights[row] * np.square(effect).sum()
    return squares


@given(st.integers(2, 12), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**31), st.sampled_from([1e-3, 0.1]))
def test_effects_are_those_of_refits(n_rows, n_columns, n_targets, seed, alpha):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, n_columns)
    values = [np.vstack([np.ones(n_rows), 0.7 * rng.normal(size=(n, n_rows))]) for n in sizes]
    targets, weights = rng.normal(size=(n_rows, n_targets)), rng.uniform(0.2, 1, n_rows)
    weights /= weights.sum()
    expected = slow_effects(values, targets, weights, alpha)
    np.testing.assert_allclose(squared_effects(values, targets, weights, alpha), expected, rtol=1e-6, atol=1e-9)


@given(st.integers(8, 30), st.integers(1, 3), st.integers(0, 2**31))
def test_quick_kernels_and_effects_are_nearly_exact(n_rows, n_targets, seed):
    rng = np.random.default_rng(seed)
    sizes = [0.6] * 3 + [0.05] * 40
    values = [np.vstack([np.ones(n_rows), s * rng.normal(size=(rng.integers(1, 4), n_rows))]) for s in sizes]
    values = [values[k] for k in rng.permutation(len(values))]
    targets, weights = rng.normal(size=(n_rows, n_targets)), rng.uniform(0.2, 1, n_rows)
    weights /= weights.sum()
    kernel = product_kernel(values, quick=True)
    np.testing.assert_allclose(kernel, product_kernel(values), rtol=0.02)
    np.testing.assert_array_equal(kernel, kernel.T)
    quick, exact = squared_effects(values, targets, weights, 0.1), slow_effects(values, targets, weights, 0.1)
    np.testing.assert_allclose(quick, exact, rtol=0.1, atol=1e-3 * exact.max())


@given(st.integers(2, 12), st.integers(1, 4), st.integers(1, 70), st.integers(1, 3), st.integers(0, 2**31))
def test_gains_are_quadratic_forms_of_the_coefficients(n_rows, n_columns, n_others, n_targets, seed):
    rng = np.random.default_rng(seed)
    values, others = (
        [np.vstack([np.ones(n_rows), 0.7 * rng.normal(size=(n, n_rows))]) for n in rng.integers(1, 4, count)]
        for count in (n_columns, n_others)
    )
    targets, weights = rng.normal(size=(n_rows, n_targets)), np.full(n_rows, 1 / n_rows)
    kernel = product_kernel(values)
    coefficients = np.linalg.solve(kernel + 0.05 * np.diag(1 / weights), targets)
    expected = [np.sum(coefficients * ((kernel * (own[1:].T @ own[1:])) @ coefficients)) for own in others]
    np.testing.assert_allclose(column_gains(values, others, targets, weights, 0.1), expected, rtol=1e-8, atol=1e-10)


def random_train(rng, dims):
    ranks = [1, *rng.integers(1, 4, len(dims) - 1), 1]
    return [rng.normal(size=shape) for shape in zip(ranks, dims, ranks[1:], strict=False)]


def scores_of(values, train):
    left = np.ones((1, values[0].shape[1]))
    for functions, core in zip(values, train, strict=True):
        left = np.einsum("an,in,aib->bn", left, functions, core)
    return left[0]


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**31))
def test_effects_of_trains_are_what_is_lost_without_a_column(n_rows, n_columns, n_trains, seed):
    rng = np.random.default_rng(seed)
    dims = rng.integers(1, 4, n_columns)
    values = [np.vstack([np.ones(n_rows), rng.normal(size=(n - 1, n_rows))]) for n in dims]
    trains = [random_train(rng, dims) for _ in range(n_trains)]
    expected = np.zeros((n_columns, n_rows))
    for k in range(n_columns):
        without = [np.vstack([v[:1], 0 * v[1:]]) if m == k else v for m, v in enumerate(values)]
        for train in trains:
            expected[k] += np.square(scores_of(values, train) - scores_of(without, train))
    np.testing.assert_allclose(train_effects(values, trains), expected, rtol=1e-9, atol=1e-12)


@given(st.integers(1, 5), st.integers(0, 2**31))
def test_trains_keep_their_scores_in_functions_of_other_sizes(n_columns, seed):
    rng = np.random.default_rng(seed)
    plain = [np.vstack([np.ones(7), rng.normal(size=(4, 7))]) for _ in range(n_columns)]
    n_kept = rng.integers(1, 5, (2, n_columns))
    n_kept[1] = np.maximum(*n_kept)  # functions may come; where some go, so do their parts of the scores
    before, after = (
        [np.append(1.0, np.where(np.arange(4) < n, rng.uniform(0.1, 3, 4), 0)) for n in row] for row in n_kept
    )
    old, new = (
        [factors[factors != 0, None] * functions[factors != 0] for factors, functions in zip(each, plain, strict=True)]
        for each in (before, after)
    )
    train = random_train(rng, [len(functions) for functions in old])
    np.testing.assert_allclose(scores_of(new, _rescaled(train, before, after)), scores_of(old, train), rtol=1e-9)


def test_many_rows_learn_sizes_from_trains_too():
    X, y = make_friedman1(3400, 12, noise=0.3, random_state=0)
    model = TensorTrainRegressor(random_state=0).fit(X[:3000], y[:3000])
    assert any(trial.step == "relevance" and trial.rank > 0 for trial in model.choice_.tried)
    assert sorted(np.argsort(model.relevances_)[-5:]) == [0, 1, 2, 3, 4]
    assert model.score(X[3000:], y[3000:]) > 0.99


def test_sizes_are_bounded_and_of_mean_one_without_bounds():
    squares = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(column_sizes(squares, 1.0), [0.5, 1.0, 1.5])
    np.testing.assert_allclose(column_sizes(squares, 0.5), np.sqrt([0.5, 1.0, 1.5]))
    sizes = column_sizes(np.array([1.0, *[1e-20] * 99]), 1.0)
    assert (sizes.min(), sizes.max()) == (0.05, 4.0)


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(1200, 40, noise=1.0, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module", autouse=True)
def may_leave_out():
    """Let columns be left out, though there are not many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice_relevance, "_MANY_COLUMNS", 30)
        yield


@pytest.fixture(scope="module")
def learned(friedman):
    return TensorTrainRegressor(random_state=0).fit(*friedman[:2])


def test_few_columns_are_all_kept(friedman, monkeypatch):
    monkeypatch.setattr(choice_relevance, "_MANY_COLUMNS", 40)
    X, y, *_ = friedman
    assert TensorTrainRegressor(random_state=0).fit(X, y).relevances_.min() > 0


def test_columns_that_matter_are_found(friedman, learned):
    X, y, Z, fresh = friedman
    assert learned.relevances_.shape == (40,)
    assert learned.relevances_[:5].min() > 2 * learned.relevances_[5:].max()
    equal = clone(learned).set_params(relevance=None).fit(X, y)
    assert (equal.relevances_ == 1).all()
    assert r2_score(fresh, learned.predict(Z)) > r2_score(fresh, equal.predict(Z)) + 0.05


def test_columns_that_are_not_needed_have_no_part_in_the_model(friedman, learned):
    Z, left_out = friedman[2].copy(), np.flatnonzero(learned.relevances_ == 0)
    assert len(left_out) > 20
    assert np.isin(left_out, range(5, 40)).all()
    assert all(learned.maps_.dims[k] == 1 for k in left_out)
    before = learned.predict(Z), learned.predict_interval(Z, 0.9)
    Z[:, left_out] = np.random.default_rng(0).normal(scale=1e3, size=(len(Z), len(left_out)))
    np.testing.assert_array_equal(learned.predict(Z), before[0])
    np.testing.assert_array_equal(learned.predict_interval(Z, 0.9), before[1])
    assert (learned.feature_importances_[left_out] == 0).all()
    assert learned.plan_.ranks == learned.trains_[0].ranks


def test_columns_of_size_0_are_as_if_they_were_not_there(friedman):
    X, y, Z, _ = friedman
    settings = {"random_state": 0, "basis": "spline", "bandwidth": 1.0, "rank": 3, "alpha": 1e-4}
    kept = [1, 3, 4, 8]
    relevance = np.isin(range(40), kept) * np.sqrt(10.0)  # a size is a part of what all columns have together
    model = TensorTrainRegressor(relevance=relevance, **settings).fit(X, y)
    without = TensorTrainRegressor(relevance=np.ones(4), **settings).fit(X[:, kept], y)
    np.testing.assert_allclose(model.predict(Z), without.predict(Z[:, kept]), rtol=1e-9)
    np.testing.assert_allclose(model.fit(X, y).predict(Z), without.predict(Z[:, kept]), rtol=1e-9)
    assert model.history_[-1]["ranks"] == model.trains_[0].ranks == model.plan_.ranks
    again = clone(model).set_params(warm_start=True).fit(X, y)
    again.fit(X, y).partial_fit(X[:50], y[:50])
    assert r2_score(y, again.predict(X)) > 0.5


def test_learning_goes_on_with_columns_left_out(friedman, learned, tmp_path):
    *_, Z, fresh = friedman
    model = polytrain.load(learned.save(tmp_path / "model") or tmp_path / "model")
    model.partial_fit(Z[:400], fresh[:400])
    assert r2_score(fresh[400:], model.predict(Z[400:])) > r2_score(fresh[400:], learned.predict(Z[400:])) - 0.02


def test_given_sizes_are_kept(friedman, learned):
    X, y, Z, _ = friedman
    for relevance in (learned.relevances_, learned.relevances_.tolist()):
        model = clone(learned).set_params(relevance=relevance).fit(X, y)
        np.testing.assert_array_equal(model.relevances_, learned.relevances_)
    settled = {"basis": learned.choice_.basis, "bandwidth": learned.choice_.bandwidth}
    again = TensorTrainRegressor(relevance=learned.relevances_, random_state=0, **settled).fit(X, y)
    np.testing.assert_allclose(again.predict(Z), learned.predict(Z), rtol=1e-2)


def test_sizes_do_not_depend_on_the_order_of_rows_or_repetition(friedman, learned):
    X, y, Z, _ = friedman
    order = np.random.default_rng(0).permutation(len(X))
    for rows in (order, np.repeat(np.arange(len(X)), 2)):
        model = clone(learned).fit(X[rows], y[rows])
        np.testing.assert_allclose(model.relevances_, learned.relevances_, rtol=1e-8)
        np.testing.assert_allclose(model.predict(Z), learned.predict(Z), rtol=1e-6)


def test_sizes_follow_their_columns(friedman, learned):
    X, y, _, _ = friedman
    model = clone(learned).fit(X[:, ::-1], y)
    assert set(np.argsort(model.relevances_)[-5:]) == {35, 36, 37, 38, 39}


def test_sizes_survive_files_and_warm_starts(friedman, learned, tmp_path):
    X, y, Z, _ = friedman
    learned.save(tmp_path / "model")
    again = polytrain.load(tmp_path / "model")
    np.testing.assert_array_equal(again.relevances_, learned.relevances_)
    np.testing.assert_allclose(again.predict(Z), learned.predict(Z), rtol=1e-5, atol=1e-5)
    warm = clone(learned).set_params(warm_start=True).fit(X, y).fit(X, y)
    np.testing.assert_array_equal(warm.relevances_, learned.relevances_)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_pure_noise_leaves_all_columns_alike():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 8)), rng.normal(size=150)
    assert (TensorTrainRegressor(random_state=0).fit(X, y).relevances_ == 1).all()
    assert (TensorTrainClassifier(random_state=0).fit(X, y > 0).relevances_ == 1).all()


@pytest.mark.parametrize(
    ("relevance", "message"),
    [
        ("all", "relevance must be 'auto', None or one number per feature, got 'all'"),
        ([1.0], r"relevance has 1 entries, but X has 2 features"),
        ([1.0, -1.0], r"relevance\[1\] must be 0 or a number between 0 and 1e\+06, got -1.0"),
        ([0, 0.0], "relevance must have at least one factor above 0, got only zeros"),
    ],
)
def test_bad_sizes_are_refused(relevance, message):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=message):
        TensorTrainRegressor(relevance=relevance).fit(X, X[:, 0])
