"""Sparse matrices are the same rows as their dense arrays, in memory or block by block."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from polytrain import TensorTrainClassifier, TensorTrainRegressor, config_context, sources
from polytrain.explain import explain_local, feature_importances
from power_models import power_classifier, power_regressor

FORMS = [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array]


def draw(n_rows=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, d)) < 0.5, rng.normal(size=(n_rows, d)), 0.0)
    return X, X[:, 0] + X[:, 1] * X[:, 2]


def methods(model):
    names = ("predict", "predict_proba", "predict_log_proba", "decision_function", "predict_interval")
    return [name for name in names if hasattr(model, name)]


@pytest.mark.parametrize("kind", [TensorTrainRegressor, TensorTrainClassifier])
def test_equal_to_the_dense_array(kind):
    X, y = draw()
    y = np.digitize(y, [-0.5, 0.5]) if kind is TensorTrainClassifier else y
    model, same = kind(random_state=0).fit(X, y), kind(random_state=0).fit(sparse.csr_array(X), y)
    assert same.n_features_in_ == 5
    for name in methods(model):
        wanted = getattr(model, name)(X)
        np.testing.assert_array_equal(getattr(same, name)(X), wanted)
        for form in FORMS:
            np.testing.assert_array_equal(getattr(same, name)(form(X)), wanted)
    assert same.score(sparse.csc_array(X), y) == model.score(X, y)
    fast = {"basis": "power", "rank": 2, "alpha": 1e-3, "random_state": 0}
    wanted = kind(**fast).fit(X, y).predict(X)
    for form in FORMS:
        np.testing.assert_array_equal(kind(**fast).fit(form(X), y).predict(X), wanted)


@pytest.mark.parametrize("kind", [power_regressor, power_classifier])
def test_rows_that_are_read_in_blocks(monkeypatch, kind):
    """With little memory the dense array is never there; the fit is that of a source of rows."""
    X, y = draw(3000)
    y = y > 0 if kind is power_classifier else y
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    options = {"rank": 3, "alpha": 1e-3, "random_state": 0}
    model = kind(**options).fit(X, y, sample_weight=weights)
    sizes = []

    class Watched(sources.SparseRows):
        def __iter__(self):
            for block in super().__iter__():
                sizes.append(len(block[0]))
                yield block

    monkeypatch.setattr("polytrain.rows.opening.SparseRows", Watched)
    monkeypatch.setattr("polytrain.rows.opening.dense", None)
    monkeypatch.setattr("polytrain.sources._BLOCK_BYTES", 8 * 5 * 64)
    with config_context(max_memory=40_000):
        same = kind(**options).fit(sparse.csr_array(X), y, sample_weight=weights)
    assert max(sizes) == 64
    name = "decision_function" if kind is power_classifier else "predict"
    np.testing.assert_allclose(getattr(same, name)(X), getattr(model, name)(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(getattr(same, name)(sparse.csr_array(X)), getattr(same, name)(X), rtol=1e-12, atol=1e-14)


def test_predictions_never_make_the_dense_array():
    X, y = draw(d=60)
    model = power_regressor(degree=1, rank=1, alpha=1e-3, max_sweeps=1, random_state=0).fit(X, y)
    rows = sparse.random_array((120_000, 60), density=0.01, format="csc", random_state=0)
    tracemalloc.start()
    predicted = model.predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * rows.shape[0] * rows.shape[1] / 2
    np.testing.assert_array_equal(predicted, model.predict(rows.toarray()))


def test_validation_rows_blocks_of_streams_and_categories():
    X, y = draw()
    form = sparse.csc_array
    early = TensorTrainRegressor(max_sweeps=3, random_state=0)
    model = early.fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:]).predict(X)
    np.testing.assert_array_equal(
        early.fit(form(X[:150]), y[:150], X_val=form(X[150:]), y_val=y[150:]).predict(form(X)), model
    )
    streams = [TensorTrainRegressor(random_state=0) for _ in range(2)]
    for rows in (slice(100), slice(100, 200)):
        streams[0].partial_fit(X[rows], y[rows])
        streams[1].partial_fit(form(X[rows]), y[rows])
    np.testing.assert_array_equal(streams[1].predict(form(X)), streams[0].predict(X))
    whole = np.round(X)
    coded = TensorTrainRegressor(categorical_features=[0], random_state=0)
    wanted = coded.fit(whole, y).predict(whole)
    np.testing.assert_array_equal(coded.fit(form(whole), y).predict(form(whole)), wanted)


def test_explanations_take_them():
    X, y = draw()
    model = TensorTrainRegressor(random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        feature_importances(model, sparse.csr_array(X)).importances, feature_importances(model, X).importances
    )
    assert explain_local(model, sparse.csr_array(X[:2])).cells == explain_local(model, X[:2]).cells


def test_pipelines_of_text_and_of_encoders():
    texts = ["good film", "bad film", "good actors", "bad story", "very good", "very bad", "a good one", "so bad"] * 4
    labels = [text.find("good") >= 0 for text in texts]
    model = make_pipeline(TfidfVectorizer(), TensorTrainClassifier(random_state=0))
    assert (cross_val_predict(model, texts, labels, cv=3) == labels).all()
    rng = np.random.default_rng(0)
    frame = rng.choice(["a", "b", "c"], size=(150, 2))
    y = (frame[:, 0] == "a") + 2.0 * (frame[:, 1] == "b")
    coded = make_pipeline(OneHotEncoder(), TensorTrainRegressor(random_state=0)).fit(frame, y)
    np.testing.assert_allclose(coded.predict(frame), y, atol=0.05)


def test_what_is_wrong_is_said():
    X, y = draw(60)
    model = TensorTrainRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 4 features, but TensorTrainRegressor is expecting 5"):
        model.predict(sparse.csr_array(X[:, :4]))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.predict(sparse.csr_array((0, 5)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"), config_context(max_memory=100):
        TensorTrainRegressor().fit(sparse.csr_array(X), y[:50])
    with pytest.raises(ValueError, match=r"two dimensions|2D array"):
        model.predict(sparse.coo_array(np.ones(5)))
    with pytest.raises(ValueError, match="Complex data not supported"):
        TensorTrainRegressor().fit(sparse.csr_array(X * 1j), y)
