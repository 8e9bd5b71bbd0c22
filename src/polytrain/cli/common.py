"""Output, errors and arguments shared by the commands.

Results go to stdout and progress to stderr, through `show` and `say`, which escape control characters: names
and labels come from untrusted files. A user's mistake is a `CommandError`: one line on stderr that names it and the
remedy, exit code 2, no traceback.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from polytrain.atomic_file import open_descriptor, written_in_place
from polytrain.texts import printable

if TYPE_CHECKING:
    from polytrain.tables import ReadOptions, TableFile, TableModel

#: Adds an argument, or a group of arguments, to a parser.
Argument = Callable[[Any], object]
#: The commands that are loaded: name -> function that runs it and its arguments.
COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], None], tuple[Argument, ...]]] = {}


class CommandError(Exception):
    """A mistake that the user can fix. The message names the value and the remedy."""


class Parser(argparse.ArgumentParser):
    """Parser that reports errors like all other mistakes, in one line."""

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


# --- arguments ---


def command(*arguments: Argument) -> Callable[[Any], Any]:
    """Turn a function into a command: its name is the command's, its docstring the help, with examples at its end."""

    def register(run: Callable[[argparse.Namespace], None]) -> Callable[[argparse.Namespace], None]:
        COMMANDS[run.__name__] = run, arguments
        return run

    return register


def add_command(subparsers: Any, name: str, summary: str) -> None:
    """Add the parser of a loaded command."""
    run, arguments = COMMANDS[name]
    about, _, examples = (inspect.getdoc(run) or "").partition("\n\n  ")
    epilog = f"examples:\n  {examples}\n\nexit codes: 0 success, 2 a mistake that you can fix, 130 interrupted."
    parser = subparsers.add_parser(name, help=summary, description=about, epilog=epilog, formatter_class=HelpFormatter)
    parser.set_defaults(run=run)
    for add in arguments:
        add(parser)


def option(name: str, about: str, **settings: Any) -> Argument:
    """Return an argument; ``settings`` are those of argparse."""

    def add(parser: Any) -> None:
        action = parser.add_argument(name, help=about, **settings)
        if settings.get("type") is Path or name in ("data", "--train"):
            action.complete = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}  # shtab reads this

    return add


def switch(name: str, about: str, **settings: Any) -> Argument:
    """Return an option without a value."""
    return option(name, about, **{"action": "store_true"} | settings)


def several(name: str, metavar: str, about: str, **settings: Any) -> Argument:
    """Return an option that takes several words, and may be given several times."""
    return option(name, about, metavar=metavar, **{"nargs": "+", "action": "extend", "default": []} | settings)


def number(name: str, metavar: str, kind: type, about: str, default: Any = None, **settings: Any) -> Argument:
    """Return an option that takes a number, or the word that is its default."""

    def read(text: str) -> Any:
        return text if text == default else kind(text)

    read.__name__ = kind.__name__  # what argparse calls it in its errors
    return option(name, about, metavar=metavar, type=read, default=default, **settings)


def one_of(name: str, names: Sequence[str], about: str, default: str | None = None) -> Argument:
    """Return an option that takes one of many names, which the help lists only once."""
    return option(name, about, metavar="NAME", choices=names, default=default)


def group(title: str, *arguments: Argument) -> Argument:
    """Return arguments under their own heading in the help."""

    def add(parser: Any) -> None:
        heading = parser.add_argument_group(title)
        for argument in arguments:
            argument(heading)

    return add


def reading(headers: tuple[str, ...], usual: str, *more: Argument) -> Argument:
    """Return the options for reading a file."""
    header = f"whether the first row of a text file holds the names of the columns (default: {usual})"
    return group(
        "reading the table",
        option("--header", header, choices=headers),
        option(
            "--delimiter", "separator of cells in a text file, such as ';' or tab (default: detected)", metavar="CHAR"
        ),
        option("--decimal", "decimal mark of numbers in text (default: detected)", choices=(".", ",")),
        option("--encoding", "encoding of a text file, such as latin1 (default: detected)", metavar="NAME"),
        *more,
    )


def data(**settings: Any) -> Argument:
    """Return the argument that names a table."""
    kinds = "CSV, TSV, JSON (packed by gzip, zstd, ... or not), Parquet, Feather, Excel, .npy or .npz file"
    return option("data", f"{kinds}; - is standard input", metavar="DATA", **settings)


MODEL = option("model", "model file, from fit or from model.save in Python", type=Path, metavar="MODEL")
READING = reading(("yes", "no"), "as in training")
TARGET = several(
    "--target",
    "COLUMN",
    "name or position of the target, 0 for the first column, -1 for the last (default: as in training)",
    default=None,
)
OFFSET = option(
    "--offset", "column of offsets, the logarithms of exposures (default: as in training, or none)", metavar="COLUMN"
)
WEIGHT = option("--weight", "column of weights (default: as in training, or none)", metavar="COLUMN")
TRAIN = option(
    "--train", "training rows for a linear model, whose errors on DATA are shown for comparison", metavar="FILE"
)
JSON = switch("--json", "print JSON")


def flag(name: str, value: str) -> str:
    """Spell an option of a message (see `polytrain.tables.options.option`) as it is written on the command line."""
    name = f"--{name.replace('_', '-')}"
    # A value that begins with a dash would be taken for an option.
    return f"{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}" if value else name


def read_options(arguments: argparse.Namespace, header: str) -> ReadOptions:
    """Return the options for reading DATA."""
    from polytrain.tables import ReadOptions  # imported late, so that the help appears quickly

    delimiter = "\t" if arguments.delimiter in ("tab", "\\t") else arguments.delimiter
    return ReadOptions(arguments.header or header, delimiter, arguments.encoding)


def load_model(arguments: argparse.Namespace) -> TableModel:
    """Read MODEL; a missing file is reported before anything is loaded."""
    os.stat(arguments.model)
    from polytrain.tables import load_table_model

    return load_table_model(arguments.model)


def open_table(model: TableModel, arguments: argparse.Namespace) -> TableFile:
    """Open DATA for a model, and report how it was interpreted."""
    table = model.open(arguments.data, read_options(arguments, model.header))
    for note in table.notes:
        say(f"note: {note}")
    return table


def check_output(path: Path, *inputs: str | os.PathLike[str]) -> None:
    """Refuse an output file that could not be written, before the work begins."""
    in_place, folder = written_in_place(path), Path(os.path.realpath(path)).parent
    if not in_place and not folder.is_dir():
        raise CommandError(f"--out {path}: there is no folder {folder}. Create it, or name another.")
    target, needed = (path, os.W_OK) if in_place else (folder, os.W_OK | os.X_OK)
    if open_descriptor(path) is None and not os.access(target, needed):
        raise CommandError(f"--out {path}: no permission to write to {target}. Name another file.")
    files = [given for given in inputs if str(given) != "-" and Path(given).exists()]
    if path.exists() and not path.is_char_device() and any(map(path.samefile, files)):
        raise CommandError(f"--out {path} would replace a file that is read. Name another.")


# --- output ---


def show(line: str = "") -> None:
    """Print a line of a result."""
    _print(line, sys.stdout)


def show_heading(line: str) -> None:
    """Print the first line of a further part of a result."""
    show()
    show(line)


def say(line: str) -> None:
    """Report progress in one line."""
    _print(line, sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(printable(line).encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def shows_beside(out: Path) -> Callable[[str], None]:
    """Return the function that prints results: `say` if the output itself goes to standard output, else `show`."""
    return say if open_descriptor(out) == 1 else show


def show_json(content: Any, show_line: Callable[[str], None] = show) -> None:
    """Print a result for scripts."""
    text = json.dumps(content, indent=1, allow_nan=False).replace("\x7f", "\\u007f")  # all else is escaped in JSON
    for line in text.split("\n"):
        show_line(line)


def show_facts(facts: dict[str, Any], show_line: Callable[[str], None] = show, indent: str = "") -> None:
    """Print names and values, one per line."""
    for name, value in facts.items():
        show_line(f"{indent}{name:<22}{_text(name, value)}")


def _text(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    if name.endswith(("error", "accuracy")) and name != "largest_error":
        return f"{100 * value:.2f} %"
    return f"{value:.2f}" if name.endswith("seconds") else f"{value:.5g}"
