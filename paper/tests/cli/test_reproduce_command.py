"""The command in this process, and in processes of its own that are interrupted and killed."""

import csv
import json
import os
import signal
import subprocess
import sys

import pytest

from polytrain.cli import main
from polytrain_paper.datasets import DataNotFoundError
from polytrain_paper.experiments import digit_rows, plots
from processes import running

FAST = ["--loss", "squared", "--folds", "2", "--alphas", "1e-3"]
SMALL = ["reproduce", "digits", "--features", "pca", "--jobs", "1", *FAST]
# Two rows that are done at once, and two that take seconds: a signal after the first ones always comes in time.
ROWS = ["--rows", "d=12,degree=1,rank=2", "d=12,degree=1,rank=3", "d=24,degree=3,rank=12", "d=25,degree=3,rank=12"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--rows", "d=12"], "rows must be paper, quick, components or a row such as 'd=20,degree=1,rank=8'"),
        (["--features", "cnn", "--rows", "d=12,degree=1,rank=2"], "d=12: the nets have 20, 25, 30, 35, 40 features"),
        (["--folds", "1"], "--folds must be at least 2, got 1"),
        (["--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["--cv-rows", "3"], "--cv-rows must be at least 20, got 3"),
        (["--alphas", "-1"], "--alphas must be finite and not negative, got [-1.0]"),
        (["--ablation"], "--ablation fixes rows, starts and features"),
    ],
)
def test_mistakes_are_named_before_anything_is_done(capsys, tmp_path, more, message):
    assert main([*SMALL, "--out", str(tmp_path / "out"), *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polytrain: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["cifar"], "invalid choice: 'cifar'"),
        (["digits", "--loss", "hinge"], "invalid choice: 'hinge'"),
        (["digits", "--what"], "unrecognized arguments: --what"),
    ],
)
def test_unknown_arguments_are_named(capsys, more, message):
    assert main(["reproduce", *more]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "--help" in err
    assert err.count("\n") == 1


def test_an_impossible_folder_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main([*SMALL, "--out", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_missing_data_are_explained(capsys, tmp_path, monkeypatch):
    def load(**options):
        raise DataNotFoundError("USPS: zip.train.gz not found. Put it there.")

    monkeypatch.setattr(digit_rows, "load_usps", load)
    assert main(["reproduce", "usps", "--out", str(tmp_path), *FAST]) == 2
    assert capsys.readouterr().err.endswith("polytrain: error: USPS: zip.train.gz not found. Put it there.\n")


def test_everything_is_written(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    argv = [*SMALL, "--rows", "d=5,degree=1,rank=2", "d=6,degree=1,rank=2", "--out", str(tmp_path)]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert "2 rows, 0 of them finished before" in err
    rows = json.loads((tmp_path / "results.json").read_text())
    assert [row["d"] for row in rows] == [5, 6]
    for row, line in zip(rows, out.splitlines()[2:], strict=True):
        assert 0 < row["test_error"] < 0.5
        assert f"{100 * row['test_error']:.2f}" in line.split()
    with open(tmp_path / "results.csv", newline="") as stream:
        assert [float(row["test_error"]) for row in csv.DictReader(stream)] == [row["test_error"] for row in rows]
    page = (tmp_path / "results.md").read_text()
    assert "2-fold cross-validation on all training rows, for every row" in page
    assert {path.name for path in tmp_path.glob("*.png")} == {"errors.png", "convergence.png"}

    # The same again: everything is kept, to the last digit, seconds included.
    assert main(argv) == 0
    again, err = capsys.readouterr()
    assert again == out
    assert "2 rows, 2 of them finished before" in err
    assert main([*argv, "--fresh"]) == 0
    assert "2 rows, 0 of them finished before" in capsys.readouterr().err


def test_without_matplotlib_there_are_no_plots_but_a_word(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "have_matplotlib", lambda: False)
    assert main([*SMALL, "--rows", "d=4,degree=1,rank=2", "--out", str(tmp_path)]) == 0
    assert "matplotlib is not installed (pip install 'polytrain[plot]')" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.png"))
    assert (tmp_path / "results.json").exists()


def start(out, jobs="1"):
    command = [sys.executable, "-m", "polytrain", *SMALL, *ROWS, "--jobs", jobs, "--out", str(out)]
    return running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def stop_after(out, n_rows, number, whole_group, jobs="1"):
    """Start the command, wait for rows on stdout, send a signal, and return the exit code and stderr."""
    with start(out, jobs) as process:
        for _ in range(2 + n_rows):
            assert process.stdout.readline()
        if whole_group:  # as a terminal does on Ctrl-C
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)
        _, err = process.communicate(timeout=100)
    return process.returncode, err


def finish(out):
    """Run the command to its end, and return stdout and stderr."""
    with start(out) as process:
        table, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return table, err


def without_seconds(out):
    return [{**row, "fit_seconds": None} for row in json.loads((out / "results.json").read_text())]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    return out, finish(out)[0]


def finish_and_compare(out, undisturbed, n_kept, before):
    table, err = finish(out)
    kept = int(err.split(" of them finished before")[0].split()[-1])
    assert n_kept <= kept < 4
    rows = json.loads((out / "results.json").read_text())
    assert rows[: len(before)] == before  # not fitted again: even the seconds are the same
    assert without_seconds(out) == without_seconds(undisturbed[0])
    strip = [line.split()[:-1] for line in table.splitlines()]
    assert strip == [line.split()[:-1] for line in undisturbed[1].splitlines()]


@pytest.mark.slow
def test_ctrl_c_keeps_finished_rows_and_says_how_to_go_on(tmp_path, undisturbed):
    code, err = stop_after(tmp_path, 1, signal.SIGINT, whole_group=True)
    assert code == 130
    assert "Traceback" not in err
    assert f"finished rows are kept in {tmp_path}" in err.splitlines()[-1]
    assert f"run again: polytrain {SMALL[0]} digits" in err.splitlines()[-1]
    before = json.loads((tmp_path / "results.json").read_text())
    assert 1 <= len(before) < 4
    finish_and_compare(tmp_path, undisturbed, 1, before)


@pytest.mark.slow
def test_sigkill_keeps_finished_rows(tmp_path, undisturbed):
    for n_rows in (1, 2):
        code, _ = stop_after(tmp_path, n_rows, signal.SIGKILL, whole_group=False)
        assert code == -signal.SIGKILL
    before = json.loads((tmp_path / "results.json").read_text())
    assert 2 <= len(before) < 4
    finish_and_compare(tmp_path, undisturbed, 2, before)


@pytest.mark.slow
def test_ctrl_c_with_worker_processes(tmp_path, undisturbed):
    code, err = stop_after(tmp_path, 1, signal.SIGINT, whole_group=True, jobs="2")
    assert code == 130
    assert "run again: polytrain" in err
    finish_and_compare(tmp_path, undisturbed, 1, json.loads((tmp_path / "results.json").read_text()))
