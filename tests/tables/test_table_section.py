"""The table in a model file: written, read back, and refused where it is wrong."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import polytrain
from polytrain import ModelFileError
from polytrain.cli import main
from polytrain.columns import CategoryColumn, FilledColumn, NumberColumn, OneHotColumn
from polytrain.tables import FileColumn, Layout, TableModel, fit_table, load_table_model
from polytrain.tables.files import Form

sys.path.append(str(Path(__file__).parents[1] / "models"))
from comparison import assert_same, seal

DATA = Path(__file__).parents[1] / "data"
TABLE = "age;rich;job;day\n" + "".join(
    f"{20 + k},5;{'no' if k < 20 else 'yes'};{('cook', 'smith', '?')[k % 3]};2024-0{k % 3 + 1}-11\n" for k in range(40)
)
COLUMNS = (
    FileColumn("age", 0, Form("number", decimal=",", thousands=".")),
    FileColumn("job", 2, Form("text")),
    FileColumn("day", 3, Form("date")),
)
TARGET = FileColumn("rich", 1, Form("text"))
MISSING = ("?", "none")
# What the model of tests/data/format2.polytrain said when it was written.
DECISIONS = [-1.8551573548909444, 4.075306944020785, 0.8373078643380509]
TRAINING = {"file": "people.csv", "rows": 20, "cv_error": 0.25, "note": None}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.csv"
    path.write_text(TABLE)
    settings = {"rank": 2, "alpha": 1e-3, "max_sweeps": 1}
    fitted = fit_table(path, "rich", folds=0, missing=MISSING, usual_missing=False, **settings)
    return TableModel(fitted.estimator, fitted.layout, TRAINING)


def test_round_trip(model, tmp_path):
    assert model.layout.columns == COLUMNS
    assert model.layout == Layout(COLUMNS, (TARGET,), True, 4, MISSING)
    model.save(tmp_path / "m")
    again = load_table_model(tmp_path / "m")
    assert (again.layout, again.training) == (model.layout, TRAINING)
    assert_same(again.estimator, model.estimator)
    # Without its table the estimator has the names of the columns.
    plain = polytrain.load(tmp_path / "m")
    assert plain.feature_names_in_.tolist() == ["age", "job", "day"]
    again.save(tmp_path / "m2")
    assert (tmp_path / "m2").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_model_without_table_says_so(model, tmp_path):
    model.estimator.save(tmp_path / "plain")
    assert load_table_model(tmp_path / "plain").layout.targets == ()


def test_a_model_that_does_not_fit_is_not_written(model, tmp_path):
    narrow = Layout(COLUMNS[:1], (TARGET,), True, 4)
    with pytest.raises(ModelFileError, match="columns of the table are not those of the model"):
        TableModel(model.estimator, narrow, {}).save(tmp_path / "m")
    several = Layout(COLUMNS, (TARGET, FileColumn("more", 4)), True, 5)
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
        (set_entry("columns", 0, "form", 1), "form"),
        (set_entry("columns", 0, "form", {}), "form"),
        (set_entry("columns", 0, "form", "kind", "colour"), "form|kind"),
        (set_entry("columns", 1, "kind", "x"), "a column should have"),
        (set_entry("targets", {}), "the table has no columns"),
        (set_entry("targets", [1]), "a column should have"),
        (set_entry("targets", 0, "position", -1), "is not plausible"),
        (set_entry("columns", 0, "name", "old"), "columns of the table are not those of the model"),
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
        (set_entry("columns", 0, "marked", 2), "'age' of numbers is not plausible"),
        (set_entry("columns", 0, "fill", "1"), "no number for missing values"),
        (set_entry("columns", 0, "fill", 10**400), "no number for missing values"),
        (set_entry("columns", 0, "fill", None), "'age' of numbers is not plausible"),
        (set_entry("columns", 0, "marked", False), "features of the table are not those of the model"),
        (set_entry("columns", 1, "coded", True), "'job' of categories is not plausible"),
        (set_entry("columns", 1, "categories", ["cook"]), "features of the table are not those of the model"),
        (set_entry("columns", 1, "categories", ["cook", "cook"]), "names something twice"),
        (set_entry("columns", 1, "categories", ["smith", "cook"]), "not in order"),
        (set_entry("columns", 1, "categories", ["cook", 1]), "list of text"),
        (set_entry("columns", 0, "position", 17), "is not plausible"),
        (set_entry("columns", 0, {}), "no name"),
        (set_entry("target", {}), "no name or no position"),
        (set_entry("more", 1), "the table should have"),
    ],
)
def test_bad_tables_of_older_files_are_refused(tmp_path, alter, message):
    raw = (DATA / "format3-table.polytrain").read_bytes()
    (tmp_path / "bad").write_bytes(change(raw, alter))
    with pytest.raises(ModelFileError, match=message):
        load_table_model(tmp_path / "bad")


def read(model, path, text):
    """Features of a table."""
    path.write_text(text)
    with model.open(path) as table:
        return np.concatenate([block.X for block in model.blocks(table)])


def test_format_2(tmp_path):
    """A file written once must be read for ever."""
    model = load_table_model(DATA / "format2.polytrain")
    age, job = model.fitted.columns.columns
    assert age == FilledColumn("age", fill=40.5, marked=True)
    assert job == OneHotColumn("job", ("cook", "smith"), marked=True)
    assert model.layout == Layout(
        (FileColumn("age", 0), FileColumn("job", 2)), (FileColumn("rich", 1),), True, 3, MISSING
    )
    assert model.training == TRAINING
    rows = np.array([[30.0, 0, 1, 0, 0], [50.0, 0, 0, 1, 0], [40.5, 1, 0, 0, 1]])
    assert model.fitted.predict(rows).tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(model.fitted.decide(rows), DECISIONS, rtol=1e-12)
    np.testing.assert_array_equal(read(model, tmp_path / "a.csv", "job,age\ncook,30\nsmith,50\n?,none\n"), rows)


def test_format_3(tmp_path):
    """The same for a file of ``polytrain fit``; the probabilities are those of ``polytrain predict`` at its time."""
    model = load_table_model(DATA / "format3-table.polytrain")
    names = ("age", "age is missing", "job=clerk", "job=cook", "job=smith", "job is missing")
    assert model.view.feature_names == names
    assert model.is_one_hot
    rows = read(model, tmp_path / "a.csv", "job,age\ncook,30\nsmith,50\n?,\nclerk,45\n")
    expected = [0.019595348701450025, 0.9779622893742955, 0.49819141245291165, 0.5785747595598567]
    np.testing.assert_allclose(model.fitted.probabilities(rows)[:, 1], expected, rtol=1e-12)
    model.save(tmp_path / "again")
    again = load_table_model(tmp_path / "again")
    assert again.layout == model.layout
    np.testing.assert_array_equal(again.predict(tmp_path / "a.csv"), model.predict(tmp_path / "a.csv"))


def test_format_5(tmp_path):
    """The last format whose tables had the columns: one feature each."""
    model = load_table_model(DATA / "format5-table.polytrain")
    assert model.fitted.columns.columns == (NumberColumn("age"), CategoryColumn("job", ("clerk", "cook", "smith")))
    assert model.layout.targets == (FileColumn("rich", 2),)
    rows = read(model, tmp_path / "a.csv", "job,age\ncook,30\nsmith,50\n?,\nclerk,45\n")
    np.testing.assert_array_equal(rows, [[30, 1], [50, 2], [np.nan, np.nan], [45, 0]])
    expected = [0.04807226628063588, 0.9540232505342547, 0.9321638738327314, 0.928810065532686]
    np.testing.assert_allclose(model.fitted.probabilities(rows)[:, 1], expected, rtol=1e-12)
    model.save(tmp_path / "again")
    assert load_table_model(tmp_path / "again").layout == model.layout


def test_commands_on_older_files(tmp_path, capsys):
    """They make several features of a column."""
    lines = "".join(f"{20 + k},{('cook', 'smith', 'clerk')[k % 3]},{'yes' if k > 20 else 'no'}\n" for k in range(40))
    (tmp_path / "t.csv").write_text("age,job,rich\n?,cook,no\n" + lines)
    old, table = str(DATA / "format3-table.polytrain"), str(tmp_path / "t.csv")
    assert main(["explain", old, table, "--terms", "30"]) == 0
    assert "age is missing" in capsys.readouterr().out
    assert main(["report", old, table, "--out", str(tmp_path / "r.html")]) == 0
    assert main(["export", old, "--to", "c", "--out", str(tmp_path / "m.c")]) == 0
    source = (tmp_path / "m.c").read_text()
    assert "x[1]  age is missing: 1 or 0" in source
    assert "x[0]  age: number; 38.0 if missing" in source
    assert main(["evaluate", old, table]) == 0
    assert main(["info", old]) == 0
