"""The table in a model file: written, read back, and refused where it is wrong."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import polytrain
from polytrain import ModelFileError, TensorTrainClassifier, TensorTrainRegressor
from polytrain.cli import main
from polytrain.tables import CategoryColumn, NumberColumn, Preparation, TableModel, Target, load_table_model

sys.path.append(str(Path(__file__).parents[1] / "models"))
from comparison import assert_same, seal

DATA = Path(__file__).parents[1] / "data"
COLUMNS = (NumberColumn("age", 0), CategoryColumn("job", 2, ("cook", "smith")), NumberColumn("new", 3, has_truth=True))
PREPARATION = Preparation(COLUMNS, Target("rich", 1, True), True, 4, ("?", "none"))
# As in models of older files: missing numbers are filled and marked, and every category is a feature.
ONE_HOT = (NumberColumn("age", 0, 40.5, True), CategoryColumn("job", 2, ("cook", "smith"), True, coded=False))
OLD_PREPARATION = Preparation(ONE_HOT, Target("rich", 1, True), True, 3, ("?", "none"))
# What the model of tests/data/format2.polytrain said when it was written.
DECISIONS = [-1.8551573548909444, 4.075306944020785, 0.8373078643380509]
TRAINING = {"file": "people.csv", "rows": 20, "cv_error": 0.25, "note": None}


def fit(preparation, basis, n_features):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(20, 60, 20), *rng.integers(0, 2, (n_features - 1, 20))])
    estimator = TensorTrainClassifier(basis=basis, rank=2, alpha=1e-3, max_sweeps=1, random_state=0)
    return TableModel(estimator.fit(X, np.where(X[:, 0] > 40, "yes", "no")), preparation, TRAINING)


@pytest.fixture(scope="module")
def model():
    return fit(PREPARATION, ["spline", "category", "spline"], 3)


@pytest.fixture(scope="module")
def old_model():
    return fit(OLD_PREPARATION, "power", 5)


@pytest.mark.parametrize("name", ["model", "old_model"])
def test_round_trip(request, name, tmp_path):
    model = request.getfixturevalue(name)
    preparation = model.preparation
    model.save(tmp_path / "m")
    again = load_table_model(tmp_path / "m")
    assert (again.preparation, again.training) == (preparation, TRAINING)
    assert_same(again.estimator, model.estimator)
    # Without its table the estimator has the names of the features.
    plain = polytrain.load(tmp_path / "m")
    assert plain.feature_names_in_.tolist() == preparation.feature_names
    again.save(tmp_path / "m2")
    assert (tmp_path / "m2").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_model_without_table_says_so(model, tmp_path):
    model.estimator.save(tmp_path / "plain")
    assert load_table_model(tmp_path / "plain").preparation.target is None


def test_a_model_that_does_not_fit_is_not_written(model, tmp_path):
    narrow = Preparation(COLUMNS[:1], PREPARATION.target, True, 4, ())
    with pytest.raises(ModelFileError, match="features of the table are not those of the model"):
        TableModel(model.estimator, narrow, {}).save(tmp_path / "m")
    number = TensorTrainRegressor(max_sweeps=0).fit(np.eye(3), np.arange(3.0))
    with pytest.raises(ModelFileError, match="target of the table is not that of the model"):
        TableModel(number, PREPARATION, {}).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def change(raw, alter):
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    document = json.loads(header["__metadata__"]["model"])
    alter(header["__metadata__"], document)
    header["__metadata__"]["model"] = json.dumps(document)
    text = json.dumps(header, separators=(",", ":")).encode()
    return seal(len(text).to_bytes(8, "little") + text + raw[8 + length :])


def set_entry(*path_and_value):
    *path, last, value = path_and_value

    def alter(metadata, document):
        place = document["table"]
        for step in path:
            place = place[step]
        place[last] = value

    return alter


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (lambda metadata, document: document.pop("table"), "lacks 'table'"),
        (lambda metadata, document: document.update(table=[]), "'table' should be dict"),
        (set_entry("more", 1), "the table should have"),
        (set_entry("n_columns", 0), "number of columns is not plausible"),
        (set_entry("n_columns", True), "number of columns is not plausible"),
        (set_entry("n_columns", 2), "'job' of the table is not plausible"),
        (set_entry("named", 1), "not plausible"),
        (set_entry("columns", []), "the table has no columns"),
        (set_entry("columns", 0, "position", 1), "a column twice"),
        (set_entry("columns", 0, "name", "job"), "a column twice"),
        (set_entry("columns", 0, "name", None), "is not plausible"),
        (set_entry("columns", 0, "marked", 2), "is not plausible"),
        (set_entry("columns", 0, "marked", True), "'age' of numbers is not plausible"),
        (set_entry("columns", 0, "has_truth", 1), "'age' of numbers is not plausible"),
        (set_entry("columns", 0, "fill", "1"), "no number for missing values"),
        (set_entry("columns", 0, "fill", 10**400), "no number for missing values"),
        (set_entry("columns", 1, "categories", ["cook", "cook"]), "names something twice"),
        (set_entry("columns", 1, "categories", ["cook", 1]), "list of text"),
        (set_entry("columns", 1, "coded", False), "features of the table are not those of the model"),
        (set_entry("columns", 1, "coded", 1), "'job' of categories is not plausible"),
        (set_entry("columns", 1, "marked", True), "'job' of categories is not plausible"),
        (set_entry("columns", 1, "kind", "x"), "a column should have"),
        (set_entry("target", {}), "the target should have"),
        (set_entry("target", "is_text", False), "target of the table is not that of the model"),
        (set_entry("target", "position", -1), "is not plausible"),
        (set_entry("missing", "?"), "missing should be a list of text"),
        (set_entry("training", []), "record of the training"),
        (set_entry("training", "rows", [1]), "record of the training"),
    ],
)
def test_bad_tables_are_refused(model, tmp_path, alter, message):
    model.save(tmp_path / "m")
    (tmp_path / "bad").write_bytes(change((tmp_path / "m").read_bytes(), alter))
    with pytest.raises(ModelFileError, match=message):
        load_table_model(tmp_path / "bad")


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (set_entry("columns", 0, "fill", None), "'age' of numbers is not plausible"),
        (set_entry("columns", 0, "marked", False), "features of the table are not those of the model"),
        (set_entry("columns", 1, "coded", True), "'job' of categories is not plausible"),
        (set_entry("columns", 1, "categories", ["cook"]), "features of the table are not those of the model"),
    ],
)
def test_bad_one_hot_tables_are_refused(old_model, tmp_path, alter, message):
    test_bad_tables_are_refused(old_model, tmp_path, alter, message)


LIKE_FEATURES = (
    NumberColumn("age", 0, 40.5, True),
    NumberColumn("age is missing", 2, 0.0),
    CategoryColumn("job", 3, ("cook",), coded=False),
    NumberColumn("job=cook", 4, 0.0),
)


@pytest.mark.parametrize("stored_alike", [False, True])
def test_columns_named_like_features(tmp_path, capsys, stored_alike):
    """Names of columns stay, names that are made give way, and files that were written with both alike are read."""
    model = fit(Preparation(LIKE_FEATURES, Target("rich", 1, True), True, 5, ("?",)), "power", 5)
    names = ["age", "age is missing (2)", "age is missing", "job=cook (2)", "job=cook"]
    assert model.preparation.feature_names == names
    model.save(tmp_path / "m")
    if stored_alike:
        alike = [name.removesuffix(" (2)") for name in names]
        old = change((tmp_path / "m").read_bytes(), lambda _, d: d.update(feature_names=alike, column_names=alike))
        (tmp_path / "m").write_bytes(old)
    assert load_table_model(tmp_path / "m").preparation.feature_names == names
    rows = "".join(
        f"{20 + k},{'no' if k < 20 else 'yes'},{k % 2},{'cook' if k % 3 else ''},{k % 5}\n" for k in range(40)
    )
    (tmp_path / "t.csv").write_text("age,rich,age is missing,job,job=cook\n?,yes,1,cook,1\n" + rows)
    assert main(["explain", str(tmp_path / "m"), str(tmp_path / "t.csv"), "--terms", "30"]) == 0
    assert "age is missing (2)" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "m"), str(tmp_path / "t.csv"), "--out", str(tmp_path / "r.html")]) == 0
    assert main(["export", str(tmp_path / "m"), "--to", "c", "--out", str(tmp_path / "m.c")]) == 0
    assert "x[1]  age is missing (2): 1 or 0" in (tmp_path / "m.c").read_text()


def read(model, path, text):
    """Features of a table."""
    path.write_text(text)
    with model.open(path) as table:
        return np.concatenate([block.X for block in model.blocks(table)])


def test_format_2(tmp_path):
    """A file written once must be read for ever."""
    model = load_table_model(DATA / "format2.polytrain")
    assert model.preparation == OLD_PREPARATION
    assert model.training == TRAINING
    rows = np.array([[30.0, 0, 1, 0, 0], [50.0, 0, 0, 1, 0], [40.5, 1, 0, 0, 1]])
    assert model.estimator.predict(rows).tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(model.estimator.decision_function(rows), DECISIONS, rtol=1e-12)
    np.testing.assert_array_equal(read(model, tmp_path / "a.csv", "job,age\ncook,30\nsmith,50\n?,none\n"), rows)


def test_format_3(tmp_path):
    """The same for a file of ``polytrain fit``; the probabilities are those of ``polytrain predict`` at its time."""
    model = load_table_model(DATA / "format3-table.polytrain")
    names = ["age", "age is missing", "job=clerk", "job=cook", "job=smith", "job is missing"]
    assert model.preparation.feature_names == names
    assert model.preparation.is_one_hot
    rows = read(model, tmp_path / "a.csv", "job,age\ncook,30\nsmith,50\n?,\nclerk,45\n")
    found = model.estimator.predict_proba(rows)[:, 1]
    expected = [0.019595348701450025, 0.9779622893742955, 0.49819141245291165, 0.5785747595598567]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    model.save(tmp_path / "again")
    assert load_table_model(tmp_path / "again").preparation == model.preparation
