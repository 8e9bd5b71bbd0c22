"""Mistakes on the command line: one line with the remedy, exit code 2, nothing written."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from polytrain.cli import main
from processes import running

GIVEN = ["--basis", "spline", "--bandwidth", "1", "--rank", "2", "--alpha", "1e-3", "--folds", "0", "--quiet"]
FIT = ["--target", "y", "--loss", "squared", *GIVEN]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    rows = "".join(f"{k % 7},{'uv'[k % 2]},{'ab'[k % 3 > 0]}\n" for k in range(40))
    (folder / "train.csv").write_text("size,kind,y\n" + rows)
    assert main(["fit", str(folder / "train.csv"), "--out", str(folder / "m.polytrain"), *FIT]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A fresh folder with a table and its model, where mistakes may leave nothing."""
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def check_err(capsys, folder, argv, *messages):
    before = sorted(path.name for path in folder.iterdir())
    capsys.readouterr()
    assert main([str(word) for word in argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polytrain: error: ")
    assert err.count("\n") == 1, err
    for message in messages:
        assert message in err
    assert sorted(path.name for path in folder.iterdir()) == before
    return err


BAD_TABLES = {
    "missing file": (None, ["no such file or directory", "Check the path"]),
    "empty file": (b"", ["is empty"]),
    "only a header": (b"size,kind,y\n", ["holds no row"]),
    "binary file": (bytes(range(256)), ["binary file", "Supported are CSV"]),
    "wrong column": (b"length,kind,y\n1,u,a\n", ["lacks the column size", "Name the columns as in training"]),
    "text in a number column": (b"size,kind,y\n1,u,a\nbig,u,a\n", ["line 3", "'big'", "Fix the cell"]),
    "ragged rows": (b"size,kind,y\n1,u\n", ["line 2: 2 cells, but 3"]),
}


@pytest.mark.parametrize("command", ["predict", "evaluate", "report", "explain"])
@pytest.mark.parametrize("kind", BAD_TABLES)
def test_bad_tables(folder, capsys, command, kind):
    content, messages = BAD_TABLES[kind]
    if content is not None:
        (folder / "bad.csv").write_bytes(content)
    out = ["--out", folder / "new"] if command in ("predict", "report") else []
    if (kind, command) == ("only a header", "predict"):
        assert main(["predict", str(folder / "m.polytrain"), str(folder / "bad.csv")]) == 0
        assert capsys.readouterr().out == "prediction\n"
        return
    check_err(capsys, folder, [command, folder / "m.polytrain", folder / "bad.csv", *out], *messages)


@pytest.mark.parametrize(
    ("content", "options", "messages"),
    [
        (None, [], ["no such file or directory"]),
        (b"", [], ["is empty"]),
        (b"\0\1\2", [], ["binary file"]),
        (b"size,y\n", [], ["holds a header but no rows"]),
        (b"1,2\n", [], ["no column 'y'", "--header yes", "-1 is the last"]),
        (b"size,z\n1,a\n2,b\n", [], ["has no column 'y'; it has the columns size, z"]),
        (b"size,y\n1,a\nbig,b\n3,a\n", [], ["column 'size' holds numbers, but here 'big'", "--categorical size"]),
        (b"size,y\n1,a\n2,a\n", [], ["y holds only one class", "needs at least two"]),
        (b"size,y\n1,a\n", [], ["only one row"]),
        (b"size,y\n1,a\n2,b\n", ["--rank", "0"], ["rank must be 'auto'", "or a positive integer, got 0"]),
        (b"size,y\n1,a\n2,b\n", ["--folds", "1"], ["--folds 1 must be 0 or at least 2"]),
        (b"size,y\n1,a\n2,b\n", ["--rank", "2", "3"], ["unrecognized arguments: 3", "--help"]),
        (b"size,y\n1,a\n2,b\n", ["--rank", "many"], ["invalid int value: 'many'", "--help"]),
        (b"size,y\n1,a\n2,b\n", ["--bandwidth", "0"], ["bandwidth must be 'auto'", "got 0.0"]),
        (
            b"size,y\n1,a\n?,b\n3,a\n",
            ["--basis", "power"],
            ["NaN in feature 'size'", "Use basis='auto'"],
        ),
        (b"size,y\n1,a\n2,b\n", ["--max-sweeps", "-1"], ["max_sweeps must be"]),
        (b"size,y\n1,a\n2,b\n", ["--alpha", "-1"], ["alpha must be 'auto' or a finite number"]),
        (b"size,y\n1,a\n2,b\n", ["--alpha", "small"], ["invalid float value: 'small'", "--help"]),
        (b"size,y\n1,a\n2,b\n", ["--delimiter", "ab"], ["--delimiter must be one character"]),
        (b"size,y\n1,a\n2,b\n", ["--target", "7"], ["has no column '7'"]),
        (b"size,y\n1,a\n2,b\n", ["--seed", "-1"], ["--seed must be"]),
    ],
)
def test_bad_fits(tmp_path, capsys, content, options, messages):
    if content is not None:
        (tmp_path / "bad.csv").write_bytes(content)
    check_err(capsys, tmp_path, ["fit", tmp_path / "bad.csv", "--out", tmp_path / "new", *FIT, *options], *messages)


def test_missing_cells_of_polynomials(tmp_path, capsys):
    (tmp_path / "train.csv").write_text("size,kind,y\n" + "1,u,a\n2,,b\n3,v,a\n" * 4)
    power = ["--basis", "power", "--folds", "0", "--quiet", "--target", "y"]
    # Text may be missing: categories have their own functions.
    assert main(["fit", str(tmp_path / "train.csv"), "--out", str(tmp_path / "m"), *power]) == 0
    (tmp_path / "new.csv").write_text("size,kind\n1,\n,u\n")
    argv = ["predict", tmp_path / "m", tmp_path / "new.csv"]
    check_err(capsys, tmp_path, argv, "line 3: the cell of column 'size' is missing", "'power'", "--basis auto")


def test_model_and_table_exchanged(folder, capsys):
    model, table = folder / "m.polytrain", folder / "train.csv"
    check_err(capsys, folder, ["predict", model, model], "is a polytrain model file, not a table")
    check_err(capsys, folder, ["predict", table, model], "train.csv is not a polytrain model file")
    check_err(capsys, folder, ["fit", model, "--out", folder / "new", *FIT], "not a table")
    check_err(capsys, folder, ["info", folder / "nothing"], "no such file or directory")
    (folder / "cut").write_bytes(model.read_bytes()[:500])
    check_err(capsys, folder, ["info", folder / "cut"], "is not a polytrain model file, or a damaged one")


def test_bad_outputs(folder, capsys):
    model, table = folder / "m.polytrain", folder / "train.csv"
    check_err(capsys, folder, ["fit", table, "--out", folder / "no" / "m", *FIT], "there is no folder", "Create it")
    check_err(capsys, folder, ["fit", table, "--out", folder, *FIT], "is a directory. Name a file")
    check_err(capsys, folder, ["fit", table, "--out", table, *FIT], "would replace a file that is read")
    check_err(capsys, folder, ["predict", model, table, "--out", model], "would replace a file that is read")
    check_err(capsys, folder, ["predict", model, table, "--probabilities"], "this model has none", "--loss auto")
    check_err(capsys, folder, ["export", model, "--to", "c", "--name", "int", "--out", folder / "c"], "C identifier")
    check_err(capsys, folder, ["explain", model, "--units", "scaled"], "column 'size' has a map", "basis='power'")
    check_err(capsys, folder, ["explain", model, table, "--class", "c"], "there is no such polynomial. Give one of b")
    check_err(capsys, folder, ["explain", model, table, "--terms", "0"], "--terms must be at least 1")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are those of POSIX")
def test_no_permission(folder, capsys):
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    with somebody_else(), tempfile.TemporaryDirectory() as name:
        here = Path(name)
        for file, content in contents.items():
            (here / file).write_bytes(content)
        (here / "closed").mkdir()
        (here / "secret.csv").write_text("size,kind,y\n1,u,a\n")
        (here / "closed").chmod(stat.S_IRUSR | stat.S_IXUSR)
        (here / "secret.csv").chmod(0)
        try:
            check_err(capsys, here, ["fit", here / "train.csv", "--out", here / "closed" / "m", *FIT], "permission")
            check_err(capsys, here, ["predict", here / "m.polytrain", here / "secret.csv"], "permission denied. Get")
            check_err(capsys, here, ["info", here / "secret.csv"], "permission denied. Get")
            assert not list((here / "closed").iterdir())
        finally:
            (here / "closed").chmod(0o700)


@contextmanager
def somebody_else():
    """Root may do everything: for a moment, be somebody else."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    "command", ["predict", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fit", "report", "export"))]
)
def test_full_disk(folder, command):
    """A file that may not grow stands for a disk that is full."""
    resource = pytest.importorskip("resource")
    model, table = folder / "m.polytrain", folder / "train.csv"
    (folder / "long.csv").write_text(table.read_text() + "1,u,a\n" * 2000)
    argv = {
        "fit": ["fit", table, *FIT],
        "predict": ["predict", model, folder / "long.csv"],
        "report": ["report", model, table],
        "export": ["export", model, "--to", "c"],
    }[command]
    before = sorted(path.name for path in folder.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "polytrain", *map(str, argv), "--out", str(folder / "new")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    error = done.stderr.splitlines()[-1]
    assert error.startswith("polytrain: error: ")
    assert "file too large. Free some space, or write to another disk." in error
    assert command == "predict" or str(folder / "new") in error
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.slow
def test_full_standard_output(folder):
    with open("/dev/full", "w") as full:
        for argv in (["predict", folder / "m.polytrain", folder / "train.csv"], ["info", folder / "m.polytrain"]):
            command = [sys.executable, "-m", "polytrain", *map(str, argv)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 2
            assert "no space left on device" in done.stderr.splitlines()[-1]
            assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_reader_of_the_output_goes_away(folder):
    (folder / "long.csv").write_text("size,kind\n" + "1,u\n" * 100_000)
    command = f"'{sys.executable}' -m polytrain predict '{folder}/m.polytrain' '{folder}/long.csv' | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stdout == "prediction\n"
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_interrupted_fit_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "big.npz", X=rng.normal(size=(60_000, 40)), y=rng.integers(0, 4, 60_000))
    command = [sys.executable, "-u", "-m", "polytrain", "fit", "big.npz", "--target", "y", "--rank", "20", "--out", "m"]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "60000 rows" in process.stderr.readline()  # the fit begins
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "polytrain: interrupted."
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["big.npz"]


def test_interrupted_writing_keeps_the_old_file(folder, capsys, monkeypatch):
    old = (folder / "m.polytrain").read_bytes()

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    before = sorted(path.name for path in folder.iterdir())
    assert main(["fit", str(folder / "train.csv"), "--out", str(folder / "m.polytrain"), *FIT, "--rank", "3"]) == 130
    assert capsys.readouterr().out == ""
    assert (folder / "m.polytrain").read_bytes() == old
    assert sorted(path.name for path in folder.iterdir()) == before
