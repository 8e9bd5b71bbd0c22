"""Names, labels and cells of strangers: harmless on a terminal, and in a spreadsheet."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from polytrain.cli import main
from polytrain.cli.common import show
from polytrain.texts import printable

ESCAPE = "\x1b]0;owned\x07"
GIVEN = ["--basis", "spline", "--bandwidth", "1", "--rank", "2", "--alpha", "1e-3", "--folds", "0"]


def run(capsys, code, *argv):
    """Run a command and return what it printed, all of which must be harmless."""
    capsys.readouterr()
    assert main([str(word) for word in argv]) == code
    out, err = capsys.readouterr()
    for text in (out, err):
        assert all(line.isprintable() for line in text.split("\n")), repr(text)
    return out, err


@pytest.fixture
def hostile(tmp_path):
    """A table whose names, categories and labels would do something to a terminal."""
    path = tmp_path / "hostile.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([f"size{ESCAPE}", "kind\u202e", "same\u202d", f"y{ESCAPE}"])
        for k in range(40):
            labels = [f"a{ESCAPE}", "b\u202ec", "c\nfake line"]
            writer.writerow([k % 7, f"{'uv'[k % 2]}\x9b2J", f"one{ESCAPE}", labels[k % 3]])
    return path


@pytest.fixture
def model(hostile, tmp_path, capsys):
    path = tmp_path / "m.polytrain"
    _, err = run(capsys, 0, "fit", hostile, "--target", f"y{ESCAPE}", "--out", path, *GIVEN)
    assert "left out: it has a single value" in err
    return path


def test_commands_print_text_that_a_terminal_does_not_obey(hostile, model, capsys):
    assert "size\\x1b]0;owned\\x07: number\n" in run(capsys, 0, "info", model)[0]
    assert "  size\\x1b]0;owned\\x07 " in run(capsys, 0, "explain", model)[0]
    lines = run(capsys, 0, "evaluate", model, hostile)[0].split("\n")
    assert "c\\nfake line" in "".join(lines)
    matrix = lines[lines.index("confusion matrix (rows: true class, columns: predicted class)") + 1 : -1]
    assert len({len(line) for line in matrix}) == 1  # columns stand below each other


def test_errors_too(hostile, model, tmp_path, capsys):
    (tmp_path / "other.csv").write_text(f"a{ESCAPE},b\n1,2\n")
    assert "lacks the columns size\\x1b" in run(capsys, 2, "predict", model, tmp_path / "other.csv")[1]
    run(capsys, 2, "explain", model, "--class", f"x{ESCAPE}")
    run(capsys, 2, "fit", hostile, "--target", f"nothing{ESCAPE}", "--out", tmp_path / "new")
    run(capsys, 2, "info", tmp_path / f"no{ESCAPE}file")
    run(capsys, 2, "predict", model, hostile, "--out", tmp_path / f"no{ESCAPE}folder" / "file")


def test_json_is_the_text_itself(hostile, model, capsys):
    assert json.loads(run(capsys, 0, "info", model, "--json")[0])["columns"][0]["name"] == f"size{ESCAPE}"
    assert f"a{ESCAPE}" in json.loads(run(capsys, 0, "evaluate", model, hostile, "--json")[0])["classes"]


def test_printable():
    assert printable("a b é 漢 \u00a0\u3000🚂\\x1b") == "a b é 漢 \u00a0\u3000🚂\\x1b"
    assert printable("\0\t\r\x7f\x9b\u200f\u202e\u2028\ufeff\U000e0001\ud800") == (
        "\\x00\\t\\r\\x7f\\x9b\\u200f\\u202e\\u2028\\ufeff\\U000e0001\\ud800"
    )


def test_a_stream_that_knows_few_letters(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    show("é")
    assert stream.buffer.getvalue() == b"\\xe9\n"


def test_csv_is_exact_in_files_and_harmless_on_a_terminal(hostile, model, tmp_path):
    assert main(["predict", str(model), str(hostile), "--out", str(tmp_path / "p.csv")]) == 0
    assert f"a{ESCAPE}\n" in (tmp_path / "p.csv").read_text()
    pty = pytest.importorskip("pty", reason="there are no terminals of POSIX")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "polytrain", "predict", str(model), str(hostile)]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1 << 16):
                shown += part
        except OSError:  # the terminal has gone
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"a\\x1b]0;owned" in shown
    assert b"\x1b" not in shown


FORMULAS = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "- a", "+", "-"]
NUMBERS = ["-1", "+1.5e3", "-.5"]


@pytest.fixture
def formulas(tmp_path, capsys):
    """A table whose labels and identifiers are formulas or look like some, and its model."""
    path = tmp_path / "formulas.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["=id", "size", "y"])
        for k in range(60):
            writer.writerow([(FORMULAS + NUMBERS + ["it's"])[k % 11], k % 2, ["=evil()", "-plain"][k % 2]])
    run(capsys, 0, "fit", path, "--target", "y", "--drop", "=id", "--out", tmp_path / "m", *GIVEN)
    return path


def read(path):
    return list(csv.reader(io.StringIO(path.read_text())))


def test_no_formula_reaches_a_spreadsheet(formulas, tmp_path, capsys):
    argv = ["predict", tmp_path / "m", formulas, "--keep", "=id", "size", "--probabilities", "--out", tmp_path / "p"]
    run(capsys, 0, *argv)
    title, *rows = read(tmp_path / "p")
    assert title[:3] == ["'=id", "size", "prediction"]
    assert title[3:] == ["probability -plain", "probability =evil()"]
    assert {row[0] for row in rows} == {*(f"'{text}" for text in FORMULAS), *NUMBERS, "it's"}
    assert {row[2] for row in rows} == {"'=evil()", "'-plain"}
    run(capsys, 0, *argv, "--exact-text")
    title, *rows = read(tmp_path / "p")
    assert title[0] == "=id"
    assert {row[0] for row in rows} == {*FORMULAS, *NUMBERS, "it's"}
    assert {row[2] for row in rows} == {"=evil()", "-plain"}


def test_numbers_stay(tmp_path, capsys):
    """Negative predictions, and labels that are negative numbers."""
    rows = "".join(f"{k % 5 - 2},{-(k % 5)}.5,{k % 2 * 2 - 1}\n" for k in range(40))
    (tmp_path / "t.csv").write_text("x,number,label\n" + rows)
    for target, dropped in (("number", "label"), ("label", "number")):
        argv = ["fit", tmp_path / "t.csv", "--target", target, "--drop", dropped, "--out", tmp_path / target, *GIVEN]
        run(capsys, 0, *argv)
        run(capsys, 0, "predict", tmp_path / target, tmp_path / "t.csv", "--keep", "x", "--out", tmp_path / "p")
        assert "'" not in (tmp_path / "p").read_text()
        assert any(row[1].startswith("-") for row in read(tmp_path / "p"))
