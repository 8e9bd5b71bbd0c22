"""The table in a model file: written, read back, and refused where it is wrong."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import polytrain
from polytrain import ModelFileError, TensorTrainClassifier, TensorTrainRegressor
from polytrain.tables import CategoryColumn, NumberColumn, Preparation, TableModel, Target, load_table_model

sys.path.append(str(Path(__file__).parents[1] / "models"))
from comparison import assert_same, seal

DATA = Path(__file__).parents[1] / "data"
COLUMNS = (NumberColumn("age", 0, 40.5, True), CategoryColumn("job", 2, ("cook", "smith"), True))
PREPARATION = Preparation(COLUMNS, Target("rich", 1, True), True, 3, ("?", "none"))
# What the model of tests/data/format2.polytrain said when it was written.
DECISIONS = [-1.8551573548909444, 4.075306944020785, 0.8373078643380509]
TRAINING = {"file": "people.csv", "rows": 20, "cv_error": 0.25, "note": None}


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(20, 60, 20), *rng.integers(0, 2, (4, 20))])
    estimator = TensorTrainClassifier(rank=2, max_sweeps=1, random_state=0).fit(X, np.where(X[:, 0] > 40, "yes", "no"))
    return TableModel(estimator, PREPARATION, TRAINING)


def test_round_trip(model, tmp_path):
    model.save(tmp_path / "m")
    again = load_table_model(tmp_path / "m")
    assert (again.preparation, again.training) == (PREPARATION, TRAINING)
    assert_same(again.estimator, model.estimator)
    # Without its table the estimator has the names of the features.
    plain = polytrain.load(tmp_path / "m")
    assert plain.feature_names_in_.tolist() == PREPARATION.feature_names
    again.save(tmp_path / "m2")
    assert (tmp_path / "m2").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_model_without_table_says_so(model, tmp_path):
    model.estimator.save(tmp_path / "plain")
    assert load_table_model(tmp_path / "plain").preparation.target is None


def test_a_model_that_does_not_fit_is_not_written(model, tmp_path):
    narrow = Preparation(COLUMNS[:1], PREPARATION.target, True, 3, ())
    with pytest.raises(ModelFileError, match="features of the table are not those of the model"):
        TableModel(model.estimator, narrow, {}).save(tmp_path / "m")
    number = TensorTrainRegressor(max_sweeps=0).fit(np.eye(5), np.arange(5.0))
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
        (set_entry("columns", 0, "fill", None), "no number for missing values"),
        (set_entry("columns", 0, "fill", 10**400), "no number for missing values"),
        (set_entry("columns", 0, "marked", False), "features of the table are not those of the model"),
        (set_entry("columns", 1, "categories", ["cook", "cook"]), "names something twice"),
        (set_entry("columns", 1, "categories", ["cook", 1]), "list of text"),
        (set_entry("columns", 1, "categories", ["cook"]), "features of the table are not those of the model"),
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


def test_format_2():
    """A file written once must be read for ever."""
    model = load_table_model(DATA / "format2.polytrain")
    assert model.preparation == PREPARATION
    assert model.training == TRAINING
    rows = np.array([[30.0, 0, 1, 0, 0], [50.0, 0, 0, 1, 0], [40.5, 1, 0, 0, 1]])
    assert model.estimator.predict(rows).tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(model.estimator.decision_function(rows), DECISIONS, rtol=1e-12)
