"""The average of models as one model, against the plain mean of their scores."""

import logging
import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor
from sklearn.datasets import load_iris, load_wine

import polytrain
from polytrain import (
    TensorTrainClassifier,
    TensorTrainRegressor,
    average,
)
from polytrain.explain import sobol_indices, top_terms
from polytrain.export import to_c, to_onnx
from power_models import power_classifier, power_regressor


def mean_scores(models, weights, X):
    """Slow and obvious: scores of all trains, one model after another."""
    parts = np.asarray(weights) / np.sum(weights)
    return sum(
        part * model.model_.scores(np.asarray(X, dtype=float)) for part, model in zip(parts, models, strict=True)
    )


def dense(model):
    """Coefficients of all trains in units of the score."""
    return [train.to_dense() for train in model.trains_]


def copies(model, X, y, n_models=3):
    """Models with the maps of one model, each fitted to other rows."""
    return [
        deepcopy(model).set_params(warm_start=True).fit(X[start::n_models], y[start::n_models])
        for start in range(n_models)
    ]


def random_models(seed):
    """Some models of a random shape on maps without ranges, their weights, and rows."""
    rng = np.random.default_rng(seed)
    d, n_outputs = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    X = rng.uniform(-1, 1, (60, d))
    models = []
    for _ in range(rng.integers(1, 5)):
        y = rng.normal(size=(60, n_outputs)) * rng.uniform(0.1, 100, n_outputs) + rng.normal(size=n_outputs)
        model = power_regressor(
            degree=[int(degree) for degree in np.random.default_rng(seed).integers(1, 4, d)],
            rank=int(rng.integers(1, 5)),
            basis="power-unscaled",
            init="random",
            max_sweeps=1,
            random_state=int(rng.integers(1000)),
        )
        models.append(model.fit(X, y))
    return models, rng.uniform(0.1, 2, len(models)), X


@pytest.mark.parametrize("seed", range(12))
def test_without_rounding_it_is_the_mean(seed):
    models, weights, X = random_models(seed)
    merged = average(models, weights, tolerance=0.0)
    expected = mean_scores(models, weights, X)
    np.testing.assert_allclose(merged.model_.scores(X), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    assert merged.merge_.error < 1e-12
    parts = weights / weights.sum()
    coefficients = [dense(model) for model in models]
    for train, found in enumerate(dense(merged)):
        total = sum(part * one[train] for part, one in zip(parts, coefficients, strict=True))
        np.testing.assert_allclose(found, total, atol=1e-10 * np.abs(total).max())
    np.testing.assert_allclose(
        np.ravel(merged.intercept_), parts @ np.array([np.ravel(model.intercept_) for model in models]), rtol=1e-12
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("limit", [{"tolerance": 0.1}, {"tolerance": 0.0, "max_rank": 2}])
def test_the_error_of_rounding_is_as_said(seed, limit):
    models, weights, _ = random_models(seed)
    merged, exact = average(models, weights, **limit), average(models, weights, tolerance=0.0)
    for found, total, error in zip(dense(merged), dense(exact), merged.merge_.errors, strict=True):
        relative = np.linalg.norm(found - total) / np.linalg.norm(total)
        assert error == pytest.approx(relative, rel=1e-6, abs=1e-12)
        if "max_rank" not in limit:
            assert error <= 0.1
    assert max(merged.merge_.ranks) <= limit.get("max_rank", max(exact.merge_.ranks))
    assert merged.merge_.ranks == merged.plan_.ranks
    assert max(merged.choice_.rank, 1) == max(merged.merge_.ranks)


def test_one_model_and_equal_models_stay_what_they_are():
    models, _, X = random_models(3)
    first = models[0]
    for group in ([first], [first, deepcopy(first), first]):
        merged = average(group, tolerance=1e-10)
        np.testing.assert_allclose(merged.predict(X), first.predict(X), rtol=1e-8, atol=1e-9)
        assert all(
            new <= old for new, old in zip(merged.trains_[0].ranks, first.trains_[0].ranks, strict=True)
        )  # a sum of equal trains needs no more than one of them


@pytest.mark.parametrize("decision", ["one-vs-rest", "one-vs-one", "binary-code"])
@pytest.mark.parametrize("loss", ["auto", "logistic", "squared"])
def test_classifiers_average_their_scores(decision, loss, tmp_path):
    X, y = load_iris(return_X_y=True)
    settings = {"basis": "smooth", "bandwidth": 1.0, "rank": 2, "alpha": 1e-2, "max_sweeps": 1}
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    first = TensorTrainClassifier(loss=loss, decision=decision, random_state=0, **settings).fit(X, names)
    models = copies(first, X, names)
    weights = [0.1, 0.2, 0.7]  # their sum is not 1 to the last bit
    merged = average(models, weights, tolerance=0.0)
    expected = mean_scores(models, weights, X)
    np.testing.assert_allclose(merged.model_.scores(X), expected, atol=1e-9)
    merged.save(tmp_path / "merged")
    np.testing.assert_array_equal(polytrain.load(tmp_path / "merged").predict(X), merged.predict(X))
    decided = merged.decision_.decide(expected, 3)
    np.testing.assert_allclose(merged.decision_function(X), decided, atol=1e-8)
    assert merged.score(X, names) > 0.9
    assert hasattr(merged, "predict_proba") == (loss != "squared")
    if loss != "squared":
        np.testing.assert_allclose(merged.predict_proba(X), merged.decision_.probabilities(expected, 3), atol=1e-8)


def test_two_classes_average_log_odds():
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    models = copies(TensorTrainClassifier(random_state=0).fit(X, y), X, y)
    merged = average(models)
    mean = np.mean([model.decision_function(X) for model in models], axis=0)
    np.testing.assert_allclose(merged.decision_function(X), mean, atol=0.02 * np.abs(mean).max())
    assert merged.merge_.error <= 1e-3
    np.testing.assert_allclose(merged.predict_proba(X)[:, 1], 1 / (1 + np.exp(-merged.decision_function(X))))


@pytest.fixture(scope="module")
def mixed():
    """A frame with numbers, categories and gaps; the last third lacks one level."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"colour": rng.choice(["blue", "green", "red"], 240), "size": rng.uniform(-1, 1, 240)})
    X.loc[160:, "colour"] = X.loc[160:, "colour"].replace("blue", "red")
    X.loc[::17, "size"] = np.nan
    effect = X["colour"].map({"blue": 0.0, "green": 4.0, "red": -4.0}).to_numpy()
    return X, effect * X["size"].fillna(0.5).to_numpy() + 0.1 * rng.normal(size=240)


def test_frames_with_categories_are_merged_also_if_levels_are_missing_in_some_part(mixed):
    X, y = mixed
    first = TensorTrainRegressor(random_state=0).fit(X, y)
    parts = [slice(0, 80), slice(80, 160), slice(160, 240)]
    models = [deepcopy(first).set_params(warm_start=True).fit(X[part], y[part]) for part in parts]
    assert models[2].model_.columns == first.model_.columns
    merged = average(models)
    mean = np.mean([model.predict(X) for model in models], axis=0)
    np.testing.assert_allclose(merged.predict(X), mean, atol=0.02)
    assert merged.score(X, y) > 0.9
    assert list(merged.feature_names_in_) == ["colour", "size"]


def test_what_is_merged_is_a_model_like_any_other(mixed, tmp_path):
    X, y = mixed
    merged = average(copies(TensorTrainRegressor(random_state=0).fit(X, y), X, y))
    expected = merged.predict(X)
    merged.save(tmp_path / "merged")
    loaded = polytrain.load(tmp_path / "merged")
    np.testing.assert_allclose(loaded.predict(X), expected, rtol=1e-5, atol=1e-5)
    assert loaded.choice_.reasons == (str(merged.merge_),)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(merged)).predict(X), expected)
    assert is_regressor(merged)
    assert sobol_indices(merged, X).first.shape == (1, 2)
    assert "predict" in to_c(merged)
    before = merged.trains_[0]
    again = deepcopy(merged).fit(X, y)  # the copies had warm_start=True, and so has their average
    assert again.maps_ == merged.maps_
    assert merged.trains_[0] is before
    assert max(again.trains_[0].ranks) <= max(merged.merge_.ranks)


def test_onnx_of_an_average():
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = load_iris(return_X_y=True)
    merged = average(copies(TensorTrainClassifier(random_state=0).fit(X, y), X, y))
    graph = to_onnx(merged, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(None, {"X": X})[:2]
    np.testing.assert_array_equal(labels, merged.predict(X))
    np.testing.assert_allclose(probabilities, merged.predict_proba(X), atol=1e-9)


def test_terms_of_merged_powers_are_the_mean_of_the_terms():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 3))
    models = [
        power_regressor(basis="power-unscaled", rank=3, alpha=1e-9, random_state=0).fit(
            X, factor * X[:, 0] * X[:, 1] + X[:, 2]
        )
        for factor in (1.0, 5.0)
    ]
    terms = top_terms(average(models), 2)
    np.testing.assert_allclose(terms.coefficients, [3.0, 1.0], rtol=1e-4)
    np.testing.assert_array_equal(terms.exponents, [[1, 1, 0], [0, 0, 1]])


def test_it_says_what_was_cut_off(caplog):
    models, _, _ = random_models(0)
    with caplog.at_level(logging.INFO, logger="polytrain"):
        merged = average(models, max_rank=1, verbose=1)
        average(models, max_rank=1)
    assert [record.message for record in caplog.records] == [f"merged: {merged.merge_}"]
    assert f"the average of {len(models)} models" in str(merged.merge_)
    assert merged.choice_.reasons == (str(merged.merge_),)


def test_other_maps_are_refused_with_a_remedy():
    X, y = load_iris(return_X_y=True)
    models = [power_classifier(rank=2, max_sweeps=1, random_state=0).fit(X[k::2], y[k::2]) for k in (0, 1)]
    with pytest.raises(ValueError, match=r"differ in their map of feature \d: .*warm_start=True"):
        average(models)
    default = TensorTrainClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="differ in their loss"):
        average([models[0], default])


def test_models_of_other_kinds_are_refused(mixed):
    X, y = load_iris(return_X_y=True)
    settings = {"rank": 2, "max_sweeps": 0, "basis": "power-unscaled", "random_state": 0}
    first = power_classifier(**settings).fit(X / 10, y)
    others = {
        "kind": power_regressor(**settings).fit(X / 10, y),
        "classes": power_classifier(**settings).fit(X / 10, y + 1),
        "decision": power_classifier(decision="one-vs-one", **settings).fit(X / 10, y),
        "loss": power_classifier(loss="squared", **settings).fit(X / 10, y),
        "number of columns": power_classifier(**settings).fit(X[:, :3] / 10, y),
        "names of columns": power_classifier(**settings).fit(pd.DataFrame(X / 10, columns=list("abcd")), y),
    }
    for what, other in others.items():
        with pytest.raises(ValueError, match=rf"models\[0\] and models\[1\] differ in their {what}"):
            average([first, other])
    numbers = power_regressor(**settings).fit(X, y)
    with pytest.raises(ValueError, match="number of outputs"):
        average([numbers, power_regressor(**settings).fit(X, np.stack([y, y], axis=1))])
    frame, target = mixed
    parts = [
        TensorTrainRegressor(random_state=0).fit(frame[rows], target[rows]) for rows in (slice(160), slice(160, 240))
    ]
    with pytest.raises(ValueError, match=r"differ in their levels or types of columns.*warm_start=True"):
        average(parts)


def test_arguments_are_checked():
    models, _, _ = random_models(0)
    with pytest.raises(ValueError, match="models is empty"):
        average([])
    with pytest.raises(TypeError, match="an average needs a fitted TensorTrainClassifier"):
        average([np.zeros(3)])
    with pytest.raises(TypeError, match="fitted estimators, not their model_"):
        average([models[0].model_])
    with pytest.raises(ValueError, match=r"weights must be .* numbers, one per model"):
        average(models, [1.0] * (len(models) + 1))
    for bad in (-1.0, np.nan, 0.0):
        with pytest.raises(ValueError, match=r"weights must be .* finite, not negative, and not all zero"):
            average(models, [bad] * len(models))
    with pytest.raises(ValueError, match="tolerance must be"):
        average(models, tolerance=-1.0)
    with pytest.raises(ValueError, match="max_rank must be a positive integer"):
        average(models, max_rank=0)
    with pytest.raises(Exception, match="not fitted"):
        average([TensorTrainRegressor()])
