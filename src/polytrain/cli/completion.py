"""``polytrain completion``: scripts that let a shell complete commands, options, choices and files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from polytrain.cli.common import CommandError, add_command, show

__all__ = ["add_parser"]

DESCRIPTION = """\
Print a script for the shell. It is made from the options that this version has; after an upgrade, make it anew. The
scripts are written by shtab, which the extra "completion" installs."""

EXAMPLES = """\
  polytrain completion bash > ~/.local/share/bash-completion/completions/polytrain
  polytrain completion zsh > ~/.zfunc/_polytrain        (with fpath+=~/.zfunc before compinit in ~/.zshrc)
  polytrain completion fish > ~/.config/fish/completions/polytrain.fish"""

_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
# Arguments that name files, besides those that are read as paths.
_FILES = ("data", "train")


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = add_command(subparsers, "completion", run, description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("shell", choices=_SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    try:
        import shtab
    except ImportError:
        raise CommandError("scripts for shells need shtab. Install it: pip install 'polytrain[completion]'.") from None
    from polytrain.cli.main import make_parser

    parser = make_parser()
    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise CommandError(f"this version of shtab does not know {arguments.shell}. Upgrade it, or name another shell.")
    for command in _subparsers(parser):
        for action in command._actions:
            if action.type is Path or action.dest in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    for line in shtab.complete(parser, arguments.shell).rstrip("\n").split("\n"):
        show(line.replace("\t", "    "))
    return 0


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of all commands."""
    return [
        command
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for command in action.choices.values()
    ]
