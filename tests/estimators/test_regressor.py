"""The regressor: intercept, metamorphic relations, attributes."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_regression

from polytrain import TensorTrain, TensorTrainRegressor
from polytrain.learning import core_solvers
from power_models import power_regressor

QUICK = {"rank": 3, "max_sweeps": 3, "random_state": 0}


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:200, :5], y[:200]


def _predicted(X, y, weights=None, at=None, **options):
    model = power_regressor(**{**QUICK, "tol": 0.0, **options}).fit(X, y, weights)
    return model.predict(X if at is None else at)


@pytest.mark.parametrize("alpha", [0.0, 1e-12])
def test_few_rows_hardly_regularised_are_learned_in_the_space_of_the_rows(alpha, monkeypatch):
    """The largest core has 6144 unknowns: an eigendecomposition of its Hessian would take minutes and gigabytes."""
    X = make_regression(n_samples=50, n_features=10, n_informative=1, bias=5.0, noise=20, random_state=42)[0]
    y = np.random.RandomState(42).randint(0, 3, 50)
    sizes = []
    monkeypatch.setattr(core_solvers, "eigh", lambda matrix, **options: (sizes.append(len(matrix)), eigh(matrix))[1])
    model = TensorTrainRegressor(alpha=alpha, random_state=0).fit(X, y)
    assert max(sizes) == 50
    assert model.score(X, y) > 0.999


@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
def test_recovers_a_polynomial(basis):
    X = np.random.default_rng(0).uniform(-3, 5, (300, 4))
    y = 2 + X[:, 0] * X[:, 1] ** 2 - X[:, 2] * X[:, 3] + 5 * X[:, 3]
    model = power_regressor(basis=basis, rank=5, alpha=1e-10, tol=1e-12, max_sweeps=40, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3 * np.abs(y).max())


def test_intercept_is_the_weighted_mean_and_is_not_regularised(diabetes):
    X, y = diabetes
    weights = np.random.default_rng(0).uniform(0, 1, len(X))
    model = power_regressor(alpha=1e9, **QUICK).fit(X, y, weights)
    assert model.intercept_ == pytest.approx(np.average(y, weights=weights), rel=1e-12)
    np.testing.assert_allclose(model.predict(X), model.intercept_, atol=1e-3)


def test_shifting_the_target_shifts_the_predictions(diabetes):
    X, y = diabetes
    np.testing.assert_allclose(_predicted(X, y + 1000), _predicted(X, y) + 1000, atol=1e-6)


def test_scaling_the_target_scales_the_predictions(diabetes):
    X, y = diabetes
    np.testing.assert_allclose(_predicted(X, 1e-3 * y), 1e-3 * _predicted(X, y), atol=1e-8)


@pytest.mark.parametrize("solver", ["exact", "cg", "auto"])
def test_permuted_and_repeated_rows(diabetes, solver):
    X, y = diabetes
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, len(X))
    order = rng.permutation(np.arange(len(X)).repeat(counts))
    repeated = _predicted(X[order], y[order], at=X, solver=solver)
    np.testing.assert_allclose(_predicted(X, y, counts, solver=solver), repeated, atol=1e-6)


def test_zero_weight_is_a_removed_row(diabetes):
    X, y = diabetes
    keep = np.random.default_rng(0).random(len(X)) < 0.7
    wild = np.where(keep, y, 1e6)
    np.testing.assert_allclose(_predicted(X, wild, keep * 1.0, at=X), _predicted(X[keep], y[keep], at=X), atol=1e-8)


def test_rescaling_and_shifting_features_changes_nothing(diabetes):
    X, y = diabetes
    moved = X * [1e-3, 50.0, 2.0, 1.0, 7.0] + [7.0, 0.0, -30.0, 10.0, 1.0]
    np.testing.assert_allclose(_predicted(moved, y), _predicted(X, y), atol=1e-5)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_prediction_far_outside_is_that_at_the_clipped_point(diabetes):
    X, y = diabetes
    model = power_regressor(**QUICK).fit(X, y)
    far = np.random.default_rng(0).normal(0, 1e8, (30, 5))
    clipped = np.clip(far, X.min(axis=0), X.max(axis=0))
    np.testing.assert_array_equal(model.predict(far), model.predict(clipped))
    assert np.isfinite(model.predict(far)).all()


def test_without_scaling_the_train_is_the_polynomial_in_the_raw_features():
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    model = power_regressor(basis="power-unscaled", **QUICK).fit(X, y)
    assert all(feature_map.range is None for feature_map in model.maps_)
    outside = 2 * X
    np.testing.assert_allclose(model.predict(outside), model.trains_[0].evaluate(outside) + model.intercept_)


def test_float32_is_close_to_float64(diabetes):
    X, y = diabetes
    single = _predicted(X.astype(np.float32), y)
    np.testing.assert_allclose(single, _predicted(X, y), atol=1e-3 * np.ptp(y))


def test_same_random_state_same_cores_and_pickle(diabetes):
    X, y = diabetes
    first, second = (power_regressor(rank=5, max_sweeps=2, random_state=1).fit(X, y) for _ in range(2))
    for core, same in zip(first.trains_[0].cores, second.trains_[0].cores, strict=True):
        np.testing.assert_array_equal(core, same)
        assert core.flags.c_contiguous
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(X), first.predict(X))
    assert clone(first).get_params() == first.get_params()


def test_init_given(diabetes):
    X, y = diabetes
    first = power_regressor(**QUICK).fit(X, y)
    for init in (first.trains_[0], first.trains_, list(first.trains_[0].cores)):
        again = power_regressor(init=init, rank=4, max_sweeps=0).fit(X, y)
        np.testing.assert_allclose(again.predict(X), first.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"init\[0\] has dimensions \(2, 2\)"):
        power_regressor(init=TensorTrain.zeros((2, 2))).fit(X, y)


def test_warm_start_continues_and_refuses_another_degree(diabetes):
    X, y = diabetes
    model = power_regressor(rank=4, max_sweeps=2, tol=0.0, warm_start=True, random_state=0).fit(X, y)
    end = model.history_[-1]["objective"]
    model.fit(X, y)
    assert model.history_[0]["objective"] <= end * (1 + 1e-10)
    with pytest.raises(ValueError, match="warm_start=True, but the last fit"):
        model.set_params(degree=1).fit(X, y)


def test_history_and_stop_reason(diabetes):
    X, y = diabetes
    model = power_regressor(rank=4, max_sweeps=5, tol=0.0, random_state=0).fit(X, y)
    assert [record["sweep"] for record in model.history_] == [1, 2, 3, 4, 5]
    objectives = [record["objective"] for record in model.history_]
    assert all(after <= before * (1 + 1e-10) for before, after in pairwise(objectives))
    assert model.history_[-1]["loss"] == pytest.approx(np.mean((model.predict(X) - y) ** 2), rel=1e-9)
    assert (model.n_iter_, model.stop_reason_) == (5, "max_sweeps")
    assert power_regressor(tol=0.5, rank=2).fit(X, y).stop_reason_ == "tolerance"


def test_constant_target_is_predicted_exactly(diabetes):
    X, _ = diabetes
    np.testing.assert_allclose(_predicted(X, np.full(len(X), 3.5)), 3.5, atol=1e-12)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_warm_start_keeps_levels_and_refuses_other_types():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"colour": rng.choice(["blue", "green", "red"], 200), "size": rng.uniform(size=200)})
    y = X["colour"].map({"blue": 0.0, "green": 5.0, "red": -5.0}).to_numpy() + X["size"].to_numpy()
    model = TensorTrainRegressor(warm_start=True, random_state=0).fit(X, y)
    columns, some = model.model_.columns, (X["colour"] != "blue").to_numpy()
    model.set_params(max_sweeps=0).fit(X[some], y[some])
    assert model.model_.columns == columns
    np.testing.assert_allclose(model.predict(X) - model.intercept_, y - y.mean(), atol=0.1)  # the trains are the same
    sizes = X[["size", "size"]].set_axis(["colour", "size"], axis=1)
    numbers = TensorTrainRegressor(warm_start=True, random_state=0).fit(sizes, y)
    with pytest.raises(ValueError, match=r"warm_start=True, but the columns of these rows have other types or levels"):
        numbers.fit(X, y)


def dated(n_rows=300):
    """A frame whose target depends on the date, which is text of a kind."""
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.permutation(700)[:n_rows], "D")
    X = pd.DataFrame({"when": when, "size": rng.normal(size=n_rows)})
    return X, 10 * np.sin((when - when[0]).days.to_numpy() / 100) + X["size"].to_numpy()


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%S+02:00"])
def test_dates_in_text_are_learned_as_dates(written):
    X, y = dated()
    texts = X.assign(when=X["when"].dt.strftime(written))
    settings = {"rank": 2, "alpha": 1e-3, "max_sweeps": 1, "random_state": 0}
    model = TensorTrainRegressor(**settings).fit(texts, y)
    expected = TensorTrainRegressor(**settings).fit(X, y)
    np.testing.assert_array_equal(model.predict(texts), expected.predict(X))
    np.testing.assert_array_equal(model.predict(X[:1]), expected.predict(X[:1]))
    assert np.sqrt(np.mean((model.predict(texts) - y) ** 2)) < 1
    with pytest.raises(ValueError, match="column 'when' held dates in training, but now holds 'soon'"):
        model.predict(texts[:1].assign(when="soon"))


def test_levels_that_are_not_told_apart_are_warned_of():
    X, y = dated(200)
    settings = {"rank": 1, "alpha": 1e-3, "max_sweeps": 0, "random_state": 0}
    towns = X.assign(when=[f"town {k % 70}" for k in range(200)])
    with pytest.warns(UserWarning, match="column 'when' has 70 levels, .*the 64 most frequent are distinguished"):
        TensorTrainRegressor(**settings).fit(towns, y)
    codes = np.column_stack([np.arange(200) % 70, X["size"]])
    with pytest.warns(UserWarning, match="column 0 has 70 levels, .*the 64 most frequent are distinguished"):
        TensorTrainRegressor(basis=["category", "auto"], **settings).fit(codes, y)
    TensorTrainRegressor(**settings).fit(towns.assign(when=[f"town {k % 64}" for k in range(200)]), y)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_identifiers_are_warned_of():
    X, y = dated(200)
    settings = {"rank": 1, "alpha": 1e-3, "max_sweeps": 0, "random_state": 0}
    some = np.random.default_rng(0).choice(200, 160, replace=False)
    for name, numbers in (("x", np.arange(200)), ("customer_id", 7000 - 30 * np.arange(200))):
        for frame in (X.assign(when=numbers), X.assign(when=numbers, size="town")):
            named = frame.rename(columns={"when": name})
            for rows in (slice(None), some):
                with pytest.warns(UserWarning, match=f"column '{name}' .* which looks like an identifier"):
                    TensorTrainRegressor(**settings).fit(named.iloc[rows], y[rows])
    TensorTrainRegressor(**settings).fit(pd.DataFrame({"x": np.arange(200)}), y)  # there is nothing else
    TensorTrainRegressor(**settings).fit(X.assign(when=np.arange(200).astype(float) ** 2), y)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_predictions_stay_near_the_training_targets(loss):
    """Beyond their range by at most a tenth of it; rows that would be far beyond are said."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 3))
    y = np.exp(X[:, 0] * X[:, 1])
    settings = {"loss": loss, "basis": "power-unscaled", "clip": True, **QUICK}
    model, free = (power_regressor(**{**settings, "clip": clip}).fit(X, y) for clip in (True, False))
    low, high = y.min() - np.ptp(y) / 10, y.max() + np.ptp(y) / 10
    np.testing.assert_array_equal(model.model_.limits, [[low], [high]])
    near, far = X, 10 * X
    np.testing.assert_array_equal(model.predict(near), np.clip(free.predict(near), low, high))
    with pytest.warns(UserWarning, match=r"\d+ predictions were far beyond the training targets"):
        held = model.predict(far)
    assert held.min() >= low
    assert held.max() <= high
    np.testing.assert_array_equal(held, np.clip(free.predict(far), low, high))
    assert np.ptp(free.predict(far)) > 2 * np.ptp(held)


def test_limits_of_each_output_and_of_later_blocks():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    y = np.stack([X[:, 0], 100 * X[:, 1]], axis=1)
    model = power_regressor(clip=True, **QUICK).fit(X, y)
    np.testing.assert_allclose(
        model.model_.limits, [y.min(axis=0) - 0.1 * np.ptp(y, axis=0), y.max(axis=0) + 0.1 * np.ptp(y, axis=0)]
    )
    stream = power_regressor(clip=True, **QUICK).partial_fit(X, X[:, 0]).partial_fit(X, 3 * X[:, 0])
    x = X[:, 0]
    np.testing.assert_allclose(
        stream.model_.limits[:, 0], [3 * (x.min() - 0.1 * np.ptp(x)), 3 * (x.max() + 0.1 * np.ptp(x))]
    )


def test_offsets_multiply_predictions_within_limits():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    model = power_regressor(loss="poisson", clip=True, **QUICK).fit(X, np.exp(X[:, 0]))
    offset = np.full(60, 3.0)
    np.testing.assert_allclose(model.predict(X, offset=offset), np.exp(3.0) * model.predict(X))
