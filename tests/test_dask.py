"""Fits on a real cluster of worker processes on this machine, and what can be refused without one."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.progress import SweepProgress
from polytrain.rows import opening
from power_models import power_classifier, power_regressor

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

# Dask's own code on this Python.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 4, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def _rows_stay(request, monkeypatch):
    """All tests but those of rows that are brought here are about those that are not, however few they are."""
    if "brought_here" not in request.node.name:
        monkeypatch.setattr("polytrain.rows.opening.FEW_BYTES", 0)


def _rows(n_rows=1500, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n_rows), np.linspace(-1, 1, n_classes - 1))
    return X, np.array(["ash", "birch", "cedar"])[y]


def _chunked(array, chunks):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


@pytest.mark.cluster
@pytest.mark.parametrize("chunks", [1500, 400, (1, 700, 799)])
@pytest.mark.parametrize("solver", ["exact", "cg"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_scores_equal_those_in_memory_for_any_chunks(client, loss, solver, chunks):
    X, y = _rows()
    settings = {"loss": loss, "solver": solver, "rank": 3, "max_sweeps": 2, "random_state": 0}
    expected = power_classifier(**settings).fit(X, y)
    model = power_classifier(**settings).fit(_chunked(X, chunks), _chunked(y, chunks))
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)
    assert [record["n_rows"] for record in model.history_] == [1500] * 2


@pytest.mark.cluster
def test_an_empty_partition_is_predicted_lazily(client):
    X, y = _rows()
    model = power_classifier(rank=2, max_sweeps=1, random_state=0).fit(X, y)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    few = frame[frame[0] > X[:500, 0].max()]
    predicted = model.predict_proba(few).compute()
    np.testing.assert_array_equal(predicted, model.predict_proba(X[X[:, 0] > X[:500, 0].max()]))
    assert model.predict(frame[frame[0] > 99]).compute().shape == (0,)
    numbered = power_classifier(rank=2, max_sweeps=1, random_state=0)
    numbered.fit(frame, dd.from_pandas(pd.Series(y), npartitions=3))
    assert not hasattr(numbered, "feature_names_in_")  # names that are no text are not remembered


@pytest.mark.cluster
def test_few_rows_are_brought_here_and_give_the_bits_of_arrays(client, monkeypatch):
    monkeypatch.setattr("polytrain.rows.opening._open_partitions", None)  # nobody asks for it
    X, y = _rows(300, n_classes=3)
    weights = np.random.default_rng(1).uniform(0, 1, 300) * (np.arange(300) % 7 > 0)
    targets = np.stack([X[:, 0] * X[:, 1], 1e5 + X[:, 2]], axis=1)
    chunks = (100, 0, 150, 50)
    for make, wanted in ((TensorTrainClassifier, y), (TensorTrainRegressor, targets)):
        expected = make(random_state=0).fit(X, wanted, weights)
        model = make(random_state=0).fit(*(_chunked(array, chunks) for array in (X, wanted, weights)))
        for one, other in zip(expected.model_.cores, model.model_.cores, strict=True):
            for core, same in zip(one, other, strict=True):
                np.testing.assert_array_equal(core, same)


@pytest.mark.cluster
def test_few_rows_of_frames_are_brought_here_with_the_categories_of_all_partitions(client, monkeypatch):
    monkeypatch.setattr("polytrain.rows.opening._open_partitions", None)
    frame, y = _mixed_frame(200)
    frame["kind"] = frame["kind"].astype("category")
    pieces = [frame[:0], frame[:80], frame[80:]]
    for k, piece in enumerate(pieces):  # a file knows the categories that are in it
        pieces[k] = piece.assign(kind=piece["kind"].cat.remove_unused_categories())
    lazy = dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=frame[:0], verify_meta=False)
    numbers = dd.from_delayed(
        [dask.delayed(pd.Series(part)) for part in (y[:0], y[:80], y[80:])], meta=pd.Series(y[:0])
    )
    expected = TensorTrainRegressor(random_state=0).fit(frame, y)
    model = TensorTrainRegressor(random_state=0).fit(lazy, numbers)
    assert model.model_.columns == expected.model_.columns
    assert model.feature_names_in_.tolist() == ["size", "kind", "when"]
    np.testing.assert_array_equal(model.predict(frame), expected.predict(frame))


@pytest.mark.cluster
def test_partitions_that_do_not_match_are_refused_when_they_are_brought_here(client):
    X, y = _rows(300)
    frame = dd.from_delayed([dask.delayed(pd.DataFrame(X[:100])), dask.delayed(pd.DataFrame(X[100:]))])
    labels = dd.from_delayed([dask.delayed(pd.Series(y[:200])), dask.delayed(pd.Series(y[200:]))])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        power_classifier().fit(frame, labels)
    with pytest.raises(ValueError, match="0 sample"):
        power_classifier().fit(_chunked(X, 100)[:0], _chunked(y, 100)[:0])


@pytest.mark.cluster
def test_rows_stay_where_they_are_from_some_megabytes_on(client, monkeypatch):
    asked = []

    open_partitions = opening._open_partitions

    def opened(*arguments):
        asked.append(arguments)
        return open_partitions(*arguments)

    monkeypatch.setattr(opening, "_open_partitions", opened)
    X, y = _rows(300)
    model = power_classifier(rank=1, max_sweeps=0)
    for few, is_asked in ((300 * 4 * 8, True), (300 * (4 * 8 + y.itemsize), False)):
        monkeypatch.setattr("polytrain.rows.opening.FEW_BYTES", few)
        model.fit(_chunked(X, 100), _chunked(y, 100))
        assert bool(asked) == is_asked
        asked.clear()


@pytest.mark.cluster
def test_targets_that_cannot_be_squared_are_refused_wherever_they_are(client, monkeypatch):
    X, _ = _rows(300)
    for few in (0, 1 << 25):
        monkeypatch.setattr("polytrain.rows.opening.FEW_BYTES", few)
        with pytest.raises(ValueError, match=r"got .*e\+(199|200)\. .*divide the target"):
            power_regressor().fit(_chunked(X, 100), _chunked(1e200 * X[:, 0], 100))


@pytest.mark.cluster
def test_several_outputs(client):
    X, _ = _rows()
    y = np.stack([X[:, 0] * X[:, 1], 1e5 + X[:, 2]], axis=1)
    settings = {"rank": 2, "max_sweeps": 1, "random_state": 0}
    expected = power_regressor(**settings).fit(X, y)
    model = power_regressor(**settings).fit(_chunked(X, 600), _chunked(y, 600))
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9)
    lazy = model.predict(_chunked(X, 600))
    assert lazy.shape == (1500, 2)
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))


@pytest.mark.cluster
def test_several_classes_weights_and_a_regressor(client):
    X, y = _rows(n_classes=3)
    weights = np.random.default_rng(1).uniform(0, 1, 1500) * (np.arange(1500) % 7 > 0)
    settings = {"rank": 2, "max_sweeps": 1, "class_weight": "balanced", "decision": "one-vs-one", "random_state": 0}
    expected = power_classifier(**settings).fit(X, y, weights)
    model = power_classifier(**settings).fit(*(_chunked(array, 600) for array in (X, y, weights)))
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-8)

    target = 50 + X[:, 0] * X[:, 1]
    expected = power_regressor(rank=2, max_sweeps=1, random_state=0).fit(X, target)
    model = power_regressor(rank=2, max_sweeps=1, random_state=0).fit(_chunked(X, 600), _chunked(target, 600))
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


@pytest.mark.cluster
def test_data_frames_and_lazy_predictions(client):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = _rows(n_classes=3)
    frame = pd.DataFrame(X, columns=list("abcd"))
    lazy, labels = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    settings = {"rank": 2, "max_sweeps": 1, "random_state": 0}
    expected = power_classifier(**settings).fit(frame, y)
    model = power_classifier(**settings).fit(lazy, labels)
    assert model.feature_names_in_.tolist() == list("abcd")
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        predicted = getattr(model, name)(lazy)
        assert isinstance(predicted, da.Array)
        wanted = getattr(expected, name)(frame)
        assert predicted.dtype == predicted.compute().dtype
        if name == "predict":
            np.testing.assert_array_equal(predicted.compute(), wanted)
        else:
            np.testing.assert_allclose(predicted.compute(), wanted, atol=1e-8)


@pytest.mark.cluster
def test_number_of_tasks_does_not_grow_with_the_sweeps(client, monkeypatch):
    X, y = _rows()
    counts = []

    def count(self, train, record, cores):
        time.sleep(0.5)  # what was let go of is forgotten a little later
        counts.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    monkeypatch.setattr(SweepProgress, "sweep_done", count)
    model = power_classifier(rank=3, max_sweeps=10, tol=0.0, loss="squared", solver="cg", random_state=0)
    model.fit(_chunked(X, 400), _chunked(y, 400))
    assert len(counts) == 10
    assert counts[9] <= counts[2], counts


@pytest.mark.cluster
def test_a_killed_worker_changes_nothing(client, monkeypatch):
    X, y = _rows()
    settings = {"rank": 3, "max_sweeps": 6, "tol": 0.0, "loss": "logistic", "solver": "cg", "random_state": 0}
    expected = power_classifier(**settings).fit(X, y)
    victim = next(iter(client.run(os.getpid).values()))
    killed_after = []

    def kill(self, train, record, cores):
        if record["sweep"] == 2:  # in the middle of the third sweep
            timer = threading.Timer(0.3, lambda: (os.kill(victim, signal.SIGKILL), killed_after.append(time.time())))
            timer.start()

    monkeypatch.setattr(SweepProgress, "sweep_done", kill)
    model = power_classifier(**settings).fit(_chunked(X, 400), _chunked(y, 400))
    ended = time.time()
    assert killed_after
    assert killed_after[0] < ended
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)


@pytest.mark.cluster
@pytest.mark.parametrize(("solver", "rank"), [("exact", 6), ("cg", 9)])
def test_only_small_sums_travel(client, solver, rank):
    """Bytes that workers sent, from their own counters, against the arrays that had to travel."""
    n_chunks, n_features = 4, 6
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, n_features))
    y = np.sign(X[:, 0] * X[:, 1] + X[:, 2])

    def sent():
        return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    settings = {"solver": solver, "rank": rank, "loss": "squared", "degree": 2, "random_state": 0, "tol": 0.0}
    lazy = _chunked(X, 1000), _chunked(y, 1000)
    totals = []
    for max_sweeps in (1, 3):
        before = sent()
        model = power_classifier(max_sweeps=max_sweeps, **settings).fit(*lazy)
        totals.append(sent() - before)
    per_block = (totals[1] - totals[0]) / n_chunks  # two sweeps
    allowed = 0
    for k in range(n_features):
        a, b = model.trains_[0].ranks[k : k + 2]
        vector = 8 * a * 3 * b
        moments = 8 * 5 * (a * (a + 1) // 2) * (b * (b + 1) // 2)
        # An exact update sends moments and, with its refinement, two gradients; CG at most 12 products, a gradient and
        # its preconditioner. The two sweeps visit every core twice but for the ends.
        visits = 1 if k in (0, n_features - 1) else 2
        exact = solver == "exact" or 3 * a * b <= 64
        allowed += visits * (moments + 2 * vector if exact else 14 * vector)
    assert per_block <= 1.5 * allowed + 2000 * 2 * n_features  # and the headers of messages


@pytest.mark.cluster
def test_joblibs_dask_backend_runs_trains_and_grid_searches(client):
    X, y = _rows(300, n_classes=3)
    expected = power_classifier(rank=2, max_sweeps=1, random_state=0).fit(X, y)
    with joblib.parallel_config(backend="dask"):
        model = power_classifier(rank=2, max_sweeps=1, random_state=0, n_jobs=-1).fit(X, y)
        search = GridSearchCV(power_classifier(max_sweeps=1, random_state=0), {"rank": [1, 2]}, cv=2, n_jobs=-1).fit(
            X, y
        )
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    assert search.best_params_["rank"] in (1, 2)


def test_without_a_client_the_remedy_is_named(monkeypatch):
    def no_client():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr("distributed.get_client", no_client)
    X, y = _rows()
    with pytest.raises(ValueError, match=r"client = Client\(\)"):
        power_classifier().fit(_chunked(X, 500), _chunked(y, 500))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X.rechunk((500, 2)), y), r"2 column chunks; rechunk to one with X.rechunk\(\{1: -1\}\)"),
        (lambda X, y: (X[X[:, 0] > 0], y), r"chunk sizes of X are unknown; .*X.compute_chunk_sizes\(\)"),
        (lambda X, y: (X, y.rechunk(300)), r"match them with y.rechunk\(X.chunks\[0\]\)"),
        (lambda X, y: (X, y.compute()), r"y is ndarray; .*from_array\(y, chunks=X.chunks\[0\]\)"),
        (lambda X, y: (X, None), r"y is NoneType"),
    ],
)
def test_chunks_that_do_not_fit_are_refused_with_the_remedy(change, message):
    X, y = _rows()
    with pytest.raises(ValueError, match=message):
        power_classifier().fit(*change(_chunked(X, 500), _chunked(y, 500)))


def test_predictions_of_arrays_are_lazy_without_a_cluster():
    X, y = _rows()
    model = power_classifier(rank=2, max_sweeps=1, random_state=0).fit(X, y)
    lazy = model.predict(_chunked(X, 400))
    assert isinstance(lazy, da.Array)
    assert lazy.chunks == ((400, 400, 400, 300),)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), model.predict(X))
    unknown = model.decision_function(_chunked(X, 400)[_chunked(X, 400)[:, 0] > 0])
    expected = model.decision_function(X)[X[:, 0] > 0]
    np.testing.assert_allclose(unknown.compute(scheduler="synchronous"), expected, atol=1e-12)


def _mixed_frame(n_rows=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
            "kind": rng.choice(["ash", "birch", "cedar"], n_rows),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n_rows), unit="D"),
        }
    )
    wanted = frame["size"].fillna(2.0) + (frame["kind"] == "ash") + 0.01 * frame["when"].dt.dayofyear
    return frame, wanted.to_numpy() + 0.1 * rng.normal(size=n_rows)


@pytest.mark.cluster
def test_defaults_choose_the_same_on_frames_of_any_types_and_predict_lazily(client):
    frame, y = _mixed_frame()
    expected = TensorTrainRegressor(random_state=0).fit(frame, y)
    lazy, numbers = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    model = TensorTrainRegressor(random_state=0).fit(lazy, numbers)
    assert [tried[:6] for tried in model.choice_.tried] == [tried[:6] for tried in expected.choice_.tried]
    assert (model.choice_.basis, model.choice_.bandwidth) == (expected.choice_.basis, expected.choice_.bandwidth)
    assert model.plan_ == expected.plan_
    np.testing.assert_allclose(model.predict(lazy).compute(), expected.predict(frame), atol=1e-8)


@pytest.mark.cluster
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_groups_of_columns_that_may_interact(client, loss):
    X, y = _rows()
    settings = {"loss": loss, "rank": 2, "max_sweeps": 2, "interaction_cst": [[0, 1], [1, 2]], "random_state": 0}
    expected = power_classifier(**settings).fit(X, y)
    model = power_classifier(**settings).fit(_chunked(X, 400), _chunked(y, 400))
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-6)


@pytest.mark.cluster
@pytest.mark.parametrize("fraction", [None, 0.3])
def test_uncertainty_is_that_of_arrays(client, fraction):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=400)
    settings = {"basis": "smooth", "calibration_fraction": fraction, "random_state": 0}
    expected = TensorTrainRegressor(**settings).fit(X, y)
    model = TensorTrainRegressor(**settings).fit(_chunked(X, 150), _chunked(y, 150))
    np.testing.assert_allclose(model.predict_interval(X), expected.predict_interval(X), atol=1e-6)
    std = model.predict(_chunked(X, 150), return_std=True)[1].compute()
    np.testing.assert_allclose(std, expected.predict(X, return_std=True)[1], atol=1e-6)
    assert model.model_.uncertainty.guaranteed == (fraction is not None)


@pytest.mark.cluster
def test_classes_are_learned_together_where_the_rows_are(client):
    X, y = _rows(n_classes=3)
    settings = {"loss": "multinomial", "rank": 2, "max_sweeps": 2, "random_state": 0}
    expected = power_classifier(**settings).fit(X, y)
    model = power_classifier(**settings).fit(_chunked(X, 400), _chunked(y, 400))
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)


@pytest.mark.cluster
def test_validation_rows_say_when_to_stop_where_they_are(client):
    X, y = _rows()
    settings = {"rank": 3, "max_sweeps": 6, "alpha": 1e-6, "tol": 0.0, "early_stopping": True, "random_state": 0}
    expected = power_classifier(**settings).fit(X, y)
    model = power_classifier(**settings).fit(_chunked(X, 400), _chunked(y, 400))
    losses = [[record["validation_loss"] for record in fitted.history_] for fitted in (model, expected)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-4)


@pytest.mark.cluster
def test_counts_with_exposures(client):
    rng = np.random.default_rng(0)
    X, exposure = rng.uniform(-1, 1, (900, 3)), np.exp(rng.normal(size=900))
    y = rng.poisson(exposure * np.exp(X[:, 0] * X[:, 1]))
    expected = power_regressor(loss="poisson", rank=2, random_state=0).fit(X, y, offset=np.log(exposure))
    lazy = [_chunked(array, 300) for array in (X, y, np.log(exposure))]
    model = power_regressor(loss="poisson", rank=2, random_state=0).fit(lazy[0], lazy[1], offset=lazy[2])
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-6)
    predicted = model.predict(lazy[0], offset=lazy[2]).compute()
    np.testing.assert_allclose(predicted, expected.predict(X, offset=np.log(exposure)), rtol=1e-6)
