"""Find the command and run it. A command is loaded when it is called, so that help and errors appear quickly."""

from __future__ import annotations

import errno
import os
import shlex
import sys
import warnings
from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.util import find_spec

from polytrain.cli import common
from polytrain.version import __version__

__all__ = ["main", "make_parser"]

# Commands in the order of the help: the module of the command, and its summary.
_COMMANDS = {
    "fit": ("fit", "learn a model from a table"),
    "predict": ("predict", "predict the rows of a table"),
    "evaluate": ("predict", "compare predictions with the target in a table"),
    "explain": ("explain", "show importances, interactions and terms of a model, or explain single rows"),
    "report": ("predict", "write an HTML page about a model"),
    "export": ("export", "write a model as ONNX or C"),
    "info": ("export", "show the contents of a model file"),
    "reproduce": ("main", "recompute the paper's tables and convergence figure"),
}
_PAPER = (
    "reproduce is part of a second package with the digits, their features and the paper's tables: "
    "pip install polytrain-paper, or pip install ./paper in a clone of polytrain."
)
EPILOG = """\
examples:
  polytrain fit train.csv --target price --out price.polytrain
  polytrain evaluate price.polytrain test.csv
  polytrain predict price.polytrain new.csv --out predictions.csv
  polytrain report price.polytrain test.csv --out report.html

Results go to standard output, everything else to standard error. See `polytrain COMMAND --help`.

exit codes: 0 success, 2 a mistake that you can fix (one line names it), 130 interrupted with Ctrl-C."""


def make_parser(commands: Collection[str] = tuple(_COMMANDS)) -> common.Parser:
    """Return the parser with the options of ``commands``, and summaries of all others, which are not loaded."""
    parser = common.Parser(
        prog="polytrain",
        description="Polynomial classifiers and regressors kept as tensor trains.",
        epilog=EPILOG,
        formatter_class=common.HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"polytrain {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, summary) in _COMMANDS.items():
        if name not in commands or (name == "reproduce" and find_spec("polytrain_paper") is None):
            subparsers.add_parser(name, help=summary)
        elif name == "reproduce":
            from polytrain_paper.cli import add_parser

            add_parser(subparsers)
        else:
            import_module(f"polytrain.cli.{module}")
            common.add_command(subparsers, name, summary)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code: 0; 2 for a user's mistake; 130 after Ctrl-C.

    Examples
    --------
    >>> from polytrain.cli import main
    >>> main(["--version"])
    polytrain ...
    0
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        named = [word for word in argv if not word.startswith("-")][:1]
        if named == ["reproduce"] and find_spec("polytrain_paper") is None:
            raise common.CommandError(_PAPER)
        arguments = make_parser(named).parse_args(argv)
        arguments.command_line = shlex.join(["polytrain", *argv])
        with warnings.catch_warnings(action="always", category=UserWarning):
            warnings.showwarning = lambda message, *_, **__: common.say(f"note: {message}")
            arguments.run(arguments)
        return 0
    except BrokenPipeError:
        _forget_stdout()  # the reader of the pipe has closed it
        return 1
    except (common.CommandError, ValueError, OSError, MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and "polytrain[" not in str(error):  # not an optional dependency
            raise
        _forget_stdout()
        common.say(f"polytrain: error: {describe_error(error)}")
        return 2
    except KeyboardInterrupt as interrupt:
        common.say(f"polytrain: {str(interrupt) or 'interrupted.'}")
        return 130
    except SystemExit as stop:  # argparse, after --help or --version
        return int(stop.code or 0)


def describe_error(error: BaseException) -> str:
    """Return one line that names the error and the remedy."""
    if isinstance(error, MemoryError):
        return "not enough memory. Use a smaller table, fewer columns or a smaller --rank."
    if isinstance(error, common.CommandError):
        return " ".join(str(error).split())
    if not isinstance(error, OSError) or error.strerror is None:
        from polytrain.tables.options import TableError, spell_options

        message = spell_options(error.args[0], common.flag) if isinstance(error, TableError) else str(error)
        return " ".join(message.split())
    remedy = _REMEDIES.get(error.errno or 0, "Check the path and the disk")
    return f"{error.filename or 'a file'}: {error.strerror.lower()}. {remedy}."


_REMEDIES = {
    errno.ENOENT: "Check the path",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Get permission, or name another file"),
    **dict.fromkeys((errno.EISDIR, errno.ENXIO), "Name a file"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space, or write to another disk"),
}


def _forget_stdout() -> None:
    """Drop buffered output that cannot be written: Python would report it again when it closes the stream."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
