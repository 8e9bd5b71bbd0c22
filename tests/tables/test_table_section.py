"""The table in a model file: written, read back, and refused where it is wrong."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import polytrain
from polytrain import ModelFileError
from polytrain.columns.forms import Form
from polytrain.tables import TableModel, fit_table, load_table_model
from polytrain.tables.layout import Layout

sys.path.append(str(Path(__file__).parents[1] / "models"))
from comparison import assert_close, seal

TABLE = "age;rich;job;day\n" + "".join(
    f"{20 + k},5;{'no' if k < 20 else 'yes'};{('cook', 'smith', '?')[k % 3]};2024-0{k % 3 + 1}-11\n" for k in range(40)
)
NAMES = ("age", "rich", "job", "day")
FORMS = {"age": Form("number", decimal=",", thousands="."), "day": Form("date")}
MISSING = ("?", "none")
TRAINING = {"file": "people.csv", "rows": 20, "cv_error": 0.25, "note": None}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.csv"
    path.write_text(TABLE)
    settings = {"rank": 2, "alpha": 1e-3, "max_sweeps": 1}
    fitted = fit_table(path, "rich", folds=0, missing=MISSING, usual_missing=False, **settings)
    return TableModel(fitted.estimator, fitted.layout, TRAINING)


def test_round_trip(model, tmp_path):
    assert model.layout == Layout(NAMES, ("rich",), True, FORMS, MISSING)
    model.save(tmp_path / "m")
    again = load_table_model(tmp_path / "m")
    assert (again.layout, again.training) == (model.layout, TRAINING)
    assert_close(again.estimator, model.estimator)
    # Without its table the estimator has the names of the columns.
    plain = polytrain.load(tmp_path / "m")
    assert plain.feature_names_in_.tolist() == ["age", "job", "day"]
    again.save(tmp_path / "m2")
    assert (tmp_path / "m2").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_model_without_table_says_so(model, tmp_path):
    model.estimator.save(tmp_path / "plain")
    assert load_table_model(tmp_path / "plain").layout.targets == ()


def test_a_model_that_does_not_fit_is_not_written(model, tmp_path):
    narrow = Layout(NAMES[:2], ("rich",), True, {})
    with pytest.raises(ModelFileError, match="columns of the table are not those of the model"):
        TableModel(model.estimator, narrow, {}).save(tmp_path / "m")
    several = Layout((*NAMES, "more"), ("rich", "more"), True, {})
    with pytest.raises(ModelFileError, match="the table has 2 targets, and the model predicts 1"):
        TableModel(model.estimator, several, {}).save(tmp_path / "m")
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
        place = document["table"]["layout"]
        for step in path:
            place = place[step]
        place[last] = value

    return alter


def set_training(value):
    return lambda metadata, document: document["table"].update(training=value)


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (lambda metadata, document: document.pop("table"), "lacks 'table'"),
        (lambda metadata, document: document.update(table=[]), "'table' should be dict"),
        (set_entry("more", 1), "the table is .* not plausible"),
        (set_entry("named", 1), "named of layout of the table is 1"),
        (set_entry("names", []), "the table should be those of its columns"),
        (set_entry("names", 0, "job"), "names of the table should be different texts"),
        (set_entry("names", 0, None), "names of layout of the table is None"),
        (set_entry("names", 2, "old"), "columns of the table are not those of the model"),
        (set_entry("forms", []), "forms of layout of the table"),
        (set_entry("forms", "old", asdict(Form("date"))), "the forms of the table"),
        (set_entry("forms", "age", 1), "form"),
        (set_entry("forms", "age", {}), "form"),
        (set_entry("forms", "age", "kind", "colour"), "form|kind"),
        (set_entry("targets", {}), "targets of layout of the table is {}"),
        (set_entry("targets", [1]), "targets of layout of the table is 1"),
        (set_entry("targets", ["old"]), "columns of the table are not those of the model"),
        (set_entry("targets", ["job"]), "columns of the table are not those of the model"),
        (set_entry("missing", "?"), "missing of layout of the table"),
        (set_training([]), "training of the table"),
        (set_training({"rows": [1]}), "rows of training of the table"),
    ],
)
def test_bad_tables_are_refused(model, tmp_path, alter, message):
    model.save(tmp_path / "m")
    (tmp_path / "bad").write_bytes(change((tmp_path / "m").read_bytes(), alter))
    with pytest.raises(ModelFileError, match=message):
        load_table_model(tmp_path / "bad")
