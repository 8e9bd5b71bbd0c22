"""The classifier: labels, decisions, probabilities, options, attributes."""

import pickle
import sys
from copy import deepcopy
from functools import partial
from itertools import pairwise

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from polytrain import TensorTrain, TensorTrainClassifier
from polytrain.tensor import rank_bounds
from power_models import power_classifier

DECISIONS = pytest.mark.parametrize("decision", ["one-vs-rest", "one-vs-one", "binary-code"])
LOSSES = pytest.mark.parametrize("loss", ["squared", "logistic"])
QUICK = {"rank": 3, "max_sweeps": 3, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def _binary(iris):
    X, y = iris
    return X[50:], y[50:] - 1


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([-5, 0, 7]),
        np.array([1.0, 2.0, 3.0]),
    ],
)
@DECISIONS
@pytest.mark.parametrize("make", [partial(power_classifier, **QUICK), partial(TensorTrainClassifier, random_state=0)])
def test_any_three_labels(iris, labels, decision, make):
    X, y = iris
    model = make(decision=decision).fit(X, labels[y])
    np.testing.assert_array_equal(model.classes_, labels)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    plain = make(decision=decision).fit(X, y)
    np.testing.assert_array_equal(predicted, labels[plain.predict(X)])
    assert model.score(X, labels[y]) > 0.95


@pytest.mark.parametrize(
    "labels", [np.array(["no", "yes"]), np.array([-1, 1]), np.array([False, True]), np.array([1.0, 2.0])]
)
@DECISIONS
@LOSSES
def test_any_two_labels_train_one_train(iris, labels, decision, loss):
    X, y = _binary(iris)
    model = power_classifier(loss=loss, decision=decision, **QUICK).fit(X, labels[y])
    assert len(model.trains_) == 1
    np.testing.assert_array_equal(model.classes_, labels)
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted, np.where(scores > 0, labels[1], labels[0]))
    assert model.score(X, labels[y]) > 0.95


@DECISIONS
@LOSSES
def test_predict_is_the_argmax_of_the_decision_function(wine, decision, loss):
    X, y = wine
    model = power_classifier(loss=loss, decision=decision, **QUICK).fit(X, y)
    decided = model.decision_function(X)
    assert decided.shape == (len(X), 3)
    assert len(model.trains_) == {"one-vs-rest": 3, "one-vs-one": 3, "binary-code": 2}[decision]
    np.testing.assert_array_equal(model.predict(X), decided.argmax(axis=1))
    assert model.score(X, y) > 0.97


@DECISIONS
def test_probabilities(wine, decision):
    X, y = wine
    model = power_classifier(decision=decision, **QUICK).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), 3)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities, atol=1e-12)
    assert np.mean(probabilities.argmax(axis=1) == y) > 0.97


def test_binary_probabilities_are_the_sigmoid_of_the_score(iris):
    X, y = _binary(iris)
    model = power_classifier(**QUICK).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-model.decision_function(X))), atol=1e-14)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities, atol=1e-12)


def test_squared_loss_has_no_probabilities_but_says_where_to_get_them(iris):
    X, y = iris
    model = power_classifier(loss="squared", **QUICK).fit(X, y)
    for method in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError) as caught:
            getattr(model, method)
        chain = f"{caught.value} {caught.value.__cause__}"
        assert "CalibratedClassifierCV" in chain
        assert "loss='auto', 'logistic' or 'multinomial'" in chain
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    probabilities = calibrated.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(probabilities.argmax(axis=1) == y) > 0.9


# ---------------------------------------------------------------------------------------------------- weights


def _scores_of(X, y, weights=None, at=None, **options):
    model = power_classifier(**{**QUICK, "tol": 0.0, **options}).fit(X, y, weights)
    return model.decision_function(X if at is None else at)


@LOSSES
@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_permuting_rows_changes_nothing(wine, loss, solver):
    X, y = wine
    order = np.random.default_rng(0).permutation(len(X))
    plain = _scores_of(X, y, loss=loss, solver=solver)
    np.testing.assert_allclose(_scores_of(X[order], y[order], at=X, loss=loss, solver=solver), plain, atol=1e-7)


@LOSSES
@DECISIONS
def test_repeated_rows_are_integer_weights(iris, loss, decision):
    X, y = iris
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    repeated = _scores_of(X.repeat(counts, axis=0), y.repeat(counts), at=X, loss=loss, decision=decision)
    np.testing.assert_allclose(_scores_of(X, y, counts, loss=loss, decision=decision), repeated, atol=1e-7)


@LOSSES
def test_zero_weight_is_a_removed_row(iris, loss):
    X, y = iris
    keep = np.random.default_rng(0).random(len(X)) < 0.7
    wild = np.where(keep[:, None], X, 1e3)  # rows of no weight may not even enter the scaling
    weighted = _scores_of(wild, y, keep.astype(float), at=X, loss=loss)
    np.testing.assert_allclose(weighted, _scores_of(X[keep], y[keep], at=X, loss=loss), atol=1e-10)


def test_a_class_without_weight_is_no_class(iris):
    X, y = iris
    model = power_classifier(**QUICK).fit(X, y, (y > 0).astype(float))
    np.testing.assert_array_equal(model.classes_, [1, 2])


@LOSSES
def test_rescaling_and_shifting_features_changes_nothing(iris, loss):
    X, y = iris
    moved = X * [1e-3, 50.0, 2.0, 1.0] + [7.0, 0.0, -30.0, 1e3]
    np.testing.assert_allclose(_scores_of(moved, y, loss=loss), _scores_of(X, y, loss=loss), atol=1e-6)


@LOSSES
def test_weights_are_really_used_and_only_their_ratios_matter(iris, loss):
    X, y = iris
    weights = np.random.default_rng(0).uniform(0.1, 5, len(X))
    weighted = _scores_of(X, y, weights, loss=loss)
    assert np.abs(weighted - _scores_of(X, y, loss=loss)).max() > 1e-2
    np.testing.assert_allclose(_scores_of(X, y, 1e9 * weights, loss=loss), weighted, atol=1e-7)


@DECISIONS
def test_class_weights_are_sample_weights(iris, decision):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    given = _scores_of(X, names, class_weight={"a": 2.0, "c": 0.5}, decision=decision)
    by_hand = _scores_of(X, names, np.array([2.0, 1.0, 0.5])[y], decision=decision)
    np.testing.assert_allclose(given, by_hand, atol=1e-9)


def test_balanced_classes_weigh_the_same(iris):
    X, y = iris
    rows = np.r_[0:50, 50:70, 100:140]
    X, y = X[rows], y[rows]
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    totals = np.bincount(y, weights)
    balanced = _scores_of(X, y, weights, class_weight="balanced")
    np.testing.assert_allclose(balanced, _scores_of(X, y, weights / totals[y]), atol=1e-7)


# ---------------------------------------------------------------------------------------------------- shapes


def test_degrees_per_feature_and_ranks_per_bond(iris):
    X, y = iris
    model = power_classifier(degree=[1, 3, 2, 1], rank=(2, 4, 2), max_sweeps=1).fit(X, y)
    for train in model.trains_:
        assert train.dims == (2, 4, 3, 2)
        assert train.ranks == (1, 2, 4, 2, 1)
    assert model.n_parameters_ == sum(core.size for train in model.trains_ for core in train.cores)


def test_ranks_are_cut_to_their_bounds(iris):
    X, y = iris
    model = power_classifier(degree=1, rank=99, max_sweeps=1).fit(X, y)
    assert model.trains_[0].ranks == (1, *rank_bounds((2, 2, 2, 2)), 1) == (1, 2, 4, 2, 1)


@LOSSES
@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
def test_cores_are_contiguous_and_reproduce_the_scores(iris, basis, loss):
    X, y = iris
    model = power_classifier(loss=loss, basis=basis, **QUICK).fit(X, y)
    scaled = 2 * (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)) - 1
    for train, scores in zip(model.trains_, model.decision_function(X).T, strict=True):
        assert all(core.flags.c_contiguous for core in train.cores)
        np.testing.assert_allclose(train.evaluate(scaled, basis=basis), scores, atol=1e-10)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_prediction_far_outside_the_training_range_is_that_at_the_clipped_point(iris):
    X, y = iris
    model = power_classifier(degree=3, **QUICK).fit(X, y)
    far = np.random.default_rng(0).normal(0, 1e6, (40, 4))
    far[0] = 1e300
    scores = model.decision_function(far)
    assert np.isfinite(scores).all()
    clipped = np.clip(far, X.min(axis=0), X.max(axis=0))
    np.testing.assert_array_equal(scores, model.decision_function(clipped))


@LOSSES
def test_float32_is_close_to_float64(wine, loss):
    X, y = wine
    double = power_classifier(loss=loss, **QUICK).fit(X, y)
    single = power_classifier(loss=loss, **QUICK).fit(X.astype(np.float32), y)
    difference = np.abs(single.decision_function(X.astype(np.float32)) - double.decision_function(X))
    assert difference.max() < 1e-2
    assert all(core.dtype == np.float64 for train in single.trains_ for core in train.cores)


def test_float32_is_close_to_float64_by_default(wine):
    X, y = wine
    single = TensorTrainClassifier(random_state=0).fit(X.astype(np.float32), y)
    double = TensorTrainClassifier(random_state=0).fit(X.astype(np.float32).astype(np.float64), y)
    assert single.choice_.basis == double.choice_.basis
    assert np.abs(single.predict_proba(X.astype(np.float32)) - double.predict_proba(X)).max() < 1e-2


# ---------------------------------------------------------------------------------------------------- starts


@pytest.mark.parametrize("form", ["train", "list of trains", "cores", "list of cores"])
def test_init_given_for_one_train(iris, form):
    X, y = _binary(iris)
    first = power_classifier(**QUICK).fit(X, y)
    train = first.trains_[0]
    init = {
        "train": train,
        "list of trains": [train],
        "cores": list(train.cores),
        "list of cores": [list(train.cores)],
    }[form]
    second = power_classifier(init=init, rank=3, max_sweeps=0).fit(X, y)
    np.testing.assert_allclose(second.decision_function(X), first.decision_function(X), atol=1e-11)


def test_init_given_for_several_trains(iris):
    X, y = iris
    first = power_classifier(**QUICK).fit(X, y)
    second = power_classifier(init=first.trains_, rank=5, max_sweeps=0).fit(X, y)
    np.testing.assert_allclose(second.decision_function(X), first.decision_function(X), atol=1e-11)
    assert max(second.trains_[0].ranks) == 5
    cores = [list(train.cores) for train in first.trains_]
    third = power_classifier(init=cores, rank=3, max_sweeps=0).fit(X, y)
    np.testing.assert_allclose(third.decision_function(X), first.decision_function(X), atol=1e-11)


def test_wrong_init(iris):
    X, y = iris
    train = TensorTrain.random((3, 3, 3, 3), 2, random_state=0)
    with pytest.raises(ValueError, match="init has 1 trains but this fit learns 3"):
        power_classifier(init=train).fit(X, y)
    with pytest.raises(
        ValueError, match=r"init\[0\] has dimensions \(3, 3, 3, 3\), but the functions of the maps are \(2, 2, 2, 2\)"
    ):
        power_classifier(degree=1, init=[train] * 3).fit(X, y)
    broken = [np.full((1, 3, 1), np.nan)] * 4
    with pytest.raises(ValueError, match=r"init\[1\] contains NaN"):
        power_classifier(init=[train, broken, train]).fit(X, y)
    with pytest.raises(ValueError, match="init must be one of"):
        power_classifier(init=3).fit(X, y)


@LOSSES
def test_warm_start_continues(wine, loss):
    X, y = wine
    model = power_classifier(loss=loss, rank=4, max_sweeps=2, tol=0.0, warm_start=True, random_state=0)
    ends = []
    for _ in range(3):
        model.fit(X, y)
        ends.append([record["objective"] for record in model.history_ if record["sweep"] == model.n_iter_])
        if len(ends) > 1:
            firsts = [record["objective"] for record in model.history_ if record["sweep"] == 1]
            assert (np.array(firsts) <= np.array(ends[-2]) * (1 + 1e-10)).all()
    assert (np.array(ends[2]) < np.array(ends[0])).all()


def _weak_labels(n_rows, n_classes):
    """Rows that say a little about their labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    scores = np.stack([np.zeros(n_rows), *(X[:, k] for k in range(n_classes - 1))], axis=1)
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize(("n_rows", "n_classes"), [(300, 2), (300, 3), pytest.param(2000, 2, marks=pytest.mark.slow)])
def test_warm_starts_calibrate_anew(n_rows, n_classes):
    X, y = _weak_labels(n_rows, n_classes)
    weights = np.where(y == 0, 19.0, 1.0)
    model = TensorTrainClassifier(warm_start=True, random_state=0).fit(X, y).fit(X, y, weights)
    fresh = TensorTrainClassifier(random_state=0).fit(X, y, weights)
    shares = [np.average(one.predict_proba(X), axis=0, weights=weights) for one in (model, fresh)]
    np.testing.assert_allclose(shares[0], np.bincount(y, weights) / weights.sum(), atol=0.015)
    np.testing.assert_allclose(*shares, atol=0.01)
    balanced = model.set_params(class_weight="balanced").fit(X, y).predict_proba(X)
    even = np.average(balanced, axis=0, weights=1 / np.bincount(y)[y])
    np.testing.assert_allclose(even, 1 / n_classes, atol=0.02)


@pytest.mark.parametrize("max_sweeps", ["auto", 0])
def test_a_warm_start_with_the_same_rows_keeps_probabilities(wine, max_sweeps):
    X, y = wine
    model = TensorTrainClassifier(warm_start=True, random_state=0).fit(X[::2], y[::2])
    before, alpha = log_loss(y[1::2], model.predict_proba(X[1::2])), model.choice_.alpha
    model.set_params(max_sweeps=max_sweeps).fit(X[::2], y[::2])
    assert model.choice_.alpha == alpha
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < 1.1 * before


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_alpha_suits_the_rows_of_a_warm_start():
    X, y = _weak_labels(400, 2)
    clean = (X[:, 0] > 0).astype(int)
    model = TensorTrainClassifier(warm_start=True, random_state=0, basis="spline", bandwidth=1.0)
    alphas = [model.fit(X, labels).choice_.alpha for labels in (clean, y)]
    assert alphas[0] < alphas[1] / 3
    assert model.set_params(alpha=0.5).fit(X, y).choice_.alpha == 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repetitions_for_warm_starts(n_classes):
    X, y = _weak_labels(200, n_classes)
    counts = np.random.default_rng(1).integers(0, 4, 200)
    repeated = np.repeat(np.arange(200), counts)
    model = TensorTrainClassifier(warm_start=True, random_state=0).fit(X, y)
    weighted, other = deepcopy(model).fit(X, y, counts), model.fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_without_warm_start_fits_do_not_depend_on_each_other(iris):
    X, y = iris
    model = power_classifier(**QUICK)
    first = model.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(model.fit(X, y).decision_function(X), first)


def test_warm_start_refuses_other_trains(iris):
    X, y = iris
    model = power_classifier(warm_start=True, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match=r"the last fit had classes \[0, 1, 2\].*this one has \[1, 2\]"):
        clone_of_fit(model).fit(X[50:], y[50:])
    with pytest.raises(
        ValueError,
        match=r"the last fit has 3 functions of the basis 'power' for feature 0, and this one asks for basis='power' "
        r"and degree=1\. Keep these parameters",
    ):
        clone_of_fit(model).set_params(degree=1).fit(X, y)
    with pytest.raises(ValueError, match=r"the last fit has 4 features and this one 3\. Keep them, or set warm_start"):
        clone_of_fit(model).fit(X[:, :3], y)


def test_warm_start_keeps_the_maps_that_its_cores_were_learned_in(iris):
    X, y = iris
    model = power_classifier(warm_start=True, **QUICK).fit(X, y)
    before, maps = model.decision_function(X), model.maps_
    inner = np.abs(X - X.mean(axis=0)).max(axis=1) < 2  # rows of a smaller range
    model.set_params(max_sweeps=0).fit(X[inner], y[inner])
    assert model.maps_ == maps
    np.testing.assert_allclose(model.decision_function(X), before, atol=1e-9)
    with pytest.raises(ValueError, match=r"the basis 'power'.*basis='power-unscaled' and degree=2\. Keep"):
        model.set_params(basis="power-unscaled").fit(X, y)
    fresh = clone(model).set_params(basis="power").fit(X[inner], y[inner])  # a clone has nothing to start from
    assert fresh.maps_ != maps


def test_columns_may_have_different_bases(iris):
    X, y = iris
    bases = ["power", "legendre", "chebyshev", "power"]
    model = power_classifier(basis=bases, degree=[1, 3, 2, 2], rank=3, random_state=0).fit(X, y)
    assert [(m.basis, m.n) for m in model.maps_] == list(zip(bases, [2, 4, 3, 3], strict=True))
    columns = model.maps_.place(X)
    for scores, train in zip(model.decision_function(X).T, model.trains_, strict=True):
        chain = np.ones((len(X), 1))
        for feature_map, column, core in zip(model.maps_, columns, train.cores, strict=True):
            chain = np.einsum("na,in,aib->nb", chain, feature_map.values(column), core)
        np.testing.assert_allclose(scores, chain[:, 0], atol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def test_warm_start_refuses_other_classes_of_the_same_number(iris):
    X, y = iris
    model = power_classifier(warm_start=True, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X, np.array(["a", "b", "c"])[y])


def clone_of_fit(model):
    """A copy with the fitted state."""
    return pickle.loads(pickle.dumps(model))


# ---------------------------------------------------------------------------------------------------- randomness


@DECISIONS
def test_two_jobs_give_the_scores_of_one(wine, decision):
    X, y = wine
    one = power_classifier(decision=decision, n_jobs=1, **QUICK).fit(X, y)
    two = power_classifier(decision=decision, n_jobs=2, **QUICK).fit(X, y)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), rtol=0, atol=1e-10)
    assert [record["train"] for record in two.history_] == [record["train"] for record in one.history_]
    assert two.n_iter_ == one.n_iter_


@pytest.mark.parametrize("init", ["linear", "random"])
@LOSSES
def test_same_random_state_same_cores_bit_for_bit(wine, loss, init):
    X, y = wine
    options = {"loss": loss, "init": init, "rank": 5, "max_sweeps": 2}
    first, second, third = (
        power_classifier(**options, random_state=state).fit(X, y)
        for state in (3, np.random.RandomState(3), np.random.RandomState(4))
    )
    for train, same, other in zip(first.trains_, second.trains_, third.trains_, strict=True):
        for core, equal in zip(train.cores, same.cores, strict=True):
            np.testing.assert_array_equal(core, equal)
        assert any(not np.array_equal(a, b) for a, b in zip(train.cores, other.cores, strict=True))


def test_trains_of_one_fit_get_different_seeds(iris):
    X, y = iris
    model = power_classifier(init="random", max_sweeps=0, random_state=0).fit(X, y)
    assert not np.allclose(model.trains_[0].cores[1], model.trains_[1].cores[1])


@pytest.mark.parametrize("model", [power_classifier(degree=(1, 2, 1, 2), **QUICK), TensorTrainClassifier()])
def test_clone_pickle_and_joblib(iris, tmp_path, model):
    X, y = iris
    assert clone(model).get_params() == model.get_params()
    model.fit(X, y)
    assert not hasattr(clone(model), "trains_")
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        assert copy.get_params() == model.get_params()
        assert copy.history_ == model.history_
        assert copy.choice_.table() == model.choice_.table()


def test_fit_leaves_parameters_and_data_alone(iris):
    X, y = iris
    copy = X.copy()
    model = power_classifier(degree=[1, 2, 1, 2], rank=[9, 9, 9], class_weight={0: 2.0}, max_sweeps=1)
    before = dict(model.get_params())
    model.fit(X, y)
    assert model.get_params() == before
    assert all(model.get_params()[name] is value for name, value in before.items())
    np.testing.assert_array_equal(X, copy)


# ---------------------------------------------------------------------------------------------------- scikit-learn


def test_pandas_and_feature_names(iris):
    pandas = pytest.importorskip("pandas")
    X, y = iris
    frame = pandas.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    labels = pandas.Series(np.array(["a", "b", "c"])[y])
    model = power_classifier(**QUICK).fit(frame, labels)
    assert list(model.feature_names_in_) == ["sl", "sw", "pl", "pw"]
    assert model.n_features_in_ == 4
    plain = power_classifier(**QUICK).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(frame), plain.decision_function(X))
    assert not hasattr(plain, "feature_names_in_")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"sl": "wrong"}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["sw", "sl", "pl", "pw"]])


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"), reason="pipelines route no metadata to scores before 1.8"
)
def test_metadata_routing_through_a_pipeline_and_a_grid_search(iris):
    X, y = iris
    weights = np.where(y == 1, 10.0, 0.1)
    with sklearn.config_context(enable_metadata_routing=True):
        model = power_classifier(**QUICK).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        search = GridSearchCV(Pipeline([("scaler", scaler), ("model", model)]), {"model__degree": [1, 2]}, cv=2)
        search.fit(X, y, sample_weight=weights)
        best = search.best_params_["model__degree"]
        routed = search.decision_function(X)
    Z = StandardScaler().fit_transform(X)
    direct = power_classifier(**QUICK, degree=best).fit(Z, y, weights).decision_function(Z)
    np.testing.assert_allclose(routed, direct, atol=1e-10)
    unweighted = power_classifier(**QUICK, degree=best).fit(Z, y).decision_function(Z)
    assert np.abs(routed - unweighted).max() > 0.1


# ---------------------------------------------------------------------------------------------------- records


@LOSSES
def test_the_rows_of_one_train_are_shared_without_changing_it(loss):
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    alone, shared = (
        power_classifier(loss=loss, rank=3, max_sweeps=2, random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(alone.decision_function(X), shared.decision_function(X))


@LOSSES
def test_history_has_a_record_per_train_and_sweep(wine, loss):
    X, y = wine
    model = power_classifier(loss=loss, rank=4, max_sweeps=4, tol=0.0, random_state=0).fit(X, y)
    assert [(record["train"], record["sweep"]) for record in model.history_] == [
        (train, sweep) for train in range(3) for sweep in range(1, 5)
    ]
    assert all(
        set(record) == {"train", "sweep", "n_rows", "loss", "objective", "decrease", "ranks", "seconds"}
        for record in model.history_
    )
    for train in range(3):
        records = [record for record in model.history_ if record["train"] == train]
        objectives = [record["objective"] for record in records]
        assert all(after <= before * (1 + 1e-10) for before, after in pairwise(objectives))
        assert all(0 <= record["loss"] <= record["objective"] for record in records)
        assert all(record["seconds"] > 0 for record in records)
        assert all(record["ranks"] == model.trains_[train].ranks for record in records)
    assert model.n_iter_ == 4
    assert model.stop_reason_ == "max_sweeps"


def test_loss_of_the_last_record_is_that_of_the_model(iris):
    X, y = _binary(iris)
    model = power_classifier(**QUICK).fit(X, y)
    log_loss = np.mean(np.logaddexp(0, -(2 * y - 1) * model.decision_function(X)))
    assert model.history_[-1]["loss"] == pytest.approx(log_loss, rel=1e-9)
    penalty = model.alpha / 2 * model.trains_[0].norm() ** 2
    assert model.history_[-1]["objective"] == pytest.approx(log_loss + penalty, rel=1e-9)


def test_stop_reasons(iris):
    X, y = iris
    loose = power_classifier(tol=0.5, max_sweeps=50, rank=2).fit(X, y)
    assert loose.stop_reason_ == "tolerance"
    assert loose.n_iter_ < 50
    assert power_classifier(tol=0.0, max_sweeps=1, rank=2).fit(X, y).stop_reason_ == "max_sweeps"
    none = power_classifier(max_sweeps=0).fit(X, y)
    assert (none.n_iter_, none.history_, none.stop_reason_) == (0, [], "max_sweeps")


def test_n_iter_counts_the_longest_train_and_one_unfinished_train_decides_the_reason(iris):
    X, y = iris
    outcomes = {}
    for max_sweeps in (2, 8):
        model = power_classifier(tol=0.02, max_sweeps=max_sweeps, rank=3, random_state=0).fit(X, y)
        last = {record["train"]: record for record in model.history_}
        changes = [record["decrease"] / (record["objective"] + record["decrease"]) for record in last.values()]
        outcomes[max_sweeps] = model.stop_reason_, [change <= 0.02 for change in changes]
        assert model.n_iter_ == max(record["sweep"] for record in last.values())
    assert outcomes == {2: ("max_sweeps", [True, False, True]), 8: ("tolerance", [True, True, True])}


def test_verbose_shows_a_bar(iris, capsys):
    pytest.importorskip("tqdm")
    X, y = iris
    power_classifier(verbose=1, **QUICK).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "training: 100%" in captured.err
    assert "9/9" in captured.err


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_verbose_without_tqdm_logs_a_line_per_sweep(iris, monkeypatch, caplog, capsys, n_jobs):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    X, y = iris
    model = power_classifier(verbose=1, n_jobs=n_jobs, **QUICK).fit(X, y)
    lines = [record for record in caplog.records if record.name == "polytrain"]
    assert len(lines) == len(model.history_)
    assert lines[-1].getMessage().startswith(f"train 3 of 3, sweep {model.history_[-1]['sweep']}: objective")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose_says_what_was_chosen(iris, caplog, capsys, verbose):
    X, y = iris
    model = TensorTrainClassifier(verbose=verbose, random_state=0).fit(X, y)
    lines = [record.getMessage() for record in caplog.records if record.name == "polytrain"]
    assert f"chosen: {model.choice_.settings}" in lines
    assert lines[-1] == str(model.summary())
    assert (f"tried:\n{model.choice_.table()}" in lines) == (verbose == 2)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("make", [power_classifier, TensorTrainClassifier])
def test_silent_by_default(iris, capsys, caplog, make):
    X, y = iris
    make(random_state=0).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert caplog.records == []
