"""What the commands share: how they speak, and how they end.

Results go to stdout, talk and progress to stderr. A command returns its exit code: 0, or 1 where it ran and found
fault. A user's mistake is a `CommandError`: one line on stderr that names it and the remedy, exit code 2, no traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["CommandError", "HelpFormatter", "Parser", "add_command", "check_output", "say", "show", "show_json"]


class CommandError(Exception):
    """A mistake that the user can mend. The message names the thing, its value and the remedy."""


class Parser(argparse.ArgumentParser):
    """Parser that reports a mistake like every other one, in one line."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise CommandError(f"{message}. See {self.prog} --help.")


class HelpFormatter(argparse.HelpFormatter):
    """Fills paragraphs to the width of the terminal, and leaves those with indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = [
            part if "\n  " in part or part.startswith("  ") else textwrap.fill(" ".join(part.split()), width)
            for part in text.split("\n\n")
        ]
        return textwrap.indent("\n\n".join(paragraphs), indent)


def add_command(
    subparsers: Any, name: str, run: Any, *, summary: str, description: str, examples: str
) -> argparse.ArgumentParser:
    """Add the parser of a command, with examples at the end of its help."""
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}\n\nexit codes: 0 done, 2 a mistake that you can mend, 130 interrupted.",
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def check_output(path: Path, *inputs: str | os.PathLike[str]) -> None:
    """Refuse an output file that could not be written, before the work begins."""
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise CommandError(f"--out {path} is a folder. Name a file.")
    if not folder.is_dir():
        raise CommandError(f"--out {path}: there is no folder {folder}. Make it, or name another.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"--out {path}: no permission to write in {folder}. Name a file in another folder.")
    for given in inputs:
        if path.exists() and str(given) != "-" and Path(given).exists() and path.samefile(given):
            raise CommandError(f"--out {path} would replace a file that is read. Name another.")


def show_json(content: Any) -> None:
    """Print a result for scripts."""
    show(json.dumps(content, indent=1, allow_nan=False))


def show(text: str = "") -> None:
    """Print a result."""
    print(text, flush=True)  # noqa: T201


def say(text: str) -> None:
    """Tell the user what is going on."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
