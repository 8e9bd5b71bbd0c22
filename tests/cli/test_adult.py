"""The Adult data from the file as it is published to a report, one command each."""

import json
import os
from pathlib import Path

import pytest

from polytrain.cli import main
from polytrain.texts import percent_text

FOLDER = Path(os.environ.get("POLYTRAIN_DATA", "nowhere")) / "tabular"
pytestmark = pytest.mark.skipif(
    not (FOLDER / "adult-train.csv").exists(), reason="POLYTRAIN_DATA names no folder with tabular/adult-train.csv"
)


def check(tmp_path, capsys, most_error, *options):
    train, test, model = FOLDER / "adult-train.csv", tmp_path / "adult-test.csv", tmp_path / "adult.polytrain"
    # Labels of the published test file end with a dot.
    test.write_text((FOLDER / "adult-test.csv").read_text().replace("K.\n", "K\n"))
    assert main(["fit", str(train), "--target", "-1", "--out", str(model), "--json", "--quiet", *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["missing_cells"], facts["task"]) == (32561, 4262, "classification")
    assert main(["evaluate", str(model), str(test), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["n"] == 16281
    assert figures["error"] <= most_error
    assert main(["predict", str(model), str(test), "--out", str(tmp_path / "predictions.csv")]) == 0
    guesses = (tmp_path / "predictions.csv").read_text().split()[1:]
    assert [guesses.count("<=50K"), guesses.count(">50K")] == [
        sum(column) for column in zip(*figures["confusion"], strict=True)
    ]
    assert main(["explain", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["proven"]
    assert len(found["importances"]) == 14
    assert main(["report", str(model), str(test), "--out", str(tmp_path / "adult.html")]) == 0
    assert percent_text(figures["error"]) in (tmp_path / "adult.html").read_text()
    assert main(["export", str(model), "--to", "c", "--out", str(tmp_path / "adult.c")]) == 0
    assert "x[9]  column 9: number of a category" in (tmp_path / "adult.c").read_text()
    return facts


@pytest.mark.slow
def test_given_settings(tmp_path, capsys):
    given = ["--basis", "spline", "--bandwidth", "1", "--rank", "2", "--alpha", "1e-5", "--folds", "0"]
    check(tmp_path, capsys, 0.138, *given)


@pytest.mark.slow
def test_chosen_settings(tmp_path, capsys):
    facts = check(tmp_path, capsys, 0.135)
    assert facts["left_out"]["where"].startswith("10,000 of 32,561 rows in 3 folds")
    assert 0.12 < facts["left_out"]["model"]["error"] < 0.15
