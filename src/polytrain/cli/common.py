"""What the commands share: how they speak, and how they end.

Results go to stdout, talk and progress to stderr. A command returns its exit code: 0, or 1 where it ran and found
fault. A user's mistake is a `CommandError`: one line on stderr that names it and the remedy, exit code 2, no traceback.
"""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

__all__ = ["CommandError", "Parser", "say", "show"]


class CommandError(Exception):
    """A mistake that the user can mend. The message names the thing, its value and the remedy."""


class Parser(argparse.ArgumentParser):
    """Parser that reports a mistake like every other one, in one line."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise CommandError(f"{message}. See {self.prog} --help.")


def show(text: str = "") -> None:
    """Print a result."""
    print(text, flush=True)  # noqa: T201


def say(text: str) -> None:
    """Tell the user what is going on."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
