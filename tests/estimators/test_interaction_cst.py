"""Which columns may interact: what is refused, and that a model has no other interactions."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

import polytrain
from polytrain import (
    TensorTrainClassifier,
    TensorTrainRegressor,
    config_context,
)
from polytrain.estimators._parameters import allowed_groups
from polytrain.explain import sobol_indices
from polytrain.sources import open_rows

NAMES = ["a", "b", "c", "d", "e"]


def truth(X):
    """Two columns interact, the others do not."""
    return np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 2 * X[:, 2] * X[:, 3] + 0.5 * X[:, 4]


def some_rows(n_rows=150, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 5))
    return X, truth(X) + noise * rng.normal(size=n_rows)


def interaction(scores, X, i, j):
    """Largest second difference over two columns, at random points: 0 if they do not interact."""
    rng = np.random.default_rng(0)
    one, other, both = X.copy(), X.copy(), X.copy()
    one[:, i] = both[:, i] = rng.permutation(X[:, i])
    other[:, j] = both[:, j] = rng.permutation(X[:, j])
    return float(np.abs(scores(both) - scores(one) - scores(other) + scores(X)).max())


def assert_only(model, X, allowed, all_of_them=True):
    """Check all pairs of columns: the allowed ones interact, the others do not."""

    def scores(rows):
        return model.model_.scores(np.asarray(rows)).T

    size = max(1.0, float(np.abs(scores(X)).max()))
    for i, j in combinations(range(X.shape[1]), 2):
        found = interaction(scores, X, i, j)
        if (i, j) in allowed:
            assert found > 1e-6 * size or not all_of_them, (i, j)
        else:
            assert found < 1e-11 * size, (i, j)


CASES = {
    "none": ("no_interactions", []),
    "pairwise": ("pairwise", list(combinations(range(5), 2))),
    "one pair": ([[2, 3], [0], [1], (4,)], [(2, 3)]),
    "the rest is a group": ([{2, 3}], [(2, 3), (0, 1), (0, 4), (1, 4)]),
    "overlapping": ([(0, 4), (4, 1, 3), [1, 2]], [(0, 4), (1, 4), (1, 3), (3, 4), (1, 2)]),
}


@pytest.mark.parametrize("case", CASES)
def test_no_other_columns_interact_with_few_rows(case):
    groups, allowed = CASES[case]
    X, y = some_rows()
    assert_only(TensorTrainRegressor(interaction_cst=groups, random_state=0).fit(X, y), X, allowed)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_other_columns_interact_after_rounds(case, loss):
    groups, allowed = CASES[case]
    X, y = some_rows(300)
    settings = {"basis": "legendre", "degree": 2, "rank": 3, "alpha": 1e-4, "init": "linear", "random_state": 0}
    model = TensorTrainClassifier(loss=loss, interaction_cst=groups, **settings).fit(X, y > 0.4)
    assert_only(model, X, allowed)
    assert all(record["decrease"] >= -1e-12 for record in model.history_)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_other_columns_interact_with_many_rows(case, dtype):
    groups, allowed = CASES[case]
    X, y = some_rows(1500)
    model = TensorTrainRegressor(interaction_cst=groups, random_state=0).fit(X.astype(dtype), y)
    assert_only(model, X, allowed, all_of_them=case == "one pair")


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [300, 1500])
@pytest.mark.parametrize("loss", ["auto", "squared", "logistic"])
@pytest.mark.parametrize("decision", ["one-vs-rest", "one-vs-one", "binary-code"])
def test_classes(loss, decision, n_rows):
    X, y = some_rows(n_rows)
    labels = np.digitize(y, [-0.5, 0.8])
    groups, allowed = CASES["overlapping"]
    settings = {"loss": loss, "decision": decision, "interaction_cst": groups, "random_state": 0}
    if loss == "logistic":
        settings |= {"basis": "smooth", "bandwidth": 1.0, "rank": 2}
    model = TensorTrainClassifier(**settings).fit(X, labels)
    assert_only(model, X, allowed, all_of_them=False)
    assert model.score(X, labels) > 0.5


def test_sobol_indices_have_no_other_interactions():
    X, y = some_rows()
    found = sobol_indices(TensorTrainRegressor(interaction_cst=[{2, 3}, {0, 4}, {1}], random_state=0).fit(X, y), X)
    expected = np.zeros((5, 5), dtype=bool)
    expected[[2, 3, 0, 4], [3, 2, 4, 0]] = True
    np.testing.assert_array_equal(found.second[0] > 1e-10, expected)
    assert found.higher[0] < 1e-10


@pytest.mark.parametrize("n_rows", [100, pytest.param(1500, marks=pytest.mark.slow)])
def test_the_right_groups_are_at_least_as_good_on_fresh_rows(n_rows):
    X, y = some_rows(n_rows)
    fresh, _ = some_rows(2000, seed=1)
    errors = [
        np.mean(
            np.square(
                TensorTrainRegressor(interaction_cst=groups, random_state=0).fit(X, y).predict(fresh) - truth(fresh)
            )
        )
        for groups in ([{2, 3}, {0}, {1}, {4}], None)
    ]
    assert errors[0] < errors[1]


def test_names_and_numbers_are_the_same(tmp_path):
    X, y = some_rows()
    frame = pd.DataFrame(X, columns=NAMES)
    named = TensorTrainRegressor(interaction_cst=[{"c", "d"}, ("a", "b")], random_state=0).fit(frame, y)
    numbered = TensorTrainRegressor(interaction_cst=[[2, 3], [0, 1]], random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.predict(frame), numbered.predict(X))
    assert_only(named, X, [(2, 3), (0, 1)])
    named.save(tmp_path / "model")
    for again in (polytrain.load(tmp_path / "model"), pickle.loads(pickle.dumps(named))):
        assert [set(group) for group in again.interaction_cst] == [{"c", "d"}, {"a", "b"}]
        np.testing.assert_allclose(again.predict(frame), named.predict(frame), rtol=1e-5, atol=1e-5)
        assert_only(again, X, [(2, 3), (0, 1)])
        np.testing.assert_array_equal(clone(again).fit(frame, y).predict(frame), named.predict(frame))


@pytest.mark.parametrize(
    "groups", ["pairwise", [frozenset({0, 1})], ((0, 1), [2]), np.array([[0, 1], [2, 3]]), [range(2)]]
)
def test_files_keep_any_groups(tmp_path, groups):
    X, y = some_rows(40)
    model = TensorTrainRegressor(basis="power", rank=2, alpha=0.1, interaction_cst=groups, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = polytrain.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-5, atol=1e-5)
    expected = groups if isinstance(groups, str) else [list(group) for group in groups]
    assert again.interaction_cst == expected
    assert again.history_ == model.history_


def test_columns_of_any_type():
    """All features of a column are in its groups: a date has two of them."""
    rng = np.random.default_rng(0)
    X, y = some_rows(200)
    frame = pd.DataFrame(X[:, :3], columns=NAMES[:3])
    frame["town"] = rng.choice(["Ulm", "Bonn", None], size=200)
    frame["when"] = pd.to_datetime("2026-01-01") + pd.to_timedelta(rng.integers(0, 60, size=200), unit="D")
    frame.loc[::7, "b"] = np.nan
    model = TensorTrainRegressor(interaction_cst=[{"a", "town"}, {"when", "b"}], random_state=0).fit(frame, y)
    rows = model.model_.columns.encode(frame)
    names = list(model.model_.feature_names)
    groups = [{"a", "town"}, {"b", "when (time)", "when (weekday)"}]
    for i, j in combinations(range(len(names)), 2):
        if not any({names[i], names[j]} <= group for group in groups):
            assert interaction(lambda new: model.model_.scores(new)[0], rows, i, j) < 1e-11


def test_several_outputs():
    X, y = some_rows()
    model = TensorTrainRegressor(interaction_cst=[{2, 3}], random_state=0).fit(X, np.stack([y, -y, X[:, 0]], axis=1))
    assert model.predict(X).shape == (150, 3)
    assert interaction(model.predict, X, 0, 2) < 1e-11


@pytest.mark.parametrize("groups", ["pairwise", [{2, 3}, {3, 4}]])
def test_repeated_rows_are_rows_of_twice_the_weight(groups):
    X, y = some_rows(60)
    model = TensorTrainRegressor(interaction_cst=groups, random_state=0)
    weights = np.random.default_rng(1).integers(0, 3, size=60)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0)[::-1], np.repeat(y, weights)[::-1])
    np.testing.assert_allclose(repeated.predict(X), weighted.predict(X), atol=1e-7)


def test_another_number_of_processes_changes_nothing():
    X, y = some_rows(200)
    settings = {
        "basis": "power",
        "rank": 2,
        "alpha": 1e-3,
        "loss": "logistic",
        "interaction_cst": [{2, 3}],
        "random_state": 0,
    }
    labels = np.digitize(y, [-0.5, 0.8])
    one, two = (TensorTrainClassifier(**settings, n_jobs=n_jobs).fit(X, labels) for n_jobs in (1, 2))
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("max_memory", [None, 1])
def test_rows_on_disk(tmp_path, max_memory):
    """Both where they fit in memory and where they do not."""
    X, y = some_rows(1400)
    for k, rows in enumerate(np.array_split(np.arange(1400), 3)):
        np.save(tmp_path / f"X{k}.npy", X[rows])
        np.save(tmp_path / f"y{k}.npy", y[rows])
    settings = {"basis": "smooth", "bandwidth": 1.0, "rank": 2, "alpha": 1e-4, "random_state": 0}
    model = TensorTrainRegressor(interaction_cst=[{2, 3}, {3, 4}, {0}], **settings)
    here = clone(model).fit(X, y)
    with config_context(max_memory=max_memory):
        there = clone(model).fit(open_rows(tmp_path))
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-7)
    assert_only(there, X, [(2, 3), (3, 4)])


def test_one_group_of_all_columns_is_no_constraint():
    X, y = some_rows()
    free, bound = (
        TensorTrainRegressor(interaction_cst=groups, random_state=0).fit(X, y) for groups in (None, [range(5)])
    )
    np.testing.assert_array_equal(bound.predict(X), free.predict(X))


def test_an_additive_model_has_all_functions_of_every_column():
    """Also where the linear model of the same basis has one."""
    X, _ = some_rows()
    y = X[:, 0] ** 2 - X[:, 1] ** 3
    settings = {"basis": "power", "degree": 3, "rank": 2, "alpha": 1e-8, "random_state": 0}
    model = TensorTrainRegressor(interaction_cst="no_interactions", **settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)
    assert model.trains_[0].ranks == (1, 2, 2, 2, 2, 1)


@pytest.mark.parametrize("groups", ["no_interactions", "pairwise", [{2, 3}], [(0, 1), [1, 2]]])
def test_boosting_takes_the_same_groups(groups):
    X, y = some_rows()
    others = HistGradientBoostingRegressor(interaction_cst=groups, max_iter=2).fit(X, y)
    ours = TensorTrainRegressor(interaction_cst=groups, basis="power", rank=2, alpha=0.1).fit(X, y)
    for model in (others, ours):
        assert model.score(X, y) > 0.1
        if groups != "pairwise":
            assert interaction(model.predict, X, 0, 2) < 1e-11


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("pairs", "must not be 'pairs'. Give None, 'no_interactions', 'pairwise', or a list of groups"),
        (3, "must not be 3. Give"),
        ({"a": [0]}, "must not be {'a': .*Give"),
        ([], r"must not be \[\]. Give"),
        ([0, 1], r"\[0\] is 0, which is not a group of columns"),
        (["ab"], r"\[0\] is 'ab', which is not a group of columns"),
        ([[0], []], r"\[1\] is \[\], which is not a group of columns. Give .* one or more numbers or names"),
        ([[0, 5]], r"\[0\] has the column number 5, but X has 5 columns. Give numbers from 0 to 4"),
        ([[-1]], r"\[0\] has the column number -1"),
        ([[0.5]], r"\[0\] has the entry 0.5, which is not a column"),
        ([[True, 2]], r"\[0\] has the entry True"),
        ([["a"]], r"\[0\] has the column name 'a', but the columns of X have no names"),
    ],
)
def test_what_is_refused(groups, message):
    X, y = some_rows(20)
    with pytest.raises(ValueError, match=f"interaction_cst ?{message}"):
        TensorTrainRegressor(interaction_cst=groups).fit(X, y)


def test_an_unknown_name_is_refused():
    X, y = some_rows(20)
    with pytest.raises(
        ValueError, match=r"\[1\] has the column name 'f', which X does not have. Its columns are 'a', 'b'"
    ):
        TensorTrainRegressor(interaction_cst=[["a"], ["f"]]).fit(pd.DataFrame(X, columns=NAMES), y)


def test_too_many_groups_are_refused():
    with pytest.raises(ValueError, match=r"'pairwise' makes 4950 groups of 100 columns.*Name fewer groups"):
        allowed_groups("pairwise", 100, None, range(100))
    assert len(allowed_groups("no_interactions", 5000, None, range(5000))) == 5000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": [2, 2, 2, 2]}, "rank gives one number per bond.*Give a single integer"),
        ({"early_stopping": True}, "interaction_cst does not support validation rows.*Set early_stopping=False"),
        ({"init": "random"}, "init must be 'auto' or 'linear' with interaction_cst, got 'random'"),
    ],
)
def test_what_speaks_of_one_train_is_refused(settings, message):
    X, y = some_rows(20)
    with pytest.raises(ValueError, match=message):
        TensorTrainRegressor(interaction_cst=[[0, 1]], random_state=0, **settings).fit(X, y)


def test_checkpoints_are_refused():
    X, y = some_rows(20)
    wanted = "checkpoint='folder' stores the states .* does not work with .* or interaction_cst"
    with config_context(checkpoint="folder"), pytest.raises(ValueError, match=wanted):
        TensorTrainRegressor(interaction_cst=[[0, 1]], random_state=0).fit(X, y)


def test_classes_are_not_learned_jointly():
    X, y = some_rows(30)
    with pytest.raises(ValueError, match=r"loss='multinomial' learns the trains .* Use loss='auto'"):
        TensorTrainClassifier(loss="multinomial", interaction_cst=[[0, 1]]).fit(X, np.digitize(y, [-0.5, 0.8]))


def test_streams_are_refused():
    X, y = some_rows(30)
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        TensorTrainRegressor(interaction_cst=[[0, 1]]).partial_fit(X, y)
    assert "with interaction_cst, partial_fit would let any columns interact. Use fit." in str(caught.value.__cause__)


@pytest.mark.parametrize("loss", ["absolute", "quantile", "huber", "poisson", "gamma"])
def test_other_losses(loss):
    X, y = some_rows(200)
    groups, allowed = CASES["overlapping"]
    settings = {"basis": "legendre", "rank": 2, "alpha": 1e-3, "random_state": 0}
    model = TensorTrainRegressor(loss=loss, interaction_cst=groups, **settings).fit(X, np.exp(y / 2))
    assert_only(model, X, allowed)
    assert all(record["decrease"] >= -1e-9 for record in model.history_)


def test_a_warm_start_is_refused():
    X, y = some_rows(30)
    model = TensorTrainRegressor(interaction_cst=[[0, 1]], basis="power", rank=2, alpha=0.1, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start=True cannot continue.*Set warm_start=False"):
        model.fit(X, y)
