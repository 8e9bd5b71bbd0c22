"""What the commands share: how they speak, and how they end.

Results go to stdout, talk and progress to stderr, both line by line through `show` and `say`, which write out what a
terminal would obey: names and labels come from files of strangers. A command returns its exit code: 0, or 1 where it
ran and found fault. A user's mistake is a `CommandError`: one line on stderr that names it and the remedy, exit code 2,
no traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

from polytrain.atomic_file import open_descriptor, written_in_place
from polytrain.cli.commands import SUMMARIES
from polytrain.texts import printable

__all__ = [
    "CommandError",
    "HelpFormatter",
    "Parser",
    "add_command",
    "check_output",
    "flag",
    "say",
    "show",
    "show_json",
    "shows_beside",
]


class CommandError(Exception):
    """A mistake that the user can fix. The message names the thing, its value and the remedy."""


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


def add_command(subparsers: Any, name: str, run: Any, *, description: str, examples: str) -> argparse.ArgumentParser:
    """Add the parser of a command, with examples at the end of its help."""
    parser = subparsers.add_parser(
        name,
        help=SUMMARIES[name],
        description=description,
        epilog=f"examples:\n{examples}\n\nexit codes: 0 done, 2 a mistake that you can fix, 130 interrupted.",
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def flag(option: Any) -> str:
    """Spell an option that a message names (`polytrain.tables.Option`) as it is written on the command line."""
    name = f"--{option.name.replace('_', '-')}"
    if option.value is None or option.value in ("True", "False"):
        return name
    # What begins with a dash would be taken for an option.
    return f"{name}{'=' if option.value.startswith('-') else ' '}{shlex.quote(option.value)}"


def check_output(path: Path, *inputs: str | os.PathLike[str]) -> None:
    """Refuse an output file that could not be written, before the work begins."""
    if path.is_dir():
        raise CommandError(f"--out {path} is a folder. Name a file.")
    if path.is_socket():
        raise CommandError(f"--out {path} is a socket. Name a file.")
    if not written_in_place(path):
        _check_folder(path, Path(os.path.realpath(path)).parent)
    elif open_descriptor(path) is None and not os.access(path, os.W_OK):
        raise CommandError(f"--out {path}: no permission to write into it. Name another file.")
    for given in inputs:
        if not path.exists() or path.is_char_device() or str(given) == "-" or not Path(given).exists():
            continue
        if path.samefile(given):
            raise CommandError(f"--out {path} would replace a file that is read. Name another.")


def _check_folder(path: Path, folder: Path) -> None:
    if not folder.is_dir():
        raise CommandError(f"--out {path}: there is no folder {folder}. Make it, or name another.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"--out {path}: no permission to write in {folder}. Name a file in another folder.")


def shows_beside(out: Path) -> Callable[[str], None]:
    """Return what prints results beside an output: `say` where that is standard output itself, `show` otherwise."""
    return say if open_descriptor(out) == 1 else show


def show_json(content: Any, show_line: Callable[[str], None] | None = None) -> None:
    """Print a result for scripts."""
    text = json.dumps(content, indent=1, allow_nan=False).replace("\x7f", "\\u007f")  # all else is escaped in JSON
    for line in text.split("\n"):
        (show_line or show)(line)


def show(line: str = "") -> None:
    """Print a line of a result."""
    _print(line, sys.stdout)


def say(line: str) -> None:
    """Tell the user what is going on, in one line."""
    _print(line, sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    known = printable(line).encode(encoding, "backslashreplace").decode(encoding)
    print(known, file=stream, flush=True)
