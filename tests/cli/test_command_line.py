import subprocess
import sys

import pytest

import polytrain
from polytrain.cli import main


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"polytrain {polytrain.__version__}\n"
    assert main(["--help"]) == 0
    assert "reproduce" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: COMMAND. See polytrain --help."),
        (["reproduse"], "invalid choice: 'reproduse'"),
        (["export", "m", "--to", "d"], "invalid choice: 'd'"),
        (["info", "x.polytrain", "--what"], "unrecognized arguments: --what"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, argv, message):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polytrain: error: ")
    assert message in err
    assert "--help" in err
    assert err.count("\n") == 1


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "polytrain", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"polytrain {polytrain.__version__}\n", "")
