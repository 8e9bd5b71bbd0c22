import subprocess
import sys

import pytest

import polytrain
from polytrain.cli import fit, main
from polytrain.cli.main import _COMMANDS
from polytrain.evaluation import METRICS
from polytrain.learning.losses import loss_names
from polytrain.maps import basis_names
from polytrain.tables import DEFAULT_MISSING
from polytrain.tables.fitting import MAX_CHECK_ROWS


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


@pytest.mark.parametrize("argv", [(name, option) for name in _COMMANDS for option in ("--help", "--nonsense", "")])
def test_help_and_mistakes_load_no_library(argv):
    if argv[0] == "reproduce":
        pytest.skip("it is a command of polytrain-paper")
    code = f"""
import sys
from polytrain.cli import main
done = main({[word for word in argv if word]})
print(done, *sorted({{"numpy", "scipy", "sklearn", "pandas"}} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == ("0" if argv[1] == "--help" else "2")


@pytest.mark.parametrize(
    "command",
    [
        ["info", "none"],
        ["predict", "none", "x.csv"],
        ["explain", "none", "--terms", "0"],
        ["fit", "none", "--target", "y", "--out", "m"],
    ],
)
def test_what_is_missing_is_said_before_libraries_are_loaded(command, tmp_path):
    code = f"import sys\nfrom polytrain.cli import main\nprint(main({command}), 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "2 False\n"


def test_names_in_the_help_are_those_that_there_are():
    losses = dict.fromkeys(["auto", "multinomial", *loss_names("classification"), *loss_names("regression")])
    assert list(losses) == fit._LOSSES
    assert ["auto", *basis_names()] == fit._BASES
    assert list(METRICS) == fit._METRICS
    assert tuple(fit._MISSING) == DEFAULT_MISSING
    assert fit._MAX_CHECK_ROWS == MAX_CHECK_ROWS


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "polytrain", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"polytrain {polytrain.__version__}\n", "")
