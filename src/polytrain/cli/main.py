"""Find the command and run it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

import polytrain
from polytrain.cli import reproduce
from polytrain.cli.common import CommandError, Parser, say

__all__ = ["main"]

# A command is a module with add_parser(subparsers), which sets the default ``run``: parsed arguments -> exit code.
COMMANDS = (reproduce,)


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="polytrain", description="Polynomial classifiers and regressors kept as tensor trains.")
    parser.add_argument("--version", action="version", version=f"polytrain {polytrain.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
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
        arguments = make_parser().parse_args(argv)
        arguments.command_line = shlex.join(["polytrain", *argv])
        return arguments.run(arguments)
    except CommandError as error:
        say(f"polytrain: error: {error}")
        return 2
    except KeyboardInterrupt as interrupt:
        say(f"polytrain: {str(interrupt) or 'interrupted.'}")
        return 130
    except BrokenPipeError:
        # The reader of stdout has gone. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as stop:  # argparse, after --help or --version
        return int(stop.code or 0)
