"""partial_fit: streams of blocks end near the batch, forget what they should, and refuse what makes no sense."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.metrics import log_loss
from sklearn.multioutput import MultiOutputRegressor

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.estimators._streaming import Stream, _resampled
from polytrain.learning.losses import get_loss
from polytrain.tensor import TensorTrain
from power_models import power_classifier, power_regressor

SETTINGS = {"rank": 4, "degree": 3, "alpha": 1e-4, "random_state": 0}


def _rows(n_rows, seed=0, noise=0.5):
    """Correlated columns, and a sum of products of them."""
    rng = np.random.default_rng(seed)
    X = np.tanh(rng.normal(size=(n_rows, 5)) @ (np.eye(5) + 0.5 * np.eye(5, k=1)))
    truth = 2 * X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) - X[:, 3] * X[:, 4]
    return X, truth + noise * rng.normal(size=n_rows)


def _objective(model, X, y):
    """What a batch minimises, on any rows."""
    fitted = model.model_
    loss, values = get_loss(fitted.loss), fitted.values(X)
    penalty = model.plan_.alpha / 2 * sum(TensorTrain(cores).norm() ** 2 for cores in fitted.cores)
    if fitted.classes is None and loss.degree:
        return penalty + loss.evaluate((y - fitted.shift[0]) / fitted.size[0], values[0])[0].mean()
    if fitted.classes is None:
        return penalty + loss.evaluate(y, values[0] + fitted.shift[0])[0].mean()
    index = np.searchsorted(fitted.classes, y)
    if model.plan_.joint:
        return penalty + np.mean(logsumexp(values, axis=0) - values[index, np.arange(len(index))])
    codes = fitted.decision.code(len(fitted.classes))[:, index]
    return penalty + sum(loss.evaluate(code, value)[0].mean() for code, value in zip(codes, values, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "poisson", "gamma"])
def test_a_hundred_blocks_end_near_the_batch(loss):
    X, y = _rows(10_000)
    if loss != "squared":
        y = np.random.default_rng(1).poisson(np.exp(y / 2)) + (loss == "gamma")
    batch = power_regressor(**SETTINGS, loss=loss, max_sweeps=8).fit(X, y)
    stream = power_regressor(**SETTINGS, loss=loss)
    for rows in np.split(np.arange(10_000), 100):
        stream.partial_fit(X[rows], y[rows])
    stream.plan_ = batch.plan_
    if loss == "squared":  # in the same units
        unit = stream.model_.size[0] / batch.model_.size[0]
        found = _objective(stream, X, y) * unit**2
    else:
        found = _objective(stream, X, y)
    assert found < 1.1 * _objective(batch, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "multinomial", "squared"])
def test_a_hundred_blocks_of_classes_end_near_the_batch(loss):
    X, y = _rows(10_000)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    batch = power_classifier(**{**SETTINGS, "loss": loss}, max_sweeps=8).fit(X, labels)
    stream = power_classifier(**{**SETTINGS, "loss": loss})
    for rows in np.split(np.arange(10_000), 100):
        stream.partial_fit(X[rows], labels[rows], classes=["low", "middle", "high"])
    stream.plan_ = batch.plan_
    assert _objective(stream, X, labels) < 1.1 * _objective(batch, X, labels)


def test_the_past_counts_more_than_a_bare_restart():
    X, y = _rows(4000)
    stream = power_regressor(**SETTINGS)
    restarted = power_regressor(**SETTINGS, warm_start=True, max_sweeps=2)
    for rows in np.split(np.arange(4000), 40):
        stream.partial_fit(X[rows], y[rows])
        restarted.fit(X[rows], y[rows])
    new = _rows(4000, 1)
    errors = [np.mean(np.square(model.predict(new[0]) - new[1])) for model in (stream, restarted)]
    assert errors[0] < 0.3
    assert errors[0] < 0.7 * errors[1]


def test_a_stream_whose_rule_changes_recovers():
    X, y = _rows(6000)
    y[3000:] *= -1
    scores = {}
    for forgetting in (0.0, 0.2):
        model = power_regressor(**SETTINGS)
        for rows in np.split(np.arange(6000), 60):
            model.partial_fit(X[rows], y[rows], forgetting=forgetting)
        scores[forgetting] = model.score(X[3000:], y[3000:])
    assert scores[0.2] > 0.8
    assert scores[0.0] < 0.5


def test_probabilities_follow_a_stream_whose_first_block_lacks_a_class():
    X, y = _rows(3000, noise=0.2)
    labels = np.digitize(y, [-1, 1])
    first = np.flatnonzero(labels < 2)[:200]
    order = np.concatenate([first, np.setdiff1d(np.arange(3000), first)])
    model = TensorTrainClassifier(random_state=0, rank=4)
    losses = []
    for rows in np.array_split(order, 15):
        model.partial_fit(X[rows], labels[rows], classes=[0, 1, 2])
        losses.append(log_loss(labels, model.predict_proba(X)))
    assert losses[-1] < 0.3 < 1 < losses[0]
    assert model.score(X, labels) > 0.88


def _weak_labels(n_rows, n_classes=2, seed=0):
    """Rows that say a little about their labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    scores = np.stack([np.zeros(n_rows), *(X[:, k] for k in range(n_classes - 1))], axis=1)
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def _stream_of(blocks, classes, forgetting=0.0, **parameters):
    model = TensorTrainClassifier(random_state=0, **parameters)
    for block in blocks:
        weights = block[2] if len(block) > 2 else None
        model.partial_fit(*block[:2], classes=classes, sample_weight=weights, forgetting=forgetting)
    return model


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("how", ["sample_weight", "class_weight"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_a_stream_follow_weights(n_classes, how):
    X, y = _weak_labels(800, n_classes)
    weights = np.where(y == 0, 9.0, 1.0)
    blocks = [
        (X[rows], y[rows], weights[rows] if how == "sample_weight" else None) for rows in np.split(np.arange(800), 4)
    ]
    settings = {} if how == "sample_weight" else {"class_weight": {0: 9.0}}
    chances = _stream_of(blocks, np.arange(n_classes), **settings).predict_proba(X)
    shares = np.bincount(y, weights) / weights.sum()
    np.testing.assert_allclose(np.average(chances, axis=0, weights=weights), shares, atol=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_blocks_of_one_class_each_end_near_the_batch(n_classes):
    X, y = _weak_labels(600, n_classes)
    blocks = [(X[y == label], y[y == label]) for label in range(n_classes)]
    model = _stream_of(blocks, np.arange(n_classes))
    Z, labels = _weak_labels(2000, n_classes, seed=1)
    batch = TensorTrainClassifier(random_state=0).fit(X, y)
    chances = model.predict_proba(Z)
    np.testing.assert_allclose(chances.mean(axis=0), np.bincount(y) / len(y), atol=0.05)
    assert log_loss(labels, chances) < 1.05 * log_loss(labels, batch.predict_proba(Z))
    assert model.score(Z, labels) > batch.score(Z, labels) - 0.03


def test_a_block_of_one_class_counts_as_its_rows_after_a_fit():
    X, y = _weak_labels(1000)
    model = TensorTrainClassifier(random_state=0).fit(X, y)
    Z, _ = _weak_labels(100, seed=1)
    for _ in range(2):
        model.partial_fit(Z, np.ones(100, dtype=int))
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx((y.sum() + 200) / 1200, abs=0.03)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_the_default_classifier_are_repetitions(n_classes):
    X, y = _weak_labels(450, n_classes)
    counts = np.random.default_rng(1).integers(0, 4, 450)
    parts = np.split(np.arange(450), 3)
    weighted = _stream_of([(X[rows], y[rows], counts[rows]) for rows in parts], np.arange(n_classes))
    repeated = [np.repeat(rows, counts[rows]) for rows in parts]
    other = _stream_of([(X[rows], y[rows]) for rows in repeated], np.arange(n_classes))
    np.testing.assert_allclose(weighted.predict_proba(X), other.predict_proba(X), atol=1e-4)


def test_pairs_of_classes_that_a_block_lacks_stay():
    X, y = _weak_labels(300, 3)
    model = power_classifier(**SETTINGS, decision="one-vs-one").fit(X, y)
    before = model.model_.values(X)
    after = model.partial_fit(X[y == 0], y[y == 0]).model_.values(X)
    changes = np.abs(after - before).max(axis=1)
    assert changes[2] == 0 < changes[:2].min()


def test_forgotten_rows_do_not_calibrate():
    X, y = _weak_labels(2000)
    often = np.random.default_rng(1).random(2000) < np.where(y == 1, 0.1, 1.0)
    rare, usual = np.flatnonzero(often)[:600], np.arange(1200, 1800)
    blocks = [(X[rows], y[rows]) for rows in [*np.split(rare, 3), *np.split(usual, 6)]]
    shares = [
        _stream_of(blocks, [0, 1], forgetting=forgetting).predict_proba(X)[:, 1].mean() for forgetting in (0, 0.7)
    ]
    assert shares[0] == pytest.approx(np.concatenate([y[rare], y[usual]]).mean(), abs=0.03)
    assert shares[1] == pytest.approx(y[usual].mean(), abs=0.03)


@pytest.mark.parametrize("decision", ["one-vs-one", "binary-code"])
def test_other_decisions_and_class_weights(decision):
    X, y = _rows(2000, noise=0.2)
    labels = np.digitize(y, [-1, 1])
    model = power_classifier(**SETTINGS, decision=decision, class_weight={0: 3.0})
    for rows in np.split(np.arange(2000), 10):
        model.partial_fit(X[rows], labels[rows], classes=[0, 1, 2])
    assert model.score(X, labels) > 0.8


def test_frames_with_categories_and_gaps():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"kind": rng.choice(["a", "b", "c"], 900), "x": rng.normal(size=900)})
    y = frame["x"] * (frame["kind"] == "a") + 0.1 * rng.normal(size=900)
    frame.loc[::7, "x"] = np.nan
    model = TensorTrainRegressor(random_state=0)
    for rows in np.split(np.arange(900), 3):
        model.partial_fit(frame.iloc[rows], y.iloc[rows])
    assert model.score(frame, y) > 0.6
    later = frame.iloc[:5].assign(kind="never seen")
    model.partial_fit(later, y.iloc[:5])


def test_weights_are_in_units_of_a_row():
    X, y = _rows(400)
    one, other = power_regressor(**SETTINGS), power_regressor(**SETTINGS)
    for rows in np.split(np.arange(400), 2):
        one.partial_fit(X[rows], y[rows], sample_weight=np.full(200, 2.0))
        other.partial_fit(np.repeat(X[rows], 2, axis=0), np.repeat(y[rows], 2))
    assert one.stream_.seen == other.stream_.seen == 800
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-4)


def test_streams_are_reproducible_and_can_be_pickled():
    X, y = _rows(600)
    models = [power_regressor(**SETTINGS) for _ in range(2)]
    for rows in np.split(np.arange(600), 3):
        models = [model.partial_fit(X[rows], y[rows]) for model in models]
        models[1] = pickle.loads(pickle.dumps(models[1]))
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_a_model_from_a_file_goes_on(tmp_path):
    X, y = _rows(3000)
    model = power_regressor(**SETTINGS).fit(X[:1500], y[:1500])
    model.save(tmp_path / "model")
    loaded = polytrain.load(tmp_path / "model")
    assert loaded.stream_.seen == 1500
    for rows in np.split(np.arange(1500, 3000), 15):
        loaded.partial_fit(X[rows], y[rows])
        model.partial_fit(X[rows], y[rows])
    assert loaded.stream_.seen == 3000
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-5, atol=1e-5)
    assert loaded.score(*_rows(2000, 1)) > 0.8


def test_maps_can_be_given():
    X, y = _rows(2000)
    typical = power_regressor(**SETTINGS).fit(X, y)
    model = power_regressor(**SETTINGS).partial_fit(X[:50], y[:50], maps=typical.maps_)
    assert model.maps_ == typical.maps_
    defaults = TensorTrainRegressor(random_state=0).fit(X, y)
    assert (
        TensorTrainRegressor(random_state=0).partial_fit(X[:200], y[:200], maps=defaults.maps_).maps_ == defaults.maps_
    )
    labels = y > 0
    classifier = TensorTrainClassifier(random_state=0).partial_fit(
        X[:200], labels[:200], [False, True], maps=defaults.maps_
    )
    assert classifier.maps_ == defaults.maps_
    with pytest.raises(TypeError, match="maps must be those of a fitted model"):
        power_regressor().partial_fit(X, y, maps="spline")
    with pytest.raises(ValueError, match="maps have 5 features, but X has 4"):
        power_regressor().partial_fit(X[:, :4], y, maps=typical.maps_)


def test_mistakes_are_named():
    X, y = _rows(100)
    labels = (y > 0).astype(int)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        power_classifier().partial_fit(X, labels)
    with pytest.raises(ValueError, match=r"y has the labels \[0\], but classes are \[1, 2\]"):
        power_classifier().partial_fit(X, labels, classes=[1, 2])
    model = power_classifier(rank=2).partial_fit(X, labels, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"classes are \[0, 1, 2\] since the first call, got \[0, 1\]"):
        model.partial_fit(X, labels, classes=[0, 1])
    with pytest.raises(ValueError, match=r"y has labels that are not known: \[7\]"):
        model.partial_fit(X, np.full(100, 7))
    with pytest.raises(
        ValueError, match=r"first block has no rows of the classes \[1, 2\], which decision='one-vs-one'"
    ):
        power_classifier(decision="one-vs-one").partial_fit(X, np.zeros(100), classes=[0, 1, 2])
    before = model.predict(X)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], labels)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        power_classifier(class_weight="balanced").partial_fit(X, labels, classes=[0, 1])
    assert "class_weight='balanced' needs all rows at once" in str(caught.value.__cause__)
    for forgetting in (1, -0.1, "x", None, np.nan):
        for fitted in (power_regressor(), model):
            with pytest.raises(ValueError, match="forgetting must be 0 or a number between 0 and 1, got"):
                fitted.partial_fit(X, labels, forgetting=forgetting)


def test_the_memory_stands_for_all_rows():
    rng = np.random.default_rng(0)
    weights = rng.uniform(0, 1, 10_000)
    weights[:3] = 1000.0
    totals = np.zeros(10_000)
    for _ in range(200):
        chosen, kept = _resampled(weights, 500, rng)
        assert abs(len(chosen) - 500) <= 1
        assert set(range(3)) <= set(chosen.tolist())
        totals[chosen] += kept / 200
    np.testing.assert_allclose(totals.sum(), weights.sum(), rtol=1e-6)
    np.testing.assert_allclose(
        totals[3:].reshape(-1, 769).sum(axis=1), weights[3:].reshape(-1, 769).sum(axis=1), rtol=0.05
    )


def test_forgetting_bounds_what_was_seen():
    stream, rng = Stream(0.0, 10.0), np.random.default_rng(0)
    for _ in range(200):
        stream.forget(0.1)
        stream.remember((np.zeros((10, 1)), np.zeros(10), np.ones(10)), rng)
    assert stream.seen == pytest.approx(100.0, rel=1e-6)
    assert stream.weights.sum() == pytest.approx(100.0, rel=1e-6)
    assert stream.n_blocks == 200


@pytest.mark.parametrize("kind", [TensorTrainClassifier, TensorTrainRegressor])
def test_a_source_is_no_block(kind):
    X = np.random.default_rng(0).normal(size=(20, 2))

    class Source:
        def __iter__(self):
            yield X, (X[:, 0] > 0).astype(int)

    model = kind(random_state=0)
    classes = {"classes": [0, 1]} if kind is TensorTrainClassifier else {}
    with pytest.raises(ValueError, match="partial_fit takes one block of rows, got X of type Source"):
        model.partial_fit(Source(), None, **classes)
    assert not hasattr(model, "model_")


def test_a_call_forgets_before_it_learns():
    """A change that is known of needs one call that forgets."""
    X, y = _rows(2000)
    models = [power_regressor(**SETTINGS) for _ in range(2)]
    for model, forgetting in zip(models, (0.0, 0.99), strict=True):
        model.partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], -y[1000:], forgetting=forgetting)
    assert [model.stream_.seen for model in models] == pytest.approx([2000.0, 1010.0])
    kept, forgot = (model.score(X[1000:], -y[1000:]) for model in models)
    assert forgot > 0.8 > kept


def test_forgetting_is_routed():
    X, y = _rows(400)
    with config_context(enable_metadata_routing=True):
        model = MultiOutputRegressor(power_regressor(**SETTINGS).set_partial_fit_request(forgetting=True))
        for rows in (slice(0, 200), slice(200, 400)):
            model.partial_fit(X[rows], y[rows, None], forgetting=0.5)
    assert model.estimators_[0].stream_.seen == pytest.approx(300.0)
