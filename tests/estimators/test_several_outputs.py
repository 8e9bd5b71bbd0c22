"""Regressors with several targets: one train each, on the same rows and maps."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polytrain
from polytrain import config_context
from polytrain.explain import partial_dependence, sobol_indices, top_terms
from polytrain.export import to_onnx
from power_models import power_regressor

SETTINGS = {"rank": 3, "max_sweeps": 3, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    y = np.stack([X[:, 0] * X[:, 1], 1e6 + 1e3 * X[:, 2] ** 2, np.full(300, -2.0)], axis=1)
    return X, y, rng.uniform(0, 2, 300)


@pytest.fixture(scope="module")
def model(rows):
    return power_regressor(**SETTINGS).fit(*rows)


def test_every_output_is_learned_as_if_it_were_alone(rows, model):
    X, y, weights = rows
    predicted = model.predict(X)
    assert predicted.shape == (300, 3)
    assert len(model.trains_) == 3
    assert model.intercept_.shape == (3,)
    for output, tolerance in enumerate((1e-12, 1e-6, 1e-12)):
        alone = power_regressor(**SETTINGS).fit(X, y[:, output], weights)
        # The first begins with the same random numbers, and the last needs none.
        np.testing.assert_allclose(predicted[:, output], alone.predict(X), rtol=tolerance, atol=tolerance)
        assert model.intercept_[output] == pytest.approx(alone.intercept_, rel=1e-14)
    np.testing.assert_allclose(predicted[:, 2], -2.0, atol=1e-12)
    assert {record["train"] for record in model.history_} == {0, 1, 2}
    assert model.score(X, y) > 0.9


def test_processes_blocks_and_files_change_nothing(rows, model, tmp_path):
    X, y, weights = rows
    expected = model.predict(X)
    shared = power_regressor(n_jobs=2, **SETTINGS).fit(X, y, weights)
    np.testing.assert_array_equal(shared.predict(X), expected)

    class Blocks:
        def __iter__(self):
            yield X[:100], y[:100], weights[:100]
            yield X[100:], y[100:], weights[100:]

    with config_context(max_memory="10 kB"):
        np.testing.assert_allclose(power_regressor(**SETTINGS).fit(Blocks()).predict(X), expected, rtol=1e-9)
    model.save(tmp_path / "model")
    loaded = polytrain.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(X), expected, rtol=1e-5, atol=1e-5)
    assert loaded.model_.train_names == ("output 0", "output 1", "output 2")


def test_one_column_stays_a_column(rows):
    X, y, _ = rows
    column = power_regressor(**SETTINGS).fit(X, y[:, :1])
    assert column.predict(X).shape == (300, 1)
    line = power_regressor(**SETTINGS).fit(X, y[:, 0])
    np.testing.assert_array_equal(column.predict(X)[:, 0], line.predict(X))
    assert isinstance(line.intercept_, float)


def test_warm_starts_need_the_same_number_of_outputs(rows):
    X, y, _ = rows
    model = power_regressor(warm_start=True, **SETTINGS).fit(X, y)
    objective = model.history_[-1]["objective"]
    assert model.fit(X, y).history_[-1]["objective"] <= objective * (1 + 1e-12)
    with pytest.raises(ValueError, match=r"the last fit has 3 trains and this one needs 2.*number of outputs"):
        model.fit(X, y[:, :2])


def test_explanations_speak_of_every_output(rows, model):
    X, _, _ = rows
    indices = sobol_indices(model, X)
    assert indices.first.shape == (3, 3)
    assert indices.first[1].argmax() == 2
    np.testing.assert_allclose(indices.mean, model.predict(X).mean(axis=0), rtol=1e-5, atol=0.03)
    curve = partial_dependence(model, 2, X, grid=[0.5])
    changed = X.copy()
    changed[:, 2] = 0.5
    np.testing.assert_allclose(curve.values[:, 0], model.predict(changed).mean(axis=0), rtol=1e-9)
    assert top_terms(model, 1, train=1).names == ("1",)


def test_onnx_alone_and_in_a_pipeline(rows, model):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y, _ = rows
    for fitted in (model, make_pipeline(StandardScaler(), power_regressor(**SETTINGS)).fit(X, y)):
        graph = to_onnx(fitted, dtype="float64").SerializeToString()
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        found = session.run(None, {"X": X})[0]
        assert found.shape == (300, 3)
        np.testing.assert_allclose(found, fitted.predict(X), rtol=1e-9, atol=1e-9)
