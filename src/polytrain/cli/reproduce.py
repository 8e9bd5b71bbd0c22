"""``polytrain reproduce``: a command of the package polytrain-paper, or how to install that."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any

from polytrain.cli.commands import SUMMARIES
from polytrain.cli.common import CommandError

__all__ = ["add_parser"]


REMEDY = (
    "reproduce comes with a second package, which has the digits, their features and the paper's tables: "
    "pip install polytrain-paper, or pip install ./paper in a clone of polytrain."
)


def add_parser(subparsers: Any) -> None:
    """Add the command, with its options where the package that has it is installed."""
    if find_spec("polytrain_paper") is None:
        # No argument begins with NUL, so all of them, --help included, are positional and meet the same answer.
        parser = subparsers.add_parser(
            "reproduce", help=SUMMARIES["reproduce"], description=REMEDY, prefix_chars="\0", add_help=False
        )
        parser.add_argument("arguments", nargs="*")
        parser.set_defaults(run=_refuse)
        return
    from polytrain_paper.cli import add_parser as add_command

    add_command(subparsers)


def _refuse(arguments: argparse.Namespace) -> int:
    raise CommandError(REMEDY)
