"""Small files that would take much memory or time, and finite numbers that would not give finite scores."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from bounds import load_within_bounds
from hostile import ModelParts

import polytrain
from polytrain import ModelFileError, TensorTrain, TensorTrainRegressor
from polytrain.decisions import OneVsOne
from polytrain.estimators.classifier import _class_weights
from polytrain.maps import InterpolatedMap, MapList, PolynomialMap
from polytrain.models.fitted_state import overflows
from polytrain.tables.cells import RowReader
from polytrain.tables.layout import Layout
from power_models import power_classifier, power_regressor

LINE = np.linspace(-1, 1, 40).reshape(-1, 1)


@pytest.fixture
def line(tmp_path):
    """A straight line, without a history."""
    power_regressor(degree=1, max_sweeps=0).fit(LINE, LINE[:, 0]).save(tmp_path / "line")
    return ModelParts((tmp_path / "line").read_bytes())


@pytest.fixture
def sides(tmp_path):
    """A classifier of one feature, without a history."""
    power_classifier(degree=1, max_sweeps=0).fit(LINE, (LINE[:, 0] > 0).astype(int)).save(tmp_path / "sides")
    return ModelParts((tmp_path / "sides").read_bytes())


@pytest.fixture
def refused(tmp_path):
    def check(parts, message):
        (tmp_path / "model").write_bytes(parts.assemble())
        assert load_within_bounds(tmp_path / "model") is None
        with pytest.raises(ModelFileError, match=message):
            polytrain.load(tmp_path / "model")

    return check


class CountedText(str):
    """Text that counts how often it is compared."""

    __hash__ = str.__hash__
    n_compared = 0

    def __eq__(self, other):
        CountedText.n_compared += 1
        return str.__eq__(self, other)


@pytest.fixture
def comparisons():
    CountedText.n_compared = 0
    return lambda: CountedText.n_compared


def test_a_history_of_nothing(line, refused):
    line.arrays["parameter.0"] = np.zeros(300_000, dtype=np.uint8)  # no length may exceed that of the file
    line.arrays["history.ranks"] = np.zeros((300_000, 0), dtype=np.int64)
    refused(line, "lines without a number")


def test_a_long_history(line, tmp_path):
    count = 50_000
    whole = {"train": 0, "sweep": 1, "n_rows": 40, "ranks": [1, 1]}
    parts = {"loss": 1.0, "objective": 1.0, "decrease": 0.0, "seconds": 0.0}
    for name, value in {**whole, **parts}.items():
        dtype = np.float64 if name in parts else np.int64
        line.arrays[f"history.{name}"] = np.array([value] * count, dtype=dtype)
    (tmp_path / "model").write_bytes(line.assemble())
    history = load_within_bounds(tmp_path / "model").history_
    assert len(history) == count
    assert history[-1]["ranks"] == (1, 1)


def test_losses_of_huge_targets_are_finite():
    model = power_regressor(max_sweeps=1).fit(LINE, 1e139 * np.abs(LINE[:, 0]))
    assert 1e270 < model.history_[0]["loss"] < np.inf
    with pytest.raises(ValueError, match="1e\\+200"):
        power_regressor(max_sweeps=1).fit(LINE, 1e200 * np.abs(LINE[:, 0]))


def test_class_weights_of_many_classes(comparisons):
    labels = [f"{k:04}" for k in range(2000)]
    classes = np.array([CountedText(label) for label in labels], dtype=object)
    assert (_class_weights(dict.fromkeys(labels, 2.0), classes, np.ones(2000)) == 1.0).all()
    assert comparisons() < 20_000


def test_many_missing_texts(comparisons):
    missing = tuple(CountedText(f"{k}?") for k in range(2000))
    model = TensorTrainRegressor(rank=1, max_sweeps=0).fit(np.array([[1.0, "x"], [2.0, "z"]], dtype=object), [0.0, 1.0])
    block = pandas.DataFrame({"a": ["1"] * 100, "b": ["x"] * 99 + ["7?"]})
    layout = Layout(("a", "b"), (), False, {}, missing)
    table = SimpleNamespace(delimiter=",", label="table", names=["a", "b"], named=False)
    frame = RowReader(layout, model, table, (), None, print).read(block)
    assert np.isnan(model.model_.columns.encode(frame)).sum() == 1
    assert comparisons() < 2000


@pytest.mark.slow
def test_many_pairs_of_classes(sides, tmp_path):
    """Neither loading nor predicting forms a matrix of all pairs and all classes, here of 100 MB."""
    n_classes = 300
    n_trains = n_classes * (n_classes - 1) // 2
    sides.document["decision"] = sides.document["parameters"]["decision"] = "one-vs-one"
    sides.document["classes"] = {"dtype": "int64", "labels": None}
    rng = np.random.default_rng(0)
    sides.arrays |= {
        "classes": np.arange(n_classes),
        "cores": rng.normal(size=2 * n_trains),
        "ranks": np.ones((n_trains, 2), dtype=np.int64),
        "shift": np.zeros(n_trains),
        "size": np.ones(n_trains),
    }
    (tmp_path / "model").write_bytes(sides.assemble())
    model = load_within_bounds(tmp_path / "model")
    tracemalloc.start()
    model.predict(LINE[:1])
    model.predict_proba(LINE[:1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000
    scores = model.model_.scores(LINE[:5])
    code = OneVsOne().code(n_classes)
    votes = 1.0 * (scores > 0).T @ (code > 0) + 1.0 * (scores <= 0).T @ (code < 0)
    assert (np.round(model.decision_function(LINE[:5])) == votes).all()


@pytest.mark.parametrize("n", [200_000, 1025, 1])
def test_too_many_functions_of_a_polynomial(line, refused, n):
    line.arrays |= {"cores": np.ones(n), "map.polynomial.n": np.array([n])}
    refused(line, "a polynomial map has 2 to 1024 functions")


def test_more_functions_than_points(line, refused):
    n = 65_536
    line.document["maps"] = {"category": ["category"]}
    for name in ("map.polynomial.n", "map.polynomial.range", "columns.polynomial"):
        del line.arrays[name]
    line.arrays |= {"cores": np.ones(n), "map.category.size": np.array([[n, 1]]), "map.category.table": np.ones(n)}
    line.arrays |= {"map.category.points": np.zeros(1), "map.category.weights": np.ones(1)}
    line.arrays["map.category.computed"] = np.zeros(1, dtype=bool)
    line.arrays["columns.category"] = np.zeros(1, dtype=np.int64)
    refused(line, "more functions than points")


def test_numbers_with_one_hash(sides, refused):
    """To put a few ten thousand of these into a dict takes minutes."""
    alike = [k * (2**61 - 1) for k in range(200)]
    sides.document["parameters"]["class_weight"] = [[k, 1.0] for k in alike]
    refused(sides, "class_weight has 200 values with the same hash")


def test_levels_with_one_hash(tmp_path, refused):
    rows = np.repeat([[0], [1]], 20, axis=0)
    model = power_regressor(basis="category", categorical_features=[0]).fit(rows, rows[:, 0] * 1.0)
    model.save(tmp_path / "levels")
    parts = ModelParts((tmp_path / "levels").read_bytes())
    parts.document["columns"][0]["levels"] = [k * (2**61 - 1) for k in range(200)]
    refused(parts, "the list of the levels of column 'x0' has 200 values with the same hash")


def test_labels_much_narrower_than_their_type(sides, refused):
    """Every predicted label would be as wide."""
    sides.arrays.pop("classes")
    sides.document["classes"] = {"dtype": "str9999", "labels": ["a", "b"]}
    refused(sides, "do not fit the type 'str9999'")


def test_names_that_are_no_text(line, refused):
    line.document["feature_names"] = ["\udfff"]
    refused(line, "half of a character")
    model = power_regressor(max_sweeps=0).fit(LINE, LINE[:, 0])
    model.model_ = replace(model.model_, feature_names=["\ud800"])
    with pytest.raises(ModelFileError, match=r"cannot be stored: a text holds '.ud800', which is half of a character"):
        model.save("model")


def test_functions_that_are_too_large(tmp_path, refused):
    power_regressor(basis="spline", max_sweeps=0).fit(LINE, LINE[:, 0]).save(tmp_path / "spline")
    parts = ModelParts((tmp_path / "spline").read_bytes())
    parts.arrays["map.table.table"][-1] = 1e35
    refused(parts, r"should not exceed 1e\+30")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("weights", lambda values: -values, "points or weights of the maps are not plausible"),
        ("weights", lambda values: values * 0, "do not sum to 1"),
        ("points", lambda values: values[::-1], "points or weights of the maps are not plausible"),
        ("table", lambda values: np.full_like(values, np.nan), "NaN or infinity"),
        ("table", lambda values: values + 1, "functions of the maps are not plausible"),
        ("computed", lambda values: ~values, "missing, or has a wrong type or shape"),
        ("size", lambda values: values + np.array([[8, 0]]), "wrong type or shape"),
    ],
)
def test_functions_that_do_not_follow_from_the_points(tmp_path, refused, name, change, message):
    TensorTrainRegressor(basis="smooth", rank=1, max_sweeps=0).fit(LINE, LINE[:, 0]).save(tmp_path / "smooth")
    parts = ModelParts((tmp_path / "smooth").read_bytes())
    parts.arrays[f"map.table.{name}"] = change(parts.arrays[f"map.table.{name}"])
    if name == "size":  # with factors for functions that there are not
        refused(parts, message)
        n = int(parts.arrays["map.table.size"][0, 0])
        parts.arrays["map.table.table"], parts.arrays["map.table.missing"] = np.ones(n), np.eye(1, n)[0]
        message = "do not follow from their points"
    refused(parts, message)


def test_levels_have_no_functions_that_follow_from_them(tmp_path, refused):
    rows = np.round(LINE)
    TensorTrainRegressor(basis="category", rank=1, max_sweeps=0).fit(rows, rows[:, 0]).save(tmp_path / "levels")
    parts = ModelParts((tmp_path / "levels").read_bytes())
    parts.arrays["map.category.computed"][:] = True
    parts.arrays["map.category.table"] = np.ones(int(parts.arrays["map.category.size"][0, 0]))
    refused(parts, "do not follow from their points")


def test_functions_that_take_long_to_compute_are_few(tmp_path, refused):
    rows = np.linspace(-1, 1, 128).reshape(-1, 1)
    TensorTrainRegressor(basis="spline", rank=1, max_sweeps=0).fit(rows, rows[:, 0]).save(tmp_path / "spline")
    for n_columns in (512, 513):
        parts = ModelParts((tmp_path / "spline").read_bytes())
        for name in [name for name in parts.arrays if name.startswith("map.table.") or name == "cores"]:
            parts.arrays[name] = np.concatenate([parts.arrays[name]] * n_columns)
        for name in [name for name in parts.arrays if name.startswith("uncertainty.")]:
            del parts.arrays[name]
        parts.arrays["ranks"] = np.ones((1, n_columns + 1), dtype=np.int64)
        parts.arrays["columns.table"] = np.arange(n_columns)
        parts.document["maps"]["table"] *= n_columns
        parts.document["plan"]["rank"] = [1] * (n_columns + 1)
        if n_columns == 512:
            (tmp_path / "many").write_bytes(parts.assemble())
            assert load_within_bounds(tmp_path / "many").n_features_in_ == n_columns
        else:
            refused(parts, "sizes of the maps are not plausible")


def test_labels_beyond_their_type(sides, refused):
    sides.document["classes"] = {"dtype": "float32", "labels": None}
    sides.arrays["classes"] = np.array([0.0, 1e300])
    refused(sides, "do not fit the type float32")


# --- overflow ---------------------------------------------------------------------------------------------------------

UNIT = {"size": np.ones(1), "shift": np.zeros(1), "is_classifier": True}


def rank_one(*factors):
    return [[np.array([0.0, factor]).reshape(1, 2, 1) for factor in factors]]


@pytest.mark.parametrize(
    ("factors", "ends", "answer"),
    [
        ((1e150, 1e150), {}, False),
        ((1e200, 1e200), {}, True),
        ((1e200, 1e200, 1e-300), {}, True),  # on the way
        ((1e200, 1e-300, 1e200), {}, False),
        ((1e302,), {}, True),  # sums of such scores might overflow
        ((1e302,), {"is_classifier": False}, False),
        ((1e10,), {"is_classifier": False, "size": np.array([1e297])}, False),
        ((1e10,), {"is_classifier": False, "size": np.array([1e299])}, True),
        ((0.0, 1e300, 1e300), {}, False),  # nothing reaches them
        ((1.0,), {"shift": np.array([-1e305])}, True),
        ((1.0,), {"is_classifier": False, "shift": np.array([-1e305])}, False),
    ],
)
def test_overflow(factors, ends, answer):
    maps = MapList([PolynomialMap("power", 2, 0.0, 1.0)] * len(factors))
    assert overflows(maps, rank_one(*factors), **{**UNIT, **ends}) is answer


def test_overflow_where_a_value_is_missing():
    table = np.array([[1.0, 1.0], [0.0, 0.0]])
    maps = MapList([InterpolatedMap(np.arange(2.0), np.full(2, 0.5), table, np.array([1.0, 1e30]), 0.1, "spline")] * 2)
    assert not overflows(maps, rank_one(1e120, 1e120), **UNIT)
    assert overflows(maps, rank_one(1e125, 1e125), **UNIT)


def test_trains_of_very_many_columns_are_not_suspected():
    """Learned cores are orthogonal. Where all columns conspire, their functions alone overflow; no row does that."""
    for n_columns in (500, 5000):
        train = TensorTrain.random((3,) * n_columns, 6, 0).orthogonalize(n_columns // 2)
        for low, high in ((-1.0, 1.0), (-np.inf, np.inf)):
            maps = MapList([PolynomialMap("chebyshev", 3, low, high)] * n_columns)
            assert not overflows(maps, [train.cores], **UNIT)


def test_a_file_whose_scores_overflow(tmp_path, refused):
    X = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    for name, model in (
        ("classifier", power_classifier(max_sweeps=1).fit(X, X[:, 0] > 0)),
        ("regressor", power_regressor(max_sweeps=1).fit(X, X[:, :2])),
    ):
        model.save(tmp_path / name)
        parts = ModelParts((tmp_path / name).read_bytes())
        parts.arrays["cores"] = parts.arrays["cores"] * np.array(1e150)
        refused(parts, "scores of the model are too large")
