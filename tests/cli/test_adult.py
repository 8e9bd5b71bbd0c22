"""The Adult data from the file as it is published to a report, one command each."""

import json
import os
from pathlib import Path

import pytest

from polytrain.cli import main

FOLDER = Path(os.environ.get("POLYTRAIN_DATA", "nowhere")) / "tabular"
pytestmark = pytest.mark.skipif(
    not (FOLDER / "adult-train.csv").exists(), reason="POLYTRAIN_DATA names no folder with tabular/adult-train.csv"
)


def check(tmp_path, capsys, *options):
    train, test, model = FOLDER / "adult-train.csv", FOLDER / "adult-test.csv", tmp_path / "adult.polytrain"
    assert main(["fit", str(train), "--target", "-1", "--out", str(model), "--json", "--quiet", *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["missing_cells"], facts["task"]) == (32561, 4262, "classification")
    assert main(["evaluate", str(model), str(test), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["n"] == 16281
    assert figures["error"] <= 0.145
    assert main(["predict", str(model), str(test), "--out", str(tmp_path / "predictions.csv")]) == 0
    guesses = (tmp_path / "predictions.csv").read_text().split()[1:]
    assert [guesses.count("<=50K"), guesses.count(">50K")] == [
        sum(column) for column in zip(*figures["confusion"], strict=True)
    ]
    assert main(["explain", str(model), str(test), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proven"]
    assert main(["report", str(model), str(test), "--out", str(tmp_path / "adult.html")]) == 0
    assert f"{100 * figures['error']:.2f} %" in (tmp_path / "adult.html").read_text()
    assert main(["export", str(model), "--to", "c", "--out", str(tmp_path / "adult.c")]) == 0
    return facts


def test_given_settings(tmp_path, capsys):
    check(tmp_path, capsys, "--loss", "squared", "--rank", "2", "--alpha", "1e-3", "--folds", "0")


@pytest.mark.slow
def test_chosen_settings(tmp_path, capsys):
    facts = check(tmp_path, capsys)
    assert facts["cv_settings"] == 8
    assert 0.13 < facts["cv_error"] < 0.15
