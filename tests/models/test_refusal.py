"""Files that are no valid model files are refused, with a reason."""

import os
import pickle
import shutil
import sys

import numpy as np
import pytest
from hostile import ModelParts
from joblib import cpu_count
from sklearn.datasets import load_iris

import polytrain
from default_models import default_case
from polytrain import ModelFileError, TensorTrainClassifier
from polytrain.models.file import FORMAT
from power_models import power_classifier, power_regressor

X, Y = load_iris(return_X_y=True)
NAN = float("nan")


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    model = power_classifier(rank=2, max_sweeps=1, random_state=np.random.RandomState(0))
    model.fit(X, Y).save(path)
    return path.read_bytes()


def refused(tmp_path, content, message, **options):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        polytrain.load(tmp_path / "model", **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header length is not plausible"),
        (b"\0" * 8, "header length is not plausible"),
        (b"\xff" * 8 + b"{}", "header length is not plausible"),
        (pickle.dumps({"a": 1}), "header length is not plausible"),
        (b"PK\x03\x04" + b"\0" * 4096, "is not a polytrain model file, or a damaged one"),
        ((2).to_bytes(8, "little") + b"{}", "is a safetensors file, but not a polytrain model file"),
        ((4).to_bytes(8, "little") + b"[[]]", "the header is not a JSON object"),
        ((100_000).to_bytes(8, "little") + b"[" * 100_000, "nested too deeply"),
        ((3).to_bytes(8, "little") + b"NaN", "NaN is not valid JSON"),
        ((2).to_bytes(8, "little") + b"\xff\xff", "header cannot be read"),
        ((20).to_bytes(8, "little") + b'{"__metadata__": []}', "__metadata__ is .., which is not plausible"),
    ],
)
def test_foreign_files(tmp_path, content, message):
    refused(tmp_path, content, message)


def test_damaged_files(tmp_path, raw):
    for k in range(0, len(raw), 97):
        refused(tmp_path, raw[:k], "is not a polytrain model file, or a damaged one")
    refused(tmp_path, raw + b"\0", "1 bytes follow the last tensor")
    refused(tmp_path, raw[:-1] + bytes([raw[-1] ^ 1]), "checksum does not match")
    refused(tmp_path, raw.replace(b"0.2.0", b"0.2.1", 1), "checksum does not match")


def test_future_formats(tmp_path, raw, reseal):
    now, then = (b'"version":"%d"' % version for version in (FORMAT, FORMAT + 1))
    later = raw.replace(now, then, 1)
    message = rf"this model file uses format {FORMAT + 1}; this polytrain reads up to {FORMAT}\. Upgrade polytrain\."
    refused(tmp_path, later, message)
    refused(tmp_path, reseal(later), message)
    refused(tmp_path, reseal(raw.replace(now, b'"version":"0"', 1)), "'0' is not a format number")


def test_a_later_format_may_look_different(tmp_path):
    header = b'{"__metadata__":{"format":"polytrain","version":"12","more":"x"}}'
    refused(tmp_path, len(header).to_bytes(8, "little") + header, "uses format 12")


def test_rewritten_by_another_tool(tmp_path, raw, take_apart):
    file = take_apart(raw)
    file.metadata["note"] = "hello"
    refused(tmp_path, file.assemble(), "rewritten by another tool")


def test_oversized(tmp_path, raw):
    refused(tmp_path, raw, r"bytes, more than max_bytes=1000\. Raise max_bytes", max_bytes=1000)
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ModelFileError, match="more than max_bytes"):
        polytrain.load(tmp_path / "sparse")
    with pytest.raises(ModelFileError, match="header length"):
        polytrain.load(tmp_path / "sparse", max_bytes=1 << 50)


def test_not_a_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        polytrain.load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="is not a regular file"):
        polytrain.load(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is not a regular file"):
        polytrain.load(tmp_path / "pipe")


BAD_ENTRIES = [
    ("parameters", [], "'parameters' should be dict"),
    ("plan", {}, "the plan is .* not plausible"),
    ("loss", "hinge", "loss must be one of"),
    ("loss", "poisson", "does not apply to classification"),
    ("one_output", False, "a classifier has one output"),
    ("decision", "each-label", "a classifier has one output, unless rows have any number of labels"),
    ("one_output", 1, "'one_output' should be bool"),
    ("feature_names", ["a"], "4 feature names"),
    ("feature_names", [1, 2, 3, 4], "4 feature names"),
    ("maps", {}, "every column should have one map"),
    ("maps", [], "'maps' should be dict"),
    ("maps", {"polynomial": 1}, "bases of the polynomial maps should be among"),
    ("maps", {"os.system": ["power"] * 4}, "there are no maps of the kind 'os.system'"),
    ("maps", {"polynomial": ["power"] * 3}, "'columns.polynomial'"),
    ("maps", {"polynomial": []}, "bases of the polynomial maps should be among"),
    ("maps", {"polynomial": ["sine"] * 4}, "bases of the polynomial maps should be among"),
    ("maps", {"polynomial": [[]] * 4}, "not a valid model file"),
    ("maps", {"table": ["smooth"] * 4}, "'columns.table' is missing"),
    ("feature_names", ["a", "b", "c", "\ud800"], "half of a character"),
    ("has_column_names", True, "names of the columns are missing"),
    ("has_column_names", 1, "'has_column_names' should be bool"),
    ("table", 1, "'table' should be dict or NoneType"),
    ("stop_reason", None, "'stop_reason' should be str"),
    ("decision", "vote", "decision must be one of"),
    ("decision", "binary-code", "3 classes need 2 trains with binary-code, not 3"),
    ("classes", {"dtype": "object", "labels": ["a", "b"]}, "2 classes need 1 trains"),
    ("classes", {"dtype": "object", "labels": ["b", "a"]}, "in order and different"),
    ("classes", {"dtype": "object", "labels": [1, 2]}, "labels should be strings"),
    ("classes", {"dtype": "str1", "labels": ["aa", "b"]}, "do not fit the type 'str1'"),
    ("classes", {"dtype": "str999999", "labels": ["a", *"bcdefghijklmnopqrstuvwxyz"]}, "do not fit the type"),
    ("classes", {"dtype": "U9", "labels": ["a", "b"]}, "do not fit the type 'U9'"),
    ("classes", {"dtype": "float64", "labels": None}, "'classes' should not have dtype"),
    ("classes", {"dtype": "complex64", "labels": None}, "no classes of type"),
    ("classes", {"dtype": "int64"}, "should have a dtype and labels"),
    ("surprise", 1, r"unknown entries: \['surprise'\]"),
    ("calibrated", 1, "'calibrated' should be bool"),
    ("columns", {}, "'columns' should be list or NoneType"),
    ("choice", [], "'choice' should be dict"),
    ("choice", {}, "the choice is {}"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD_ENTRIES)
def test_bad_entries(tmp_path, raw, take_apart, name, value, message):
    file = take_apart(raw)
    file.document[name] = value
    refused(tmp_path, file.assemble(), message)


@pytest.mark.parametrize(
    "name",
    [
        *("writer", "parameters", "plan", "classes", "decision", "maps", "loss"),
        *("one_output", "calibrated", "columns", "has_column_names", "choice"),
    ],
)
def test_missing_entries(tmp_path, raw, take_apart, name):
    file = take_apart(raw)
    del file.document[name]
    refused(tmp_path, file.assemble(), f"lacks '{name}'")


BAD_CHOICES = [
    ("basis", ["power"]),
    ("bandwidth", -1.0),
    ("bandwidth", True),
    ("bandwidth", 10**400),
    ("alpha", "small"),
    ("rank", 2.5),
    ("reasons", "because"),
    ("reasons", [1]),
    ("tried", {}),
    ("tried", [1]),
    ("tried", [["rank", "spline", 1.0, 1.0, 2, 10]]),
    ("tried", [[None, "spline", 1.0, 1.0, 2, 10, 1.0]]),
    ("tried", [["rank", "spline", "wide", 1.0, 2, 10, 1.0]]),
    ("tried", [["rank", "spline", 1.0, 10**400, 2, 10, 1.0]]),
    ("tried", [["rank", "spline", 1.0, 1.0, -2, 10, 1.0]]),
    ("tried", [["rank", "spline", 1.0, 1.0, 2, 2.5, 1.0]]),
    ("tried", [["rank", "spline", 1.0, 1.0, 2, 2**70, 1.0]]),
    ("tried", [["rank", "spline", 1.0, 1.0, 2, 10, "small"]]),
]


@pytest.fixture(scope="module")
def raw_frame(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "frame"
    default_case("frame").model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize(("name", "value"), BAD_CHOICES)
def test_bad_choices(tmp_path, raw_frame, take_apart, name, value):
    file = take_apart(raw_frame)
    file.document["choice"][name] = value
    refused(tmp_path, file.assemble(), f"{name} of the choice is .* not plausible")


BAD_COLUMNS = [
    ((), {}, "'columns' should be list"),
    ((), [], "the columns do not match the features of the model"),
    ((0,), 1, "a column must be a dict"),
    ((0, "kind"), "os.system", "whose kind is number, category or date"),
    ((0, "kind"), "date", "needs the entries"),
    ((0, "name"), 1, "name of column 1 is 1, which is not plausible"),
    ((0, "empty"), 0, "empty of column .* is 0"),
    ((1, "levels"), [], "must be text or numbers"),
    ((1, "levels"), ["b", "a"], "must differ"),
    ((1, "levels"), [1, True], "must differ"),
    ((1, "levels"), [None], "must be text or numbers"),
    ((1, "levels"), [{"number": "nan"}], "must be text or numbers"),
    ((1, "as_text"), "no", "as_text of column .* is 'no'"),
    ((1, "levels"), ["blue"], "other levels than its map"),
    ((3, "parts"), ["month"], "needs the entries"),
    ((3, "pattern"), "%H", "column 'day' has ranges or a pattern that are not plausible"),
    ((3, "pattern"), ["iso"], "pattern of column 'day' is"),
    ((3, "ranges"), [[1, 12], [0, 6]], "column 'day' has ranges or a pattern that are not plausible"),
    ((3, "ranges"), [[1, 12], [0, 6], [0, 10**400]], "ranges of column 'day' is"),
    ((3, "ranges"), [[1, 1], [0, 0], [0, 0]], "the columns do not match the features of the model"),
]


@pytest.mark.parametrize(("place", "value", "message"), BAD_COLUMNS)
def test_bad_columns(tmp_path, raw_frame, take_apart, place, value, message):
    file = take_apart(raw_frame)
    entry = file.document
    for step in ("columns", *place)[:-1]:
        entry = entry[step]
    entry[("columns", *place)[-1]] = value
    refused(tmp_path, file.assemble(), message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("columns", None, "names of the columns are missing"),
        ("feature_names", ["a"] * 6, "the columns do not match the features of the model"),
        ("calibrated", False, "neither shifted nor scaled, unless it is calibrated"),
    ],
)
def test_bad_entries_of_a_model_of_frames(tmp_path, raw_frame, take_apart, name, value, message):
    file = take_apart(raw_frame)
    file.document[name] = value
    refused(tmp_path, file.assemble(), message)


def test_a_file_starts_no_more_processes_than_there_are_processors(tmp_path, raw_frame, take_apart):
    file = take_apart(raw_frame)
    file.document["parameters"] |= {"n_jobs": 10**6, "random_state": 0}
    (tmp_path / "model").write_bytes(file.assemble())
    model = polytrain.load(tmp_path / "model")
    assert model.n_jobs == cpu_count()


@pytest.mark.parametrize(("name", "value"), [("size", 0.0), ("size", -1.0), ("size", np.inf), ("shift", NAN)])
def test_bad_calibration(tmp_path, raw_frame, take_apart, name, value):
    file = take_apart(raw_frame)
    file.patch(name, np.array([value]))
    refused(tmp_path, file.assemble(), "finite, and the size positive")


BAD_PARAMETERS = [
    ({"n_jobs": 0}, "n_jobs must be None"),
    ({"n_jobs": True}, "n_jobs must be None"),
    ({"n_jobs": "all"}, "n_jobs must be None"),
    ({"init": {"array": "cores"}}, "not plausible"),
    ({"init": {"array": ["parameter.9"]}}, "not plausible"),
    ({"init": {"array": "parameter.9"}}, "'parameter.9' is missing"),
    ({"init": {"import": "os"}}, "not plausible"),
    ({"interaction_cst": [{"set": 3}]}, "not plausible"),
    ({"class_weight": [1, 2]}, "pairs of a label and a weight"),
    ({"class_weight": [[[1], 2]]}, "pairs of a label and a weight"),
    ({"class_weight": {"a": 2}}, "not plausible"),
    ({"surprise": 1}, r"has no parameters \['surprise'\]"),
    ({"rank": [[[[[[[[[[2]]]]]]]]]]}, "not plausible"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
def test_bad_parameters(tmp_path, raw, take_apart, parameters, message):
    file = take_apart(raw)
    file.document["parameters"].update(parameters)
    refused(tmp_path, file.assemble(), message)


@pytest.mark.parametrize(
    "parameters",
    [
        {"rank": 0},
        {"init": "somewhere"},
        {"init": 5},
        {"tol": -1},
        {"interaction_cst": [[0, 9]]},
        {"class_weight": [[7, 1.0]]},
        {"class_weight": [[0, "a"]]},
        {"categorical_features": [True, False]},
        {"random_state": [1]},
    ],
)
def test_the_next_fit_checks_parameters(tmp_path, raw, take_apart, parameters):
    """Predictions do not depend on them."""
    file = take_apart(raw)
    file.document["parameters"].update(parameters)
    (tmp_path / "model").write_bytes(file.assemble())
    model = polytrain.load(tmp_path / "model")
    assert len(model.predict(X)) == len(X)
    assert repr(model)
    with pytest.raises(ValueError, match=next(iter(parameters))):
        model.fit(X, Y)


def test_parameters_of_a_later_version_keep_their_defaults(tmp_path, raw, take_apart):
    file = take_apart(raw)
    del file.document["parameters"]["tol"]
    (tmp_path / "model").write_bytes(file.assemble())
    assert polytrain.load(tmp_path / "model").tol == TensorTrainClassifier().tol


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"rank": [1, 2, 2, 1]}, "plan is not plausible"),
        ({"rank": [1, 2, 0, 2, 1]}, "plan is not plausible"),
        ({"rank": [1, 2, 2.5, 2, 1]}, "rank of the plan is 2.5"),
        ({"rank": 2}, "rank of the plan is 2"),
        ({"alpha": -1}, "alpha of the plan is -1"),
        ({"alpha": None}, "plan is not plausible"),
        ({"init": 3}, "init of the plan is 3"),
        ({"init": "nowhere"}, "init of the plan is 'nowhere'"),
        ({"solver": "magic"}, "solver of the plan is 'magic'"),
        ({"max_sweeps": 1.5}, "max_sweeps of the plan is 1.5"),
        ({"joint": 1}, "joint of the plan is 1"),
        ({"note": 1}, "plan is .* not plausible"),
    ],
)
def test_bad_plans(tmp_path, raw, take_apart, entries, message):
    file = take_apart(raw)
    file.document["plan"].update(entries)
    refused(tmp_path, file.assemble(), message)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cores", lambda values: values * NAN, "cores contain NaN"),
        ("ranks", lambda values: -values, "ranks are not plausible"),
        ("ranks", lambda values: values * 2, "ranks are not plausible"),
        ("ranks", lambda values: np.add(values, [[0, 2**62, 2**62, 0, 0]]), "ranks are not plausible"),
        ("ranks", lambda values: np.add(values, [[0, 1, 1, 0, 0]]), "maps and ranks ask for"),
        ("map.polynomial.range", lambda values: values[:, ::-1], "upside down"),
        ("map.polynomial.range", lambda values: values * [1, NAN], "not finite"),
        ("map.polynomial.n", lambda values: values + 1, "maps and ranks ask for"),
        ("map.polynomial.n", lambda values: values - 2, "a polynomial map has 2 to 1024 functions, not 1"),
        ("columns.polynomial", lambda values: values + 1, "every column should have one map"),
        ("columns.polynomial", lambda values: values * 0, "every column should have one map"),
        ("size", lambda values: 2 * values, "neither shifted nor scaled"),
        ("size", lambda values: values * NAN, "should be finite"),
        ("shift", lambda values: values + 1, "neither shifted nor scaled"),
        ("classes", lambda values: values[::-1], "in order and different"),
        ("ranks", lambda values: values.astype(np.int16), "should not have dtype int16"),
        ("history.train", lambda values: values + 5, "trains that do not exist"),
        ("history.sweep", lambda values: -values, "negative counts"),
        ("history.ranks", lambda values: values - 7, "negative counts"),
        ("history.loss", lambda values: values * NAN, "negative counts, or numbers that are not finite"),
        ("history.seconds", lambda values: values + np.inf, "numbers that are not finite"),
        ("cores", lambda values: np.full_like(values, 1e300), "too large for floats"),
    ],
)
def test_bad_arrays(tmp_path, raw, name, change, message):
    parts = ModelParts(raw)
    values = parts.arrays[name]
    parts.arrays[name] = np.ascontiguousarray(change(values.astype(f"{values.dtype.kind}8")))
    refused(tmp_path, parts.assemble(), message)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_padding_to_more_than_the_file_is_refused(tmp_path):
    """One wide train among many narrow ones would be padded to gigabytes when stacked."""
    n_classes, rank = 200, 500
    rows = np.tile(np.linspace(-1, 1, n_classes), 3)
    model = power_classifier(rank=1, max_sweeps=0).fit(np.stack([rows] * 4, axis=1), np.tile(range(n_classes), 3))
    model.save(tmp_path / "model")
    parts = ModelParts((tmp_path / "model").read_bytes())
    parts.arrays["ranks"][0] = 1, rank, rank, rank, 1
    parts.arrays["cores"] = np.zeros((n_classes - 1) * 12 + 3 * (2 * rank + 2 * rank * rank))
    refused(tmp_path, parts.assemble(), r"stacking them takes 3.01e\+08 numbers")


def test_regressors(tmp_path, take_apart):
    power_regressor(rank=2, max_sweeps=1).fit(X, Y).save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    for name, value, message in (
        ("parameters", {"decision": "one-vs-rest"}, "TensorTrainRegressor has no parameters"),
        ("decision", "one-vs-rest", "both a decision and classes"),
        ("classes", {"dtype": "object", "labels": ["a", "b"]}, "both a decision and classes"),
        ("calibrated", True, "a regressor is not calibrated"),
    ):
        file = take_apart(content)
        file.document[name] = value
        refused(tmp_path, file.assemble(), message)
    for name, value in (("size", 0.0), ("size", -1.0), ("shift", NAN)):
        parts = ModelParts(content)
        parts.arrays[name] = np.array([value])
        refused(tmp_path, parts.assemble(), "finite, and the size positive")


def test_nothing_but_the_model_is_left_behind(tmp_path, raw):
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    (tmp_path / "model").write_bytes(raw)
    polytrain.load(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
