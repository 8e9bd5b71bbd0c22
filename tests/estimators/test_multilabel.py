"""Any number of labels per row: each is learned like two classes of its own."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polytrain
from polytrain import TensorTrainClassifier
from polytrain.decisions import EachLabel, get_decision
from polytrain.explain import explain_local, partial_dependence
from power_models import power_classifier

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")

FAST = {"rank": 2, "max_sweeps": 2, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_multilabel_classification(n_samples=240, n_features=4, n_classes=3, n_labels=2, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return TensorTrainClassifier(random_state=0).fit(*data)


def test_answers_are_scikit_learns(data, model):
    X, y = data
    predicted, likely, scores = model.predict(X), model.predict_proba(X), model.decision_function(X)
    assert predicted.shape == likely.shape == scores.shape == y.shape
    np.testing.assert_array_equal(predicted, scores > 0)
    np.testing.assert_allclose(likely, 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), likely)
    assert model.score(X, y) == accuracy_score(y, predicted)
    assert model.score(X, y) > 0.5
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.decision_.name == "each-label"
    assert not np.allclose(likely.sum(axis=1), 1.0)


def test_probabilities_are_calibrated_label_by_label(data, model):
    """As for two classes: on few rows the trains are the same exact solutions, but for maps chosen by all labels."""
    X, y = data
    assert model.model_.calibrated
    assert len(set(model.model_.size)) == 3
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), y.mean(axis=0), atol=0.03)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_each_label_is_a_model_of_two_classes(data, loss):
    X, y = data
    model = power_classifier(loss=loss, **FAST).fit(X, y)
    for label in range(3):
        alone = power_classifier(loss=loss, **FAST).fit(X, y[:, label])
        np.testing.assert_allclose(model.decision_function(X)[:, label], alone.decision_function(X), atol=1e-6)
    assert hasattr(model, "predict_proba") == (loss == "logistic")


@pytest.mark.parametrize("form", [list, sparse.csr_array, pd.DataFrame, lambda y: y.astype(bool), lambda y: 1.0 * y])
def test_forms_of_indicators(data, form):
    X, y = data
    wanted = power_classifier(**FAST).fit(X, y).predict(X)
    found = power_classifier(**FAST).fit(X, form(y)).predict(X)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype == y.dtype


def test_weights_blocks_and_order_of_rows(data):
    X, y = data
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"alpha": 1e-3, **FAST}
    model = power_classifier(**options).fit(X, y, sample_weight=weights)
    repeated = np.repeat(np.arange(len(y)), weights)
    scores = model.decision_function(X)
    same = power_classifier(**options).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(same.decision_function(X), scores, atol=1e-5)

    class Blocks:
        def __iter__(self):
            return ((X[rows], y[rows]) for rows in np.array_split(repeated, 3))

    np.testing.assert_allclose(power_classifier(**options).fit(Blocks()).decision_function(X), scores, atol=1e-5)


def test_defaults_with_weights_are_those_of_repeated_rows(data):
    X, y = data
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    found = TensorTrainClassifier(random_state=0).fit(X, y, sample_weight=weights).decision_function(X)
    wanted = TensorTrainClassifier(random_state=0).fit(X[repeated], y[repeated]).decision_function(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_many_rows_are_calibrated_on_a_part():
    X, y = make_multilabel_classification(n_samples=3000, n_features=5, n_classes=4, random_state=0)
    model = TensorTrainClassifier(random_state=0).fit(X[:2000], y[:2000])
    assert model.model_.calibrated
    np.testing.assert_allclose(model.predict_proba(X[2000:]).mean(axis=0), y[:2000].mean(axis=0), atol=0.05)
    assert model.score(X[2000:], y[2000:]) > 0.35


def test_labels_that_all_or_no_rows_have(data):
    X, y = data
    y = np.column_stack([y[:, 0], np.zeros(len(y), int), np.ones(len(y), int)])
    likely = TensorTrainClassifier(random_state=0).fit(X, y).predict_proba(X)
    assert (likely[:, 1] < 0.05).all()
    assert (likely[:, 2] > 0.95).all()


def test_frames_and_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(["a", "b"], 150), "size": rng.normal(size=150)})
    y = np.column_stack([frame["kind"] == "a", frame["size"] > 0]).astype(int)
    frame.loc[::10, "kind"] = None
    model = TensorTrainClassifier(random_state=0).fit(frame, y)
    assert model.score(frame[1:9], y[1:9]) == 1.0


def test_validation_rows_and_warm_starts(data):
    X, y = data
    early = power_classifier(early_stopping=True, **FAST).fit(X, y)
    assert "validation_loss" in early.history_[0]
    given = power_classifier(**FAST).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert given.score(X, y) > 0.3
    warm = copy.deepcopy(given).set_params(warm_start=True)
    assert warm.fit(X, y).score(X, y) > 0.3
    with pytest.raises(ValueError, match=r"warm_start=True, but the last fit had .*'each-label'"):
        warm.fit(X, y[:, :2].sum(axis=1))
    with pytest.raises(ValueError, match="warm_start=True, but the last fit had"):
        power_classifier(warm_start=True, **FAST).fit(X, y.sum(axis=1)).fit(X, y)
    with pytest.raises(ValueError, match="there should be 3 outputs"):
        power_classifier(**FAST).fit(X, y, X_val=X, y_val=y[:, :2])


def test_model_files_and_averages(data, model, tmp_path):
    X, y = data
    model.save(tmp_path / "m")
    same = polytrain.load(tmp_path / "m")
    for name in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_allclose(getattr(same, name)(X), getattr(model, name)(X), rtol=0, atol=1e-5)
    two = TensorTrainClassifier(random_state=0).fit(X, y[:, :2])
    two.save(tmp_path / "two")
    assert isinstance(polytrain.load(tmp_path / "two").decision_, EachLabel)
    first, second = (power_classifier(**FAST).fit(X, labels) for labels in (y, 1 - y))
    mean = (first.decision_function(X) + second.decision_function(X)) / 2
    np.testing.assert_allclose(polytrain.average([first, second], tolerance=0).decision_function(X), mean, atol=1e-8)


def test_explanations_are_about_labels(data, model):
    X, _ = data
    found = explain_local(model, X[:5])
    assert found.score_names == ("label 0", "label 1", "label 2")
    assert found.scale == "log-odds"
    np.testing.assert_allclose(found.scores, model.decision_function(X[:5]))
    assert partial_dependence(model, 0, X).values.shape == (3, 50)
    one = explain_local(model, X[:5], output="label 1")
    np.testing.assert_array_equal(one.values[..., 0], found.values[..., 1])


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("loss", ["auto", "squared"])
def test_onnx_has_a_column_per_label(data, loss, n_labels):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from polytrain.export import to_onnx

    X, y = data
    model = TensorTrainClassifier(loss=loss, rank=2, alpha=1e-3, random_state=0).fit(X, y[:, :n_labels])
    session = runtime.InferenceSession(to_onnx(model, dtype="float64").SerializeToString())
    labels, numbers = session.run(None, {"X": X.astype(np.float64)})
    np.testing.assert_array_equal(labels, model.predict(X))
    wanted = model.predict_proba(X) if loss == "auto" else model.decision_function(X)
    np.testing.assert_allclose(numbers, wanted, atol=1e-9)


def test_what_is_refused(data, model):
    from polytrain.export import to_c

    X, y = data
    with pytest.raises(
        ValueError, match=r"y of shape \(240, 3\) must hold 0 and 1, a column per label, got \[1.0, 2.0\]"
    ):
        TensorTrainClassifier().fit(X, y + 1)
    with pytest.raises(ValueError, match="should be a 1d array"):
        TensorTrainClassifier().fit(X, y + np.arange(240)[:, None])
    with pytest.raises(ValueError, match="loss='multinomial' needs one label per row, and y has 3 columns"):
        TensorTrainClassifier(loss="multinomial").fit(X, y)
    with pytest.raises(ValueError, match="class_weight='balanced' needs one label per row"):
        TensorTrainClassifier(class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="partial_fit learns one label per row"):
        TensorTrainClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="partial_fit learns one label per row"):
        copy.deepcopy(model).partial_fit(X, y[:, 0])
    with pytest.raises(ValueError, match="a classifier in C has one label per row, and this one has 3 labels"):
        to_c(model)
    with pytest.raises(ValueError, match="a report is about one"):
        polytrain.report(model, X, y)


def test_pipelines_are_not_converted_to_onnx(data):
    pytest.importorskip("skl2onnx")
    from polytrain.export import to_onnx

    model = make_pipeline(StandardScaler(), power_classifier(**FAST)).fit(*data)
    with pytest.raises(ValueError, match="skl2onnx knows classifiers of one label per row, and this one has 3 labels"):
        to_onnx(model)


def test_tables_are_predicted_but_not_evaluated(data, model, tmp_path):
    pytest.importorskip("pandas")
    from polytrain.tables import load_table_model

    X, y = data
    model.save(tmp_path / "m")
    np.savetxt(tmp_path / "X.csv", X, delimiter=",", fmt="%g")
    table_model = load_table_model(tmp_path / "m")
    np.testing.assert_array_equal(table_model.predict(tmp_path / "X.csv"), model.predict(X))
    np.savetxt(tmp_path / "both.csv", np.column_stack([X, y]), delimiter=",", fmt="%g")
    with pytest.raises(ValueError, match="this model has 3 labels per row, and a table one target"):
        table_model.evaluate(tmp_path / "both.csv", target=[4, 5, 6])


def test_the_decision_comes_with_targets():
    assert isinstance(get_decision("each-label", 2), EachLabel)
    assert not TensorTrainClassifier(loss="multinomial").__sklearn_tags__().classifier_tags.multi_label
    with pytest.raises(ValueError, match="decision must be one of"):
        TensorTrainClassifier(decision="each-label").fit(np.eye(4), [0, 1, 2, 0])
