"""The C source compiles without warnings and says what the estimator says."""

import ctypes
import shutil
import subprocess
import sys

import numpy as np
import pytest
from configurations import CONFIGURATIONS, GAPS, fit_configuration, model_with_gaps
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from default_models import NAMES as DEFAULT_MODELS
from default_models import default_case
from polytrain import TensorTrainRegressor
from polytrain.export import to_c
from power_models import power_classifier, power_regressor

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Wmissing-prototypes", "-Werror"]
FAST = {"rank": 3, "max_sweeps": 2, "random_state": 0}
# Numbers of the C file have 30 bits of the largest with the same unit, and 24 for float.
DOUBLE, FLOAT = 1e-6, 1e-4


def assert_close(found, expected, tolerance=DOUBLE):
    """Compare numbers with the largest of them."""
    assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


class Compiled:
    """A model in a shared library."""

    def __init__(self, model, folder, name="model", dtype="float64"):
        source, library = folder / f"{name}.c", folder / f"{name}.so"
        text = to_c(model, name, dtype=dtype)
        source.write_text(text)
        # Not linked with the mathematics library unless the source asks for it; what is missing would not load.
        maths = ["-lm"] if "math.h" in text else ["-Wl,-z,defs"] if sys.platform == "linux" else []
        done = subprocess.run(
            [COMPILER, *FLAGS, "-O2", "-shared", "-fPIC", "-o", library, source, *maths],
            check=False,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
        self._library, self._name, self._dtype = ctypes.CDLL(str(library)), name, np.dtype(dtype)
        self._real = {"float64": ctypes.c_double, "float32": ctypes.c_float}[dtype]

    def _function(self, name):
        return getattr(self._library, f"{self._name}_{name}")

    def _rows(self, X):
        pointer = ctypes.POINTER(self._real)
        return [row.ctypes.data_as(pointer) for row in np.ascontiguousarray(X, dtype=self._dtype)], pointer

    def predict(self, X, regression=False):
        function = self._function("predict")
        function.restype = self._real if regression else ctypes.c_int
        return np.array([function(row) for row in self._rows(X)[0]])

    def fill(self, name, X, n_numbers):
        rows, pointer = self._rows(X)
        result = np.full((len(rows), n_numbers), np.nan, dtype=self._dtype)
        for row, out in zip(rows, result, strict=True):
            self._function(name)(row, out.ctypes.data_as(pointer))
        return result

    def class_names(self, n_classes):
        names = (ctypes.c_char_p * n_classes).in_dll(self._library, f"{self._name}_class_names")
        return [name.decode() for name in names]


def check_classifier(model, folder, rows, tolerance=DOUBLE, **options):
    compiled = Compiled(model, folder, **options)
    n_classes = len(model.classes_)
    scores = model.decision_function(rows)
    found = compiled.fill("scores", rows, 1 if n_classes == 2 else n_classes)
    assert_close(found, scores.reshape(len(rows), -1), tolerance)
    assert_array_equal(model.classes_[compiled.predict(rows)], model.predict(rows))
    assert compiled.class_names(n_classes) == [str(label) for label in model.classes_]
    if hasattr(model, "predict_proba"):
        probabilities = compiled.fill("probabilities", rows, n_classes)
        largest = max(1.0, np.abs(scores).max())  # log-odds: errors are parts of the largest
        assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=tolerance * largest)
    return compiled


@needs_compiler
@pytest.mark.parametrize(("loss", "decision", "basis", "n_classes"), CONFIGURATIONS)
def test_classifiers(tmp_path, table, loss, decision, basis, n_classes):
    model, rows = fit_configuration(table, loss, decision, basis, n_classes, **FAST)
    check_classifier(model, tmp_path, rows)


@needs_compiler
@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
def test_regressors(tmp_path, table, basis):
    X, rows, _, target = table
    model = power_regressor(degree=(1, 4, 2, 3), basis=basis, **FAST).fit(X, 1e3 + 100 * target)
    found = Compiled(model, tmp_path, basis).predict(rows, regression=True)
    assert_close(found, model.predict(rows))


@needs_compiler
@pytest.mark.parametrize("loss", ["poisson", "gamma", "quantile", "huber"])
def test_links_of_other_losses(tmp_path, table, loss):
    X, rows, _, target = table
    model = power_regressor(loss=loss, **FAST).fit(X, np.exp(target / np.abs(target).max()))
    found = Compiled(model, tmp_path, loss).predict(rows, regression=True)
    assert_allclose(found, model.predict(rows), rtol=DOUBLE)


@needs_compiler
def test_one_feature_and_ranks_that_differ(tmp_path, table):
    X, rows, labels, target = table
    model = power_regressor(degree=1).fit(X[:, :1], target)
    found = Compiled(model, tmp_path, "line").predict(rows[:, :1], regression=True)
    assert_close(found, model.predict(rows[:, :1]))
    model = power_classifier(degree=(1, 3, 2, 5), rank=(2, 5, 3), max_sweeps=1)
    model.fit(X, labels)
    model.model_ = model.model_.with_trains(
        [train.round(max_rank=1 + k).cores for k, train in enumerate(model.trains_)]
    )
    check_classifier(model, tmp_path, rows)


@needs_compiler
@pytest.mark.parametrize("n_features", [1, 2, 4])
@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre", "smooth", "spline", "category"])
def test_regressors_of_rank_one(tmp_path, table, basis, n_features):
    X, rows, _, target = table
    X, rows = X[:, :n_features].round(1), rows[:, :n_features].round(1)
    for degree in (1, 2) if basis in ("power", "chebyshev", "legendre") else (2,):
        for rank in (1, 2):
            model = power_regressor(basis=basis, degree=degree, rank=rank, max_sweeps=1).fit(X, target)
            found = Compiled(model, tmp_path, f"model{degree}{rank}").predict(rows, regression=True)
            assert_close(found, model.predict(rows))


@needs_compiler
@pytest.mark.parametrize("decision", ["one-vs-rest", "one-vs-one", "binary-code"])
@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_classifiers_of_rank_one(tmp_path, table, decision, n_classes):
    X, rows, _, target = table
    labels = np.argsort(np.argsort(target)) * n_classes // len(target)
    for loss in ("logistic", "squared"):
        model = power_classifier(loss=loss, decision=decision, rank=1, degree=1, max_sweeps=1, random_state=0)
        check_classifier(model.fit(X, labels), tmp_path, rows, name=loss)


@needs_compiler
def test_extreme_scores(tmp_path, table):
    X, rows, labels, _ = table
    for k, decision in enumerate(("one-vs-rest", "one-vs-one", "binary-code")):
        model = power_classifier(decision=decision, **FAST).fit(X, labels)
        model.model_ = model.model_.with_trains([(1e4 * train).cores for train in model.trains_])
        check_classifier(model, tmp_path, rows, name=f"model{k}")


@needs_compiler
def test_several_outputs(tmp_path, table):
    X, rows, _, target = table
    y = np.stack([target, 1e3 - 5 * X[:, 0]], axis=1)
    model = power_regressor(basis=["power", "legendre", "power", "chebyshev"], degree=3, **FAST).fit(X, y)
    found = Compiled(model, tmp_path).fill("predict", rows, 2)
    assert_close(found, model.predict(rows))


@needs_compiler
def test_labels_may_be_called_as_the_placeholders_are(tmp_path, table):
    X, rows, labels, _ = table
    names = np.array(["NAME", "REAL", "code", "x", "main"])
    check_classifier(power_classifier(**FAST).fit(X, names[labels]), tmp_path, rows)


@needs_compiler
def test_float(tmp_path, table):
    X, rows, labels, target = table
    for k, decision in enumerate(("one-vs-rest", "one-vs-one", "binary-code")):
        model = power_classifier(decision=decision, **FAST).fit(X.astype(np.float32), labels)
        check_classifier(model, tmp_path, rows.astype(np.float32), tolerance=FLOAT, name=f"model{k}", dtype="float32")
    model = power_regressor(**FAST).fit(X, target)
    found = Compiled(model, tmp_path, "numbers", dtype="float32").predict(rows, regression=True)
    assert_close(found, model.predict(rows), FLOAT)


@needs_compiler
@pytest.mark.parametrize("bases", GAPS.values(), ids=GAPS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", DOUBLE), ("float32", FLOAT)])
def test_missing_values(tmp_path, bases, dtype, tolerance):
    model, rows = model_with_gaps(bases)
    rows = rows.astype(dtype)
    found = Compiled(model, tmp_path, dtype=dtype).predict(rows, regression=True)
    expected = model.model_.predict(rows)
    assert np.isfinite(expected).all()
    assert np.ptp(expected) > 0.1
    assert_close(found, expected, tolerance)


@needs_compiler
@pytest.mark.parametrize("name", DEFAULT_MODELS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", DOUBLE), ("float32", 1e-3)])
def test_default_models(tmp_path, name, dtype, tolerance):
    """The features that a frame becomes are what the source takes."""
    model, rows, features = default_case(name)
    fitted, compiled = model.model_, Compiled(model, tmp_path, dtype=dtype)
    if fitted.classes is None:
        found = compiled.predict(features, regression=True)
        assert_close(found, model.predict(rows), tolerance)
        return
    n_classes = len(fitted.classes)
    scores = model.decision_function(rows).reshape(len(rows), -1)
    assert_close(compiled.fill("scores", features, scores.shape[1]), scores, tolerance)
    probabilities = compiled.fill("probabilities", features, n_classes)
    assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=tolerance * max(1.0, np.abs(scores).max()))
    assert_array_equal(fitted.classes[compiled.predict(features)], model.predict(rows))


def test_features_of_a_frame_are_listed():
    model = default_case("frame").model
    listed = to_c(model).partition("*/")[0]
    names = [line.partition("]  ")[2].rpartition(": ")[0] for line in listed.splitlines() if line.startswith("   x[")]
    assert names == list(model.model_.feature_names)
    assert "0: blue \n" in listed
    assert '2: say "* /"' in listed
    assert "x[0]  " not in to_c(default_case("gaps").model)


@needs_compiler
def test_labels_that_are_hard_to_write(tmp_path, table):
    X, rows, labels, _ = table
    names = np.array(['say "hi"', "back\\slash", "??/ trigraph", "ä\N{GRINNING FACE} NAME_REAL", "line\nend 12"])
    check_classifier(power_classifier(**FAST).fit(X, names[labels]), tmp_path, rows)


@needs_compiler
def test_two_models_in_one_program(tmp_path, table):
    """Only the public names are visible."""
    X, _, labels, target = table
    model = power_classifier(**FAST)
    (tmp_path / "one.c").write_text(to_c(model.fit(X, labels), "one"))
    (tmp_path / "two.c").write_text(to_c(power_regressor(**FAST).fit(X, target), "two"))
    (tmp_path / "main.c").write_text(
        "int one_predict(const double *x);\ndouble two_predict(const double *x);\nint main(void)\n{\n"
        "    const double x[4] = {0};\n    return one_predict(x) < 0 || two_predict(x) > 1e9;\n}\n"
    )
    files = [tmp_path / name for name in ("main.c", "one.c", "two.c")]
    subprocess.run([COMPILER, "-std=c99", "-Wall", "-o", tmp_path / "main", *files, "-lm"], check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


def numbers_of(source, name):
    """Return the array of this name in a C file."""
    body = source.split(f" {name}[")[1].split("{")[1].split("}")[0]
    return np.array([float.fromhex(text) if "x" in text else float(text) for text in body.split(",")])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_have_as_many_bits_as_are_promised(table, dtype):
    X, _, labels, _ = table
    model = power_classifier(rank=2, max_sweeps=1).fit(X, labels)
    source = to_c(model, dtype=dtype).replace("f,", ",").replace("f\n", "\n")
    found, units = numbers_of(source, "cores"), iter(numbers_of(source, "core_units").tolist())
    for core in (core for train in model.model_.cores for core in train):
        integers, found = found[: core.size].reshape(core.shape), found[core.size :]
        for function in range(core.shape[1]):
            unit, largest = next(units), np.abs(core[:, function]).max()
            assert_allclose(unit * integers[:, function], core[:, function], rtol=0, atol=unit / 2)
            bits = 30 if dtype == "float64" else 24
            assert largest == 0 or unit * 2 ** (bits - 1) <= largest < unit * 2**bits
    assert not found.size
    assert next(units, None) is None


def test_equal_columns_share_their_tables(table):
    X, _, _, target = table
    sources = [
        to_c(TensorTrainRegressor(basis=basis, rank=1, max_sweeps=1, random_state=0).fit(columns.round(1), target))
        for basis in ("smooth", "spline")
        for columns in (X[:, [0, 1]], X[:, [0, 1, 0, 1]])
    ]
    for one, two in (sources[:2], sources[2:]):
        for name in ("table_points", "table_functions"):
            # Sizes of the prior depend on the number of columns: units may differ, integers by a factor.
            assert len(numbers_of(one, name)) == len(numbers_of(two, name))


def test_bad_arguments(table):
    X, _, labels, target = table
    with pytest.raises(NotFittedError):
        to_c(TensorTrainRegressor())
    model = power_regressor(rank=2).fit(X, 1e100 * target)
    for name in ("2nd", "a-b", "int", "", "ä", None):
        with pytest.raises(ValueError, match="name must be a C identifier"):
            to_c(model, name)
    with pytest.raises(ValueError, match="dtype must be one of"):
        to_c(model, dtype="half")
    with pytest.raises(ValueError, match=r"do not fit float; use dtype='float64'"):
        to_c(model, dtype="float32")
    with pytest.raises(TypeError, match="pass the last step"):
        to_c(make_pipeline(StandardScaler(), power_classifier(rank=2)).fit(X, labels))
