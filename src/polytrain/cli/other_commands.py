"""``polytrain completion``, scripts for shells, and ``polytrain reproduce``, which the package polytrain-paper has."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from polytrain.cli.common import SUMMARIES, CommandError, add_command, show

__all__ = ["add_completion", "add_reproduce"]

_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
# Arguments that name files, besides those that are read as paths.
_FILES = ("data", "train")


def add_completion(subparsers: Any) -> None:
    """Add the command completion."""
    parser = add_command(subparsers, completion)
    parser.add_argument("shell", choices=_SHELLS, help="the shell")


def completion(arguments: argparse.Namespace) -> int:
    """Print a script for the shell, with the options that this version has; make it again after an upgrade.

    The scripts are written by shtab, which the extra "completion" installs.

      polytrain completion bash > ~/.local/share/bash-completion/completions/polytrain
      polytrain completion zsh > ~/.zfunc/_polytrain        (with fpath+=~/.zfunc before compinit in ~/.zshrc)
      polytrain completion fish > ~/.config/fish/completions/polytrain.fish
    """
    try:
        import shtab
    except ImportError:
        raise CommandError("scripts for shells need shtab. Install it: pip install 'polytrain[completion]'.") from None
    from polytrain.cli.main import make_parser

    parser = make_parser()
    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise CommandError(f"this version of shtab does not know {arguments.shell}. Upgrade it, or name another shell.")
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for action in (action for command in commands.choices.values() for action in command._actions):
        if action.type is Path or action.dest in _FILES:
            action.complete = shtab.FILE
    for line in shtab.complete(parser, arguments.shell).rstrip("\n").split("\n"):
        show(line.replace("\t", "    "))
    return 0


_PAPER = (
    "reproduce comes with a second package, which has the digits, their features and the paper's tables: "
    "pip install polytrain-paper, or pip install ./paper in a clone of polytrain."
)


def add_reproduce(subparsers: Any) -> None:
    """Add the command, with its options where the package that has it is installed."""
    if find_spec("polytrain_paper") is None:
        # No argument begins with NUL, so all of them, --help included, are positional and meet the same answer.
        parser = subparsers.add_parser(
            "reproduce", help=SUMMARIES["reproduce"], description=_PAPER, prefix_chars="\0", add_help=False
        )
        parser.add_argument("arguments", nargs="*")
        parser.set_defaults(run=_refuse)
        return
    from polytrain_paper.cli import add_parser

    add_parser(subparsers)


def _refuse(arguments: argparse.Namespace) -> int:
    raise CommandError(_PAPER)
