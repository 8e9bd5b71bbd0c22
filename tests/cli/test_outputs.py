"""Where commands write: pipes, devices and standard output are written into, files are replaced."""

import os
import socket
import stat
import subprocess
import sys

import numpy as np
import pytest

import polytrain
from polytrain.cli import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are those of POSIX")

GIVEN = ["--basis", "spline", "--bandwidth", "1", "--rank", "2", "--alpha", "1e-3", "--folds", "0", "--quiet"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table and its model."""
    folder = tmp_path_factory.mktemp("made")
    rows = "".join(f"{k % 7},{'uv'[k % 2]},{'ab'[k % 3 > 0]}\n" for k in range(40))
    (folder / "train.csv").write_text("size,kind,y\n" + rows)
    argv = ["fit", folder / "train.csv", "--target", "y", "--out", folder / "m.polytrain", *GIVEN]
    assert main([*map(str, argv)]) == 0
    return folder


def commands(folder):
    model, table = folder / "m.polytrain", folder / "train.csv"
    return {
        "fit": ["fit", table, "--target", "y", *GIVEN],
        "predict": ["predict", model, table],
        "report": ["report", model, table],
        "export": ["export", model, "--to", "c"],
    }


@pytest.mark.parametrize("command", ["fit", "predict", "report", "export"])
def test_a_pipe_is_written_into(made, tmp_path, command):
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    argv = [str(word) for word in commands(made)[command]]
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    try:
        keep = os.open(pipe, os.O_WRONLY)  # waits for the reader
        assert main([*argv, "--out", str(pipe)]) == 0
        os.close(keep)
        received = reader.communicate(timeout=60)[0]
    finally:
        reader.kill()
        reader.wait()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert main([*argv, "--out", str(file)]) == 0
    if command in ("predict", "export"):  # the others hold times
        assert received == file.read_bytes()
    assert len(received) > 50
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_device_is_written_into(made, tmp_path, command):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # what /dev/null is on Linux
        os.close(os.open(device, os.O_WRONLY))
    except OSError:
        pytest.skip("not permitted to make and open a device")
    assert main([*map(str, commands(made)[command]), "--out", str(device)]) == 0
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
@pytest.mark.slow
def test_a_model_goes_through_standard_output(made, tmp_path):
    """What else there is to say goes to standard error, or the model would be spoilt."""
    argv = [sys.executable, "-m", "polytrain", *map(str, commands(made)["fit"]), "--out", "/dev/stdout"]
    through_pipe = subprocess.run(argv, capture_output=True)
    assert through_pipe.returncode == 0, through_pipe.stderr
    (tmp_path / "m").write_bytes(through_pipe.stdout)
    with (tmp_path / "n").open("wb") as file:
        into_file = subprocess.run(argv, stdout=file, stderr=subprocess.PIPE)
    assert b"model         /dev/stdout" in into_file.stderr
    expected = polytrain.load(made / "m.polytrain").trains_[0].cores
    for name in ("m", "n"):
        for core, wanted in zip(polytrain.load(tmp_path / name).trains_[0].cores, expected, strict=True):
            np.testing.assert_array_equal(core, wanted)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_standard_output_is_appended_to(made, tmp_path):
    argv = [sys.executable, "-m", "polytrain", *map(str, commands(made)["predict"]), "--out", "/dev/stdout"]
    (tmp_path / "file").write_text("before\n")
    with (tmp_path / "file").open("ab") as file:
        subprocess.run(argv, stdout=file, stderr=subprocess.PIPE, check=True)
    assert (tmp_path / "file").read_text().startswith("before\nprediction\n")
    assert (tmp_path / "file").read_text().count("\n") == 42


def test_a_wrong_row_sends_nothing_into_a_pipe(made, tmp_path, capsys):
    pipe, table = tmp_path / "pipe", tmp_path / "bad.csv"
    os.mkfifo(pipe)
    table.write_text("size,kind\n" + "1,u\n" * 10_000 + "one,u\n")
    with open(os.open(pipe, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0) as reading:
        assert main(["predict", str(made / "m.polytrain"), str(table), "--out", str(pipe)]) == 2
        assert reading.read() is None
    assert "holds numbers, but here 'one'" in capsys.readouterr().err


def test_a_socket_is_refused(made, tmp_path, capsys):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        assert main([*map(str, commands(made)["predict"]), "--out", str(tmp_path / "s")]) == 2
    assert "is a socket. Name a file." in capsys.readouterr().err


def test_a_private_model_stays_private(made, tmp_path):
    path = tmp_path / "m"
    path.touch(mode=0o600)
    assert main([*map(str, commands(made)["fit"]), "--out", str(path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_longest_name(made, tmp_path):
    path = tmp_path / ("m" * 245 + ".polytrain")
    assert main([*map(str, commands(made)["fit"]), "--out", str(path)]) == 0
    assert polytrain.load(path).n_features_in_ == 2
