import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from polytrain.atomic_file import write_atomically
from polytrain_paper.experiments.results import COLUMNS, JobStore, markdown_table, rows_as_csv
from processes import running

KEY = {"kind": "row", "d": 20, "alphas": [0.1, 0.01]}


def make_row(**changes):
    row = dict.fromkeys(COLUMNS) | {
        "dataset": "usps",
        "features": "cnn",
        "init": "linear",
        "loss": "squared",
        "d": 20,
        "degree": 1,
        "rank": 8,
        "alpha": 0.01,
        "train_error": 0.0012,
        "test_error": 0.0249,
        "fit_seconds": 3.21,
        "n_parameters": 100,
    }
    return row | changes


def test_a_job_is_found_by_its_whole_key(tmp_path):
    store = JobStore(tmp_path / "deep" / "finished")
    assert store.get(KEY) is None
    store.put(KEY, {"test_error": 0.1})
    assert store.get(dict(reversed(KEY.items()))) == {"test_error": 0.1}
    assert JobStore(tmp_path / "deep" / "finished").get(KEY) == {"test_error": 0.1}
    for changed in ({"d": 25}, {"alphas": [0.1]}, {"new": None}, {"kind": "alpha"}):
        assert store.get({**KEY, **changed}) is None
    store.put(KEY, {"test_error": 0.2})
    assert store.get(KEY) == {"test_error": 0.2}
    store.clear()
    assert store.get(KEY) is None


@pytest.mark.parametrize("content", ["", '{"key": ', "[]", '{"key": {}, "result": 1}', "\x00\x00"])
def test_a_damaged_file_counts_as_not_finished(tmp_path, content):
    store = JobStore(tmp_path)
    store.put(KEY, 1)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    assert store.get(KEY) is None
    store.put(KEY, 2)
    assert store.get(KEY) == 2


def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    write_atomically(path, "old")

    def fail(*names):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"


WRITER = """
import sys
from pathlib import Path
from polytrain.atomic_file import write_atomically
for number in range(10**9):
    write_atomically(Path(sys.argv[1]), "[" + ", ".join([str(number)] * 200_000) + "]")
    if number == 0:
        print("writing", flush=True)
"""


@pytest.mark.slow
def test_a_kill_while_writing_leaves_a_whole_file(tmp_path):
    path = tmp_path / "numbers.json"
    for delay in (0.05, 0.13):
        with running([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout.readline() == b"writing\n"
            time.sleep(delay)
            os.kill(writer.pid, signal.SIGKILL)
            writer.communicate()
        assert writer.returncode == -signal.SIGKILL
        numbers = json.loads(path.read_text())
        assert len(numbers) == 200_000
        assert len(set(numbers)) == 1


def test_csv_has_all_fields_and_empty_cells_where_the_paper_is_silent():
    (row,) = csv.DictReader(io.StringIO(rows_as_csv([make_row()])))
    assert tuple(row) == COLUMNS
    assert float(row["test_error"]) == 0.0249
    assert row["paper_test_error"] == ""


def test_markdown_has_one_table_per_loss_and_only_columns_with_figures():
    alone = markdown_table([make_row()])
    assert "| d | degree | rank | alpha | train error % | test error % | fit s |" in alone
    assert "| 20 | 1 | 8 | 0.01 | 0.12 | 2.49 | 3.2 |" in alone
    paper = {"paper_train_error": 0.0058, "paper_test_error": 0.0433, "paper_seconds": 110.4}
    both = markdown_table([make_row(**paper, cv_error=0.005), make_row(loss="logistic")])
    assert both.count("###") == 2
    assert "| 20 | 1 | 8 | 0.01 | 0.50 | 0.12 | 2.49 | 3.2 | 0.58 | 4.33 | 110 |" in both
    starts = markdown_table([make_row(), make_row(init="random")])
    assert "TTLS (squared loss, random start)" in starts
