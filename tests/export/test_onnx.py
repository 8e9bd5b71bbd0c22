"""ONNX graphs say what the estimators say."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from configurations import CONFIGURATIONS, GAPS, fit_configuration, model_with_gaps
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from default_models import NAMES as DEFAULT_MODELS
from default_models import default_case
from polytrain import TensorTrainClassifier
from polytrain.export import register_onnx_converters, to_onnx
from power_models import power_classifier, power_regressor

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
FAST = {"rank": 3, "max_sweeps": 2, "random_state": 0}


def run(model, inputs):
    if not isinstance(inputs, dict):
        inputs = {"X": inputs}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def scans(model):
    return sum(node.op_type == "Scan" for node in model.graph.node)


def check_classifier(model, rows, dtype, converted=None, inputs=None):
    converted = to_onnx(model, dtype=dtype) if converted is None else converted
    found = run(converted, rows if inputs is None else inputs)
    assert scans(converted) == 1
    assert_array_equal(next(iter(found.values())), model.predict(rows))
    if hasattr(model, "predict_proba"):
        assert found["probabilities"].dtype == dtype
        assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=0, atol=TOLERANCE[dtype])
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("loss", "decision", "basis", "n_classes"), CONFIGURATIONS)
def test_classifiers(table, loss, decision, basis, dtype, n_classes):
    model, rows = fit_configuration(table, loss, decision, basis, n_classes, **FAST)
    rows = rows.astype(dtype)
    found = check_classifier(model, rows, dtype)
    if loss == "squared":
        scores = model.decision_function(rows)
        assert_allclose(found["scores"], scores.reshape(len(rows), -1), rtol=1e-5, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("basis", ["power", "power-unscaled"])
def test_regressors(table, dtype, basis):
    X, rows, _, target = table
    model = power_regressor(degree=(1, 4, 2, 3), basis=basis, **FAST).fit(X / 4, 1e6 + 100 * target)
    rows = (rows / 4).astype(dtype)
    found = run(to_onnx(model, dtype=dtype), rows)
    assert found["variable"].shape == (len(rows), 1)
    assert_allclose(found["variable"][:, 0], model.predict(rows), rtol=1e-6 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["poisson", "gamma", "quantile", "huber"])
def test_links_of_other_losses(table, dtype, loss):
    X, rows, _, target = table
    y = np.exp(target / np.abs(target).max())
    model = power_regressor(loss=loss, **FAST).fit(X, np.stack([y, 3 * y], axis=1))
    rows = rows.astype(dtype)
    found = run(to_onnx(model, dtype=dtype), rows)["variable"]
    assert_allclose(found, model.predict(rows), rtol=2e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bases", GAPS.values(), ids=GAPS)
@pytest.mark.parametrize("opset", [13, 17, 20])
def test_missing_values(bases, dtype, opset):
    model, rows = model_with_gaps(bases)
    rows = rows.astype(dtype)
    found = run(to_onnx(model, dtype=dtype, opset=opset), rows)["variable"][:, 0]
    expected = model.model_.predict(rows)
    assert np.isfinite(expected).all()
    assert np.ptp(expected) > 0.1
    assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_missing_values_in_a_pipeline():
    model, rows = model_with_gaps(GAPS["mixed"])
    steps = make_pipeline(FunctionTransformer().fit(rows), model)
    found = run(to_onnx(steps, dtype="float64"), rows)
    assert_allclose(next(iter(found.values()))[:, 0], model.model_.predict(rows), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DEFAULT_MODELS)
def test_default_models(name, dtype):
    """The features that a frame becomes are what the graph takes."""
    model, rows, features = default_case(name)
    converted = to_onnx(model, dtype=dtype)
    found = run(converted, features.astype(dtype))
    tolerance = {"rtol": 10 * TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    if model.model_.classes is None:
        assert_allclose(found["variable"][:, 0], model.predict(rows), **tolerance)
        return
    assert_array_equal(found["label"], model.predict(rows))
    assert_allclose(found["probabilities"], model.predict_proba(rows), **tolerance)
    described = {entry.key: entry.value for entry in converted.metadata_props}
    names, columns = model.model_.feature_names, model.model_.columns
    if names is None and columns is None:
        assert described == {}
    else:
        assert json.loads(described["polytrain.features"]) == list(names or columns.feature_names)


def test_default_models_in_a_pipeline(table):
    X, rows, labels, _ = table
    model = make_pipeline(StandardScaler(), TensorTrainClassifier(random_state=0)).fit(X, labels)
    check_classifier(model, rows, "float64")
    steps = make_pipeline(FunctionTransformer(), TensorTrainClassifier(categorical_features=[3], random_state=0))
    with pytest.raises(ValueError, match="Convert the model alone"):
        to_onnx(steps.fit(np.round(X), labels))


def test_groups_of_columns_that_may_interact(table):
    X, rows, labels, _ = table
    model = power_classifier(interaction_cst="pairwise", **FAST).fit(X, labels)
    check_classifier(model, rows.astype("float64"), "float64")


def test_degrees_and_ranks_that_differ(table):
    X, rows, labels, _ = table
    model = power_classifier(degree=(1, 3, 2, 5), rank=(2, 5, 3), max_sweeps=1, random_state=0).fit(X, labels)
    model.model_ = model.model_.with_trains(
        [train.round(max_rank=1 + k).cores for k, train in enumerate(model.trains_)]
    )
    check_classifier(model, rows, "float64")


def test_powers_that_overflow_only_where_they_are_not_used(table):
    X, _, labels, _ = table
    model = power_classifier(degree=(1, 5, 1, 1), basis="power-unscaled", **FAST).fit(X / 4, labels)
    rows = np.zeros((2, 4))
    rows[:, 0] = 1e100  # its fifth power is not finite, but it has none
    assert np.isfinite(model.decision_function(rows)).all()
    check_classifier(model, rows, "float64")


def test_extreme_scores(table):
    X, rows, labels, _ = table
    for decision in ("one-vs-rest", "one-vs-one", "binary-code"):
        model = power_classifier(decision=decision, **FAST).fit(X, labels)
        model.model_ = model.model_.with_trains([(1e4 * train).cores for train in model.trains_])
        check_classifier(model, rows, "float64")


@pytest.mark.parametrize(
    "names",
    [
        np.array([3, -1, 7, 200, 5]),
        np.array([3, 1, 7, 200, 5], dtype=np.uint8),
        np.array(["a", "ä", "\N{GRINNING FACE}", "", "b c"]),
        np.array(["x", "yy", "z", "w", "v"], dtype=object),
        np.array([1.0, 2.0, 3.0, 4.0, -7.0], dtype=np.float32),
        np.array([False, True, False, True, True]),
    ],
    ids=lambda names: str(names.dtype),
)
def test_labels(table, names):
    X, rows, labels, _ = table
    model = power_classifier(**FAST).fit(X, names[labels])
    check_classifier(model, rows.astype(np.float32), "float32")


def test_labels_that_onnx_does_not_have(table):
    X, _, labels, _ = table
    for names in (np.array([0, 2**64 - 1], dtype=np.uint64), np.array(["2000", "2001"], dtype="datetime64[Y]")):
        model = power_classifier(**FAST).fit(X, names[labels % 2])
        with pytest.raises(ValueError, match="ONNX"):
            to_onnx(model)


@pytest.mark.parametrize("opset", [13, 15, 17, 18, 20, 21])
def test_opsets(table, opset):
    X, rows, labels, _ = table
    model = power_classifier(decision="one-vs-one", **FAST).fit(X, labels)
    converted = to_onnx(model, dtype="float64", opset=opset)
    assert [(entry.domain, entry.version) for entry in converted.opset_import] == [("", opset)]
    check_classifier(model, rows, "float64", converted)


def test_any_number_of_rows(table):
    X, rows, labels, _ = table
    model = power_classifier(**FAST).fit(X, labels)
    for n_rows in (0, 1, 7):
        found = run(to_onnx(model), rows[:n_rows].astype(np.float32))
        assert len(found["label"]) == len(found["probabilities"]) == n_rows


def test_bad_arguments(table):
    X, _, labels, _ = table
    with pytest.raises(NotFittedError):
        to_onnx(TensorTrainClassifier())
    model = power_classifier(**FAST).fit(X, labels)
    with pytest.raises(ValueError, match=r"dtype must be one of .* got 'float16'"):
        to_onnx(model, dtype="float16")
    with pytest.raises(ValueError, match="opset must be an integer of at least 13, got 12"):
        to_onnx(model, opset=12)


@pytest.mark.slow
def test_784_features_open_quickly():
    rng = np.random.default_rng(0)
    X = rng.random((60, 784))
    model = power_classifier(rank=4, max_sweeps=0, init="random", random_state=0).fit(X, np.arange(60) % 10)
    raw = to_onnx(model).SerializeToString()
    best = min(seconds_to_open(raw) for _ in range(3))
    assert best < 0.5
    check_classifier(model, X, "float64")


def seconds_to_open(raw):
    started = time.perf_counter()
    onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    return time.perf_counter() - started


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("decision", ["one-vs-rest", "one-vs-one", "binary-code"])
def test_digits_pipeline(dtype, decision):
    X, y = load_digits(return_X_y=True)
    X = X.astype(dtype)
    model = make_pipeline(
        StandardScaler(), PCA(12, random_state=0), power_classifier(decision=decision, **{**FAST, "max_sweeps": 1})
    ).fit(X[:900], y[:900])
    check_classifier(model, X, dtype)


def test_pipeline_with_a_regressor(table):
    X, rows, _, target = table
    model = make_pipeline(StandardScaler(), power_regressor(**FAST)).fit(X, target)
    found = run(to_onnx(model, dtype="float64"), rows)
    assert_allclose(next(iter(found.values()))[:, 0], model.predict(rows), rtol=0, atol=1e-10)


def test_options_of_skl2onnx(table):
    X, rows, labels, _ = table
    register_onnx_converters()
    model = power_classifier(**FAST).fit(X, np.array(["a", "b", "c", "d", "e"])[labels])
    rows = rows.astype(np.float32)
    plain = skl2onnx.to_onnx(model, rows, target_opset=17)
    maps = list(run(plain, rows).values())[1]
    assert_allclose([row["c"] for row in maps], model.predict_proba(rows)[:, 2], atol=1e-5)
    numbered = skl2onnx.to_onnx(model, rows, target_opset=17, options={id(model): {"nocl": True, "zipmap": False}})
    assert_array_equal(run(numbered, rows)["label"], model.decision_function(rows).argmax(axis=1))
    integers = skl2onnx.convert_sklearn(
        model,
        initial_types=[("X", skl2onnx.common.data_types.Int64TensorType([None, 4]))],
        target_opset=17,
        options={"zipmap": False},
    )
    whole = np.round(rows).astype(np.int64)
    assert_array_equal(run(integers, whole)["label"], model.predict(whole.astype(np.float32)))


def adult():
    folder = os.environ.get("POLYTRAIN_DATA")
    if not folder or not (Path(folder) / "tabular" / "adult-train.csv").exists():
        pytest.skip("POLYTRAIN_DATA does not name a folder with tabular/adult-train.csv")
    frame = pd.read_csv(Path(folder) / "tabular" / "adult-train.csv", header=None, skipinitialspace=True, nrows=6000)
    frame = frame.dropna()
    frame.columns = [f"column{k}" for k in range(frame.shape[1])]
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy(dtype=object)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adult_pipeline(dtype):
    frame, labels = adult()
    numbers = list(frame.select_dtypes("number").columns)
    words = [name for name in frame.columns if name not in numbers]
    frame = frame.astype({**dict.fromkeys(numbers, dtype), **dict.fromkeys(words, object)})
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    prepare = ColumnTransformer([("numbers", StandardScaler(), numbers), ("words", encoder, words)])
    model = make_pipeline(prepare, power_classifier(**FAST)).fit(frame[:3000], labels[:3000])
    types = skl2onnx.common.data_types
    number = {"float32": types.FloatTensorType, "float64": types.DoubleTensorType}[dtype]
    register_onnx_converters()
    converted = skl2onnx.convert_sklearn(
        model,
        initial_types=[
            (name, (number if name in numbers else types.StringTensorType)([None, 1])) for name in frame.columns
        ],
        target_opset=17,
        options={"zipmap": False},
    )
    inputs = {name: frame[[name]].to_numpy() for name in frame.columns}
    check_classifier(model, frame, dtype, converted, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mnist_pipeline(dtype):
    folder = os.environ.get("POLYTRAIN_DATA")
    if not folder or not (Path(folder) / "mnist").exists():
        pytest.skip("POLYTRAIN_DATA does not name a folder with mnist/")
    datasets = pytest.importorskip("polytrain_paper.datasets")
    data = datasets.load_mnist(download=False)
    train, test = (
        images.reshape(len(images), -1).astype(dtype) for images in (data.train_images[:2000], data.test_images)
    )
    model = make_pipeline(StandardScaler(), PCA(20, random_state=0), power_classifier(**FAST))
    model.fit(train, data.train_labels[:2000])
    check_classifier(model, test, dtype)
