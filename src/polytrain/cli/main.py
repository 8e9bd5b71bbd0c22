"""Find the command and run it. A command is loaded when it is called: help and mistakes come at once."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Collection, Sequence
from importlib import import_module

from polytrain.cli.common import SUMMARIES, CommandError, HelpFormatter, Parser, flag, say
from polytrain.version import __version__

__all__ = ["main", "make_parser"]

# Modules with functions ``add_COMMAND(subparsers)``, for commands that are not in a module of the same name. The parser
# has the default ``run``: parsed arguments -> exit code.
_MODULES = {"report": "evaluate", "info": "export", "reproduce": "other_commands", "completion": "other_commands"}
EPILOG = """\
examples:
  polytrain fit train.csv --target price --out price.polytrain
  polytrain evaluate price.polytrain test.csv
  polytrain predict price.polytrain new.csv --out predictions.csv
  polytrain report price.polytrain test.csv --out report.html

Results go to standard output, everything else to standard error. `polytrain COMMAND --help` tells more.

exit codes: 0 done, 2 a mistake that you can fix (one line says which), 130 interrupted with Ctrl-C."""


def make_parser(commands: Collection[str] = tuple(SUMMARIES)) -> Parser:
    """Return the parser with the options of ``commands``; of others, which need not be loaded, it has the summaries."""
    parser = Parser(
        prog="polytrain",
        description="Polynomial classifiers and regressors kept as tensor trains.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"polytrain {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, summary in SUMMARIES.items():
        if name in commands:
            module = import_module(f"polytrain.cli.{_MODULES.get(name, name)}")
            getattr(module, f"add_{name}")(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
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
        arguments = make_parser([word for word in argv if not word.startswith("-")][:1]).parse_args(argv)
        arguments.command_line = shlex.join(["polytrain", *argv])
        return arguments.run(arguments)
    except BrokenPipeError:
        _forget_stdout()  # its reader has gone
        return 1
    except (CommandError, ValueError, OSError, MemoryError, ImportError) as error:
        if not _is_mistake(error):
            raise
        _forget_stdout()
        say(f"polytrain: error: {describe_error(error)}")
        return 2
    except KeyboardInterrupt as interrupt:
        say(f"polytrain: {str(interrupt) or 'interrupted.'}")
        return 130
    except SystemExit as stop:  # argparse, after --help or --version
        return int(stop.code or 0)


def _is_mistake(error: Exception) -> bool:
    """Whether the user can fix it: a table or a model file is wrong, an extra is not installed, ..."""
    if isinstance(error, ImportError):
        return "polytrain[" in str(error)
    if not isinstance(error, ValueError):
        return True
    from polytrain.models.file import ModelFileError
    from polytrain.tables.options import TableError

    return isinstance(error, ModelFileError | TableError)


def describe_error(error: BaseException) -> str:
    """Return one line that says what is wrong and what to do."""
    if isinstance(error, MemoryError):
        return "not enough memory. Use a smaller table, fewer columns or a smaller --rank."
    if not isinstance(error, OSError) or error.strerror is None:
        from polytrain.tables.options import TableError, spell_options

        message = spell_options(error.args[0], flag) if isinstance(error, TableError) else str(error)
        return " ".join(message.split())
    remedy = _REMEDIES.get(error.errno or 0, "Check the path and the disk")
    return f"{error.filename or 'a file'}: {error.strerror.lower()}. {remedy}."


_REMEDIES = {
    errno.ENOENT: "Check the path",
    errno.EACCES: "Get permission, or name another file",
    errno.EPERM: "Get permission, or name another file",
    errno.EISDIR: "Name a file",
    errno.ENXIO: "Name a file",
    errno.ENOSPC: "Free some space, or write to another disk",
    errno.EDQUOT: "Free some space, or write to another disk",
    errno.EFBIG: "Free some space, or write to another disk",
}


def _forget_stdout() -> None:
    """Drop what waits in stdout if it cannot be written: Python would complain once more when it closes the stream."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
