"""explain --row: the contributions of columns to the scores of rows."""

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import polytrain
from polytrain.cli import main
from polytrain.explain import explain_local

ESCAPE = "\x1b]0;owned\x07"
GIVEN = ["--basis", "spline", "--bandwidth", "1", "--rank", "2", "--alpha", "1e-3", "--max-sweeps", "1", "--quiet"]


def run(capsys, *argv):
    """Run a command that must succeed; return its standard output, which is harmless."""
    capsys.readouterr()
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert all(line.isprintable() for line in out.split("\n")), repr(out)
    return out


def mistake(capsys, *argv):
    """Run a command that must fail; return what it said."""
    capsys.readouterr()
    assert main([str(word) for word in argv]) == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A table with numbers, categories and gaps, of hostile names and labels, and a model of it."""
    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    path = folder / "people.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([f"age{ESCAPE}", "job\n=1+1", "grade", "rich"])
        for k in range(120):
            age, job = rng.integers(20, 70), rng.choice([f"cook{ESCAPE}", "=cmd()", "clerk"])
            rich = f"yes{ESCAPE}" if age + 10 * (job == "clerk") > 45 else "no"
            writer.writerow(["?" if k % 17 == 3 else age, "" if k % 19 == 3 else job, k % 9, rich])
    model = folder / "people.polytrain"
    assert main(["fit", str(path), "--target", "rich", "--folds", "0", "--out", str(model), *GIVEN]) == 0
    return model, path


def test_json_sums_up_and_keeps_text(people, capsys):
    found = json.loads(run(capsys, "explain", *people, "--row", 3, 0, "--json"))
    assert found["background"] == "training"
    first, second = found["rows"]
    assert (first["row"], first["score_of"], first["scale"]) == (3, f"yes{ESCAPE}", "log-odds")
    cells = {column["column"]: column["value"] for column in first["columns"]}
    assert cells == {f"age{ESCAPE}": "missing", "job\n=1+1": "missing", "grade": "3"}
    assert second["row"] == 0
    assert first["place"] == "line 6"  # the name of a column takes two lines
    for row in found["rows"]:
        brought = sum(column["contribution"] for column in row["columns"])
        assert brought == pytest.approx(row["score"] - row["mean"], abs=1e-9)
        sizes = [abs(column["contribution"]) for column in row["columns"]]
        assert sizes == sorted(sizes, reverse=True)


def test_print(people, capsys):
    lines = run(capsys, "explain", *people, "--row", 17, "--terms", 1).split("\n")
    assert lines[0] == "contributions of columns, taken as independent and distributed as in training"
    assert lines[2] == "row 17 (line 20)"
    assert [line.split("  ")[-1].split(" ")[0] for line in lines[3:7]] == [
        "mean", "age\\x1b]0;owned\\x07", "2", "log-odds"
    ]  # fmt: skip
    assert lines[6].endswith("log-odds of yes\\x1b]0;owned\\x07")


def test_background_of_the_table(people, capsys):
    other = json.loads(run(capsys, "explain", *people, "--row", 5, "--background", "data", "--json"))["rows"][0]
    own = json.loads(run(capsys, "explain", *people, "--row", 5, "--json"))["rows"][0]
    assert own["score"] == pytest.approx(other["score"])
    assert own["mean"] == pytest.approx(other["mean"], rel=1e-3)  # it is the table of the training


def test_equal_to_python(tmp_path, capsys):
    """Rows of an array are those of the file, counted from 0."""
    X, y = load_diabetes(return_X_y=True)
    model = polytrain.TensorTrainRegressor(rank=2, alpha=1e-3, basis="spline", bandwidth=1.0, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    np.save(tmp_path / "rows.npy", X)
    found = json.loads(run(capsys, "explain", tmp_path / "m", tmp_path / "rows.npy", "--row", 400, "--json"))["rows"][0]
    expected = explain_local(model, X[400:401])
    assert found["place"] == "row 400"
    assert found["score"] == pytest.approx(model.predict(X[400:401])[0])
    values = {column["column"]: column["contribution"] for column in found["columns"]}
    for k in range(10):
        assert values[f"column {k}"] == pytest.approx(expected.values[0, k, 0])
    text = run(capsys, "explain", tmp_path / "m", tmp_path / "rows.npy", "--row", 400)
    assert "\nrow 400\n" in text
    assert text.endswith("prediction\n")


def test_class_of_several(tmp_path, capsys):
    path = tmp_path / "three.csv"
    path.write_text("a,b,y\n" + "".join(f"{k % 7},{k % 5},{'uvw'[k % 7 // 3]}\n" for k in range(70)))
    run(capsys, "fit", path, "--target", "y", "--folds", "0", "--out", tmp_path / "m", *GIVEN)
    rows = json.loads(run(capsys, "explain", tmp_path / "m", path, "--row", 0, 6, "--json"))["rows"]
    assert [row["score_of"] for row in rows] == ["u", "w"]
    rows = json.loads(run(capsys, "explain", tmp_path / "m", path, "--row", 0, 6, "--class", "v", "--json"))["rows"]
    assert [row["score_of"] for row in rows] == ["v", "v"]


def test_mistakes(people, tmp_path, capsys):
    model, table = people
    assert "has rows 0 to 119 and no row 120." in mistake(capsys, "explain", model, table, "--row", 120)
    assert "--row -1: rows of data are counted from 0" in mistake(capsys, "explain", model, table, "--row", -1)
    assert "Give DATA after MODEL" in mistake(capsys, "explain", model, "--row", 1)
    assert "--background requires --row" in mistake(capsys, "explain", model, table, "--background", "data")
    units = mistake(capsys, "explain", model, table, "--row", 1, "--units", "scaled")
    assert "--units cannot be combined with --row" in units
    assert "there is no such polynomial" in mistake(capsys, "explain", model, table, "--row", 1, "--class", "maybe")
    assert "--terms must be at least 1" in mistake(capsys, "explain", model, table, "--row", 1, "--terms", 0)
    (tmp_path / "new.csv").write_text('age\x1b]0;owned\x07,"job\n=1+1",grade\n31,astronaut,4\n')
    new = run(capsys, "explain", model, tmp_path / "new.csv", "--row", 0)
    assert "job\\n=1+1 = astronaut" in new
