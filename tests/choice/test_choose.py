"""What the defaults choose: the same wherever and however often rows are, and good on tables of many kinds."""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor, config_context
from polytrain.choice import Tried
from polytrain.sources import open_rows
from polytrain.tensor import TensorTrain

# Few rows are solved exactly, of many some are held out.
SIZES = pytest.mark.parametrize("n_rows", [250, 1800])
SLOW_SIZES = pytest.mark.parametrize("n_rows", [250, pytest.param(1800, marks=pytest.mark.slow)])
TASKS = pytest.mark.parametrize("task", ["numbers", "classes"])


def table(n_rows, task, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n_rows, 2)), rng.integers(0, 4, n_rows), rng.exponential(size=n_rows)])
    y = X[:, 0] * X[:, 1] + 0.5 * (X[:, 2] == 2) + 0.2 * rng.normal(size=n_rows)
    return (X, y) if task == "numbers" else (X, np.array(["ash", "birch", "cedar"])[np.digitize(y, [-0.4, 0.6])])


def model_of(task, **parameters):
    kind = TensorTrainRegressor if task == "numbers" else TensorTrainClassifier
    return kind(random_state=0, **parameters)


@cache
def default_model(n_rows, task):
    """The default model of a table, fitted once: tests compare others with it, and none changes it."""
    return model_of(task).fit(*table(n_rows, task))


def outputs(model, X):
    return model.predict(X) if hasattr(model, "intercept_") else model.predict_proba(X)


def assert_same(model, other, X, atol=1e-6, where=True, figures=True):
    """The same choice for the same reasons, and the same predictions."""
    assert (model.choice_.basis, model.choice_.rank) == (other.choice_.basis, other.choice_.rank)
    assert model.choice_.bandwidth == pytest.approx(other.choice_.bandwidth, nan_ok=True)
    assert model.choice_.alpha == pytest.approx(other.choice_.alpha, rel=1e-9)
    if model.left_out_ is None or other.left_out_ is None:
        assert model.left_out_ is other.left_out_
    else:
        assert not where or model.left_out_.where == other.left_out_.where
        assert not figures or model.left_out_.model == pytest.approx(other.left_out_.model, rel=1e-4)
    assert len(model.choice_.tried) == len(other.choice_.tried)
    for tried, again in zip(model.choice_.tried, other.choice_.tried, strict=True):
        assert (tried.step, tried.basis, tried.rank, tried.n_rows) == (
            again.step,
            again.basis,
            again.rank,
            again.n_rows,
        )
        numbers = ("bandwidth", "alpha", "error")
        expected = [getattr(tried, name) for name in numbers]
        assert [getattr(again, name) for name in numbers] == pytest.approx(expected, rel=1e-4, nan_ok=True)
    assert model.plan_.ranks == other.plan_.ranks
    np.testing.assert_allclose(outputs(model, X), outputs(other, X), atol=atol)


# ------------------------------------------------------------------------------------------------------ metamorphic


@SLOW_SIZES
@TASKS
def test_repeated_rows_are_weighted_rows(n_rows, task):
    X, y = table(n_rows, task)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, n_rows)
    counts[:3] = 1
    order = rng.permutation(np.repeat(np.arange(n_rows), counts))
    weighted = model_of(task).fit(X, y, counts)
    repeated = model_of(task).fit(X[order], y[order])
    removed = model_of(task).fit(X[counts > 0], y[counts > 0], 7.0 * counts[counts > 0])
    assert_same(repeated, weighted, X, where=False)  # it counts rows
    assert_same(removed, weighted, X)


@SLOW_SIZES
@TASKS
def test_the_order_of_rows_does_not_matter(n_rows, task):
    X, y = table(n_rows, task)
    order = np.random.default_rng(1).permutation(n_rows)
    assert_same(model_of(task).fit(X[order], y[order]), default_model(n_rows, task), X)


@SLOW_SIZES
@TASKS
def test_the_number_of_jobs_does_not_matter(n_rows, task):
    X, y = table(n_rows, task)
    alone, shared = (model_of(task, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert shared.choice_.reasons == alone.choice_.reasons
    assert_same(shared, alone, X, atol=1e-9)


@pytest.mark.slow
def test_the_number_of_jobs_does_not_limit_the_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 40))
    y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5:].sum(axis=1) * X[:, 0]
    given = {"basis": "smooth", "bandwidth": 1.0, "alpha": 1e-5, "max_sweeps": 0}
    alone, shared = (TensorTrainRegressor(random_state=0, n_jobs=n_jobs, **given).fit(X, y) for n_jobs in (1, 2))
    assert shared.plan_.ranks == alone.plan_.ranks


@SLOW_SIZES
@TASKS
def test_blocks_give_the_choice_of_arrays(n_rows, task, tmp_path):
    X, y = table(n_rows, task)
    weights = np.random.default_rng(1).uniform(0.2, 2, n_rows)

    class Blocks:
        def __iter__(self):
            for rows in np.split(np.arange(n_rows), [1, 100, 100, n_rows - 30]):
                yield X[rows], y[rows], weights[rows]

    expected = model_of(task).fit(X, y, weights)
    with config_context(max_memory="10 kB"):
        assert_same(model_of(task).fit(Blocks()), expected, X)
    for name, array in (("X", X), ("y", y), ("w", weights)):
        np.save(tmp_path / f"{name}0.npy", array[:120])
        np.save(tmp_path / f"{name}1.npy", array[120:])
    for path in tmp_path.glob("w*.npy"):  # files have no weights here
        path.unlink()
    assert_same(model_of(task).fit(open_rows(tmp_path)), default_model(n_rows, task), X)


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@SIZES
@TASKS
def test_dask_gives_the_choice_of_arrays(cluster, n_rows, task, monkeypatch):
    monkeypatch.setattr("polytrain.rows.opening.FEW_BYTES", 0)  # the rows stay on the workers
    da = pytest.importorskip("dask.array")
    X, y = table(n_rows, task)
    expected = default_model(n_rows, task)
    model = model_of(task).fit(da.from_array(X, chunks=(n_rows // 3, 4)), da.from_array(y, chunks=n_rows // 3))
    assert_same(model, expected, X)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**settings) as workers, distributed.Client(workers) as client:
        yield client


@SLOW_SIZES
def test_class_weights_are_sample_weights(n_rows):
    X, y = table(n_rows, "classes")
    factors = {"ash": 1.0, "birch": 0.5, "cedar": 3.0}
    given = model_of("classes", class_weight=factors).fit(X, y)
    by_hand = model_of("classes").fit(X, y, [factors[label] for label in y])
    assert_same(given, by_hand, X, figures=False)  # which class weights leave as they are
    balanced = model_of("classes", class_weight="balanced").fit(X, y)
    counts = {label: np.sum(y == label) for label in factors}
    by_hand = model_of("classes").fit(X, y, [1 / counts[label] for label in y])
    assert_same(balanced, by_hand, X, figures=False)


@pytest.mark.parametrize("decision", ["one-vs-one", "binary-code"])
def test_weights_and_repetition_are_the_same_for_all_decisions(decision):
    X, y = table(200, "classes")
    counts = np.random.default_rng(1).integers(1, 4, 200)
    weighted = model_of("classes", decision=decision).fit(X, y, counts)
    repeated = model_of("classes", decision=decision).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_same(repeated, weighted, X, where=False)


@TASKS
def test_other_units_are_the_same_table(task):
    X, y = table(250, task)
    moved = X * [1e-3, 50.0, 1.0, 1e6] + [7.0, 0.0, -30.0, 1.0]
    model, other = default_model(250, task), model_of(task).fit(moved, y)
    assert other.choice_.basis == model.choice_.basis
    np.testing.assert_allclose(outputs(other, moved), outputs(model, X), atol=1e-4)


@pytest.mark.parametrize("size", [1e-200, 1e-5, 1e9, 1e139])
def test_the_size_of_the_target_does_not_matter(size):
    X, y = table(200, "numbers")
    model, other = default_model(200, "numbers"), TensorTrainRegressor(random_state=0).fit(X, size * y)
    assert other.choice_.alpha == model.choice_.alpha
    np.testing.assert_allclose(other.predict(X) / size, model.predict(X), atol=1e-6)


# ------------------------------------------------------------------------------------------------------ what is open


def test_nothing_is_tried_where_all_is_given():
    X, y = table(200, "numbers")
    given = {"basis": "spline", "bandwidth": 1.0, "alpha": 1e-3, "rank": 3}
    chosen = TensorTrainRegressor(random_state=0, **given).fit(X, y).choice_
    assert (chosen.basis, chosen.bandwidth, chosen.alpha, chosen.rank) == (None, 1.0, 1e-3, 3)
    assert chosen.tried == chosen.reasons == ()


@SLOW_SIZES
@pytest.mark.parametrize(
    "given",
    [{"rank": 3}, {"alpha": 1e-3}, {"bandwidth": 0.7}, {"basis": "spline"}, {"basis": "power"}, {"max_sweeps": 1},
     {"init": "random"}, {"init": "linear"}, {"rank": [2, 3, 2]}],
    ids=str,
)  # fmt: skip
def test_what_is_given_is_kept(n_rows, given):
    X, y = table(n_rows, "numbers")
    model = TensorTrainRegressor(random_state=0, **given).fit(X, y)
    name, value = next(iter(given.items()))
    if name == "rank":
        assert model.plan_.ranks[1:-1] == ((value,) * 3 if isinstance(value, int) else tuple(value))
    elif name == "basis":
        assert {m.basis for m in model.maps_} == {value}
        assert model.choice_.basis is None
        assert {tried.basis for tried in model.choice_.tried} == {"given"}
    elif name == "bandwidth":
        assert {tried.bandwidth for tried in model.choice_.tried} == {0.7}
    elif name == "alpha":
        assert model.plan_.alpha == 1e-3
    elif name == "max_sweeps":
        assert model.plan_.max_sweeps <= 1
    elif value == "random":
        assert model.plan_.init == "random"
    assert model.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_trains_that_are_given_are_where_the_sweeps_start():
    X, y = table(1800, "numbers")
    first = TensorTrainRegressor(basis="smooth", bandwidth=1.0, random_state=0).fit(X, y)
    again = TensorTrainRegressor(
        basis="smooth", bandwidth=1.0, init=first.trains_[0], max_sweeps=0, random_state=0
    ).fit(X, y)
    assert again.plan_.init == "given"
    wrong = TensorTrain.zeros((2, 2, 2, 2))
    with pytest.raises(ValueError, match=r"init\[0\] has dimensions"):
        TensorTrainRegressor(basis="smooth", init=wrong, random_state=0).fit(X, y)
    for nonsense in (None, 3):
        with pytest.raises(ValueError, match="init must be one of"):
            TensorTrainRegressor(init=nonsense).fit(X, y)


@TASKS
def test_the_choice_can_be_read(task):
    chosen = default_model(250, task).choice_
    frame = chosen.to_frame()
    assert list(frame.columns) == list(Tried._fields)
    assert len(frame) == len(chosen.tried) == len(chosen.table().splitlines()) - 1
    assert set(frame["step"]) <= {"maps", "relevance", "columns", "bandwidth", "linear", "rank", "alpha"}
    assert (frame["error"] > 0).all()
    assert (frame["alpha"] > 0).all()
    assert any(chosen.basis in reason for reason in chosen.reasons)


@SIZES
@TASKS
def test_the_choice_survives_model_files(n_rows, task, tmp_path):
    X, _ = table(n_rows, task)
    model = default_model(n_rows, task)
    model.save(tmp_path / "model")
    again = polytrain.load(tmp_path / "model")
    chosen, expected = again.choice_, model.choice_
    for name in ("basis", "bandwidth", "alpha", "rank", "reasons", "relevances"):
        assert getattr(chosen, name) == getattr(expected, name)
    assert chosen.table() == expected.table()
    np.testing.assert_array_equal(chosen.to_frame(), expected.to_frame())
    assert all(isinstance(tried, Tried) for tried in chosen.tried)
    np.testing.assert_allclose(outputs(again, X), outputs(model, X), rtol=1e-5, atol=1e-5)


@SLOW_SIZES
@TASKS
def test_warm_starts_go_on_with_what_was_chosen(n_rows, task):
    X, y = table(n_rows, task)
    model = model_of(task, warm_start=True).fit(X, y)
    basis, ranks, alpha, maps = model.choice_.basis, model.plan_.ranks, model.plan_.alpha, model.maps_
    before = model.score(X, y)
    model.fit(X, y)
    assert (model.choice_.basis, model.plan_.ranks, model.plan_.alpha) == (basis, ranks, alpha)
    assert model.maps_ == maps
    assert model.score(X, y) > before - 0.02
    model.set_params(max_sweeps=0)
    expected = outputs(model, X)
    np.testing.assert_allclose(outputs(model.fit(X, y), X), expected, atol=1e-6)
    fresh = clone(model).set_params(max_sweeps="auto").fit(X[:150], y[:150])  # a clone has nothing to start from
    assert fresh.choice_.tried


# ------------------------------------------------------------------------------------------------------ how good


def test_products_of_columns_are_found():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2000, 4)), rng.normal(size=(2000, 4))
    model = TensorTrainRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3])
    assert model.score(Z, Z[:, 0] * Z[:, 1] + Z[:, 2] * Z[:, 3]) >= 0.995


@pytest.mark.slow
def test_one_wild_cell_costs_little():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(1000, 3)), rng.normal(size=(3000, 3))

    def target(rows):
        return rows[:, 0] * rows[:, 1] + np.sin(2 * rows[:, 2])

    y = target(X) + 0.1 * rng.normal(size=1000)
    clean = TensorTrainRegressor(random_state=0).fit(X, y).score(Z, target(Z))
    X[17, 0] = 1e4
    assert clean > 0.95
    assert TensorTrainRegressor(random_state=0).fit(X, y).score(Z, target(Z)) >= clean - 0.02


@TASKS
@pytest.mark.parametrize("n_rows", [200, pytest.param(1600, marks=pytest.mark.slow)])
def test_columns_of_many_kinds(n_rows, task):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            np.full(n_rows, 3.0),
            rng.integers(0, 2, n_rows),
            rng.integers(0, 5, n_rows),
            1e300 * rng.normal(size=n_rows),
            rng.lognormal(0, 3, n_rows),
            1e-300 * rng.normal(size=n_rows),
            np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows)),
            np.where(rng.random(n_rows) < 0.95, 0.0, rng.normal(size=n_rows)),
        ]
    )
    y = np.where(X[:, 1] > 0, X[:, 2], -X[:, 2]) + np.log(X[:, 4]) + (X[:, 3] > 0) - np.isnan(X[:, 6])
    y = y + 0.1 * rng.normal(size=n_rows)
    y = y if task == "numbers" else y > np.median(y)
    half = n_rows // 2
    model = model_of(task).fit(X[:half], y[:half])
    assert np.isfinite(outputs(model, X)).all()
    assert model.score(X[half:], y[half:]) > 0.8


@pytest.mark.parametrize("n_rows", [60, *(pytest.param(n_rows, marks=pytest.mark.slow) for n_rows in (300, 1500))])
def test_linear_targets_are_learned_as_well_as_by_ridge_regression(n_rows):
    """Between the values that were seen: beyond them all columns stay where they are."""
    ratios = []
    for seed, noise in enumerate([0.1, 0.1, 1.0, 1.0, 3.0, 3.0] if n_rows < 1000 else [0.1, 1.0, 3.0]):
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=5)
        X, Z = rng.uniform(-1, 1, (n_rows, 5)), rng.uniform(-1, 1, (5000, 5))
        Z = Z[((X.min(axis=0) <= Z) & (X.max(axis=0) >= Z)).all(axis=1)]
        y, fresh = (rows @ weights + noise * rng.normal(size=len(rows)) for rows in (X, Z))
        models = TensorTrainRegressor(random_state=0), RidgeCV(np.logspace(-4, 4, 30))
        error, linear = (np.mean((model.fit(X, y).predict(Z) - fresh) ** 2) for model in models)
        ratios.append(error / linear)
    assert np.mean(ratios) <= 1.02
    assert max(ratios) <= 1.1


@TASKS
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")  # that the model guesses
def test_noise_is_not_learned_by_heart(task):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(400, 6)), rng.normal(size=(2000, 6))
    y, fresh = rng.normal(size=400), rng.normal(size=2000)
    if task == "numbers":
        assert np.mean((model_of(task).fit(X, y).predict(Z) - fresh) ** 2) < 1.1 * np.var(fresh)
    else:
        found = model_of(task).fit(X, y > 0).predict_proba(Z)[:, 1]
        assert np.abs(found - 0.5).mean() < 0.1


@TASKS
@pytest.mark.slow
def test_few_rows_of_very_many_columns(task):
    X = np.random.default_rng(0).normal(size=(20, 2000))
    y = X[:, 0] if task == "numbers" else X[:, 0] > 0
    model = model_of(task).fit(X, y)
    assert np.isfinite(outputs(model, X)).all()
    assert len(model.maps_) == 2000


@pytest.mark.parametrize("decision", ["one-vs-rest", "one-vs-one", "binary-code"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("n_rows", [100, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_class_with_one_row_does_not_stop_a_fit(n_rows, class_weight, decision):
    X, y = table(n_rows, "classes")
    y = y.astype(object)
    y[:2] = "dogwood", "elm"
    model = model_of("classes", decision=decision, class_weight=class_weight).fit(X, y)
    found = model.predict_proba(X)
    assert found.shape == (n_rows, 5)
    assert np.isfinite(found).all()
    if class_weight is None:
        assert model.score(X, y) > 0.7


@pytest.mark.parametrize("loss", ["auto", "logistic", "squared"])
@pytest.mark.parametrize("decision", ["one-vs-rest", "one-vs-one"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_hardly_any_different_rows(loss, decision, seed):
    rng = np.random.default_rng(seed)
    for n_values in (1, 2, 4):
        X = rng.integers(0, n_values, (9, 1)).astype(float)
        model = TensorTrainClassifier(loss=loss, decision=decision, random_state=0).fit(X, np.arange(9) % 3)
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_regressions_on_hardly_any_rows(n_rows):
    X, y = np.arange(2.0 * n_rows).reshape(n_rows, 2), np.arange(float(n_rows))
    model = TensorTrainRegressor(random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    if n_rows == 1:
        assert model.predict(X) == pytest.approx(y)


def test_several_outputs_share_one_choice():
    X, y = table(300, "numbers")
    both = np.stack([y, 1e5 - 1e3 * X[:, 0], np.full(300, 4.0)], axis=1)
    model = TensorTrainRegressor(random_state=0).fit(X, both)
    found = model.predict(X)
    np.testing.assert_allclose(found[:, 2], 4.0, atol=1e-9)
    residuals = (found - both)[:, :2]
    assert (residuals.var(axis=0) < 0.2 * both[:, :2].var(axis=0)).all()


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_the_edge_of_what_is_tried_is_named():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    model = TensorTrainRegressor(basis="smooth", random_state=0).fit(X, X[:, 0])  # no noise at all
    assert any("alpha is the smallest that is tried" in reason for reason in model.choice_.reasons)
    noisy = TensorTrainRegressor(random_state=0).fit(X, np.random.default_rng(1).normal(size=60))
    assert not any("alpha is the smallest" in reason for reason in noisy.choice_.reasons)


@pytest.mark.parametrize(("sweeps", "least"), [(0, 1e-10), (1, 1e-9)])
def test_sweeps_of_few_rows_have_an_alpha_that_the_space_of_the_rows_can_take(sweeps, least):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    settings = {"basis": "power", "degree": 1, "rank": 2, "max_sweeps": sweeps, "random_state": 0}
    model = TensorTrainRegressor(**settings).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    assert model.choice_.alpha == model.plan_.alpha == pytest.approx(least)
    assert min(tried.alpha for tried in model.choice_.tried) == pytest.approx(1e-10)
    given = TensorTrainRegressor(**settings, alpha=1e-11).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    assert given.plan_.alpha == 1e-11


# ---------------------------------------------------------------------------------------------------- far more columns


def wide_table(n_classes=0):
    rng = np.random.default_rng(0)
    hidden = rng.uniform(-1.7, 1.7, size=(90, 3))
    X, score = hidden @ rng.normal(size=(3, 1200)) + rng.normal(size=(90, 1200)), 3.0 * hidden[:, 0]
    return X, (np.digitize(score, [-2.0, 2.0][: n_classes - 1]) if n_classes else score)


def test_far_more_columns_than_rows_are_straight_lines():
    X, y = wide_table()
    model = TensorTrainRegressor(clip=False, random_state=0).fit(X, y)
    assert model.choice_.reasons[0] == "1200 columns and 90 rows: straight lines without interactions"
    low, high = X.min(axis=0), X.max(axis=0)
    inside = low + (high - low) * np.random.default_rng(1).uniform(size=(3, 1200))
    middle = model.predict([(inside[0] + inside[1]) / 2])
    np.testing.assert_allclose(middle, model.predict(inside[:2]).mean(), rtol=1e-9)
    # As good as ridge regression with its strength chosen in the same way.
    learned, left_out = slice(75), slice(75, None)  # values beyond those of the learned rows are clipped
    models = TensorTrainRegressor(random_state=0), RidgeCV(np.logspace(-2, 6, 17))
    errors = [np.mean((one.fit(X[learned], y[learned]).predict(X[left_out]) - y[left_out]) ** 2) for one in models]
    assert errors[0] < max(2.0 * errors[1], 0.01 * y.var())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_far_more_columns_than_rows_with_classes_and_gaps(n_classes):
    X, y = wide_table(n_classes)
    X[np.random.default_rng(1).random(X.shape) < 0.01] = np.nan
    model = TensorTrainClassifier(random_state=0).fit(X, y)
    assert "straight lines" in model.choice_.reasons[0]
    chances = model.predict_proba(X)
    assert np.mean(chances.argmax(axis=1) == y) > 0.9
    np.testing.assert_allclose(chances.mean(axis=0), np.bincount(y) / len(y), atol=0.1)


def test_straight_lines_are_for_settings_that_are_left_open():
    X, y = wide_table()
    model = TensorTrainRegressor(basis="smooth", bandwidth=0.05, alpha=1e-3, random_state=0).fit(X, y)
    assert not any("straight" in reason for reason in model.choice_.reasons)
